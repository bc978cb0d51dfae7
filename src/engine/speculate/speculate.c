/* Appending a token with draft tokens behind it (speculate.h). */
#include <string.h>

#include "base/clock.h"
#include "open/engine_state.h"
#include "speculate/speculate.h"

#define LONG_MATCH 8u            /* matching tokens, from which on prompt lookup is accepted more often */
#define REFERENCE_MATCH 5u       /* of a text of elsewhere: a few tokens are alike in any two texts */

/* The logits behind id; those behind the draft tokens stay in the pass's rows. */
static void copy_first_logits(void *arg, uint32_t col, uint32_t n, const float *logits)
{
    ebb_session *s = arg;

    (void)col, (void)n;
    memcpy(s->logits, logits, s->engine->net.n_vocab * sizeof *s->logits);
}

/* From the sequence itself, or from the reference text where more is alike; to out, at most `max`; how many. */
static uint32_t look_up(ebb_session *s, uint32_t n, uint32_t n_alike, ebb_token *out, uint32_t max)
{
    ebb_reference_text *t = &s->engine->reference;
    ebb_suffix_match own, elsewhere;
    bool is_own = ebb_prompt_lookup_find(&s->lookup, &s->index, s->ids, s->ids, n, n_alike, &own);
    uint32_t least = n_alike > REFERENCE_MATCH ? n_alike : REFERENCE_MATCH;

    if (least <= own.n_alike)
        least = own.n_alike + 1;
    if (t->n > 0 && ebb_prompt_lookup_find(&s->reference_lookup, &t->index, t->ids, s->ids, n, least, &elsewhere)) {
        s->draft_source = EBB_DRAFT_REFERENCE;
        return ebb_prompt_lookup_draft(&s->reference_lookup, t->ids, t->n, &elsewhere, out, max);
    }
    s->draft_source = EBB_DRAFT_LOOKUP;
    return is_own ? ebb_prompt_lookup_draft(&s->lookup, s->ids, n, &own, out, max) : 0;
}

/* A chain from the text.  A long match costs nothing to find, so it goes before a draft model or head. */
static void draft_from_text(ebb_session *s, uint32_t n, uint32_t n_alike, uint32_t max)
{
    ebb_draft_tree *tree = &s->drafts.tree;

    tree->n_branches = tree->n_steps = 0;
    tree->n = tree->n_trunk = look_up(s, n, n_alike, tree->ids + 1, max);
}

/* Draft tokens behind id, no more than the context has positions for. */
static void draft_tokens(ebb_session *s, ebb_token id)
{
    uint32_t n = s->table.n_pos, most = s->engine->plan.n_ctx;
    uint32_t room = most - n - 1 < s->lookup.n_most ? most - n - 1 : s->lookup.n_most;
    bool has_model = ebb_draft_model_is_open(s->engine), has_head = ebb_draft_head_is_open(s->engine);

    s->ids[n] = *s->drafts.tree.ids = id;        /* not yet of the sequence, but what the draft continues */
    draft_from_text(s, n + 1, has_model || has_head ? LONG_MATCH : 0, room);
    if (s->drafts.tree.n > 0 || !(has_model || has_head))
        return;
    s->draft_source = has_model ? EBB_DRAFT_MODEL : EBB_DRAFT_HEAD;
    if (has_model)
        ebb_draft_model_draft(s, n + 1, room);
    else
        ebb_draft_head_draft(s, n + 1, room);
}

/* The blocks that the trunk will need are set aside first: no sequence loses any for a branch. */
static ebb_status open_branches(ebb_session *s, ebb_error *err)
{
    uint32_t n_pos = s->table.n_pos;
    ebb_status st;

    if (s->drafts.tree.n_branches == 0)
        return EBB_OK;
    st = ebb_session_reserve(s, n_pos + 1 + s->drafts.tree.n_trunk, err);
    if (st == EBB_OK)
        ebb_draft_tree_open(s, n_pos);
    ebb_kv_truncate(s->engine->kv, &s->table, n_pos);
    return st;
}

/* The token and its draft tokens in one pass. */
static ebb_status run_with_drafts(ebb_session *s, ebb_error *err)
{
    const ebb_draft_tree *tree = &s->drafts.tree;
    ebb_pass_branch branches[EBB_DRAFT_BRANCHES];
    ebb_batch one = { .logits = s->logits }, more = { .each = copy_first_logits, .arg = s };
    ebb_pass_part part = {
        .session = s, .ids = tree->ids, .branches = branches, .commit_pos = s->is_tentative ? 0 : s->table.n_pos + 1,
    };
    ebb_status st = open_branches(s, err);

    if (st != EBB_OK)
        return st;
    part.n = part.n_out = tree->n_trunk + 1;
    part.n_pending = tree->n_trunk;
    part.n_branches = tree->n_branches;
    for (uint32_t i = 0; i < tree->n_branches; i++)
        branches[i] = (ebb_pass_branch){ .ids = tree->ids + tree->branches[i].first, .n = tree->branches[i].n,
                                         .n_before = tree->branches[i].from + 1, .table = &s->drafts.tables[i] };
    return ebb_session_run_pass(&part, 1, tree->n > 0 ? &more : &one, err);
}

ebb_status ebb_speculate_append(ebb_session *s, ebb_token id, ebb_error *err)
{
    ebb_drafts *d = &s->drafts;
    double begin;
    ebb_status st;

    d->taken = NULL;
    d->n_followed = d->n_accepted = d->row = 0;
    draft_tokens(s, id);
    begin = ebb_clock_s();
    st = run_with_drafts(s, err);
    if (st != EBB_OK) {
        ebb_draft_tree_close(s);
        d->tree.n = 0;
        return st;
    }
    s->has_logits = true;
    s->pass_s = ebb_clock_s() - begin;
    ebb_draft_model_learn_pass(s->engine, d->tree.n + 1, s->pass_s);
    ebb_draft_head_learn_pass(s->engine, d->tree.n + 1, s->pass_s);
    if (d->tree.n > 0) {
        s->engine->logits_owner = s;
        ebb_stats_draft(s->engine, d->tree.n);
    } else {
        ebb_prompt_lookup_learn(&s->lookup, 0, 0, s->pass_s);
        ebb_prompt_lookup_learn(&s->reference_lookup, 0, 0, s->pass_s);
    }
    return EBB_OK;
}
