/* What every part of the engine's backend needs: events to the owner, the ids of the answer (local_priv.h). */
#include <stdlib.h>

#include "backend/local_priv.h"
#include "base/grow.h"

void ebb_local_emit_locked(ebb_local *l, const ebb_backend_event *ev)
{
    if (!l->is_orphan)
        l->sink(l->arg, ev);
}

void ebb_local_emit(ebb_local *l, const ebb_backend_event *ev)
{
    pthread_mutex_lock(&l->lock);
    ebb_local_emit_locked(l, ev);
    pthread_mutex_unlock(&l->lock);
}

void ebb_local_emit_text(ebb_local *l, ebb_backend_event_kind kind, const char *text, size_t n)
{
    ebb_local_emit(l, &(ebb_backend_event){ .kind = kind, .text = text, .n_text = n });
}

bool ebb_local_append_id(ebb_local *l, int32_t id)
{
    int32_t *p = ebb_grow(l->ids, l->n_ids, &l->cap_ids, sizeof *p);

    if (!p)
        return false;
    l->ids = p;
    l->ids[l->n_ids++] = id;
    return true;
}

bool ebb_local_is_wanted(const ebb_local *l)
{
    return l->quit || l->command != LOCAL_IDLE || l->has_budget || l->wants_plan;
}
