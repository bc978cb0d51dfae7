/* The compute pool.
 *
 * All of a job's state that threads race for is one 64-bit ticket,
 *
 *     | may be done twice 1 | n_slices 31 | next slice 32 |
 *
 * A thread adds 1 and looks at what it got: a slice number below n_slices is its
 * own, and until that slice is counted as done the caller cannot return, so
 * fn and arg stay as they are.  Anything else means there is nothing to do.
 * A worker that wakes late therefore delays nobody: it finds no slice.
 *
 * Of work that may be done twice a thread shows in its place which slice it holds,
 *
 *     | run 32 | slice + 1 32 |        0: none
 *
 * and whoever makes that 0 (the holder when it has computed, or the caller who waited long enough) does the
 * slice: commits it and counts it.
 *
 * Where slices had to be taken from others, something else wants the CPUs, and threads share them
 * with it one by one.  So for a while one more thread, the spare one, takes such slices too. */
#include "os/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/fault.h"
#include "os/thread.h"

enum { SPINS = 1000, SPARE_RUNS = 200 };         /* some tens of microseconds before sleeping; about a token */

#define HEDGED (1ull << 63)
#define PATIENCE_S 1e-4          /* for a slice, where nothing tells its time */

typedef struct worker {
    ebb_pool *pool;
    pthread_t thread;
    uint32_t  id;                /* n_threads: the spare one */
} worker;

/* Of one thread, for slices that may be done twice. */
typedef struct hedge_slot {
    _Alignas(64) atomic_ullong holds;
    atomic_bool is_busy;
    uint32_t    run_no;          /* of which `arg` is */
    _Alignas(64) char arg[EBB_HEDGED_ARG];
    _Alignas(64) char out[EBB_HEDGED_OUT];
} hedge_slot;

struct ebb_pool {
    uint32_t n_threads, n_started;
    worker  *workers;            /* [n_threads]: all but the caller, and the spare one */
    hedge_slot *hedge_slots;     /* [n_threads + 1] */
    atomic_ullong waited_ns;     /* by the caller */
    uint32_t n_spare_runs;       /* that the spare one is still wanted for */
    ebb_slice_fn *fn;            /* of the current job: written before the ticket */
    void    *arg;
    const ebb_hedged_work *hedged; /* of work that may be done twice */
    uint32_t run_no;             /* number of the redo job */
    size_t   hedged_bytes;       /* of its arg */
    _Alignas(64) char hedged_arg[EBB_HEDGED_ARG];
    _Alignas(64) atomic_ullong ticket;
    _Alignas(64) atomic_uint n_done;             /* slices; futex of the caller */
    atomic_uint caller_sleeps;
    _Alignas(64) atomic_uint job_no;             /* futex of the workers */
    atomic_uint n_sleeping;
    atomic_uint spare_no, spare_sleeps;          /* the same of the spare one */
    atomic_bool is_ending;
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* One of n slices is done. */
static void count_slice(ebb_pool *p, uint32_t n)
{
    if (atomic_fetch_add(&p->n_done, 1) + 1 == n && atomic_load(&p->caller_sleeps))
        futex_wake(&p->n_done, 1);
}

/* A slice that may be taken away meanwhile; whether it was not. */
static bool compute_hedged(ebb_pool *p, uint32_t slice, uint32_t thread)
{
    hedge_slot *at = &p->hedge_slots[thread];
    const ebb_hedged_work *hedged = p->hedged;
    uint32_t run_no = p->run_no;
    size_t bytes = p->hedged_bytes;
    unsigned long long mine = (unsigned long long)run_no << 32 | (slice + 1);
    bool is_mine = true;

    atomic_store(&at->is_busy, true);
    atomic_store(&at->holds, mine);
    if (at->run_no != run_no) {
        memcpy(at->arg, p->hedged_arg, bytes);
        at->run_no = run_no;
        is_mine = atomic_load(&at->holds) == mine;       /* else the copy may be of a later run */
    }
    if (is_mine)
        hedged->compute(at->arg, slice, thread, at->out);
    else
        at->run_no = 0;
    atomic_store(&at->is_busy, false);
    is_mine = is_mine && atomic_compare_exchange_strong(&at->holds, &mine, 0);
    if (is_mine)
        hedged->commit(at->arg, slice, at->out);
    return is_mine;
}

static uint32_t n_slices_of(unsigned long long ticket)
{
    return (uint32_t)(ticket >> 32) & 0x7fffffffu;
}

/* How many slices the thread did. */
static uint32_t take_slices(ebb_pool *p, uint32_t thread)
{
    for (uint32_t n_mine = 0;; n_mine++) {
        unsigned long long t = atomic_fetch_add(&p->ticket, 1);
        uint32_t s = (uint32_t)t, n = n_slices_of(t);

        if (s >= n)
            return n_mine;
        if (t & HEDGED ? compute_hedged(p, s, thread) : (p->fn(p->arg, s, thread), true))
            count_slice(p, n);
    }
}

/* The spare thread has a place for work that may be done twice, and for no other. */
static void take_spare_slices(ebb_pool *p)
{
    for (unsigned long long t = atomic_load(&p->ticket); t & HEDGED && (uint32_t)t < n_slices_of(t);
         t = atomic_load(&p->ticket))
        if (atomic_compare_exchange_strong(&p->ticket, &t, t + 1) && compute_hedged(p, (uint32_t)t, p->n_threads))
            count_slice(p, n_slices_of(t));
}

/* Until *job differs from `seen`; the new number. */
static unsigned wait_job(atomic_uint *job, atomic_uint *n_sleeping, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(job) != seen)
            return atomic_load(job);
        pause_cpu();
    }
    atomic_fetch_add(n_sleeping, 1);
    while (atomic_load(job) == seen)
        futex_wait(job, seen);
    atomic_fetch_sub(n_sleeping, 1);
    return atomic_load(job);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    ebb_pool *p = w->pool;
    bool is_spare = w->id == p->n_threads;
    unsigned seen = 0;

    for (;;) {
        seen = is_spare ? wait_job(&p->spare_no, &p->spare_sleeps, seen) : wait_job(&p->job_no, &p->n_sleeping, seen);
        if (atomic_load(&p->is_ending))
            return NULL;
        if (is_spare)
            take_spare_slices(p);
        else
            take_slices(p, w->id);
    }
}

static void wake_workers(ebb_pool *p)
{
    atomic_fetch_add(&p->job_no, 1);
    if (atomic_load(&p->n_sleeping) > 0)
        futex_wake(&p->job_no, (int)p->n_started);
}

static void wake_spare(ebb_pool *p)
{
    atomic_fetch_add(&p->spare_no, 1);
    if (atomic_load(&p->spare_sleeps) > 0)
        futex_wake(&p->spare_no, 1);
}

static void wait_slices(ebb_pool *p, uint32_t n_slices)
{
    unsigned n;

    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&p->n_done) == n_slices)
            return;
        pause_cpu();
    }
    atomic_store(&p->caller_sleeps, 1);
    while ((n = atomic_load(&p->n_done)) != n_slices)
        futex_wait(&p->n_done, n);
    atomic_store(&p->caller_sleeps, 0);
}

static void count_wait(ebb_pool *p, uint64_t since_ns)
{
    atomic_fetch_add_explicit(&p->waited_ns, ebb_clock_ns() - since_ns, memory_order_relaxed);
}

static void post_job(ebb_pool *p, uint32_t n_slices, unsigned long long kind)
{
    atomic_store(&p->n_done, 0);
    atomic_store(&p->ticket, kind | (unsigned long long)n_slices << 32);
    wake_workers(p);
}

void ebb_pool_run(ebb_pool *p, ebb_slice_fn *fn, void *arg, uint32_t n_slices)
{
    uint64_t waiting;

    if (p->n_started == 0 || n_slices <= 1) {    /* nobody to share with */
        for (uint32_t s = 0; s < n_slices; s++)
            fn(arg, s, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    post_job(p, n_slices, 0);
    take_slices(p, 0);
    waiting = ebb_clock_ns();
    wait_slices(p, n_slices);
    count_wait(p, waiting);
}

/* Whether all n slices are done by the time `until`. */
static bool done_by(ebb_pool *p, uint32_t n, double until)
{
    while (atomic_load(&p->n_done) != n) {
        if (ebb_clock_s() > until)
            return false;
        for (int i = 0; i < 20; i++)
            pause_cpu();
    }
    return true;
}

/* The slices that others hold are done here; false if there is no such thing. */
static bool hedge_slices(ebb_pool *p, uint32_t n)
{
#if !defined(__SANITIZE_THREAD__)                /* it would see, rightly, that the holder reads what is written */
    hedge_slot *mine = &p->hedge_slots[0];

    for (uint32_t i = 1; i <= p->n_started; i++) {
        unsigned long long held = atomic_load(&p->hedge_slots[i].holds);
        uint32_t slice = (uint32_t)held - 1;

        if (held == 0 || held >> 32 != p->run_no || !atomic_compare_exchange_strong(&p->hedge_slots[i].holds, &held, 0))
            continue;
        p->hedged->compute(p->hedged_arg, slice, 0, mine->out);
        p->hedged->commit(p->hedged_arg, slice, mine->out);
        count_slice(p, n);
        p->n_spare_runs = SPARE_RUNS;
    }
    return true;
#else
    (void)p, (void)n;
    return false;
#endif
}

void ebb_pool_run_hedged(ebb_pool *p, const ebb_hedged_work *what, const void *arg, size_t arg_bytes, uint32_t n_slices)
{
    double began, now;
    uint64_t waiting;
    uint32_t n_mine;

    if (p->n_started == 0 || n_slices <= 1) {
        for (uint32_t s = 0; s < n_slices; s++) {
            what->compute(arg, s, 0, p->hedge_slots[0].out);
            what->commit(arg, s, p->hedge_slots[0].out);
        }
        return;
    }
    p->hedged = what;
    p->run_no = p->run_no + 1 ? p->run_no + 1 : 1;
    p->hedged_bytes = arg_bytes;
    memcpy(p->hedged_arg, arg, arg_bytes);
    began = ebb_clock_s();
    post_job(p, n_slices, HEDGED);
    if (p->n_spare_runs > 0) {
        p->n_spare_runs--;
        wake_spare(p);
    }
    n_mine = take_slices(p, 0);
    waiting = ebb_clock_ns();
    now = (double)waiting * 1e-9;
    now += n_mine > 0 ? 2 * (now - began) / n_mine : PATIENCE_S;
    while (!done_by(p, n_slices, now) && hedge_slices(p, n_slices))
        now = ebb_clock_s() + PATIENCE_S;
    wait_slices(p, n_slices);
    count_wait(p, waiting);
}

void ebb_pool_drain(ebb_pool *p)
{
    for (uint32_t i = 1; i <= p->n_started; i++)
        while (atomic_load(&p->hedge_slots[i].is_busy))
            nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
}

ebb_status ebb_pool_new(uint32_t n_threads, ebb_pool **out, ebb_error *err)
{
    ebb_pool *p = NULL;

    *out = NULL;
    n_threads = n_threads ? n_threads : 1;
    if (ebb_os_fault(ENOMEM) || !(p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64)))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a pool of %u threads", n_threads);
    *p = (ebb_pool){ .n_threads = n_threads };
    p->workers = ebb_os_fault(ENOMEM) ? NULL : calloc(n_threads, sizeof *p->workers);
    p->hedge_slots = ebb_os_fault(ENOMEM) ? NULL : aligned_alloc(64, (n_threads + 1) * sizeof *p->hedge_slots);
    if (p->hedge_slots)
        memset(p->hedge_slots, 0, (n_threads + 1) * sizeof *p->hedge_slots);
    if (!p->workers || !p->hedge_slots) {
        ebb_pool_free(p);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a pool of %u threads", n_threads);
    }
    for (uint32_t i = 0; i < n_threads && n_threads > 1; i++) {
        worker *w = &p->workers[i];

        *w = (worker){ .pool = p, .id = i + 1 };
        errno = ebb_thread_start(&w->thread, worker_main, w);
        if (errno) {
            int code = errno;

            ebb_pool_free(p);
            errno = code;
            return EBB_FAIL(err, EBB_IO, "cannot start compute thread %u of %u; try fewer threads", i + 1, n_threads);
        }
        p->n_started++;
    }
    *out = p;
    return EBB_OK;
}

void ebb_pool_free(ebb_pool *p)
{
    if (!p)
        return;
    atomic_store(&p->is_ending, true);
    wake_workers(p);
    wake_spare(p);
    for (uint32_t i = 0; i < p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    free(p->workers);
    free(p->hedge_slots);
    free(p);
}

uint32_t ebb_pool_n_threads(const ebb_pool *p)
{
    return p->n_threads;
}

double ebb_pool_waited_s(const ebb_pool *p)
{
    return (double)atomic_load_explicit(&p->waited_ns, memory_order_relaxed) * 1e-9;
}
