/* Signals as bytes: what is left of them in a storm, when the terminal takes nothing, and when it is gone. */
#include "ebb_test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "term/signals.h"

static bool waits(void)
{
    struct pollfd p = { .fd = ebb_signals_fd(), .events = POLLIN };

    return poll(&p, 1, 0) > 0;
}

/* Signals are of a process: each of these has its own, and its exit status says whether it was as expected. */
static void in_a_child(bool (*is_right)(void))
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(ebb_signals_open() && is_right() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool all_are_caught(void)
{
    bool ok = !waits() && ebb_signals_next() == 0;

    raise(SIGWINCH);
    raise(SIGHUP);
    ok &= waits() && ebb_signals_next() == SIGWINCH && ebb_signals_next() == SIGHUP;
    return ok && !waits();
}

/* nohup(1) and `trap '' HUP`: neither caught meanwhile nor deadly afterwards. */
static bool who_ignores_a_hangup_keeps_that(void)
{
    bool ok = true;

    ebb_signals_close();
    signal(SIGHUP, SIG_IGN);
    ok &= ebb_signals_open();
    raise(SIGHUP);
    ok &= !waits();
    ebb_signals_close();
    raise(SIGHUP);
    return ok && signal(SIGHUP, SIG_DFL) == SIG_IGN && ebb_signals_open() && raise(SIGHUP) == 0 && waits();
}

/* A shell that dies with the line: SIGHUP twice, and SIGCONT behind it, before and after one has looked. */
static bool nobody_ends_an_answer_by_chance(void)
{
    static const int by_the_way[] = { SIGHUP, SIGCONT, SIGWINCH, SIGINT, SIGQUIT, SIGTSTP };
    bool ok = true;

    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof by_the_way / sizeof *by_the_way; i++)
            raise(by_the_way[i]);
        ebb_signals_leave_terminal();
        ok &= !waits();
    }
    ebb_signals_close();
    ok &= ebb_signals_open();
    raise(SIGCONT);
    raise(SIGHUP);
    ok &= !waits();
    raise(SIGTERM);
    return ok && waits() && ebb_signals_next() == SIGTERM;
}

static bool an_end_that_was_asked_for_counts(void)
{
    raise(SIGTERM);
    raise(SIGCONT);
    ebb_signals_leave_terminal();
    return waits() && ebb_signals_next() == SIGTERM && !waits();
}

/* Who looks on elsewhere may want the answer stopped. */
static bool a_stop_counts(void)
{
    raise(SIGUSR1);
    raise(SIGHUP);
    ebb_signals_leave_terminal();
    return waits() && ebb_signals_next() == SIGUSR1 && !waits();
}

/* A thread that a signal had caught before may write its byte late. */
static bool only_requests_are_requests(void)
{
    bool ok = ebb_signals_next_request() == 0;

    raise(SIGCONT);
    raise(SIGHUP);
    ok &= ebb_signals_next_request() == 0 && !waits();
    raise(SIGCHLD);
    raise(SIGTERM);
    raise(SIGUSR1);
    return ok && ebb_signals_next_request() == SIGTERM && ebb_signals_next_request() == SIGUSR1 && !waits();
}

/* More resizes than a pipe has room for, while nobody looks. */
static bool a_storm_hides_nothing(void)
{
    bool ok = true;

    for (int i = 0; i < 100000; i++)
        raise(SIGWINCH);
    raise(SIGTERM);
    ok &= ebb_signals_next() == SIGWINCH && ebb_signals_next() == SIGTERM && !waits();
    raise(SIGWINCH);
    return ok && ebb_signals_next() == SIGWINCH && !waits();
}

static void *end_what_hangs(void *arg)
{
    (void)arg;
    sleep(EBB_TEST_WAIT_S);
    _exit(1);
}

/* Nobody reads what is written: the write that waits goes on two seconds after SIGTERM, and so does the next one. */
static bool a_terminal_that_takes_nothing(void)
{
    static const char screen[256 << 10];
    pthread_t watch;
    int ends[2];

    return pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], STDOUT_FILENO) >= 0 &&
           pthread_create(&watch, NULL, end_what_hangs, NULL) == 0 && raise(SIGTERM) == 0 &&
           write(STDOUT_FILENO, screen, sizeof screen) > 0 &&
           write(STDOUT_FILENO, screen, sizeof screen) == (ssize_t)sizeof screen && ebb_signals_next() == SIGTERM;
}

/* As if SIGCONT waited in a thread that sleeps. */
static bool a_stop_is_one_though_nothing_tells(void)
{
    sigset_t cont;

    sigemptyset(&cont);
    sigaddset(&cont, SIGCONT);
    return setpgid(0, 0) == 0 && pthread_sigmask(SIG_BLOCK, &cont, NULL) == 0 && ebb_signals_stop();
}

/* What a shell does with a job. */
static void stops(void **state)
{
    const char *runs = getenv("EBB_RUN");
    pid_t pid;
    int status;

    (void)state;
    if (runs && strstr(runs, "valgrind"))        /* which stops nothing */
        skip();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(ebb_signals_open() && a_stop_is_one_though_nothing_tells() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void storms(void **state)
{
    (void)state;
    in_a_child(a_storm_hides_nothing);
}

static void terminal_hangs(void **state)
{
    (void)state;
    in_a_child(a_terminal_that_takes_nothing);
}

static void requests(void **state)
{
    (void)state;
    in_a_child(only_requests_are_requests);
}

static void caught(void **state)
{
    (void)state;
    in_a_child(all_are_caught);
    in_a_child(who_ignores_a_hangup_keeps_that);
}

static void terminal_gone(void **state)
{
    (void)state;
    in_a_child(nobody_ends_an_answer_by_chance);
    in_a_child(an_end_that_was_asked_for_counts);
    in_a_child(a_stop_counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests), cmocka_unit_test(caught), cmocka_unit_test(terminal_gone),
        cmocka_unit_test(storms), cmocka_unit_test(stops), cmocka_unit_test(terminal_hangs),
    };

    return cmocka_run_group_tests_name("signals", tests, NULL, NULL);
}
