/* The draft head as a drafter: opening it, the hidden states that it goes on from, what it is worth (draft_head.h). */
#include "speculate/draft_head.h"

#include <stdlib.h>
#include <string.h>

#include "open/engine_state.h"

/* -- Coming and going --------------------------------------------------------------- */

/* Shares of a pass by the plan: seconds are measured. */
static void init_length(ebb_engine *e)
{
    double alone_s = ebb_plan_pass_s(&e->net, &e->machine, &e->plan, 1);
    double further_s = (ebb_plan_pass_s(&e->net, &e->machine, &e->plan, EBB_DRAFT_HEAD_MOST + 1) - alone_s) /
                       EBB_DRAFT_HEAD_MOST;

    ebb_draft_length_init(&e->head_drafter.draft_length, EBB_ACCEPT_RATE_HEAD, further_s / alone_s,
                          ebb_plan_head_s(&e->net, &e->machine, &e->plan) / alone_s);
    e->head_drafter.draft_length.n_fixed = e->opts.n_draft;
}

ebb_status ebb_draft_head_open(ebb_engine *e, ebb_error *err)
{
    ebb_head_drafter *h = &e->head_drafter;

    if (!e->net.has_draft_head)
        return EBB_OK;
    h->hidden = calloc((EBB_DRAFT_HEAD_MOST + 1) * (size_t)e->net.n_embd, sizeof *h->hidden);
    h->sampler = ebb_sampler_new(&EBB_SAMPLER_GREEDY.p, e->net.n_vocab);
    if (!ebb_draft_rows_init(&h->rows, e->net.n_vocab) || !h->hidden || !h->sampler)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the draft head");
    init_length(e);
    return EBB_OK;
}

void ebb_draft_head_close(ebb_engine *e)
{
    ebb_sampler_free(e->head_drafter.sampler);
    free(e->head_drafter.hidden);
    ebb_draft_rows_fini(&e->head_drafter.rows);
}

bool ebb_draft_head_is_open(const ebb_engine *e)
{
    return e->head_drafter.sampler != NULL;
}

void ebb_draft_head_recount(ebb_engine *e)
{
    ebb_draft_rows *rows = &e->head_drafter.rows;

    if (!ebb_draft_head_is_open(e))
        return;
    ebb_draft_rows_forget(rows);
    ebb_draft_rows_learn(rows, e->reference.ids, e->reference.n);
    for (const ebb_session *s = e->sessions; s; s = s->next)
        ebb_draft_rows_learn(rows, s->ids, ebb_session_length(s));
}

/* -- Hidden states ------------------------------------------------------------------- */

/* Row i of what the last pass kept, of position n_pos - 1. */
static void copy_hidden(ebb_session *s, uint32_t i, uint32_t n_pos)
{
    const ebb_forward *run = &s->engine->run;
    size_t n = run->net->n_embd;

    memcpy(s->hidden, run->buf.hidden + i * n, n * sizeof *s->hidden);
    s->n_hidden = n_pos;
}

void ebb_hidden_follow_pass(ebb_session *s, uint32_t n, uint32_t n_pending, uint32_t row)
{
    if (!s->hidden)
        return;
    copy_hidden(s, row, s->table.n_pos - n_pending);
    ebb_draft_rows_learn(&s->engine->head_drafter.rows, s->ids + s->table.n_pos - n, n - n_pending);
}

void ebb_hidden_follow_accept(ebb_session *s)
{
    uint32_t n = ebb_session_length(s);

    if (!s->hidden)
        return;
    copy_hidden(s, s->drafts.row, n);
    ebb_draft_rows_learn(&s->engine->head_drafter.rows, s->ids + n - 1, 1);
}

void ebb_hidden_keep(ebb_session *s, const ebb_token *ids, size_t n)
{
    if (s->n_hidden > 0 && (s->n_hidden > n || memcmp(s->ids, ids, s->n_hidden * sizeof *ids) != 0))
        s->n_hidden = 0;
}

const float *ebb_hidden_before(const ebb_session *s, uint32_t pos)
{
    return pos > 0 && s->n_hidden == pos ? s->hidden : NULL;
}

/* -- What became of draft tokens ----------------------------------------------------------- */

void ebb_draft_head_learn(ebb_engine *e, const ebb_draft_outcome *o)
{
    ebb_draft_length_learn(&e->head_drafter.draft_length, o, "draft head");
}

void ebb_draft_head_learn_pass(ebb_engine *e, uint32_t n_tokens, double seconds)
{
    if (ebb_draft_head_is_open(e))
        ebb_draft_length_learn_pass(&e->head_drafter.draft_length, n_tokens, seconds);
}
