/* Sending an answer: in one body, or streamed as it is generated (serve_priv.h). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/serve_priv.h"

enum { MOST_AT_ONCE = 64 << 10 };

/* -- In JSON ------------------------------------------------------------------------------------------ */

void ebb_serve_reply_json(ebb_http_exchange *x, unsigned status, json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

    json_decref(o);
    if (text)
        ebb_http_reply(x, status, "application/json", text, strlen(text), status == 503 || status == 429 ? 2 : 0);
    else
        ebb_http_reply(x, 500, "application/json",
                       "{\"error\":{\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}}", 70, 0);
    free(text);
}

static const struct { ebb_status code; unsigned status; const char *type; } kinds_of_errors[] = {
    /* not 5xx: clients would try those again */
    { EBB_USAGE, 400, "invalid_request_error" }, { EBB_UNSUPPORTED, 400, "not_supported_error" },
    { EBB_CONTEXT, 400, "exceed_context_size_error" }, { EBB_BUSY, 503, "unavailable_error" },
        { EBB_LIMIT, 400, "invalid_request_error" },
    { EBB_NOTFOUND, 404, "not_found_error" }, { EBB_FORMAT, 400, "invalid_request_error" },
        { EBB_CANCELED, 499, "server_error" },
};

static json_t *error_object(const ebb_error *err, unsigned status, const char *type)
{
    return json_pack("{s:i, s:s, s:s}", "code", (int)status, "message", err->msg, "type", type);
}

/* n_prompt: of what the context has no room for; 0: not known. */
static json_t *json_error(const ebb_serve *s, const ebb_error *err, size_t n_prompt, unsigned *status)
{
    const char *type = "server_error";
    json_t *o;

    *status = 500;
    for (size_t i = 0; i < sizeof kinds_of_errors / sizeof *kinds_of_errors; i++)
        if (kinds_of_errors[i].code == err->code) {
            *status = kinds_of_errors[i].status;
            type = kinds_of_errors[i].type;
        }
    o = error_object(err, *status, type);
    if (err->code == EBB_CONTEXT)
        json_object_set_new(o, "n_ctx", json_integer(s->n_ctx));
    if (err->code == EBB_CONTEXT && n_prompt)
        json_object_set_new(o, "n_prompt_tokens", json_integer((json_int_t)n_prompt));
    return json_pack("{s:o}", "error", o);
}

/* What is left undone because the server leaves, its next one does: 503 is tried again. */
static void reply_refusal(ebb_serve *s, ebb_http_exchange *x, const ebb_error *err, size_t n_prompt)
{
    ebb_error leaving = { 0 };
    unsigned status;
    json_t *o;

    if (err->code == EBB_CANCELED && ebb_serve_is_leaving(s)) {
        EBB_FAIL(&leaving, EBB_BUSY, "%s", EBB_SERVE_LEAVES);
        err = &leaving;
    }
    o = json_error(s, err, n_prompt, &status);
    ebb_serve_reply_json(x, status, o);
}

void ebb_serve_reply_error(ebb_serve *s, ebb_http_exchange *x, const ebb_error *err)
{
    reply_refusal(s, x, err, 0);
}

json_t *ebb_serve_usage(const ebb_served *a)
{
    return json_pack("{s:i, s:i, s:i, s:{s:i}}", "prompt_tokens", (int)a->n_prompt, "completion_tokens",
                     (int)a->stats.n_generated,
                     "total_tokens", (int)(a->n_prompt + a->stats.n_generated), "prompt_tokens_details",
                         "cached_tokens",
                     (int)a->stats.n_reused);
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

void ebb_serve_put_figures(json_t *o, const ebb_served *a)
{
    const ebb_turn_stats *t = &a->stats;
    /* tokens computed again after others took their blocks are in prefill_s, not in n_new */
    uint32_t n_new = t->n_prompt - t->n_reused;
    double n = n_new, m = t->n_generated;

    json_object_set_new(o, "timings", json_pack("{s:i, s:i, s:f, s:f, s:f, s:i, s:f, s:f, s:f}",
        "cache_n", (int)t->n_reused,
        "prompt_n", (int)n_new, "prompt_ms", t->prefill_s * 1e3,
        "prompt_per_token_ms", ratio(t->prefill_s * 1e3, n), "prompt_per_second", ratio(n, t->prefill_s),
        "predicted_n", (int)t->n_generated, "predicted_ms", t->decode_s * 1e3,
        "predicted_per_token_ms", ratio(t->decode_s * 1e3, m), "predicted_per_second", ratio(m, t->decode_s)));
    json_object_set_new(o, "ebb", json_pack("{s:I, s:i, s:i, s:i, s:f}", "answer", (json_int_t)a->number,
        "reused", (int)t->n_reused, "reused_disk", (int)t->n_reused_disk, "computed", (int)t->n_computed,
        "first_s", t->first_s));
}

void ebb_serve_put_progress(json_t *o, const ebb_served *a)
{
    const ebb_turn_stats *t = &a->stats;

    json_object_set_new(o, "prompt_progress", json_pack("{s:i, s:i, s:i, s:i}",
        "total", (int)a->n_prompt, "cache", (int)t->n_reused,
        "processed", (int)(t->n_reused + a->progress_done), "time_ms", (int)(t->prefill_s * 1e3)));
}

/* -- A stream ------------------------------------------------------------------------------------------ */

typedef struct stream {
    ebb_serve        *s;
    ebb_served       *a;
    ebb_served_reader reader;
    const ebb_serve_form *form;
    uint32_t          flags;
    size_t            next;              /* piece */
    bool              has_begun, has_ended;
    uint32_t          progress_done;
    bool              has_progress;
    double            figures_s;         /* when the engine's were sent, on ebb_clock_s; 0: not yet */
    ebb_buf           out;               /* events on their way, from out_at on */
    size_t            out_at;
} stream;

static void add_event(ebb_buf *out, json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

    json_decref(o);
    if (!text)
        return;
    ebb_buf_adds(out, "data: ");
    ebb_buf_adds(out, text);
    ebb_buf_adds(out, "\n\n");
    free(text);
}

/* As much as may wait to be sent: who reads a long answer from its beginning does not keep the lock meanwhile. */
static void add_pieces(stream *t)
{
    const ebb_served *a = t->a;

    for (; t->next < a->n_pieces && t->out.len < MOST_AT_ONCE; t->next++) {
        const ebb_served_piece *p = &a->pieces[t->next];
        size_t from = t->next ? p[-1].text_end : 0, ids_from = t->next ? p[-1].ids_end : a->n_prompt;
        json_t *o = t->form->piece(t->s, a, false, a->text.data + from, p->text_end - from, ids_from, p->ids_end,
                                   t->flags);

        if (a->q.survives)
            json_object_set_new(o, "ebb", json_pack("{s:I, s:I}", "answer", (json_int_t)a->number, "next",
                                                    (json_int_t)t->next + 1));
        add_event(&t->out, o);
    }
}

/* The event that all streams get, made when what there is is too old for this one. */
static void make_figures(ebb_serve *s, const ebb_served *a, double now_s)
{
    bool is_new = s->figures_s > 0 && now_s - s->figures_s < SERVE_FIGURES_MS / 1e3 &&
                  (a->state != SERVED_ENDED || s->figures_s > a->ended_s);
    json_t *o = is_new ? NULL : json_pack("{s:[], s:{s:o}}", "choices", "ebb", "figures", ebb_serve_stats_locked(s));

    if (is_new)
        return;
    ebb_buf_clear(&s->figures);
    add_event(&s->figures, o);
    s->figures_s = now_s;
}

/* Those of the engine: at first, every SERVE_FIGURES_MS, and with the end. */
static void add_figures(stream *t)
{
    double now_s = ebb_clock_s();

    if (!(t->flags & SERVE_FIGURES) ||
        (t->a->state != SERVED_ENDED && t->figures_s > 0 && now_s - t->figures_s < SERVE_FIGURES_MS / 1e3))
        return;
    t->figures_s = now_s;
    make_figures(t->s, t->a, now_s);
    ebb_buf_add(&t->out, ebb_buf_text(&t->s->figures), t->s->figures.len);
}

static void add_end(stream *t)
{
    unsigned status;

    t->has_ended = true;
    if (t->a->error.code != EBB_OK) {
        add_event(&t->out, json_error(t->s, &t->a->error, t->a->n_prompt, &status));
        return;
    }
    add_event(&t->out, t->form->last(t->s, t->a, t->flags));
    if ((t->flags & SERVE_USAGE) && t->form->usage)
        add_event(&t->out, t->form->usage(t->s, t->a, t->flags));
    if (t->form->has_done)
        ebb_buf_adds(&t->out, "data: [DONE]\n\n");
}

/* What there is to say by now.  Under the lock. */
static void add_news(stream *t)
{
    ebb_served *a = t->a;

    if (!t->has_begun) {
        json_t *o = t->form->piece(t->s, a, true, "", 0, a->n_prompt, a->n_prompt, t->flags);
        if (o && a->q.survives)
            json_object_set_new(o, "ebb", json_pack("{s:I, s:I}", "answer", (json_int_t)a->number, "next",
                                                    (json_int_t)t->next));
        if (o)
            add_event(&t->out, o);
    }
    t->has_begun = true;
    if ((t->flags & SERVE_PROGRESS) && t->form->progress && a->state != SERVED_WAITING &&
        (!t->has_progress || t->progress_done != a->progress_done)) {
        t->has_progress = true;
        t->progress_done = a->progress_done;
        add_event(&t->out, t->form->progress(t->s, a, t->flags));
    }
    add_pieces(t);
    if (t->next < a->n_pieces)
        return;
    if (!t->has_ended)
        add_figures(t);
    if (a->state == SERVED_ENDED && !t->has_ended)
        add_end(t);
}

/* How long a stream may be silent. */
static int quiet_ms(const stream *t)
{
    double due_s = t->figures_s + SERVE_FIGURES_MS / 1e3 - ebb_clock_s();

    if (!(t->flags & SERVE_FIGURES))
        return SERVE_PING_MS;
    return due_s > 0 ? (int)(due_s * 1e3) + 1 : 0;
}

static ssize_t give_out(stream *t, char *out, size_t cap)
{
    size_t n = t->out.len - t->out_at;

    if (t->out.failed)
        return -1;
    n = n < cap ? n : cap;
    memcpy(out, t->out.data + t->out_at, n);
    t->out_at += n;
    if (t->out_at == t->out.len) {
        ebb_buf_clear(&t->out);
        t->out_at = 0;
    }
    return (ssize_t)n;
}

static ssize_t read_answer(void *arg, ebb_http_exchange *x, char *out, size_t cap)
{
    stream *t = arg;
    uint64_t news;

    while (t->out.len == 0) {
        ebb_http_wake wake;

        if (t->has_ended)
            return 0;
        (void)!read(t->reader.fd, &news, sizeof news);   /* before looking: what comes behind it is news again */
        pthread_mutex_lock(&t->s->lock);
        add_news(t);
        pthread_mutex_unlock(&t->s->lock);
        if (t->out.len)
            break;
        wake = ebb_http_wait(x, t->reader.fd, quiet_ms(t));
        if (wake == EBB_HTTP_GONE)
            return -1;
        if (wake == EBB_HTTP_TIME && !(t->flags & SERVE_FIGURES))
            ebb_buf_adds(&t->out, ": ping\n\n");
    }
    return give_out(t, out, cap);
}

static void release_stream(void *arg)
{
    stream *t = arg;

    ebb_serve_leave(t->s, t->a, &t->reader);
    ebb_served_reader_fini(&t->reader);
    ebb_buf_fini(&t->out);
    free(t);
}

static stream *begin_stream(ebb_serve *s, const ebb_serve_form *form, uint32_t flags)
{
    stream *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    *t = (stream){ .s = s, .form = form, .flags = flags };
    if (ebb_served_reader_init(&t->reader))
        return t;
    free(t);
    return NULL;
}

static void drop_stream(stream *t)
{
    ebb_served_reader_fini(&t->reader);
    free(t);
}

/* -- At once --------------------------------------------------------------------------------------------- */

static void wait_for_end(ebb_serve *s, ebb_http_exchange *x, stream *t)
{
    ebb_http_wake wake = EBB_HTTP_READY;
    bool has_ended = false;
    uint64_t news;
    unsigned status = 200;
    json_t *o = NULL;

    while (!has_ended && wake != EBB_HTTP_GONE) {
        (void)!read(t->reader.fd, &news, sizeof news);
        pthread_mutex_lock(&s->lock);
        has_ended = t->a->state == SERVED_ENDED;
        if (has_ended)
            o = t->a->error.code != EBB_OK ? json_error(s, &t->a->error, t->a->n_prompt, &status)
                                           : t->form->whole(s, t->a, t->flags);
        pthread_mutex_unlock(&s->lock);
        if (!has_ended)
            wake = ebb_http_wait(x, t->reader.fd, -1);
    }
    if (has_ended)
        ebb_serve_reply_json(x, status, o);
}

void ebb_serve_answer(ebb_serve *s, ebb_http_exchange *x, ebb_serve_asked *asked)
{
    stream *t = begin_stream(s, asked->form, asked->flags);
    size_t n_prompt = asked->q.n_ids;
    ebb_error err = { 0 };
    ebb_status st;

    asked->q.client = ebb_http_client(x);
    st = t ? ebb_serve_submit(s, &asked->q, &t->reader, &t->a, &err)
           : EBB_FAIL(&err, EBB_NOMEM, "no memory for an answer");
    if (t && st != EBB_OK)
        drop_stream(t);
    ebb_serve_question_fini(&asked->q);
    if (st == EBB_LIMIT) {                       /* the only limit that waiting helps against: answers at once */
        ebb_serve_reply_json(x, 429, json_pack("{s:o}", "error", error_object(&err, 429, "rate_limit_error")));
    } else if (st != EBB_OK) {
        reply_refusal(s, x, &err, n_prompt);
    } else if (asked->streams) {
        ebb_http_stream(x, "text/event-stream", read_answer, release_stream, t);
    } else {
        wait_for_end(s, x, t);
        release_stream(t);
    }
}

void ebb_serve_follow(ebb_serve *s, ebb_http_exchange *x, uint64_t number, size_t from, const ebb_serve_form *form,
                      uint32_t flags)
{
    stream *t = begin_stream(s, form, flags);
    ebb_error err = { 0 };

    if (t && (t->a = ebb_serve_find(s, number, &t->reader)) != NULL) {
        t->next = from;
        ebb_http_stream(x, "text/event-stream", read_answer, release_stream, t);
        return;
    }
    if (!t) {
        EBB_FAIL(&err, EBB_NOMEM, "no memory for an answer");
    } else {
        drop_stream(t);
        EBB_FAIL(&err, EBB_NOTFOUND, "there is no answer %llu any more", (unsigned long long)number);
    }
    ebb_serve_reply_error(s, x, &err);
}
