/* residency/residency_impl.h - what residency.c (opening, reading, use) and group_states.c (whose
 * the bytes are) share.
 *
 * Two threads may change whose the bytes of a group are: that of the passes in every way, and
 * whoever calls ebb_res_evict from PINNED to DISK.  Both do so under the lock, and only while
 * nothing of the group is acquired, which is counted under the same lock: so what is held cannot be
 * taken. */
#ifndef EBB_RESIDENCY_IMPL_H
#define EBB_RESIDENCY_IMPL_H
#include <pthread.h>

#include "os/file.h"
#include "os/guard.h"
#include "os/map.h"
#include "residency/expert_cache.h"
#include "residency/pin.h"
#include "residency/residency.h"
#include "residency/ring.h"

typedef struct ebb_res_group {
    ebb_layer_state state;
    uint32_t first, n;           /* its extents */
    uint32_t n_acquired;
    ebb_map  copy;               /* the pinned copy; of a group that was let go a place without
                                    pages */
} ebb_res_group;

struct ebb_res {
    ebb_read_file  *files;
    ebb_file_id    *ids;         /* of the files at open */
    const char    **bases;       /* their first bytes */
    ebb_guard     **guards;      /* of their mappings */
    uint32_t        n_files;
    ebb_res_extent *extents;
    const char    **at;          /* where each extent is now; NULL: in the ring, or on its way to
                                    ... */
    char          **home;        /* ... its place in the group's copy, where that is read in the
                                    background */
    uint8_t        *owner;       /* of each: PINNED, MAPPED or DISK */
    bool           *resident;    /* with its group, when that is PINNED or MAPPED */
    uint32_t        n_extents;
    ebb_res_group  *groups;      /* n_layers + 1 */
    uint32_t        n_groups;
    const atomic_bool *cancel;
    const ebb_reader_ops *ops;   /* who reads */
    ebb_headroom    headroom;    /* for what will stay */
    char            io_reason[160];
    uint32_t        n_warmed;    /* extents that the kernel was asked to read, in order */
    uint64_t        warmed_bytes, used_bytes;    /* of them; used: by the first pass so far */

    pthread_mutex_t lock;        /* protects at, home, owner, groups, and what follows; the other
                                    fields are the passes' own */
    ebb_ring       *ring;        /* NULL: nothing can be streamed */
    ebb_expert_cache cache;      /* of experts; has no place without a ring */
    ebb_lrfu        lrfu;        /* of experts: the passes' own */
    ebb_expert_counts counts;     /* of caches that are closed */
    uint64_t        pinned_bytes, mapped_bytes;
    uint64_t        read_bytes, stall_ns;        /* of rings that are closed */
};

/* Another owner for an extent; the lock is held. */
void ebb_res_set_owner(ebb_res *r, uint32_t id, ebb_layer_state owner, const char *at);

/* residency.h; the lock is held. */
const char *ebb_res_check_rules_locked(const ebb_res *r);

/* -- streaming.c -- */
/* Close the cache of experts; its counts stay. */
void ebb_res_close_expert_cache(ebb_res *r);
void ebb_res_add_counts(ebb_expert_counts *to, const ebb_expert_counts *c);

/* Whether an extent that is on its way to its place has come; between two rings nothing is known of
 * it.  The lock is held. */
static inline bool ebb_res_is_loaded(const ebb_res *r, uint32_t id)
{
    return r->ring && ebb_ring_is_loaded(r->ring, id);
}

static inline const char *ebb_res_mapped_at(const ebb_res *r, uint32_t id)
{
    return r->bases[r->extents[id].part] + r->extents[id].offset;
}

#endif
