/* speculate/draft_grow.h - growing a tree of draft tokens, whoever drafts them.
 *
 * The trunk is what the host's sampler would choose if the drafter's distribution were right; the
 * other choices of a place are what would win the same race next (sample/sampler.h).  A branch is
 * worth a column if the chance that the sampler comes there - it follows the trunk so far, and
 * chooses this one then - is more than the column's time yields elsewhere (draft_length.h).  It
 * costs the drafter nothing: its first token is known.  Where another one behind it is worth a step
 * of the drafter, it grows on.  Those that leave the trunk last are grown first, so what the
 * drafter has computed of the trunk before a branch is still there. */
#ifndef EBB_DRAFT_GROW_H
#define EBB_DRAFT_GROW_H
#include "sample/sampler.h"
#include "speculate/draft_length.h"
#include "speculate/draft_tree.h"

typedef struct ebb_drafter {
    ebb_draft_length *length;
    ebb_sampler *sampler;        /* in the state of the host's */
    const ebb_model *model;
    uint32_t most_trunk;         /* tokens of the trunk, and of a path, at most */
    uint32_t most;               /* tokens in all, at least most_trunk; 0: there are no branches */
    /* Computes what may follow ids[0..n), the last `depth` of which are draft tokens, and ranks it
     * by the sampler: at most EBB_DRAFT_RANKS choices to out; 0: it cannot be computed, or nothing
     * may follow.  A path with the first tokens of one before goes on from there. */
    uint32_t (*choose)(void *arg, const ebb_token *ids, uint32_t n, uint32_t depth,
                       ebb_choice *out);
    void    *arg;
} ebb_drafter;

/* Drafts behind ids[0..n), which has room for most_trunk more; the tree is written anew but for
 * ids[0]. */
void ebb_draft_grow(const ebb_drafter *d, ebb_token *ids, uint32_t n, ebb_draft_tree *tree);

#endif
