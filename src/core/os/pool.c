/* The compute pool.
 *
 * All of a job's state that threads race for is one 64-bit ticket,
 *
 *     | n_slices 32 | next slice 32 |
 *
 * A thread adds 1 and looks at what it got: a slice number below n_slices is its
 * own, and until that slice is counted as done the caller cannot return, so
 * fn and arg stay as they are.  Anything else means there is nothing to do.
 * A worker that wakes late therefore delays nobody: it finds no slice. */
#include "os/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/fault.h"

enum { SPINS = 1000 };           /* some tens of microseconds before sleeping */

typedef struct worker {
    ebb_pool *pool;
    pthread_t thread;
    uint32_t  id;
} worker;

struct ebb_pool {
    uint32_t n_threads, n_started;
    worker  *workers;
    ebb_slice_fn *fn;            /* of the job under way: written before the ticket */
    void    *arg;
    _Alignas(64) atomic_ullong ticket;
    _Alignas(64) atomic_uint n_done;             /* slices; futex of the caller */
    atomic_uint caller_sleeps;
    _Alignas(64) atomic_uint job_no;             /* futex of the workers */
    atomic_uint n_sleeping;
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

static void take_slices(ebb_pool *p, uint32_t thread)
{
    for (;;) {
        unsigned long long t = atomic_fetch_add(&p->ticket, 1);
        uint32_t s = (uint32_t)t, n = (uint32_t)(t >> 32);

        if (s >= n)
            return;
        p->fn(p->arg, s, thread);
        if (atomic_fetch_add(&p->n_done, 1) + 1 == n && atomic_load(&p->caller_sleeps))
            futex_wake(&p->n_done, 1);
    }
}

/* Until job_no differs from `seen`; the new number. */
static unsigned wait_job(ebb_pool *p, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&p->job_no) != seen)
            return atomic_load(&p->job_no);
        pause_cpu();
    }
    atomic_fetch_add(&p->n_sleeping, 1);
    while (atomic_load(&p->job_no) == seen)
        futex_wait(&p->job_no, seen);
    atomic_fetch_sub(&p->n_sleeping, 1);
    return atomic_load(&p->job_no);
}

static void *work(void *arg)
{
    worker *w = arg;
    ebb_pool *p = w->pool;
    unsigned seen = 0;

    for (;;) {
        seen = wait_job(p, seen);
        if (atomic_load(&p->is_ending))
            return NULL;
        take_slices(p, w->id);
    }
}

static void publish(ebb_pool *p)
{
    atomic_fetch_add(&p->job_no, 1);
    if (atomic_load(&p->n_sleeping) > 0)
        futex_wake(&p->job_no, (int)p->n_started);
}

static void wait_done(ebb_pool *p, uint32_t n_slices)
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

void ebb_pool_run(ebb_pool *p, ebb_slice_fn *fn, void *arg, uint32_t n_slices)
{
    if (p->n_started == 0 || n_slices <= 1) {    /* nobody to share with */
        for (uint32_t s = 0; s < n_slices; s++)
            fn(arg, s, 0);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store(&p->n_done, 0);
    atomic_store(&p->ticket, (unsigned long long)n_slices << 32);
    publish(p);
    take_slices(p, 0);
    wait_done(p, n_slices);
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
    if (!p->workers) {
        ebb_pool_free(p);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a pool of %u threads", n_threads);
    }
    for (uint32_t i = 0; i + 1 < n_threads; i++) {
        worker *w = &p->workers[i];

        *w = (worker){ .pool = p, .id = i + 1 };
        errno = ebb_os_fault(EAGAIN) ? EAGAIN : pthread_create(&w->thread, NULL, work, w);
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
    publish(p);
    for (uint32_t i = 0; i < p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    free(p->workers);
    free(p);
}

uint32_t ebb_pool_n_threads(const ebb_pool *p)
{
    return p->n_threads;
}
