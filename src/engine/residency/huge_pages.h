/* residency/huge_pages.h - what homes that share huge pages will still take of memory.
 *
 * A huge page gets all of its memory when the first byte of it is written.  Experts stand side by
 * side in slots of a few MiB and are read in any order: an expert brings memory of its neighbours
 * along, which must not be counted once more for these.  So what is still to be taken is counted in
 * pages instead of bytes of loads:
 *
 *      pending_bytes = the pages without memory that a load is expected for
 *
 * Everything is called by one thread at a time (with the ring's lock held).  A call costs as much
 * as the pages that it is about. */
#ifndef EBB_HUGE_PAGES_H
#define EBB_HUGE_PAGES_H
#include <stdbool.h>
#include <stdint.h>

#include "os/map.h"

typedef struct ebb_huge_pages {
    const char *from;            /* of the region; NULL: there is none */
    uint64_t    n_bytes;         /* the last page may be cut off by its end */
    uint32_t    n;               /* pages */
    bool       *has_memory;      /* [n] */
    uint32_t   *n_expected;      /* [n] loads that will write to it */
    uint64_t    pending_bytes;
} ebb_huge_pages;

/* A region of which nothing is written yet, aligned as ebb_map_anon aligns.  false: no memory. */
EBB_MUST_CHECK
bool ebb_huge_pages_init(ebb_huge_pages *h, const char *from, uint64_t n_bytes);
void ebb_huge_pages_fini(ebb_huge_pages *h);     /* a zeroed one is fine */

/* Whether an address is in the region. */
bool ebb_huge_pages_hold(const ebb_huge_pages *h, const char *at);
/* A load to [at, at + n) is expected, or not any more. */
void ebb_huge_pages_expect(ebb_huge_pages *h, const char *at, uint64_t n);
void ebb_huge_pages_expect_no_more(ebb_huge_pages *h, const char *at, uint64_t n);
/* [at, at + n) is about to be written. */
void ebb_huge_pages_write(ebb_huge_pages *h, const char *at, uint64_t n);
/* [at, at + n) was given back: pages that lie in it whole have no memory any more. */
void ebb_huge_pages_give_back(ebb_huge_pages *h, const char *at, uint64_t n);

/* Whether pending_bytes is the sum that it shall be. */
bool ebb_huge_pages_check(const ebb_huge_pages *h);

#endif
