/* residency/residency_impl.h - what residency.c (opening, reading, acquiring) and group_states.c
 * (states of groups) share.
 *
 * Two threads may change the state of a group: the one that runs passes in any way, and the caller
 * of ebb_res_evict from PINNED to DISK.  Both do so with the lock held, and only while nothing of
 * the group is acquired, which is counted with the same lock held: so acquired weights are never
 * evicted. */
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
    ebb_map  copy;               /* the pinned copy; of an evicted group its address space without
                                    pages */
    ebb_map  lent;               /* that of extents that are there for a while; the same */
} ebb_res_group;

/* The thread that reads mapped extents; `stop` ends it within a piece. */
typedef struct ebb_prefault {
    pthread_t   thread;
    bool        has_thread;
    atomic_bool stop, is_running;
} ebb_prefault;

struct ebb_res {
    ebb_read_file  *files;
    ebb_file_id    *ids;         /* of the files at open */
    const char    **bases;       /* their first bytes */
    ebb_guard     **guards;      /* of their mappings */
    uint32_t        n_files;
    ebb_res_extent *extents;
    const char    **at;          /* address of each extent; NULL: streamed, or read to ... */
    char          **home;        /* ... its place in the group's copy, in the background */
    uint8_t        *owner;       /* of each extent: PINNED, MAPPED or DISK */
    bool           *resident;    /* whether it is resident when its group is PINNED or MAPPED */
    bool           *is_lent;     /* PINNED in its group's `lent`, whatever the group's state is */
    uint32_t        n_extents;
    ebb_res_group  *groups;      /* n_layers + 1 */
    uint32_t        n_groups;
    const atomic_bool *cancel;
    const ebb_reader_ops *ops;   /* the reader */
    ebb_headroom    headroom;    /* for weights that will be resident */
    char            io_reason[160];
    ebb_prefault    prefault;

    pthread_mutex_t lock;        /* protects at, home, owner, groups, and what follows; the other
                                    fields are the passes' own */
    ebb_ring       *ring;        /* NULL: nothing can be streamed */
    ebb_expert_cache cache;      /* without a ring it has no slots */
    ebb_lrfu        lrfu;        /* scores of experts; used by the passes' thread only */
    ebb_expert_counts counts;     /* of expert caches that were closed */
    uint64_t        pinned_bytes, mapped_bytes;
    uint64_t        lent_bytes, lent_read_bytes; /* of pinned_bytes; of these, the weights
                                                    themselves */
    uint64_t        read_bytes, stall_ns;        /* of rings that were closed */
};

/* There is no ring (r->lock is held): a group of which an extent is not in memory, or is still
 * being read, is mapped as a whole, so that its extents have one owner (R1). */
void ebb_res_map_unread_locked(ebb_res *r);

/* residency.h; the lock is held. */
const char *ebb_res_check_rules_locked(const ebb_res *r);

/* -- prefault.c -- */
void ebb_res_prefault_stop(ebb_res *r);
/* The expert whose first extent is `id` was selected: it is asked for at once, if it is mapped and
 * may not have been read yet. */
void ebb_res_prefault_expert(ebb_res *r, uint32_t id);

/* -- streaming.c -- */
/* Closes the expert cache and keeps its counts. */
void ebb_res_close_expert_cache(ebb_res *r);
void ebb_res_add_counts(ebb_expert_counts *to, const ebb_expert_counts *c);

/* Whether an extent with a home is loaded there; false without a ring.  The lock is held. */
static inline bool ebb_res_is_loaded(const ebb_res *r, uint32_t id)
{
    return r->ring && ebb_ring_is_loaded(r->ring, id);
}

static inline const char *ebb_res_mapped_at(const ebb_res *r, uint32_t id)
{
    return r->bases[r->extents[id].part] + r->extents[id].offset;
}

#endif
