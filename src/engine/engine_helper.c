/* A draft model: an engine that guesses for another one (engine_impl.h). */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine_impl.h"
#include "model_file.h"

#define MIB ((uint64_t)1 << 20)

/* -- Coming and going --------------------------------------------------------------- */

/* Its passes are long beside the looks of the host, whose thread is to stay awake. */
static void between(void *host)
{
    ebb_sentry_wake(host);
}

static ebb_status open_all(ebb_engine *e, ebb_engine **engine, ebb_error *err)
{
    ebb_helper *h = &e->helper;
    uint32_t n_vocab = e->net.n_vocab;
    ebb_status st = ebb_engine_open_draft(e, engine, err);

    if (st != EBB_OK)
        return st;
    (*engine)->run.between = between;
    (*engine)->run.between_arg = e;
    n_vocab = n_vocab < (*engine)->net.n_vocab ? n_vocab : (*engine)->net.n_vocab;
    st = ebb_session_new(*engine, &h->session, err);
    if (st == EBB_OK && !(h->sampler = ebb_sampler_new(&EBB_SAMPLER_LIKELIEST.p, n_vocab)))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory to choose its guesses");
    return st;
}

static void publish(ebb_engine *e, ebb_engine *draft)
{
    pthread_mutex_lock(&e->lock);
    e->helper.engine = draft;
    e->stats.draft_bytes = draft ? e->plan.draft_bytes : 0;
    pthread_mutex_unlock(&e->lock);
}

static void close_engine(ebb_engine *e, ebb_engine *draft)
{
    ebb_helper *h = &e->helper;

    publish(e, NULL);
    ebb_session_free(h->session);
    ebb_sampler_free(h->sampler);
    ebb_engine_close(draft);
    h->session = NULL;
    h->sampler = NULL;
    atomic_store(&h->is_short, false);
}

/* For good: answers go on without. */
static void end(ebb_engine *e, ebb_engine *draft, const ebb_error *err)
{
    close_engine(e, draft);
    e->helper.bytes = 0;
    e->helper.is_away = false;
    ebb_stats_decision(e, "the draft model has ended, answers go on without it: %s", err->msg);
}

/* Shares of a pass by the plans: seconds are measured. */
static void init_pace(ebb_engine *e, const ebb_engine *draft)
{
    double alone_s = ebb_plan_pass_s(&e->net, &e->machine, &e->plan, 1);
    double further_s = (ebb_plan_pass_s(&e->net, &e->machine, &e->plan, EBB_AHEAD_TEXT + 1) - alone_s) / EBB_AHEAD_TEXT;

    ebb_pace_init(&e->helper.pace, e->plan.draft_right, further_s / alone_s,
                  ebb_plan_pass_s(&draft->net, &e->machine, &draft->plan, 1) / alone_s);
    e->helper.pace.n_fixed = e->opts.n_draft;
}

void ebb_helper_open(ebb_engine *e)
{
    ebb_engine *draft = NULL;
    ebb_error err = { 0 };

    if (e->plan.draft_bytes == 0 || ebb_helper_is_here(e))
        return;
    e->helper.bytes = e->plan.draft_bytes;
    e->helper.is_away = false;
    if (open_all(e, &draft, &err) != EBB_OK) {
        end(e, draft, &err);
        return;
    }
    if (e->helper.pace.tried <= 0)
        init_pace(e, draft);
    publish(e, draft);
}

void ebb_helper_close(ebb_engine *e)
{
    if (ebb_helper_is_here(e))
        close_engine(e, e->helper.engine);
}

/* -- Memory --------------------------------------------------------------------------- */

static void go_away(ebb_engine *e)
{
    e->helper.is_away = true;
    e->budget.shed_ns = ebb_clock_ns();
    ebb_helper_close(e);
}

bool ebb_helper_give(ebb_engine *e, int64_t available)
{
    if (!ebb_helper_is_here(e))
        return false;
    ebb_pool_settle(e->pool);                    /* a late thread may still read its weights */
    go_away(e);
    ebb_stats_decision(e, "memory is short: %lld MiB available; the draft model is let go (%llu MiB), answers get slower",
                       (long long)(available / (int64_t)MIB), (unsigned long long)(e->helper.bytes / MIB));
    return true;
}

uint64_t ebb_helper_let_go(ebb_engine *e)
{
    uint64_t freed = 0;
    uint32_t n;

    pthread_mutex_lock(&e->lock);
    if (e->helper.engine)
        freed = ebb_res_let_go(e->helper.engine->res, UINT64_MAX, &n);
    if (freed > 0)
        atomic_store(&e->helper.is_short, true);
    pthread_mutex_unlock(&e->lock);
    return freed;
}

void ebb_helper_follow_sentry(ebb_engine *e)
{
    if (atomic_load(&e->helper.is_short))
        go_away(e);
}

void ebb_helper_take_back(ebb_engine *e)
{
    ebb_helper_open(e);
    if (ebb_helper_is_here(e))
        ebb_stats_decision(e, "memory is there again: the draft model is taken back");
}

/* -- Guessing --------------------------------------------------------------------------- */

/* A stop is for the host's own pass to report; everything else is the end. */
static void fail(ebb_engine *e, ebb_status st, const ebb_error *err)
{
    if (st != EBB_CANCELED)
        end(e, e->helper.engine, err);
}

/* Its timeline is ids[0..n), its logits those behind them. */
static bool follow(ebb_engine *e, const ebb_token *ids, uint32_t n)
{
    ebb_helper *h = &e->helper;
    uint32_t n_behind = n - (uint32_t)ebb_session_common(h->session, ids, n);
    double begin = ebb_clock_s();
    ebb_error err = { 0 };
    ebb_status st;

    if (!ebb_pace_catches_up(&h->pace, n_behind))
        return false;
    st = ebb_session_sync(h->session, ids, n, NULL, &err);
    if (st != EBB_OK)
        fail(e, st, &err);
    else
        ebb_pace_learn_draft(&h->pace, n_behind, ebb_clock_s() - begin);
    return st == EBB_OK;
}

/* Its timeline gets one token more. */
static bool go_on(ebb_engine *e, ebb_token id)
{
    double begin = ebb_clock_s();
    ebb_error err = { 0 };
    ebb_status st = ebb_session_append(e->helper.session, id, &err);

    if (st != EBB_OK)
        fail(e, st, &err);
    else
        ebb_pace_learn_draft(&e->helper.pace, 1, ebb_clock_s() - begin);
    return st == EBB_OK;
}

static ebb_token choose(ebb_helper *h, double *probability)
{
    size_t n;
    const ebb_token *ids = ebb_session_ids(h->session, &n);

    return ebb_sampler_pick_likely(h->sampler, ebb_session_logits(h->session), ids, n, probability);
}

/* Its vocabulary has them all: only what fills up the matrix may be missing. */
static bool knows(const ebb_engine *draft, const ebb_token *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)ids[i] >= draft->net.n_vocab)
            return false;
    return n < draft->plan.n_ctx;
}

uint32_t ebb_helper_guess(ebb_session *s, const ebb_token *ids, uint32_t n, ebb_token *out, uint32_t max)
{
    ebb_engine *e = s->engine;
    ebb_helper *h = &e->helper;
    uint32_t n_out = 0, room = h->engine->plan.n_ctx > n ? h->engine->plan.n_ctx - n : 0;
    uint32_t most = ebb_pace_begin(&h->pace, max < room ? max : room);
    double chance = 1;

    if (most == 0 || atomic_load(&h->is_short) || !knows(h->engine, ids, n) || !follow(e, ids, n))
        return 0;
    ebb_sampler_set_mark(h->sampler, &s->chooser);
    for (;;) {
        ebb_token id = choose(h, &h->probability[n_out]);

        chance *= ebb_pace_chance(&h->pace, h->probability[n_out]);
        if (ebb_model_is_eog(e->model, id) || !ebb_pace_is_worth(&h->pace, chance))
            return n_out;                        /* nothing is asked of an answer behind its end */
        out[n_out++] = id;
        if (n_out == most || !ebb_pace_goes_on(&h->pace, chance) || atomic_load(&h->is_short) || !go_on(e, id))
            return n_out;
    }
}

void ebb_helper_learn(ebb_engine *e, uint32_t n, uint32_t n_right, bool is_refuted)
{
    for (uint32_t i = 0; i < n_right; i++)
        ebb_pace_learn_guess(&e->helper.pace, e->helper.probability[i], true);
    if (is_refuted && n_right < n)
        ebb_pace_learn_guess(&e->helper.pace, e->helper.probability[n_right], false);
    ebb_pace_end(&e->helper.pace);
    ebb_log("draft", "a pass %.1f ms, a further column %.2f, a guess %.2f; %.0f %% of guesses right", 1e3 * e->helper.pace.alone_s,
            1e3 * e->helper.pace.column_s, 1e3 * e->helper.pace.draft_s, 100 * e->helper.pace.right / e->helper.pace.tried);
}

void ebb_helper_learn_pass(ebb_engine *e, uint32_t n_cols, double seconds)
{
    if (ebb_helper_is_here(e))
        ebb_pace_learn_pass(&e->helper.pace, n_cols, seconds);
}

/* -- The same text ------------------------------------------------------------------------ */

void ebb_helper_forget(ebb_session *s, uint32_t from, uint32_t n)
{
    const ebb_token *ids;
    size_t n_ids;

    if (!ebb_helper_is_here(s->engine))
        return;
    ids = ebb_session_ids(s->engine->helper.session, &n_ids);
    if (n_ids > from + n && memcmp(ids, s->ids, (from + n) * sizeof *ids) == 0)
        (void)!ebb_session_forget(s->engine->helper.session, from, n, NULL);      /* else it is computed */
}

void ebb_helper_keep(ebb_engine *e)
{
    if (ebb_helper_is_here(e))
        ebb_session_keep(e->helper.session);
}
