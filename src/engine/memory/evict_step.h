/* memory/evict_step.h - how much is evicted when memory is short.
 *
 *     short             less than the floor is available
 *     a step            what is missing to the target: the floor and a quarter of it
 *     short again soon  twice the last step, but not more than a quarter of what is resident
 *
 * So a small shortage costs little, and whoever takes memory all the time makes about one step a
 * second, however fast it takes.
 *
 * What comes back has to leave the target.  A step ends as soon as the target is reached, so what
 * it has evicted last does not come back before somebody has given memory back.
 *
 * No clock, no memory of its own: a simulation is the real thing (tests/engine/memory). */
#ifndef EBB_EVICT_STEP_H
#define EBB_EVICT_STEP_H
#include <stdint.h>

typedef struct ebb_evict_step {
    uint64_t at_ns;              /* when the last one was */
    uint64_t n_bytes;            /* of it; 0: there was none */
} ebb_evict_step;

/* What shall be available after a step. */
int64_t ebb_evict_target(int64_t floor_bytes);
/* The bytes of the next step, `missing_bytes` at least.  It is noted as taken at now_ns. */
uint64_t ebb_evict_step_next(ebb_evict_step *s, uint64_t now_ns, uint64_t missing_bytes,
                             uint64_t resident_bytes);

#endif
