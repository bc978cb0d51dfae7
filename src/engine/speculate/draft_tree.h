/* speculate/draft_tree.h - the draft tokens of a pass: a chain, the trunk, and branches that leave
 * it.
 *
 * A branch begins with another token in place of one of the trunk's, and goes on by itself.  All of
 * them are columns of one pass (a pass over several sequences, model/forward.h): the trunk's are
 * first, behind the token that was sampled.  A branch has a block table of its own, which shares
 * the blocks before the pass; in the block that the pass writes to it has a copy, and the K and V
 * of the trunk's tokens before it are stored there as well.  So attention goes through the
 * positions of each path in their order, and the bits are those of plain decoding.
 *
 * When the sampler chooses the first token of a branch, its blocks become the sequence's. */
#ifndef EBB_DRAFT_TREE_H
#define EBB_DRAFT_TREE_H
#include <stdbool.h>
#include <stdint.h>

#include "ebb/session.h"
#include "kv/kv.h"
#include "plan/layout.h"
#include "speculate/draft_length.h"

#define EBB_DRAFT_BRANCHES 7u    /* of a tree, at most */

typedef struct ebb_draft_branch {
    uint32_t from;               /* tokens of the trunk before it: the first is in place of trunk
                                    token `from` */
    uint32_t rank;               /* of its first token among the choices of that place: >= 1 */
    uint32_t first, n;           /* its tokens, ebb_draft_tree.ids[first ..] */
} ebb_draft_branch;

/* A place of the trunk. */
typedef struct ebb_draft_place {
    uint32_t  n_choices;
    ebb_token choices[EBB_DRAFT_RANKS];  /* [n_choices]; the first is the trunk's token */
    double    probability;       /* of the first, by the drafter */
} ebb_draft_place;

typedef struct ebb_draft_tree {
    ebb_token ids[EBB_DRAFT_MAX_MODEL + 1];      /* as the columns of the pass: the token that was
                                                    sampled, the trunk's, the branches' */
    uint32_t  n, n_trunk;        /* draft tokens; those of the trunk */
    ebb_draft_place places[EBB_DRAFT_MAX_MODEL]; /* [n_trunk] */
    uint32_t  n_branches;
    ebb_draft_branch branches[EBB_DRAFT_BRANCHES];
    uint32_t  n_steps;           /* that the drafter took */
} ebb_draft_tree;

/* What was drafted for the pass before, and how far the sampler has followed it. */
typedef struct ebb_drafts {
    ebb_draft_tree  tree;
    ebb_block_table tables[EBB_DRAFT_BRANCHES];  /* of the branches; not allocated before there is
                                                    one */
    const ebb_draft_branch *taken;       /* the branch that was followed; NULL: the trunk */
    uint32_t n_followed;         /* tokens of the trunk that were accepted */
    uint32_t n_accepted;         /* with those of the branch */
    uint32_t row;                /* of the pass's logits: those of the last accepted token */
} ebb_drafts;

/* How many draft tokens a tree may have, trunk and branches; 0: there are no branches.  A recurrent
 * state has one way to go, and so has the drafter's place in a grammar. */
uint32_t ebb_draft_tree_most(const ebb_session *s);
/* Tables for the branches, behind the first n_pos positions of the sequence, as far as blocks are
 * free: the others are dropped, the last first. */
void ebb_draft_tree_open(ebb_session *s, uint32_t n_pos);
/* The branch whose first token the sampler has chosen; NULL: none. */
const ebb_draft_branch *ebb_draft_tree_find(const ebb_session *s, ebb_token id);
/* The sequence goes on with that branch: its tokens are the draft tokens that are left. */
void ebb_draft_tree_take(ebb_session *s, const ebb_draft_branch *b);
/* Blocks of branches are given back. */
void ebb_draft_tree_close(ebb_session *s);
void ebb_drafts_fini(ebb_session *s);

#endif
