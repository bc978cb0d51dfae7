/* residency/residency.h - which weights are in RAM, and who brings the others.
 *
 * The weights of a model are cut into extents: one per matrix (one per expert
 * where a tensor holds several).  A forward pass uses the extents in the order
 * in which they were given to ebb_res_open; that order is the schedule, so
 * whoever reads from disk always knows what comes next.  Extents belong to
 * groups: group i < n_layers is layer i, group n_layers holds what is used
 * outside the layers (the output matrix).  A group has one of these states:
 *
 *              ebb_res_place                    first touch
 *     PINNED <---------------> MAPPED        pages come from the page cache
 *     one anonymous copy       the file's own pages
 *
 *     DISK --(a reader fills a slot)--> READING --(acquire)--> in use --(release)--> DISK
 *
 * Invariants:
 *  R1  A byte has one owner: of a pinned group nothing is left mapped, and its
 *      pages were dropped from the page cache.
 *  R2  A pointer from acquire is valid until the matching release, no longer.
 *  R3  Weights are read-only: whatever is let go is let go without writing.
 *  R4  A group changes state between passes only, never while an extent of
 *      it is acquired.
 *  R5  Only this module maps, advises or reads weights.
 *
 * Who wants rows of a matrix (token_embd) reads them with ebb_res_read: they
 * need not be an extent at all, and are never made resident by it.
 *
 * Threads: everything from the thread that runs passes; ebb_res_get_stats from any. */
#ifndef EBB_RESIDENCY_H
#define EBB_RESIDENCY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/status.h"
#include "ebb/stats.h"

typedef struct ebb_res ebb_res;

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
    bool        is_certain;      /* every pass needs it; false: an expert, known only when it is chosen */
} ebb_res_extent;

typedef struct ebb_res_stats {
    uint64_t pinned_bytes, mapped_bytes, ring_bytes;
    uint64_t read_bytes;         /* weights read from disk by a pass, since open */
    uint64_t stall_ns;           /* that acquire has waited, since open */
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

/* Bytes of a group, as a pinned copy takes them. */
uint64_t ebb_res_group_bytes(const ebb_res *r, uint32_t group);
ebb_layer_state ebb_res_state(const ebb_res *r, uint32_t group);

/* Bring a group into another state: EBB_LAYER_PINNED reads it into anonymous
 * memory and lets go of the file's pages, EBB_LAYER_MAPPED gives the copy back.
 * On failure the group stays as it was.  Errors: NOMEM, IO, FORMAT
 * (truncated), UNSUPPORTED (another state). */
EBB_MUST_CHECK
ebb_status ebb_res_place(ebb_res *r, uint32_t group, ebb_layer_state state, ebb_error *err);

/* Make extent `id` readable until the matching release; *ptr receives its
 * first byte.  Waits for a reader where the bytes are on their way.  An extent
 * may be acquired several times at once; each needs its release.
 * Cost: no allocation; a pointer where the group is resident.  Errors: IO. */
EBB_MUST_CHECK
ebb_status ebb_res_acquire(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err);
void ebb_res_release(ebb_res *r, uint32_t id);

/* Copy n bytes at `offset` of `part`: rows of token_embd, norms.  Taken from a
 * pinned extent that holds them, else read from the file.  Errors: IO, FORMAT. */
EBB_MUST_CHECK
ebb_status ebb_res_read(ebb_res *r, uint32_t part, uint64_t offset, void *out, size_t n, ebb_error *err);

void ebb_res_get_stats(ebb_res *r, ebb_res_stats *out);

#endif
