/* Which file is the better one of a network, and a chat that goes there and back with the real engine: ids and K and V
 * of both are kept. */
#include "models_folder.h"

#include <poll.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "conversation/chat.h"
#include "models/models.h"
#include "support/tiny_model.h"

static char kv[96];

static int setup(void **state)
{
    if (models_folder_setup(state) != 0)
        return -1;
    setenv("XDG_CACHE_HOME", dir, 1);
    snprintf(kv, sizeof kv, "%s/kv", dir);
    return mkdir(kv, 0700);
}

static const char *file(const char *name)
{
    static char path[2][128];
    static int n;

    snprintf(path[n ^= 1], sizeof path[0], "%s/%s.gguf", dir, name);
    return path[n];
}

static void tiny(const char *name, ebb_type type, uint32_t n_layers)
{
    assert_true(ebb_tiny_write(&(ebb_tiny_opts){ .type = type, .n_layers = n_layers, .seed = 3, .n_ctx = 2048 },
                               file(name)));
}

static ebb_status find_better_with(const ebb_engine_opts *opts, const char *everyday, const char *name,
                                   ebb_better_model *out, ebb_error *err)
{
    ebb_model *m;
    ebb_status st = ebb_model_open(file(everyday), &m, err);

    assert_int_equal(st, EBB_OK);
    st = ebb_models_find_better(name, m, opts, 0, 100, out, err);
    ebb_model_close(m);
    return st;
}

static ebb_status find_better(const char *everyday, const char *name, ebb_better_model *out, ebb_error *err)
{
    const ebb_engine_opts opts = { .n_ctx = 1024, .n_threads = 1 };

    return find_better_with(&opts, everyday, name, out, err);
}

/* The largest of the same layers; not f32, not another network, not itself. */
static void test_found(void **state)
{
    ebb_better_model better;
    ebb_error err = { 0 };

    (void)state;
    tiny("q8", EBB_TYPE_Q8_0, 2);
    assert_int_equal(find_better("q8", NULL, &better, &err), EBB_NOTFOUND);
    tiny("f32", EBB_TYPE_F32, 2);                /* nothing is gained beyond f16 */
    tiny("other", EBB_TYPE_F16, 3);
    assert_int_equal(find_better("q8", NULL, &better, &err), EBB_NOTFOUND);
    assert_int_equal(find_better("q8", file("other"), &better, &err), EBB_USAGE);
    assert_int_equal(find_better("q8", file("q8"), &better, &err), EBB_USAGE);
    tiny("f16", EBB_TYPE_F16, 2);
    assert_int_equal(find_better("q8", NULL, &better, &err), EBB_OK);
    assert_string_equal(better.path, file("f16"));
    assert_true(better.plan.fits && better.plan.n_ctx == 1024 && better.plan.predicted_decode_tok_s > 0 &&
                better.first_token_s > 0);
    free(better.path);
    tiny("q4", EBB_TYPE_Q4_0, 2);
    assert_int_equal(find_better("q4", file("q8"), &better, &err), EBB_OK);
    assert_string_equal(better.quantization, "Q8_0");
    free(better.path);
    assert_int_equal(find_better("f16", file("q8"), &better, &err), EBB_USAGE);  /* that way is down */
}

/* What would have K and V in a file does not fit where they cannot go there, as its engine would say. */
static void test_without_a_folder_for_kv(void **state)
{
    const ebb_engine_opts opts = { .n_ctx = 400000, .n_threads = 1, .ram_bytes = 60 << 20, .kv_cache_dir = kv };
    ebb_better_model better;
    ebb_buf why = { 0 };
    ebb_error err = { 0 };
    char *path;

    (void)state;
    tiny("q8", EBB_TYPE_Q8_0, 2);
    tiny("f16", EBB_TYPE_F16, 2);
    assert_int_equal(ebb_models_remember(file("f16"), &err), EBB_OK);
    assert_int_equal(find_better_with(&opts, "q8", NULL, &better, &err), EBB_OK);
    assert_true(better.plan.kv_spill_bytes > 0);
    free(better.path);
    assert_int_equal(ebb_models_choose(&opts, &path, &why, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&why), "as last time"));
    free(path);
    assert_int_equal(chmod(kv, 0777), 0);
    assert_int_equal(find_better_with(&opts, "q8", NULL, &better, &err), EBB_BUDGET);
    ebb_buf_clear(&why);
    assert_int_equal(ebb_models_choose(&opts, &path, &why, &err), EBB_OK);
    assert_non_null(strstr(ebb_buf_text(&why), "which was chosen last, is not used"));
    free(path);
    ebb_buf_fini(&why);
}

static void wait_ready(ebb_chat *c, const char *quantization)
{
    struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };
    double until = ebb_clock_s() + EBB_TEST_WAIT_S;      /* not a number of looks: some wakes bring no event */
    ebb_chat_event ev;

    while (ebb_clock_s() < until) {
        while (ebb_chat_event_next(c, &ev)) {
            if (ev.kind == EBB_EVENT_ERROR)
                fail_msg("%s", ev.text);
            if (ev.kind == EBB_EVENT_READY && strcmp(ebb_chat_model(c)->quantization, quantization) == 0)
                return;
        }
        poll(&p, 1, 100);
    }
    fail_msg("%s did not come", quantization);
}

static ebb_chat *open_chat(bool continue_last)
{
    char db[96];
    ebb_error err = { 0 };
    ebb_chat *c;

    snprintf(db, sizeof db, "%s/sessions.db", dir);
    ebb_chat_opts o = { .model_path = file("q8"), .store_path = db, .continue_last = continue_last, .n_predict = 24,
                        .engine = { .n_ctx = 1024, .n_threads = 1, .kv_cache_dir = kv },
                        .sampling = ebb_sampler_params_default() };
    o.sampling.temp = 0;
    if (ebb_chat_open(&o, &c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    wait_ready(c, "Q8_0");
    return c;
}

static const ebb_message *last(const ebb_chat *c)
{
    return ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
}

static size_t n_ids_until(const ebb_chat *c, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ebb_chat_message(c, i)->n_ids;
    return sum;
}

static void say(ebb_chat *c, const char *text)
{
    struct pollfd p = { .fd = ebb_chat_fd(c), .events = POLLIN };
    ebb_chat_event ev = { 0 };
    ebb_error err;

    if (ebb_chat_send(c, text, strlen(text), &err) != EBB_OK)
        fail_msg("%s", err.msg);
    for (int i = 0; i < EBB_TEST_WAIT_S * 10 && ev.kind != EBB_EVENT_DONE; i++) {
        while (ebb_chat_event_next(c, &ev) && ev.kind != EBB_EVENT_DONE)
            ;
        if (ev.kind != EBB_EVENT_DONE)
            poll(&p, 1, 100);
    }
    assert_int_equal(ev.kind, EBB_EVENT_DONE);
}

static const char question[] =
    "A question of some length, so that several blocks of K and V are written for it: what is the sea, and why?";

/* There and back: all ids stand, the everyday file finds its own K and V again and computes only what it has not
 * read. */
static void test_ids_and_kv(void **state)
{
    ebb_chat *c;
    ebb_error err = { 0 };
    size_t n_first, n_all;
    int32_t *ids;

    (void)state;
    tiny("q8", EBB_TYPE_Q8_0, 2);
    tiny("f16", EBB_TYPE_F16, 2);
    c = open_chat(false);
    say(c, question);
    n_first = n_ids_until(c, 2);
    assert_int_equal(ebb_chat_answer_better(c, question, strlen(question), &err), EBB_OK);
    wait_ready(c, "Q8_0");
    assert_int_equal(ebb_chat_n_messages(c), 4);
    assert_true(last(c)->n_ids > 0 && strstr(last(c)->model, "F16") != NULL);
    /* The ids that stood, and those of the question. */
    assert_int_equal(last(c)->turn_stats.n_prompt, n_ids_until(c, 3));
    n_all = n_ids_until(c, 4);
    ids = malloc(last(c)->n_ids * sizeof *ids);
    memcpy(ids, last(c)->ids, last(c)->n_ids * sizeof *ids);

    say(c, "And the sky?");
    assert_memory_equal(ebb_chat_message(c, 3)->ids, ids, ebb_chat_message(c, 3)->n_ids * sizeof *ids);
    assert_int_equal(last(c)->turn_stats.n_prompt, n_ids_until(c, 5));
    assert_true(last(c)->turn_stats.n_reused + 32 >= n_first);   /* whole blocks of its own K and V are there ... */
    assert_true(last(c)->turn_stats.n_computed <= n_ids_until(c, 5) - n_first + 32);
    assert_true(n_all > n_first);

    /* ... and those of the better file: again the question behind the first turn, in it. */
    assert_int_equal(ebb_chat_answer_better(c, "More?", 5, &err), EBB_OK);
    wait_ready(c, "Q8_0");
    assert_true(last(c)->turn_stats.n_reused + 64 >= n_all);
    free(ids);
    ebb_chat_close(c);

    /* The next one begins with the everyday file, and knows the ids of both. */
    c = open_chat(true);
    n_all = n_ids_until(c, ebb_chat_n_messages(c));
    say(c, "Well?");
    assert_int_equal(last(c)->turn_stats.n_prompt, n_ids_until(c, ebb_chat_n_messages(c) - 1));
    assert_int_equal(n_ids_until(c, ebb_chat_n_messages(c) - 2), n_all);
    ebb_chat_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found, setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_without_a_folder_for_kv, setup, models_folder_teardown),
        cmocka_unit_test_setup_teardown(test_ids_and_kv, setup, models_folder_teardown),
    };

    return cmocka_run_group_tests_name("models_quality", tests, NULL, NULL);
}
