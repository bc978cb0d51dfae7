/* What of a layer, or of the output matrix behind the layers, is in memory (budget.h). */
#include <string.h>

#include "open/engine_state.h"

bool ebb_reclaim_group_is_planned(const ebb_engine *e, uint32_t group)
{
    return ebb_res_group_bytes(e->res, group) > 0;
}

bool ebb_reclaim_group_is_resident(const ebb_engine *e, uint32_t group)
{
    ebb_layer_state s = ebb_res_state(e->res, group);

    return (s == EBB_LAYER_PINNED || s == EBB_LAYER_MAPPED) && ebb_reclaim_group_is_planned(e, group);
}

uint32_t ebb_reclaim_count_parts(const ebb_engine *e, uint32_t group)
{
    return ebb_reclaim_group_is_resident(e, group) + (ebb_res_lent_bytes(e->res, group) > 0);
}

void ebb_reclaim_tell_output(ebb_memory_event *event)
{
    static const char name[] = "the output matrix";

    memcpy(event->detail, name, sizeof name);
}

void ebb_reclaim_tell_evicted(const ebb_engine *e, uint32_t n, uint32_t output_before, ebb_memory_event *event)
{
    uint32_t after = ebb_reclaim_count_parts(e, e->net.n_layers), n_output = 0;

    if (output_before > after)
        n_output = output_before - after < n ? output_before - after : n;
    event->code = EBB_MEMORY_LAYERS_EVICTED;
    event->n_layers = n - n_output;
    if (n_output > 0)
        ebb_reclaim_tell_output(event);
}
