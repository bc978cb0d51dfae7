/* Extents on their way into memory that they keep (loads.h). */
#include "residency/loads.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "residency/pin.h"

bool ebb_loads_init(ebb_loads *l, const ebb_res_extent *extents, uint32_t n_extents)
{
    *l = (ebb_loads){ .extents = extents, .n_extents = n_extents };
    l->state = calloc(n_extents, sizeof *l->state);
    l->home = calloc(n_extents, sizeof *l->home);
    l->takes = calloc(n_extents, sizeof *l->takes);
    l->n_in[EBB_LOAD_NONE] = n_extents;
    return l->state && l->home && l->takes;
}

void ebb_loads_fini(ebb_loads *l)
{
    free(l->state);
    free(l->home);
    free(l->takes);
    memset(l, 0, sizeof *l);
}

static void enter(ebb_loads *l, uint32_t id, ebb_load_state state)
{
    l->n_in[l->state[id]]--;
    l->n_in[state]++;
    l->state[id] = (uint8_t)state;
}

void ebb_loads_set(ebb_loads *l, uint32_t id, char *home, ebb_load_state how)
{
    assert(l->state[id] != EBB_LOAD_COMING);
    l->home[id] = home;
    l->takes[id] = how == EBB_LOAD_WANTED;
    l->ahead_bytes += l->takes[id] ? ebb_pin_bytes(&l->extents[id]) : 0;
    if (how == EBB_LOAD_SOON && l->n_in[EBB_LOAD_SOON] == 0)
        l->n_soon = 0;
    if (how == EBB_LOAD_SOON && l->n_soon == EBB_MAX_SOON)
        how = EBB_LOAD_WANTED;
    if (how == EBB_LOAD_SOON)
        l->soon[l->n_soon++] = id;
    enter(l, id, how);
}

static bool is_unfinished(const ebb_load *w)
{
    return w->n_issued < w->n_bytes && w->st == EBB_OK && !w->is_dropped;
}

static uint32_t place_of(const ebb_loads *l, uint32_t id)
{
    uint32_t i = 0;

    while (l->under_way[i].n_bytes == 0 || l->under_way[i].id != id)
        i++;
    return i;
}

static ebb_load *find_under_way(ebb_loads *l, uint32_t id)
{
    return &l->under_way[place_of(l, id)];
}

/* What has not begun of it will not take memory any more. */
static void take_nothing(ebb_loads *l, uint32_t id)
{
    l->ahead_bytes -= l->takes[id] ? ebb_pin_bytes(&l->extents[id]) : 0;
    l->takes[id] = false;
}

/* Its last piece has come, or none will. */
static void end(ebb_loads *l, ebb_load *w)
{
    l->ahead_bytes -= w->takes ? w->n_bytes - w->n_issued : 0;
    if (w->takes && w->st != EBB_OK && !w->is_dropped) {      /* it may be tried once more */
        l->takes[w->id] = true;
        l->ahead_bytes += w->n_bytes;
    }
    enter(l, w->id, w->is_dropped ? EBB_LOAD_NONE : w->st == EBB_OK ? EBB_LOAD_HERE : EBB_LOAD_FAILED);
    if (w->is_dropped)
        l->home[w->id] = NULL;
    w->n_bytes = 0;
}

void ebb_loads_drop(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->state[id] == EBB_LOAD_COMING ? find_under_way(l, id) : NULL;

    if (!w) {
        take_nothing(l, id);
        l->home[id] = NULL;
        enter(l, id, EBB_LOAD_NONE);
        return;
    }
    w->is_dropped = true;
    if (w->n_flying == 0)
        end(l, w);
}

void ebb_loads_abandon(ebb_loads *l, uint32_t id)
{
    ebb_load_state state = (ebb_load_state)l->state[id];

    if (state == EBB_LOAD_COMING ? is_unfinished(find_under_way(l, id)) : state != EBB_LOAD_HERE)
        ebb_loads_drop(l, id);
}

void ebb_loads_hurry(ebb_loads *l, uint32_t id)
{
    if (l->state[id] == EBB_LOAD_COMING) {
        find_under_way(l, id)->how = EBB_LOAD_URGENT;
        find_under_way(l, id)->is_dropped = false;
    } else if (l->state[id] == EBB_LOAD_FAILED || l->state[id] == EBB_LOAD_SOON || l->state[id] == EBB_LOAD_WANTED)
        enter(l, id, EBB_LOAD_URGENT);
}

void ebb_loads_insist(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->state[id] == EBB_LOAD_COMING ? find_under_way(l, id) : NULL;

    take_nothing(l, id);
    if (w)
        l->ahead_bytes -= w->takes ? w->n_bytes - w->n_issued : 0;
    if (w)
        w->takes = false;
}

/* The first one of that state, from `pos` round; there is one. */
static uint32_t find(const ebb_loads *l, ebb_load_state state, uint32_t pos)
{
    const uint8_t *at = memchr(l->state + pos, state, l->n_extents - pos);

    if (!at)
        at = memchr(l->state, state, pos);
    return (uint32_t)(at - l->state);
}

/* The first guess that has not begun; there is one. */
static uint32_t first_soon(const ebb_loads *l)
{
    uint32_t i = 0;

    while (l->state[l->soon[i]] != EBB_LOAD_SOON)
        i++;
    return l->soon[i];
}

/* The next one of those that are asked for so: one that has begun, else a new one. */
static bool peek(const ebb_loads *l, ebb_load_state how, uint32_t pos, uint32_t *id)
{
    bool has_place = false;

    for (uint32_t i = 0; i < EBB_MAX_LOADS; i++) {
        const ebb_load *w = &l->under_way[i];

        has_place |= w->n_bytes == 0;
        *id = w->id;
        if (w->how == how && is_unfinished(w))
            return true;
    }
    if (!has_place || l->n_in[how] == 0)
        return false;
    *id = how == EBB_LOAD_SOON ? first_soon(l) : find(l, how, how == EBB_LOAD_WANTED ? pos : 0);
    return true;
}

bool ebb_loads_peek(const ebb_loads *l, uint32_t pos, uint32_t *id, bool *is_urgent)
{
    *is_urgent = peek(l, EBB_LOAD_URGENT, pos, id);
    return *is_urgent || peek(l, EBB_LOAD_SOON, pos, id) || peek(l, EBB_LOAD_WANTED, pos, id);
}

bool ebb_loads_takes(const ebb_loads *l, uint32_t id)
{
    return l->state[id] == EBB_LOAD_COMING ? l->under_way[place_of(l, id)].takes : l->takes[id];
}

static ebb_load *begin(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->under_way;

    if (l->state[id] == EBB_LOAD_COMING)
        return find_under_way(l, id);
    while (w->n_bytes > 0)
        w++;
    *w = (ebb_load){ .id = id, .n_bytes = ebb_pin_bytes(&l->extents[id]), .how = (ebb_load_state)l->state[id], .takes = l->takes[id] };
    l->takes[id] = false;                        /* from here on what is still to be asked for counts */
    enter(l, id, EBB_LOAD_COMING);
    return w;
}

void ebb_loads_issue(ebb_loads *l, uint32_t id, size_t piece_bytes, ebb_piece *out)
{
    const ebb_res_extent *x = &l->extents[id];
    ebb_load *w = begin(l, id);
    uint64_t n = w->n_bytes - w->n_issued, must;

    if (n > piece_bytes)
        n = piece_bytes;
    *out = (ebb_piece){ .file = x->part, .tag = (uint32_t)(w - l->under_way),
                        .offset = (x->offset & ~(EBB_READ_ALIGN - 1)) + w->n_issued, .n_bytes = (size_t)n,
                        .to = l->home[id] + w->n_issued, .is_far = true };
    must = x->offset + x->n_bytes - out->offset;
    out->n_must = (size_t)(must < n ? must : n);
    w->n_issued += n;
    w->n_flying++;
    l->ahead_bytes -= w->takes ? n : 0;
}

bool ebb_loads_done(ebb_loads *l, const ebb_piece *p, ebb_status st, const ebb_error *err)
{
    ebb_load *w = &l->under_way[p->tag];

    w->n_flying--;
    if (st != EBB_OK && w->st == EBB_OK) {
        w->st = st;
        l->err = *err;
    }
    if (w->n_flying > 0 || is_unfinished(w))
        return false;
    end(l, w);
    return l->state[w->id] == EBB_LOAD_HERE;
}
