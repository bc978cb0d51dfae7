/* The engine in this process as a backend (backend.h): one worker thread owns
 * model, engine and session, waits for a command, and sleeps otherwise. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/local_priv.h"
#include "base/log.h"
#include "ebb/experimental/cache_salt.h"
#include "ebb/experimental/kv_cache.h"
#include "os/thread.h"

/* -- The worker -------------------------------------------------------------------- */

static void local_destroy(ebb_local *l)
{
    ebb_detok_free(l->detok);
    ebb_session_free(l->session);
    ebb_engine_close(l->engine);
    ebb_model_close(l->model);
    ebb_model_close(l->draft);
    pthread_cond_destroy(&l->wake);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    free((char *)l->opts.kv_cache_dir);
    free(l->ids);
    ebb_local_copy_gap(&l->gap, NULL);
    ebb_local_copy_gap(&l->prefill_gap, NULL);
    ebb_local_copy_gap(&l->moved_gap, NULL);
    free(l->moved_ids);
    free(l->prefill_ids);
    free(l->running_ids);
    free(l->reference_ids);
    free(l->keep_ids);
    free(l->grammar);
    free(l->path);
    free(l->draft_path);
    free(l);
}

/* Reload an evicted layer; true: call again later, more could be reloaded.  Reads one layer at
 * most, without the lock: a command from the UI's thread must not wait for the disk. */
static bool reload_when_idle(ebb_local *l)
{
    bool more;

    if (!l->engine)
        return false;
    pthread_mutex_unlock(&l->lock);
    more = ebb_engine_idle(l->engine);
    pthread_mutex_lock(&l->lock);
    return more;
}

static void wait_a_second(ebb_local *l)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&l->wake, &l->lock, &until);
}

/* LOCAL_COMMON_PREFIX goes first: a thread waits for it.  Memory commands go before the next
 * answer. */
static ebb_local_command next_command(const ebb_local *l)
{
    if (l->command != LOCAL_COMMON_PREFIX && l->has_budget)
        return LOCAL_BUDGET;
    if (l->command != LOCAL_COMMON_PREFIX && l->wants_plan)
        return LOCAL_PLAN;
    if (l->command == LOCAL_IDLE && l->keep_ids) /* before another sequence takes the place of this one */
        return LOCAL_KEEP;
    if (l->command == LOCAL_IDLE && l->has_reference)
        return LOCAL_REFERENCE;
    return l->command == LOCAL_IDLE && l->prefill_ids ? LOCAL_PREFILL : l->command;
}

static ebb_local_command take_command(ebb_local *l)
{
    ebb_local_command c = next_command(l);

    if (c == LOCAL_BUDGET) {
        l->has_budget = false;
        l->is_setting_budget = true;
    } else if (c == LOCAL_PLAN) {
        l->wants_plan = false;
    } else if (c != LOCAL_PREFILL && c != LOCAL_REFERENCE && c != LOCAL_KEEP) {
        l->command = LOCAL_IDLE;
    }
    return c;
}

/* The next command; false: leave. */
static bool wait_command(ebb_local *l, ebb_local_command *c)
{
    bool quit;

    pthread_mutex_lock(&l->lock);
    while (!l->quit && next_command(l) == LOCAL_IDLE) {
        bool more = reload_when_idle(l);
        if (l->quit || next_command(l) != LOCAL_IDLE)
            break;
        if (more)
            wait_a_second(l);
        else
            pthread_cond_wait(&l->wake, &l->lock);
    }
    if (l->quit) {
        l->has_budget = l->wants_plan = l->has_reference = false;
        free(l->prefill_ids);
        l->prefill_ids = NULL;
    }
    *c = take_command(l);
    quit = l->quit && *c == LOCAL_IDLE;
    pthread_mutex_unlock(&l->lock);
    return !quit;
}

static void answer_common_prefix(ebb_local *l)
{
    size_t n;

    ebb_session_set_cache_salt(l->session, l->common_salt);
    n = ebb_session_common_prefix(l->session, l->common_ids, l->n_common_ids);

    pthread_mutex_lock(&l->lock);
    l->n_common = n;
    l->common_ids = NULL;
    pthread_cond_signal(&l->done);
    pthread_mutex_unlock(&l->lock);
}

/* The copy that the engine makes is the one that stays. */
static void set_reference(ebb_local *l)
{
    ebb_error err = { 0 };
    int32_t *ids;
    size_t n;

    pthread_mutex_lock(&l->lock);
    ids = l->reference_ids;
    n = l->n_reference_ids;
    l->reference_ids = NULL;
    l->has_reference = false;
    pthread_mutex_unlock(&l->lock);
    if (ebb_engine_set_reference_text(l->engine, ids, n, &err) != EBB_OK)
        ebb_log("draft", "%s", err.msg);         /* it would save time, no more */
    free(ids);
}

/* The session may hold another sequence: one that was deleted, too. */
static void keep_sequence(ebb_local *l)
{
    const int32_t *held;
    int32_t *ids;
    size_t n, n_held;

    pthread_mutex_lock(&l->lock);
    ids = l->keep_ids;
    n = l->n_keep_ids;
    l->keep_ids = NULL;
    pthread_mutex_unlock(&l->lock);
    held = ebb_session_ids(l->session, &n_held);
    if (n_held <= n && memcmp(held, ids, n_held * sizeof *ids) == 0)
        ebb_session_persist_kept(l->session);
    free(ids);
}

static void *local_worker(void *arg)
{
    ebb_local *l = arg;
    ebb_local_command c;
    bool is_orphan;

    ebb_local_load(l);
    while (wait_command(l, &c)) {
        if (c == LOCAL_ANSWER)
            ebb_local_answer(l);
        else if (c == LOCAL_COMMON_PREFIX)
            answer_common_prefix(l);
        else if (c == LOCAL_BUDGET)
            ebb_local_budget(l);
        else if (c == LOCAL_PLAN)
            ebb_local_plan(l);
        else if (c == LOCAL_REFERENCE)
            set_reference(l);
        else if (c == LOCAL_KEEP)
            keep_sequence(l);
        else
            ebb_local_speculative_prefill(l);
    }
    pthread_mutex_lock(&l->lock);
    is_orphan = l->is_orphan;
    pthread_mutex_unlock(&l->lock);
    if (is_orphan)
        local_destroy(l);
    return NULL;
}

/* -- Calls from the owner ------------------------------------------------------------ */

static void local_cancel(ebb_backend *b)
{
    ebb_local *l = (ebb_local *)b;

    pthread_mutex_lock(&l->lock);
    if (l->is_answering)
        atomic_store(&l->stop, true);
    if (l->is_answering || l->is_setting_budget || l->is_prefilling)
        ebb_engine_cancel(l->engine);
    pthread_mutex_unlock(&l->lock);
}

/* Loading cannot be interrupted and may take a minute: then the worker is left
 * to itself, so that leaving the program is immediate. */
static void local_close(ebb_backend *b)
{
    ebb_local *l = (ebb_local *)b;
    pthread_t thread = l->thread;
    bool is_orphan;

    local_cancel(b);
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    is_orphan = l->is_orphan = l->is_loading;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (is_orphan) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    local_destroy(l);
}

static ebb_status take_request(ebb_local *l, const ebb_backend_request *r, ebb_error *err)
{
    if (l->is_loading || !l->session)
        return EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    if (l->is_answering)
        return EBB_FAIL(err, EBB_BUSY, "an answer is under way: stop it first");
    if (r->n_ids == 0)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to answer");
    free(l->grammar);
    l->grammar = r->grammar ? strdup(r->grammar) : NULL;
    if (r->grammar && !l->grammar)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    l->n_answer = r->n_answer;
    l->n_ids = 0;
    for (size_t i = 0; i < r->n_ids; i++)
        if (!ebb_local_append_id(l, r->ids[i]))
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the prompt");
    ebb_local_copy_gap(&l->gap, &r->gap);
    l->cache_salt = r->cache_salt;
    l->n_suffix = r->n_suffix;
    l->n_predict = r->n_predict;
    l->n_answers = r->n_answers < EBB_BACKEND_MAX_ANSWERS ? r->n_answers : EBB_BACKEND_MAX_ANSWERS;
    l->sampling = r->sampling;
    atomic_store(&l->stop, false);
    ebb_engine_cancel_clear(l->engine);
    ebb_local_stop_prefill(l, l->ids, l->n_ids);
    l->is_answering = true;
    l->command = LOCAL_ANSWER;
    pthread_cond_signal(&l->wake);
    return EBB_OK;
}

static ebb_status local_answer(ebb_backend *b, const ebb_backend_request *r, ebb_error *err)
{
    ebb_local *l = (ebb_local *)b;
    ebb_status st;

    pthread_mutex_lock(&l->lock);
    st = take_request(l, r, err);
    pthread_mutex_unlock(&l->lock);
    return st;
}

static const ebb_model *local_model(const ebb_backend *b)
{
    ebb_local *l = (ebb_local *)b;
    const ebb_model *m;

    pthread_mutex_lock(&l->lock);
    m = l->is_loading || !l->session ? NULL : l->model;
    pthread_mutex_unlock(&l->lock);
    return m;
}

static uint32_t local_n_ctx(const ebb_backend *b)
{
    ebb_local *l = (ebb_local *)b;
    uint32_t n;

    pthread_mutex_lock(&l->lock);
    n = l->engine ? ebb_engine_n_ctx(l->engine) : 0;
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* The session belongs to the worker: it is asked while the worker is
 * idle, else the ids of the current turn are compared. */
static size_t local_common(ebb_backend *b, const int32_t *ids, size_t n, const ebb_cache_salt *cache_salt)
{
    ebb_local *l = (ebb_local *)b;
    size_t same = 0;

    if (n == 0)                                  /* ids may be NULL: a question that nobody would wait for */
        return 0;
    pthread_mutex_lock(&l->lock);
    if (l->is_answering || l->is_setting_budget) {
        while (same < n && same < l->n_ids && ids[same] == l->ids[same])
            same++;
    } else if (l->is_prefilling) {
        while (same < n && same < l->running_done && ids[same] == l->running_ids[same])
            same++;
    } else if (!l->is_loading && l->session) {
        l->common_ids = ids;
        l->common_salt = cache_salt;
        l->n_common_ids = n;
        l->command = LOCAL_COMMON_PREFIX;
        pthread_cond_signal(&l->wake);
        while (l->common_ids)
            pthread_cond_wait(&l->done, &l->lock);
        same = l->n_common;
    }
    pthread_mutex_unlock(&l->lock);
    return same;
}

static void local_stats(ebb_backend *b, ebb_stats *out)
{
    ebb_local *l = (ebb_local *)b;

    *out = (ebb_stats){ 0 };
    pthread_mutex_lock(&l->lock);
    if (l->engine)
        ebb_engine_stats(l->engine, out);
    pthread_mutex_unlock(&l->lock);
}

static ebb_status request_memory_command(ebb_backend *b, bool is_plan, uint64_t bytes, ebb_error *err)
{
    ebb_local *l = (ebb_local *)b;
    ebb_status st = EBB_OK;

    pthread_mutex_lock(&l->lock);
    if (l->is_loading || !l->session) {
        st = EBB_FAIL(err, EBB_BUSY, "the model is not loaded yet");
    } else if (is_plan) {
        l->wants_plan = true;
    } else {
        l->has_budget = true;
        l->budget_bytes = bytes;
    }
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    return st;
}

static void local_set_reference_text(ebb_backend *b, int32_t *ids, size_t n)
{
    ebb_local *l = (ebb_local *)b;

    pthread_mutex_lock(&l->lock);
    free(l->reference_ids);
    l->reference_ids = ids;
    l->n_reference_ids = n;
    l->has_reference = l->session != NULL;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

static void local_keep(ebb_backend *b, const int32_t *ids, size_t n)
{
    ebb_local *l = (ebb_local *)b;
    int32_t *copy = malloc((n + 1) * sizeof *copy);

    if (copy && n > 0)
        memcpy(copy, ids, n * sizeof *copy);
    pthread_mutex_lock(&l->lock);
    if (l->session) {
        free(l->keep_ids);
        l->keep_ids = copy;
        l->n_keep_ids = n;
        copy = NULL;
    }
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    free(copy);
}

static ebb_status local_set_budget(ebb_backend *b, uint64_t bytes, ebb_error *err)
{
    return request_memory_command(b, false, bytes, err);
}

static ebb_status local_plan(ebb_backend *b, ebb_error *err)
{
    return request_memory_command(b, true, 0, err);
}

static const ebb_backend_ops local_ops = {
    .close = local_close,
    .answer = local_answer,
    .cancel = local_cancel,
    .model = local_model,
    .n_ctx = local_n_ctx,
    .common_prefix = local_common,
    .stats = local_stats,
    .speculative_prefill = ebb_local_set_speculative_prefill,
    .set_reference_text = local_set_reference_text,
    .keep = local_keep,
    .set_budget = local_set_budget,
    .plan = local_plan,
};

ebb_status ebb_backend_local(const ebb_backend_models *models, const ebb_engine_opts *opts,
                             ebb_backend_sink *sink, void *arg, ebb_backend **out, ebb_error *err)
{
    ebb_local *l = calloc(1, sizeof *l);
    pthread_condattr_t attr;

    *out = NULL;
    if (!l)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the engine");
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);   /* wait_a_second; the other clock may be set back */
    pthread_cond_init(&l->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_cond_init(&l->done, NULL);
    l->base.ops = &local_ops;
    l->sink = sink;
    l->arg = arg;
    l->is_loading = true;
    l->prefilled_from = SIZE_MAX;
    l->opts = opts ? *opts : (ebb_engine_opts){ 0 };
    l->path = models->path ? strdup(models->path) : NULL;
    l->draft_path = models->draft ? strdup(models->draft) : NULL;
    l->draft_is_optional = models->draft_is_optional;
    l->opts.kv_cache_dir = l->opts.kv_cache_dir ? strdup(l->opts.kv_cache_dir) : NULL;
    if ((models->path && !l->path) || (models->draft && !l->draft_path) ||
        (opts && opts->kv_cache_dir && !l->opts.kv_cache_dir) ||
        ebb_thread_start(&l->thread, local_worker, l) != 0) {
        local_destroy(l);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the engine's thread");
    }
    *out = &l->base;
    return EBB_OK;
}
