/* A draft model: an engine that drafts for another one (draft_model.h). */
#include <string.h>

#include "base/clock.h"
#include "open/engine_state.h"
#include "speculate/draft_grow.h"

#define MIB ((uint64_t)1 << 20)

/* -- Coming and going --------------------------------------------------------------- */

static ebb_status open_draft_engine(ebb_engine *e, ebb_engine **engine, ebb_error *err)
{
    ebb_draft_model *h = &e->draft_model;
    uint32_t n_vocab = e->net.n_vocab;
    ebb_status st = ebb_engine_open_draft(e, engine, err);

    if (st != EBB_OK)
        return st;
    n_vocab = n_vocab < (*engine)->net.n_vocab ? n_vocab : (*engine)->net.n_vocab;
    st = ebb_session_new(*engine, &h->session, err);
    if (st == EBB_OK)
        h->session->is_tentative = true;
    if (st == EBB_OK && !(h->sampler = ebb_sampler_new(&EBB_SAMPLER_GREEDY.p, n_vocab)))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for its sampler");
    return st;
}

static void publish_draft_engine(ebb_engine *e, ebb_engine *draft)
{
    pthread_mutex_lock(&e->lock);
    e->draft_model.engine = draft;
    e->stats.draft_bytes = draft ? e->plan.draft_bytes : 0;
    pthread_mutex_unlock(&e->lock);
}

static void close_draft_engine(ebb_engine *e, ebb_engine *draft)
{
    ebb_draft_model *h = &e->draft_model;

    publish_draft_engine(e, NULL);
    ebb_session_free(h->session);
    ebb_sampler_free(h->sampler);
    ebb_engine_close(draft);
    h->session = NULL;
    h->sampler = NULL;
    atomic_store(&h->is_evicted, false);
}

/* Shares of a pass by the plans: seconds are measured. */
static void init_draft_length(ebb_engine *e, const ebb_engine *draft)
{
    double alone_s = ebb_plan_pass_s(&e->net, &e->machine, &e->plan, 1);
    double further_s = (ebb_plan_pass_s(&e->net, &e->machine, &e->plan, EBB_DRAFT_MAX_LOOKUP + 1) - alone_s) /
                       EBB_DRAFT_MAX_LOOKUP;

    ebb_draft_length_init(&e->draft_model.draft_length, e->plan.draft_accept_rate, further_s / alone_s,
                  ebb_plan_pass_s(&draft->net, &e->machine, &draft->plan, 1) / alone_s);
    e->draft_model.draft_length.n_fixed = e->opts.n_draft;
}

static void open_draft_model(ebb_engine *e)
{
    ebb_engine *draft = NULL;
    ebb_error err = { 0 };

    if (e->plan.draft_bytes == 0 || ebb_draft_model_is_open(e))
        return;
    e->draft_model.bytes = e->plan.draft_bytes;
    e->draft_model.is_released = false;
    if (open_draft_engine(e, &draft, &err) != EBB_OK) {
        close_draft_engine(e, draft);            /* nobody else knows of it yet */
        ebb_draft_model_end(e, err.msg);
        return;
    }
    if (e->draft_model.draft_length.proposed <= 0)
        init_draft_length(e, draft);
    e->draft_model.draft_length.takes_layers = e->plan.stream_bytes > 0;
    publish_draft_engine(e, draft);
}

static void close_draft_model(ebb_engine *e)
{
    close_draft_engine(e, e->draft_model.engine);
}

/* -- Guessing --------------------------------------------------------------------------- */

/* The growing of one tree.  What fails is kept until that has ended: until then the draft model stays open. */
typedef struct guess {
    ebb_draft_model *model;
    ebb_status       st;         /* of its last pass; after a failure there is none */
    ebb_error        err;
} guess;

/* Its sequence is ids[0..n), its logits those behind them. */
static bool sync_draft(guess *g, const ebb_token *ids, uint32_t n)
{
    ebb_draft_model *h = g->model;
    uint32_t n_behind = n - (uint32_t)ebb_session_common_prefix(h->session, ids, n);
    double begin = ebb_clock_s();

    if (!ebb_draft_length_is_sync_worth(&h->draft_length, n_behind))
        return false;
    g->st = ebb_session_sync(h->session, ids, n, NULL, &g->err);
    if (g->st == EBB_OK)
        ebb_draft_length_learn_draft(&h->draft_length, n_behind, ebb_clock_s() - begin);
    return g->st == EBB_OK;
}

/* Its sequence gets one token more. */
static bool append_draft(guess *g, ebb_token id)
{
    double begin = ebb_clock_s();

    g->st = ebb_session_append(g->model->session, id, &g->err);
    if (g->st == EBB_OK)
        ebb_draft_length_learn_draft(&g->model->draft_length, 1, ebb_clock_s() - begin);
    return g->st == EBB_OK;
}

/* Its vocabulary has them all: only what fills up the matrix may be missing. */
static bool has_all_tokens(const ebb_engine *draft, const ebb_token *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)ids[i] >= draft->net.n_vocab)
            return false;
    return n < draft->plan.n_ctx;
}

/* Its sequence becomes ids[0..n): by one token more, or going back to where a branch leaves, which costs a recurrent
 * state too much. */
static bool compute_draft(guess *g, const ebb_token *ids, uint32_t n, uint32_t depth)
{
    const ebb_draft_model *h = g->model;
    size_t n_own;
    const ebb_token *own = ebb_session_ids(h->session, &n_own);

    if (depth > 0 && n_own == n - 1 && memcmp(own, ids, n_own * sizeof *own) == 0)
        return append_draft(g, ids[n - 1]);
    return (depth == 0 || !h->engine->net.state_bytes) && sync_draft(g, ids, n);
}

static uint32_t choose_with_model(void *arg, const ebb_token *ids, uint32_t n, uint32_t depth, ebb_choice *out)
{
    guess *g = arg;
    ebb_draft_model *h = g->model;

    if (g->st != EBB_OK || atomic_load(&h->is_evicted) || !compute_draft(g, ids, n, depth))
        return 0;
    return ebb_sampler_rank(h->sampler, ebb_session_logits(h->session), ids, n, out, EBB_DRAFT_RANKS);
}

static void draft_with_model(ebb_session *s, uint32_t n, uint32_t max)
{
    ebb_engine *e = s->engine;
    ebb_draft_model *h = &e->draft_model;
    uint32_t room = h->engine->plan.n_ctx > n ? h->engine->plan.n_ctx - n : 0;
    guess g = { .model = h };
    ebb_drafter d = {
        .length = &h->draft_length, .sampler = h->sampler, .model = e->model, .choose = choose_with_model, .arg = &g,
        .most_trunk = ebb_draft_length_begin(&h->draft_length, max < room ? max : room),
        .most = ebb_draft_tree_most(s),
    };

    if (d.most_trunk == 0 || atomic_load(&h->is_evicted) || !has_all_tokens(h->engine, s->ids, n))
        return;
    ebb_sampler_set_state(h->sampler, &s->sampler_state);
    ebb_draft_grow(&d, s->ids, n, &s->drafts.tree);
    if (g.st != EBB_OK && g.st != EBB_CANCELED)  /* a stop is for the host's own pass to report */
        ebb_draft_model_end(e, g.err.msg);
}

/* -- The same text ------------------------------------------------------------------------ */

static void shift_draft(ebb_session *s, uint32_t from, uint32_t n)
{
    const ebb_token *ids;
    size_t n_ids;

    ids = ebb_session_ids(s->engine->draft_model.session, &n_ids);
    if (n_ids > from + n && memcmp(ids, s->ids, (from + n) * sizeof *ids) == 0)
        (void)!ebb_session_shift(s->engine->draft_model.session, from, n, NULL);  /* else it is computed */
}

static void persist_draft(ebb_engine *e)
{
    ebb_session_persist(e->draft_model.session);
}

const ebb_draft_model_ops ebb_draft_model_class = {
    .open = open_draft_model, .close = close_draft_model, .draft = draft_with_model, .shift = shift_draft,
    .persist = persist_draft,
};
