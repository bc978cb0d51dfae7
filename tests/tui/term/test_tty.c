/* What is written to the terminal arrives, also where another program has made it one that does not wait. */
#include "ebb_test.h"

#include <fcntl.h>
#include <pthread.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_line_that_does_not_wait) };

    return cmocka_run_group_tests_name("tty", tests, NULL, NULL);
}
