/* The engine behind the backend's door: loading, answers, cancel, limits. */
#include "ebb_test.h"

#include <pthread.h>
#include <time.h>

#include "backend.h"
#include "support/tiny_model.h"

static const ebb_shift computed;

enum { MAX = 4096 };

/* What came through the sink. */
typedef struct heard {
    pthread_mutex_t lock;
    pthread_cond_t came;
    bool ready, failed, ended, placed, reported;
    char notice[512], report[MAX];
    char text[MAX], error[256];
    int32_t ids[MAX];
    size_t n_text, n_ids;
    ebb_finish finish;
    ebb_turn_cost cost;
    uint64_t to_compute;
} heard;

static heard h;
static char path[64];

static void sink(void *arg, const ebb_backend_event *ev)
{
    (void)arg;
    pthread_mutex_lock(&h.lock);
    h.ready |= ev->kind == EBB_BACKEND_READY;
    h.failed |= ev->kind == EBB_BACKEND_FAILED;
    h.ended |= ev->kind == EBB_BACKEND_END;
    h.placed |= ev->kind == EBB_BACKEND_PLACED;
    h.reported |= ev->kind == EBB_BACKEND_REPORT;
    if (ev->kind == EBB_BACKEND_NOTICE || ev->kind == EBB_BACKEND_PLACED)
        snprintf(h.notice + strlen(h.notice), sizeof h.notice - strlen(h.notice), "%.*s\n", (int)ev->n_text, ev->text);
    if (ev->kind == EBB_BACKEND_REPORT)
        snprintf(h.report, sizeof h.report, "%.*s", (int)ev->n_text, ev->text);
    if (ev->kind == EBB_BACKEND_PREFILL && ev->done == 0)
        h.to_compute = ev->total;
    if (ev->kind == EBB_BACKEND_TOKEN)
        h.ids[h.n_ids++] = ev->token;
    if (ev->kind == EBB_BACKEND_END) {
        h.finish = ev->finish;
        h.cost = ev->cost;
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

static void wait_for(const bool *what)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&h.lock);
    while (!*what)
        if (pthread_cond_timedwait(&h.came, &h.lock, &until) != 0) {
            pthread_mutex_unlock(&h.lock);
            fail_msg("nothing came");
        }
    pthread_mutex_unlock(&h.lock);
}

static void wait_tokens(size_t n)
{
    pthread_mutex_lock(&h.lock);
    while (h.n_ids < n && !h.ended)
        pthread_cond_wait(&h.came, &h.lock);
    pthread_mutex_unlock(&h.lock);
}

static int setup(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 3 };
    int fd;

    (void)state;
    snprintf(path, sizeof path, "/tmp/ebb-local-XXXXXX");
    fd = mkstemp(path);
    if (fd < 0)
        return -1;
    close(fd);
    memset(&h, 0, sizeof h);
    pthread_mutex_init(&h.lock, NULL);
    pthread_cond_init(&h.came, NULL);
    return ebb_tiny_write(&tiny, path) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static ebb_backend *open_tiny(uint32_t n_ctx)
{
    const ebb_engine_opts o = { .n_ctx = n_ctx, .n_threads = 1, .no_kv_cache = true };
    ebb_backend *b;
    ebb_error err;

    if (ebb_backend_local(path, &o, sink, NULL, &b, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return b;
}

static ebb_backend *open_ready(uint32_t n_ctx)
{
    ebb_backend *b = open_tiny(n_ctx);

    wait_for(&h.ready);
    assert_non_null(b->ops->model(b));
    return b;
}

static void ask(ebb_backend *b, const int32_t *ids, size_t n, uint32_t n_predict)
{
    const ebb_backend_request r = { .ids = ids, .n_ids = n, .n_predict = n_predict,
                                    .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_error err;

    h.ended = false;
    h.n_ids = h.n_text = 0;
    h.error[0] = '\0';
    if (b->ops->answer(b, &r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

static void answer(ebb_backend *b, const int32_t *ids, size_t n, uint32_t n_predict)
{
    ask(b, ids, n, n_predict);
    wait_for(&h.ended);
}

static void fill(int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(i * 37 % 256);
}

static void test_answer_in_parts(void **state)
{
    ebb_backend *b = open_ready(256);
    int32_t ids[64], whole[12];

    (void)state;
    fill(ids, 20);
    answer(b, ids, 20, 12);
    assert_int_equal(h.cost.n_computed, 20);
    assert_int_equal(h.cost.n_generated, h.n_ids);
    if (h.finish != EBB_FINISH_LENGTH)
        skip();                                  /* this seed would end its turn early */
    assert_int_equal(h.n_ids, 12);
    memcpy(whole, h.ids, sizeof whole);

    answer(b, ids, 20, 5);
    assert_int_equal(h.finish, EBB_FINISH_LENGTH);
    assert_memory_equal(h.ids, whole, 5 * sizeof *whole);
    memcpy(ids + 20, h.ids, 5 * sizeof *ids);
    answer(b, ids, 25, 7);                       /* it goes on from the very token */
    assert_memory_equal(h.ids, whole + 5, 7 * sizeof *whole);
    assert_true(h.cost.n_computed <= 1);
    assert_int_equal(h.cost.n_prompt, 25);
    b->ops->close(b);
}

static void test_cancel_and_go_on(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[MAX];
    size_t n = 16;

    (void)state;
    fill(ids, n);
    ask(b, ids, n, 0);
    wait_tokens(3);
    assert_true(b->ops->common(b, ids, n, &computed) == n); /* while it writes */
    b->ops->cancel(b);
    wait_for(&h.ended);
    if (h.finish != EBB_FINISH_CANCELED)
        skip();
    memcpy(ids + n, h.ids, h.n_ids * sizeof *ids);
    n += h.n_ids;
    assert_true(b->ops->common(b, ids, n, &computed) >= n - 1);       /* what was computed stands */
    b->ops->cancel(b);                           /* with nothing under way: nothing */
    answer(b, ids, n, 4);
    assert_int_not_equal(h.finish, EBB_FINISH_CANCELED);
    assert_true(h.cost.n_computed <= 1);
    b->ops->close(b);
}

static void test_limits(void **state)
{
    ebb_backend *b = open_ready(64);
    int32_t ids[100];
    const ebb_backend_request none = { .n_ids = 0 };
    ebb_error err;

    (void)state;
    assert_int_equal(b->ops->n_ctx(b), 64);
    fill(ids, 100);
    answer(b, ids, 100, 0);
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    assert_true(h.error[0] != '\0');
    answer(b, ids, 60, 0);
    assert_true(h.finish == EBB_FINISH_STOP || (h.finish == EBB_FINISH_LENGTH && h.n_ids == 4));
    assert_int_equal(b->ops->answer(b, &none, &err), EBB_USAGE);
    b->ops->close(b);
}

static void test_busy(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[8];
    const ebb_backend_request r = { .ids = ids, .n_ids = 8 };
    ebb_error err;
    ebb_status st;

    (void)state;
    fill(ids, 8);
    ask(b, ids, 8, 0);
    st = b->ops->answer(b, &r, &err);
    assert_true(st == EBB_BUSY || h.ended);
    b->ops->close(b);                            /* in the middle: END is told before it returns */
    assert_true(h.ended);
}

static void test_failures(void **state)
{
    const ebb_backend_request r = { .ids = (int32_t[]){ 1 }, .n_ids = 1 };
    ebb_backend *b;
    ebb_error err;
    ebb_stats stats;

    (void)state;
    assert_int_equal(truncate(path, 100), 0);
    b = open_tiny(64);
    wait_for(&h.failed);
    if (!strstr(h.error, strrchr(path, 0x2f) + 1))
        fail_msg("the file is not named: %s", h.error);
    assert_null(b->ops->model(b));
    assert_int_equal(b->ops->n_ctx(b), 0);
    assert_int_equal(b->ops->common(b, r.ids, 1, &computed), 0);
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_BUSY);
    assert_int_equal(b->ops->set_budget(b, 0, &err), EBB_BUSY);
    b->ops->stats(b, &stats);
    b->ops->close(b);
}

static void set_budget(ebb_backend *b, uint64_t bytes)
{
    ebb_error err;

    h.placed = false;
    h.notice[0] = '\0';
    if (b->ops->set_budget(b, bytes, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_for(&h.placed);
}

static uint64_t total_planned(ebb_backend *b)
{
    double size;
    const char *line;

    h.reported = false;
    assert_int_equal(b->ops->plan(b, NULL), EBB_OK);
    wait_for(&h.reported);
    line = strstr(h.report, "\n  total ");
    assert_non_null(line);
    assert_int_equal(sscanf(line, "\n  total %lf MiB", &size), 1);
    return (uint64_t)(size * 1048576);
}

/* Another budget between answers: what it brings is said first, and the answers are the same. */
static void test_budget(void **state)
{
    const ebb_tiny_opts large = { .seed = 3, .n_layers = 8, .n_embd = 512, .n_ff = 2048 };
    int32_t ids[16], want[8];
    ebb_backend *b;
    ebb_stats s;
    uint64_t all;

    (void)state;
    assert_true(ebb_tiny_write(&large, path));
    b = open_ready(256);
    fill(ids, 16);
    answer(b, ids, 16, 8);
    memcpy(want, h.ids, sizeof want);
    all = total_planned(b);

    set_budget(b, all - ((uint64_t)16 << 20));
    assert_non_null(strstr(h.notice, ": tier streaming, "));
    assert_non_null(strstr(h.notice, "the budget stands"));
    b->ops->stats(b, &s);
    assert_true(s.n_resident < 8 && s.ring_bytes > 0 && s.budget_bytes == all - ((uint64_t)16 << 20));
    ids[0]++;
    answer(b, ids, 16, 8);
    ids[0]--;
    answer(b, ids, 16, 8);
    assert_memory_equal(h.ids, want, sizeof want);

    set_budget(b, 1 << 20);                      /* nothing is changed */
    assert_non_null(strstr(h.notice, "the budget stays as it is: a context of 256 needs at least"));
    b->ops->stats(b, &s);
    assert_int_equal(s.budget_bytes, all - ((uint64_t)16 << 20));

    set_budget(b, 0);
    b->ops->stats(b, &s);
    assert_int_equal(s.n_resident, 8);
    b->ops->close(b);
}

/* Asked for while an answer runs, the change comes after it; and a backend can be closed meanwhile. */
static void test_budget_waits(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[16];
    ebb_error err;

    (void)state;
    fill(ids, 16);
    h.placed = false;
    ask(b, ids, 16, 0);
    wait_tokens(1);
    assert_int_equal(b->ops->set_budget(b, 0, &err), EBB_OK);
    assert_int_equal(b->ops->plan(b, &err), EBB_OK);
    wait_for(&h.placed);
    assert_true(h.ended);
    assert_int_equal(b->ops->set_budget(b, 0, &err), EBB_OK);
    b->ops->close(b);
}

/* At once, at whatever point of loading that is. */
static void test_close_while_loading(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        ebb_backend *b = open_tiny(64);
        struct timespec ts = { 0, i * 200000 };

        nanosleep(&ts, NULL);
        b->ops->close(b);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_answer_in_parts), T(test_cancel_and_go_on), T(test_limits), T(test_busy), T(test_failures),
        T(test_budget), T(test_budget_waits),
        T(test_close_while_loading),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
