/* Which model is taken on a machine that is described: headers of real shapes without
 * weights, and small models that the test writes. */
#include "models_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "models/models.h"
#include "support/tiny_model.h"

#define GB ((uint64_t)1 << 30)

static void hollow(const char *shape, const char *type)
{
    char cmd[512];

    snprintf(cmd, sizeof cmd, "/usr/bin/python3 %s %s %s %s/%s-%s.gguf --hollow >%s/log 2>&1",
             ebb_test_shared_path("tools/make-model.py"), shape, type, dir, shape, type, dir);
    if (system(cmd) != 0)
        skip();                                  /* no numpy here */
}

static void tiny(const char *name, ebb_type type, uint32_t n_layers, uint32_t n_ff)
{
    ebb_tiny_opts o = { .type = type, .n_layers = n_layers, .n_embd = 512, .n_ff = n_ff };
    char path[128];

    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    assert_true(ebb_tiny_write(&o, path));
}

typedef struct rated {
    ebb_model_rating *r;
    size_t n;
    char why[400];
} rated;

/* A machine with so much memory, and how fast its kernels take weights from it, and its disk gives them. */
static rated rate_with(uint64_t bytes, double memory_bytes_s, double disk_bytes_s, const ebb_engine_opts *opts)
{
    ebb_machine machine = { .available_bytes = bytes, .available_why = "a test", .n_cpus = 2,
                            .memory_bytes_s = memory_bytes_s, .disk_bytes_s = disk_bytes_s, .int8_mac_s = 200e9 };
    ebb_model_file *files;
    ebb_buf why = { 0 };
    ebb_error err;
    rated out;

    assert_int_equal(ebb_models_find(&files, &out.n, &err), EBB_OK);
    if (ebb_models_rate(files, out.n, opts, &machine, false, 0, &out.r, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    ebb_models_explain(out.r, out.n, &why);
    snprintf(out.why, sizeof out.why, "%s", ebb_buf_text(&why));
    ebb_buf_fini(&why);
    return out;
}

static rated rate(uint64_t bytes, double memory_bytes_s)
{
    return rate_with(bytes, memory_bytes_s, 2e9, NULL);
}

static void expect(rated r, const char *const *order, const char *why)
{
    for (size_t i = 0; order[i]; i++)
        if (i >= r.n || !strstr(r.r[i].file.path, order[i]))
            fail_msg("%zu of %zu: %s instead of %s", i, r.n, i < r.n ? r.r[i].file.path : "nothing", order[i]);
    if (!strstr(r.why, why))
        fail_msg("%s", r.why);
    ebb_models_rating_free(r.r, r.n);
}

#define ORDER(...) (const char *const[]){ __VA_ARGS__, NULL }

static void test_real_shapes(void **state)
{
    (void)state;
    hollow("llama-3.1-8b", "Q4_K_M");
    hollow("llama-3.1-8b", "F16");
    hollow("llama-3.2-1b", "Q4_K_M");
    hollow("llama-3.2-1b", "Q8_0");

    /* much memory: not F16, which is hardly better and four times slower */
    expect(rate(64 * GB, 30e9), ORDER("8b-Q4_K_M", "8b-F16", "1b-Q8_0", "1b-Q4_K_M"),
           "took llama-3.1-8b-Q4_K_M.gguf: 8.0B Q4_K_M fits with a context of 8192, about ");
    expect(rate(64 * GB, 20e9), ORDER("8b-Q4_K_M"), "; llama-3.1-8b-F16.gguf would do 1.");
    expect(rate(6 * GB, 20e9), ORDER("8b-Q4_K_M", "1b-Q8_0", "1b-Q4_K_M", "8b-F16"),
           "; llama-3.1-8b-F16.gguf would be read from disk: 0.");
    /* what would stream is not taken while something fits ... */
    expect(rate(3 * GB, 20e9), ORDER("1b-Q8_0", "1b-Q4_K_M", "8b-Q4_K_M", "8b-F16"),
           "took llama-3.2-1b-Q8_0.gguf: 1.2B Q8_0 fits with a context of 8192, about ");
    /* ... nor what is too slow to talk to */
    expect(rate(64 * GB, 4e9), ORDER("1b-Q4_K_M", "1b-Q8_0", "8b-Q4_K_M"), "; llama-3.1-8b-Q4_K_M.gguf would do 0.");
}

static void test_streams_if_nothing_fits(void **state)
{
    (void)state;
    hollow("llama-3.1-8b", "Q4_K_M");
    hollow("llama-3.1-8b", "F16");
    expect(rate(3 * GB, 20e9), ORDER("8b-Q4_K_M", "8b-F16"),
           "took llama-3.1-8b-Q4_K_M.gguf: 8.0B Q4_K_M is partly read from disk, because nothing better fits; about ");
    expect(rate(GB / 64, 20e9), ORDER("8b-"), "took the built-in guide: no model fits");
}

/* The context counts, as far as nobody asked for one; the other is named. */
static void test_context_counts(void **state)
{
    const ebb_engine_opts asked = { .n_ctx = 4096 }, fast = { .mode = EBB_MODE_MAX_TPS };

    (void)state;
    hollow("llama-3.1-8b", "Q4_K_M");
    hollow("gemma-2-9b", "Q4_K_M");
    expect(rate_with(6 * GB + GB / 3, 30e9, 2e9, NULL), ORDER("llama-3.1-8b", "gemma-2-9b"),
           "fits with a context of 8192");
    expect(rate_with(6 * GB + GB / 3, 30e9, 2e9, &asked), ORDER("gemma-2-9b", "llama-3.1-8b"),
           "fits with a context of 4096");
    expect(rate_with(6 * GB + GB / 3, 30e9, 2e9, &fast), ORDER("gemma-2-9b", "llama-3.1-8b"),
           "fits with a context of ");
}

/* A larger model that streams little and is fast all the same goes before a small one that fits, which is named. */
static void test_streams_a_little(void **state)
{
    const ebb_engine_opts longest = { .mode = EBB_MODE_MAX_CONTEXT };

    (void)state;
    hollow("qwen2.5-7b", "Q4_K_M");
    hollow("llama-3.2-1b", "Q4_K_M");
    expect(rate_with(4 * GB, 30e9, 3e9, NULL), ORDER("qwen2.5-7b", "llama-3.2-1b"),
           " of 28 layers in memory, and still does about ");
    expect(rate_with(4 * GB, 30e9, 3e9, NULL), ORDER("qwen2.5-7b"), "; or llama-3.2-1b-Q4_K_M.gguf: context ");
    expect(rate_with(4 * GB, 30e9, 0.3e9, NULL), ORDER("llama-3.2-1b", "qwen2.5-7b"),
           "qwen2.5-7b-Q4_K_M.gguf would be read from disk: ");
    expect(rate_with(4 * GB, 30e9, 3e9, &longest), ORDER("qwen2.5-7b"), " tok/s after 32768 tokens");
}

static void test_small_ones(void **state)
{
    char path[128];
    FILE *f;
    rated r;

    (void)state;
    r = rate(GB, 20e9);
    assert_int_equal(r.n, 0);
    expect(r, (const char *const[]){ NULL }, "took the built-in guide: there is no model file");
    snprintf(path, sizeof path, "%s/broken.gguf", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("GGUF and no more", f);
    fclose(f);
    expect(rate(GB, 20e9), ORDER("broken"), "took the built-in guide: broken.gguf: ");
    tiny("large", EBB_TYPE_Q8_0, 12, 4096);
    expect(rate(GB / 4096, 20e9), ORDER("", ""), "guide: none of the 2 model files can be used; ebb plan says why");
    tiny("small", EBB_TYPE_Q8_0, 2, 512);
    r = rate(GB, 20e9);
    assert_non_null(strstr(r.r[2].why_not, "broken.gguf"));
    expect(r, ORDER("large", "small", "broken"), "took large.gguf: ");
    expect(rate_with(58 << 20, 20e9, 10e6, NULL), ORDER("small", "large"), "; large.gguf would be read from disk");
}

static const char *choose(const ebb_engine_opts *o, char why[400])
{
    static char got[200];
    ebb_buf text = { 0 };
    char *path;
    ebb_error err;

    if (ebb_models_choose(o, &path, &text, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    snprintf(got, sizeof got, "%s", path ? strrchr(path, '/') + 1 : "");
    snprintf(why, 400, "%s", ebb_buf_text(&text));
    ebb_buf_fini(&text);
    free(path);
    return got;
}

/* What should be ebb's own file, and a path that is in it. */
static void nothing_is_read_from_a_pipe(void)
{
    char path[96], got[8];
    ebb_buf chosen = { 0 };
    int fd;

    snprintf(path, sizeof path, "%s/ebb/model", dir);
    assert_int_equal(unlink(path) + mkfifo(path, 0600), 0);
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "/path", 5), 5);
    assert_false(ebb_models_remembered(&chosen));
    assert_int_equal(read(fd, got, sizeof got), 5);
    assert_int_equal(close(fd) + unlink(path), 0);
    ebb_buf_fini(&chosen);
}

/* What the user named is taken again as long as it runs. */
static void test_chosen(void **state)
{
    const ebb_engine_opts none = { 0 }, narrow = { .ram_bytes = 24 << 20 };
    char why[400], path[128];
    ebb_buf chosen = { 0 };
    ebb_error err;

    (void)state;
    assert_string_equal(choose(&none, why), "");
    assert_string_equal(why, "");                /* that there is no model is no news */
    tiny("large", EBB_TYPE_Q8_0, 12, 4096);
    assert_string_equal(choose(&none, why), "large.gguf");
    assert_string_equal(why, "");                /* there was nothing to choose */
    tiny("small", EBB_TYPE_Q8_0, 2, 512);
    assert_string_equal(choose(&none, why), "large.gguf");
    assert_non_null(strstr(why, "took large.gguf: "));
    snprintf(path, sizeof path, "%s/./small.gguf", dir);
    assert_int_equal(ebb_models_remember(path, &err), EBB_OK);
    assert_true(ebb_models_remembered(&chosen));
    assert_null(strstr(chosen.data, "/./"));
    ebb_buf_fini(&chosen);
    assert_string_equal(choose(&none, why), "small.gguf");
    assert_string_equal(why, "took small.gguf, as last time; -m auto chooses again");
    assert_string_equal(choose(&narrow, why), "");
    assert_non_null(strstr(why, "small.gguf, which was chosen last, is not used: "));
    assert_int_equal(unlink(path), 0);
    assert_string_equal(choose(&none, why), "large.gguf");
    assert_non_null(strstr(why, "small.gguf, which was chosen last, is not used: "));
    assert_int_equal(ebb_models_remember(path, &err), EBB_NOTFOUND);
    assert_int_equal(ebb_models_remember(NULL, &err), EBB_OK);
    assert_false(ebb_models_remembered(&chosen));
    ebb_buf_fini(&chosen);
    nothing_is_read_from_a_pipe();
}

/* The one that was chosen last is planned as the engine will: where K and V cannot go to a file, it is not taken on
 * the strength of one. */
static void test_chosen_without_a_folder(void **state)
{
    char why[400], path[128], kv[96];
    ebb_engine_opts o = { .n_ctx = 4096, .n_batch = 64, .n_threads = 1, .no_kv_cache = true, .ram_bytes = 1 << 20,
                          .has_kv = true, .kv_k = EBB_KV_Q8_0, .kv_v = EBB_KV_Q8_0, .kv_cache_dir = kv };
    ebb_tiny_opts tiny = { .type = EBB_TYPE_Q8_0, .n_layers = 8, .n_embd = 512, .n_head = 8, .n_head_kv = 8,
                           .n_ff = 512, .n_ctx = 4096 };
    ebb_machine machine;
    ebb_error err;
    ebb_model *m;
    ebb_plan p;

    (void)state;
    snprintf(path, sizeof path, "%s/wide.gguf", dir);
    snprintf(kv, sizeof kv, "%s/kv", dir);
    assert_true(ebb_tiny_write(&tiny, path));
    assert_int_equal(mkdir(kv, 0700), 0);
    assert_int_equal(ebb_model_open(path, &m, &err), EBB_OK);
    assert_int_equal(ebb_machine_probe(NULL, false, &machine, &err), EBB_OK);
    assert_int_equal(ebb_plan_make(m, &o, &machine, &p, &err), EBB_OK);
    ebb_model_close(m);
    o.ram_bytes = p.min_bytes - p.kv_bytes / 2;
    o.no_kv_cache = false;
    assert_int_equal(ebb_models_remember(path, &err), EBB_OK);
    assert_string_equal(choose(&o, why), "wide.gguf");
    assert_string_equal(why, "took wide.gguf, as last time; -m auto chooses again");
    assert_int_equal(chmod(kv, 0777), 0);        /* no place for a conversation */
    assert_string_equal(choose(&o, why), "");
    assert_non_null(strstr(why, "wide.gguf, which was chosen last, is not used: "));
}

/* Whoever waits for the list does not wait for headers without end: what was not opened in time is there, and last. */
static void test_a_time_for_all(void **state)
{
    ebb_machine machine = { .available_bytes = GB, .available_why = "a test", .n_cpus = 2, .memory_bytes_s = 20e9,
                            .disk_bytes_s = 2e9, .int8_mac_s = 200e9 };
    ebb_model_file *files;
    ebb_model_rating *r;
    ebb_error err;
    size_t n;

    (void)state;
    tiny("one", EBB_TYPE_Q8_0, 1, 512);
    tiny("two", EBB_TYPE_Q8_0, 2, 512);
    assert_int_equal(ebb_models_find(&files, &n, &err), EBB_OK);
    assert_int_equal(ebb_models_rate(files, n, NULL, &machine, false, 1e-9, &r, &err), EBB_OK);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < n; i++) {
        assert_non_null(strstr(r[i].why_not, "not rated"));
        assert_non_null(strstr(r[i].file.path, i == 0 ? "one" : "two"));
        assert_int_equal(r[i].n_params, 0);
    }
    ebb_models_rating_free(r, n);
}

/* Of a pre-tokenizer that nobody here knows: said as what it is, and not taken. */
static void test_tokenizer(void **state)
{
    ebb_tiny_opts o = { .n_embd = 512, .n_layers = 1 };
    size_t n;
    char *bytes = ebb_tiny_bytes(&o, &n), *name = memmem(bytes, n, "gpt-2", 5), *path, file[96];
    const ebb_engine_opts opts = { 0 };
    ebb_buf why = { 0 };
    ebb_error err = { 0 };
    ebb_model *m;
    FILE *f;

    (void)state;
    assert_non_null(name);
    name[4] = '9';
    snprintf(file, sizeof file, "%s/odd.gguf", dir);
    f = fopen(file, "w");
    assert_true(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
    path = strdup(file);
    assert_int_equal(ebb_models_open(&opts, &path, &m, &why, &err), EBB_UNSUPPORTED);
    assert_null(m);
    assert_non_null(strstr(err.msg, "pre-tokenizer 'gpt-9' (tokenizer.ggml.pre) is not supported"));
    free(path);
    ebb_buf_fini(&why);
    expect(rate(64 * GB, 20e9), ORDER("odd"), "took the built-in guide");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, models_folder_setup, models_folder_teardown)
    const struct CMUnitTest tests[] = {
        T(test_real_shapes), T(test_streams_if_nothing_fits), T(test_context_counts), T(test_streams_a_little),
        T(test_small_ones), T(test_chosen), T(test_chosen_without_a_folder), T(test_a_time_for_all),
        T(test_tokenizer),
    };
    return cmocka_run_group_tests_name("models_rate", tests, NULL, NULL);
}
