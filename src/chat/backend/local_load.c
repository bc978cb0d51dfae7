/* Finding and opening the model, on the worker of the engine's backend (local_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "backend/local_priv.h"
#include "base/clock.h"
#include "models/models.h"

#define PROGRESS_NS 100000000u   /* at most ten loading events a second */

static void emit_load_progress(void *arg, uint64_t done, uint64_t total)
{
    ebb_local *l = arg;
    uint64_t now = ebb_clock_ns();

    if (done < total && now - l->last_progress_ns < PROGRESS_NS)
        return;
    l->last_progress_ns = now;
    ebb_local_emit(l, &(ebb_backend_event){ .kind = EBB_BACKEND_LOADING, .done = done, .total = total });
}

/* Where the guide answers for files that cannot be used, a script is told, too. */
static ebb_status open_local_model(ebb_local *l, ebb_model **m, ebb_error *err)
{
    ebb_buf why = { 0 };
    ebb_status st = ebb_models_open(&l->opts, &l->path, m, &why, err);

    if (st == EBB_OK && why.len)
        ebb_local_emit_text(l, l->path ? EBB_BACKEND_NOTICE : EBB_BACKEND_WARNING, why.data, why.len);
    ebb_buf_fini(&why);
    return st;
}

static ebb_status open_local_draft(ebb_local *l, const ebb_model *m, ebb_error *err)
{
    ebb_buf why = { 0 };
    ebb_status st;

    if (!l->draft_path || l->opts.no_speculation)
        return EBB_OK;
    st = ebb_models_open_draft(l->draft_path, m, &l->opts, l->draft_is_optional, &l->draft, &why, err);
    if (st == EBB_OK && why.len)
        ebb_local_emit_text(l, EBB_BACKEND_NOTICE, why.data, why.len);
    l->opts.draft = l->draft;
    ebb_buf_fini(&why);
    return st;
}

/* What it will bring, or why it is left out. */
static void report_draft(ebb_local *l, const ebb_engine *e)
{
    ebb_machine machine;
    ebb_plan p;
    ebb_buf line = { 0 };

    ebb_engine_get_plan(e, &p, &machine);
    if (!l->draft || !p.draft_why[0])
        return;
    ebb_buf_addf(&line, "draft model %s: %s", ebb_model_get_info(l->draft)->name, p.draft_why);
    ebb_local_emit_text(l, EBB_BACKEND_NOTICE, ebb_buf_text(&line), line.len);
    ebb_buf_fini(&line);
}

/* The engine has evicted layers by itself: wake the worker, so that it reloads them in time. */
static void wake_on_evict(void *arg)
{
    ebb_local *l = arg;

    pthread_mutex_lock(&l->lock);
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

/* All parts are built first and published in one step: other threads see all of them or none. */
void ebb_local_load(ebb_local *l)
{
    ebb_model *m = NULL;
    ebb_engine *e = NULL;
    ebb_error err = { 0 };
    ebb_status st = open_local_model(l, &m, &err);

    if (st == EBB_OK)
        st = open_local_draft(l, m, &err);
    if (st == EBB_OK)
        st = ebb_engine_open(m, &l->opts, emit_load_progress, l, &e, &err);
    if (st == EBB_OK)
        report_draft(l, e);
    if (st == EBB_OK)
        ebb_engine_on_evict(e, wake_on_evict, l);
    if (st == EBB_OK)
        st = ebb_session_new(e, &l->session, &err);
    if (st == EBB_OK && !(l->detok = ebb_detok_new(m, false)))
        st = EBB_FAIL(&err, EBB_NOMEM, "no memory to read the model's tokens");
    pthread_mutex_lock(&l->lock);
    l->model = m;
    l->engine = e;
    l->is_loading = false;
    if (st == EBB_OK)
        ebb_local_emit_locked(l, &(ebb_backend_event){ .kind = EBB_BACKEND_READY });
    else
        ebb_local_emit_locked(l, &(ebb_backend_event){ .kind = EBB_BACKEND_FAILED, .text = err.msg,
                                                       .n_text = strlen(err.msg) });
    pthread_mutex_unlock(&l->lock);
}
