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
    uint64_t   at;               /* position: a byte count that only grows; modulo cap in memory */
    uint64_t   n_pad;            /* bytes skipped before it, so that it does not reach beyond the
                                    buffer's end */
    uint64_t   n_bytes;          /* of the enclosing range in the file */
    uint64_t   n_issued;         /* of these, with reads issued */
    bool       is_dead;          /* no longer wanted; removed when no read is in flight */
    bool       is_dropped;       /* its pages were dropped, or are about to be */
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
    uint32_t       *n_mapped_held; /* [n_extents] times acquired from the mapping (G4) */
    ebb_map         memory;      /* cap bytes; empty if the reader is mapped */
    uint64_t        cap, head, tail;
    ebb_ring_entry  entries[EBB_RING_ENTRIES];
    uint32_t        first, n;    /* entries[(first + i) % EBB_RING_ENTRIES], i < n, oldest first */
    uint32_t        cursor;      /* the extent to be entered next; EBB_RING_NONE: none */
    bool            is_parked;   /* pausing after a failure */
    bool            is_stopping;
    ebb_loads       loads;
    ebb_headroom    headroom;    /* for BACKGROUND loads; constant */
    bool            is_short;    /* there was no headroom at the last call */
    uint32_t        pos;         /* one behind the extent that was acquired last */
    ebb_rate        rate, load_rate;
    uint64_t        stall_ns;
};

/* The range of the file around an extent, aligned for direct reads. */
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

/* All of these are called with the lock held, unless they say otherwise. */

/* The entry of extent `id` that is not dead; NULL: none. */
ebb_ring_entry *ebb_ring_find(ebb_ring *g, uint32_t id);
/* The first streamed extent from `id` on, cyclically; EBB_RING_NONE: none is streamed. */
uint32_t ebb_ring_next_streamed(const ebb_ring *g, uint32_t id);
/* Frees the space of dead entries without reads in flight. */
void ebb_ring_pop_dead(ebb_ring *g);
/* Whether n_bytes fit contiguously at the head; *n_pad: bytes to skip for that. */
bool ebb_ring_has_space(const ebb_ring *g, uint64_t n_bytes, uint64_t *n_pad);
/* *out is a piece that drops the pages of an entry. */
void ebb_ring_issue_drop(ebb_ring *g, ebb_ring_entry *e, ebb_piece *out);
/* Drops the pages of an extent from the mapping and the page cache; without the lock held. */
void ebb_ring_drop_pages(const ebb_ring *g, uint32_t id);

/* Waits for a signal, at most 20 ms: cancel flags and new headroom are not signalled. */
void ebb_ring_wait(ebb_ring *g, pthread_cond_t *on);

/* ring.h */
const char *ebb_ring_check_locked(const ebb_ring *g);

/* The ring as the source of its reader (reader.h); they take the lock. */
bool ebb_ring_next(void *ring, bool wait, ebb_piece *out);
void ebb_ring_done(void *ring, const ebb_piece *p, ebb_status st, const ebb_error *err);

#endif
