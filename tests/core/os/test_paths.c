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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variable_wins),
        cmocka_unit_test(test_relative_is_ignored),
        cmocka_unit_test(test_nowhere),
    };
    return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
