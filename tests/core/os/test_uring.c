/* Reads by io_uring that the kernel refuses: nothing of them comes later, and the next ones are right. */
#include "os/uring.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ebb_test.h"
#include "os/fault.h"

enum { N_PAGE = 4096, N_REFUSED = 3 * EBB_URING_DEPTH };

static int open_pages(const char *letters)
{
    char path[] = "/tmp/ebb-uring-XXXXXX", page[N_PAGE];
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    unlink(path);
    for (; *letters; letters++) {
        memset(page, *letters, N_PAGE);
        assert_int_equal(write(fd, page, N_PAGE), N_PAGE);
    }
    return fd;
}

static void test_refused_reads(void **state)
{
    static char refused[N_PAGE], good[N_PAGE];
    int fd = open_pages("ab");
    ebb_error err = { 0 };
    ebb_uring *ring;
    uint32_t tag;
    int64_t result;

    (void)state;
    if (ebb_uring_open(EBB_URING_DEPTH, &ring, NULL) != EBB_OK) {
        close(fd);
        skip();
    }
    for (int n = 1; n <= N_REFUSED; n++) {
        memset(refused, 'r', N_PAGE);
        memset(good, 'g', N_PAGE);
        for (int i = 0; i < n; i++) {
            ebb_os_fail_nth(1);
            assert_int_equal(ebb_uring_read(ring, fd, refused, N_PAGE, 0, 1, &err), EBB_IO);
            assert_true(ebb_os_fail_off());
        }
        assert_int_equal(ebb_uring_read(ring, fd, good, N_PAGE, N_PAGE, 2, &err), EBB_OK);
        ebb_uring_wait(ring, &tag, &result);
        assert_int_equal(tag, 2);
        assert_int_equal(result, N_PAGE);
        assert_int_equal(good[0], 'b');
        assert_int_equal(refused[0], 'r');
    }
    ebb_uring_close(ring);
    close(fd);
}

/* The kernel refuses to wait: what was begun comes all the same, and not in the place of what is begun later. */
static void test_refused_waits(void **state)
{
    static char a[N_PAGE], b[N_PAGE];
    int fd = open_pages("ab");
    ebb_uring *ring;
    uint32_t tag;
    int64_t result;

    (void)state;
    if (ebb_uring_open(EBB_URING_DEPTH, &ring, NULL) != EBB_OK) {
        close(fd);
        skip();
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(ebb_uring_read(ring, fd, i ? b : a, N_PAGE, i * N_PAGE, i, NULL), EBB_OK);
        ebb_os_fail_nth(1);
        ebb_uring_wait(ring, &tag, &result);
        assert_true(ebb_os_fail_off());
        assert_int_equal(tag, i);
        assert_int_equal(result, N_PAGE);
    }
    assert_int_equal(a[0], 'a');
    assert_int_equal(b[0], 'b');
    ebb_uring_close(ring);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_reads),
        cmocka_unit_test(test_refused_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
