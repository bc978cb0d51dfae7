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
    l->takes_memory = calloc(n_extents, sizeof *l->takes_memory);
    l->n_in[EBB_LOAD_NONE] = n_extents;
    return l->state && l->home && l->takes_memory;
}

void ebb_loads_fini(ebb_loads *l)
{
    free(l->state);
    free(l->home);
    free(l->takes_memory);
    ebb_huge_pages_fini(&l->pages);
    memset(l, 0, sizeof *l);
}

uint64_t ebb_loads_pending_bytes(const ebb_loads *l)
{
    return l->pending_bytes + l->pages.pending_bytes;
}

static void expect_memory(ebb_loads *l, uint32_t id)
{
    uint64_t n = ebb_pin_bytes(&l->extents[id]);

    if (ebb_huge_pages_hold(&l->pages, l->home[id]))
        ebb_huge_pages_expect(&l->pages, l->home[id], n);
    else
        l->pending_bytes += n;
}

/* n_left bytes of it have not been asked for. */
static void expect_no_memory(ebb_loads *l, uint32_t id, uint64_t n_left)
{
    if (ebb_huge_pages_hold(&l->pages, l->home[id]))
        ebb_huge_pages_expect_no_more(&l->pages, l->home[id], ebb_pin_bytes(&l->extents[id]));
    else
        l->pending_bytes -= n_left;
}

static void set_load_state(ebb_loads *l, uint32_t id, ebb_load_state state)
{
    l->n_in[l->state[id]]--;
    l->n_in[state]++;
    l->state[id] = (uint8_t)state;
}

void ebb_loads_set(ebb_loads *l, uint32_t id, char *home, ebb_load_state how)
{
    assert(l->state[id] != EBB_LOAD_IN_FLIGHT);
    l->home[id] = home;
    l->takes_memory[id] = how == EBB_LOAD_BACKGROUND;
    if (l->takes_memory[id])
        expect_memory(l, id);
    if (how == EBB_LOAD_PREFETCH && l->n_in[EBB_LOAD_PREFETCH] == 0)
        l->n_prefetch = 0;
    if (how == EBB_LOAD_PREFETCH && l->n_prefetch == EBB_MAX_PREFETCH)
        how = EBB_LOAD_BACKGROUND;
    if (how == EBB_LOAD_PREFETCH)
        l->prefetch[l->n_prefetch++] = id;
    set_load_state(l, id, how);
}

static bool is_unfinished(const ebb_load *w)
{
    return w->n_issued < w->n_bytes && w->st == EBB_OK && !w->is_dropped;
}

static uint32_t index_in_flight(const ebb_loads *l, uint32_t id)
{
    uint32_t i = 0;

    while (l->in_flight[i].n_bytes == 0 || l->in_flight[i].id != id)
        i++;
    return i;
}

static ebb_load *find_in_flight(ebb_loads *l, uint32_t id)
{
    return &l->in_flight[index_in_flight(l, id)];
}

/* What has not begun of it will not take memory any more. */
static void drop_pending(ebb_loads *l, uint32_t id)
{
    if (l->takes_memory[id])
        expect_no_memory(l, id, ebb_pin_bytes(&l->extents[id]));
    l->takes_memory[id] = false;
}

/* Its last piece has come, or none will. */
static void end_load(ebb_loads *l, ebb_load *w)
{
    if (w->takes_memory)
        expect_no_memory(l, w->id, w->n_bytes - w->n_issued);
    if (w->takes_memory && w->st != EBB_OK && !w->is_dropped) { /* it may be tried once more */
        l->takes_memory[w->id] = true;
        expect_memory(l, w->id);
    }
    set_load_state(l, w->id, w->is_dropped ? EBB_LOAD_NONE : w->st == EBB_OK ? EBB_LOAD_LOADED : EBB_LOAD_FAILED);
    if (w->is_dropped)
        l->home[w->id] = NULL;
    w->n_bytes = 0;
}

void ebb_loads_drop(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->state[id] == EBB_LOAD_IN_FLIGHT ? find_in_flight(l, id) : NULL;

    if (!w) {
        drop_pending(l, id);
        l->home[id] = NULL;
        set_load_state(l, id, EBB_LOAD_NONE);
        return;
    }
    w->is_dropped = true;
    if (w->n_in_flight == 0)
        end_load(l, w);
}

void ebb_loads_cancel_unissued(ebb_loads *l, uint32_t id)
{
    ebb_load_state state = (ebb_load_state)l->state[id];

    if (state == EBB_LOAD_IN_FLIGHT ? is_unfinished(find_in_flight(l, id)) : state != EBB_LOAD_LOADED)
        ebb_loads_drop(l, id);
}

void ebb_loads_make_urgent(ebb_loads *l, uint32_t id)
{
    if (l->state[id] == EBB_LOAD_IN_FLIGHT) {
        find_in_flight(l, id)->how = EBB_LOAD_URGENT;
        find_in_flight(l, id)->is_dropped = false;
    } else if (l->state[id] == EBB_LOAD_FAILED || l->state[id] == EBB_LOAD_PREFETCH ||
               l->state[id] == EBB_LOAD_BACKGROUND)
        set_load_state(l, id, EBB_LOAD_URGENT);
}

void ebb_loads_take_memory_anyway(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->state[id] == EBB_LOAD_IN_FLIGHT ? find_in_flight(l, id) : NULL;

    drop_pending(l, id);
    if (w && w->takes_memory) {
        expect_no_memory(l, id, w->n_bytes - w->n_issued);
        w->takes_memory = false;
    }
}

/* The first one of that state, from `pos` round; there is one. */
static uint32_t find_in_state(const ebb_loads *l, ebb_load_state state, uint32_t pos)
{
    const uint8_t *at = memchr(l->state + pos, state, l->n_extents - pos);

    if (!at)
        at = memchr(l->state, state, pos);
    return (uint32_t)(at - l->state);
}

/* The first PREFETCH load that has not begun; there is one. */
static uint32_t first_prefetch(const ebb_loads *l)
{
    uint32_t i = 0;

    while (l->state[l->prefetch[i]] != EBB_LOAD_PREFETCH)
        i++;
    return l->prefetch[i];
}

/* The next one of those that are asked for so: one that has begun, else a new one. */
static bool peek_kind(const ebb_loads *l, ebb_load_state how, uint32_t pos, uint32_t *id)
{
    bool has_free_entry = false;

    for (uint32_t i = 0; i < EBB_MAX_LOADS; i++) {
        const ebb_load *w = &l->in_flight[i];

        has_free_entry |= w->n_bytes == 0;
        *id = w->id;
        if (w->how == how && is_unfinished(w))
            return true;
    }
    if (!has_free_entry || l->n_in[how] == 0)
        return false;
    *id = how == EBB_LOAD_PREFETCH ? first_prefetch(l) : find_in_state(l, how, how == EBB_LOAD_BACKGROUND ? pos : 0);
    return true;
}

bool ebb_loads_peek(const ebb_loads *l, uint32_t pos, uint32_t *id, bool *is_urgent)
{
    *is_urgent = peek_kind(l, EBB_LOAD_URGENT, pos, id);
    return *is_urgent || peek_kind(l, EBB_LOAD_PREFETCH, pos, id) || peek_kind(l, EBB_LOAD_BACKGROUND, pos, id);
}

bool ebb_loads_takes_memory(const ebb_loads *l, uint32_t id)
{
    return l->state[id] == EBB_LOAD_IN_FLIGHT ? l->in_flight[index_in_flight(l, id)].takes_memory : l->takes_memory[id];
}

static ebb_load *begin_load(ebb_loads *l, uint32_t id)
{
    ebb_load *w = l->in_flight;

    if (l->state[id] == EBB_LOAD_IN_FLIGHT)
        return find_in_flight(l, id);
    while (w->n_bytes > 0)
        w++;
    *w = (ebb_load){ .id = id, .n_bytes = ebb_pin_bytes(&l->extents[id]), .how = (ebb_load_state)l->state[id],
                     .takes_memory = l->takes_memory[id] };
    l->takes_memory[id] = false;                 /* from here on what is still to be asked for counts */
    set_load_state(l, id, EBB_LOAD_IN_FLIGHT);
    return w;
}

void ebb_loads_issue(ebb_loads *l, uint32_t id, size_t piece_bytes, ebb_piece *out)
{
    const ebb_res_extent *x = &l->extents[id];
    ebb_load *w = begin_load(l, id);
    uint64_t n = w->n_bytes - w->n_issued, must;

    if (n > piece_bytes)
        n = piece_bytes;
    *out = (ebb_piece){ .file = x->part, .tag = (uint32_t)(w - l->in_flight),
                        .offset = (x->offset & ~(EBB_READ_ALIGN - 1)) + w->n_issued, .n_bytes = (size_t)n,
                        .to = l->home[id] + w->n_issued, .is_far = true };
    must = x->offset + x->n_bytes - out->offset;
    out->n_must = (size_t)(must < n ? must : n);
    w->n_issued += n;
    w->n_in_flight++;
    if (ebb_huge_pages_hold(&l->pages, out->to))
        ebb_huge_pages_write(&l->pages, out->to, n);
    else
        l->pending_bytes -= w->takes_memory ? n : 0;
}

bool ebb_loads_done(ebb_loads *l, const ebb_piece *p, ebb_status st, const ebb_error *err)
{
    ebb_load *w = &l->in_flight[p->tag];

    w->n_in_flight--;
    if (st != EBB_OK && w->st == EBB_OK) {
        w->st = st;
        l->err = *err;
    }
    if (w->n_in_flight > 0 || is_unfinished(w))
        return false;
    end_load(l, w);
    return l->state[w->id] == EBB_LOAD_LOADED;
}
