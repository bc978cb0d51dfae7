/* Draft tokens are accepted one by one, or discarded (speculate.h). */
#include "speculate/speculate.h"

#include <string.h>

#include "base/log.h"
#include "open/engine_state.h"

bool ebb_speculate_init(ebb_session *s)
{
    const ebb_engine *e = s->engine;
    /* run.logits has a row for each draft token and for the token before them. */
    uint32_t n_tokens = e->run.cap_logits < e->run.cap_tokens ? e->run.cap_logits : e->run.cap_tokens;

    ebb_prompt_lookup_init(&s->lookup, e->opts.no_speculation ? 0 : n_tokens - 1);
    ebb_prompt_lookup_init(&s->reference_lookup, s->lookup.n_most);
    return s->lookup.n_most == 0 || ebb_suffix_index_init(&s->index, e->plan.n_ctx);
}

void ebb_speculate_keep(ebb_session *s, const ebb_token *ids, size_t n)
{
    uint32_t same = 0;

    while (same < n && same < s->index.n && s->ids[same] == ids[same])
        same++;
    ebb_suffix_index_truncate(&s->index, same);
}

/* Of the choices of the place where the trunk was left: what was sampled there; 0: none of them. */
static uint32_t rank_of(const ebb_drafts *d, ebb_token sampled)
{
    const ebb_draft_place *place = &d->tree.places[d->n_followed];

    if (d->taken)
        return d->taken->rank;
    for (uint32_t i = 1; i < place->n_choices; i++)
        if (place->choices[i] == sampled)
            return i;
    return 0;
}

/* By a draft model or head. */
static void learn_tree(ebb_session *s, ebb_token sampled)
{
    const ebb_drafts *d = &s->drafts;
    double probabilities[EBB_DRAFT_MAX_MODEL];
    bool is_left = d->n_followed < d->tree.n_trunk && (d->taken || sampled != EBB_TOKEN_NONE);
    ebb_draft_outcome o = {
        .probabilities = probabilities, .n = d->tree.n_trunk, .n_accepted = d->n_followed, .is_rejected = is_left,
        .rank = is_left ? rank_of(d, sampled) : 0, .n_columns = d->tree.n, .n_steps = d->tree.n_steps,
        .n_gained = d->n_accepted,
    };

    for (uint32_t i = 0; i < d->tree.n_trunk; i++)
        probabilities[i] = d->tree.places[i].probability;
    if (s->draft_source == EBB_DRAFT_MODEL)
        ebb_draft_model_learn(s->engine, &o);
    else
        ebb_draft_head_learn(s->engine, &o);
}

/* How many of the draft tokens were accepted is known now. */
static void learn_outcome(ebb_session *s, ebb_token sampled)
{
    ebb_drafts *d = &s->drafts;

    if (d->tree.n == 0)
        return;
    if (s->draft_source == EBB_DRAFT_LOOKUP)
        ebb_prompt_lookup_learn(&s->lookup, d->tree.n, d->n_accepted, s->pass_s);
    else if (s->draft_source == EBB_DRAFT_REFERENCE)
        ebb_prompt_lookup_learn(&s->reference_lookup, d->tree.n, d->n_accepted, s->pass_s);
    else
        learn_tree(s, sampled);
    if (d->taken)
        ebb_stats_branch(s->engine, d->n_accepted - d->n_followed);
    ebb_log("draft", "%u of %u draft tokens were accepted, %u in a branch of %u", d->n_accepted, d->tree.n,
            d->n_accepted - d->n_followed, d->tree.n_branches);
}

void ebb_speculate_discard(ebb_session *s, ebb_token sampled)
{
    uint32_t n = ebb_session_length(s);

    learn_outcome(s, s->n_pending > 0 ? sampled : EBB_TOKEN_NONE);
    if (s->n_pending > 0)
        ebb_kv_truncate(s->engine->kv, &s->table, n);
    s->n_pending = 0;
    ebb_draft_tree_close(s);
    s->drafts.tree.n = 0;
    if (s->engine->logits_owner == s)
        s->engine->logits_owner = NULL;
}

/* The row of the pass's logits behind id, if it was drafted. */
static bool follow_draft(ebb_session *s, ebb_token id)
{
    ebb_drafts *d = &s->drafts;
    const ebb_draft_branch *b;

    if (s->ids[ebb_session_length(s)] == id) {
        d->row++;
        d->n_followed += !d->taken;
    } else if ((b = ebb_draft_tree_find(s, id))) {
        ebb_draft_tree_take(s, b);
        d->row = b->first;
    } else {
        return false;
    }
    d->n_accepted++;
    s->n_pending--;
    return true;
}

bool ebb_speculate_accept(ebb_session *s, ebb_token id)
{
    const ebb_forward *run = &s->engine->run;
    size_t n_vocab = run->net->n_vocab;

    if (s->n_pending == 0 || s->engine->logits_owner != s || !follow_draft(s, id))
        return false;
    ebb_stats_accept(s->engine, s->draft_source == EBB_DRAFT_REFERENCE);
    ebb_hidden_follow_accept(s);
    memcpy(s->logits, run->buf.logits + s->drafts.row * n_vocab, n_vocab * sizeof *s->logits);
    ebb_prefix_hash_blocks(s);
    return true;
}
