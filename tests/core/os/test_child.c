/* A command ends with what it has started. */
#include "ebb_test.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/child.h"

enum { PATIENCE_MS = 10000 };

/* Start the script, and wait until it has said a line; the end of a socket that it and all that it starts hold. */
static int start_script(const char *script, ebb_child *c)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    char byte = 0;
    int ends[2];
    ebb_error err;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    if (ebb_child_start((char *const *)argv, ends[1], c, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    close(ends[1]);
    while (byte != '\n')
        assert_int_equal(read(ends[0], &byte, 1), 1);
    return ends[0];
}

/* Nobody holds the other end any more. */
static void expect_nobody(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char byte;

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

static void expect_end(const char *script)
{
    ebb_child c;
    int fd = start_script(script, &c);

    ebb_child_end(&c);
    assert_int_equal(c.pid, 0);
    expect_nobody(fd);
}

static void test_it_ends(void **state)
{
    (void)state;
    expect_end("echo here; exec sleep 1000");
    expect_end("trap '' TERM; echo here; while :; do sleep 1000; done");
    ebb_child_end(&(ebb_child){ .fd = -1, .err_fd = -1 });
}

static void test_what_it_started_ends(void **state)
{
    (void)state;
    expect_end("(trap '' TERM; echo here; while :; do sleep 1000; done) & wait");
}

static void test_last_line(void **state)
{
    static const char *const cases[][2] = {
        { "", NULL }, { "\r\n \n", NULL }, { "one", "one" }, { "one\n", "one" },
        { "one\ntwo  words\r\n\n", "two  words" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_buf words = { 0 };
        const char *last;

        assert_true(ebb_buf_adds(&words, cases[i][0]));
        last = ebb_child_last_line(&words);
        if (cases[i][1])
            assert_string_equal(last, cases[i][1]);
        else
            assert_null(last);
        ebb_buf_fini(&words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_ends),
        cmocka_unit_test(test_what_it_started_ends),
        cmocka_unit_test(test_last_line),
    };

    return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
