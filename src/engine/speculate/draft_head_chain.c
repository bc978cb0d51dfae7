/* Draft tokens from the draft head (draft_head.h). */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "open/engine_state.h"

ebb_status ebb_draft_head_step(ebb_session *s, ebb_token id, uint32_t pos, float *hidden, float *logits, ebb_error *err)
{
    const ebb_draft_rows *rows = &s->engine->head_drafter.rows;
    ebb_draft_step step = {
        .table = &s->table, .id = id, .pos = pos, .hidden = hidden, .logits = logits, .rows = rows->chosen,
        .n_rows = rows->n_chosen < rows->n_rows ? rows->n_chosen : 0,
    };

    return ebb_forward_draft(&s->engine->run, &step, err);
}

/* The draft token behind ids[0..n); false: it could not be computed. */
static bool draft_next(ebb_session *s, const ebb_token *ids, uint32_t n, ebb_token *out, double *probability)
{
    ebb_head_drafter *h = &s->engine->head_drafter;
    float *logits = s->engine->run.buf.logits;
    double begin = ebb_clock_s();
    ebb_error err = { 0 };

    if (ebb_draft_head_step(s, ids[n - 1], n - 1, h->hidden, logits, &err) != EBB_OK) {
        ebb_log("draft", "the draft head: %s", err.msg);         /* the pass meets the same, and says so */
        return false;
    }
    *out = ebb_sampler_sample_probability(h->sampler, logits, ids, n, probability);
    ebb_draft_length_learn_draft(&h->draft_length, 1, ebb_clock_s() - begin);
    return true;
}

/* ids has room for `most` more. */
static uint32_t draft_chain(ebb_session *s, ebb_token *ids, uint32_t n, ebb_token *out, uint32_t most)
{
    ebb_head_drafter *h = &s->engine->head_drafter;
    double chance = 1;
    uint32_t n_out = 0;

    while (n_out < most && (n_out == 0 || ebb_draft_length_is_next_worth(&h->draft_length, chance))) {
        ebb_token id;

        if (!draft_next(s, ids, n + n_out, &id, &h->probability[n_out]))
            break;
        chance *= ebb_draft_length_accept_chance(&h->draft_length, h->probability[n_out]);
        if (id == EBB_TOKEN_NONE || ebb_model_is_eog(s->engine->model, id) ||
            !ebb_draft_length_is_token_worth(&h->draft_length, chance))
            break;
        ids[n + n_out] = id;
        out[n_out++] = id;
    }
    return n_out;
}

uint32_t ebb_draft_head_draft(ebb_session *s, ebb_token *ids, uint32_t n, ebb_token *out, uint32_t max)
{
    ebb_engine *e = s->engine;
    ebb_head_drafter *h = &e->head_drafter;
    const float *hidden = ebb_hidden_before(s, n - 1);
    uint32_t n_pos = s->table.n_pos, n_out = 0;
    uint32_t most = ebb_draft_length_begin(&h->draft_length, max < EBB_DRAFT_HEAD_MOST ? max : EBB_DRAFT_HEAD_MOST);

    if (!hidden || most == 0)
        return 0;
    memcpy(h->hidden, hidden, e->net.n_embd * sizeof *hidden);
    ebb_sampler_set_state(h->sampler, &s->sampler_state);
    ebb_draft_rows_update(&h->rows);
    e->logits_owner = NULL;                      /* their rows are written to */
    if (ebb_session_reserve(s, n_pos + most, NULL) == EBB_OK)
        n_out = draft_chain(s, ids, n, out, most);
    if (n_out == 0)
        ebb_draft_length_learn_waste(&h->draft_length);
    ebb_kv_truncate(e->kv, &s->table, n_pos);
    return n_out;
}
