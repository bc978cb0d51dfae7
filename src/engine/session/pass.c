/* One pass of a sequence: what is asked of its blocks, states and checkpoints before and behind it
 * (session_impl.h). */
#include <string.h>

#include "open/engine_state.h"

/* What had gone to the file is not there any more: every sequence is computed again by whoever wants it. */
static ebb_status drop_lost_kv(ebb_engine *e, const ebb_checkpoint_plan *checkpoints, ebb_error *err)
{
    ebb_checkpoint_abandon(checkpoints);
    while (ebb_persist_reap(e, true))            /* the writer may be reading from the file */
        ;
    for (ebb_session *t = e->sessions; t; t = t->next)
        ebb_session_clear(t);
    ebb_kv_drop_spilled(e->kv);
    return EBB_FAIL(err, EBB_IO,
                    "the file that held K and V was cut off or could not be read; they are computed again when "
                    "the conversation goes on");
}

/* The host's thread that looks at memory is to stay awake: a draft's passes are long beside its looks. */
static void look_at_memory(ebb_engine *e)
{
    if (e->host)
        ebb_pressure_monitor_wake(e->host);
    else
        ebb_reclaim_between_layers(e);
}

/* All layers, and memory is looked at between them. */
static ebb_status compute_layers(ebb_engine *e, const ebb_batch *b, ebb_error *err)
{
    ebb_status st = ebb_forward_begin(&e->run, b, err);

    while (st == EBB_OK && ebb_forward_has_layer(&e->run)) {
        look_at_memory(e);
        st = ebb_forward_layer(&e->run, err);
    }
    return ebb_forward_end(&e->run, st, err);
}

ebb_status ebb_session_run_pass(ebb_session *s, const ebb_token *ids, uint32_t n, uint32_t n_pending,
                                uint32_t prompt_end,
                              ebb_batch *p, ebb_error *err)
{
    uint32_t pos0 = s->table.n_pos;
    ebb_status st = ebb_session_reserve(s, pos0 + n, err);
    ebb_checkpoint_plan checkpoints;

    s->has_logits = false;
    if (st != EBB_OK)
        return st;
    if (ebb_kv_n_spilled(s->engine->kv) != s->engine->turn.counted_spilled)
        ebb_stats_kv(s->engine);                 /* some went out to make room */
    ebb_state_begin_pass(s, pos0, n, p);
    ebb_checkpoint_plan_pass(s, p, prompt_end, &checkpoints);
    if (p->each)
        s->engine->logits_owner = NULL;          /* its rows are written anew */
    p->ids = ids;
    p->n = n;
    p->pos0 = pos0;
    p->table = &s->table;
    p->hidden = ebb_hidden_before(s, pos0);
    s->n_hidden = 0;
    p->checkpoints = checkpoints.checkpoints;
    p->n_checkpoints = checkpoints.n;
    st = ebb_reclaim_before_pass(s->engine, err);
    if (st == EBB_OK)
        st = compute_layers(s->engine, p, err);
    if (st == EBB_OK)
        st = ebb_res_check_pass(s->engine->res, err);
    if (ebb_kv_spill_is_lost(s->engine->kv))
        return drop_lost_kv(s->engine, &checkpoints, err);
    if (st != EBB_OK) {
        ebb_checkpoint_abandon(&checkpoints);
        ebb_state_drop_live(s);
        ebb_kv_truncate(s->engine->kv, &s->table, pos0); /* no block in there has got a name */
        return st;
    }
    memmove(s->ids + pos0, ids, n * sizeof *ids);
    s->n_pending = n_pending;
    ebb_hidden_follow_pass(s, n, n_pending);
    ebb_prefix_hash_blocks(s);
    ebb_checkpoint_commit(s, &checkpoints);
    ebb_state_end_pass(s, p);
    s->used_at = ++s->engine->clock;
    return EBB_OK;
}
