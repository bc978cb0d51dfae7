/* What a host does with its draft model: ask it, give its memory away, learn what it is worth
 * (draft_model.h). */
#include "speculate/draft_model.h"

#include "base/clock.h"
#include "open/engine_state.h"

#define QUESTION_PASSES 32u                      /* between two questions what a draft model is worth */

/* -- Asking it -- */

bool ebb_draft_model_is_open(const ebb_engine *e)
{
    return e->draft_model.engine != NULL;
}

void ebb_draft_model_open(ebb_engine *e)
{
    if (e->draft_model.ops)
        e->draft_model.ops->open(e);
}

void ebb_draft_model_close(ebb_engine *e)
{
    if (ebb_draft_model_is_open(e))
        e->draft_model.ops->close(e);
}

void ebb_draft_model_draft(ebb_session *s, uint32_t n, uint32_t max)
{
    if (ebb_draft_model_is_open(s->engine))
        s->engine->draft_model.ops->draft(s, n, max);
}

void ebb_draft_model_shift(ebb_session *s, uint32_t from, uint32_t n)
{
    if (ebb_draft_model_is_open(s->engine))
        s->engine->draft_model.ops->shift(s, from, n);
}

void ebb_draft_model_persist(ebb_engine *e)
{
    if (ebb_draft_model_is_open(e))
        e->draft_model.ops->persist(e);
}

/* -- Memory --------------------------------------------------------------------------- */

static void release_memory(ebb_engine *e)
{
    e->draft_model.is_released = true;
    e->budget.evicted_ns = ebb_clock_ns();
    ebb_draft_model_close(e);
}

bool ebb_draft_model_release(ebb_engine *e, int64_t available)
{
    if (!ebb_draft_model_is_open(e))
        return false;
    ebb_pool_drain(e->pool);                     /* a late thread may still read its weights */
    release_memory(e);
    ebb_stats_memory_event(e, &(ebb_memory_event){ .code = EBB_MEMORY_DRAFT_EVICTED, .available_bytes = available,
                                                   .bytes = e->draft_model.bytes });
    return true;
}

uint64_t ebb_draft_model_evict(ebb_engine *e)
{
    uint64_t freed = 0;
    uint32_t n;

    pthread_mutex_lock(&e->lock);
    if (e->draft_model.engine)
        freed = ebb_res_evict(e->draft_model.engine->res, UINT64_MAX, &n);
    if (freed > 0)
        atomic_store(&e->draft_model.is_evicted, true);
    pthread_mutex_unlock(&e->lock);
    return freed;
}

void ebb_draft_model_follow_monitor(ebb_engine *e)
{
    if (atomic_load(&e->draft_model.is_evicted))
        release_memory(e);
}

void ebb_draft_model_reload(ebb_engine *e)
{
    ebb_draft_model_open(e);
    if (ebb_draft_model_is_open(e))
        ebb_stats_memory_notice(e, EBB_MEMORY_DRAFT_RELOADED, NULL);
}

/* -- What it is worth -- */

void ebb_draft_model_learn(ebb_engine *e, const ebb_draft_outcome *o)
{
    ebb_draft_length_learn(&e->draft_model.draft_length, o, "draft model");
}

void ebb_draft_model_learn_pass(ebb_engine *e, uint32_t n_tokens, double seconds)
{
    if (ebb_draft_model_is_open(e))
        ebb_draft_length_learn_pass(&e->draft_model.draft_length, n_tokens, seconds);
}

bool ebb_draft_model_is_questioned(ebb_engine *e)
{
    ebb_draft_model *h = &e->draft_model;

    if (!ebb_draft_model_is_open(e) || !ebb_draft_length_is_known(&h->draft_length))
        return false;
    return h->n_known++ % QUESTION_PASSES == 0;
}

bool ebb_draft_model_is_memory_worth(const ebb_engine *e, const ebb_plan *without)
{
    double with_s = ebb_plan_pass_s(&e->net, &e->machine, &e->plan, 1),
           without_s = ebb_plan_pass_s(&e->net, &e->machine, without, 1);

    return ebb_draft_length_is_memory_worth(&e->draft_model.draft_length, without_s / with_s);
}

void ebb_draft_model_end(ebb_engine *e, const char *why)
{
    ebb_draft_model_close(e);
    e->draft_model.bytes = 0;
    e->draft_model.is_released = false;
    ebb_stats_memory_notice(e, EBB_MEMORY_DRAFT_ENDED, why);
}
