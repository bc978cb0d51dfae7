/* The branches of draft tokens: their blocks (draft_tree.h). */
#include "speculate/draft_tree.h"

#include <string.h>

#include "base/log.h"
#include "open/engine_state.h"

/* Blocks that the branch shares with the sequence, and its own behind them.  false: there are none. */
static bool open_table(ebb_session *s, const ebb_draft_branch *b, uint32_t n_pos, ebb_block_table *t)
{
    ebb_kv *kv = s->engine->kv;

    if (t->cap == 0 && ebb_block_table_init(t, s->engine->plan.n_ctx, NULL) != EBB_OK)
        return false;
    ebb_kv_share(kv, &s->table, n_pos, t);
    if (ebb_kv_grow(kv, t, n_pos + 1 + b->from + b->n, NULL) == EBB_OK)
        return true;
    ebb_kv_truncate(kv, t, 0);
    return false;
}

/* The branches from number n on are not computed. */
static void drop_branches(ebb_draft_tree *tree, uint32_t n)
{
    if (n == tree->n_branches)
        return;
    ebb_log("draft", "%u of %u branches: no block is free", n, tree->n_branches);
    tree->n = tree->branches[n].first - 1;
    tree->n_branches = n;
}

uint32_t ebb_draft_tree_most(const ebb_session *s)
{
    return s->engine->net.state_bytes || s->sampler_state.constraint ? 0 : s->lookup.n_most;
}

void ebb_draft_tree_open(ebb_session *s, uint32_t n_pos)
{
    ebb_draft_tree *tree = &s->drafts.tree;
    uint32_t i = 0;

    while (i < tree->n_branches && open_table(s, &tree->branches[i], n_pos, &s->drafts.tables[i]))
        i++;
    drop_branches(tree, i);
}

const ebb_draft_branch *ebb_draft_tree_find(const ebb_session *s, ebb_token id)
{
    const ebb_draft_tree *tree = &s->drafts.tree;

    for (uint32_t i = 0; i < tree->n_branches && !s->drafts.taken; i++)
        if (tree->branches[i].from == s->drafts.n_followed && tree->ids[tree->branches[i].first] == id)
            return &tree->branches[i];
    return NULL;
}

/* Full blocks before the branch have their hashes and stay; those from its first position on are its own. */
void ebb_draft_tree_take(ebb_session *s, const ebb_draft_branch *b)
{
    ebb_kv *kv = s->engine->kv;
    uint32_t pos = ebb_session_length(s);
    ebb_block_table *own = &s->drafts.tables[b - s->drafts.tree.branches];

    ebb_kv_truncate(kv, &s->table, pos);
    ebb_kv_resize_table(kv, &s->table, pos + b->n);
    for (int g = 0; g < EBB_KV_GROUPS && ebb_kv_n_blocks(kv, g) > 0; g++)
        for (uint32_t i = pos / EBB_KV_BLOCK; i < s->table.n_blocks; i++)
            ebb_kv_set_block(kv, &s->table, g, i, own->blocks[g][i]);
    ebb_kv_truncate(kv, own, 0);
    memcpy(s->ids + pos, s->drafts.tree.ids + b->first, b->n * sizeof *s->ids);
    s->n_pending = b->n;
    s->drafts.taken = b;
}

void ebb_draft_tree_close(ebb_session *s)
{
    for (uint32_t i = 0; i < s->drafts.tree.n_branches; i++)
        ebb_kv_truncate(s->engine->kv, &s->drafts.tables[i], 0);
    s->drafts.tree.n_branches = 0;
}

void ebb_drafts_fini(ebb_session *s)
{
    for (uint32_t i = 0; i < EBB_DRAFT_BRANCHES; i++)
        ebb_block_table_fini(s->engine->kv, &s->drafts.tables[i]);
}
