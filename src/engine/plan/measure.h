/* plan/measure.h - how fast this machine is, in three short measurements. */
#ifndef EBB_MEASURE_H
#define EBB_MEASURE_H
#include "os/pool.h"

/* Each takes about 0.15 s with all threads of the pool, and returns 0 where it
 * cannot be measured (no memory, no direct reads). */
double ebb_measure_memory(ebb_pool *p);          /* bytes read per second */
double ebb_measure_int8(ebb_pool *p);            /* multiply-adds per second of the best kernels, Q4_K, many columns */
double ebb_measure_disk(ebb_pool *p, const char *path);  /* bytes per second of direct reads of the file, two lanes */

#endif
