/* plan/speeds.h - what was measured on this machine before: $XDG_CACHE_HOME/ebb/speeds.
 *
 * A line for each figure: whose it is (CPU, kernels, threads, program), its name, two values, when.  A figure
 * stands as the best of a day: a machine that has other work at the moment of a measurement is not a slower machine. */
#ifndef EBB_SPEEDS_H
#define EBB_SPEEDS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "kernels/kernels.h"

#define EBB_SPEED_NAME 32u
typedef struct ebb_speed {
    char    name[EBB_SPEED_NAME];        /* "weights q4_K" */
    double  v[2];
    int64_t when_s;              /* Unix time */
} ebb_speed;

#define EBB_MAX_SPEEDS 64u
typedef struct ebb_speeds {
    char      owner[160];
    ebb_speed list[EBB_MAX_SPEEDS];
    uint32_t  n;
    bool      is_changed;
} ebb_speeds;

/* Read those of this CPU with these kernels and threads, and of this build of the program; none is no error.
 * Cost: a small file. */
void ebb_speeds_load(ebb_speeds *s, const ebb_kernels *kern, uint32_t n_threads);
/* Write them if something has changed, beside those of others.  A folder that cannot be written is no error: the
 * log says so. */
void ebb_speeds_save(ebb_speeds *s);

/* The figure of that name, not older than max_age_s; false: there is none. */
bool ebb_speeds_get(const ebb_speeds *s, const char *name, int64_t max_age_s, double v[2]);
/* Keep it if v[0] is better than what stands, or if that is older than a day. */
void ebb_speeds_offer(ebb_speeds *s, const char *name, double v0, double v1);
/* Keep it in any case. */
void ebb_speeds_put(ebb_speeds *s, const char *name, double v0, double v1);

#endif
