#include "fake_root.h"

#include <signal.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fault.h"
#include "os/proc.h"

static const char status_text[] =
    "Name:\tebb\nVmPeak:\t  999 kB\nVmHWM:\t    4096 kB\nVmRSS:\t 3000 kB\nRssAnon:\t    1024 kB\n"
    "RssFile:\t    2048 kB\nRssShmem:\t       4 kB\nVmSwap:\t       8 kB\n";

static void test_figures(void **state)
{
    ebb_proc p;

    (void)state;
    fake_root_put("/proc/self/status", status_text);
    fake_root_put("/proc/self/stat", "77 (a ) (b) 1) S 1 2 3 4 5 6 700 8 1234 10 11\n");
    fake_root_put("/proc/self/io", "rchar: 5\nwchar: 6\nread_bytes: 65536\nwrite_bytes: 7\n");
    assert_int_equal(ebb_proc_read(fake_root, &p, NULL), EBB_OK);
    assert_int_equal(p.rss_anon_bytes, 1024 * 1024);
    assert_int_equal(p.rss_file_bytes, 2048 * 1024);
    assert_int_equal(p.rss_shmem_bytes, 4096);
    assert_int_equal(p.rss_peak_bytes, 4096 * 1024);
    assert_int_equal(p.swap_bytes, 8192);
    assert_int_equal(p.n_major_faults, 1234);
    assert_int_equal(p.read_bytes, 65536);
}

static void test_what_is_hidden_is_zero(void **state)
{
    ebb_error err = { 0 };
    ebb_proc p;

    (void)state;
    fake_root_put("/proc/self/status", "Name:\tebb\nVmHWM:\tgarbage\n");
    fake_root_put("/proc/self/stat", "no parenthesis\n");
    assert_int_equal(ebb_proc_read(fake_root, &p, &err), EBB_OK);
    assert_int_equal(p.rss_peak_bytes, 0);
    assert_int_equal(p.n_major_faults, 0);
    assert_int_equal(p.read_bytes, 0);
    fake_root_clear(NULL);
    assert_int_equal(ebb_proc_read(fake_root, &p, &err), EBB_NOTFOUND);
}

static void test_disk_use(void **state)
{
    uint64_t bytes = 7;

    (void)state;
    fake_root_put("/sys/dev/block/8:1/stat", "   10  0  2048  5  3  0  16  1  0  6  6\n");
    fake_root_put("/sys/dev/block/8:2/stat", "   10  0\n");
    assert_true(ebb_disk_use_read(fake_root, makedev(8, 1), &bytes));
    assert_int_equal(bytes, 2064 * 512);
    assert_false(ebb_disk_use_read(fake_root, makedev(8, 2), &bytes));
    assert_false(ebb_disk_use_read(fake_root, makedev(0, 40), &bytes));
    assert_int_equal(bytes, 0);
}

static void test_fields(void **state)
{
    static const char text[] = "inactive_file 12\nfile 7\ntotal_file 9\nA:   3 kB\nB: max\nfile_mapped 8\n";
    uint64_t v = 99;

    (void)state;
    assert_true(ebb_proc_field(text, "file", &v) && v == 7);
    assert_true(ebb_proc_field(text, "A:", &v) && v == 3072);
    assert_true(ebb_proc_field(text, "file_mapped", &v) && v == 8);
    assert_false(ebb_proc_field(text, "B:", &v));
    assert_false(ebb_proc_field(text, "absent", &v));
    assert_false(ebb_proc_field("", "", &v));
    assert_int_equal(v, 8);
}

/* The real one: memory that is touched shows up as ours. */
static void test_this_process(void **state)
{
    const size_t n = 32 << 20;
    ebb_proc before, after;
    char *p;

    (void)state;
    assert_int_equal(ebb_proc_read(NULL, &before, NULL), EBB_OK);
    p = malloc(n);
    assert_non_null(p);
    memset(p, 1, n);
    assert_int_equal(ebb_proc_read(NULL, &after, NULL), EBB_OK);
    assert_true(after.rss_anon_bytes >= before.rss_anon_bytes + n * 9 / 10);
    assert_true(after.rss_peak_bytes >= after.rss_anon_bytes * 9 / 10);
    free(p);
}

static void test_survives_every_fault(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        ebb_error err = { 0 };
        ebb_proc p;
        ebb_os_fail_nth(n);
        ebb_status st = ebb_proc_read(NULL, &p, &err);
        bool reached = ebb_os_fail_off();
        assert_true(st == EBB_OK || err.msg[0] != '\0');
        if (!reached)
            break;
    }
}

static void test_stopped(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    assert_false(ebb_proc_is_stopped(pid));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status) && ebb_proc_is_stopped(pid));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
    assert_false(ebb_proc_is_stopped(pid));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(ebb_proc_is_stopped(pid));      /* there is none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_figures, fake_root_clear),
        cmocka_unit_test_teardown(test_what_is_hidden_is_zero, fake_root_clear),
        cmocka_unit_test_teardown(test_disk_use, fake_root_clear),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_this_process),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_survives_every_fault),
    };
    return cmocka_run_group_tests_name("proc", tests, fake_root_make, fake_root_drop);
}
