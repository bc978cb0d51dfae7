/* speculate/draft_rows.h - which rows of the output matrix a draft head multiplies by.
 *
 * A vocabulary has up to 250,000 tokens, most of which never occur in a conversation, and the
 * output matrix is the greater part of what a draft token reads.  So drafting uses a quarter of its
 * rows, in place: groups of neighbouring rows, those whose tokens have occurred most in this
 * engine's sequences, then those of low ids, which are common merges.  A token outside them is
 * never drafted, which costs a draft token and changes no text (draft_head.h).  The counts end with
 * the engine: on disk they would tell what was talked about. */
#ifndef EBB_DRAFT_ROWS_H
#define EBB_DRAFT_ROWS_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/model.h"

#define EBB_DRAFT_ROWS_ALL 16384u        /* vocabularies up to so many tokens: all rows */

typedef struct ebb_group_rank { float uses; uint32_t group; } ebb_group_rank;

typedef struct ebb_draft_rows {
    uint32_t  n_groups, n_chosen;        /* of EBB_ROW_GROUP rows; those that drafting uses */
    uint32_t *chosen;            /* [n_chosen], ascending, with space for n_groups */
    float    *uses;              /* [n_groups] occurrences of their tokens */
    ebb_group_rank *ranks;       /* [n_groups] for the choice */
    uint32_t  n_new;             /* tokens seen since they were chosen */
} ebb_draft_rows;

/* false: no memory. */
bool ebb_draft_rows_init(ebb_draft_rows *d, uint32_t n_vocab);
void ebb_draft_rows_fini(ebb_draft_rows *d);     /* a zeroed one is fine */
/* These tokens have occurred. */
void ebb_draft_rows_learn(ebb_draft_rows *d, const ebb_token *ids, uint32_t n);
/* Choose anew if enough has been seen since.  Cost: a sort of the groups. */
void ebb_draft_rows_update(ebb_draft_rows *d);

#endif
