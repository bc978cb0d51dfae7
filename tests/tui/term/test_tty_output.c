/* What goes to a terminal that takes nothing is kept, and arrives whole and in order when it takes again; what goes to
 * one that has hung up is nobody's. */
#include "ebb_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "term/tty_output.h"

enum { N = 500000 };             /* more than a pipe takes */

static char text[N], got[N];

typedef struct line {
    int out, ends[2];
} line;

static int set_up(void **state)
{
    static line l;

    for (int i = 0; i < N; i++)
        text[i] = (char)('a' + i % 23);
    fflush(stdout);
    l.out = dup(STDOUT_FILENO);
    signal(SIGPIPE, SIG_IGN);
    if (l.out < 0 || pipe2(l.ends, O_CLOEXEC) != 0 || dup2(l.ends[1], STDOUT_FILENO) < 0)
        return -1;
    ebb_tty_output_open();
    *state = &l;
    return 0;
}

static int tear_down(void **state)
{
    line *l = *state;

    ebb_tty_output_close();
    dup2(l->out, STDOUT_FILENO);
    close(l->ends[0]);
    close(l->ends[1]);
    close(l->out);
    return 0;
}

static void *read_all(void *arg)
{
    const line *l = arg;
    size_t n = 0;
    ssize_t k;

    while (n < N && (k = read(l->ends[0], got + n, N - n)) > 0)
        n += (size_t)k;
    return n == N ? got : NULL;
}

static void what_is_not_taken_is_kept(void **state)
{
    line *l = *state;
    pthread_t reader;
    void *ok;

    assert_int_equal(ebb_tty_output_fd(), -1);
    assert_int_equal(ebb_tty_backlog(), EBB_BACKLOG_NONE);
    for (int at = 0; at < N; at += N / 10)
        ebb_tty_write(text + at, N / 10);
    assert_int_equal(ebb_tty_backlog(), EBB_BACKLOG_KEPT);
    assert_true(ebb_tty_output_fd() >= 0 && ebb_tty_send_kept());
    assert_int_equal(pthread_create(&reader, NULL, read_all, l), 0);
    ebb_tty_finish_output();
    pthread_join(reader, &ok);
    assert_int_equal(ebb_tty_backlog(), EBB_BACKLOG_NONE);
    assert_non_null(ok);
    assert_memory_equal(got, text, N);
}

static void a_line_that_hangs_up(void **state)
{
    line *l = *state;

    ebb_tty_write(text, N);
    assert_true(ebb_tty_send_kept());
    close(l->ends[0]);
    l->ends[0] = -1;
    ebb_tty_finish_output();
    ebb_tty_write(text, N);
    ebb_tty_write_now(text, N);
    assert_false(ebb_tty_send_kept());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_taken_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_line_that_hangs_up, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
