/* residency/rate.h - bytes that were read: in all, and in the last second. */
#ifndef EBB_RATE_H
#define EBB_RATE_H
#include <stdint.h>

#include "base/clock.h"

#define EBB_RATE_SLOTS 8u        /* of an eighth of a second each */

typedef struct ebb_rate {
    uint64_t total;
    /* bytes in, and number of, an eighth of a second */
    uint64_t slots[EBB_RATE_SLOTS], slot_no[EBB_RATE_SLOTS];
} ebb_rate;

static inline void ebb_rate_add(ebb_rate *r, uint64_t n_bytes)
{
    uint64_t now = ebb_clock_ns() / 125000000u, i = now % EBB_RATE_SLOTS;

    r->slots[i] = r->slot_no[i] == now ? r->slots[i] + n_bytes : n_bytes;
    r->slot_no[i] = now;
    r->total += n_bytes;
}

static inline double ebb_rate_per_s(const ebb_rate *r)
{
    uint64_t now = ebb_clock_ns() / 125000000u, sum = 0;

    for (uint32_t i = 0; i < EBB_RATE_SLOTS; i++)
        sum += now - r->slot_no[i] < EBB_RATE_SLOTS ? r->slots[i] : 0;
    return (double)sum;
}

#endif
