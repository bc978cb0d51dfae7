/* /budget and /plan, on the worker of the engine's backend (local_priv.h). */
#include <stdio.h>
#include <string.h>

#include "backend/local_priv.h"
#include "base/clock.h"
#include "models/plan_text.h"

/* What the budget will bring is said before anything is done. */
static ebb_status apply_budget(ebb_local *l, uint64_t bytes, ebb_plan *p, ebb_error *err)
{
    ebb_buf line = { 0 };
    ebb_status st = ebb_engine_plan_budget(l->engine, bytes, p, err);

    if (st != EBB_OK)
        return st;
    if (!p->fits)
        return EBB_FAIL(err, EBB_BUDGET, "%s", p->why);
    ebb_plan_line(&line, p);
    ebb_local_emit_text(l, EBB_BACKEND_NOTICE, ebb_buf_text(&line), line.len);
    ebb_buf_fini(&line);
    return ebb_engine_set_budget(l->engine, bytes, NULL, NULL, err);
}

void ebb_local_budget(ebb_local *l)
{
    double begin = ebb_clock_s();
    char line[320];
    ebb_error err = { 0 };
    uint64_t bytes;
    ebb_plan p;
    ebb_status st;
    ebb_finish finish;

    pthread_mutex_lock(&l->lock);
    bytes = l->budget_bytes;
    pthread_mutex_unlock(&l->lock);
    st = apply_budget(l, bytes, &p, &err);
    finish = st == EBB_OK || st == EBB_CANCELED ? EBB_FINISH_STOP : EBB_FINISH_ERROR;
    if (st == EBB_OK)
        snprintf(line, sizeof line, "the new budget is in force after %.1f s", ebb_clock_s() - begin);
    else if (st == EBB_CANCELED)
        snprintf(line, sizeof line, "stopped: layers not yet read will follow between answers");
    else
        snprintf(line, sizeof line, "the budget stays as it is: %.280s", err.msg);
    pthread_mutex_lock(&l->lock);
    l->is_setting_budget = false;
    if (!l->is_answering)
        ebb_engine_cancel_clear(l->engine);
    ebb_local_emit_locked(l, &(ebb_backend_event){ .kind = EBB_BACKEND_BUDGET_SET, .text = line,
                                                   .n_text = strlen(line), .total = bytes, .finish = finish });
    pthread_mutex_unlock(&l->lock);
}

void ebb_local_plan(ebb_local *l)
{
    ebb_machine machine;
    ebb_plan p;
    ebb_buf text = { 0 };

    ebb_engine_get_plan(l->engine, &p, &machine);
    ebb_plan_text(&text, l->model, &machine, &p);
    ebb_local_emit_text(l, EBB_BACKEND_REPORT, ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
}
