/* residency/cache.h - experts that were chosen of late, in memory that they take in turn.
 *
 * Which experts a pass needs is known only when a layer has chosen them.  Then all of
 * them are expected at once: those that are not here are read side by side, through
 * the ring's loads, each into the place that was used longest ago; the next time
 * they are chosen they may still be here.
 *
 * Invariant: a place that is held, or expected since the last begin, is not given away.
 * Threads: that of the passes. */
#ifndef EBB_CACHE_H
#define EBB_CACHE_H
#include "os/map.h"
#include "residency/ring.h"

typedef struct ebb_cache_place ebb_cache_place;

typedef struct ebb_cache {
    ebb_ring        *ring;
    const ebb_res_extent *extents;
    ebb_map          memory;
    size_t           place_bytes;
    ebb_cache_place *places;
    uint32_t         n_places, n_extents;
    uint32_t         n_open;     /* places that have memory */
    uint32_t        *place_of;   /* [n_extents] place, or UINT32_MAX: none */
    uint64_t         clock, begun;
    uint64_t         read_bytes; /* asked for since open */
} ebb_cache;

/* Places for extents of at most place_bytes (aligned), as many as n_bytes hold; with none, every acquire is LIMIT.
 * On failure *c is empty.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_cache_open(ebb_cache *c, ebb_ring *ring, const ebb_res_extent *extents, uint32_t n_extents,
                          uint64_t n_bytes, size_t place_bytes, ebb_error *err);
void ebb_cache_close(ebb_cache *c);              /* before the ring; an empty one is fine */

/* Between layers: memory for so many bytes of them (at most what it was opened with); what was used longest ago
 * goes first. */
void ebb_cache_resize(ebb_cache *c, uint64_t n_bytes);

/* A layer has chosen: what is expected from here on stays until it has been used. */
void ebb_cache_begin(ebb_cache *c);
/* Read `id` ahead if it is not here, and there is a place. */
void ebb_cache_expect(ebb_cache *c, uint32_t id);
/* Errors: LIMIT (no place), those of ebb_ring_acquire. */
EBB_MUST_CHECK
ebb_status ebb_cache_acquire(ebb_cache *c, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err);
/* false: it was not acquired here. */
bool ebb_cache_release(ebb_cache *c, uint32_t id);
/* `id`, which is not held, gives up its place. */
void ebb_cache_forget(ebb_cache *c, uint32_t id);

#endif
