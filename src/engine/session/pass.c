/* One pass of a sequence, or of several: what is asked of their blocks, states and checkpoints before and behind it
 * (session_impl.h). */
#include <string.h>

#include "open/engine_state.h"

/* A draft model's pass only wakes its host's monitor: such passes are long beside the monitor's interval. */
static void relieve_memory(ebb_engine *e)
{
    if (e->host)
        ebb_pressure_monitor_wake(e->host);
    else
        ebb_reclaim_between_layers(e);
}

/* All layers; memory is checked between them. */
static ebb_status compute_layers(ebb_engine *e, const ebb_batch *b, ebb_error *err)
{
    ebb_status st = ebb_forward_begin(&e->run, b, err);

    while (st == EBB_OK && ebb_forward_has_layer(&e->run)) {
        relieve_memory(e);
        st = ebb_forward_layer(&e->run, err);
    }
    return ebb_forward_end(&e->run, st, err);
}

/* Parts of a pass under way. */
typedef struct pass {
    ebb_engine         *engine;
    const ebb_pass_part *parts;
    uint32_t            n;
    ebb_batch_seq       seqs[EBB_MAX_SEQUENCES];
    ebb_checkpoint_plan checkpoints[EBB_MAX_SEQUENCES];
} pass;

/* Undo: nothing was added to any sequence, and no block behind the old end has got a hash. */
static void take_back(pass *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ebb_kv_truncate(p->engine->kv, &p->parts[i].session->table, p->seqs[i].pos0);
}

/* Blocks for all of them: none is preempted for another. */
static ebb_status reserve(pass *p, ebb_error *err)
{
    ebb_status st = EBB_OK;
    uint32_t c0 = 0;

    for (uint32_t i = 0; i < p->n && st == EBB_OK; i++) {
        const ebb_pass_part *part = &p->parts[i];
        ebb_session *s = part->session;

        p->seqs[i] = (ebb_batch_seq){
            .ids = part->ids, .n = part->n, .c0 = c0, .pos0 = s->table.n_pos, .table = &s->table,
            .n_out = part->n_out, .commit_pos = part->commit_pos,
        };
        c0 += part->n;
        st = ebb_session_reserve(s, s->table.n_pos + part->n, err);
        if (st != EBB_OK)
            take_back(p, i);
    }
    return st;
}

/* Branches are sequences of their own behind the first one, without a session; their logits are all wanted. */
static void add_branches(pass *p, ebb_batch *b)
{
    const ebb_pass_part *part = p->parts;

    for (uint32_t i = 0; i < part->n_branches; i++) {
        const ebb_pass_branch *t = &part->branches[i];

        p->seqs[b->n_seqs++] = (ebb_batch_seq){
            .ids = t->ids, .n = t->n, .c0 = b->n, .pos0 = p->seqs->pos0 + t->n_before, .table = t->table,
            .n_out = t->n, .n_before = t->n_before,
        };
        b->n += t->n;
    }
}

/* States and checkpoints of a part, and what its draft head goes on from. */
static void prepare(pass *p, uint32_t i)
{
    ebb_session *s = p->parts[i].session;
    ebb_batch_seq *seq = &p->seqs[i];

    s->has_logits = false;
    ebb_state_begin_pass(s, seq);
    ebb_checkpoint_plan_pass(s, seq, p->parts[i].prompt_end, &p->checkpoints[i]);
    seq->checkpoints = p->checkpoints[i].checkpoints;
    seq->n_checkpoints = p->checkpoints[i].n;
    seq->hidden = ebb_hidden_before(s, seq->pos0);
    s->n_hidden = 0;
}

static void abandon_checkpoints(pass *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        ebb_checkpoint_abandon(&p->checkpoints[i]);
}

/* What had gone to the file is not there any more: every sequence is computed again by whoever wants it. */
static ebb_status drop_lost_kv(pass *p, ebb_error *err)
{
    ebb_engine *e = p->engine;

    abandon_checkpoints(p);
    while (ebb_persist_reap(e, true))            /* the writer may be reading from the file */
        ;
    for (ebb_session *t = e->sessions; t; t = t->next)
        ebb_session_clear(t);
    ebb_kv_drop_spilled(e->kv);
    return EBB_FAIL(err, EBB_IO,
                    "the file that held K and V was truncated or could not be read; they are computed again when "
                    "the conversation goes on");
}

/* The pass was done: its tokens are of the sequence. */
static void commit(pass *p, uint32_t i)
{
    const ebb_pass_part *part = &p->parts[i];
    ebb_session *s = part->session;
    uint32_t row = p->n > 1 ? i : ebb_batch_seq_kept(&p->engine->run, p->seqs) - 1 - part->n_pending;

    memmove(s->ids + p->seqs[i].pos0, part->ids, part->n * sizeof *s->ids);
    s->n_pending = part->n_pending;
    ebb_hidden_follow_pass(s, part->n, part->n_pending, row);
    ebb_prefix_hash_blocks(s);
    ebb_checkpoint_commit(s, &p->checkpoints[i]);
    ebb_state_end_pass(s, &p->seqs[i]);
    s->used_at = ++p->engine->clock;
}

static ebb_status run(pass *p, ebb_batch *b, ebb_error *err)
{
    ebb_engine *e = p->engine;
    ebb_status st = reserve(p, err);

    if (st != EBB_OK)
        return st;
    if (ebb_kv_n_spilled(e->kv) != e->turn.counted_spilled)
        ebb_stats_kv(e);                         /* some went out to make room */
    if (b->each)
        e->logits_owner = NULL;                  /* its rows are written anew */
    b->seqs = p->seqs;
    b->n_seqs = p->n;
    b->n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        prepare(p, i);
        b->n += p->seqs[i].n;
    }
    add_branches(p, b);
    st = ebb_reclaim_before_pass(e, err);
    if (st == EBB_OK)
        st = compute_layers(e, b, err);
    if (st == EBB_OK)
        st = ebb_res_check_pass(e->res, err);
    if (ebb_kv_spill_is_lost(e->kv))
        return drop_lost_kv(p, err);
    if (st != EBB_OK) {
        abandon_checkpoints(p);
        for (uint32_t i = 0; i < p->n; i++)
            ebb_state_drop_live(p->parts[i].session);
        take_back(p, p->n);
        return st;
    }
    for (uint32_t i = 0; i < p->n; i++)
        commit(p, i);
    return EBB_OK;
}

ebb_status ebb_session_run_pass(const ebb_pass_part *parts, uint32_t n, ebb_batch *b, ebb_error *err)
{
    pass p = { .engine = parts->session->engine, .parts = parts, .n = n };
    ebb_status st;

    for (uint32_t i = 0; i < n; i++)
        parts[i].session->n_shared_passes++;
    st = run(&p, b, err);
    for (uint32_t i = 0; i < n; i++)
        parts[i].session->n_shared_passes--;
    return st;
}
