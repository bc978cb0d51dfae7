/* plan/contention.h - what others used of processors and disk while something was measured. */
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

/* The same of a block device: what this process and everybody had transferred until then. */
typedef struct ebb_disk_mark {
    uint64_t device, own_bytes, all_bytes;
    bool     is_known;
} ebb_disk_mark;
void ebb_disk_contention_begin(uint64_t device, ebb_disk_mark *mark);
/* The share of what the device transferred since, in [0, 1], that was for others; 0 where the
 * system does not say.  Writes of this process count as others'. */
double ebb_disk_contention_since(const ebb_disk_mark *mark);

#endif
