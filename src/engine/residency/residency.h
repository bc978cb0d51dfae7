/* residency/residency.h - which weights are in RAM, and who brings the others.
 *
 * The weights of a model are cut into extents: one per matrix (one per expert
 * where a tensor holds several).  A forward pass uses the extents in the order
 * in which they were given to ebb_res_open; that order is the schedule, so
 * whoever reads from disk always knows what comes next.  Extents belong to
 * groups: group i < n_layers is layer i, group n_layers holds what is used
 * outside the layers (the output matrix).  A group has one of these states:
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
 *     READING: a reader brings the next extents into the ring (ring.h) -> acquired
 *
 * Invariants:
 *  R1  A byte has one owner: of a pinned or streamed group nothing stays mapped,
 *      and its pages are dropped from the page cache.
 *  R2  A pointer from acquire is valid until the matching release, no longer.
 *  R3  Weights are read-only: whatever is let go is let go without writing.
 *  R4  A group changes state only while none of its extents is acquired.  Acquiring, releasing and
 *      changing a state take one lock, so that whoever lets a group go cannot take what is held.
 *  R5  Only this room maps, advises or reads weights.
 *  R6  Bytes do not depend on states: every acquire gives what the file held at open,
 *      or an error.
 *
 * Who may move a group, always with the lock held:
 *
 *     from      to        the passes' thread                            any thread
 *     MAPPED    PINNED    ebb_res_set_state, _pin_async, n_acquired 0   no
 *     PINNED    MAPPED    ebb_res_set_state, n_acquired 0               no
 *     any       DISK      ebb_res_set_state, n_acquired 0; a ring       from PINNED: ebb_res_evict,
 *                                                                       n_acquired 0
 *     DISK      any       ebb_res_set_state, n_acquired 0               no
 *
 * and within a group that is PINNED an extent comes home (from its place in the copy, `home`, to
 * being there, `at`) by the passes' thread when it is acquired and the reader has brought it.  What
 * no table of state says is n_acquired: begin_use counts before it looks, so a group that is being
 * computed with is never evicted.
 *
 * Who wants rows of a matrix (token_embd) reads them with ebb_res_read: they
 * need not be an extent at all, and are never made resident by it.
 *
 * Threads: everything from the thread that runs passes; ebb_res_get_stats, ebb_res_states
 * and ebb_res_evict from any. */
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

/* Where the bytes are: one entry per file of the model, in order. */
typedef struct ebb_res_part {
    const char *path;            /* for messages and for a reader that opens it anew */
    int         fd;              /* open for reading, stays the caller's; -1: in memory */
    const char *memory;          /* the whole file, if in memory */
    uint64_t    n_bytes;
} ebb_res_part;

typedef struct ebb_res_extent {
    const char *name;            /* of the tensor, for messages; outlives the ebb_res */
    uint64_t    offset, n_bytes; /* in its part */
    uint64_t    n_elems;
    uint32_t    part;
    uint32_t    group;
    bool        is_certain;      /* every pass needs it; false: known only when it is chosen: a
                                    matrix of ... */
    uint32_t    expert;          /* ... that expert, counted from 1 over all layers; its extents are
                                    contiguous; 0: of none */
} ebb_res_extent;

/* What experts were there.  "One": passes of one column. */
typedef struct ebb_expert_counts {
    uint64_t n_tokens;           /* layers that such passes went through */
    uint64_t n_chosen, n_hits;   /* experts that they chose; of these, in memory when they were */
    uint64_t n_prefetch_hits;    /* ... not, but guessed and on their way */
    uint64_t n_prefetched;       /* that guesses began to read */
    uint64_t read_bytes, decode_read_bytes; /* asked for; by such passes */
} ebb_expert_counts;

typedef struct ebb_res_stats {
    uint64_t pinned_bytes, mapped_bytes, ring_bytes;
    uint64_t cache_bytes;        /* of experts */
    ebb_expert_counts experts;    /* since open */
    uint64_t read_bytes;         /* weights read from disk for passes, since open */
    uint64_t stall_ns;           /* that acquire has waited, since open */
    double   disk_bytes_s;       /* of read_bytes, those of the last second */
    uint32_t n_resident;         /* layers that are pinned or mapped; of those that are in part, the
                                    sum of the parts */
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

/* *cancel ends every wait of acquire and place within 20 ms; NULL: never. */
void ebb_res_set_cancel(ebb_res *r, const atomic_bool *cancel);

/* Before memory is taken for a piece of what will stay, has(arg, n_bytes) says whether there is
 * room for it; it is asked from the reader's threads and must not call back.  Where there is none,
 * what is asked for is read into the page cache for as long as it is held, and the rest waits.  Set
 * it before anything is placed. */
typedef struct ebb_headroom {
    bool (*has)(void *arg, uint64_t n_bytes);    /* NULL: always */
    void *arg;
} ebb_headroom;
void ebb_res_set_headroom(ebb_res *r, ebb_headroom headroom);

/* Choose the reader: of `io`, or for AUTO the one that reads `speeds` best
 * (NULL: not measured).  One that the system refuses gives way to the next, and
 * ebb_res_io_reason says so.  With ring_bytes > 0, groups can be DISK from now on;
 * with 0, and on failure, none can: those that were are MAPPED.  Nothing may be
 * acquired.  Errors: NOMEM, IO, UNSUPPORTED. */
EBB_MUST_CHECK
ebb_status ebb_res_set_reader(ebb_res *r, ebb_io io, const ebb_read_speed *speeds,
                              uint64_t ring_bytes, ebb_error *err);
/* Memory for experts that are streamed (expert_cache.h), behind ebb_res_set_reader, which empties
 * it.  Nothing may be acquired.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_res_set_expert_cache(ebb_res *r, uint64_t n_bytes, ebb_error *err);
/* Give some of it back, or take it again: never more than was set.  Between layers. */
void ebb_res_resize_expert_cache(ebb_res *r, uint64_t n_bytes);
const char *ebb_res_io_name(ebb_res *r);         /* "uring" ... of the reader chosen */
const char *ebb_res_io_reason(const ebb_res *r); /* a line on the choice, "" if there is nothing to
                                                    say */

/* Time each reader (AUTO), or `only` one for a third of the time, on the model's own weights, cold,
 * for about `seconds`: speeds[EBB_IO_MMAP + 1] (read_speed.h); all zero of a model in memory. */
void ebb_res_measure_readers(ebb_res *r, ebb_io only, double seconds, ebb_read_speed *speeds);
/* Bytes per second of the chosen reader over n_bytes of the weights, cold; 0: there is none.
 * Between passes. */
double ebb_res_read_speed(ebb_res *r, uint64_t n_bytes);

/* Before a pass: the files are what they were at open.  Errors: FORMAT (another size or time),
 * IO. */
EBB_MUST_CHECK
ebb_status ebb_res_check(ebb_res *r, ebb_error *err);
/* Behind a pass: everything that it saw was the files' own bytes.  Error: FORMAT (a file was cut
 * off meanwhile). */
EBB_MUST_CHECK
ebb_status ebb_res_check_pass(ebb_res *r, ebb_error *err);

/* Which extents stay with their group when that is PINNED or MAPPED (NULL: all); the others
 * are streamed then.  Groups for which this changes are DISK afterwards, if there is
 * a ring.  Nothing may be acquired. */
EBB_MUST_CHECK
ebb_status ebb_res_set_resident(ebb_res *r, const bool *resident, ebb_error *err);
/* Bytes of the weights of a group that stay. */
uint64_t ebb_res_group_bytes(const ebb_res *r, uint32_t group);
ebb_layer_state ebb_res_state(ebb_res *r, uint32_t group);
/* States of all groups: PARTLY of which not all stays; READING of which something stands in the
 * ring or is on its way.  Of mapped ones, what the page cache has: PARTLY or DISK while it has not
 * all.  Returns how many these are. */
uint32_t ebb_res_states(ebb_res *r, uint8_t *out, uint32_t n);

/* Bring a group, as far as it stays, into another state: PINNED reads it into anonymous memory,
 * DISK leaves it to the ring, MAPPED to the page cache.  On failure the group stays as
 * it was.  Errors: NOMEM (room ended, too), IO, FORMAT (truncated), CANCELED, UNSUPPORTED (DISK
 * without a ring, or of a model in memory). */
EBB_MUST_CHECK
ebb_status ebb_res_set_state(ebb_res *r, uint32_t group, ebb_layer_state state, ebb_error *err);

/* ebb_res_set_state to PINNED, but the copy is read in the background, in the order of use; an
 * acquire waits for its extent.  Without a ring it is read at once. */
EBB_MUST_CHECK
ebb_status ebb_res_pin_async(ebb_res *r, uint32_t group, ebb_error *err);

/* From any thread, also while a pass is under way: let pinned groups of which nothing is acquired
 * go at once, the last ones first, those that are just being read behind all others, until n_bytes
 * are free or will not be taken.  They are DISK afterwards; what the ring cannot hold is
 * read from the mapping.  Returns the bytes, and how many groups. */
uint64_t ebb_res_evict(ebb_res *r, uint64_t n_bytes, uint32_t *n_groups);

/* Make extent `id` readable until the matching release; *ptr receives its
 * first byte.  Waits for a reader where the bytes are on their way.  An extent may
 * be acquired several times at once, which costs nothing; each needs its release.
 * Cost: no allocation; a pointer where the group is resident.
 * Errors: IO, FORMAT (truncated), CANCELED. */
EBB_MUST_CHECK
ebb_status ebb_res_acquire(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err);
void ebb_res_release(ebb_res *r, uint32_t id);
/* Whether an acquire of `id` would not wait, nor hold more of the ring than leaves the reader
 * room. */
bool ebb_res_is_ready(ebb_res *r, uint32_t id);
/* Whether it is in memory for good: neither in the ring nor in a place for experts. */
bool ebb_res_is_resident(ebb_res *r, uint32_t id);

/* -- Experts (expert_cache.h), each named by its first extent.  From the thread that runs passes
 * -- */

/* A layer of n_tokens columns has chosen experts: expect each of them, with how many columns chose
 * it; then expect_end.  Those that are not here are all read at once. */
void ebb_res_begin_experts(ebb_res *r, uint32_t n_tokens);
void ebb_res_announce_expert(ebb_res *r, uint32_t id, uint32_t n_members);
void ebb_res_end_experts(ebb_res *r);
/* The next layer may choose it: it is read behind everything else. */
void ebb_res_prefetch_expert(ebb_res *r, uint32_t id);
/* It has been computed with in this layer. */
void ebb_res_finish_expert(ebb_res *r, uint32_t id);
/* Whether there are places that experts take in turn. */
bool ebb_res_streams_experts(const ebb_res *r);
/* Between passes: read what is used most into places that are free. */
void ebb_res_fill_expert_cache(ebb_res *r);
/* How often each expert is used (lrfu.h), to be kept from run to run: often[n_experts]. */
uint32_t ebb_res_n_experts(const ebb_res *r);
void ebb_res_get_expert_uses(const ebb_res *r, float *often);
void ebb_res_set_expert_uses(ebb_res *r, const float *often);

/* Copy n bytes at `offset` of `part`: rows of token_embd, norms.  Taken from a
 * pinned extent that holds them, else read from the file.  Errors: IO, FORMAT. */
EBB_MUST_CHECK
ebb_status ebb_res_read(ebb_res *r, uint32_t part, uint64_t offset, void *out, size_t n,
                        ebb_error *err);

/* Of the pinned bytes and those of experts, what is still to be read: memory that is not taken yet.
 * From any thread. */
uint64_t ebb_res_pending_bytes(ebb_res *r);
void ebb_res_get_stats(ebb_res *r, ebb_res_stats *out);
/* NULL, or which of R1, R4 and R6, as far as the tables show them, or of the rules of the ring does
 * not hold.  From any thread.  Cost: looks at all extents. */
const char *ebb_res_check_rules(ebb_res *r);

#endif
