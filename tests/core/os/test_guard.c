/* A mapped file that is cut off while it is read: zeroes and a mark, not the end of the program. */
#include "ebb_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "os/fault.h"
#include "os/guard.h"

#define N_BYTES ((size_t)64 << 10)

static char path[64];

static int open_pages(ebb_map *m)
{
    char block[N_BYTES];
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

    memset(block, 7, sizeof block);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, block, sizeof block), (ssize_t)sizeof block);
    assert_int_equal(ebb_map_file(fd, path, N_BYTES, m, NULL), EBB_OK);
    return fd;
}

static ebb_guard *guard_pages(const ebb_map *m)
{
    ebb_guard *g;

    assert_int_equal(ebb_guard_add(m, &g, NULL), EBB_OK);
    assert_non_null(g);
    return g;
}

static int sum_bytes(const ebb_map *m)
{
    const volatile char *p = m->data;
    int n = 0;

    for (size_t i = 0; i < m->n_bytes; i += 512)
        n += p[i];
    return n;
}

static void test_missing_pages_are_zeroes(void **state)
{
    int all = 7 * (int)(N_BYTES / 512), fd;
    ebb_guard *g;
    ebb_map m;

    (void)state;
    fd = open_pages(&m);
    g = guard_pages(&m);
    assert_int_equal(sum_bytes(&m), all);
    assert_false(ebb_guard_is_hit(g));
    assert_int_equal(ftruncate(fd, N_BYTES / 4), 0);
    assert_int_equal(sum_bytes(&m), all / 4);
    assert_true(ebb_guard_is_hit(g));

    close(fd);
    ebb_guard_remove(g);
    ebb_map_fini(&m);
    fd = open_pages(&m);                         /* whole again */
    g = guard_pages(&m);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(sum_bytes(&m), 0);
    for (int i = 0; i < 128; i++) {
        char block[512];

        memset(block, 7, sizeof block);
        assert_int_equal(pwrite(fd, block, sizeof block, i * 512), (ssize_t)sizeof block);
    }
    assert_int_equal(sum_bytes(&m), 0);          /* not seen before ... */
    assert_true(ebb_guard_heal(g, fd));
    assert_false(ebb_guard_is_hit(g));
    assert_int_equal(sum_bytes(&m), all);
    ebb_guard_remove(g);
    ebb_map_fini(&m);
    close(fd);
    unlink(path);
}

/* Another mapping's signal goes where it went before; and our handler comes back if somebody took its place. */
static void test_others_get_theirs(void **state)
{
    ebb_map m, other;
    ebb_guard *g;
    int fd = open_pages(&m), status;
    pid_t child;

    (void)state;
    assert_int_equal(ebb_map_file(fd, path, N_BYTES, &other, NULL), EBB_OK);
    g = guard_pages(&m);
    signal(SIGBUS, SIG_DFL);
    ebb_guard_arm();
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(sum_bytes(&m), 0);
    child = fork();
    if (child == 0) {
        sum_bytes(&other);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);        /* a sanitizer reports and exits */
    ebb_guard_remove(g);
    ebb_map_fini(&m);
    ebb_map_fini(&other);
    close(fd);
    unlink(path);
}

enum { SANITIZER = 1, RACES = 66 };              /* exit statuses of asan and ubsan, and of tsan */

static volatile sig_atomic_t n_reports;
static struct sigaction handed_on_to;
static ebb_map repaired;         /* a page of the handler's own, which it makes whole */

static void report(int number, siginfo_t *info, void *context)
{
    if (++n_reports > 10)
        _exit(9);                                /* one fault comes again and again */
    if (repaired.data)
        mmap(repaired.data, repaired.n_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    else if (handed_on_to.sa_flags & SA_SIGINFO)
        handed_on_to.sa_sigaction(number, info, context);
}

/* A reporter takes our place, and we take it back: a fault of its own program comes to it and, handed on, to nobody for
 * ever; one that it makes good leaves us where we are. */
static void test_a_handler_that_hands_on(void **state)
{
    const struct sigaction reporter = { .sa_sigaction = report, .sa_flags = SA_SIGINFO };

    (void)state;
    for (int repairs = 0; repairs < 2; repairs++) {
        ebb_map m, other;
        ebb_guard *g;
        int fd = open_pages(&m), status;
        pid_t child;

        assert_int_equal(ebb_map_file(fd, path, N_BYTES, &other, NULL), EBB_OK);
        g = guard_pages(&m);
        child = fork();
        if (child == 0) {
            if (repairs)
                repaired = other;
            sigaction(SIGBUS, &reporter, &handed_on_to);
            ebb_guard_arm();
            if (ftruncate(fd, 0) != 0 || sum_bytes(&other) != 0 || n_reports != 1)
                _exit(8);
            _exit(sum_bytes(&m) == 0 && ebb_guard_is_hit(g) && n_reports == 1 ? 0 : 7);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (repairs)
            assert_int_equal(status, 0);
        else                                     /* a sanitizer reports and exits */
            assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == SANITIZER || WEXITSTATUS(status) == RACES);
        ebb_guard_remove(g);
        ebb_map_fini(&m);
        ebb_map_fini(&other);
        close(fd);
        unlink(path);
    }
}

/* What one file has lost is no loss of another. */
static void test_each_its_own(void **state)
{
    int all = 7 * (int)(N_BYTES / 512), fd[2];
    ebb_guard *g[2];
    ebb_map m[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        fd[i] = open_pages(&m[i]);
        unlink(path);
        g[i] = guard_pages(&m[i]);
    }
    for (int i = 1; i >= 0; i--) {
        assert_int_equal(ftruncate(fd[i], 4096), 0);
        assert_int_equal(sum_bytes(&m[i]), 7 * 4096 / 512);
        assert_true(ebb_guard_is_hit(g[i]));
        assert_int_equal(ebb_guard_is_hit(g[0]), i == 0);
        assert_int_equal(sum_bytes(&m[0]), i == 0 ? 7 * 4096 / 512 : all);
    }
    for (int i = 0; i < 2; i++) {
        ebb_guard_remove(g[i]);
        ebb_map_fini(&m[i]);
        close(fd[i]);
    }
}

/* However many there are: the last is guarded like the first, and where there is no memory for more it is said. */
static void test_many(void **state)
{
    enum { N = 3 * 64 };                         /* guards come in blocks of 64 */
    ebb_guard *g[N], *none;
    ebb_map m[N];
    ebb_error err;
    int fd = open_pages(&m[0]);

    (void)state;
    unlink(path);
    g[0] = guard_pages(&m[0]);
    for (int i = 1; i < N; i++) {
        assert_int_equal(ebb_map_file(fd, path, N_BYTES, &m[i], NULL), EBB_OK);
        g[i] = guard_pages(&m[i]);
    }
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(sum_bytes(&m[N - 1]), 0);
    assert_true(ebb_guard_is_hit(g[N - 1]));
    assert_false(ebb_guard_is_hit(g[N - 2]));
    ebb_os_fail_nth(1);
    assert_int_equal(ebb_guard_add(&m[0], &none, &err), EBB_NOMEM);
    ebb_os_fail_off();
    assert_null(none);
    for (int i = 0; i < N; i++) {
        ebb_guard_remove(g[i]);
        ebb_map_fini(&m[i]);
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_pages_are_zeroes),
        cmocka_unit_test(test_others_get_theirs),
        cmocka_unit_test(test_a_handler_that_hands_on),
        cmocka_unit_test(test_each_its_own),
        cmocka_unit_test(test_many),
    };

    snprintf(path, sizeof path, "/var/tmp/ebb-guard-XXXXXX");
    close(mkstemp(path));                        /* a name of its own */
    ebb_guard_arm();                             /* before cmocka, which handles SIGBUS too */
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
