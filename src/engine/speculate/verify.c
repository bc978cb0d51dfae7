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

/* How many of the draft tokens were accepted is known now. */
static void learn_outcome(ebb_session *s, bool is_rejected)
{
    if (s->n_drafted > 0) {
        uint32_t n_accepted = s->n_drafted - s->n_pending;

        if (s->draft_source == EBB_DRAFT_MODEL)
            ebb_draft_model_learn(s->engine, s->n_drafted, n_accepted, is_rejected);
        else if (s->draft_source == EBB_DRAFT_HEAD)
            ebb_draft_head_learn(s->engine, s->n_drafted, n_accepted, is_rejected);
        else
            ebb_prompt_lookup_learn(s->draft_source == EBB_DRAFT_LOOKUP ? &s->lookup : &s->reference_lookup,
                                    s->n_drafted, n_accepted, s->pass_s);
        ebb_log("draft", "%u of %u draft tokens were accepted", n_accepted, s->n_drafted);
    }
    s->n_drafted = 0;
}

void ebb_speculate_discard(ebb_session *s, bool is_rejected)
{
    uint32_t n = ebb_session_length(s);

    learn_outcome(s, is_rejected && s->n_pending > 0);
    if (s->n_pending > 0)
        ebb_kv_truncate(s->engine->kv, &s->table, n);
    s->n_pending = 0;
    if (s->engine->logits_owner == s)
        s->engine->logits_owner = NULL;
}

bool ebb_speculate_accept(ebb_session *s, ebb_token id)
{
    const ebb_forward *run = &s->engine->run;
    size_t n_vocab = run->net->n_vocab;

    if (s->n_pending == 0 || s->engine->logits_owner != s || s->ids[ebb_session_length(s)] != id)
        return false;
    s->n_pending--;
    ebb_stats_accept(s->engine, s->draft_source == EBB_DRAFT_REFERENCE);
    ebb_hidden_follow_accept(s);
    memcpy(s->logits, run->buf.logits + (s->n_drafted - s->n_pending) * n_vocab, n_vocab * sizeof *s->logits);
    ebb_prefix_hash_blocks(s);
    return true;
}
