/* ebb inspect perplexity: how well a model predicts a text.
 *
 * As llama-perplexity does by default: the text, with its BOS, is cut into windows of
 * --ctx tokens (512) that do not overlap, each begins with BOS where the vocabulary
 * asks for one, and the second half of each is scored:
 * exp(mean of -log p(token | window so far)).  A rest shorter than a window is left out. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "ebb/experimental/inspect.h"
#include "os/file.h"

#define MAX_TEXT ((size_t)512 << 20)
#define USUAL_CTX 512u

typedef struct score {
    const ebb_token *ids;        /* of the window */
    uint32_t n_ctx;
    size_t   n;                  /* tokens scored */
    double   sum, sum_2;         /* of their -log p */
} score;

/* -log p of `id`. */
static double negative_log_likelihood(const float *logits, size_t n_vocab, ebb_token id)
{
    double top = logits[0], sum = 0;

    for (size_t i = 1; i < n_vocab; i++)
        top = logits[i] > top ? logits[i] : top;
    for (size_t i = 0; i < n_vocab; i++)
        sum += exp(logits[i] - top);
    return top + log(sum) - logits[id];
}

static void score_position(void *arg, size_t pos, const float *logits, size_t n_vocab)
{
    score *s = arg;
    double x;

    if (pos < s->n_ctx / 2 || pos + 1 >= s->n_ctx)
        return;
    x = negative_log_likelihood(logits, n_vocab, s->ids[pos + 1]);
    s->sum += x;
    s->sum_2 += x * x;
    s->n++;
}

static void print_result(const ebb_args *a, const score *s, size_t n_windows)
{
    double mean = s->sum / (double)s->n, var = s->sum_2 / (double)s->n - mean * mean;
    double ppl = exp(mean), error = s->n > 1 && var > 0 ? ppl * sqrt(var / (double)(s->n - 1)) : 0;

    if (a->json)
        printf("{\"perplexity\": %.6f, \"error\": %.6f, \"tokens\": %zu, \"windows\": %zu, \"ctx\": %u}\n",
               ppl, error, s->n, n_windows, s->n_ctx);
    else
        printf("perplexity %.4f +- %.4f: %zu tokens, the second halves of %zu windows of %u\n",
               ppl, error, s->n, n_windows, s->n_ctx);
}

static ebb_status score_windows(const ebb_args *a, const ebb_model *m, ebb_session *session, ebb_token *ids, size_t n,
                                score *s, ebb_error *err)
{
    size_t n_windows = n / s->n_ctx;
    ebb_token bos = ebb_model_bos(m);
    bool has_bos = n > 0 && bos >= 0 && ids[0] == bos;
    ebb_status st = EBB_OK;

    if (n_windows == 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s: %zu tokens are fewer than a window of %u; --ctx sets a smaller one",
                        a->file_path, n, s->n_ctx);
    for (size_t i = 0; i < n_windows && st == EBB_OK; i++) {
        s->ids = ids + i * s->n_ctx;
        if (has_bos)
            ids[i * s->n_ctx] = bos;
        st = ebb_session_eval(session, s->ids, s->n_ctx, a->engine.n_batch, score_position, s, err);
        if (ebb_cli_progress(a))
            fprintf(stderr, "\rwindow %zu of %zu: %.4f%s", i + 1, n_windows, exp(s->sum / (double)s->n),
                    i + 1 == n_windows ? "\n" : "");
    }
    if (st == EBB_OK)
        print_result(a, s, n_windows);
    return st;
}

static ebb_status measure_perplexity(const ebb_args *a, const ebb_model *m, ebb_token *ids, size_t n, ebb_error *err)
{
    ebb_engine_opts opts = a->engine;
    ebb_engine *e = NULL;
    ebb_stats stats;
    ebb_session *session = NULL;
    score s = { 0 };
    ebb_status st;

    opts.n_ctx = opts.n_ctx ? opts.n_ctx : USUAL_CTX;
    if (opts.n_ctx < 4)
        return EBB_FAIL(err, EBB_USAGE, "--ctx %u: a window needs at least 4 tokens", opts.n_ctx);
    st = ebb_engine_open(m, &opts, NULL, NULL, &e, err);
    if (st == EBB_OK) {
        s.n_ctx = opts.n_ctx == EBB_CTX_MAX ? ebb_engine_n_ctx(e) : opts.n_ctx;
        ebb_engine_stats(e, &stats);
        ebb_cli_tell(a, stats.left_out);
    }
    if (st == EBB_OK)
        st = ebb_session_new(e, &session, err);
    if (st == EBB_OK)
        st = score_windows(a, m, session, ids, n, &s, err);
    ebb_session_free(session);
    ebb_engine_close(e);
    return st;
}

int ebb_cmd_inspect_perplexity(ebb_args *a)
{
    ebb_model *m = NULL;
    ebb_token *ids = NULL;
    ebb_buf text = { 0 };
    ebb_error err = { 0 };
    size_t n = 0;
    ebb_status st = EBB_OK;

    if (!a->file_path)
        st = EBB_FAIL(&err, EBB_USAGE, "inspect perplexity: needs a text: -f FILE");
    if (st == EBB_OK)
        st = ebb_cli_open_model(a, &m, &err);
    if (st == EBB_OK)
        st = ebb_file_slurp(a->file_path, MAX_TEXT, &text, &err);
    if (st == EBB_OK)
        st = ebb_cli_tokenize(m, &text, a->no_bos ? 0u : EBB_TOK_BOS, &ids, &n, &err);
    ebb_buf_fini(&text);
    if (st == EBB_OK)
        st = measure_perplexity(a, m, ids, n, &err);
    free(ids);
    ebb_model_close(m);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(&err);
}
