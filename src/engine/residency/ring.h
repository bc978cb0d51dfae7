/* residency/ring.h - weights that are read anew for each pass.
 *
 * The streamed extents, in the order of their use and round and round, pass
 * through a ring of bytes.  A reader (reader.h) fills it as far ahead as there
 * is room - through the pass, and from its end into the beginning of the next -
 * while the forward pass takes extents out at the other end:
 *
 *      tail                                                     head
 *       | in use (held) | ready | ready | being read (some pieces) |     room     |
 *         released: goes                                    the reader enters the next one
 *
 * Invariants:
 *  G1  Entries stand in the ring in the order in which they were entered; room
 *      comes back at the tail, or at the head if the newest are given up.  One that
 *      would reach over the ring's end begins at its beginning: huge pages have no
 *      second sight, and in small ones a direct read is cut into small requests.
 *  G2  Memory of an entry is not given to another while it is held or while a
 *      read into it is under way.
 *  G3  head - tail <= capacity; of a mapped reader, the populated pages take no more.
 *  G4  An acquire ends: an extent that can never have room (larger than the
 *      ring, or than what others hold of it) is populated in the mapping instead; so is one that is
 *      to stay while there is no memory for it.
 *
 * An acquire out of order moves the reader there; what stood ready is lost.
 * A read that failed is tried once more when its extent is asked for; after a
 * second failure the ring rests until the next acquire.
 *
 * An entry, and who moves it (always with the ring's lock held):
 *
 *     state      by its fields                           who moves it there
 *     entered    n_issued < n_bytes, not dead            a reader's thread, at the head
 *     in flight  n_in_flight > 0                         a reader's thread: a piece asked for
 *     ready      n_issued == n_bytes, n_in_flight == 0   a reader's thread, with the last piece
 *     failed     st is not OK                            a reader's thread; goes when asked for
 *     held       ready, n_held > 0                       who acquires; dead with the last release
 *     dead       is_dead, n_held == 0                    who acquires: released or passed over
 *     dropping   dead, is_dropped, n_in_flight > 0       a reader's thread; of a mapped reader only
 *     gone       its room is the tail's or the head's    whoever finds it so, nothing in flight
 *
 * A waiting acquire gives up the lock, so that all of this may happen to other entries meanwhile:
 * it looks its entry up again after each wait.  The reader's threads give it up to ask for
 * headroom.
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
    uint64_t pending_bytes;      /* of memory that what is BACKGROUND will take */
    double   bytes_s;            /* read in the last second, with what is loaded */
} ebb_ring_stats;

/* A ring of `cap` bytes, rounded up to a page or from 2 MiB on to a huge one, that nothing passes
 * through yet; `room` for what is BACKGROUND (residency.h).  `files` and `extents` must outlive it.
 * Errors: UNSUPPORTED, NOMEM, IO. */
EBB_MUST_CHECK
ebb_status ebb_ring_open(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                         const ebb_res_extent *extents, uint32_t n_extents, uint64_t cap,
                         ebb_headroom headroom, ebb_ring **out, ebb_error *err);
void ebb_ring_close(ebb_ring *g);                /* NULL is fine */

/* Whether extent `id` passes through the ring.  One that does not any more must not be held. */
void ebb_ring_stream(ebb_ring *g, uint32_t id, bool is_streamed);

/* Extent `id`, which is not streamed, is read into `home` (aligned, ebb_pin_bytes of it), which
 * must stay while it is: BACKGROUND in the order of use, beside what streams; or PREFETCH, or
 * URGENT (loads.h).  An acquire waits for it; a release does nothing.  If it is loaded there
 * already, nothing is done but to make it URGENT.  Returns what it was before. */
ebb_load_state ebb_ring_load(ebb_ring *g, uint32_t id, char *home, ebb_load_state how);
/* Not any more; waits for reads that are under way. */
void ebb_ring_unload(ebb_ring *g, uint32_t id);
/* No more of it than has been asked for; while it is IN_FLIGHT its home is not free. */
void ebb_ring_cancel_load(ebb_ring *g, uint32_t id);
ebb_load_state ebb_ring_load_state(ebb_ring *g, uint32_t id);
bool ebb_ring_is_loaded(ebb_ring *g, uint32_t id);
/* Something of extents [first, first + n) is being read to where it stays. */
bool ebb_ring_is_in_flight(ebb_ring *g, uint32_t first, uint32_t n);

/* The first byte of extent `id`, until release; a second acquire of one that is
 * held costs nothing.  Waits for its reads; *cancel (NULL: never) ends the wait
 * within 20 ms.  Errors: IO, FORMAT (truncated), CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_ring_acquire(ebb_ring *g, uint32_t id, const atomic_bool *cancel, const void **ptr,
                            ebb_error *err);
void ebb_ring_release(ebb_ring *g, uint32_t id);

/* Whether an acquire of `id` would not wait, and at most half of the ring would be held then. */
bool ebb_ring_is_ready(ebb_ring *g, uint32_t id);

/* Some of extents [first, first + n) stand in the ring or are on their way. */
bool ebb_ring_has(ebb_ring *g, uint32_t first, uint32_t n);
void ebb_ring_get_stats(ebb_ring *g, ebb_ring_stats *out);
/* NULL, or which of G1-G3 or of the rules of loads.h does not hold.  From any thread. */
const char *ebb_ring_check(ebb_ring *g);

#endif
