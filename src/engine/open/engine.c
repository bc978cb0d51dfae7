/* A model made ready to compute (ebb/engine.h). */
#include "ebb/engine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "open/engine_state.h"
#include "open/model_file.h"
#include "plan/layout.h"

/* -- Opening --------------------------------------------------------------------- */

/* Says also what keeps K and V out of a file, if that is what is in the way. */
static ebb_status refuse_plan(ebb_engine *e, ebb_error *err)
{
    ebb_engine_opts spilling = e->opts;
    ebb_error why;
    ebb_plan p;

    spilling.no_kv_cache = false;
    spilling.kv_seal = NULL;
    if (ebb_persist_check_spill(e, &why) == EBB_OK ||
        ebb_plan_net(&e->net, e->model, &spilling, &e->machine, &p, NULL) != EBB_OK || !p.fits)
        return EBB_FAIL(err, EBB_BUDGET, "%s", e->plan.why);
    return EBB_FAIL(err, EBB_BUDGET, "%s; less would do if K and V could go to a file: %s", e->plan.why, why.msg);
}

static ebb_status plan_engine(ebb_engine *e, ebb_error *err)
{
    ebb_engine_opts o = e->opts;
    ebb_status st;

    if (e->host)
        return ebb_plan_draft(&e->net, &e->host->opts, &e->host->plan, &e->plan, err);
    o.no_kv_cache = ebb_persist_check_spill(e, NULL) != EBB_OK;  /* what cannot go to a file takes memory */
    st = ebb_machine_probe(NULL, false, &e->machine, err);
    if (st == EBB_OK)
        st = ebb_machine_check_threads(&e->machine, &e->opts, err);
    ebb_machine_recall_experts(&e->machine, e->model);
    /* whether it is worth its memory is for speeds to say */
    if (st == EBB_OK && o.draft && !o.no_speculation)
        st = ebb_machine_measure(&e->machine, e->model, &o, true, err);
    if (st == EBB_OK)
        st = ebb_plan_net(&e->net, e->model, &o, &e->machine, &e->plan, err);
    if (st != EBB_OK)
        return st;
    ebb_log("plan", "%s: total %llu, budget %llu: %s", ebb_tier_name(e->plan.tier),
            (unsigned long long)e->plan.total_bytes, (unsigned long long)e->plan.budget_bytes, e->plan.why);
    if (e->plan.draft_why[0])
        ebb_log("plan", "draft model: %s", e->plan.draft_why);
    return e->plan.fits ? EBB_OK : refuse_plan(e, err);
}

/* What stops a pass. */
static const atomic_bool *cancel_flag_of(const ebb_engine *e)
{
    return e->host ? &e->host->cancel : &e->cancel;
}

static ebb_status open_residency(ebb_engine *e, ebb_error *err)
{
    const ebb_gguf *g = ebb_model_gguf(e->model);
    uint32_t n = ebb_gguf_n_parts(g);
    ebb_res_part *parts = calloc(n, sizeof *parts);
    ebb_status st;

    if (!parts)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %u files", n);
    for (uint32_t i = 0; i < n; i++) {
        const ebb_gguf_part *p = ebb_gguf_get_part(g, i);

        parts[i] = (ebb_res_part){ .path = p->path, .fd = p->fd, .memory = p->memory, .n_bytes = p->n_bytes };
    }
    st = ebb_res_open(parts, n, e->net.extents, e->net.n_extents, e->net.n_layers, &e->res, err);
    free(parts);
    if (st == EBB_OK)
        ebb_res_set_cancel(e->res, cancel_flag_of(e));
    if (st == EBB_OK)
        ebb_res_set_headroom(e->res, (ebb_headroom){ ebb_pressure_monitor_has_headroom, e->host ? e->host : e });
    return st;
}

static ebb_status open_kv(ebb_engine *e, ebb_error *err)
{
    ebb_kv_layer *layers = calloc(ebb_net_n_kv_layers(&e->net), sizeof *layers);
    ebb_kv_shape shape;
    ebb_status st;

    if (!layers)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %u layers", e->net.n_layers);
    shape = ebb_layout_kv(&e->plan, &e->net, layers);
    st = ebb_kv_open(&shape, &e->kv, err);
    free(layers);
    return st;
}

/* Count, allocate, place: the same layout twice. */
static ebb_status place_buffers(ebb_engine *e, ebb_error *err)
{
    ebb_arena a = { 0 };
    ebb_status st;

    ebb_layout_run(&e->plan, &e->net, &e->run);
    ebb_layout_arena(&e->net, &e->run, &a);
    st = ebb_map_anon(a.used, true, &e->arena, err);
    if (st != EBB_OK)
        return st;
    a = (ebb_arena){ .base = e->arena.data, .cap = a.used };
    ebb_layout_arena(&e->net, &e->run, &a);
    e->run.pool = e->pool;
    e->run.res = e->res;
    e->run.kv = e->kv;
    e->run.cancel = cancel_flag_of(e);
    e->run.is_cut = &e->is_cut;
    st = ebb_net_load(&e->net, e->res, err);
    if (st == EBB_OK)
        ebb_forward_init(&e->run);
    ebb_checkpoint_init(e);
    return st;
}

static ebb_status open_parts(ebb_engine *e, const ebb_engine_opts *o, ebb_progress_fn *progress, void *arg,
                           ebb_error *err)
{
    ebb_status st = ebb_kernels_get(o->cpu, &e->run.kern, err);

    if (st == EBB_OK)
        st = ebb_net_bind(&e->net, ebb_model_gguf(e->model), o->is_forced, err);
    if (st == EBB_OK) {
        ebb_persist_open_folder(e);
        st = plan_engine(e, err);
    }
    if (st == EBB_OK && e->host)
        e->pool = e->host->pool;
    else if (st == EBB_OK)
        st = ebb_pool_new(e->plan.n_threads, &e->pool, err);
    if (st == EBB_OK)
        st = open_residency(e, err);
    if (st == EBB_OK)
        st = open_kv(e, err);
    if (st == EBB_OK)
        st = place_buffers(e, err);
    if (st == EBB_OK)
        st = ebb_budget_open(e, progress, arg, err);
    if (st == EBB_OK)
        st = ebb_draft_head_open(e, err);
    if (st == EBB_OK)
        st = ebb_persist_open(e, err);
    return st;
}

static ebb_status engine_new(const ebb_model *m, const ebb_engine_opts *opts, ebb_engine *host,
                             ebb_progress_fn *progress, void *arg, ebb_engine **out, ebb_error *err)
{
    double begin = ebb_clock_s();
    ebb_engine *e = calloc(1, sizeof *e);
    ebb_status st;

    *out = NULL;
    if (!e)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an engine");
    e->model = m;
    e->host = host;
    e->opts = *opts;
    e->draft_model.ops = host ? NULL : &ebb_draft_model_class;
    pthread_mutex_init(&e->lock, NULL);
    st = open_parts(e, &e->opts, progress, arg, err);
    if (st != EBB_OK) {
        ebb_engine_close(e);
        return st;
    }
    pthread_mutex_lock(&e->lock);                /* the monitor looks already */
    ebb_stats_init(e, ebb_clock_s() - begin);
    pthread_mutex_unlock(&e->lock);
    *out = e;
    return EBB_OK;
}

ebb_status ebb_engine_open(const ebb_model *m, const ebb_engine_opts *opts,
                           ebb_progress_fn *progress, void *arg, ebb_engine **out, ebb_error *err)
{
    static const ebb_engine_opts defaults;
    ebb_status st = engine_new(m, opts ? opts : &defaults, NULL, progress, arg, out, err);

    if (st == EBB_OK)
        ebb_draft_model_open(*out);
    return st;
}

ebb_status ebb_engine_open_draft(ebb_engine *host, ebb_engine **out, ebb_error *err)
{
    ebb_engine_opts o = {
        .n_threads = host->plan.n_threads, .cpu = host->opts.cpu, .io = host->opts.io, .no_speculation = true,
        .no_kv_cache = host->opts.no_kv_cache, .kv_cache_dir = host->opts.kv_cache_dir,
        .kv_cache_bytes = host->opts.kv_cache_bytes, .kv_seal = host->opts.kv_seal,
    };

    return engine_new(host->opts.draft, &o, host, NULL, NULL, out, err);
}

void ebb_engine_close(ebb_engine *e)
{
    if (!e)
        return;
    ebb_draft_model_close(e);
    ebb_draft_head_close(e);
    ebb_reference_text_fini(&e->reference);
    ebb_budget_close(e);
    ebb_persist_close(e);
    if (!e->host)
        ebb_pool_free(e->pool);
    ebb_kv_close(e->kv);
    ebb_res_close(e->res);
    ebb_reclaim_close(e);                        /* readers have asked for room until here */
    ebb_net_fini(&e->net);
    ebb_map_fini(&e->arena);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* -- Small things ------------------------------------------------------------------ */

const ebb_model *ebb_engine_model(const ebb_engine *e)
{
    return e->model;
}

void ebb_engine_get_plan(const ebb_engine *e, ebb_plan *plan, ebb_machine *machine)
{
    *plan = e->plan;
    *machine = e->machine;
}

uint32_t ebb_engine_n_ctx(const ebb_engine *e)
{
    return e->run.n_ctx;                         /* another budget writes the plan anew */
}

void ebb_engine_cancel(ebb_engine *e)
{
    atomic_store(&e->cancel, true);
}

void ebb_engine_cancel_clear(ebb_engine *e)
{
    atomic_store(&e->cancel, false);
}
