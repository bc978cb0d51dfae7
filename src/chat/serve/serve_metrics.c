/* Figures for Prometheus, in its text format (serve_priv.h). */

#include "serve/serve_priv.h"

static void add_metric(ebb_buf *out, const char *name, const char *type, const char *help, double value)
{
    ebb_buf_addf(out, "# HELP ebb_%s %s\n# TYPE ebb_%s %s\nebb_%s %.17g\n", name, help, name, type, name, value);
}

static void add_requests(ebb_buf *out, ebb_serve *s)
{
    size_t n_running, n_waiting;

    pthread_mutex_lock(&s->lock);
    n_waiting = ebb_served_n_waiting(s, &n_running);
    add_metric(out, "requests_total", "counter", "Requests of any kind.", (double)s->n_requests);
    add_metric(out, "requests_refused_total", "counter", "Requests answered with an error.", (double)s->n_refused);
    add_metric(out, "answers_total", "counter", "Answers that were asked for.", (double)s->n_answers);
    add_metric(out, "answers_cancelled_total", "counter", "Answers whose client went or stopped them.",
               (double)s->n_canceled);
    add_metric(out, "answers_failed_total", "counter", "Answers that ended with an error.", (double)s->n_failed);
    add_metric(out, "answers_running", "gauge", "Answers that go by turns now.", (double)n_running);
    add_metric(out, "answers_waiting", "gauge", "Answers that wait for their first turn, or for room.",
               (double)n_waiting);
    add_metric(out, "shared_passes_total", "counter", "Forward passes for several answers at once.",
               (double)s->n_shared_passes);
    add_metric(out, "prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
               (double)s->n_prompt_tokens);
    add_metric(out, "reused_tokens_total", "counter", "Tokens of prompts whose K and V were there.",
               (double)s->n_reused_tokens);
    add_metric(out, "generated_tokens_total", "counter", "Tokens of answers.", (double)s->n_generated_tokens);
    add_metric(out, "prefill_seconds_total", "counter", "Time in prompts.", s->prefill_s);
    add_metric(out, "decode_seconds_total", "counter",
               "Time from an answer's first token to its last, of all answers.", s->decode_s);
    pthread_mutex_unlock(&s->lock);
    add_metric(out, "connections", "gauge", "Connections that stand.", ebb_http_server_n_connections(s->http));
}

static void add_engine(ebb_buf *out, ebb_serve *s)
{
    ebb_stats v;

    ebb_engine_stats(s->engine, &v);
    add_metric(out, "memory_anonymous_bytes", "gauge", "Anonymous memory of the process.", (double)v.rss_anon_bytes);
    add_metric(out, "memory_file_bytes", "gauge", "Mapped pages of files.", (double)v.rss_file_bytes);
    add_metric(out, "memory_budget_bytes", "gauge", "Most memory that the process may take.", (double)v.budget_bytes);
    add_metric(out, "kv_pool_bytes", "gauge", "The KV pool.", (double)v.kv_bytes);
    add_metric(out, "context_tokens", "gauge", "Most tokens of a sequence.", v.n_ctx);
    add_metric(out, "layers", "gauge", "Layers of the model.", v.n_layers);
    add_metric(out, "layers_resident", "gauge", "Of these, in memory for good.", v.n_resident);
    add_metric(out, "disk_read_bytes_total", "counter", "Weights that were streamed.", (double)v.read_bytes);
    add_metric(out, "disk_stall_share", "gauge", "Of the last turn's time, spent waiting for reads.", v.stall_share);
    add_metric(out, "passes_total", "counter", "Forward passes.", (double)v.n_passes);
    add_metric(out, "drafted_tokens_total", "counter", "Draft tokens.", (double)v.n_drafted);
    add_metric(out, "accepted_tokens_total", "counter", "Draft tokens that were accepted.", (double)v.n_accepted);
}

void ebb_serve_metrics(ebb_serve *s, ebb_http_exchange *x)
{
    ebb_buf out = { 0 };

    add_requests(&out, s);
    add_engine(&out, s);
    ebb_http_reply(x, 200, "text/plain; version=0.0.4", ebb_buf_text(&out), out.len, 0);
    ebb_buf_fini(&out);
}
