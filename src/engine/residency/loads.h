/* residency/loads.h - extents that are being read into memory where they stay: the ring's second
 * list.
 *
 * Extents to be pinned are read by the ring's own reader, in the order in which the passes need
 * them, beside the streamed ones: a pass can begin at once, takes each extent as soon as it is
 * loaded, and nothing is read twice.  Experts are loaded in the same way: those that a router has
 * selected are URGENT and go before everything else; those that the next layer will probably select
 * are PREFETCH, in the order in which they were requested.
 *
 * The home (destination) of a BACKGROUND load has no memory yet: its pages are taken as it is read.
 * So the reader asks for headroom before each piece, and the bytes not read yet are counted.
 *
 *      URGENT, PREFETCH, BACKGROUND --next--> IN_FLIGHT --all pieces--> LOADED
 *        ^                                      | a read fails
 *        +--------------------- requested again - FAILED
 *
 *      NONE <-- dropped, from any of these; from IN_FLIGHT once no read is in flight
 *
 * Requests, drops and urgency come from the thread that runs passes, or one that evicts
 * (ebb_res_evict); "next" and "all pieces" from the reader's threads.
 *
 *  L1  An extent has a home exactly while it is requested, and then does not pass through the ring
 *      (but an expert, which may do both).
 *  L2  An extent that is IN_FLIGHT has one of the EBB_MAX_LOADS entries of in_flight, no other has;
 *      n_in counts the extents in each state.
 *  L3  pending_bytes is the memory that BACKGROUND loads will take and have not taken yet; homes in
 *      `pages` are counted there.
 *
 * Everything is called with the ring's lock held. */
#ifndef EBB_LOADS_H
#define EBB_LOADS_H
#include "residency/huge_pages.h"
#include "residency/reader.h"
#include "residency/residency.h"

#define EBB_MAX_LOADS 16u        /* in flight at a time */
#define EBB_MAX_PREFETCH 64u

typedef enum ebb_load_state {
    EBB_LOAD_NONE,
    EBB_LOAD_BACKGROUND,
    EBB_LOAD_PREFETCH,
    EBB_LOAD_URGENT,
    EBB_LOAD_IN_FLIGHT,
    EBB_LOAD_LOADED,
    EBB_LOAD_FAILED,
    EBB_LOAD_STATES
} ebb_load_state;

typedef struct ebb_load {
    uint32_t id, n_in_flight;
    ebb_load_state how;          /* URGENT, PREFETCH or BACKGROUND */
    bool     is_dropped;         /* no longer wanted: reads in flight are waited for, no more are
                                    issued */
    bool     takes_memory;       /* its home's pages are taken as it is read */
    uint64_t n_issued, n_bytes;  /* of the enclosing range in the file; n_bytes 0: a free entry */
    ebb_status st;
} ebb_load;

typedef struct ebb_loads {
    const ebb_res_extent *extents;
    uint32_t  n_extents;
    uint8_t  *state;             /* [n_extents] ebb_load_state */
    char    **home;              /* [n_extents] the destination of the range */
    bool     *takes_memory;      /* [n_extents] not begun yet, and the home has no pages */
    uint64_t  pending_bytes;     /* of loads to homes outside of `pages` */
    ebb_huge_pages pages;        /* a region of homes beside each other; empty: none is */
    uint32_t  n_in[EBB_LOAD_STATES];
    uint32_t  prefetch[EBB_MAX_PREFETCH], n_prefetch; /* in order; some may have begun since, or
                                                         been dropped */
    ebb_load  in_flight[EBB_MAX_LOADS];
    ebb_error err;               /* of the last failure */
} ebb_loads;

EBB_MUST_CHECK
bool ebb_loads_init(ebb_loads *l, const ebb_res_extent *extents,
                    uint32_t n_extents); /* false: no memory */
void ebb_loads_fini(ebb_loads *l);               /* a zeroed one is fine */

/* The memory that BACKGROUND loads will take. */
uint64_t ebb_loads_pending_bytes(const ebb_loads *l);

/* Requests `id`, read into `home`, as BACKGROUND, PREFETCH or URGENT; it must not be IN_FLIGHT. */
void ebb_loads_set(ebb_loads *l, uint32_t id, char *home, ebb_load_state how);
/* Drops the request.  The home may be reused once the extent is not IN_FLIGHT. */
void ebb_loads_drop(ebb_loads *l, uint32_t id);
/* The same unless all reads of it are issued already: then it will be LOADED. */
void ebb_loads_cancel_unissued(ebb_loads *l, uint32_t id);
/* Makes a request URGENT that is not LOADED yet, has failed, or was dropped while IN_FLIGHT. */
void ebb_loads_make_urgent(ebb_loads *l, uint32_t id);

/* Reads it whether there is headroom or not. */
void ebb_loads_take_memory_anyway(ebb_loads *l, uint32_t id);

/* The extent whose next piece is to be read, for a pass that is at extent `pos`; false: none.
 * *is_urgent: before any streamed extent. */
bool ebb_loads_peek(const ebb_loads *l, uint32_t pos, uint32_t *id, bool *is_urgent);
/* Whether a piece of it takes memory. */
bool ebb_loads_takes_memory(const ebb_loads *l, uint32_t id);
/* The next piece of it, of at most piece_bytes; its tag is the index in in_flight. */
void ebb_loads_issue(ebb_loads *l, uint32_t id, size_t piece_bytes, ebb_piece *out);
/* A piece was read or failed; true if it was the last one and the extent is LOADED. */
bool ebb_loads_done(ebb_loads *l, const ebb_piece *p, ebb_status st, const ebb_error *err);

#endif
