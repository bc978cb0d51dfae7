/* How much is evicted when memory is short (evict_step.h). */
#include "memory/evict_step.h"

#define SOON_NS 1000000000u                      /* short again within that: others take all the time */

int64_t ebb_evict_target(int64_t floor_bytes)
{
    return floor_bytes + floor_bytes / 4;        /* the plan leaves a third more than the floor (reclaim.c) */
}

uint64_t ebb_evict_step_next(ebb_evict_step *s, uint64_t now_ns, uint64_t missing_bytes, uint64_t resident_bytes)
{
    uint64_t more = s->n_bytes > 0 && now_ns - s->at_ns < SOON_NS ? 2 * s->n_bytes : 0;

    more = more < resident_bytes / 4 ? more : resident_bytes / 4;
    *s = (ebb_evict_step){ .at_ns = now_ns, .n_bytes = more > missing_bytes ? more : missing_bytes };
    return s->n_bytes;
}
