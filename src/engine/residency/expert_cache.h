/* residency/expert_cache.h - memory for streamed experts, in slots.
 *
 * Which experts a pass needs is known only when the router of a layer has selected them.  Then all
 * of them are announced at once: those that are not cached are read in parallel, through the ring's
 * loads, each into the slot of the expert with the lowest LRFU score (lrfu.h) of all layers.  While
 * these are computed with, experts that the next layer will probably select are prefetched: read
 * after everything else, and dropped if the router does not select them.
 *
 *      begin_layer -> announce ... -> drop_mispredicted -> prefetch ...
 *                  -> acquire, release, finish ...
 *
 * The matrices of an expert are in one slot.  Slots have at most EBB_EXPERT_SLOT_SIZES sizes,
 * because layers of one file have experts of different types.
 *
 * Invariants: a slot is not given to another expert while it is acquired, or announced since the
 * last begin_layer, or prefetched since the last drop_mispredicted.  The bytes of a slot never
 * change while it is acquired.
 * Threads: the one that runs passes. */
#ifndef EBB_EXPERT_CACHE_H
#define EBB_EXPERT_CACHE_H
#include "os/map.h"
#include "residency/lrfu.h"
#include "residency/ring.h"

#define EBB_EXPERT_SLOT_SIZES 4u

typedef struct ebb_expert_slot ebb_expert_slot;
typedef struct ebb_cached_expert ebb_cached_expert;

typedef struct ebb_expert_cache {
    ebb_ring        *ring;
    const ebb_res_extent *extents;
    ebb_lrfu        *lrfu;
    ebb_map          memory;
    ebb_cached_expert *experts;
    ebb_expert_slot *slots;
    uint32_t         n_experts, n_slots, n_extents;
    uint32_t         n_open;     /* slots that have memory ... */
    uint64_t         open_bytes; /* ... and how much in all */
    uint32_t         n_tokens;   /* of the layer that has begun */
    uint32_t        *waiting;    /* announced experts without a slot: [i_waiting, n_waiting) */
    uint32_t         n_waiting, i_waiting;
    uint32_t         n_prefetched_slots; /* slots with prefetched experts */
    uint64_t         clock, layer_clock;
    ebb_expert_counts counts;
} ebb_expert_cache;

/* Opens a cache with as many slots as n_bytes hold; with none, every acquire fails with LIMIT.
 * `lrfu` has scores for the experts of `extents` and must outlive it.  On failure *c is empty.
 * Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_expert_cache_open(ebb_expert_cache *c, ebb_ring *ring, const ebb_res_extent *extents,
                                 uint32_t n_extents, ebb_lrfu *lrfu, uint64_t n_bytes,
                                 ebb_error *err);
void ebb_expert_cache_close(ebb_expert_cache *c); /* before the ring; an empty one is fine */

/* Between layers: shrinks or grows the cache to n_bytes (at most those of open); the experts with
 * the lowest scores are evicted first. */
void ebb_expert_cache_resize(ebb_expert_cache *c, uint64_t n_bytes);

/* The router of a layer has selected experts for a batch of n_tokens: experts announced from here
 * on stay until they are finished. */
void ebb_expert_cache_begin_layer(ebb_expert_cache *c, uint32_t n_tokens);
/* Expert e (numbered from 0 over all layers) was selected for n_members tokens; it is read if it is
 * not cached and is_streamed. */
void ebb_expert_cache_announce(ebb_expert_cache *c, uint32_t e, uint32_t n_members,
                               bool is_streamed);
/* All selected experts are announced: prefetched ones that are not among them are dropped. */
void ebb_expert_cache_drop_mispredicted(ebb_expert_cache *c);
/* Prefetches e: the next layer will probably select it. */
void ebb_expert_cache_prefetch(ebb_expert_cache *c, uint32_t e);
/* e was computed with in this layer: its slot may be given to an announced expert that waits. */
void ebb_expert_cache_finish(ebb_expert_cache *c, uint32_t e);
/* Between passes: reads experts, of extents whose owner is DISK, into all free slots, after
 * everything else; those with the highest scores first, then any, of all layers alike. */
void ebb_expert_cache_fill(ebb_expert_cache *c, const uint8_t *owner);

/* Reads experts that are not cached, n_bytes or as many as half of the slots hold, in parallel and
 * with nothing computed meanwhile; bytes per second, 0: nothing to read, or it failed. */
double ebb_expert_cache_read_speed(ebb_expert_cache *c, const uint8_t *owner, uint64_t n_bytes,
                                   const atomic_bool *cancel);

/* As ebb_ring_acquire.  Errors: LIMIT (no slot), those of ebb_ring_acquire. */
EBB_MUST_CHECK
ebb_status ebb_expert_cache_acquire(ebb_expert_cache *c, uint32_t id, const atomic_bool *cancel,
                                    const void **ptr, ebb_error *err);
/* false: extent `id` was not acquired from this cache. */
bool ebb_expert_cache_release(ebb_expert_cache *c, uint32_t id);
/* Frees the slot of extent `id`, which is not acquired. */
void ebb_expert_cache_evict(ebb_expert_cache *c, uint32_t id);

#endif
