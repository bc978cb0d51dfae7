/* Preemption: a sequence loses its blocks and its state to another one (session_impl.h). */
#include "base/log.h"
#include "open/engine_state.h"
#include "speculate/speculate.h"

void ebb_session_clear(ebb_session *s)
{
    ebb_speculate_discard(s, EBB_TOKEN_NONE);
    ebb_kv_truncate(s->engine->kv, &s->table, 0);
    ebb_state_drop_live(s);
    s->n_hashed = s->n_hidden = 0;
    s->has_logits = false;
    s->cache_salt.is_on = false;
    s->window_from = 0;
    ebb_persist_note_swept(s);
}

bool ebb_session_evict_other(ebb_session *s)
{
    ebb_engine *e = s->engine;
    ebb_session *oldest = NULL;

    for (ebb_session *t = e->sessions; t; t = t->next)
        if (t != s && t->n_shared_passes == 0 && t->table.n_pos > 0 && (!oldest || t->used_at < oldest->used_at))
            oldest = t;
    if (!oldest)
        return ebb_persist_reap(e, true);        /* the writer held blocks */
    ebb_log("kv", "a sequence of %u tokens is preempted", oldest->table.n_pos);
    ebb_session_clear(oldest);
    return true;
}

ebb_status ebb_session_reserve(ebb_session *s, uint32_t n_pos, ebb_error *err)
{
    ebb_status st;

    do {
        st = ebb_kv_grow(s->engine->kv, &s->table, n_pos, err);
    } while (st == EBB_BUDGET && ebb_session_evict_other(s));
    return st;
}
