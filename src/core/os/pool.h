/* os/pool.h - the compute pool: fork, hand out slices, join.
 *
 * A job is a function called once for each slice index in [0, n_slices), by
 * whichever thread comes first (an atomic counter hands slices out), so a slow
 * or stolen CPU delays at most the slice it holds.  The caller works too.
 * Threads wait by spinning for some microseconds and then sleep in a futex;
 * an idle pool costs nothing.  Affinity is left alone. */
#ifndef EBB_OS_POOL_H
#define EBB_OS_POOL_H
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"

typedef struct ebb_pool ebb_pool;

/* slice in [0, n_slices); thread in [0, n_threads): which scratch to use. */
typedef void ebb_slice_fn(void *arg, uint32_t slice, uint32_t thread);

/* n_threads includes the caller of run; 1 starts no thread, more start one that sleeps, to spare.
 * Errors: NOMEM, IO (no thread to be had).  The caller owns *out. */
EBB_MUST_CHECK
ebb_status ebb_pool_new(uint32_t n_threads, ebb_pool **out, ebb_error *err);
void ebb_pool_free(ebb_pool *p);                 /* NULL is fine */
uint32_t ebb_pool_n_threads(const ebb_pool *p);
/* How long the callers of run have waited for others, with no slice left to take.  Any thread may
 * ask. */
double   ebb_pool_waited_s(const ebb_pool *p);

/* Run fn for all slices and return when all are done.  One caller at a time.
 * Cost: one atomic per slice, about 1 us of hand-over. */
void ebb_pool_run(ebb_pool *p, ebb_slice_fn *fn, void *arg, uint32_t n_slices);

/* Work of which a slice may be done twice.  A thread that loses its CPU in the middle of a slice
 * loses it for milliseconds; so the caller, when it has nothing else left and has waited for twice
 * the time of a slice, does that slice anew and goes on.  compute therefore reads its own copy of
 * `arg` (and what that points to, by then perhaps written over: nobody uses what comes of it),
 * writes to `out` and its thread's scratch only; commit, called once for each slice, puts `out`
 * where it belongs.
 *
 * For some runs after such an event one more thread helps, the number n_threads: there must be
 * scratch for it (EBB_POOL_SCRATCHES), and it takes no part in any other work. */
#define EBB_HEDGED_ARG 10240u    /* most bytes of arg */
#define EBB_POOL_SCRATCHES(n_threads) ((n_threads) + 1)
#define EBB_HEDGED_OUT 4096u     /* bytes of out, 64-byte aligned */

typedef struct ebb_hedged_work {
    void (*compute)(const void *arg, uint32_t slice, uint32_t thread, void *out);
    void (*commit)(const void *arg, uint32_t slice, const void *out);
} ebb_hedged_work;

/* As ebb_pool_run; arg_bytes at most EBB_HEDGED_ARG. */
void ebb_pool_run_hedged(ebb_pool *p, const ebb_hedged_work *what, const void *arg,
                         size_t arg_bytes, uint32_t n_slices);
/* Wait until no late thread computes any more: before memory that an arg led to is given away. */
void ebb_pool_drain(ebb_pool *p);

#endif
