/* Memory after open: the plan's states are brought about, at once or for another budget
 * (budget.h, ebb/engine.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/lend.h"
#include "open/engine_state.h"
#include "open/model_file.h"

#define MIB            ((uint64_t)1 << 20)
#define PREFAULT_LEAST (64 * MIB)                /* what takes no time by faults either wants no thread */

/* -- States ----------------------------------------------------------------------- */

/* Have read, in the background, what shall be resident; groups for which there is no memory stay with the ring. */
static ebb_status load_resident_groups(ebb_engine *e, const ebb_plan *p, ebb_progress_fn *progress, void *arg,
                                       ebb_error *err)
{
    ebb_layer_state state = p->is_mapped ? EBB_LAYER_MAPPED : EBB_LAYER_PINNED;
    uint64_t total = 0, done = 0;
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i <= p->n_layers; i++)
        if (ebb_reclaim_group_is_planned(e, i) && ebb_res_state(e->res, i) != state)
            total += ebb_res_group_bytes(e->res, i);
    for (uint32_t i = 0; i <= p->n_layers && st == EBB_OK; i++) {
        if (!ebb_reclaim_group_is_planned(e, i) || ebb_res_state(e->res, i) == state)
            continue;
        if (atomic_load(&e->cancel))
            return EBB_FAIL(err, EBB_CANCELED, "stopped before layer %u was read", i);
        st = p->is_mapped ? ebb_res_set_state(e->res, i, state, err) : ebb_res_pin_async(e->res, i, err);
        done += ebb_res_group_bytes(e->res, i);
        if (st == EBB_OK && progress && state == EBB_LAYER_PINNED)
            progress(arg, done, total);
    }
    return st;
}

/* Tell residency which extents stay. */
static ebb_status set_resident_extents(ebb_engine *e, const ebb_plan *p, ebb_error *err)
{
    bool *stays = malloc(e->net.n_extents * sizeof *stays);
    ebb_status st;

    if (!stays)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %u tensors", e->net.n_extents);
    (void)ebb_plan_resident_extents(&e->net, p, e->opts.placement, stays);
    st = ebb_res_set_resident(e->res, stays, err);
    free(stays);
    return st;
}

static ebb_status apply_plan(ebb_engine *e, const ebb_plan *p, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    const ebb_read_speed *speeds = e->calibration.has_disk ? e->calibration.disk.rest : NULL;
    ebb_status st = EBB_OK;

    ebb_lend_close(e);
    ebb_reclaim_set_plan(e);                     /* before anything is read */
    if (!ebb_model_is_in_memory(e->model) && (!p->is_mapped || p->stream_bytes > 0))
        st = ebb_res_set_reader(e->res, e->opts.io, speeds,
                                p->weights_ring_bytes ? p->weights_ring_bytes : EBB_LOADER_BYTES, err);
    if (st == EBB_OK && p->expert_bytes > 0)
        st = ebb_res_set_expert_cache(e->res, p->expert_bytes, err);
    e->budget.expert_bytes = p->expert_bytes;
    e->budget.is_ring_minimal = false;
    if (st == EBB_OK)
        st = set_resident_extents(e, p, err);
    for (uint32_t i = 0; i <= p->n_layers && st == EBB_OK; i++)
        if (!ebb_reclaim_group_is_planned(e, i))
            st = ebb_res_set_state(e->res, i, EBB_LAYER_DISK, err);
    if (st == EBB_OK)
        st = load_resident_groups(e, p, progress, arg, err);
    if (st == EBB_OK)
        ebb_res_fill_expert_cache(e->res);
    if (st == EBB_OK && p->is_mapped && p->weights_resident_bytes >= PREFAULT_LEAST &&
        !ebb_model_is_in_memory(e->model))
        ebb_res_prefault(e->res);
    if (st == EBB_OK && !e->host)
        ebb_lend_open(e);
    return st;
}

ebb_status ebb_budget_open(ebb_engine *e, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    ebb_status st;

    if (e->host)                                 /* which checks memory, and measures */
        return apply_plan(e, &e->plan, progress, arg, err);
    ebb_reclaim_open(e);
    ebb_calibrate_open(e);
    st = e->plan.stream_bytes > 0 ? ebb_calibrate_measure(e, &e->plan, err) : EBB_OK;
    if (st != EBB_OK)
        return st;
    ebb_plan_predict(&e->net, &e->machine, &e->plan);
    return apply_plan(e, &e->plan, progress, arg, err);
}

void ebb_budget_close(ebb_engine *e)
{
    if (e->host)
        return;
    ebb_pressure_monitor_stop(e);
    ebb_calibrate_close(e);
}

/* What passes took until now, beside what was predicted: within reason. */
static double bounded_correction(const ebb_engine *e)
{
    double by = e->calibration.correction;

    return by <= 0 ? 1 : by < 0.5 ? 0.5 : by > 4 ? 4 : by;
}

/* -- Another plan --------------------------------------------------------------------- */

/* The plan is brought about; after a stop what was not read comes later, a layer at a time. */
static ebb_status change_plan(ebb_engine *e, const ebb_plan *plan, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    ebb_status st;

    pthread_mutex_lock(&e->lock);                /* the figures' reader */
    e->plan = *plan;
    pthread_mutex_unlock(&e->lock);
    atomic_store(&e->budget.n_evicted, 0);
    st = apply_plan(e, plan, progress, arg, err);
    for (uint32_t i = 0; st == EBB_CANCELED && i <= e->net.n_layers; i++)
        e->budget.n_evicted += ebb_reclaim_group_is_planned(e, i) && !ebb_reclaim_group_is_resident(e, i);
    return st;
}

ebb_status ebb_budget_question_draft_model(ebb_engine *e, ebb_error *err)
{
    ebb_plan without = e->plan;

    if (e->budget.n_evicted > 0 || e->plan.stream_bytes == 0 || !ebb_draft_model_is_questioned(e))
        return EBB_OK;
    if (ebb_plan_refit_draft(&e->net, e->model, &e->opts, &e->machine, e->plan.budget_bytes, 0, &without, NULL) !=
            EBB_OK ||
        !without.fits || ebb_draft_model_is_memory_worth(e, &without))
        return EBB_OK;
    ebb_pool_drain(e->pool);                     /* a late thread may still read its weights */
    ebb_draft_model_end(e, "too few of its tokens are accepted; layers get its memory");
    snprintf(without.draft_why, sizeof without.draft_why, "left out: too few of its tokens were accepted");
    ebb_plan_predict(&e->net, &e->machine, &without);
    return change_plan(e, &without, NULL, NULL, err);
}

/* -- Another budget ------------------------------------------------------------------ */

ebb_status ebb_engine_plan_budget(ebb_engine *e, uint64_t bytes, ebb_plan *out, ebb_error *err)
{
    ebb_machine now;
    ebb_status st = ebb_machine_probe(NULL, false, &now, err);

    *out = e->plan;
    if (st != EBB_OK)
        return st;
    if (bytes == 0 || bytes > now.available_bytes)
        bytes = now.available_bytes;
    st = ebb_plan_refit_draft(&e->net, e->model, &e->opts, &e->machine, bytes, e->draft_model.bytes, out, err);
    if (st == EBB_OK)
        st = ebb_calibrate_measure(e, out, err);
    if (st == EBB_OK) {
        ebb_plan_predict(&e->net, &e->machine, out);
        out->predicted_decode_tok_s /= bounded_correction(e);
        out->predicted_prefill_tok_s /= bounded_correction(e);
        out->predicted_full_tok_s = ebb_plan_decode_tok_s_at(out, &e->machine, out->n_ctx);
        out->predicted_first_token_s *= bounded_correction(e);
    }
    return st;
}

ebb_status ebb_engine_set_budget(ebb_engine *e, uint64_t bytes, ebb_progress_fn *progress, void *arg, ebb_error *err)
{
    ebb_memory_event event = { .code = EBB_MEMORY_BUDGET_SET };
    ebb_plan plan;
    ebb_status st = ebb_engine_plan_budget(e, bytes, &plan, err);

    if (st != EBB_OK)
        return st;
    if (!plan.fits)
        return EBB_FAIL(err, EBB_BUDGET, "%s", plan.why);
    e->opts.has_resident = false;
    pthread_mutex_lock(&e->lock);                /* the figures' reader */
    e->calibration.applied = bounded_correction(e);
    pthread_mutex_unlock(&e->lock);
    if (plan.draft_bytes == 0)
        ebb_draft_model_close(e);
    st = change_plan(e, &plan, progress, arg, err);
    if (st == EBB_OK && plan.draft_bytes > 0 && !ebb_draft_model_is_open(e))
        ebb_draft_model_open(e);
    event.bytes = plan.budget_bytes;
    snprintf(event.detail, sizeof event.detail, "%s", plan.why);
    ebb_stats_memory_event(e, &event);
    return st;
}

double ebb_engine_prompt_s(const ebb_engine *e, uint32_t n_past, uint32_t n_tokens, bool is_first)
{
    return ebb_plan_prompt_s(&e->net, &e->machine, &e->plan, n_past, n_tokens, is_first);
}

bool ebb_engine_idle(ebb_engine *e)
{
    bool more = ebb_reclaim_idle(e);

    ebb_calibrate_idle(e);
    return more;
}
