/* The engine's backend with a tiny model, and what came through its sink. */
#ifndef EBB_TESTS_CHAT_LOCAL_FIXTURE_H
#define EBB_TESTS_CHAT_LOCAL_FIXTURE_H
#include "ebb_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "backend/backend.h"
#include "backend/local_priv.h"
#include "ebb/experimental/cache_salt.h"
#include "open/engine_state.h"
#include "support/tiny_model.h"

static const ebb_cache_salt computed;

enum { MAX = 4096 };

/* What came through the sink. */
typedef struct heard {
    pthread_mutex_t lock;
    pthread_cond_t came;
    bool ready, failed, ended, budget_set, reported;
    bool budget_stays;           /* as it was, by BUDGET_SET */
    uint64_t budget_bytes;
    char notice[512], report[MAX];
    char text[MAX], error[256];
    int32_t ids[MAX];
    size_t n_text, n_ids;
    size_t hold_at;              /* hold passes at this token; 0: at none */
    ebb_finish finish;
    ebb_turn_stats turn_stats;
    ebb_cache_salt cache_salt;
    /* Of the answers beside the first. */
    struct other_answer {
        int32_t ids[512];
        size_t n_ids, n_text;
        char text[2048];
        bool ended;
        ebb_finish finish;
        ebb_turn_stats turn_stats;
        ebb_cache_salt cache_salt;
    } others[EBB_BACKEND_MAX_ANSWERS];
    uint64_t to_compute, prefill_done;
    bool prefill_is_whole;       /* what was to be computed ahead stands */
} heard;

static heard h;
static char path[64];

/* Passes stand before a norm while this is held: what a test does then comes in the middle of an
 * answer, however long it takes. */
typedef struct gate {
    atomic_bool        is_held;
    const ebb_kernels *was;
    ebb_kernels        kern;     /* these, with a norm that waits */
} gate;

static gate passes;

static inline void norm_behind_gate(float *y, const float *x, const float *w, size_t n, float eps)
{
    while (atomic_load(&passes.is_held))
        sched_yield();
    passes.was->rmsnorm(y, x, w, n, eps);
}

static inline void hold_passes(void)
{
    atomic_store(&passes.is_held, true);
}

static inline void let_passes_go(void)
{
    atomic_store(&passes.is_held, false);
}

/* The lock is held. */
static inline void hear_other(const ebb_backend_event *ev)
{
    struct other_answer *o = &h.others[ev->which];

    assert_false(h.ended || o->ended);
    if (ev->kind == EBB_BACKEND_TOKEN)
        o->ids[o->n_ids++] = ev->token;
    memcpy(o->text + o->n_text, ev->n_text ? ev->text : "", ev->n_text);
    o->n_text += ev->n_text;
    o->ended = ev->kind == EBB_BACKEND_END;
    o->finish = ev->finish;
    o->turn_stats = ev->turn_stats;
    o->cache_salt = ev->cache_salt;
}

static inline void sink(void *arg, const ebb_backend_event *ev)
{
    (void)arg;
    pthread_mutex_lock(&h.lock);
    if (ev->which > 0) {
        hear_other(ev);
        pthread_mutex_unlock(&h.lock);
        return;
    }
    h.ready |= ev->kind == EBB_BACKEND_READY;
    h.failed |= ev->kind == EBB_BACKEND_FAILED;
    h.ended |= ev->kind == EBB_BACKEND_END;
    h.budget_set |= ev->kind == EBB_BACKEND_BUDGET_SET;
    if (ev->kind == EBB_BACKEND_BUDGET_SET) {
        h.budget_bytes = ev->total;
        h.budget_stays = ev->finish == EBB_FINISH_ERROR;
    }
    if (ev->kind == EBB_BACKEND_SPECULATIVE_PREFILL) {
        h.cache_salt = ev->cache_salt;
        h.prefill_done = ev->done;
        h.prefill_is_whole = ev->done == ev->total;
    }
    h.reported |= ev->kind == EBB_BACKEND_REPORT;
    if (ev->kind == EBB_BACKEND_NOTICE || ev->kind == EBB_BACKEND_BUDGET_SET)
        snprintf(h.notice + strlen(h.notice), sizeof h.notice - strlen(h.notice), "%.*s\n",
                 (int)ev->n_text, ev->text);
    if (ev->kind == EBB_BACKEND_REPORT)
        snprintf(h.report, sizeof h.report, "%.*s", (int)ev->n_text, ev->text);
    if (ev->kind == EBB_BACKEND_PREFILL && ev->done == 0)
        h.to_compute = ev->total;
    if (ev->kind == EBB_BACKEND_TOKEN) {
        h.ids[h.n_ids++] = ev->token;
        if (h.n_ids == h.hold_at)
            hold_passes();
    }
    if (ev->kind == EBB_BACKEND_END) {
        h.finish = ev->finish;
        h.turn_stats = ev->turn_stats;
        h.cache_salt = ev->cache_salt;
    }
    if (ev->kind == EBB_BACKEND_FAILED || ev->finish == EBB_FINISH_ERROR) {
        snprintf(h.error, sizeof h.error, "%.*s", (int)ev->n_text, ev->text);
    } else if (ev->n_text && (ev->kind == EBB_BACKEND_TOKEN || ev->kind == EBB_BACKEND_END)) {
        memcpy(h.text + h.n_text, ev->text, ev->n_text);
        h.n_text += ev->n_text;
    }
    pthread_cond_broadcast(&h.came);
    pthread_mutex_unlock(&h.lock);
}

static inline void wait_for(const bool *what)
{
    struct timespec until;

    bool is_here;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += EBB_TEST_WAIT_S;
    pthread_mutex_lock(&h.lock);
    while (!*what && pthread_cond_timedwait(&h.came, &h.lock, &until) == 0)
        ;
    is_here = *what;
    pthread_mutex_unlock(&h.lock);
    if (!is_here)
        fail_msg("nothing came");
}

static inline void wait_tokens(size_t n)
{
    pthread_mutex_lock(&h.lock);
    while (h.n_ids < n && !h.ended)
        pthread_cond_wait(&h.came, &h.lock);
    pthread_mutex_unlock(&h.lock);
}

static int setup(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 3 };
    pthread_condattr_t attr;
    int fd;

    (void)state;
    snprintf(path, sizeof path, "/tmp/ebb-local-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    memset(&h, 0, sizeof h);
    pthread_mutex_init(&h.lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h.came, &attr);
    pthread_condattr_destroy(&attr);
    return ebb_tiny_write(&tiny, path) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

/* kv_cache_dir: NULL: nothing is kept on disk. */
static inline ebb_backend *open_tiny_in(uint32_t n_ctx, const char *kv_cache_dir)
{
    const ebb_engine_opts o = { .n_ctx = n_ctx, .n_threads = 1, .no_kv_cache = !kv_cache_dir,
                                .kv_cache_dir = kv_cache_dir };
    ebb_backend *b;
    ebb_error err;

    if (ebb_backend_local(&(ebb_backend_models){ .path = path }, &o, sink, NULL, &b,
                          &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return b;
}

static inline ebb_backend *open_tiny(uint32_t n_ctx)
{
    return open_tiny_in(n_ctx, NULL);
}

static inline ebb_backend *open_ready_in(uint32_t n_ctx, const char *kv_cache_dir)
{
    ebb_backend *b = open_tiny_in(n_ctx, kv_cache_dir);

    wait_for(&h.ready);
    assert_non_null(b->ops->model(b));
    return b;
}

static inline ebb_backend *open_ready(uint32_t n_ctx)
{
    return open_ready_in(n_ctx, NULL);
}

/* The same with the gate. */
static inline ebb_backend *open_gated(uint32_t n_ctx)
{
    ebb_backend *b = open_ready(n_ctx);
    ebb_forward *run = &((ebb_local *)b)->engine->run;
    int32_t id = 1;

    b->ops->common_prefix(b, &id, 1, &computed); /* the worker has nothing else to do */
    passes.was = run->kern;
    passes.kern = *run->kern;
    passes.kern.rmsnorm = norm_behind_gate;
    run->kern = &passes.kern;
    return b;
}

static inline void ask(ebb_backend *b, const int32_t *ids, size_t n, uint32_t n_predict)
{
    const ebb_backend_request r = { .ids = ids, .n_ids = n, .n_predict = n_predict,
                                    .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_error err;

    pthread_mutex_lock(&h.lock);                 /* the worker may tell of its prefill */
    h.ended = false;
    h.n_ids = h.n_text = 0;
    h.error[0] = '\0';
    pthread_mutex_unlock(&h.lock);
    if (b->ops->answer(b, &r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static inline void answer(ebb_backend *b, const int32_t *ids, size_t n, uint32_t n_predict)
{
    ask(b, ids, n, n_predict);
    wait_for(&h.ended);
}

static inline void fill(int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(i * 37 % 256);
}

#endif
