/* residency/expert_cache.h - experts that are likely to be chosen, in places that they take in
 * turn.
 *
 * Which experts a pass needs is known only when a layer has chosen them.  Then all of
 * them are expected at once: those that are not here are read side by side, through
 * the ring's loads, each into the place of one that is worth least (lrfu.h), over all
 * layers.  While these are computed with, those that the next layer may choose
 * are guessed: read behind everything else, and given up when they are not chosen.
 *
 *      begin -> expect ... -> settle -> guess ... -> acquire, release ...
 *
 * An expert's matrices stand in one place.  Places are of at most EBB_EXPERT_SLOT_SIZES sizes,
 * because layers of one file have experts of different types.
 *
 * Invariants: a place that is held, or expected since the last begin, or guessed since the last
 * settle, is not given away.  What a place holds is never changed while it is held.
 * Threads: that of the passes. */
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
    uint32_t         n_open;     /* places that have memory, and ... */
    uint64_t         open_bytes; /* ... how much */
    uint32_t         n_tokens;   /* of the layer that has begun */
    uint32_t        *waiting;    /* experts that were expected, but found no place: [i_waiting,
                                    n_waiting) still do */
    uint32_t         n_waiting, i_waiting;
    uint32_t         n_prefetched_slots; /* places that hold guesses */
    uint64_t         clock, layer_clock;
    ebb_expert_counts counts;
} ebb_expert_cache;

/* As many places as n_bytes hold; with none, every acquire is LIMIT.  `worth` knows the experts of
 * `extents` and stays.  On failure *c is empty.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_expert_cache_open(ebb_expert_cache *c, ebb_ring *ring, const ebb_res_extent *extents,
                                 uint32_t n_extents, ebb_lrfu *lrfu, uint64_t n_bytes,
                                 ebb_error *err);
void ebb_expert_cache_close(ebb_expert_cache *c); /* before the ring; an empty one is fine */

/* Between layers: memory for so many bytes of them (at most what it was opened with); what is worth
 * least goes first. */
void ebb_expert_cache_resize(ebb_expert_cache *c, uint64_t n_bytes);

/* A layer of n_tokens columns has chosen: what is expected from here on stays until it has been
 * used. */
void ebb_expert_cache_begin_layer(ebb_expert_cache *c, uint32_t n_tokens);
/* n_members columns have chosen expert e (0: the first of all layers); it is read if it is not here
 * and `is_streamed`. */
void ebb_expert_cache_announce(ebb_expert_cache *c, uint32_t e, uint32_t n_members,
                               bool is_streamed);
/* These were all: guesses that were wrong are given up. */
void ebb_expert_cache_drop_mispredicted(ebb_expert_cache *c);
/* The next layer may choose e. */
void ebb_expert_cache_prefetch(ebb_expert_cache *c, uint32_t e);
/* e has been computed with in this layer: its place may be given away, to one that was expected and
 * found none. */
void ebb_expert_cache_finish(ebb_expert_cache *c, uint32_t e);
/* Between passes: what is worth most of extents whose owner is DISK is read into the places that
 * are free, behind everything else. */
void ebb_expert_cache_fill(ebb_expert_cache *c, const uint8_t *owner);

/* Read experts that are not here, n_bytes or as many as half of the places hold, all at once and
 * with nothing computed beside; bytes per second, 0: there is nothing to read, or it failed. */
double ebb_expert_cache_read_speed(ebb_expert_cache *c, const uint8_t *owner, uint64_t n_bytes,
                                   const atomic_bool *cancel);

/* Errors: LIMIT (no place), those of ebb_ring_acquire. */
EBB_MUST_CHECK
ebb_status ebb_expert_cache_acquire(ebb_expert_cache *c, uint32_t id, const atomic_bool *cancel,
                                    const void **ptr, ebb_error *err);
/* false: it was not acquired here. */
bool ebb_expert_cache_release(ebb_expert_cache *c, uint32_t id);
/* Extent `id`, of which nothing is held, gives up its place. */
void ebb_expert_cache_evict(ebb_expert_cache *c, uint32_t id);

#endif
