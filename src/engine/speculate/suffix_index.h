/* speculate/suffix_index.h - where the last tokens of a text occurred before, and what mostly
 * followed them there.
 *
 * Every place of the text is chained to the place before it whose last three tokens hash alike
 * (the match finder of LZ77 compressors).  A search compares at most EBB_SUFFIX_TRIED places of a
 * chain, the latest first, so its cost has a bound that does not depend on the length of the text;
 * what is further back than that in a chain is not found.  The ids are the caller's.
 *
 * What is looked for may end the text itself, or be another one: then the text is a whole whose
 * parts, and its end, have an id below 0 behind them (reference_text.h). */
#ifndef EBB_SUFFIX_INDEX_H
#define EBB_SUFFIX_INDEX_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/model.h"

#define EBB_SUFFIX_MIN   3u      /* tokens that must be alike: two are by chance in any prose */
#define EBB_SUFFIX_MAX   16u     /* tokens that are compared */
#define EBB_SUFFIX_TRIED 64u     /* places that a search compares */

typedef struct ebb_suffix_index {
    uint32_t  n, cap;            /* places that are indexed: a place is the end of so many ids */
    uint32_t  n_bits;            /* of a hash */
    uint32_t *heads;             /* [1 << n_bits] the latest place of the hash; 0: none */
    uint32_t *before;            /* [cap + 1] by place: the one before it in its chain; 0: none */
    uint32_t *hashes;            /* [cap + 1] by place */
} ebb_suffix_index;

/* For texts of at most cap tokens.  false: no memory.  Cost: 8 bytes for each token and as many for
 * the hashes, of which only those are touched that are used. */
bool ebb_suffix_index_init(ebb_suffix_index *x, uint32_t cap);
void ebb_suffix_index_fini(ebb_suffix_index *x); /* a zeroed one is fine */

/* Forgets what lies behind the first n ids: they are others from now on.  Cost: as adding them. */
void ebb_suffix_index_truncate(ebb_suffix_index *x, uint32_t n);
/* The text is ids[0..n), n <= cap; those that were indexed are as they were, if there are as many.
 * Cost: a few nanoseconds for each id that is new. */
void ebb_suffix_index_follow(ebb_suffix_index *x, const ebb_token *ids, uint32_t n);

typedef struct ebb_suffix_match {
    uint32_t n_alike;            /* tokens before each place that are alike; 0: there is none */
    uint32_t n_places;
    uint32_t places[EBB_SUFFIX_TRIED];   /* in the text, the latest first */
} ebb_suffix_match;

/* The places of `text` whose tokens before them are the last of ids[0..n), for as many as for no
 * other place that is tried (at most EBB_SUFFIX_MAX, at least n_alike).  The index is that of text.
 * In ids itself (text == ids) those < n count; the index may end before n.  false: none. */
bool ebb_suffix_index_search(const ebb_suffix_index *x, const ebb_token *text,
                             const ebb_token *ids, uint32_t n, uint32_t n_alike,
                             ebb_suffix_match *out);
/* What followed in text[0..n) there, at most n_out tokens to out: each the one that follows most of
 * the places that agree so far, the latest of equals.  Where a place runs into n it goes on with
 * what was written; an id below 0 ends it.  Returns how many.  The places are used up. */
uint32_t ebb_suffix_index_continue(const ebb_token *text, uint32_t n, ebb_suffix_match *match,
                                   ebb_token *out, uint32_t n_out);

#endif
