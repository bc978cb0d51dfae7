/* residency/loads.h - extents on their way into memory that they keep: the ring's second list.
 *
 * What is to be pinned is read by the ring's own reader, in the order in which the
 * passes need it, and beside what streams: a pass can begin at once, takes each
 * extent when it has come, and nothing is read twice.  Experts come the same way: those
 * that a layer has chosen are urgent and go before everything else; those that the next
 * one may choose come soon, in the order in which they were asked for.
 *
 * The home of what is BACKGROUND has no memory yet: its pages are taken as it is read.  So whoever
 * reads asks before each of its pieces whether there is room, and what is still to be taken is
 * counted.
 *
 *      URGENT, PREFETCH, BACKGROUND --next--> IN_FLIGHT --all pieces--> LOADED
 *        ^                                      | a read fails
 *        +------------------------ asked for - FAILED
 *
 *      NONE <-- dropped, from any of these; from IN_FLIGHT once nothing flies any more
 *
 * Who asks, drops and makes urgent is the thread that runs passes, or one that evicts
 * (ebb_res_evict); next and "all pieces" are the reader's threads.
 *
 *  L1  An extent has a home exactly while it is asked for, and then does not pass through the ring
 *      (but an expert, which may do both).
 *  L2  Who is IN_FLIGHT has one of the EBB_MAX_LOADS places, nobody else has; n_in counts each
 *      state.
 *  L3  pending_bytes is what will be taken of memory and is not yet.
 *
 * Everything is called with the ring's lock held. */
#ifndef EBB_LOADS_H
#define EBB_LOADS_H
#include "residency/reader.h"
#include "residency/residency.h"

#define EBB_MAX_LOADS 16u        /* under way at a time */
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
    bool     is_dropped;         /* not wanted any more: what flies is waited for, nothing else is
                                    asked for */
    bool     takes_memory;       /* memory, as it is read */
    uint64_t n_issued, n_bytes;  /* of the enclosing range in the file; 0: this place is free */
    ebb_status st;
} ebb_load;

typedef struct ebb_loads {
    const ebb_res_extent *extents;
    uint32_t  n_extents;
    uint8_t  *state;             /* [n_extents] ebb_load_state */
    char    **home;              /* [n_extents] where the range goes */
    bool     *takes_memory;      /* [n_extents] of what has not begun: its home has no pages yet */
    uint64_t  pending_bytes;     /* that will be taken so */
    uint32_t  n_in[EBB_LOAD_STATES];
    uint32_t  prefetch[EBB_MAX_PREFETCH], n_prefetch; /* the order; some may have begun since, or be
                                                         wanted no more */
    ebb_load  in_flight[EBB_MAX_LOADS];
    ebb_error err;               /* of the last failure */
} ebb_loads;

EBB_MUST_CHECK
bool ebb_loads_init(ebb_loads *l, const ebb_res_extent *extents,
                    uint32_t n_extents); /* false: no memory */
void ebb_loads_fini(ebb_loads *l);               /* a zeroed one is fine */

/* Read `id` into `home`, as BACKGROUND, PREFETCH or URGENT; it must not be IN_FLIGHT. */
void ebb_loads_set(ebb_loads *l, uint32_t id, char *home, ebb_load_state how);
/* Not any more.  Its home is free once it is not IN_FLIGHT. */
void ebb_loads_drop(ebb_loads *l, uint32_t id);
/* The same unless all of it has been asked for already: then it comes. */
void ebb_loads_cancel_unissued(ebb_loads *l, uint32_t id);
/* What is not here yet, has failed, or was given up while it was IN_FLIGHT, is urgent. */
void ebb_loads_make_urgent(ebb_loads *l, uint32_t id);

/* NULL, or which of the rules does not hold. */
const char *ebb_loads_check(const ebb_loads *l);

/* Its memory is taken whether there is room or not. */
void ebb_loads_take_memory_anyway(ebb_loads *l, uint32_t id);

/* The extent that a piece could be asked for next, seen from `pos`; false: none.  *is_urgent:
 * before anything that streams. */
bool ebb_loads_peek(const ebb_loads *l, uint32_t pos, uint32_t *id, bool *is_urgent);
/* Whether a piece of it takes memory. */
bool ebb_loads_takes_memory(const ebb_loads *l, uint32_t id);
/* Its next piece of at most piece_bytes; tag is the place among those under way. */
void ebb_loads_issue(ebb_loads *l, uint32_t id, size_t piece_bytes, ebb_piece *out);
/* The piece has come or not; true if this was the last one and the extent is LOADED. */
bool ebb_loads_done(ebb_loads *l, const ebb_piece *p, ebb_status st, const ebb_error *err);

#endif
