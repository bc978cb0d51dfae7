/* plan/measure.h - how fast this machine is, in two short measurements. */
#ifndef EBB_MEASURE_H
#define EBB_MEASURE_H
#include "kernels/kernels.h"
#include "os/pool.h"

/* By the kernels that will run: a plain walk through memory would promise too
 * much.  Each takes about 0.1 s with all threads of the pool, and returns 0 where
 * it cannot be measured (no memory). */
double ebb_measure_memory(ebb_pool *p, const ebb_kernels *kern);     /* bytes of weights per second, Q4_K, one column */
double ebb_measure_int8(ebb_pool *p, const ebb_kernels *kern);       /* multiply-adds per second, Q4_K, many columns */

#endif
