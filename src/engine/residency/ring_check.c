/* Whether the rules of the ring and its loads hold (ring.h, loads.h). */
#include "residency/pin.h"
#include "residency/ring_impl.h"

/* -- Loads ------------------------------------------------------------------------- */

/* The entries of those that are under way. */
static const char *check_in_flight(const ebb_loads *l, uint64_t *pending)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < EBB_MAX_LOADS; i++) {
        const ebb_load *w = &l->in_flight[i];

        if (w->n_bytes == 0)
            continue;
        n++;
        if (l->state[w->id] != EBB_LOAD_IN_FLIGHT)
            return "L2: an entry is taken by an extent that is not in flight";
        for (uint32_t k = 0; k < i; k++)
            if (l->in_flight[k].n_bytes > 0 && l->in_flight[k].id == w->id)
                return "L2: an extent in flight has two entries";
        if (w->n_issued > w->n_bytes || l->takes_memory[w->id])
            return "L3: of an extent in flight more is asked for, or counted, than it has";
        *pending += w->takes_memory && !ebb_huge_pages_hold(&l->pages, l->home[w->id]) ? w->n_bytes - w->n_issued : 0;
    }
    return n == l->n_in[EBB_LOAD_IN_FLIGHT] ? NULL : "L2: an extent in flight has no entry";
}

static bool is_in_prefetch_order(const ebb_loads *l, uint32_t id)
{
    for (uint32_t i = 0; i < l->n_prefetch; i++)
        if (l->prefetch[i] == id)
            return true;
    return false;
}

static const char *check_loads(const ebb_loads *l)
{
    uint32_t n_in[EBB_LOAD_STATES] = { 0 };
    uint64_t pending = 0;
    const char *rule = check_in_flight(l, &pending);

    for (uint32_t i = 0; i < l->n_extents && !rule; i++) {
        n_in[l->state[i]]++;
        pending += l->takes_memory[i] && !ebb_huge_pages_hold(&l->pages, l->home[i]) ? ebb_pin_bytes(&l->extents[i])
                                                                                     : 0;
        if ((l->home[i] != NULL) != (l->state[i] != EBB_LOAD_NONE))
            rule = "L1: an extent has a home and is not asked for, or the other way round";
        else if (l->takes_memory[i] && (l->state[i] == EBB_LOAD_NONE || l->state[i] == EBB_LOAD_LOADED))
            rule = "L3: an extent that is not to come takes memory";
        else if (l->state[i] == EBB_LOAD_PREFETCH && !is_in_prefetch_order(l, i))
            rule = "L2: an extent is to be prefetched and has no place in the order of use";
    }
    for (int i = 0; i < EBB_LOAD_STATES && !rule; i++)
        if (n_in[i] != l->n_in[i])
            rule = "L2: extents in a state are counted wrong";
    return rule || (pending == l->pending_bytes && ebb_huge_pages_check(&l->pages)) ? rule
         : "L3: memory that is still to be taken is counted wrong";
}

/* -- The ring ---------------------------------------------------------------------- */

/* What an entry says of itself. */
static const char *check_entry(const ebb_ring *g, const ebb_ring_entry *e)
{
    if (e->n_issued > e->n_bytes)
        return "G2: more of an entry was asked for than it has";
    if (e->n_held > 0 &&
        (e->is_dead || e->is_dropped || e->st != EBB_OK || e->n_in_flight > 0 || e->n_issued < e->n_bytes))
        return "G2: an entry is held that is not ready, or given up";
    if (!e->is_dead && !(g->is_streamed[e->id] && g->extents[e->id].is_certain))
        return "G1: an entry is wanted of an extent that does not pass through the ring";
    if (!g->ops->is_mapped && e->at % g->cap + e->n_bytes > g->cap)
        return "G1: an entry reaches over the ring's end";
    return NULL;
}

static const char *check_entries(const ebb_ring *g)
{
    uint64_t at = g->tail;

    for (uint32_t i = 0; i < g->n; i++) {
        const ebb_ring_entry *e = &g->entries[(g->first + i) % EBB_RING_ENTRIES];
        const char *rule = check_entry(g, e);

        if (rule)
            return rule;
        if (e->at != at + e->n_pad)
            return "G1: entries do not follow each other";
        at = e->at + e->n_bytes;
        for (uint32_t k = 0; k < i && !e->is_dead; k++)
            if (g->entries[(g->first + k) % EBB_RING_ENTRIES].id == e->id &&
                !g->entries[(g->first + k) % EBB_RING_ENTRIES].is_dead)
                return "G1: an extent is wanted twice";
    }
    return at == g->head ? NULL : "G1: the last entry does not end at the head";
}

const char *ebb_ring_check_locked(const ebb_ring *g)
{
    const char *rule = g->n > EBB_RING_ENTRIES || g->head - g->tail > g->cap
                         ? "G3: more is in the ring than it holds"
                         : check_entries(g);

    if (!rule && g->cursor != EBB_RING_NONE && !g->is_streamed[g->cursor])
        rule = "G1: the reader is at an extent that does not pass through the ring";
    for (uint32_t i = 0; i < g->n_extents && !rule; i++)
        if (g->loads.state[i] != EBB_LOAD_NONE && g->is_streamed[i] && g->extents[i].is_certain)
            rule = "L1: an extent passes through the ring and is loaded, too";
    return rule ? rule : check_loads(&g->loads);
}

const char *ebb_ring_check(ebb_ring *g)
{
    const char *rule;

    pthread_mutex_lock(&g->lock);
    rule = ebb_ring_check_locked(g);
    pthread_mutex_unlock(&g->lock);
    return rule;
}
