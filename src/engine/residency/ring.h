/* residency/ring.h - a ring buffer for streamed weights, which are read again in each pass.
 *
 * The streamed extents pass through the ring in the order of their use, again and again.  A reader
 * (reader.h) fills it as far ahead as there is space - through the pass, and from its end into the
 * beginning of the next - while the forward pass takes extents out at the other end:
 *
 *      tail                                                     head
 *       | acquired | ready | ready | being read (some pieces) |  free space  |
 *         released: freed                                       the reader enters the next one
 *
 * Invariants:
 *  G1  Entries are in the ring in the order in which they were entered; space is freed at the tail,
 *      or at the head if the newest are dropped.  An entry that would reach beyond the end of the
 *      buffer begins at its start: huge pages cannot be mapped twice, and with small pages a direct
 *      read would be split into small requests.
 *  G2  Memory of an entry is not reused while it is acquired or a read into it is in flight.
 *  G3  head - tail <= capacity; of a mapped reader, the populated pages take no more.
 *  G4  Every acquire ends: an extent that can never have space (larger than the ring, or than what
 *      acquired entries leave of it) is populated in the mapping instead; so is one that is to be
 *      resident while there is no headroom for it.
 *
 * An acquire out of order moves the reader there; entries that were ready are lost.  A read that
 * failed is tried once more when its extent is acquired; after a second failure the ring pauses
 * until the next acquire.
 *
 * The states of an entry, and who changes them (always with the ring's lock held):
 *
 *     state      by its fields                           who changes to it
 *     entered    n_issued < n_bytes, not dead            a reader's thread, at the head
 *     in flight  n_in_flight > 0                         a reader's thread: a piece was issued
 *     ready      n_issued == n_bytes, n_in_flight == 0   a reader's thread, with the last piece
 *     failed     st is not OK                            a reader's thread; removed when acquired
 *     held       ready, n_held > 0                       the acquirer; dead with the last release
 *     dead       is_dead, n_held == 0                    the acquirer: released or passed over
 *     dropping   dead, is_dropped, n_in_flight > 0       a reader's thread; of a mapped reader only
 *     gone       its space is free at tail or head       any of them, with nothing in flight
 *
 * A waiting acquire drops the lock, so other entries may change meanwhile: it looks its entry up
 * again after each wait.  The reader's threads drop it to ask for headroom.
 *
 * Threads: acquire, release and stream from one thread; get_stats, has and load_state from any. */
#ifndef EBB_RING_H
#define EBB_RING_H
#include <stdatomic.h>

#include "residency/loads.h"
#include "residency/reader.h"
#include "residency/residency.h"

typedef struct ebb_ring ebb_ring;

typedef struct ebb_ring_stats {
    uint64_t ring_bytes;         /* of its memory; 0 of a mapped reader */
    uint64_t read_bytes, stall_ns;       /* since open */
    uint64_t pending_bytes;      /* that BACKGROUND loads will take */
    double   bytes_s;            /* read in the last second, loads included */
} ebb_ring_stats;

/* Opens a ring of `cap` bytes, rounded up to pages (from 2 MiB on to huge ones), that no extent
 * passes through yet; `headroom` is for BACKGROUND loads.  `files` and `extents` must outlive it.
 * Errors: UNSUPPORTED, NOMEM, IO. */
EBB_MUST_CHECK
ebb_status ebb_ring_open(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                         const ebb_res_extent *extents, uint32_t n_extents, uint64_t cap,
                         ebb_headroom headroom, ebb_ring **out, ebb_error *err);
void ebb_ring_close(ebb_ring *g);                /* NULL is fine */

/* Sets whether extent `id` passes through the ring; to end that, it must not be acquired. */
void ebb_ring_stream(ebb_ring *g, uint32_t id, bool is_streamed);

/* Loads extent `id`, which is not streamed, into `home` (aligned, ebb_pin_bytes of it), which must
 * stay until it is unloaded: as BACKGROUND, in the order of use, beside the streamed extents; or as
 * PREFETCH, or URGENT (loads.h).  An acquire waits for it; a release does nothing.  A load to
 * `home` that exists already is at most made URGENT.  Returns its state before. */
ebb_load_state ebb_ring_load(ebb_ring *g, uint32_t id, char *home, ebb_load_state how);
/* Homes from here on are in this region, of which nothing is written yet and whose huge pages come
 * whole (huge_pages.h); NULL: they are not.  No load to either region exists.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_ring_set_home_region(ebb_ring *g, const ebb_map *region, ebb_error *err);
/* Gives the memory of a home that no load has back to the system. */
void ebb_ring_give_home_back(ebb_ring *g, char *at, size_t n_bytes);
/* Drops a load; waits for its reads in flight. */
void ebb_ring_unload(ebb_ring *g, uint32_t id);
/* Drops a load without waiting; while it is IN_FLIGHT its home must not be reused. */
void ebb_ring_cancel_load(ebb_ring *g, uint32_t id);
ebb_load_state ebb_ring_load_state(ebb_ring *g, uint32_t id);
bool ebb_ring_is_loaded(ebb_ring *g, uint32_t id);
/* Whether a load of extents [first, first + n) is IN_FLIGHT. */
bool ebb_ring_is_in_flight(ebb_ring *g, uint32_t first, uint32_t n);

/* *ptr is the first byte of extent `id`, valid until release; acquiring it again costs nothing.
 * Waits for its reads; *cancel (NULL: never) ends the wait within 20 ms.  Errors: IO, FORMAT
 * (truncated), CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_ring_acquire(ebb_ring *g, uint32_t id, const atomic_bool *cancel, const void **ptr,
                            ebb_error *err);
void ebb_ring_release(ebb_ring *g, uint32_t id);

/* Whether an acquire of `id` would not wait, and leave at most half of the ring acquired. */
bool ebb_ring_is_ready(ebb_ring *g, uint32_t id);

/* Whether any of extents [first, first + n) is in the ring or being read. */
bool ebb_ring_has(ebb_ring *g, uint32_t first, uint32_t n);
void ebb_ring_get_stats(ebb_ring *g, ebb_ring_stats *out);
/* NULL, or the broken rule of G1-G3 or loads.h.  From any thread. */
const char *ebb_ring_check(ebb_ring *g);

#endif
