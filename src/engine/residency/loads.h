/* residency/loads.h - extents on their way into memory that they keep: the ring's second list.
 *
 * What is to be pinned is read by the ring's own reader, in the order in which the
 * passes need it, and beside what streams: a pass can begin at once, takes each
 * extent when it has come, and nothing is read twice.
 *
 *      WANTED --next--> COMING --all pieces--> HERE
 *        ^                 | a read fails
 *        +---- asked for - FAILED
 *
 * Everything is called with the ring's lock held. */
#ifndef EBB_LOADS_H
#define EBB_LOADS_H
#include "residency/reader.h"
#include "residency/residency.h"

#define EBB_MAX_LOADS 8u         /* under way at a time */

typedef enum ebb_load_state { EBB_LOAD_NONE, EBB_LOAD_WANTED, EBB_LOAD_COMING, EBB_LOAD_HERE, EBB_LOAD_FAILED } ebb_load_state;

typedef struct ebb_load {
    uint32_t id, n_flying;
    uint64_t n_issued, n_bytes;  /* of the enclosing range in the file; 0: this place is free */
    ebb_status st;
} ebb_load;

typedef struct ebb_loads {
    const ebb_res_extent *extents;
    uint32_t  n_extents;
    uint8_t  *state;             /* [n_extents] ebb_load_state */
    char    **home;              /* [n_extents] where the range goes */
    uint32_t  n_wanted;
    ebb_load  under_way[EBB_MAX_LOADS];
    ebb_error err;               /* of the last failure */
} ebb_loads;

EBB_MUST_CHECK
bool ebb_loads_init(ebb_loads *l, const ebb_res_extent *extents, uint32_t n_extents);    /* false: no memory */
void ebb_loads_fini(ebb_loads *l);               /* a zeroed one is fine */

/* Read `id` into `home`; NULL: not any more, it must not be COMING. */
void ebb_loads_set(ebb_loads *l, uint32_t id, char *home);
/* A failed one is wanted again. */
void ebb_loads_again(ebb_loads *l, uint32_t id);

/* The extent that a piece could be asked for next, seen from `pos`; false: none. */
bool ebb_loads_peek(const ebb_loads *l, uint32_t pos, uint32_t *id);
/* Its next piece of at most piece_bytes; tag is the place among those under way. */
void ebb_loads_issue(ebb_loads *l, uint32_t id, size_t piece_bytes, ebb_piece *out);
/* The piece has come or not; true if this was the last one and the extent is HERE. */
bool ebb_loads_done(ebb_loads *l, const ebb_piece *p, ebb_status st, const ebb_error *err);

#endif
