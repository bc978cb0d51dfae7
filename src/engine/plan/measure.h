/* plan/measure.h - how fast this machine is, in short measurements.
 *
 * By the kernels that will run, on weights that stand in memory: a plain walk through
 * memory would promise too much.  Of several passes the better half counts, so
 * that a stolen moment does not. */
#ifndef EBB_MEASURE_H
#define EBB_MEASURE_H
#include "kernels/kernels.h"
#include "os/pool.h"

typedef struct ebb_meter ebb_meter;

/* A meter for the pool's threads; `pool` and `kern` must outlive it.  It takes as much memory as
 * the weights of the model that is asked about, at most 256 MiB: then they come from memory, if
 * the model's do, and not from a cache.  Error: NOMEM.  Cost: up to 50 ms. */
EBB_MUST_CHECK
ebb_status ebb_meter_open(ebb_pool *pool, const ebb_kernels *kern, uint64_t weights_bytes, ebb_meter **out, ebb_error *err);
void ebb_meter_close(ebb_meter *m);              /* NULL is fine */

/* Each takes some 20 to 40 ms. */
double ebb_meter_bytes(ebb_meter *m, ebb_type type);     /* of weights per second, one column */
double ebb_meter_macs(ebb_meter *m, ebb_type type);      /* multiply-adds per second, many columns */
double ebb_meter_sync(ebb_meter *m);                     /* seconds that it takes to hand slices out and back */

/* Multiply on all threads, one column, until end; returns what came of it in bytes per
 * second.  Between them the pool is the meter's.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_meter_begin(ebb_meter *m, ebb_type type, ebb_error *err);
double ebb_meter_end(ebb_meter *m);

#endif
