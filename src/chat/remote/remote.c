/* A remote engine as a backend (backend.h): one worker thread has the connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "os/thread.h"
#include "remote/remote_priv.h"

/* Tries of a server that cannot be reached; how long one may load its model; limits for closing and
 * for deleting an answer. */
enum { TRIES = 4, BUSY_S = 900, CLOSE_MS = 300, FORGET_MS = 1500 };
/* Between two tries: at first; of a server that loads, anywhere and at this process's own command. */
static const double first_wait_s = 0.5, busy_wait_s = 2, own_busy_wait_s = 0.1;

/* -- To the owner ------------------------------------------------------------------------------ */

void ebb_remote_emit(ebb_remote *r, const ebb_backend_event *ev)
{
    pthread_mutex_lock(&r->lock);
    if (!r->is_orphan)
        r->sink(r->arg, ev);
    pthread_mutex_unlock(&r->lock);
}

void ebb_remote_emit_text(ebb_remote *r, ebb_backend_event_kind kind, const char *text)
{
    ebb_remote_emit(r, &(ebb_backend_event){ .kind = kind, .text = text, .n_text = strlen(text) });
}

/* -- The worker ---------------------------------------------------------------------------------- */

static void free_messages(ebb_remote *r)
{
    for (size_t i = 0; i < r->n_messages; i++)
        free(r->messages[i].text);
    free(r->messages);
    r->messages = NULL;
    r->n_messages = 0;
}

static void remote_destroy(ebb_remote *r)
{
    ebb_engine_link_fini(&r->link);
    ebb_server_fini(&r->server);
    ebb_engine_entry_fini(&r->entry);
    free_messages(r);
    free(r->grammar);
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->done);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static struct timespec from_now(double s)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)s;
    t.tv_nsec += (long)((s - (double)(time_t)s) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

bool ebb_remote_wait(ebb_remote *r, double s)
{
    struct timespec until = from_now(s);
    bool goes_on;

    pthread_mutex_lock(&r->lock);
    while (!r->is_stopped && !r->quit && pthread_cond_timedwait(&r->wake, &r->lock, &until) == 0)
        ;
    goes_on = !r->is_stopped && !r->quit;
    pthread_mutex_unlock(&r->lock);
    return goes_on;
}

/* The file name of a path that ends in .gguf, else the model's name unchanged. */
static const char *short_name(const char *model)
{
    size_t n = strlen(model);
    const char *slash = strrchr(model, '/');

    return slash && n > 5 && strcmp(model + n - 5, ".gguf") == 0 ? slash + 1 : model;
}

static void make_facts(ebb_remote *r)
{
    const ebb_dialect *d = ebb_dialect_of(r->server.kind);
    ebb_backend_facts *f = &r->facts;
    char ctx[32] = "context not reported";

    snprintf(r->name, sizeof r->name, "%s", r->server.model[0] ? short_name(r->server.model) : r->entry.name);
    snprintf(r->path, sizeof r->path, "engine %s/%.150s", r->entry.name, r->server.model);
    snprintf(f->name, sizeof f->name, "%s", r->entry.name);
    snprintf(f->kind, sizeof f->kind, "%s", d->name);
    snprintf(f->where, sizeof f->where, "%s", r->link.address.host);
    f->info = (ebb_model_info){ .path = r->path, .name = r->name, .arch = d->name, .quantization = "",
                                .n_ctx_train = r->server.n_ctx };
    ebb_hash128(r->path, strlen(r->path), NULL, f->info.fingerprint);
    f->can_continue = d->can_continue;
    f->continues_form = d->continues_form;
    f->takes_grammar = d->has_grammar;
    f->takes_thinking = d->has_thinking;
    f->sampling = d->sampling;
    f->is_private = r->link.address.is_private;
    f->server = &r->server;
    if (r->server.n_ctx)
        snprintf(ctx, sizeof ctx, "context %u tokens", r->server.n_ctx);
    if (r->link.address.is_shared) {
        snprintf(f->notice, sizeof f->notice, "%.80s is in memory once, for all terminals that talk with it (ebb "
                 "serve), %s; /engine here loads it for this one alone", r->name, ctx);
        return;
    }
    snprintf(f->notice, sizeof f->notice, "%.32s answers: %.22s%s%.24s at %.40s, %.40s, %s%s", r->entry.name, d->name,
             r->server.version[0] ? " " : "", r->server.version, r->link.address.host, r->name, ctx,
             f->is_private ? "" : "; what is said can be read on the way (http)");
}

static ebb_status open_link(ebb_remote *r, ebb_error *err)
{
    ebb_status st = ebb_engine_link_init(&r->link, &r->entry, err);

    pthread_mutex_lock(&r->lock);
    r->has_client = st == EBB_OK;
    if (r->has_client && (r->is_stopped || r->quit))
        ebb_client_stop(r->link.client);
    pthread_mutex_unlock(&r->lock);
    return st == EBB_OK ? ebb_engine_link_unlock(&r->link, err) : st;
}

/* Probe the server until it has answered, or the tries are used up. */
static ebb_status find_server(ebb_remote *r, ebb_error *err)
{
    bool may_retry = true, was_reported = false;
    ebb_status st = open_link(r, err);
    bool is_shared = r->link.address.is_shared;  /* that its model is loaded was said */
    double wait_s = first_wait_s, begun_s = ebb_clock_s();

    for (int i = 0; st == EBB_OK;) {
        st = ebb_server_probe(&r->link, &r->server, &may_retry, err);
        if (st == EBB_OK || !may_retry || (st == EBB_BUSY ? ebb_clock_s() - begun_s > BUSY_S : ++i >= TRIES))
            return st;
        if (!was_reported && !(st == EBB_BUSY && is_shared))
            ebb_remote_emit_text(r, EBB_BACKEND_NOTICE, err->msg);
        was_reported = true;
        if (!ebb_remote_wait(r, st != EBB_BUSY ? wait_s : is_shared ? own_busy_wait_s : busy_wait_s))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
        wait_s *= 2;
        st = EBB_OK;
    }
    return st;
}

static void remote_connect(ebb_remote *r)
{
    ebb_error err = { 0 };
    ebb_status st;

    ebb_remote_emit(r, &(ebb_backend_event){ .kind = EBB_BACKEND_LOADING });
    st = find_server(r, &err);
    if (st == EBB_OK)
        make_facts(r);
    pthread_mutex_lock(&r->lock);
    r->is_ready = st == EBB_OK;
    r->has_failed = st != EBB_OK;
    r->phase = EBB_PHASE_IDLE;
    r->n_ctx = r->server.n_ctx;
    r->there = r->server.figures;
    r->connected_s = st == EBB_OK ? ebb_client_connected_s(r->link.client) : 0;
    pthread_mutex_unlock(&r->lock);
    if (st == EBB_OK)
        ebb_remote_emit(r, &(ebb_backend_event){ .kind = EBB_BACKEND_READY });
    else
        ebb_remote_emit_text(r, EBB_BACKEND_FAILED, err.msg);
}

/* false: leave. */
static bool wait_for_work(ebb_remote *r)
{
    bool has_work;

    pthread_mutex_lock(&r->lock);
    while (!r->quit && !r->has_work)
        pthread_cond_wait(&r->wake, &r->lock);
    has_work = r->has_work;
    r->has_work = false;
    pthread_mutex_unlock(&r->lock);
    return has_work;
}

static void *remote_worker(void *arg)
{
    ebb_remote *r = arg;
    bool is_orphan;

    remote_connect(r);
    while (wait_for_work(r))
        ebb_remote_answer(r);
    pthread_mutex_lock(&r->lock);
    r->is_gone = true;
    is_orphan = r->is_orphan;
    pthread_cond_signal(&r->done);
    pthread_mutex_unlock(&r->lock);
    if (is_orphan)
        remote_destroy(r);
    return NULL;
}

/* -- Calls from the owner --------------------------------------------------------------------------- */

static void stop_locked(ebb_remote *r)
{
    r->is_stopped = true;
    if (r->has_client)
        ebb_client_stop(r->link.client);
    pthread_cond_signal(&r->wake);
}

static void remote_cancel(ebb_backend *b)
{
    ebb_remote *r = (ebb_remote *)b;

    pthread_mutex_lock(&r->lock);
    if (r->is_answering)
        stop_locked(r);
    pthread_mutex_unlock(&r->lock);
}

/* What cannot be interrupted (a name is looked up, a command ends) is left to itself. */
static void remote_close(ebb_backend *b)
{
    ebb_remote *r = (ebb_remote *)b;
    struct timespec until;
    pthread_t thread = r->thread;
    bool is_orphan;

    pthread_mutex_lock(&r->lock);
    r->quit = true;
    until = from_now((r->is_forgetting ? FORGET_MS : CLOSE_MS) / 1e3);
    if (r->is_forgetting)
        pthread_cond_signal(&r->wake);
    else
        stop_locked(r);
    while (!r->is_gone && pthread_cond_timedwait(&r->done, &r->lock, &until) == 0)
        ;
    is_orphan = r->is_orphan = !r->is_gone;
    pthread_mutex_unlock(&r->lock);
    if (is_orphan) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    remote_destroy(r);
}

static bool copy_messages(ebb_remote *r, const ebb_backend_request *q)
{
    free_messages(r);
    r->messages = calloc(q->n_messages + 1, sizeof *r->messages);
    for (size_t i = 0; r->messages && i < q->n_messages; i++, r->n_messages++) {
        if (!ebb_prompt_message_init(&r->messages[i], q->messages[i].role, q->messages[i].text, q->messages[i].n_text))
            return false;
        r->messages[i].thought = q->messages[i].thought;
    }
    return r->messages != NULL;
}

static ebb_status take_request(ebb_remote *r, const ebb_backend_request *q, ebb_error *err)
{
    if (!r->is_ready)
        return EBB_FAIL(err, EBB_BUSY, "%s is not connected yet", r->entry.name);
    if (r->is_answering)
        return EBB_FAIL(err, EBB_BUSY, "an answer is under way: stop it first");
    if (q->n_messages == 0)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to answer");
    if (q->grammar && !ebb_dialect_of(r->server.kind)->has_grammar)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "%s (%s) takes no grammar; answer in this process: -e here",
                        r->entry.name, ebb_dialect_of(r->server.kind)->name);
    free(r->grammar);
    r->grammar = q->grammar ? strdup(q->grammar) : NULL;
    if (q->grammar && !r->grammar)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the request");
    if (!copy_messages(r, q))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the request");
    r->continues = q->continues;
    r->n_predict = q->n_predict;
    r->sampling = q->sampling;
    r->chosen = q->chosen;
    r->thinking = q->thinking;
    r->is_stopped = false;
    ebb_client_resume(r->link.client);
    r->is_answering = r->has_work = true;
    r->phase = EBB_PHASE_PREFILL;
    r->prefill_done = r->prefill_total = r->n_generated = 0;
    r->prefill_tok_s = r->decode_tok_s = 0;
    r->asked_s = ebb_clock_s();
    pthread_cond_signal(&r->wake);
    return EBB_OK;
}

static ebb_status remote_ask(ebb_backend *b, const ebb_backend_request *q, ebb_error *err)
{
    ebb_remote *r = (ebb_remote *)b;
    ebb_status st;

    pthread_mutex_lock(&r->lock);
    st = take_request(r, q, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

static const ebb_model *remote_model(const ebb_backend *b)
{
    (void)b;
    return NULL;
}

static const ebb_backend_facts *remote_facts(const ebb_backend *b)
{
    ebb_remote *r = (ebb_remote *)b;
    bool is_ready;

    pthread_mutex_lock(&r->lock);
    is_ready = r->is_ready;
    pthread_mutex_unlock(&r->lock);
    return is_ready ? &r->facts : NULL;
}

static uint32_t remote_n_ctx(const ebb_backend *b)
{
    ebb_remote *r = (ebb_remote *)b;
    uint32_t n;

    pthread_mutex_lock(&r->lock);
    n = r->n_ctx;
    pthread_mutex_unlock(&r->lock);
    return n;
}

static void remote_stats(ebb_backend *b, ebb_stats *out)
{
    ebb_remote *r = (ebb_remote *)b;

    *out = (ebb_stats){ 0 };
    pthread_mutex_lock(&r->lock);
    out->phase = r->phase;
    out->n_ctx = r->n_ctx;
    out->prefill_done = r->prefill_done;
    out->prefill_total = r->prefill_total;
    out->prefill_tok_s = r->prefill_tok_s;
    out->decode_tok_s = r->decode_tok_s;
    out->generated_tok = r->n_generated;
    out->reused_tok = r->cached_tok;
    out->computed_tok = r->new_tok;
    pthread_mutex_unlock(&r->lock);
}

static void remote_figures(ebb_backend *b, ebb_remote_figures *out)
{
    ebb_remote *r = (ebb_remote *)b;

    *out = (ebb_remote_figures){ .waits_s = -1 };
    pthread_mutex_lock(&r->lock);
    snprintf(out->name, sizeof out->name, "%s", r->entry.name);
    if (r->is_ready) {
        snprintf(out->kind, sizeof out->kind, "%s", r->facts.kind);
        snprintf(out->where, sizeof out->where, "%s", r->facts.where);
        if (r->connected_s > 0)
            out->connected_ms = ebb_clock_unix_ms() - (int64_t)((ebb_clock_s() - r->connected_s) * 1e3);
    }
    if (r->is_answering && r->phase == EBB_PHASE_PREFILL)
        out->waits_s = ebb_clock_s() - r->asked_s;
    out->first_s = r->first_s;
    out->has_cached = r->has_cached;
    out->cached_tok = r->cached_tok;
    out->new_tok = r->new_tok;
    out->server = r->there;
    pthread_mutex_unlock(&r->lock);
}

static const ebb_backend_ops remote_ops = {
    .close = remote_close,
    .answer = remote_ask,
    .cancel = remote_cancel,
    .model = remote_model,
    .facts = remote_facts,
    .figures = remote_figures,
    .n_ctx = remote_n_ctx,
    .stats = remote_stats,
};

static ebb_status make_entry(ebb_remote *r, const ebb_backend_models *models, uint32_t n_ctx, ebb_error *err)
{
    ebb_status st = ebb_engines_find(models->engine, &r->entry, err);

    r->is_found = models->engine_is_found;
    if (st != EBB_OK || !models->path) {
        r->entry.n_ctx = n_ctx ? n_ctx : r->entry.n_ctx;
        return st;
    }
    free(r->entry.model);
    r->entry.model = strdup(models->path);
    r->entry.n_ctx = n_ctx ? n_ctx : r->entry.n_ctx;
    return r->entry.model ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
}

ebb_status ebb_backend_remote(const ebb_backend_models *models, uint32_t n_ctx, ebb_backend_sink *sink, void *arg,
                              ebb_backend **out, ebb_error *err)
{
    ebb_remote *r = calloc(1, sizeof *r);
    pthread_condattr_t attr;
    ebb_status st;

    *out = NULL;
    if (!r)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &attr);
    pthread_cond_init(&r->done, &attr);
    pthread_condattr_destroy(&attr);
    r->base.ops = &remote_ops;
    r->sink = sink;
    r->arg = arg;
    st = make_entry(r, models, n_ctx, err);
    if (st == EBB_OK && ebb_thread_start(&r->thread, remote_worker, r) != 0)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the engine's thread");
    if (st != EBB_OK) {
        remote_destroy(r);
        return st;
    }
    *out = &r->base;
    return EBB_OK;
}
