#include "ebb_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "os/fault.h"
#include "os/pool.h"

enum { N_SLICES = 257 };

static atomic_uint hits[N_SLICES];
static atomic_uint wrong_thread;

static void count_call(void *arg, uint32_t slice, uint32_t thread)
{
    if (thread >= *(uint32_t *)arg)
        atomic_fetch_add(&wrong_thread, 1);
    atomic_fetch_add(&hits[slice], 1);
}

static void test_every_slice_runs_once(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        ebb_pool *p = NULL;

        assert_int_equal(ebb_pool_new(n, &p, NULL), EBB_OK);
        assert_int_equal(ebb_pool_n_threads(p), n);
        for (uint32_t slices = 0; slices <= N_SLICES; slices += slices < 8 ? 1 : 83) {
            memset(hits, 0, sizeof hits);
            ebb_pool_run(p, count_call, &n, slices);
            for (uint32_t s = 0; s < N_SLICES; s++)
                assert_int_equal(atomic_load(&hits[s]), s < slices);
        }
        ebb_pool_free(p);
    }
    assert_int_equal(atomic_load(&wrong_thread), 0);
}

/* Plain memory written by slices is seen by the caller, and by the next job's slices. */
static void add_one(void *arg, uint32_t slice, uint32_t thread)
{
    (void)thread;
    ((unsigned *)arg)[slice]++;
}

static void test_ten_thousand_jobs(void **state)
{
    enum { JOBS = 10000, SLICES = 5 };
    unsigned sums[SLICES] = { 0 };
    ebb_pool *p = NULL;

    (void)state;
    assert_int_equal(ebb_pool_new(3, &p, NULL), EBB_OK);
    for (unsigned job = 1; job <= JOBS; job++) {
        ebb_pool_run(p, add_one, sums, SLICES);
        for (int s = 0; s < SLICES; s++)
            assert_int_equal(sums[s], job);
        if (job % 1000 == 0)                     /* long enough for the workers to fall asleep */
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
    }
    ebb_pool_free(p);
}

static uint64_t process_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Soon after a job there is a tenth of a second that costs nothing; when the last worker has fallen asleep is the
 * machine's mood. */
static void test_idle_pool_costs_nothing(void **state)
{
    uint64_t spent = UINT64_MAX;
    uint32_t n = 4;
    ebb_pool *p = NULL;

    (void)state;
    assert_int_equal(ebb_pool_new(n, &p, NULL), EBB_OK);
    ebb_pool_run(p, count_call, &n, 16);
    for (int i = 0; i < 100 && spent >= 5000000; i++) {
        uint64_t before = process_cpu_ns();

        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        spent = process_cpu_ns() - before;
    }
    assert_true(spent < 5000000);
    ebb_pool_free(p);
}

/* The caller holds its slice until somebody else has done all the others. */
static void wait_for_others(void *arg, uint32_t slice, uint32_t thread)
{
    atomic_uint *done = arg;

    (void)thread;
    if (slice == 0)
        while (atomic_load(done) < 9)
            sched_yield();
    else
        atomic_fetch_add(done, 1);
}

static void test_slow_thread_delays_its_slice_only(void **state)
{
    ebb_pool *p = NULL;

    (void)state;
    assert_int_equal(ebb_pool_new(2, &p, NULL), EBB_OK);
    for (int i = 0; i < 100; i++) {
        atomic_uint done = 0;

        ebb_pool_run(p, wait_for_others, &done, 10);
        assert_int_equal(atomic_load(&done), 9);
    }
    ebb_pool_free(p);
}

/* -- Slices that may be done twice ------------------------------------------------- */

typedef struct sum_arg {
    unsigned *to;
    unsigned  add;
    atomic_uint *gate, *n_computed;              /* the thread 1 waits at the gate, once */
} sum_arg;

static void compute_sum(const void *arg, uint32_t slice, uint32_t thread, void *out)
{
    const sum_arg *a = arg;
    unsigned v = a->to[slice] + a->add;

    if (a->n_computed)
        atomic_fetch_add(a->n_computed, 1);
    for (unsigned open = 1; thread == 1 && a->gate && atomic_load(a->gate) < open;)
        sched_yield();
    memcpy(out, &v, sizeof v);
}

static void commit_sum(const void *arg, uint32_t slice, const void *out)
{
    memcpy(((const sum_arg *)arg)->to + slice, out, sizeof(unsigned));
}

static const ebb_hedged_work sum = { compute_sum, commit_sum };

static void test_redo_counts_every_slice_once(void **state)
{
    enum { JOBS = 20000, SLICES = 7 };
    unsigned sums[SLICES] = { 0 };

    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        ebb_pool *p = NULL;

        memset(sums, 0, sizeof sums);
        assert_int_equal(ebb_pool_new(n, &p, NULL), EBB_OK);
        for (unsigned job = 1; job <= JOBS / n; job++) {
            ebb_pool_run_hedged(p, &sum, &(sum_arg){ .to = sums, .add = job }, sizeof(sum_arg), SLICES);
            for (int s = 0; s < SLICES; s++)
                assert_int_equal(sums[s], job * (job + 1) / 2);
        }
        ebb_pool_drain(p);
        ebb_pool_free(p);
    }
}

#if !defined(__SANITIZE_THREAD__)
/* A worker that is stuck in a slice holds up nobody, and what it brings late is not used. */
static void test_redo_goes_on_without_the_late(void **state)
{
    unsigned sums[64] = { 0 };
    ebb_pool *p = NULL;

    (void)state;
    assert_int_equal(ebb_pool_new(2, &p, NULL), EBB_OK);
    for (int round = 1; round <= 20; round++) {
        atomic_uint gate = 0, n = 0;

        do                                       /* until the worker has got a slice at all */
            ebb_pool_run_hedged(p, &sum, &(sum_arg){ sums, 1, &gate, &n }, sizeof(sum_arg), 64);
        while (atomic_exchange(&n, 0) == 64);
        unsigned want = sums[0];
        for (int s = 0; s < 64; s++)
            assert_int_equal(sums[s], want);
        ebb_pool_run_hedged(p, &sum, &(sum_arg){ sums, 5, NULL, NULL }, sizeof(sum_arg), 64);
        atomic_store(&gate, 1);
        ebb_pool_drain(p);
        for (int s = 0; s < 64; s++)
            assert_int_equal(sums[s], want + 5);
    }
    ebb_pool_free(p);
}
#endif

/* More threads than CPUs want to run, so slices are taken back and the spare thread is called at any point of a job. */
static atomic_bool hogs_stop;

static void *hog(void *arg)
{
    while (!atomic_load(&hogs_stop))
        for (int i = 0; i < 1000; i++)
            __asm__ volatile("" ::: "memory");
    return arg;
}

static void test_both_kinds_in_turn_beside_busy_threads(void **state)
{
    enum { JOBS = 3000, SLICES = 40, HOGS = 6 };
    unsigned twice[SLICES] = { 0 }, once[SLICES] = { 0 };
    pthread_t hogs[HOGS];
    ebb_pool *p = NULL;

    (void)state;
    atomic_store(&hogs_stop, false);
    for (int i = 0; i < HOGS; i++)
        assert_int_equal(pthread_create(&hogs[i], NULL, hog, NULL), 0);
    assert_int_equal(ebb_pool_new(3, &p, NULL), EBB_OK);
    for (unsigned job = 1; job <= JOBS; job++) {
        unsigned n = 2 + job * 7 % (SLICES - 2), before = twice[0];

        memset(twice, 0, sizeof twice);
        memset(once, 0, sizeof once);
        ebb_pool_run_hedged(p, &sum, &(sum_arg){ .to = twice, .add = before + 1 }, sizeof(sum_arg), n);
        if (job % 3 == 0)
            ebb_pool_run(p, add_one, once, n);
        for (unsigned s = 0; s < SLICES; s++) {
            assert_int_equal(twice[s], s < n ? job : 0);
            assert_int_equal(once[s], s < n && job % 3 == 0 ? 1 : 0);
        }
    }
    ebb_pool_drain(p);
    ebb_pool_free(p);
    atomic_store(&hogs_stop, true);
    for (int i = 0; i < HOGS; i++)
        pthread_join(hogs[i], NULL);
}

static void test_every_failure_is_reported(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        ebb_error err = { 0 };
        ebb_pool *p = NULL;

        ebb_os_fail_nth(n);
        ebb_status st = ebb_pool_new(4, &p, &err);
        bool reached = ebb_os_fail_off();

        assert_int_equal(st != EBB_OK, reached);
        if (st == EBB_OK) {
            ebb_pool_free(p);
            break;
        }
        assert_null(p);
        assert_true(err.msg[0] != '\0' && err.sys_errno != 0);
    }
    ebb_pool_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_slice_runs_once),
        cmocka_unit_test(test_ten_thousand_jobs),
        cmocka_unit_test(test_idle_pool_costs_nothing),
        cmocka_unit_test(test_slow_thread_delays_its_slice_only),
        cmocka_unit_test(test_redo_counts_every_slice_once),
#if !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_redo_goes_on_without_the_late),
#endif
        cmocka_unit_test(test_both_kinds_in_turn_beside_busy_threads),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
