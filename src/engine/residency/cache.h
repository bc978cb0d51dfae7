/* residency/cache.h - experts that are likely to be chosen, in places that they take in turn.
 *
 * Which experts a pass needs is known only when a layer has chosen them.  Then all of
 * them are expected at once: those that are not here are read side by side, through
 * the ring's loads, each into the place of one that is worth least (worth.h), over all
 * layers.  While these are computed with, those that the next layer may choose
 * are guessed: read behind everything else, and given up when they are not chosen.
 *
 *      begin -> expect ... -> settle -> guess ... -> acquire, release ...
 *
 * An expert's matrices stand in one place.  Places are of at most EBB_CACHE_CLASSES sizes, because layers of
 * one file have experts of different types.
 *
 * Invariants: a place that is held, or expected since the last begin, or guessed since the last settle, is not
 * given away.  What a place holds is never changed while it is held.
 * Threads: that of the passes. */
#ifndef EBB_CACHE_H
#define EBB_CACHE_H
#include "os/map.h"
#include "residency/ring.h"
#include "residency/worth.h"

#define EBB_CACHE_CLASSES 4u

typedef struct ebb_cache_place ebb_cache_place;
typedef struct ebb_cache_expert ebb_cache_expert;

typedef struct ebb_cache {
    ebb_ring        *ring;
    const ebb_res_extent *extents;
    ebb_worth       *worth;
    ebb_map          memory;
    ebb_cache_expert *experts;
    ebb_cache_place *places;
    uint32_t         n_experts, n_places, n_extents;
    uint32_t         n_open;     /* places that have memory, and ... */
    uint64_t         open_bytes; /* ... how much */
    uint32_t         n_cols;     /* of the layer that has begun */
    uint32_t        *waiting;    /* experts that were expected, but found no place: [i_waiting, n_waiting) still do */
    uint32_t         n_waiting, i_waiting;
    uint32_t         n_guesses;  /* places that hold guesses */
    uint64_t         clock, begun;
    ebb_expert_counts counts;
} ebb_cache;

/* As many places as n_bytes hold; with none, every acquire is LIMIT.  `worth` knows the experts of `extents` and stays.
 * On failure *c is empty.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_cache_open(ebb_cache *c, ebb_ring *ring, const ebb_res_extent *extents, uint32_t n_extents,
                          ebb_worth *worth, uint64_t n_bytes, ebb_error *err);
void ebb_cache_close(ebb_cache *c);              /* before the ring; an empty one is fine */

/* Between layers: memory for so many bytes of them (at most what it was opened with); what is worth least goes first. */
void ebb_cache_resize(ebb_cache *c, uint64_t n_bytes);

/* A layer of n_cols columns has chosen: what is expected from here on stays until it has been used. */
void ebb_cache_begin(ebb_cache *c, uint32_t n_cols);
/* n_members columns have chosen expert e (0: the first of all layers); it is read if it is not here and `is_streamed`. */
void ebb_cache_expect(ebb_cache *c, uint32_t e, uint32_t n_members, bool is_streamed);
/* These were all: guesses that were wrong are given up. */
void ebb_cache_settle(ebb_cache *c);
/* The next layer may choose e. */
void ebb_cache_guess(ebb_cache *c, uint32_t e);
/* e has been computed with in this layer: its place may be given away, to one that was expected and found none. */
void ebb_cache_done(ebb_cache *c, uint32_t e);
/* Between passes: what is worth most of extents whose owner is DISK is read into the places that are free, behind everything else. */
void ebb_cache_fill(ebb_cache *c, const uint8_t *owner);

/* Read experts that are not here, n_bytes or as many as half of the places hold, all at once and with nothing computed beside;
 * bytes per second, 0: there is nothing to read, or it failed. */
double ebb_cache_read_speed(ebb_cache *c, const uint8_t *owner, uint64_t n_bytes, const atomic_bool *cancel);

/* Errors: LIMIT (no place), those of ebb_ring_acquire. */
EBB_MUST_CHECK
ebb_status ebb_cache_acquire(ebb_cache *c, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err);
/* false: it was not acquired here. */
bool ebb_cache_release(ebb_cache *c, uint32_t id);
/* Extent `id`, of which nothing is held, gives up its place. */
void ebb_cache_forget(ebb_cache *c, uint32_t id);

#endif
