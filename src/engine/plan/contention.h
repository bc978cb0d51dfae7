/* plan/contention.h - the processor time that others used while something was measured. */
#ifndef EBB_CONTENTION_H
#define EBB_CONTENTION_H
#include "os/proc.h"

/* A moment: what this process and the whole machine had used until then. */
typedef struct ebb_contention_mark {
    double      clock_s, own_s;
    ebb_cpu_use machine;
    bool        is_known;
} ebb_contention_mark;
void ebb_contention_begin(ebb_contention_mark *mark);
/* The share of the machine's processor time, in [0, 1], that others had since, guests of the same
 * host included; `unknown` where less than least_s has passed or the system does not say. */
double ebb_contention_since(const ebb_contention_mark *mark, double least_s, double unknown);

#endif
