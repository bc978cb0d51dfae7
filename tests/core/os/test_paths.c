/* The XDG base directories. */
#include "ebb_test.h"

#include "os/paths.h"

static void test_variable_wins(void **state)
{
    ebb_buf b = { 0 };
    ebb_error err;

    (void)state;
    setenv("HOME", "/home/u", 1);
    setenv("XDG_STATE_HOME", "/s", 1);
    assert_int_equal(ebb_path_in(EBB_DIR_STATE, "sessions.db", &b, &err), EBB_OK);
    assert_string_equal(b.data, "/s/ebb/sessions.db");
    ebb_buf_fini(&b);
}

static void test_relative_is_ignored(void **state)
{
    ebb_buf b = { 0 };
    ebb_error err;

    (void)state;
    setenv("HOME", "/home/u", 1);
    setenv("XDG_CACHE_HOME", "cache", 1);
    assert_int_equal(ebb_path_in(EBB_DIR_CACHE, NULL, &b, &err), EBB_OK);
    assert_string_equal(b.data, "/home/u/.cache/ebb");
    ebb_buf_fini(&b);
}

static void test_nowhere(void **state)
{
    ebb_buf b = { 0 };
    ebb_error err;

    (void)state;
    unsetenv("HOME");
    unsetenv("XDG_DATA_HOME");
    assert_int_equal(ebb_path_in(EBB_DIR_DATA, NULL, &b, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "XDG_DATA_HOME"));
    ebb_buf_fini(&b);
}

static void test_home(void **state)
{
    static const char *const pairs[][2] = {
        { "~/m/x.gguf", "/home/u/m/x.gguf" }, { "~", "~" }, { "~other/x", "~other/x" }, { "a~/b", "a~/b" }
    };
    ebb_buf b = { 0 };
    ebb_error err;

    (void)state;
    setenv("HOME", "/home/u", 1);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(ebb_path_expand(pairs[i][0], &b, &err), EBB_OK);
        assert_string_equal(b.data, pairs[i][1]);
    }
    unsetenv("HOME");
    assert_int_equal(ebb_path_expand("~/x", &b, &err), EBB_OK);
    assert_string_equal(b.data, "~/x");
    ebb_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variable_wins),
        cmocka_unit_test(test_relative_is_ignored),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_home),
    };
    return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
