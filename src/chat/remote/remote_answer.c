/* One answer of a remote engine (remote_priv.h). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/event_stream.h"
#include "remote/answer.h"
#include "remote/remote_priv.h"

enum { TRIES = 5, MAX_RETRY_S = 60, MAX_REFUSAL = 65536, AFTER_DONE_MS = 500, PROGRESS_MS = 200,
       RESUMES = 10, FORGET_S = 5,
       MAX_WHOLE = 4 * EBB_ANSWER_BYTES };       /* in one object: with escapes, and a thought under two names */
/* How often text is handed over: a flood must not cost the owner more than a fast model does. */
static const double hand_over_s = 0.01;

/* What comes of one request. */
typedef struct turn {
    ebb_remote      *r;
    ebb_event_stream events;
    ebb_answer       answer;
    ebb_buf          body;               /* that is no stream: a refusal, or a whole answer */
    ebb_status       st;                 /* why the stream was left, in err */
    ebb_error        err;
    double           asked_s, first_s, last_s;   /* on ebb_clock_s; 0: not yet */
    double           handed_s, done_s, progress_s;
    bool             is_resumed;         /* an answer that the server has kept is read on */
    uint32_t         progress_done;
} turn;

static bool is_stream(const turn *t, const ebb_client_reply *reply)
{
    const char *want = ebb_dialect_of(t->r->server.kind)->is_lines ? "application/x-ndjson" : "text/event-stream";

    return reply->status == 200 && (strcmp(reply->type, want) == 0 || reply->type[0] == '\0');
}

/* A server that does not stream answers at once, with one object. */
static bool is_whole(const ebb_client_reply *reply)
{
    return reply->status == 200 && strcmp(reply->type, "application/json") == 0;
}

/* -- What comes -------------------------------------------------------------------------------- */

static void hand_over(turn *t, double now_s)
{
    ebb_remote *r = t->r;
    ebb_buf *text = &t->answer.text;

    if (!text->len)
        return;
    pthread_mutex_lock(&r->lock);
    r->phase = EBB_PHASE_DECODE;
    r->n_generated = t->answer.n_pieces;
    if (t->last_s > t->first_s)
        r->decode_tok_s = (t->answer.n_pieces - 1) / (t->last_s - t->first_s);
    pthread_mutex_unlock(&r->lock);
    ebb_remote_emit(r, &(ebb_backend_event){ .kind = EBB_BACKEND_TOKEN, .token = EBB_TOKEN_NONE, .text = text->data,
                                             .n_text = text->len });
    ebb_buf_clear(text);
    t->handed_s = now_s;
}

static void tell_progress(turn *t, double now_s)
{
    ebb_remote *r = t->r;
    const ebb_answer *a = &t->answer;

    if (a->progress_total == 0 || (a->progress_done == t->progress_done && t->progress_s > 0) ||
        (now_s - t->progress_s < PROGRESS_MS / 1e3 && a->progress_done < a->progress_total))
        return;
    t->progress_s = now_s;
    t->progress_done = a->progress_done;
    pthread_mutex_lock(&r->lock);
    r->prefill_done = a->progress_done;
    r->prefill_total = a->progress_total;
    if (now_s > t->asked_s && a->progress_done)
        r->prefill_tok_s = a->progress_done / (now_s - t->asked_s);
    pthread_mutex_unlock(&r->lock);
    ebb_remote_emit(r, &(ebb_backend_event){ .kind = EBB_BACKEND_PREFILL, .done = a->progress_done,
                                             .total = a->progress_total });
}

static void keep_server_figures(turn *t)
{
    if (!t->answer.has_figures)
        return;
    t->answer.has_figures = false;
    pthread_mutex_lock(&t->r->lock);
    t->r->there = t->answer.figures;
    pthread_mutex_unlock(&t->r->lock);
}

static ebb_status on_event(void *arg, const char *data, size_t n, ebb_error *err)
{
    turn *t = arg;

    return t->events.is_lines ? ebb_answer_add_line(&t->answer, data, n, err)
                              : ebb_answer_add_chunk(&t->answer, data, n, err);
}

static void note_times(turn *t, size_t n_before)
{
    double now_s = ebb_clock_s();

    if (t->answer.n_text > n_before)
        t->last_s = now_s;
    if (t->answer.n_text > n_before && t->first_s <= 0)
        t->first_s = now_s;
    if (t->answer.is_done && t->done_s <= 0)
        t->done_s = now_s;
    tell_progress(t, now_s);
    keep_server_figures(t);
    if (now_s - t->handed_s >= hand_over_s)
        hand_over(t, now_s);
}

static bool on_body(void *arg, const ebb_client_reply *reply, const char *data, size_t n)
{
    turn *t = arg;
    size_t n_before = t->answer.n_text;

    if (!is_stream(t, reply)) {
        t->body.max = is_whole(reply) ? MAX_WHOLE : MAX_REFUSAL;
        return ebb_buf_add(&t->body, data, n);
    }
    t->st = ebb_event_stream_add(&t->events, data, n, on_event, t, &t->err);
    note_times(t, n_before);
    return t->st == EBB_OK;
}

static int ms_until(double then_s, double now_s)
{
    return then_s <= now_s ? 0 : (int)((then_s - now_s) * 1e3) + 1;
}

static int on_tick(void *arg)
{
    turn *t = arg;
    double now_s = ebb_clock_s();

    if (t->answer.text.len && now_s - t->handed_s >= hand_over_s)
        hand_over(t, now_s);
    if (t->answer.text.len)
        return ms_until(t->handed_s + hand_over_s, now_s);
    if (t->done_s > 0)                           /* complete: a stream that stays open is closed */
        return now_s - t->done_s > AFTER_DONE_MS / 1e3 ? EBB_CLIENT_ENOUGH : AFTER_DONE_MS;
    return -1;
}

/* -- One request ----------------------------------------------------------------------------------- */

static ebb_status make_body(const ebb_remote *r, bool no_usage, ebb_buf *out, ebb_error *err)
{
    ebb_ask ask = { .kind = r->server.kind, .model = r->server.model, .messages = r->messages,
                    .n_messages = r->n_messages,
                    .continues = r->continues, .n_predict = r->n_predict, .n_ctx = r->entry.n_ctx,
                    .sampling = r->sampling, .grammar = r->grammar, .chosen = r->chosen, .thinking = r->thinking,
                    .as_alone = r->is_found, .survives = r->link.address.argv[0] != NULL, .no_usage = no_usage };

    return ebb_ask_json(&ask, out, err);
}

/* What the server itself says went wrong. */
static ebb_status server_error(const turn *t, ebb_status st, ebb_error *why, ebb_error *err)
{
    ebb_engine_link_hide_secrets(&t->r->link, why->msg);
    return EBB_FAIL(err, st, "%s: %s", t->r->entry.name, why->msg);
}

static ebb_status take_whole(turn *t, const ebb_client_reply *reply, ebb_error *err)
{
    const char *body = ebb_buf_text(&t->body);
    size_t n_before = t->answer.n_text;
    ebb_error why = { 0 };
    ebb_status st;

    if (!is_whole(reply))
        return ebb_reply_error(&t->r->link, reply, body, t->body.len, err);
    if (reply->is_stopped)
        return EBB_FAIL(err, EBB_LIMIT, "%s: answers with more than %d MiB at once, the most that is accepted",
                        t->r->entry.name, MAX_WHOLE >> 20);
    st = t->events.is_lines ? ebb_answer_add_line(&t->answer, body, t->body.len, &why)
                            : ebb_answer_add_chunk(&t->answer, body, t->body.len, &why);
    note_times(t, n_before);
    if (st != EBB_OK)
        return server_error(t, st, &why, err);
    if (!t->answer.has_message)                  /* some report their errors with status 200 */
        return ebb_reply_error(&t->r->link, reply, body, t->body.len, err);
    return EBB_OK;
}

/* There it has ended, too, and there is nothing to read on. */
static ebb_status stream_error(turn *t, ebb_error *err)
{
    t->answer.number = 0;
    return server_error(t, t->st, &t->err, err);
}

static ebb_status judge_end(turn *t, const ebb_client_reply *reply, ebb_error *err)
{
    const char *name = t->r->entry.name;

    if (t->st != EBB_OK)
        return stream_error(t, err);
    if (!is_stream(t, reply))
        return take_whole(t, reply, err);
    t->st = ebb_event_stream_end(&t->events, on_event, t, &t->err);
    note_times(t, t->answer.n_text);
    if (t->st != EBB_OK)
        return stream_error(t, err);
    if (t->answer.has_finish || t->answer.is_done)
        return EBB_OK;
    return EBB_FAIL(err, EBB_IO, "%s: the stream ended before the answer did", name);
}

/* A connection that breaks behind the last word, or is left then, takes nothing from the answer.  What is kept there
 * can be read to its end; an answer at its limit that is stopped does not go on by itself. */
static bool has_ended(const turn *t, ebb_status st)
{
    const ebb_answer *a = &t->answer;

    return t->st == EBB_OK && (a->is_done || (a->has_finish && !a->number)) &&
           (st == EBB_IO || (st == EBB_CANCELED && a->finish == EBB_FINISH_STOP));
}

/* An answer that is there, but may not be all that was asked for. */
static ebb_status judge_finish(const turn *t, ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st = ebb_answer_check_finish(&t->answer, &why);

    return st == EBB_OK ? st : EBB_FAIL(err, st, "%s: %s", t->r->entry.name, why.msg);
}

static ebb_status send_once(turn *t, bool no_usage, ebb_client_reply *reply, ebb_error *err)
{
    ebb_remote *r = t->r;
    ebb_buf body = { 0 };
    ebb_client_request q = { .path = ebb_dialect_of(r->server.kind)->path, .headers = r->link.headers,
                             .on_body = on_body, .on_tick = on_tick, .arg = t };
    char kept[80];
    ebb_status st;

    *reply = (ebb_client_reply){ 0 };
    ebb_event_stream_fini(&t->events);
    ebb_event_stream_init(&t->events, ebb_dialect_of(r->server.kind)->is_lines, EBB_EVENT_BYTES);
    ebb_buf_clear(&t->body);
    t->asked_s = t->is_resumed ? t->asked_s : ebb_clock_s();
    st = t->is_resumed ? EBB_OK : make_body(r, no_usage, &body, err);
    if (t->is_resumed) {
        snprintf(kept, sizeof kept, "/ebb/v1/answers/%llu?from=%llu", (unsigned long long)t->answer.number,
                 (unsigned long long)t->answer.next);
        q.path = kept;
    } else {
        q.body = ebb_buf_text(&body);
        q.n_body = body.len;
    }
    if (st == EBB_OK)
        st = ebb_client_send(r->link.client, &q, reply, err);
    if (st == EBB_OK || has_ended(t, st))
        st = judge_end(t, reply, err);
    if (st == EBB_OK)
        st = judge_finish(t, err);
    ebb_buf_fini(&body);
    return st;
}

/* What it is asked for beside the answer, perhaps. */
static bool is_option_refused(const ebb_client_reply *reply, ebb_status st)
{
    return (reply->status == 400 || reply->status == 422) && st != EBB_CONTEXT;
}

/* The server has not started to answer: no connection, or a refusal for being busy. */
static bool may_try_again(const turn *t, const ebb_client_reply *reply, ebb_status st)
{
    if (t->answer.n_text || st == EBB_CANCELED)
        return false;
    if (st == EBB_BUSY)
        return reply->retry_after_s <= MAX_RETRY_S;
    return st == EBB_IO && reply->status == 0 && !reply->was_sent;
}

static ebb_status send_until_begun(turn *t, ebb_error *err)
{
    ebb_remote *r = t->r;
    ebb_client_reply reply;
    double wait_s = 1;

    for (int i = 1;; i++) {
        char line[500];
        double s;
        ebb_status st = send_once(t, r->has_no_usage, &reply, err);

        if (!r->has_no_usage && !ebb_dialect_of(r->server.kind)->is_lines && is_option_refused(&reply, st)) {
            ebb_error again = { 0 };
            st = send_once(t, true, &reply, &again);
            r->has_no_usage = st == EBB_OK;
            *err = again;
        }
        if (st == EBB_OK || i == TRIES || !may_try_again(t, &reply, st))
            return st;
        s = reply.retry_after_s ? reply.retry_after_s : wait_s;
        wait_s *= 2;
        snprintf(line, sizeof line, "%s; trying again in %.0f s", err->msg, s);
        ebb_remote_emit_text(r, EBB_BACKEND_NOTICE, line);
        if (!ebb_remote_wait(r, s))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
    }
}

/* -- A line that broke --------------------------------------------------------------------------------- */

/* The server still generates the answer: read on from the first token that is missing here. */
static ebb_status read_on(turn *t, ebb_status st, ebb_error *err)
{
    ebb_remote *r = t->r;
    ebb_client_reply reply;
    double wait_s = 1;

    t->is_resumed = true;
    for (int i = 1; i <= RESUMES && st == EBB_IO && t->answer.number; i++) {
        char line[500];

        snprintf(line, sizeof line, "%s; the answer goes on there, and reading resumes in %.0f s", err->msg, wait_s);
        ebb_remote_emit_text(r, EBB_BACKEND_NOTICE, line);
        hand_over(t, ebb_clock_s());
        if (!ebb_remote_wait(r, wait_s))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
        t->st = EBB_OK;
        st = send_once(t, false, &reply, err);
        wait_s = wait_s < 15 ? wait_s * 2 : wait_s;
    }
    return st;
}

/* Delete a canceled answer: for the server, the closed connection might be a lost one. */
static void forget_answer(ebb_remote *r, uint64_t number)
{
    char path[64];
    ebb_client_request q = { .path = path, .method = "DELETE", .headers = r->link.headers, .limit_s = FORGET_S };
    ebb_client_reply reply;
    ebb_error ignored;

    snprintf(path, sizeof path, "/ebb/v1/answers/%llu", (unsigned long long)number);
    pthread_mutex_lock(&r->lock);
    ebb_client_resume(r->link.client);
    pthread_mutex_unlock(&r->lock);
    if (ebb_client_send(r->link.client, &q, &reply, &ignored) != EBB_OK)
        ebb_log("net", "answer %llu continues at %s: %s", (unsigned long long)number, r->entry.name, ignored.msg);
    pthread_mutex_lock(&r->lock);
    r->is_forgetting = false;
    pthread_mutex_unlock(&r->lock);
}

/* -- The end ------------------------------------------------------------------------------------------ */

static void count_cost(const turn *t, ebb_turn_stats *c)
{
    const ebb_answer *a = &t->answer;

    c->n_generated = a->has_usage ? a->n_generated : a->n_pieces;
    c->n_prompt = c->n_computed = a->has_usage ? a->n_prompt : 0;
    c->about = (a->has_usage ? 0 : EBB_ABOUT_PROMPT | EBB_ABOUT_GENERATED) | (a->has_cached ? 0 : EBB_ABOUT_REUSED);
    if (a->has_cached) {
        c->n_reused = a->n_cached;
        c->n_reused_disk = a->n_reused_disk;
        c->n_computed = a->n_prompt - a->n_cached;
    }
    c->first_s = t->first_s > 0 ? t->first_s - t->asked_s : 0;
    c->prefill_s = a->prefill_s;
    c->decode_s = a->decode_s > 0 ? a->decode_s : t->last_s > t->first_s ? t->last_s - t->first_s : 0;
}

static void keep_figures(const turn *t, const ebb_turn_stats *c)
{
    ebb_remote *r = t->r;

    pthread_mutex_lock(&r->lock);
    r->is_answering = false;
    r->phase = EBB_PHASE_IDLE;
    r->connected_s = ebb_client_connected_s(r->link.client);
    if (c->first_s > 0)
        r->first_s = c->first_s;
    if (!(c->about & EBB_ABOUT_PROMPT)) {
        r->has_cached = t->answer.has_cached;
        r->cached_tok = c->n_reused;
        r->new_tok = c->n_computed;
    }
    r->n_generated = c->n_generated;
    if (c->decode_s > 0)
        r->decode_tok_s = c->n_generated / c->decode_s;
    if (c->prefill_s > 0)
        r->prefill_tok_s = c->n_computed / c->prefill_s;
    pthread_mutex_unlock(&r->lock);
}

/* Ollama reports the context of a model only after loading it: probe again. */
static void learn_context(ebb_remote *r)
{
    ebb_server now;
    bool may_retry;

    if (r->server.n_ctx || r->server.kind != EBB_SERVER_OLLAMA ||
        ebb_server_probe(&r->link, &now, &may_retry, NULL) != EBB_OK)
        return;
    pthread_mutex_lock(&r->lock);
    r->server.n_ctx = r->n_ctx = now.n_ctx;
    pthread_mutex_unlock(&r->lock);
    ebb_server_fini(&now);
}

static void tell_end(turn *t, ebb_status st, const ebb_error *err)
{
    ebb_backend_event ev = { .kind = EBB_BACKEND_END, .finish = t->answer.has_finish ? t->answer.finish
                                                                                     : EBB_FINISH_STOP };
    char line[600];

    count_cost(t, &ev.turn_stats);
    if (st == EBB_OK && t->answer.why[0]) {
        ebb_engine_link_hide_secrets(&t->r->link, t->answer.why);
        snprintf(line, sizeof line, "%s has ended the answer: %s", t->r->entry.name, t->answer.why);
        ebb_remote_emit_text(t->r, EBB_BACKEND_NOTICE, line);
    }
    if (st == EBB_CANCELED) {
        ev.finish = EBB_FINISH_CANCELED;
    } else if (st != EBB_OK) {
        ev.finish = EBB_FINISH_ERROR;
        ev.text = err->msg;
        ev.n_text = strlen(err->msg);
        ev.total = st == EBB_CONTEXT ? ebb_answer_error_tokens(ebb_buf_text(&t->body), t->body.len) : 0;
    }
    keep_figures(t, &ev.turn_stats);
    pthread_mutex_lock(&t->r->lock);
    t->r->is_forgetting = st == EBB_CANCELED && t->answer.number;       /* before the owner hears, who may close then */
    pthread_mutex_unlock(&t->r->lock);
    ebb_remote_emit(t->r, &ev);
}

void ebb_remote_answer(ebb_remote *r)
{
    turn t = { .r = r };
    ebb_error err = { 0 };
    ebb_status st;

    t.answer.in = r->continues ? EBB_IN_BODY : EBB_IN_NOTHING;
    st = send_until_begun(&t, &err);
    st = read_on(&t, st, &err);
    ebb_answer_end(&t.answer);
    hand_over(&t, ebb_clock_s());
    if (st == EBB_OK)
        learn_context(r);
    tell_end(&t, st, &err);
    if (st == EBB_CANCELED && t.answer.number)
        forget_answer(r, t.answer.number);
    ebb_event_stream_fini(&t.events);
    ebb_answer_fini(&t.answer);
    ebb_buf_fini(&t.body);
}
