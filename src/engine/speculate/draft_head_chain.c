/* Draft tokens from the draft head (draft_head.h). */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "open/engine_state.h"
#include "speculate/draft_grow.h"

ebb_status ebb_draft_head_step(ebb_session *s, ebb_token id, uint32_t pos, float *hidden, float *logits, ebb_error *err)
{
    const ebb_draft_rows *rows = &s->engine->head_drafter.rows;
    ebb_draft_step step = {
        .table = &s->table, .id = id, .pos = pos, .hidden = hidden, .logits = logits, .rows = rows->chosen,
        .n_rows = rows->n_chosen < rows->n_rows ? rows->n_chosen : 0,
    };

    return ebb_forward_draft(&s->engine->run, &step, err);
}

/* A path keeps the hidden states in front of its places: one that leaves it goes on from there. */
static uint32_t choose_with_head(void *arg, const ebb_token *ids, uint32_t n, uint32_t depth, ebb_choice *out)
{
    ebb_session *s = arg;
    ebb_head_drafter *h = &s->engine->head_drafter;
    size_t n_embd = s->engine->net.n_embd;
    float *logits = s->engine->run.buf.logits, *hidden = h->hidden + (depth + 1) * n_embd;
    double begin = ebb_clock_s();
    ebb_error err = { 0 };

    memcpy(hidden, hidden - n_embd, n_embd * sizeof *hidden);
    if (ebb_draft_head_step(s, ids[n - 1], n - 1, hidden, logits, &err) != EBB_OK) {
        ebb_log("draft", "the draft head: %s", err.msg);         /* the pass meets the same, and says so */
        return 0;
    }
    n = ebb_sampler_rank(h->sampler, logits, ids, n, out, EBB_DRAFT_RANKS);
    ebb_draft_length_learn_draft(&h->draft_length, 1, ebb_clock_s() - begin);
    return n;
}

void ebb_draft_head_draft(ebb_session *s, uint32_t n, uint32_t max)
{
    ebb_engine *e = s->engine;
    ebb_head_drafter *h = &e->head_drafter;
    const float *hidden = ebb_hidden_before(s, n - 1);
    uint32_t n_pos = s->table.n_pos;
    ebb_drafter d = {
        .length = &h->draft_length, .sampler = h->sampler, .model = e->model, .choose = choose_with_head, .arg = s,
        .most_trunk = ebb_draft_length_begin(&h->draft_length, max < EBB_DRAFT_HEAD_MOST ? max : EBB_DRAFT_HEAD_MOST),
        .most = ebb_draft_tree_most(s),
    };

    if (!hidden || d.most_trunk == 0)
        return;
    memcpy(h->hidden, hidden, e->net.n_embd * sizeof *hidden);
    ebb_sampler_set_state(h->sampler, &s->sampler_state);
    ebb_draft_rows_update(&h->rows);
    e->logits_owner = NULL;                      /* their rows are written to */
    if (ebb_session_reserve(s, n_pos + d.most_trunk, NULL) == EBB_OK)
        ebb_draft_grow(&d, s->ids, n, &s->drafts.tree);
    ebb_kv_truncate(e->kv, &s->table, n_pos);
}
