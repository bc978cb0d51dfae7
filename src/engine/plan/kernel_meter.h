/* plan/kernel_meter.h - how fast this machine is, in short measurements.
 *
 * By the kernels that will run, a matrix at a time as a pass does it: with its slices, its
 * hand-over and its end at which threads wait for each other.  The matrix is driven out of the
 * caches before each time, as the rest of a model would; a walk through one large region, or the
 * same bytes again and again, promise too much.  A time is half a millisecond.  Only those count in
 * which all threads had their processors, and of these the least. */
#ifndef EBB_KERNEL_METER_H
#define EBB_KERNEL_METER_H
#include "ebb/experimental/plan.h"
#include "kernels/kernels.h"
#include "os/pool.h"

typedef struct ebb_meter ebb_meter;

/* A meter for the pool's threads; `pool` and `kern` must outlive it.  A model of so few bytes of
 * weights that they stay in a cache is measured in the cache.  Takes 20 MiB.  Error: NOMEM.  Cost:
 * some milliseconds. */
EBB_MUST_CHECK
ebb_status ebb_meter_open(ebb_pool *pool, const ebb_kernels *kern, uint64_t weights_bytes,
                          ebb_meter **out, ebb_error *err);
void ebb_meter_close(ebb_meter *m);              /* NULL is fine */

/* 10 to 30 ms, 2 to 10 ms, less than one; with contention 60. */
double ebb_meter_bytes(ebb_meter *m, ebb_type type);     /* of weights per second, one column */
double ebb_meter_macs(ebb_meter *m, ebb_type type);      /* multiply-adds per second, many
                                                            columns */
double ebb_meter_sync(ebb_meter *m);                     /* seconds that it takes to hand slices out
                                                            and back */
/* What the speeds above do not say (ebb/experimental/plan.h): of a small product what is more than
 * its bytes and multiply-adds take, at speeds that a large one of this type has; of attention rows
 * of 32 and of 128 elements, at 512 positions; of a recurrent state one of 128 x 128.  Three
 * milliseconds. */
void ebb_meter_overheads(ebb_meter *m, ebb_type type, const ebb_type_speed *large,
                         ebb_overheads *out);
/* What share of the machine's processor time others had since the meter was opened; 0 where that is
 * too short to say and no time was disturbed.  1: something was measured while neighbours took
 * processors all the time.  Then it is what came of each second of processor time: a good guess,
 * and nothing to be remembered. */
double ebb_meter_contention(const ebb_meter *m);

/* Multiply on all threads, one column of `load_bytes` of memory (at most 256 MiB), until end;
 * returns what share of the speed without neighbours came of it, in (0, 1].  Between them the pool
 * is the meter's.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_meter_begin_load(ebb_meter *m, ebb_type type, uint64_t load_bytes, ebb_error *err);
double ebb_meter_end_load(ebb_meter *m);

#endif
