/* Models of which only the beginning is there. */
#include "ebb_test.h"

#include "ebb/experimental/inspect.h"
#include "ebb/experimental/plan.h"
#include "support/tiny_model.h"

static char path[] = "/tmp/ebb-begun-XXXXXX";
static char *bytes;
static size_t n_bytes;

static int setup(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    close(fd);
    bytes = ebb_tiny_bytes(&(ebb_tiny_opts){ 0 }, &n_bytes);
    return fd >= 0 && bytes ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(bytes);
    return unlink(path);
}

static void put_file(size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static ebb_status open_partial(size_t n, ebb_model **m, ebb_error *err)
{
    size_t i = 99;
    ebb_status st;

    put_file(n);
    st = ebb_model_open_partial(&(ebb_partial_file){ path, "tiny.gguf", n_bytes }, 1, &i, m, err);
    assert_int_equal(i, 0);
    return st;
}

/* BUSY until the header is there, then the same plan as of the whole file. */
static void test_plan_of_a_beginning(void **state)
{
    ebb_machine machine = { .available_bytes = (uint64_t)1 << 30, .n_cpus = 2 };
    ebb_engine_opts opts = { 0 };
    ebb_model *m, *whole;
    ebb_plan a, b;
    size_t n = 1;
    ebb_error err = { 0 };

    (void)state;
    while (open_partial(n, &m, &err) == EBB_BUSY) {
        assert_null(m);
        assert_non_null(strstr(err.msg, "tiny.gguf"));
        n += n / 2 + 1;
        assert_true(n < n_bytes / 2);
    }
    assert_non_null(m);
    put_file(n_bytes);
    assert_int_equal(ebb_model_open(path, &whole, NULL), EBB_OK);
    assert_memory_equal(ebb_model_get_info(m)->fingerprint, ebb_model_get_info(whole)->fingerprint, 16);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    assert_int_equal(ebb_plan_make(m, &opts, &machine, &a, NULL), EBB_OK);
    assert_int_equal(ebb_plan_make(whole, &opts, &machine, &b, NULL), EBB_OK);
    assert_int_equal(a.total_bytes, b.total_bytes);
    assert_int_equal(a.n_ctx, b.n_ctx);
    assert_string_equal(a.why, b.why);
    ebb_model_close(m);
    ebb_model_close(whole);
}

static void test_what_cannot_be(void **state)
{
    ebb_model *m;
    ebb_error err = { 0 };
    size_t i, n = n_bytes;

    (void)state;
    n_bytes /= 2;                                /* the file that is promised is too short for its tensors */
    assert_int_equal(open_partial(n_bytes, &m, &err), EBB_FORMAT);
    n_bytes = n;
    bytes[0] = '<';
    assert_int_equal(open_partial(100, &m, &err), EBB_UNSUPPORTED);
    bytes[0] = 'G';
    unlink(path);
    assert_int_equal(ebb_model_open_partial(&(ebb_partial_file){ path, "tiny.gguf", n_bytes }, 1, &i, &m, &err),
                     EBB_BUSY);
    put_file(n_bytes);
    /* One file of a model in one file cannot be a part of two. */
    assert_int_equal(
        ebb_model_open_partial((ebb_partial_file[]){ { path, "a", n_bytes }, { path, "b", n_bytes } }, 2, &i, &m, &err),
        EBB_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_of_a_beginning),
        cmocka_unit_test(test_what_cannot_be),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
