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
    return l->state && l->home;
}

void ebb_loads_fini(ebb_loads *l)
{
    free(l->state);
    free(l->home);
    memset(l, 0, sizeof *l);
}

static void enter(ebb_loads *l, uint32_t id, ebb_load_state state)
{
    l->n_wanted -= l->state[id] == EBB_LOAD_WANTED;
    l->n_wanted += state == EBB_LOAD_WANTED;
    l->state[id] = (uint8_t)state;
}

void ebb_loads_set(ebb_loads *l, uint32_t id, char *home)
{
    assert(l->state[id] != EBB_LOAD_COMING);
    l->home[id] = home;
    enter(l, id, home ? EBB_LOAD_WANTED : EBB_LOAD_NONE);
}

void ebb_loads_again(ebb_loads *l, uint32_t id)
{
    if (l->state[id] == EBB_LOAD_FAILED)
        enter(l, id, EBB_LOAD_WANTED);
}

static bool is_unfinished(const ebb_load *w)
{
    return w->n_issued < w->n_bytes && w->st == EBB_OK;
}

bool ebb_loads_peek(const ebb_loads *l, uint32_t pos, uint32_t *id)
{
    bool has_place = false;

    for (uint32_t i = 0; i < EBB_MAX_LOADS; i++) {
        has_place |= l->under_way[i].n_bytes == 0;
        *id = l->under_way[i].id;
        if (is_unfinished(&l->under_way[i]))
            return true;
    }
    for (uint32_t i = 0; i < l->n_extents && l->n_wanted > 0 && has_place; i++) {
        *id = (pos + i) % l->n_extents;
        if (l->state[*id] == EBB_LOAD_WANTED)
            return true;
    }
    return false;
}

static ebb_load *begin(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->under_way;

    if (l->state[id] == EBB_LOAD_COMING) {
        while (w->n_bytes == 0 || w->id != id)
            w++;
        return w;
    }
    while (w->n_bytes > 0)
        w++;
    *w = (ebb_load){ .id = id, .n_bytes = ebb_pin_bytes(&l->extents[id]) };
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
                        .to = l->home[id] + w->n_issued };
    must = x->offset + x->n_bytes - out->offset;
    out->n_must = (size_t)(must < n ? must : n);
    w->n_issued += n;
    w->n_flying++;
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
    enter(l, w->id, w->st == EBB_OK ? EBB_LOAD_HERE : EBB_LOAD_FAILED);
    st = w->st;
    w->n_bytes = 0;
    return st == EBB_OK;
}
