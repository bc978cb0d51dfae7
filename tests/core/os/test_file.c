/* Files that are written as a whole: the old content or the new, and errors that name what was asked for. */
#include "ebb_test.h"

#include <dirent.h>
#include <sys/stat.h>

#include "os/fault.h"
#include "os/file.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "build/test_file.%d", (int)getpid());
    return mkdir(dir, 0700);
}

static int teardown(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    unlink(path);
    return rmdir(dir);
}

static size_t count_files(void)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;                                /* . and .. */
}

static void assert_holds(const char *path, const char *want)
{
    ebb_buf text = { 0 };

    assert_int_equal(ebb_file_slurp(path, 100, &text, NULL), EBB_OK);
    assert_string_equal(ebb_buf_text(&text), want);
    ebb_buf_fini(&text);
}

static void test_old_or_new(void **state)
{
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/a", dir);
    assert_int_equal(ebb_file_replace(path, "old", 3, NULL), EBB_OK);
    for (int n = 1;; n++) {
        ebb_status st;
        bool reached;

        ebb_os_fail_nth(n);
        st = ebb_file_replace(path, "new", 3, NULL);
        reached = ebb_os_fail_off();
        assert_int_equal(count_files(), 1);      /* nothing is left beside it */
        if (!reached) {
            assert_true(n > 3);                  /* opened, written, synced, renamed */
            assert_int_equal(st, EBB_OK);
            break;
        }
        assert_int_not_equal(st, EBB_OK);
        assert_holds(path, "old");
    }
    assert_holds(path, "new");
}

static void test_the_folder_is_not_there(void **state)
{
    char path[128];
    ebb_error err = { 0 };

    (void)state;
    snprintf(path, sizeof path, "%s/none/a.md", dir);
    assert_int_equal(ebb_file_replace(path, "x", 1, &err), EBB_NOTFOUND);
    assert_non_null(strstr(err.msg, "none/a.md: its folder is not there"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_or_new),
        cmocka_unit_test(test_the_folder_is_not_there),
    };

    return cmocka_run_group_tests_name("file", tests, setup, teardown);
}
