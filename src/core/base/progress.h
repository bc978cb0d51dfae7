/* base/progress.h - long work that another thread watches and may stop.
 *
 * One thread works and calls ebb_progress_at; any other reads the share and stops it.  A NULL
 * pointer is work that nobody watches. */
#ifndef EBB_BASE_PROGRESS_H
#define EBB_BASE_PROGRESS_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ebb_progress {
    _Atomic uint32_t permille;   /* of the whole */
    atomic_bool is_stopped;
    uint32_t    from, to;        /* the worker's: the part of the whole that it is at; 0, 0: all */
} ebb_progress;

/* What follows is this part of the whole, in permille. */
void ebb_progress_part(ebb_progress *p, uint32_t from, uint32_t to);
/* i of n of that part are done.  false: it is to stop. */
bool ebb_progress_at(ebb_progress *p, uint64_t i, uint64_t n);
void ebb_progress_stop(ebb_progress *p);
bool ebb_progress_is_stopped(const ebb_progress *p);
double ebb_progress_share(const ebb_progress *p); /* 0 to 1 */

#endif
