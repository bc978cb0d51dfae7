/* An alarm: it can be rung, it ends by itself, it hears of a cgroup where one can be made; what the system refuses is
 * left out. */
#include "ebb_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "os/alarm.h"
#include "os/fault.h"
#include "os/file.h"

#define MIB ((size_t)1 << 20)

static const ebb_limits_gauge none = { .fd = -1, .machine_fd = -1, .limit_bytes = EBB_LIMIT_NONE };

static void *ring(void *arg)
{
    ebb_alarm_ring(arg);
    return NULL;
}

static void test_bell(void **state)
{
    ebb_alarm *a;
    pthread_t t;

    (void)state;
    assert_int_equal(ebb_alarm_open(&none, 0, &a, NULL), EBB_OK);
    ebb_alarm_wait(a, 1);                        /* nobody rings: it ends */
    ebb_alarm_ring(a);
    ebb_alarm_ring(a);
    ebb_alarm_wait(a, -1);                       /* rung before: at once */
    assert_int_equal(pthread_create(&t, NULL, ring, a), 0);
    ebb_alarm_wait(a, -1);
    pthread_join(t, NULL);
    ebb_alarm_close(a);
    ebb_alarm_close(NULL);
}

static void test_refused(void **state)
{
    (void)state;
    for (int n = 1; n < 5; n++) {
        ebb_error err = { 0 };
        ebb_alarm *a;
        ebb_status st;

        ebb_os_fail_nth(n);
        st = ebb_alarm_open(&none, 0, &a, &err);
        ebb_os_fail_off();
        if (st == EBB_OK) {
            ebb_alarm_ring(a);
            ebb_alarm_wait(a, -1);
        } else {
            assert_int_not_equal(err.msg[0], 0);
            assert_null(a);
        }
        ebb_alarm_close(a);
    }
}

static bool write_to(const char *dir, const char *name, const char *text)
{
    char path[160];
    bool ok;
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (ebb_file_open(path, EBB_FILE_UPDATE, &fd, NULL) != EBB_OK)
        return false;
    ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return ok;
}

/* A child that takes 40 MiB as soon as there is a byte in the pipe. */
static pid_t start_eater(int go)
{
    pid_t pid = fork();
    char *p, c;

    if (pid != 0)
        return pid;
    p = mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || read(go, &c, 1) != 1)
        _exit(1);
    for (size_t i = 0; i < 40 * MIB; i += 4096)
        p[i] = 1;
    _exit(0);
}

/* A process in a group of 64 MiB takes 40: the mark, at 32, tells. */
static void test_cgroup(void **state)
{
    ebb_limits_gauge g = { .fd = -1, .machine_fd = -1, .limit_bytes = 64 * MIB };
    char dir[80], path[120], text[24];
    int status, pipes[2];
    ebb_alarm *a;
    bool is_ours;
    double begin;
    pid_t pid;

    (void)state;
    snprintf(dir, sizeof dir, "/sys/fs/cgroup/memory/ebb-alarm.%d", (int)getpid());
    if (mkdir(dir, 0755) != 0)
        skip();                                  /* no version 1, or not ours */
    assert_int_equal(pipe(pipes), 0);
    pid = start_eater(pipes[0]);
    assert_true(pid > 0);
    snprintf(text, sizeof text, "%d", (int)pid);
    is_ours = write_to(dir, "memory.limit_in_bytes", "67108864") && write_to(dir, "cgroup.procs", text);
    snprintf(g.dir, sizeof g.dir, "%s", dir);
    snprintf(path, sizeof path, "%s/memory.usage_in_bytes", dir);
    if (is_ours && ebb_file_open(path, EBB_FILE_READ, &g.fd, NULL) == EBB_OK) {
        assert_int_equal(ebb_alarm_open(&g, 32 * MIB, &a, NULL), EBB_OK);
        assert_true(ebb_alarm_has_events(a));
        ebb_alarm_wait(a, 0);
        begin = ebb_clock_s();
        assert_int_equal(write(pipes[1], "", 1), 1);
        ebb_alarm_wait(a, EBB_TEST_WAIT_S * 1000);
        assert_true(ebb_clock_s() - begin < EBB_TEST_WAIT_S);
        ebb_alarm_close(a);
        ebb_limits_gauge_close(&g);
    } else {
        is_ours = false;
    }
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(rmdir(dir), 0);
    if (!is_ours)
        skip();                                  /* a group that takes no process, as in some containers */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bell),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cgroup),
    };

    return cmocka_run_group_tests_name("alarm", tests, NULL, NULL);
}
