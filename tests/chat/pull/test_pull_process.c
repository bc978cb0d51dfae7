/* An `ebb pull` beside this process is followed without waiting for it. */
#include "ebb_test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pull/pull_process.h"
#include "support/own_folder.h"

static char dir[64], program[80], go[88];

static int setup(void **state)
{
    (void)state;
    if (ebb_own_folder(dir, sizeof dir, "/tmp/ebb-pull-XXXXXX") != 0)
        return -1;
    snprintf(program, sizeof program, "%s/ebb", dir);
    snprintf(go, sizeof go, "%s.go", program);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return ebb_own_folder_end(dir);
}

static void make_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* It says no more, but ends only when it may (or after ten seconds, so that nothing hangs). */
static void test_the_end_is_not_waited_for(void **state)
{
    ebb_pull_process p = { 0 };
    ebb_pull_event e;
    ebb_error err;
    struct pollfd output;

    (void)state;
    make_file(program, "#!/bin/sh\nexec >&-\ni=0\nwhile [ ! -e \"$0.go\" ] && [ $i -lt 100 ]; do\n"
                       "    sleep 0.1; i=$((i + 1))\ndone\nexit 3\n", 0700);
    if (ebb_pull_process_start(&p, program, "owner/name:Q8_0", 0, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    output = (struct pollfd){ .fd = p.fd, .events = POLLIN };
    assert_int_equal(poll(&output, 1, -1), 1);
    assert_false(ebb_pull_process_next(&p, &e));
    assert_true(ebb_pull_process_is_running(&p));
    assert_int_equal(p.fd, -1);                  /* or whoever polls it would never rest */
    make_file(go, "", 0600);
    while (!ebb_pull_process_next(&p, &e)) {
        assert_true(ebb_pull_process_is_running(&p));
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    assert_int_equal(e.kind, EBB_PULL_ERROR);
    assert_string_equal(e.text, "ebb pull ended with exit status 3");
    assert_false(ebb_pull_process_is_running(&p));
    ebb_pull_process_fini(&p);
}

/* Nobody reads for a while (Ctrl-Z): what fills the pipe, and what waits behind it, is all read then. */
static void test_a_full_pipe_is_read_whole(void **state)
{
    enum { N_LINES = 1000 };
    ebb_pull_process p = { 0 };
    ebb_pull_event e = { 0 };
    int n = 0, waiting = 0;

    (void)state;
    make_file(program, "#!/bin/sh\ni=0\nwhile [ $i -lt 1000 ]; do\n"
                       "    printf '{\"event\":\"notice\",\"text\":\"%0200d\"}\\n' $i; i=$((i + 1))\ndone\n"
                       "echo '{\"event\":\"done\",\"file\":\"t.gguf\",\"path\":\"/t.gguf\"}'\n", 0700);
    assert_int_equal(ebb_pull_process_start(&p, program, "owner/name:Q8_0", 0, NULL), EBB_OK);
    while (waiting < 60000) {
        assert_int_equal(ioctl(p.fd, FIONREAD, &waiting), 0);
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
    }
    while (!p.is_done) {
        if (!ebb_pull_process_next(&p, &e))
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        else if (e.kind == EBB_PULL_NOTICE)
            assert_int_equal(atoi(e.text), n++);
    }
    assert_int_equal(n, N_LINES);
    assert_string_equal(e.path, "/t.gguf");
    ebb_pull_process_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_end_is_not_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_pipe_is_read_whole, setup, teardown),
    };

    return cmocka_run_group_tests_name("pull process", tests, NULL, NULL);
}
