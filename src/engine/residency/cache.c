/* Experts that were chosen of late (cache.h). */
#include "residency/cache.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct ebb_cache_place {
    uint32_t id;                 /* NONE: free */
    uint32_t n_held;
    bool     is_closed;          /* its memory was given back */
    uint64_t used;               /* clock of the last use */
};

ebb_status ebb_cache_open(ebb_cache *c, ebb_ring *ring, const ebb_res_extent *extents, uint32_t n_extents,
                          uint64_t n_bytes, size_t place_bytes, ebb_error *err)
{
    *c = (ebb_cache){ .ring = ring, .extents = extents, .n_extents = n_extents, .place_bytes = place_bytes,
                      .n_places = place_bytes ? (uint32_t)(n_bytes / place_bytes) : 0 };
    if (c->n_places == 0)
        return EBB_OK;
    c->places = calloc(c->n_places, sizeof *c->places);
    c->place_of = calloc(n_extents, sizeof *c->place_of);
    if (!c->places || !c->place_of ||
        ebb_map_anon(c->n_places * place_bytes, true, &c->memory, NULL) != EBB_OK) {
        ebb_cache_close(c);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu bytes of experts", (unsigned long long)n_bytes);
    }
    c->n_open = c->n_places;
    for (uint32_t i = 0; i < c->n_places; i++)
        c->places[i].id = NONE;
    for (uint32_t i = 0; i < n_extents; i++)
        c->place_of[i] = NONE;
    return EBB_OK;
}

void ebb_cache_close(ebb_cache *c)
{
    for (uint32_t i = 0; i < c->n_places && c->memory.data; i++)
        if (c->places[i].id != NONE)
            ebb_ring_load(c->ring, c->places[i].id, NULL);
    ebb_map_fini(&c->memory);
    free(c->places);
    free(c->place_of);
    memset(c, 0, sizeof *c);
}

void ebb_cache_begin(ebb_cache *c)
{
    c->begun = ++c->clock;
}

/* The place that was used longest ago and is not spoken for. */
static uint32_t find_oldest(const ebb_cache *c)
{
    uint32_t oldest = NONE;

    for (uint32_t i = 0; i < c->n_places; i++)
        if (c->places[i].n_held == 0 && !c->places[i].is_closed && (oldest == NONE || c->places[i].used < c->places[oldest].used))
            oldest = i;
    return oldest != NONE && c->places[oldest].used >= c->begun && c->begun > 0 ? NONE : oldest;
}

static void empty(ebb_cache *c, uint32_t i)
{
    if (c->places[i].id != NONE) {
        ebb_ring_load(c->ring, c->places[i].id, NULL);
        c->place_of[c->places[i].id] = NONE;
    }
    c->places[i] = (ebb_cache_place){ .id = NONE };
}

void ebb_cache_resize(ebb_cache *c, uint64_t n_bytes)
{
    uint32_t want = c->place_bytes ? (uint32_t)(n_bytes / c->place_bytes) : 0, i;

    while (c->n_open > want && (i = find_oldest(c)) != NONE) {
        empty(c, i);
        c->places[i].is_closed = true;
        ebb_map_advise((char *)c->memory.data + i * c->place_bytes, c->place_bytes, EBB_ADVISE_DONTNEED);
        c->n_open--;
    }
    for (i = 0; i < c->n_places && c->n_open < want; i++) {
        c->n_open += c->places[i].is_closed;
        c->places[i].is_closed = false;
    }
}

/* The place of `id`: its own, or the one that was used longest ago; NONE: all are spoken for. */
static uint32_t claim(ebb_cache *c, uint32_t id)
{
    uint32_t oldest;

    if (c->n_places == 0 || c->place_of[id] != NONE)
        return c->n_places == 0 ? NONE : c->place_of[id];
    oldest = find_oldest(c);
    if (oldest == NONE)
        return NONE;
    empty(c, oldest);
    c->places[oldest].id = id;
    c->place_of[id] = oldest;
    c->read_bytes += c->extents[id].n_bytes;
    ebb_ring_load(c->ring, id, (char *)c->memory.data + oldest * c->place_bytes);
    return oldest;
}

void ebb_cache_expect(ebb_cache *c, uint32_t id)
{
    uint32_t i = claim(c, id);

    if (i != NONE)
        c->places[i].used = ++c->clock;
}

ebb_status ebb_cache_acquire(ebb_cache *c, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err)
{
    uint32_t i = claim(c, id);
    ebb_status st;

    if (i == NONE)
        return EBB_LIMIT;
    st = ebb_ring_acquire(c->ring, id, cancel, ptr, err);
    c->places[i].n_held += st == EBB_OK;
    c->places[i].used = ++c->clock;
    return st;
}

bool ebb_cache_release(ebb_cache *c, uint32_t id)
{
    uint32_t i = c->n_places ? c->place_of[id] : NONE;

    if (i == NONE || c->places[i].n_held == 0)
        return false;
    c->places[i].n_held--;
    c->places[i].used = c->begun ? c->begun - 1 : 0;     /* it may go now, but after all that were used before */
    return true;
}

void ebb_cache_forget(ebb_cache *c, uint32_t id)
{
    uint32_t i = c->n_places ? c->place_of[id] : NONE;

    if (i == NONE)
        return;
    empty(c, i);
}
