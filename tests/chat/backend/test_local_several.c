/* Several answers at a time: each is what it would be alone. */
#include "ebb_test.h"

#include "chat/backend/local_fixture.h"
#include "support/own_folder.h"

enum { N_PROMPT = 45, N_ANSWERS = 5 };

static ebb_backend_request request_of(const int32_t *ids, uint32_t n_answers, uint64_t seed, uint32_t n_predict)
{
    return (ebb_backend_request){
        .ids = ids, .n_ids = N_PROMPT, .n_predict = n_predict, .n_answers = n_answers,
        .sampling = { .temp = 1.5f, .top_p = 1, .repeat_penalty = 1, .seed = seed },
    };
}

static void request(ebb_backend *b, const ebb_backend_request *r)
{
    ebb_error err;

    h.ended = false;
    h.n_ids = h.n_text = 0;
    memset(h.others, 0, sizeof h.others);
    if (b->ops->answer(b, r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
}

/* Answers to a prompt with seeds 11, 12 ..., side by side in one engine and one after the other in another. */
static void check_several(uint32_t n_ctx, uint32_t n_answers, uint32_t n_predict)
{
    struct other_answer *got = calloc(n_answers, sizeof *got);
    ebb_backend *b = open_ready(n_ctx);
    int32_t ids[N_PROMPT];
    ebb_backend_request r;

    fill(ids, N_PROMPT);
    r = request_of(ids, n_answers, 11, n_predict);
    request(b, &r);
    wait_for(&h.ended);
    assert_int_not_equal(h.finish, EBB_FINISH_ERROR);
    assert_int_equal(h.turn_stats.n_generated, h.n_ids);
    memcpy(got, h.others, n_answers * sizeof *got);
    got[0].n_ids = h.n_ids;
    got[0].n_text = h.n_text;
    got[0].finish = h.finish;
    memcpy(got[0].ids, h.ids, h.n_ids * sizeof *h.ids);
    memcpy(got[0].text, h.text, h.n_text);
    b->ops->close(b);

    h.ready = false;
    b = open_ready(n_ctx);
    for (uint32_t i = 0; i < n_answers; i++) {
        r = request_of(ids, 1, 11 + i, n_predict);
        request(b, &r);
        wait_for(&h.ended);
        assert_int_equal(got[i].n_ids, h.n_ids);
        assert_memory_equal(got[i].ids, h.ids, h.n_ids * sizeof *h.ids);
        assert_int_equal(got[i].n_text, h.n_text);
        assert_memory_equal(got[i].text, h.text, h.n_text);
        assert_int_equal(got[i].finish, h.finish);
        assert_true(i == 0 || got[i].ended);
    }
    b->ops->close(b);
    h.ready = false;
    free(got);
}

static void test_each_is_what_it_is_alone(void **state)
{
    static const char *const archs[] = { "llama", "gemma3", "qwen35", "qwen3moe" };

    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        const ebb_tiny_opts tiny = { .seed = 3, .arch = archs[i] };

        assert_true(ebb_tiny_write(&tiny, path));
        check_several(1024, N_ANSWERS, 40);
        check_several(1024, EBB_BACKEND_MAX_ANSWERS, 7);         /* of recurrent layers more than share a pass */
    }
}

/* The KV pool holds two of them, then one: the others wait, and come out the same. */
static void test_no_room_for_all(void **state)
{
    static const char *const archs[] = { "llama", "gemma3", "qwen35" };

    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        const ebb_tiny_opts tiny = { .seed = 3, .arch = archs[i] };

        assert_true(ebb_tiny_write(&tiny, path));
        check_several(128, N_ANSWERS, 0);
    }
}

/* What was read before is 75 tokens longer: K and V of the prompt's last 35 were moved. */
static void request_behind_gap(ebb_backend *b, uint32_t n_answers, uint64_t seed)
{
    int32_t old[120], ids[N_PROMPT];
    ebb_backend_request r = request_of(ids, n_answers, seed, 0);

    fill(old, 120);
    answer(b, old, 120, 1);
    memcpy(ids, old, 10 * sizeof *ids);
    memcpy(ids + 10, old + 85, 35 * sizeof *ids);
    r.gap = (ebb_backend_gap){ .ids = old + 10, .at = 10, .n = 75 };
    request(b, &r);
    wait_for(&h.ended);
    assert_int_not_equal(h.finish, EBB_FINISH_ERROR);
}

/* Those that waited go on from the moved K and V as the others do, and each says that it did. */
static void check_moved(void)
{
    struct other_answer *got = calloc(N_ANSWERS, sizeof *got);
    ebb_backend *b = open_ready(128);

    request_behind_gap(b, N_ANSWERS, 11);
    memcpy(got, h.others, N_ANSWERS * sizeof *got);
    got[0].n_ids = h.n_ids;
    got[0].cache_salt = h.cache_salt;
    memcpy(got[0].ids, h.ids, h.n_ids * sizeof *h.ids);
    b->ops->close(b);
    h.ready = false;
    b = open_ready(128);
    for (uint32_t i = 0; i < N_ANSWERS; i++) {
        request_behind_gap(b, 1, 11 + i);
        assert_true(h.cache_salt.is_on);
        assert_true(got[i].cache_salt.is_on);
        assert_int_equal(got[i].n_ids, h.n_ids);
        assert_memory_equal(got[i].ids, h.ids, h.n_ids * sizeof *h.ids);
    }
    b->ops->close(b);
    h.ready = false;
    free(got);
}

static void test_moved_with_no_room_for_all(void **state)
{
    static const char *const archs[] = { "llama", "gemma3" };

    (void)state;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        const ebb_tiny_opts tiny = { .seed = 3, .arch = archs[i] };

        assert_true(ebb_tiny_write(&tiny, path));
        check_moved();
    }
}

/* The pool holds one of them: the others take the blocks of the first, whose K and V are found on disk, and whose time
 * is its own. */
static void test_the_first_keeps_its_own(void **state)
{
    ebb_backend *b;
    char dir[64];
    int32_t ids[3 * EBB_KV_BLOCK + 1];
    const size_t n_more = 3 * EBB_KV_BLOCK + 1 - N_PROMPT;       /* behind whole blocks */
    ebb_backend_request r;

    (void)state;
    assert_int_equal(ebb_own_folder(dir, sizeof dir, "/tmp/ebb-several-XXXXXX"), 0);
    b = open_ready_in(128, dir);
    fill(ids, N_PROMPT);
    r = request_of(ids, 3, 11, 0);
    request(b, &r);
    wait_for(&h.ended);
    assert_int_equal(h.n_ids, 128 - N_PROMPT);
    assert_true(h.turn_stats.about & EBB_ABOUT_SIDE_BY_SIDE);
    for (uint32_t i = 1; i < 3; i++)
        assert_true(h.others[i].turn_stats.decode_s > h.turn_stats.decode_s);
    b->ops->close(b);                            /* all is written then */
    h.ready = false;
    b = open_ready_in(128, dir);
    memcpy(ids + N_PROMPT, h.ids, n_more * sizeof *ids);
    r.n_ids = N_PROMPT + n_more;
    r.n_answers = r.n_predict = 1;
    request(b, &r);
    wait_for(&h.ended);
    assert_int_equal(h.turn_stats.n_computed, 1);
    assert_false(h.turn_stats.about & EBB_ABOUT_SIDE_BY_SIDE);
    b->ops->close(b);
    h.ready = false;
    assert_int_equal(ebb_own_folder_end(dir), 0);
}

static void test_one_token_has_no_speed(void **state)
{
    ebb_backend *b = open_ready(1024);
    int32_t ids[N_PROMPT];
    ebb_backend_request r = request_of(ids, 3, 11, 1);

    (void)state;
    fill(ids, N_PROMPT);
    request(b, &r);
    wait_for(&h.ended);
    assert_int_equal(h.turn_stats.n_generated, 1);
    assert_true(h.turn_stats.decode_s == 0);
    b->ops->close(b);
    h.ready = false;
}

static void test_all_are_stopped(void **state)
{
    ebb_backend *b = open_gated(1024);
    int32_t ids[N_PROMPT + 8];
    ebb_backend_request r;

    (void)state;
    fill(ids, N_PROMPT);
    r = request_of(ids, 3, 11, 0);
    r.sampling.temp = 0;                         /* the likeliest words of this model go on for long */
    h.hold_at = 3;
    request(b, &r);
    wait_tokens(3);
    b->ops->cancel(b);
    let_passes_go();
    wait_for(&h.ended);
    assert_int_equal(h.finish, EBB_FINISH_CANCELED);
    for (uint32_t i = 1; i < 3; i++)
        assert_true(h.others[i].ended && h.others[i].n_ids >= 2);
    h.hold_at = 0;
    memcpy(ids + N_PROMPT, h.ids, 3 * sizeof *ids);
    r.n_ids = N_PROMPT + 3;                      /* the first goes on from what stands */
    r.n_answers = 1;
    r.n_predict = 2;
    request(b, &r);
    wait_for(&h.ended);
    assert_true(h.turn_stats.n_computed <= 1);
    b->ops->close(b);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_each_is_what_it_is_alone), T(test_no_room_for_all), T(test_moved_with_no_room_for_all),
        T(test_the_first_keeps_its_own), T(test_one_token_has_no_speed), T(test_all_are_stopped),
    };

    return cmocka_run_group_tests_name("several answers", tests, NULL, NULL);
}
