/* Threads take no signals of the process, but their own faults. */
#include "ebb_test.h"

#include <signal.h>
#include <unistd.h>

#include "os/fault.h"
#include "os/pool.h"
#include "os/thread.h"

static void *give_mask(void *arg)
{
    pthread_sigmask(SIG_BLOCK, NULL, arg);
    return NULL;
}

static void test_mask(void **state)
{
    static const int others[] = { SIGTERM, SIGINT,  SIGHUP,  SIGCHLD, SIGWINCH,
                                  SIGCONT, SIGTSTP, SIGALRM, SIGUSR1, SIGPIPE };
    static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT };
    sigset_t mask, before, after;
    pthread_t thread;

    (void)state;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(ebb_thread_start(&thread, give_mask, &mask), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(sigismember(&mask, others[i]));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_false(sigismember(&mask, own[i]));
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < NSIG; i++)
        assert_int_equal(sigismember(&before, i), sigismember(&after, i));
    ebb_os_fail_nth_here(1);
    assert_int_not_equal(ebb_thread_start(&thread, give_mask, &mask), 0);
    assert_true(ebb_os_fail_off());
}

static volatile sig_atomic_t n_handled;

static void count(int sig)
{
    (void)sig;
    n_handled++;
}

static void nothing(void *arg, uint32_t i, uint32_t thread)
{
    (void)arg;
    (void)i;
    (void)thread;
}

/* Who waits for a signal in a place of his own finds it there: no compute thread had it. */
static void test_a_signal_waits(void **state)
{
    struct sigaction counting = { .sa_handler = count }, before;
    sigset_t usr1, mask;
    ebb_pool *pool;

    (void)state;
    assert_int_equal(ebb_pool_new(4, &pool, NULL), EBB_OK);
    sigaction(SIGUSR1, &counting, &before);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &mask);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    for (int i = 0; i < 100; i++)
        ebb_pool_run(pool, nothing, NULL, 64);
    assert_int_equal(n_handled, 0);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    assert_int_equal(n_handled, 1);
    sigaction(SIGUSR1, &before, NULL);
    ebb_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_a_signal_waits),
    };
    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
