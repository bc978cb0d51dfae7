/* speculate/draft_rows.h - which rows of the output matrix a draft head multiplies by.
 *
 * A vocabulary has up to 250,000 tokens, most of which never occur in a conversation, and the
 * output matrix is the greater part of what a draft token reads.  So drafting uses some of its
 * rows, in place: those whose tokens have occurred most, then those of low ids, which are common
 * merges; a quarter of them while little has been seen, an eighth from then on.  A token outside
 * is never drafted, which costs a draft token and changes no text (draft_head.h).
 *
 * The counts are those of the engine's sequences and of its reference text, so they begin with
 * what other conversations said; they are on disk in no other form than these are, and what is
 * deleted there is not counted any more. */
#ifndef EBB_DRAFT_ROWS_H
#define EBB_DRAFT_ROWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ebb/model.h"

#define EBB_DRAFT_ROWS_ALL  16384u       /* vocabularies up to so many tokens: all rows */
#define EBB_DRAFT_ROWS_SEEN 32768u       /* tokens from which on an eighth is enough */

typedef struct ebb_draft_rows {
    uint32_t  n_rows, n_chosen;  /* of the matrix; those that drafting uses */
    uint32_t *chosen;            /* [n_chosen], ascending, with space for n_rows */
    uint16_t *uses;              /* [n_rows] occurrences of each token, UINT16_MAX: that or more */
    uint64_t  n_seen;            /* occurrences in all */
    uint32_t  n_new;             /* of these, since the rows were chosen */
} ebb_draft_rows;

/* How many rows are chosen of a vocabulary of which nothing has been seen. */
uint32_t ebb_draft_rows_at_first(uint32_t n_vocab);
/* false: no memory. */
bool ebb_draft_rows_init(ebb_draft_rows *d, uint32_t n_vocab);
void ebb_draft_rows_fini(ebb_draft_rows *d);     /* a zeroed one is fine */
/* These tokens have occurred; ids below 0 are none. */
void ebb_draft_rows_learn(ebb_draft_rows *d, const ebb_token *ids, size_t n);
/* As if nothing had occurred; learn what is to count, then choose. */
void ebb_draft_rows_forget(ebb_draft_rows *d);
/* Choose anew if enough has been seen since.  Cost: a walk through the counts, 0.3 ms for 250,000
 * tokens. */
void ebb_draft_rows_update(ebb_draft_rows *d);

#endif
