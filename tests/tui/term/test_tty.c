/* What is written to the terminal arrives, also where another program has made it one that does not wait. */
#include "ebb_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "term/tty.h"

enum { N = 500000 };

static char text[N], got[N];

static void *read_all(void *arg)
{
    int fd = *(int *)arg, waits = 0, room = fcntl(fd, F_GETPIPE_SZ);
    size_t n = 0;
    ssize_t k;

    while (ioctl(fd, FIONREAD, &waits) == 0 && waits < room)     /* until the pipe is full */
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    while (n < N && (k = read(fd, got + n, N - n)) > 0)
        n += (size_t)k;
    return n == N ? got : NULL;
}

static void test_a_line_that_does_not_wait(void **state)
{
    int ends[2], out = dup(STDOUT_FILENO);
    pthread_t reader;
    void *ok;

    (void)state;
    for (int i = 0; i < N; i++)
        text[i] = (char)('a' + i % 23);
    assert_true(out >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_all, &ends[0]), 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    ebb_tty_write(text, N);
    dup2(out, STDOUT_FILENO);
    close(ends[1]);
    close(out);
    pthread_join(reader, &ok);
    close(ends[0]);
    assert_non_null(ok);
    assert_memory_equal(got, text, N);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_that_does_not_wait),
        cmocka_unit_test(test_a_screen_of_any_size),
    };

    return cmocka_run_group_tests_name("tty", tests, NULL, NULL);
}
