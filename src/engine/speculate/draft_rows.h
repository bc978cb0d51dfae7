/* speculate/draft_rows.h - which rows of the output a draft head multiplies by.
 *
 * A vocabulary has up to 250,000 tokens, and most of them never occur in a conversation: the
 * output's rows are the greater part of what a guess reads.  So a guess looks at a quarter of them,
 * in place: groups of neighbouring rows, those whose tokens have occurred most in what this engine
 * has seen, and of the others those of low ids, which common merges have.  A token in none of them
 * is never guessed, which costs a guess; the text is the same (draft_head.h).  What was seen is not
 * kept beyond the engine's life: it would tell what was talked about. */
#ifndef EBB_DRAFT_ROWS_H
#define EBB_DRAFT_ROWS_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/model.h"

#define EBB_DRAFT_ROWS_ALL 16384u        /* up to so many tokens all rows are looked at */

typedef struct ebb_group_rank { float uses; uint32_t group; } ebb_group_rank;

typedef struct ebb_draft_rows {
    uint32_t  n_groups, n_chosen;        /* of EBB_ROW_GROUP rows; those that a guess looks at */
    uint32_t *chosen;            /* [n_groups], the first n_chosen of them count, in order */
    float    *uses;              /* [n_groups] */
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
