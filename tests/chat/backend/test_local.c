/* The engine behind the backend's interface: loading, answers, cancel, limits. */
#include "ebb_test.h"

#include "chat/backend/local_fixture.h"
#include "ebb/experimental/kv_cache.h"
#include "os/folder.h"
#include "support/own_folder.h"

static void test_answer_in_parts(void **state)
{
    ebb_backend *b = open_ready(256);
    int32_t ids[64], whole[12];

    (void)state;
    fill(ids, 20);
    answer(b, ids, 20, 12);
    assert_int_equal(h.turn_stats.n_computed, 20);
    assert_int_equal(h.turn_stats.n_generated, h.n_ids);
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
    assert_true(h.turn_stats.n_computed <= 1);
    assert_int_equal(h.turn_stats.n_prompt, 25);
    b->ops->close(b);
}

/* The last token is not computed: of one token there is no speed, least of all that of the answer before. */
static void test_one_token_has_no_speed(void **state)
{
    ebb_backend *b = open_ready(256);
    int32_t ids[20];

    (void)state;
    fill(ids, 20);
    answer(b, ids, 20, 1);
    assert_int_equal(h.turn_stats.n_generated, 1);
    assert_true(h.turn_stats.decode_s == 0 && h.turn_stats.prefill_s > 0);
    answer(b, ids, 20, 3);
    if (h.turn_stats.n_generated < 2)
        skip();                                  /* this seed would end its turn early */
    assert_true(h.turn_stats.decode_s > 0);
    answer(b, ids, 20, 1);
    assert_true(h.turn_stats.decode_s == 0);
    b->ops->close(b);
}

/* A model with states: the next prompt has other tokens at the end of this one, and only those are computed again. */
static void test_frame(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 3, .arch = "qwen35" };
    int32_t ids[700];
    ebb_backend_request r = { .ids = ids, .n_ids = 600, .n_suffix = 6, .n_predict = 4,
                              .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_backend *b;
    ebb_error err;
    ebb_stats s;

    (void)state;
    assert_true(ebb_tiny_write(&tiny, path));
    b = open_ready(1024);
    fill(ids, 700);
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    wait_for(&h.ended);
    assert_int_equal(h.turn_stats.n_prompt, 600);
    assert_int_equal(h.turn_stats.n_computed, 600);
    b->ops->stats(b, &s);                        /* of both parts of the prompt */
    assert_true(s.prefill_total == 600 && s.prefill_done == 600 && s.reused_tok == 0);
    ids[595]++;
    r.n_ids = 640;
    h.ended = false;
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    wait_for(&h.ended);
    assert_true(h.turn_stats.n_computed <= 640 - 594);
    assert_int_equal(h.turn_stats.n_prompt, h.turn_stats.n_computed + h.turn_stats.n_reused);
    b->ops->stats(b, &s);
    assert_int_equal(s.reused_tok, h.turn_stats.n_reused);
    assert_int_equal(s.prefill_total, h.turn_stats.n_computed);
    b->ops->close(b);
}

/* The same after a restart: no more came from disk than was known, whatever the prompt's second part finds there. */
static void test_frame_from_disk(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 3, .arch = "qwen35" };
    int32_t ids[200];
    const ebb_engine_opts o = { .n_ctx = 256, .n_threads = 1, .kv_cache_dir = ebb_own_dir };
    ebb_backend_request r = { .ids = ids, .n_ids = 150, .n_suffix = 6, .n_predict = 4,
                              .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_backend *b;

    (void)state;
    assert_int_equal(ebb_own_dir_make(NULL), 0);
    assert_true(ebb_tiny_write(&tiny, path));
    fill(ids, 200);
    for (int i = 0; i < 3; i++) {
        h.ready = h.ended = false;
        assert_int_equal(ebb_backend_local(&(ebb_backend_models){ .path = path }, &o, sink, NULL, &b, NULL), EBB_OK);
        wait_for(&h.ready);
        for (int k = 0; k < 2; k++) {
            h.ended = false;
            assert_int_equal(b->ops->answer(b, &r, NULL), EBB_OK);
            wait_for(&h.ended);
            assert_true(h.turn_stats.n_reused_disk <= h.turn_stats.n_reused);
            r.n_ids += k == 0 && i == 0 ? 20 : 0;
        }
        b->ops->keep(b, ids, r.n_ids);
        b->ops->close(b);
    }
    assert_true(h.turn_stats.n_reused > 0);
    assert_int_equal(ebb_own_dir_drop(NULL), 0);
}

static void test_cancel_and_go_on(void **state)
{
    ebb_backend *b = open_gated(1024);
    int32_t ids[MAX];
    size_t n = 16;

    (void)state;
    fill(ids, n);
    h.hold_at = 3;
    ask(b, ids, n, 0);
    wait_tokens(3);
    assert_true(b->ops->common_prefix(b, ids, n, &computed) == n); /* while it writes */
    b->ops->cancel(b);
    let_passes_go();
    wait_for(&h.ended);
    assert_int_equal(h.finish, EBB_FINISH_CANCELED);
    h.hold_at = 0;
    memcpy(ids + n, h.ids, h.n_ids * sizeof *ids);
    n += h.n_ids;
    assert_true(b->ops->common_prefix(b, ids, n, &computed) >= n - 1); /* what was computed stands */
    b->ops->cancel(b);                           /* with nothing under way: nothing */
    answer(b, ids, n, 4);
    assert_int_not_equal(h.finish, EBB_FINISH_CANCELED);
    assert_true(h.turn_stats.n_computed <= 1);
    b->ops->close(b);
}

/* Of a prompt that the template refuses there are no ids: they are no question for the worker, whom nobody would wait
 * for, and who would read the salt of a caller that has gone on. */
static void test_no_ids_have_nothing_in_common(void **state)
{
    ebb_backend *b = open_ready(256);
    int32_t ids[40];

    (void)state;
    fill(ids, 40);
    answer(b, ids, 40, 1);
    assert_true(b->ops->common_prefix(b, ids, 40, &computed) >= 39);
    assert_int_equal(b->ops->common_prefix(b, NULL, 0, &computed), 0);
    assert_true(b->ops->common_prefix(b, ids, 40, &computed) >= 39);
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
    ebb_backend *b = open_gated(1024);
    int32_t ids[8];
    const ebb_backend_request r = { .ids = ids, .n_ids = 8 };
    ebb_error err;

    (void)state;
    fill(ids, 8);
    hold_passes();
    ask(b, ids, 8, 0);
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_BUSY);
    let_passes_go();
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
    assert_int_equal(b->ops->common_prefix(b, r.ids, 1, &computed), 0);
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_BUSY);
    assert_int_equal(b->ops->set_budget(b, 0, &err), EBB_BUSY);
    b->ops->stats(b, &stats);
    b->ops->close(b);
}

static void set_budget(ebb_backend *b, uint64_t bytes)
{
    ebb_error err;

    h.budget_set = false;
    h.notice[0] = '\0';
    if (b->ops->set_budget(b, bytes, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_for(&h.budget_set);
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
    assert_non_null(strstr(h.notice, "the new budget is in force"));
    assert_int_equal(h.budget_bytes, all - ((uint64_t)16 << 20));
    assert_false(h.budget_stays);
    b->ops->stats(b, &s);
    assert_in_range(s.n_resident, 0, 7);
    assert_true(s.ring_bytes > 0 || strcmp(s.io, "mmap") == 0); /* the reader that was measured fastest may need none */
    assert_int_equal(s.budget_bytes, all - ((uint64_t)16 << 20));
    ids[0]++;
    answer(b, ids, 16, 8);
    ids[0]--;
    answer(b, ids, 16, 8);
    assert_memory_equal(h.ids, want, sizeof want);

    set_budget(b, 1 << 20);                      /* nothing is changed */
    assert_non_null(strstr(h.notice, "the budget stays as it is: a context of 256 needs at least"));
    assert_true(h.budget_stays);
    b->ops->stats(b, &s);
    assert_int_equal(s.budget_bytes, all - ((uint64_t)16 << 20));

    set_budget(b, 0);
    ids[0]++;
    answer(b, ids, 16, 8);                       /* mapped layers are in memory once they were used */
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
    h.budget_set = false;
    ask(b, ids, 16, 0);
    wait_tokens(1);
    assert_int_equal(b->ops->set_budget(b, 0, &err), EBB_OK);
    assert_int_equal(b->ops->plan(b, &err), EBB_OK);
    wait_for(&h.budget_set);
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

/* What of an answer is too much to follow under its grammar is not said to be of another one. */
static void test_grammar_of_an_answer(void **state)
{
    static const char wide[] = "root ::= \"a\" | \"b\" (\"c\"?){5000}";
    const ebb_engine_opts o = { .n_ctx = 64, .n_threads = 1, .no_kv_cache = true };
    ebb_backend *b;

    (void)state;
    assert_int_equal(ebb_backend_local(&(ebb_backend_models){ .path = path }, &o, sink, NULL, &b, NULL), EBB_OK);
    wait_for(&h.ready);
    for (int is_wide = 0; is_wide < 2; is_wide++) {
        int32_t ids[] = { 'x', is_wide ? 'b' : 'd' };
        ebb_backend_request r = { .ids = ids, .n_ids = 2, .n_predict = 4, .grammar = wide, .n_answer = 1 };

        h.ended = false;
        assert_int_equal(b->ops->answer(b, &r, NULL), EBB_OK);
        wait_for(&h.ended);
        assert_int_equal(h.finish, EBB_FINISH_ERROR);
        if (!strstr(h.error, is_wide ? "too ambiguous" : "does not follow the grammar"))
            fail_msg("%s", h.error);
    }
    b->ops->close(b);
}

/* -- K and V on disk --------------------------------------------------------------------- */

static bool keep_none(void *arg, const ebb_token *ids, size_t n)
{
    (void)arg;
    (void)ids;
    (void)n;
    return false;
}

static void count_kv_file(void *arg, const ebb_folder_entry *e)
{
    *(unsigned *)arg += e->name[0] != '.' && strcmp(e->name, "key") != 0;
}

static unsigned count_kv(void)
{
    unsigned n = 0;

    assert_int_equal(ebb_folder_each(ebb_own_dir, count_kv_file, &n, NULL), EBB_OK);
    return n;
}

/* An answer whose K and V are removed, and somebody says what of them is kept before the backend is closed. */
static void sweep_and_keep(const int32_t *ids, size_t n_kept)
{
    const ebb_engine_opts o = { .n_ctx = 256, .n_threads = 1, .kv_cache_dir = ebb_own_dir };
    ebb_backend_request bad = { .ids = ids, .n_ids = 5, .n_predict = 4, .grammar = "root ::= \"" };
    ebb_backend *b;
    size_t n;

    memset(&h.ready, 0, sizeof h.ready);
    assert_int_equal(ebb_backend_local(&(ebb_backend_models){ .path = path }, &o, sink, NULL, &b, NULL), EBB_OK);
    wait_for(&h.ready);
    answer(b, ids, 100, 4);
    assert_int_equal(ebb_kv_cache_sweep(ebb_own_dir, NULL, keep_none, NULL, false, &n, NULL), EBB_OK);
    h.ended = false;
    assert_int_equal(b->ops->answer(b, &bad, NULL), EBB_OK);     /* fails, and the session is as it was */
    wait_for(&h.ended);
    assert_int_equal(h.finish, EBB_FINISH_ERROR);
    b->ops->keep(b, ids, n_kept);
    b->ops->close(b);
}

/* What is said to be kept is there when the backend is closed; of anything else that the session may hold nothing. */
static void test_swept_and_kept(void **state)
{
    int32_t ids[120];

    (void)state;
    assert_int_equal(ebb_own_dir_make(NULL), 0);
    fill(ids, 120);
    sweep_and_keep(ids, 0);
    assert_int_equal(count_kv(), 0);
    sweep_and_keep(ids, 99);
    assert_int_equal(count_kv(), 0);
    memcpy(ids + 100, h.ids, h.n_ids * sizeof *ids);
    sweep_and_keep(ids, 100 + h.n_ids);
    assert_int_equal(count_kv(), 4);             /* three blocks and a tail */
    assert_int_equal(ebb_own_dir_drop(NULL), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_answer_in_parts), T(test_one_token_has_no_speed), T(test_frame), T(test_frame_from_disk),
        T(test_cancel_and_go_on), T(test_no_ids_have_nothing_in_common),
        T(test_limits), T(test_busy),
        T(test_failures), T(test_grammar_of_an_answer), T(test_budget), T(test_budget_waits),
        T(test_close_while_loading), T(test_swept_and_kept),
    };
    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
