/* residency/ring_impl.h - what ring.c (opening, acquiring) and ring_reads.c (what is read next)
 * share. */
#ifndef EBB_RING_IMPL_H
#define EBB_RING_IMPL_H
#include <pthread.h>

#include "residency/loads.h"
#include "residency/rate.h"
#include "residency/ring.h"

#define EBB_RING_ENTRIES 64u
#define EBB_RING_NONE    UINT32_MAX

typedef struct ebb_ring_entry {
    uint32_t   id;
    uint32_t   n_held, n_in_flight;
    uint64_t   at;               /* its place: a count of bytes that only grows; modulo cap in
                                    memory */
    uint64_t   n_pad;            /* skipped before it, so that it does not reach over the ring's
                                    end */
    uint64_t   n_bytes;          /* of the enclosing range in the file */
    uint64_t   n_issued;         /* of these, asked for */
    bool       is_dead;          /* not wanted any more; goes when nothing flies */
    bool       is_dropped;       /* its pages were given back, or are about to be */
    ebb_status st;
    ebb_error  err;
} ebb_ring_entry;

struct ebb_ring {
    const ebb_reader_ops *ops;
    const ebb_read_file  *files;
    const ebb_res_extent *extents;
    uint32_t              n_extents;
    ebb_source            source;
    ebb_reader           *reader;

    pthread_mutex_t lock;        /* protects all below */
    pthread_cond_t  space;       /* the reader waits here ... */
    pthread_cond_t  progress;    /* ... and acquire here */
    bool           *is_streamed; /* [n_extents] */
    uint32_t       *n_mapped_held; /* [n_extents] times held outside the ring */
    ebb_map         memory;      /* cap bytes; empty if the reader is mapped */
    uint64_t        cap, head, tail;
    ebb_ring_entry  entries[EBB_RING_ENTRIES];
    uint32_t        first, n;    /* entries[(first + i) % EBB_RING_ENTRIES], i < n, oldest first */
    uint32_t        cursor;      /* the extent to be entered next; EBB_RING_NONE: nothing streams */
    bool            is_parked;   /* resting after a failure */
    bool            is_stopping;
    ebb_loads       loads;       /* what is to stay when it has come */
    ebb_headroom    headroom;    /* it; constant */
    bool            is_short;    /* there was none when it was asked last */
    uint32_t        pos;         /* behind the extent that was acquired last */
    ebb_rate        rate, load_rate;
    uint64_t        stall_ns;
};

/* The whole blocks of the file that an extent lies in. */
static inline uint64_t ebb_range_begin(const ebb_res_extent *x)
{
    return x->offset & ~(EBB_READ_ALIGN - 1);
}

static inline uint64_t ebb_range_bytes(const ebb_res_extent *x)
{
    return ((x->offset + x->n_bytes + EBB_READ_ALIGN - 1) & ~(EBB_READ_ALIGN - 1)) -
           ebb_range_begin(x);
}

static inline ebb_ring_entry *ebb_ring_get(ebb_ring *g, uint32_t i)
{
    return &g->entries[(g->first + i) % EBB_RING_ENTRIES];
}

/* All with the lock held, but where it says so. */

/* The entry of extent `id` that is wanted; NULL: there is none. */
ebb_ring_entry *ebb_ring_find(ebb_ring *g, uint32_t id);
/* The first streamed extent from `id` on, round and round; EBB_RING_NONE: nothing streams. */
uint32_t ebb_ring_next_streamed(const ebb_ring *g, uint32_t id);
/* Give back the room of dead entries that nothing flies to any more. */
void ebb_ring_pop_dead(ebb_ring *g);
/* Whether n_bytes can stand at the head without a seam, and what is skipped for it. */
bool ebb_ring_has_space(const ebb_ring *g, uint64_t n_bytes, uint64_t *n_pad);
/* *out: the pages of an entry are to be given back. */
void ebb_ring_issue_drop(ebb_ring *g, ebb_ring_entry *e, ebb_piece *out);
/* The extent's own pages go from the mapping and from the page cache; without the lock. */
void ebb_ring_drop_pages(const ebb_ring *g, uint32_t id);

/* Until somebody signals, or for 20 ms: nobody tells of cancel flags or of room for what is to
 * stay. */
void ebb_ring_wait(ebb_ring *g, pthread_cond_t *on);

/* ring.h */
const char *ebb_ring_check_locked(const ebb_ring *g);

/* The source that the reader asks (reader.h); they take the lock. */
bool ebb_ring_next(void *ring, bool wait, ebb_piece *out);
void ebb_ring_done(void *ring, const ebb_piece *p, ebb_status st, const ebb_error *err);

#endif
