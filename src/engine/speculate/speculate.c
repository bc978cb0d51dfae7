/* Appending a token with draft tokens behind it (speculate.h). */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
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

/* From the sequence itself, or from the reference text where more is alike. */
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

/* Draft tokens behind id, no more than the context has positions for.  A long match in the text costs nothing to find,
 * so it goes before a draft model or head. */
static uint32_t draft_tokens(ebb_session *s, ebb_token id, ebb_token *out)
{
    uint32_t n = s->table.n_pos, most = s->engine->plan.n_ctx;
    uint32_t n_out, room = most - n - 1 < s->lookup.n_most ? most - n - 1 : s->lookup.n_most;
    bool has_model = ebb_draft_model_is_open(s->engine), has_head = ebb_draft_head_is_open(s->engine);

    s->ids[n] = id;                              /* not yet of the sequence, but what the draft continues */
    n_out = look_up(s, n + 1, has_model || has_head ? LONG_MATCH : 0, out, room);
    if (n_out > 0 || !(has_model || has_head))
        return n_out;
    s->draft_source = has_model ? EBB_DRAFT_MODEL : EBB_DRAFT_HEAD;
    return has_model ? ebb_draft_model_draft(s, s->ids, n + 1, out, room)
                     : ebb_draft_head_draft(s, s->ids, n + 1, out, room);
}

static ebb_status run_with_draft(ebb_session *s, const ebb_token *ids, uint32_t n_drafted, ebb_error *err)
{
    ebb_pass_part part = {
        .session = s, .ids = ids, .n = n_drafted + 1, .n_pending = n_drafted, .n_out = n_drafted + 1,
        .commit_pos = s->is_tentative ? 0 : s->table.n_pos + 1,
    };
    ebb_batch one = { .logits = s->logits }, more = { .each = copy_first_logits, .arg = s };

    return ebb_session_run_pass(&part, 1, n_drafted > 0 ? &more : &one, err);
}

ebb_status ebb_speculate_append(ebb_session *s, ebb_token id, ebb_error *err)
{
    ebb_token ids[EBB_DRAFT_MAX_MODEL + 1] = { id };
    uint32_t n = draft_tokens(s, id, ids + 1);
    double begin = ebb_clock_s();
    ebb_status st = run_with_draft(s, ids, n, err);

    if (st != EBB_OK)
        return st;
    s->has_logits = true;
    s->n_drafted = n;
    s->pass_s = ebb_clock_s() - begin;
    ebb_draft_model_learn_pass(s->engine, n + 1, s->pass_s);
    ebb_draft_head_learn_pass(s->engine, n + 1, s->pass_s);
    if (n > 0) {
        s->engine->logits_owner = s;
        ebb_stats_draft(s->engine, n);
    } else {
        ebb_prompt_lookup_learn(&s->lookup, 0, 0, s->pass_s);
        ebb_prompt_lookup_learn(&s->reference_lookup, 0, 0, s->pass_s);
    }
    return EBB_OK;
}
