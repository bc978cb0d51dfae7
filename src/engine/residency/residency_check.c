/* Whether the rules of residency hold (residency.h). */
#include "residency/residency_impl.h"

static bool is_in_copy(const ebb_map *copy, const char *at, uint64_t n)
{
    const char *from = copy->data;

    return from && at >= from && at + n <= from + copy->n_bytes;
}

/* Where an extent is, as its owner has it. */
static const char *check_extent(const ebb_res *r, const ebb_res_group *g, uint32_t id)
{
    const ebb_res_extent *x = &r->extents[id];

    switch (r->owner[id]) {
    case EBB_LAYER_MAPPED:
        return r->at[id] == ebb_res_mapped_at(r, id) && !r->home[id] ? NULL
                                                                     : "R1: a mapped extent is elsewhere, too";
    case EBB_LAYER_PINNED:
        if ((r->at[id] != NULL) == (r->home[id] != NULL))
            return "R6: a pinned extent is both here and on its way, or neither";
        return is_in_copy(r->is_lent[id] ? &g->lent : &g->copy, r->at[id] ? r->at[id] : r->home[id], x->n_bytes)
                 ? NULL
                 : "R1: a pinned extent is outside its group's copy";
    case EBB_LAYER_DISK:
        if (r->at[id] || r->home[id])
            return "R1: a streamed extent is in memory for good";
        return r->ring ? NULL : "R6: an extent is to be streamed, and there is no ring";
    }
    return "R1: an extent has no owner";
}

static const char *check_group(const ebb_res *r, const ebb_res_group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const char *rule = check_extent(r, g, i);

        if (rule)
            return rule;
        if (r->is_lent[i] && (r->owner[i] != EBB_LAYER_PINNED || r->resident[i]))
            return "R1: an extent is lent memory that is not pinned, or that stays";
        if (!r->is_lent[i] && r->owner[i] != EBB_LAYER_DISK && r->owner[i] != (uint8_t)g->state)
            return "R1: an extent has another owner than its group's state says";
    }
    return NULL;
}

const char *ebb_res_check_rules_locked(const ebb_res *r)
{
    uint64_t pinned = 0, mapped = 0, lent = 0;

    for (uint32_t i = 0; i < r->n_groups; i++) {
        const char *rule = check_group(r, &r->groups[i]);

        if (rule)
            return rule;
    }
    for (uint32_t i = 0; i < r->n_extents; i++) {
        pinned += r->owner[i] == EBB_LAYER_PINNED ? ebb_pin_bytes(&r->extents[i]) : 0;
        mapped += r->owner[i] == EBB_LAYER_MAPPED ? r->extents[i].n_bytes : 0;
        lent += r->is_lent[i] ? ebb_pin_bytes(&r->extents[i]) : 0;
    }
    if (pinned != r->pinned_bytes || mapped != r->mapped_bytes || lent != r->lent_bytes)
        return "R1: bytes of an owner are counted wrong";
    return r->ring ? ebb_ring_check(r->ring) : NULL;
}

const char *ebb_res_check_rules(ebb_res *r)
{
    const char *rule;

    pthread_mutex_lock(&r->lock);
    rule = ebb_res_check_rules_locked(r);
    pthread_mutex_unlock(&r->lock);
    return rule;
}
