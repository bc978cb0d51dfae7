/* The terminal's size where it says none; what is pasted arrives, also where its end does not. */
#include "ebb_test.h"

#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "term/tty.h"

static void expect_size(unsigned short rows, unsigned short cols, int want_rows, int want_cols)
{
    struct winsize size = { .ws_row = rows, .ws_col = cols };
    int ends[2], out = dup(STDOUT_FILENO), got_rows = 0, got_cols = 0;
    bool says;

    assert_true(out >= 0);
    assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, &size), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    says = ebb_tty_size(&got_rows, &got_cols);
    dup2(out, STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    close(out);
    assert_int_equal(says, want_rows > 0);
    assert_int_equal(got_rows, want_rows);
    assert_int_equal(got_cols, want_cols);
}

/* Frames are kept in memory: one of 65,535 columns, some hundred rows at once, would take hundreds of MB. */
static void test_a_screen_of_any_size(void **state)
{
    (void)state;
    unsetenv("LINES");
    unsetenv("COLUMNS");
    expect_size(24, 80, 24, 80);
    expect_size(65535, 65535, 1000, 2000);
    expect_size(50, 65535, 50, 2000);
    expect_size(0, 80, 0, 0);
    setenv("LINES", "50", 1);
    setenv("COLUMNS", "99999999", 1);
    expect_size(0, 0, 50, 2000);
    expect_size(24, 80, 24, 80);
    setenv("LINES", "-1", 1);
    expect_size(0, 0, 0, 0);
}

static bool next_is(ebb_tty *t, ebb_input_kind kind, const char *pasted)
{
    ebb_input in;

    return ebb_tty_input(t, &in) && in.kind == kind &&
           (!pasted || (in.n == strlen(pasted) && memcmp(in.text, pasted, in.n) == 0));
}

static bool is_silent(ebb_tty *t)
{
    ebb_input in;

    return !ebb_tty_input(t, &in);
}

/* Ctrl-C is text where it comes with other text, or at once after it; and the end of the paste where it comes alone. */
static bool a_paste_ends_by_ctrl_c(ebb_tty *t, int keys)
{
    bool ok = write(keys, "\033[200~some\003", 11) == 11 && is_silent(t) && write(keys, "\003", 1) == 1 && is_silent(t);

    t->read_s -= 10;
    ok &= write(keys, "\003", 1) == 1 && next_is(t, EBB_INPUT_PASTE, "some\003\003") && is_silent(t);
    return ok && write(keys, "\003", 1) == 1 && next_is(t, EBB_INPUT_KEY, NULL);
}

static bool a_paste_ends_with_the_program(ebb_tty *t, int keys)
{
    return write(keys, "\033[200~some", 10) == 10 && is_silent(t) && raise(SIGTERM) == 0 &&
           next_is(t, EBB_INPUT_PASTE, "some") && next_is(t, EBB_INPUT_SIGNAL, NULL) && is_silent(t);
}

static bool a_paste_ends_with_the_terminal(ebb_tty *t, int keys)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGCONT, SIG_IGN);
    return write(keys, "\033[200~some", 10) == 10 && is_silent(t) && close(keys) == 0 &&
           next_is(t, EBB_INPUT_PASTE, "some") && next_is(t, EBB_INPUT_HANGUP, NULL);
}

/* A terminal is of a process. */
static void on_a_terminal(bool (*is_right)(ebb_tty *t, int keys))
{
    int ends[2], status;
    pid_t pid;

    assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ebb_tty t;

        if (login_tty(ends[1]) != 0 || ebb_tty_open(&t, NULL) != EBB_OK)
            _exit(2);
        ebb_tty_raw();
        _exit(is_right(&t, ends[0]) ? 0 : 1);
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_a_paste_without_end(void **state)
{
    (void)state;
    on_a_terminal(a_paste_ends_by_ctrl_c);
    on_a_terminal(a_paste_ends_with_the_program);
}

static void test_a_paste_cut_off(void **state)
{
    (void)state;
    on_a_terminal(a_paste_ends_with_the_terminal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_screen_of_any_size),
        cmocka_unit_test(test_a_paste_without_end),
        cmocka_unit_test(test_a_paste_cut_off),
    };

    return cmocka_run_group_tests_name("tty", tests, NULL, NULL);
}
