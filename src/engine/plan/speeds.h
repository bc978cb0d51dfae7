/* plan/speeds.h - what was measured on this machine before: $XDG_CACHE_HOME/ebb/speeds.
 *
 * A line for each figure: whose it is (CPU, kernels, threads, program), its name, two values, when,
 * and how well it is founded.  A figure is what the machine gives when nobody else uses it.
 * Neighbours, a low clock and noise make measurements worse and never better, so a better one is
 * believed at once, and a worse one only where it was measured in quiet, again and again over some
 * time, with no better one in between.  One that was only measured beside others serves for some
 * minutes, then it is measured again. */
#ifndef EBB_SPEEDS_H
#define EBB_SPEEDS_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "kernels/kernels.h"

#define EBB_SPEED_NAME 32u
typedef struct ebb_speed {
    char     name[EBB_SPEED_NAME];       /* "weights q4_K" */
    double   v[2];
    int64_t  when_s;             /* Unix time: when it was seen last ... */
    int64_t  asked_s;            /* ... and measured last, whatever came of it */
    uint32_t n_seen;             /* measurements that it rests on */
    double   contention;         /* the least that one of these was made under */
    double   low[2];             /* the best of the worse ones that were measured in quiet since;
                                    ... */
    int64_t  low_s;              /* ... when the last of them was counted, and ... */
    uint32_t n_low;              /* ... how many were */
} ebb_speed;

#define EBB_MAX_SPEEDS 64u
typedef struct ebb_speeds {
    char      owner[160];
    ebb_speed list[EBB_MAX_SPEEDS];
    uint32_t  n;
    bool      is_changed;
    int64_t   now_s;             /* Unix time; 0: the system's clock */
} ebb_speeds;

/* Read those of this CPU with these kernels and threads, and of this build of the program; none is
 * no error.  Cost: a small file. */
void ebb_speeds_load(ebb_speeds *s, const ebb_kernels *kern, uint32_t n_threads);
/* Write them if something has changed, beside those of others.  A folder that cannot be written is
 * no error: the log says so. */
void ebb_speeds_save(ebb_speeds *s);

/* The figure of that name, measured not longer than max_age_s ago (a day at most while it rests on
 * few measurements, ten minutes while on none that was made in quiet; INT64_MAX: whenever that
 * was); false: there is none. */
bool ebb_speeds_get(const ebb_speeds *s, const char *name, int64_t max_age_s, double v[2]);
/* How old the figure is; one that a clock which was ahead has dated into the future is as old as
 * can be. */
int64_t ebb_speeds_age_s(const ebb_speeds *s, const ebb_speed *x);

typedef enum ebb_speed_kind {
    EBB_SPEED_RATE,
    EBB_SPEED_TIME
} ebb_speed_kind; /* more is better; less is */
/* It was measured, while others had the share `contention` of the machine's processor time, or of
 * what its disk transferred (0: quiet; 1: that is not known): learn of it.  v0 decides, v1 belongs
 * to it.  Where there is no room for one more figure, that which was not measured for the longest
 * time is forgotten. */
void ebb_speeds_learn(ebb_speeds *s, const char *name, ebb_speed_kind kind, double v0, double v1,
                      double contention);
/* The user doubts them: all are to be measured again, and the first measurement in quiet is
 * believed. */
void ebb_speeds_doubt(ebb_speeds *s);

#define EBB_QUIET 0.06           /* of the machine's processor time, at most, what others have in
                                    quiet */

#endif
