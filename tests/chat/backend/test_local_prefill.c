/* Computing ahead: it shows in the cost, gives the same answer, and holds nothing up (local_prefill.c). */
#include "ebb_test.h"

#include "chat/backend/local_fixture.h"

static void go_ahead(ebb_backend *b, const int32_t *ids, size_t n)
{
    pthread_mutex_lock(&h.lock);
    h.prefill_is_whole = false;
    pthread_mutex_unlock(&h.lock);
    b->ops->speculative_prefill(b, ids, n, &computed, NULL);
}

static void test_is_reused(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[600], plain[8];
    size_t n_plain;

    (void)state;
    fill(ids, 600);
    answer(b, ids, 600, 8);
    n_plain = h.n_ids;
    memcpy(plain, h.ids, n_plain * sizeof *plain);
    assert_int_equal(h.turn_stats.n_prefilled_early, 0);
    ids[0]++;                                    /* another conversation between */
    answer(b, ids, 600, 1);
    ids[0]--;
    b->ops->close(b);

    memset(&h.ready, 0, sizeof h.ready);
    b = open_ready(1024);
    go_ahead(b, ids, 300);
    wait_for(&h.prefill_is_whole);
    go_ahead(b, ids, 590);                       /* the draft has grown */
    wait_for(&h.prefill_is_whole);
    assert_int_equal(b->ops->common_prefix(b, ids, 600, &computed), 590);
    answer(b, ids, 600, 8);
    assert_int_equal(h.turn_stats.n_reused, 590);
    assert_int_equal(h.turn_stats.n_prefilled_early, 590);
    assert_int_equal(h.turn_stats.n_computed, 10);
    assert_int_equal(h.n_ids, n_plain);
    assert_memory_equal(h.ids, plain, n_plain * sizeof *plain);
    answer(b, ids, 600, 1);
    assert_int_equal(h.turn_stats.n_prefilled_early, 0); /* counted once */
    b->ops->close(b);
}

/* The draft was edited, or sent as something else: what does not lead there is dropped. */
static void test_is_dropped(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[900], other[400], plain[8];
    size_t n_plain;

    (void)state;
    fill(ids, 900);
    fill(other, 400);
    other[100]++;
    answer(b, other, 400, 8);
    n_plain = h.n_ids;
    memcpy(plain, h.ids, n_plain * sizeof *plain);
    for (unsigned i = 0; i < 20 / ebb_test_one_in(4); i++) {
        go_ahead(b, ids, 900);
        if (i % 3 == 0)
            wait_for(&h.prefill_is_whole);
        if (i % 3 == 1)
            go_ahead(b, other, 300);
        answer(b, other, 400, 8);
        assert_int_equal(h.finish == EBB_FINISH_ERROR || h.finish == EBB_FINISH_CANCELED, false);
        assert_int_equal(h.n_ids, n_plain);
        assert_memory_equal(h.ids, plain, n_plain * sizeof *plain);
    }
    b->ops->close(b);
}

/* A stop meant for the answer reaches it, also while the worker leaves what it did ahead. */
static void test_stop_reaches_the_answer(void **state)
{
    ebb_backend *b = open_gated(1024);
    int32_t ids[900], other[900];

    (void)state;
    fill(ids, 900);
    fill(other, 900);
    other[0]++;
    for (unsigned i = 0; i < 10 / ebb_test_one_in(4); i++) {
        go_ahead(b, ids, 900);
        hold_passes();                           /* wherever the worker is */
        ask(b, i % 2 ? ids : other, 900, 0);
        b->ops->cancel(b);
        let_passes_go();
        wait_for(&h.ended);
        assert_int_equal(h.finish, EBB_FINISH_CANCELED);
        go_ahead(b, other, 700);
        wait_for(&h.prefill_is_whole);           /* and is forgotten after it */
    }
    go_ahead(b, ids, 900);
    b->ops->close(b);                            /* in the middle of it */
}

static void test_gives_way_to_nothing(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[900];

    (void)state;
    fill(ids, 900);
    go_ahead(b, ids, 900);
    go_ahead(b, NULL, 0);
    go_ahead(b, ids, 40);
    wait_for(&h.prefill_is_whole);
    assert_true(b->ops->common_prefix(b, ids, 40, &computed) == 40);
    b->ops->close(b);
}

/* ids[0..600) without the 200 from the tenth on. */
static void leave_gap(int32_t *less, const int32_t *ids)
{
    memcpy(less, ids, 10 * sizeof *ids);
    memcpy(less + 10, ids + 210, 390 * sizeof *ids);
}

/* Tokens go from the middle: what is behind them is moved, not computed, for an answer as well as ahead. */
static void test_gap(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[600], less[600];
    ebb_backend_gap gap = { .ids = ids + 10, .at = 10, .n = 200 };
    ebb_backend_request r = { .ids = less, .n_ids = 390, .n_predict = 4, .gap = gap,
                              .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_error err;

    (void)state;
    fill(ids, 600);
    answer(b, ids, 580, 1);
    leave_gap(less, ids);
    h.ended = false;
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    wait_for(&h.ended);
    assert_int_equal(h.turn_stats.n_computed, 10); /* of 580 that stood, 380 are left */
    assert_int_equal(h.turn_stats.n_reused, 380);

    answer(b, ids, 580, 1);                      /* as if nothing had gone */
    h.prefill_is_whole = false;
    b->ops->speculative_prefill(b, less, 390, &computed, &gap);
    wait_for(&h.prefill_is_whole);
    r.gap.n = 0;
    r.cache_salt = h.cache_salt;
    assert_true(r.cache_salt.is_on);
    h.ended = false;
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    wait_for(&h.ended);
    assert_true(h.turn_stats.n_computed <= 1);
    b->ops->close(b);
}

/* Whoever asks before he heard that it was done ahead, or before it was begun, brings the gap again: nothing is
 * computed that was moved, and the answer is the same. */
static void test_gap_asked_for_at_once(void **state)
{
    int32_t ids[600], less[600], same[4];
    ebb_backend_gap gap = { .ids = ids + 10, .at = 10, .n = 200 };
    ebb_backend_request r = { .ids = less, .n_ids = 390, .n_predict = 4, .gap = gap,
                              .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_error err;

    (void)state;
    fill(ids, 600);
    leave_gap(less, ids);
    for (int i = 0; i < 4; i++) {
        ebb_backend *b = open_ready(1024);

        answer(b, ids, 580, 1);
        h.prefill_is_whole = h.ended = false;
        h.n_ids = 0;
        if (i > 0)                               /* 0: as it is without anything ahead */
            b->ops->speculative_prefill(b, less, 380, &computed, &gap);
        if (i > 1)
            wait_for(&h.prefill_is_whole);
        if (i > 2)
            answer(b, less, 5, 1);               /* another one in between */
        h.ended = false;
        h.n_ids = 0;
        assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
        wait_for(&h.ended);
        assert_in_range(h.turn_stats.n_computed, 10, i > 2 ? 10 + 32 : 10);     /* 32: a block that was not full */
        if (i == 0)
            memcpy(same, h.ids, sizeof same);
        assert_memory_equal(h.ids, same, sizeof same);
        b->ops->close(b);
        h.ready = false;
    }
}

/* A model with states remembers all it has read: what is left is computed, and the answer is that of a fresh start. */
static void test_gap_of_states(void **state)
{
    const ebb_tiny_opts tiny = { .seed = 3, .arch = "qwen35" };
    int32_t ids[600], less[600], plain[4];
    ebb_backend_request r = { .ids = less, .n_ids = 390, .n_predict = 4, .gap = { .ids = ids + 10, .at = 10, .n = 200 },
                              .sampling = { .temp = 0, .top_p = 1, .repeat_penalty = 1 } };
    ebb_backend *b;
    ebb_error err;

    (void)state;
    assert_true(ebb_tiny_write(&tiny, path));
    fill(ids, 600);
    leave_gap(less, ids);
    b = open_ready(1024);
    answer(b, less, 390, 4);
    memcpy(plain, h.ids, sizeof plain);
    b->ops->close(b);
    h.ready = false;
    b = open_ready(1024);
    answer(b, ids, 580, 1);
    h.ended = false;
    h.n_ids = 0;
    assert_int_equal(b->ops->answer(b, &r, &err), EBB_OK);
    wait_for(&h.ended);
    assert_true(h.turn_stats.n_computed >= 380);
    assert_memory_equal(h.ids, plain, sizeof plain);
    b->ops->close(b);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_is_reused), T(test_is_dropped), T(test_stop_reaches_the_answer), T(test_gives_way_to_nothing),
        T(test_gap), T(test_gap_asked_for_at_once), T(test_gap_of_states),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
