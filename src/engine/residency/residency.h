/* residency/residency.h - which weights are resident, and how the others are streamed.
 *
 * The weights of a model are cut into extents: one per matrix (one per expert where a tensor has
 * several).  A forward pass uses the extents in the order in which they were given to ebb_res_open;
 * that order is the schedule, so a reader always knows which extent is next.  Extents belong to
 * groups: group i < n_layers is layer i, group n_layers has the weights outside the layers (the
 * output matrix).  A group has one of these states:
 *
 *     PINNED <--+
 *     one anonymous copy, past the page cache
 *               |
 *     MAPPED <--+-- ebb_res_set_state (between uses)
 *     the file's own pages, from the page cache
 *               |
 *     DISK   <--+
 *       |  ^ release
 *       v  |
 *     READING: a reader reads the next extents into the ring (ring.h) -> acquired
 *
 * Invariants:
 *  R1  A byte has one owner: of a pinned or streamed group nothing stays mapped,
 *      and its pages are dropped from the page cache.
 *  R2  A pointer from acquire is valid until the matching release, no longer.
 *  R3  Weights are read-only: memory is evicted without writing it back.
 *  R4  A group changes state only while none of its extents is acquired.  Acquiring, releasing and
 *      changing a state take one lock, so that acquired extents cannot be evicted.
 *  R5  Only this directory maps, advises or reads weights.
 *  R6  Bytes do not depend on states: every acquire gives what the file held at open,
 *      or an error.
 *
 * Which thread may change a group's state, always with the lock held:
 *
 *     from      to        the passes' thread                            any thread
 *     MAPPED    PINNED    ebb_res_set_state, _pin_async, n_acquired 0   no
 *     PINNED    MAPPED    ebb_res_set_state, n_acquired 0               no
 *     any       DISK      ebb_res_set_state, n_acquired 0; a ring       from PINNED: ebb_res_evict,
 *                                                                       n_acquired 0
 *     DISK      any       ebb_res_set_state, n_acquired 0               no
 *
 * In a PINNED group the passes' thread sets an extent's address (`at`) to its place in the copy
 * (`home`) when it acquires the extent and the reader has loaded it.  begin_use increments
 * n_acquired before it looks at the state, so a group that is being computed with is never evicted.
 *
 * Extents that do not stay with their group may be lent memory for a while, whatever its state is:
 * they are pinned apart (ebb_res_lend), and go back to DISK by themselves (ebb_res_take_back, by
 * the passes' thread; ebb_res_evict, by any; n_acquired 0) or with the group.
 *
 * Single rows of a matrix (token_embd) are read with ebb_res_read: such a matrix need not be an
 * extent at all, and does not become resident.
 *
 * Threads: everything from the thread that runs passes; ebb_res_get_stats, ebb_res_states,
 * ebb_res_missing_bytes and ebb_res_evict from any.  ebb_res_prefault starts one of its own, which
 * changes no state. */
#ifndef EBB_RESIDENCY_H
#define EBB_RESIDENCY_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/engine.h"
#include "ebb/stats.h"
#include "ebb/status.h"

typedef struct ebb_res ebb_res;
typedef struct ebb_read_speed ebb_read_speed;    /* read_speed.h */

/* A file of the model; of a split model several, in order. */
typedef struct ebb_res_part {
    const char *path;            /* for messages, and for readers that open it again */
    int         fd;              /* open for reading, owned by the caller; -1: in memory */
    const char *memory;          /* the whole file, if in memory */
    uint64_t    n_bytes;
} ebb_res_part;

typedef struct ebb_res_extent {
    const char *name;            /* of the tensor, for messages; outlives the ebb_res */
    uint64_t    offset, n_bytes; /* in its part */
    uint64_t    n_elems;
    uint32_t    part;
    uint32_t    group;
    bool        is_certain;      /* every pass reads it; false: only if the router selects ... */
    uint32_t    expert;          /* ... this expert, numbered from 1 over all layers, whose extents
                                    are contiguous; 0: it belongs to none */
} ebb_res_extent;

/* Hits and misses of the expert cache, in passes of one token. */
typedef struct ebb_expert_counts {
    uint64_t n_tokens;           /* layers with experts that such passes computed */
    uint64_t n_chosen, n_hits;   /* experts that were selected; of these, in memory ... */
    uint64_t n_prefetch_hits;    /* ... or being read by expert prefetch */
    uint64_t n_prefetched;       /* reads that expert prefetch began */
    uint64_t read_bytes, decode_read_bytes; /* requested by all passes; by those of one token */
} ebb_expert_counts;

typedef struct ebb_res_stats {
    uint64_t pinned_bytes, mapped_bytes, ring_bytes;
    uint64_t lent_bytes;         /* of pinned_bytes */
    uint64_t cache_bytes;        /* of the expert cache */
    ebb_expert_counts experts;    /* since open */
    uint64_t read_bytes;         /* weights read from disk for passes, since open */
    uint64_t stall_ns;           /* waited in acquire, since open */
    double   disk_bytes_s;       /* of read_bytes, those of the last second */
    uint32_t n_resident;         /* layers that are pinned or mapped; partly resident ones count by
                                    their share */
} ebb_res_stats;

/* Map the parts; nothing is read, so it costs microseconds.  All groups are
 * MAPPED.  `parts` and `extents` (in order of use, groups contiguous) are
 * copied; paths, descriptors and memory must outlive the ebb_res.  On failure
 * *out is NULL.  Errors: IO, NOMEM, FORMAT (a part has become shorter than its
 * tensors: names the tensor). */
EBB_MUST_CHECK
ebb_status ebb_res_open(const ebb_res_part *parts, uint32_t n_parts, const ebb_res_extent *extents,
                        uint32_t n_extents, uint32_t n_layers, ebb_res **out, ebb_error *err);
void ebb_res_close(ebb_res *r);                  /* nothing may be acquired; NULL is fine */

/* *cancel ends every wait of acquire and set_state within 20 ms; NULL: never. */
void ebb_res_set_cancel(ebb_res *r, const atomic_bool *cancel);

/* Before memory is taken for a piece of a weight that will be resident, has(arg, n_bytes) says
 * whether there is headroom for it; it is called from the reader's threads and must not call the
 * residency.  Without headroom an acquired extent is read into the page cache until it is released,
 * and other loads wait.  Set it before any group changes its state. */
typedef struct ebb_headroom {
    bool (*has)(void *arg, uint64_t n_bytes);    /* NULL: always */
    void *arg;
} ebb_headroom;
void ebb_res_set_headroom(ebb_res *r, ebb_headroom headroom);

/* Chooses the reader: that of `io`, or for AUTO the fastest by `speeds` (NULL: not measured).
 * Where the system refuses one the next is chosen, and ebb_res_io_reason says so.  With
 * ring_bytes > 0, groups can be DISK from now on; with 0, and on failure, none can: those that
 * were are MAPPED. Nothing may be acquired.  Errors: NOMEM, IO, UNSUPPORTED. */
EBB_MUST_CHECK
ebb_status ebb_res_set_reader(ebb_res *r, ebb_io io, const ebb_read_speed *speeds,
                              uint64_t ring_bytes, ebb_error *err);
/* Opens the expert cache (expert_cache.h); after ebb_res_set_reader, which closes it.  Nothing may
 * be acquired.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_res_set_expert_cache(ebb_res *r, uint64_t n_bytes, ebb_error *err);
/* Shrinks it, or grows it again up to the bytes that were set.  Between layers. */
void ebb_res_resize_expert_cache(ebb_res *r, uint64_t n_bytes);
const char *ebb_res_io_name(ebb_res *r);         /* "uring" ... of the reader chosen */
const char *ebb_res_io_reason(const ebb_res *r); /* a line on the choice, "" if there is nothing to
                                                    say */

/* Measures each reader (AUTO), or `only` one for a third of the time, on the model's own weights,
 * past the page cache, for about `seconds`: speeds[EBB_IO_MMAP + 1] (read_speed.h); all zero for a
 * model in memory. */
void ebb_res_measure_readers(ebb_res *r, ebb_io only, double seconds, ebb_read_speed *speeds);
/* Bytes per second of the chosen reader over n_bytes of the weights, past the page cache; 0: no
 * reader.  Between passes. */
double ebb_res_read_speed(ebb_res *r, uint64_t n_bytes);

/* Before a pass: the files are what they were at open.  Errors: FORMAT (another size or time),
 * IO. */
EBB_MUST_CHECK
ebb_status ebb_res_check(ebb_res *r, ebb_error *err);
const char *ebb_res_path(const ebb_res *r);      /* of its first file, for messages */
/* After a pass: all weights that it read were the files' bytes, as they were at open.  Errors:
 * FORMAT (a file was truncated or written to meanwhile), IO. */
EBB_MUST_CHECK
ebb_status ebb_res_check_pass(ebb_res *r, ebb_error *err);

/* Sets which extents are resident when their group is PINNED or MAPPED (NULL: all); the others are
 * streamed.  Groups for which this changes are DISK afterwards, if there is a ring.  Nothing may be
 * acquired.  Errors: as ebb_res_set_state. */
EBB_MUST_CHECK
ebb_status ebb_res_set_resident(ebb_res *r, const bool *resident, ebb_error *err);
/* Bytes of the extents of a group that ebb_res_set_resident has chosen.  From any thread. */
uint64_t ebb_res_group_bytes(ebb_res *r, uint32_t group);
ebb_layer_state ebb_res_state(ebb_res *r, uint32_t group);
/* States of all groups, to out[n]: PARTLY if some extents are streamed; READING if some are in the
 * ring or being read.  MAPPED groups are PARTLY or DISK while the page cache does not have all of
 * their pages.  Returns the number of groups. */
uint32_t ebb_res_states(ebb_res *r, uint8_t *out, uint32_t n);

/* Changes a group's state: PINNED reads its resident extents into anonymous memory, MAPPED leaves
 * them to the page cache, DISK streams them through the ring.  On failure the group is as it was.
 * Errors: NOMEM (also: no headroom left), IO, FORMAT (truncated), CANCELED, UNSUPPORTED (DISK
 * without a ring, or of a model in memory). */
EBB_MUST_CHECK
ebb_status ebb_res_set_state(ebb_res *r, uint32_t group, ebb_layer_state state, ebb_error *err);

/* ebb_res_set_state to PINNED, but the copy is read in the background, in the order of use; an
 * acquire waits for its extent.  Without a ring it is read at once.
 * Errors: as ebb_res_set_state. */
EBB_MUST_CHECK
ebb_status ebb_res_pin_async(ebb_res *r, uint32_t group, ebb_error *err);

/* Has everything that is mapped now read into the page cache, and mapped page by page, in the order
 * of use, by a thread of low priority.  Where no thread is to be had, faults read it. */
void ebb_res_prefault(ebb_res *r);

/* Lend n_bytes at most to the extents of the group that are streamed, in the order of use; they are
 * read in the background.  What was lent to the group before is taken back first.  *lent receives
 * the bytes; 0: the first one is larger, nothing of the group is streamed, or there is no ring.
 * Experts are left out.  Between passes.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_res_lend(ebb_res *r, uint32_t group, uint64_t n_bytes, uint64_t *lent,
                        ebb_error *err);
/* What could still be lent to the group. */
uint64_t ebb_res_lendable_bytes(ebb_res *r, uint32_t group);
/* All that is lent to the group goes back to the ring; returns the bytes.  Between passes. */
uint64_t ebb_res_take_back(ebb_res *r, uint32_t group);
uint64_t ebb_res_lent_bytes(ebb_res *r, uint32_t group);
/* Of what a pass would stream, the bytes of weights that are lent memory. */
uint64_t ebb_res_lent_read_bytes(ebb_res *r);
/* What a pass of one token reads of extents that are chosen to be resident, while their groups are
 * DISK; of experts, such a share.  From any thread.  Cost: O(extents). */
double ebb_res_missing_bytes(ebb_res *r, double expert_share);

/* From any thread, also during a pass: evicts pinned groups of which nothing is acquired, lent
 * memory first, from the last layer on, those that are still being read after all others, until
 * n_bytes are free or no longer pending.  They are DISK afterwards; extents larger than the ring
 * are read from the mapping.  Returns the bytes; *n_groups receives how many groups were
 * evicted. */
uint64_t ebb_res_evict(ebb_res *r, uint64_t n_bytes, uint32_t *n_groups);

/* Makes extent `id` readable until the matching release; *ptr receives its first byte.  Waits while
 * it is being read.  An extent may be acquired several times at once, which costs nothing; each
 * needs its release.
 * Cost: no allocation; a pointer where the group is resident.
 * Errors: IO, FORMAT (truncated), CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_res_acquire(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err);
void ebb_res_release(ebb_res *r, uint32_t id);
/* Whether an acquire of `id` would neither wait nor leave the reader less than half of the ring. */
bool ebb_res_is_ready(ebb_res *r, uint32_t id);
/* Whether it is pinned or mapped, and not in the ring or the expert cache. */
bool ebb_res_is_resident(ebb_res *r, uint32_t id);

/* -- Experts (expert_cache.h), each named by its first extent.  From the thread that runs passes
 * -- */

/* The router of a layer has selected experts for a batch of n_tokens: begin, announce each expert
 * with the number of tokens that it was selected for, end.  Those not in memory are read in
 * parallel. */
void ebb_res_begin_experts(ebb_res *r, uint32_t n_tokens);
void ebb_res_announce_expert(ebb_res *r, uint32_t id, uint32_t n_members);
void ebb_res_end_experts(ebb_res *r);
/* The next layer will probably select it: it is read after everything else. */
void ebb_res_prefetch_expert(ebb_res *r, uint32_t id);
/* It was computed with in this layer: its slot may be reused. */
void ebb_res_finish_expert(ebb_res *r, uint32_t id);
/* Whether there is an expert cache. */
bool ebb_res_streams_experts(const ebb_res *r);
/* Between passes: reads experts into free slots, those with the highest LRFU scores first. */
void ebb_res_fill_expert_cache(ebb_res *r);
/* The long-term use of each expert (lrfu.h), often[n_experts], stored from run to run. */
uint32_t ebb_res_n_experts(const ebb_res *r);
void ebb_res_get_expert_uses(const ebb_res *r, float *often);
void ebb_res_set_expert_uses(ebb_res *r, const float *often);

/* Copies n bytes at `offset` of `part`, such as rows of token_embd or norms: from a pinned extent,
 * else from the file.  Errors: IO, FORMAT. */
EBB_MUST_CHECK
ebb_status ebb_res_read(ebb_res *r, uint32_t part, uint64_t offset, void *out, size_t n,
                        ebb_error *err);

/* Bytes of pinned groups and of the expert cache that are not read yet: memory that will be taken.
 * From any thread. */
uint64_t ebb_res_pending_bytes(ebb_res *r);
void ebb_res_get_stats(ebb_res *r, ebb_res_stats *out);
/* NULL, or the rule that is broken: R1, R4 and R6 as far as the tables show them, and the rules of
 * the ring.  From any thread.  Cost: O(extents). */
const char *ebb_res_check_rules(ebb_res *r);

#endif
