/* Which model is taken to guess, on a machine that is described, and which stays behind. */
#include "models_folder.h"

#include "models/models.h"
#include "support/tiny_model.h"

static const char *file(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    return path;
}

static void tiny(const char *name, uint32_t n_layers)
{
    assert_true(ebb_tiny_write(&(ebb_tiny_opts){ .n_layers = n_layers }, file(name)));
}

static ebb_model *open_file(const char *name)
{
    ebb_model *m;
    ebb_error err;

    if (ebb_model_open(file(name), &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

/* Where layers are read from a disk of so many bytes a second, or all stay. */
static const char *best(const ebb_model *host, bool streams, double disk_bytes_s)
{
    static char said[256];
    const ebb_machine machine = { .available_bytes = 1ull << 30, .available_why = "a test", .n_cpus = 2,
                                  .memory_bytes_s = 20e9,
                                  .disk_bytes_s = disk_bytes_s, .disk_busy_bytes_s = disk_bytes_s,
                                  .int8_mac_s = 200e9 };
    const ebb_engine_opts opts = { .has_resident = streams };
    ebb_model *m;
    ebb_buf why = { 0 };
    ebb_error err;

    if (ebb_models_best_draft(host, &opts, &machine, &m, &why, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    snprintf(said, sizeof said, "%s", m ? strrchr(ebb_model_get_info(m)->path, '/') + 1 : ebb_buf_text(&why));
    ebb_model_close(m);
    ebb_buf_fini(&why);
    return said;
}

/* The smallest of the vocabulary, where the plan sees a gain: where layers stream. */
static void test_auto(void **state)
{
    ebb_model *host;

    (void)state;
    tiny("large", 8);
    host = open_file("large");
    assert_string_equal(best(host, true, 1e6), "no draft model: no smaller model here has the vocabulary of tiny");
    tiny("middle", 4);
    tiny("small", 1);
    tiny("larger", 12);
    assert_string_equal(best(host, true, 1e6), "small.gguf");
    ebb_model_close(host);
}

/* In memory a guess that takes nearly as long as a pass gains nothing. */
static void test_no_gain(void **state)
{
    ebb_model *host;

    (void)state;
    tiny("large", 8);
    tiny("seven", 7);
    host = open_file("large");
    assert_string_equal(best(host, false, 1e6),
                        "no draft model: 1 here could draft for tiny, but the plan expects no gain from it");
    ebb_model_close(host);
}

/* What is no model is passed over. */
static void test_strangers(void **state)
{
    ebb_model *host;
    FILE *f;

    (void)state;
    tiny("large", 8);
    f = fopen(file("broken"), "w");
    assert_non_null(f);
    fputs("GGUF and nothing else", f);
    fclose(f);
    host = open_file("large");
    assert_non_null(strstr(best(host, true, 1e6), "no smaller model here"));
    tiny("small", 2);
    assert_string_equal(best(host, true, 1e6), "small.gguf");
    ebb_model_close(host);
}

/* One that was named for another model goes where it cannot draft, with a line; one that is named for this one is an
 * error. */
static void test_may_go(void **state)
{
    ebb_model *host, *m = NULL;
    ebb_buf why = { 0 };
    ebb_error err;
    const char *stories = ebb_test_shared_path("data/models/stories260K.gguf");

    (void)state;
    tiny("large", 8);
    tiny("small", 1);
    host = open_file("large");
    assert_int_equal(ebb_models_open_draft("small", host, NULL, true, &m, &why, &err), EBB_OK);
    assert_non_null(m);
    assert_int_equal(why.len, 0);
    ebb_model_close(m);
    assert_int_equal(ebb_models_open_draft(stories, host, NULL, true, &m, &why, &err), EBB_OK);
    assert_null(m);
    assert_non_null(strstr(ebb_buf_text(&why), "no draft model: stories260K.gguf cannot draft for large.gguf: "));
    ebb_buf_clear(&why);
    assert_int_equal(ebb_models_open_draft("large", host, NULL, true, &m, &why, &err), EBB_OK);
    assert_null(m);
    assert_string_equal(ebb_buf_text(&why), "no draft model: large is the model itself");
    ebb_buf_clear(&why);
    assert_int_equal(ebb_models_open_draft("gone", host, NULL, true, &m, &why, &err), EBB_OK);
    assert_null(m);
    assert_non_null(strstr(ebb_buf_text(&why), "no draft model: gone: no such file"));
    assert_int_equal(ebb_models_open_draft("gone", host, NULL, false, &m, &why, &err), EBB_NOTFOUND);
    assert_null(m);
    ebb_buf_fini(&why);
    ebb_model_close(host);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, models_folder_setup, models_folder_teardown)
    const struct CMUnitTest tests[] = { T(test_auto), T(test_no_gain), T(test_strangers), T(test_may_go) };

    return cmocka_run_group_tests_name("models draft", tests, NULL, NULL);
}
