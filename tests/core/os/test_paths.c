/* The XDG base directories. */
#include "ebb_test.h"

#include <sys/stat.h>
#include <unistd.h>

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

static void expect_run(const char *runtime, const char *want)
{
    ebb_buf b = { 0 };
    ebb_error err;

    setenv("XDG_RUNTIME_DIR", runtime, 1);
    assert_int_equal(ebb_path_run(&b, &err), EBB_OK);
    assert_string_equal(b.data, want);
    ebb_buf_fini(&b);
}

/* Sockets and drafts have a folder also when the login has ended whose folder the variable names, and after su. */
static void test_run(void **state)
{
    char dir[] = "/tmp/ebb-paths-XXXXXX", own[64], below[80];
    bool is_root = geteuid() == 0;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(own, sizeof own, "%s/run", dir);
    snprintf(below, sizeof below, "%s/ebb", own);
    setenv("HOME", "/home/u", 1);
    unsetenv("XDG_STATE_HOME");
    expect_run("run", "/home/u/.local/state/ebb/run");
    expect_run("/proc/gone", "/home/u/.local/state/ebb/run");
    expect_run("/dev/null", "/home/u/.local/state/ebb/run");
    expect_run(own, below);                      /* not there yet */
    expect_run(own, below);
    if (is_root)
        assert_int_equal(chown(own, 1, 1), 0);
    expect_run(is_root ? own : "/", "/home/u/.local/state/ebb/run");
    if (is_root)
        assert_int_equal(chown(own, 0, 0), 0);
    assert_int_equal(mkdir(below, 0700), 0);
    expect_run(own, below);
    if (is_root) {
        assert_int_equal(chown(below, 1, 1), 0);
        expect_run(own, "/home/u/.local/state/ebb/run");
    }
    unsetenv("XDG_RUNTIME_DIR");
    assert_true(rmdir(below) == 0 && rmdir(own) == 0 && rmdir(dir) == 0);
}

static void expect_paths(const char *list, const char *const *paths)
{
    ebb_buf one = { 0 };

    while (ebb_path_next(&list, &one)) {
        assert_non_null(*paths);
        assert_string_equal(one.data, *paths++);
    }
    assert_null(*paths);
    assert_false(one.failed);
    ebb_buf_fini(&one);
}

static void test_list(void **state)
{
    (void)state;
    expect_paths("/a:b/c:d.gguf", (const char *const[]){ "/a", "b/c", "d.gguf", NULL });
    expect_paths("::/a::/b:", (const char *const[]){ "/a", "/b", NULL });
    expect_paths("/a", (const char *const[]){ "/a", NULL });
    expect_paths(":", (const char *const[]){ NULL });
    expect_paths("", (const char *const[]){ NULL });
    expect_paths(NULL, (const char *const[]){ NULL });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variable_wins),
        cmocka_unit_test(test_relative_is_ignored),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_home),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests_name("paths", tests, NULL, NULL);
}
