/* Answers that go on unseen: what is kept, what is told, and that the process ends. */
#include "chat_fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* In a process of its own: ask, let the terminal vanish, linger, leave.  Its wait status. */
static int leave(uint32_t limit_s, uint32_t grace_s, bool hangs)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        ebb_chat *c = open_ready(NULL);
        ebb_error err;

        if (ebb_chat_send(c, "go", 2, &err) != EBB_OK)
            _exit(9);
        bool has_ended = ebb_chat_linger(c, &(ebb_linger){ .limit_s = limit_s, .grace_s = grace_s, .stop_fd = -1, .asked_fd = -1 });
        while (hangs)
            pause();
        ebb_chat_close(c);
        _exit(has_ended ? 0 : 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* What -c says, and then never again. */
static void expect_told(const char *want)
{
    char text[256];
    ebb_chat *c = open_chat(&(ebb_chat_opts){ .continue_last = true });

    assert_true(fake_wait(c, EBB_EVENT_NOTICE, text, sizeof text));
    assert_string_equal(text, want);
    ebb_chat_close(c);
    c = open_chat(&(ebb_chat_opts){ .continue_last = true });
    for (ebb_chat_event ev; fake_next(c, &ev) && ev.kind != EBB_EVENT_READY;)
        assert_int_not_equal(ev.kind, EBB_EVENT_NOTICE);
    ebb_chat_close(c);
}

static void test_finished_unseen(void **state)
{
    (void)state;
    script.delay_us = 20000;
    assert_int_equal(leave(10, 10, false), 0);
    script.delay_us = 0;
    expect_told("answer finished while you were away (3 tokens)");
}

/* At the limit it is stopped, and what there is is saved. */
static void test_limit(void **state)
{
    double t0 = ebb_clock_s();
    int status;

    (void)state;
    script.hold_at = 3;
    status = leave(1, 10, false);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    assert_true(ebb_clock_s() - t0 >= 1 && ebb_clock_s() - t0 < 4);
    script.hold_at = 0;
    expect_told("the terminal went away and the answer was stopped (2 tokens); /continue goes on with it");
}

/* Whatever holds the process up: it does not outlive its time. */
static void test_no_orphan(void **state)
{
    double t0 = ebb_clock_s();
    int status;

    (void)state;
    script.hold_at = 3;
    status = leave(1, 1, true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    assert_true(ebb_clock_s() - t0 < 5);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = { T(test_finished_unseen), T(test_limit), T(test_no_orphan) };

    return cmocka_run_group_tests_name("chat away", tests, NULL, NULL);
}
