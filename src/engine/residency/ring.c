/* The ring of streamed weights (ring.h). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log.h"
#include "os/file.h"
#include "residency/pin.h"
#include "residency/ring_impl.h"

#define POPULATE_BYTES ((size_t)8 << 20)         /* populated at a time where there is no room */

/* -- Birth and death ---------------------------------------------------------------- */

static ebb_status alloc_ring(ebb_ring *g, uint64_t cap, ebb_error *err)
{
    uint64_t unit = cap < EBB_HUGE_PAGE_BYTES ? EBB_READ_ALIGN : EBB_HUGE_PAGE_BYTES;

    g->cap = (cap + unit - 1) & ~(unit - 1);
    g->is_streamed = calloc(g->n_extents, sizeof *g->is_streamed);
    g->n_mapped_held = calloc(g->n_extents, sizeof *g->n_mapped_held);
    if (!ebb_loads_init(&g->loads, g->extents, g->n_extents) || !g->is_streamed || !g->n_mapped_held)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a ring's tables");
    return g->ops->is_mapped ? EBB_OK : ebb_map_anon((size_t)g->cap, unit == EBB_HUGE_PAGE_BYTES, &g->memory, err);
}

ebb_status ebb_ring_open(const ebb_reader_ops *ops, const ebb_read_file *files, uint32_t n_files,
                         const ebb_res_extent *extents, uint32_t n_extents, uint64_t cap,
                         ebb_headroom headroom, ebb_ring **out, ebb_error *err)
{
    ebb_ring *g = calloc(1, sizeof *g);
    pthread_condattr_t attr;
    ebb_status st;

    *out = NULL;
    if (!g)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a ring");
    g->ops = ops;
    g->files = files;
    g->extents = extents;
    g->n_extents = n_extents;
    g->headroom = headroom;
    g->cursor = EBB_RING_NONE;
    g->source = (ebb_source){ .next = ebb_ring_next, .done = ebb_ring_done, .self = g };
    pthread_mutex_init(&g->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&g->space, &attr);
    pthread_cond_init(&g->progress, &attr);
    pthread_condattr_destroy(&attr);
    st = alloc_ring(g, cap, err);
    if (st == EBB_OK)
        st = ebb_reader_start(ops, files, n_files, &g->source, &g->reader, err);
    if (st != EBB_OK) {
        ebb_ring_close(g);
        return st;
    }
    *out = g;
    return EBB_OK;
}

/* What a mapped reader has populated goes from the page cache. */
static void drop_rest(ebb_ring *g)
{
    for (uint32_t i = 0; i < g->n; i++) {
        ebb_ring_entry *e = ebb_ring_get(g, i);
        ebb_piece p;

        if (e->n_issued == 0 || e->is_dropped)
            continue;
        ebb_ring_issue_drop(g, e, &p);
        ebb_map_advise((char *)g->files[p.file].map.data + p.offset, p.n_bytes, EBB_ADVISE_DONTNEED);
        ebb_file_drop_cache(g->files[p.file].fd, p.offset, p.n_bytes);
    }
}

void ebb_ring_close(ebb_ring *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->is_stopping = true;
    pthread_cond_broadcast(&g->space);
    pthread_mutex_unlock(&g->lock);
    ebb_reader_stop(g->reader);
    if (g->ops->is_mapped)
        drop_rest(g);
    ebb_map_fini(&g->memory);
    pthread_cond_destroy(&g->progress);
    pthread_cond_destroy(&g->space);
    pthread_mutex_destroy(&g->lock);
    ebb_loads_fini(&g->loads);
    free(g->is_streamed);
    free(g->n_mapped_held);
    free(g);
}

/* -- The user's side ------------------------------------------------------------------ */

static void retire_entry(ebb_ring *g, ebb_ring_entry *e)
{
    e->is_dead = true;
    ebb_ring_pop_dead(g);
    pthread_cond_broadcast(&g->space);
}

void ebb_ring_stream(ebb_ring *g, uint32_t id, bool is_streamed)
{
    ebb_ring_entry *e;

    pthread_mutex_lock(&g->lock);
    g->is_streamed[id] = is_streamed;
    e = ebb_ring_find(g, id);
    if (e && !is_streamed) {
        assert(e->n_held == 0);
        retire_entry(g, e);
    }
    g->cursor = ebb_ring_next_streamed(g, g->cursor == EBB_RING_NONE ? 0 : g->cursor);
    EBB_INVARIANT(ebb_ring_check_locked(g));
    pthread_cond_broadcast(&g->space);
    pthread_mutex_unlock(&g->lock);
}

/* Go on reading at `id`; everything that is not held is given up. */
static void move_cursor(ebb_ring *g, uint32_t id)
{
    for (uint32_t i = 0; i < g->n; i++)
        ebb_ring_get(g, i)->is_dead |= ebb_ring_get(g, i)->n_held == 0;
    g->is_parked = false;
    g->cursor = id;
    ebb_ring_pop_dead(g);
    pthread_cond_broadcast(&g->space);
}

/* Nothing that is under way can make room for `id`: what is held is at the tail. */
static bool is_stuck(ebb_ring *g, uint32_t id)
{
    uint64_t n_pad;

    if (g->n == 0 || ebb_ring_get(g, 0)->n_held == 0)
        return false;
    return g->n == EBB_RING_ENTRIES || !ebb_ring_has_space(g, ebb_range_bytes(&g->extents[id]), &n_pad);
}

/* Extents that were passed over will not be asked for in this round. */
static void retire_before(ebb_ring *g, const ebb_ring_entry *wanted)
{
    bool any = false;

    for (uint32_t i = 0; i < g->n && ebb_ring_get(g, i) != wanted; i++) {
        any |= ebb_ring_get(g, i)->n_held == 0 && !ebb_ring_get(g, i)->is_dead;
        ebb_ring_get(g, i)->is_dead |= ebb_ring_get(g, i)->n_held == 0;
    }
    if (!any)
        return;
    ebb_ring_pop_dead(g);
    pthread_cond_broadcast(&g->space);
}

static const char *entry_address(const ebb_ring *g, const ebb_ring_entry *e)
{
    const ebb_res_extent *x = &g->extents[e->id];

    if (g->ops->is_mapped)
        return (const char *)g->files[x->part].map.data + x->offset;
    return (const char *)g->memory.data + e->at % g->cap + (x->offset - ebb_range_begin(x));
}

static void wait_progress(ebb_ring *g)
{
    uint64_t begin = ebb_clock_ns();

    ebb_ring_wait(g, &g->progress);
    g->stall_ns += ebb_clock_ns() - begin;
}

/* An extent without room: populate its own pages, window after window. */
static ebb_status acquire_mapped(ebb_ring *g, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err)
{
    const ebb_res_extent *x = &g->extents[id];
    const ebb_read_file *f = &g->files[x->part];
    char *at = (char *)f->map.data + x->offset;
    uint64_t begin = ebb_clock_ns();

    for (uint64_t i = 0; i < x->n_bytes; i += POPULATE_BYTES) {
        size_t n = x->n_bytes - i < POPULATE_BYTES ? (size_t)(x->n_bytes - i) : POPULATE_BYTES;

        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return EBB_FAIL(err, EBB_CANCELED, "stopped while %s was being read", x->name);
        if (ebb_map_advise(at + i, n, EBB_ADVISE_POPULATE))
            continue;
        if (errno != EINVAL)
            return EBB_FAIL(err, errno == EFAULT ? EBB_FORMAT : EBB_IO, "%s: tensor %s cannot be read: %s", f->path,
                            x->name, strerror(errno));
        ebb_map_advise(at + i, n, EBB_ADVISE_WILLNEED);  /* a kernel without populate: its pages come by faults */
    }
    pthread_mutex_lock(&g->lock);
    ebb_rate_add(&g->rate, x->n_bytes);
    g->stall_ns += ebb_clock_ns() - begin;
    g->n_mapped_held[id]++;
    pthread_mutex_unlock(&g->lock);
    *ptr = at;
    return EBB_OK;
}

/* Wait until `id` is ready, failed, or cannot come; with the lock held. */
static ebb_status await_entry(ebb_ring *g, uint32_t id, const atomic_bool *cancel, ebb_ring_entry **out, ebb_error *err)
{
    bool is_second = false;

    for (;;) {
        ebb_ring_entry *e = ebb_ring_find(g, id);

        if (e)
            retire_before(g, e);
        if (e && e->st != EBB_OK && is_second)
            break;
        if (e && e->st != EBB_OK) {
            ebb_log("reader", "%s; tried once more", e->err.msg);
            is_second = true;
            move_cursor(g, id);
            continue;
        }
        if (e && e->n_issued == e->n_bytes && e->n_in_flight == 0) {
            *out = e;
            return EBB_OK;
        }
        if (!e && (g->cursor != id || g->is_parked))
            move_cursor(g, id);
        else if (!e)
            retire_before(g, NULL);
        if (!e && is_stuck(g, id))
            return EBB_LIMIT;
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return EBB_FAIL(err, EBB_CANCELED, "stopped while %s was being read", g->extents[id].name);
        wait_progress(g);
    }
    *out = ebb_ring_find(g, id);
    if (err)
        *err = (*out)->err;
    return (*out)->st;
}

/* Wait for what is to stay; with the lock held.  LIMIT: there is no memory for it now. */
static ebb_status await_load(ebb_ring *g, uint32_t id, const atomic_bool *cancel, ebb_error *err)
{
    bool is_second = false;

    while (g->loads.state[id] != EBB_LOAD_LOADED) {
        if (g->loads.state[id] == EBB_LOAD_FAILED && is_second) {
            if (err)
                *err = g->loads.err;
            return g->loads.err.code;
        }
        if (g->loads.state[id] == EBB_LOAD_FAILED) {
            ebb_log("reader", "%s; tried once more", g->loads.err.msg);
            is_second = true;
        }
        ebb_loads_make_urgent(&g->loads, id);
        pthread_cond_broadcast(&g->space);
        if (g->is_short && ebb_loads_takes_memory(&g->loads, id))
            return EBB_LIMIT;
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return EBB_FAIL(err, EBB_CANCELED, "stopped while %s was being read", g->extents[id].name);
        wait_progress(g);
    }
    return EBB_OK;
}

static ebb_status acquire_load(ebb_ring *g, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err)
{
    ebb_status st;

    pthread_mutex_lock(&g->lock);
    if (g->extents[id].is_certain)               /* experts are taken as they come */
        g->pos = id;
    st = await_load(g, id, cancel, err);
    if (st == EBB_OK)
        *ptr = ebb_pin_address(&g->extents[id], g->loads.home[id]);
    pthread_mutex_unlock(&g->lock);
    return st == EBB_LIMIT ? acquire_mapped(g, id, cancel, ptr, err) : st;
}

/* It is held outside the ring already: once more. */
static bool hold_again(ebb_ring *g, uint32_t id, const void **ptr)
{
    if (g->n_mapped_held[id] == 0)
        return false;
    g->n_mapped_held[id]++;
    *ptr = (const char *)g->files[g->extents[id].part].map.data + g->extents[id].offset;
    return true;
}

ebb_load_state ebb_ring_load(ebb_ring *g, uint32_t id, char *home, ebb_load_state how)
{
    ebb_load_state before;

    pthread_mutex_lock(&g->lock);
    before = g->loads.state[id];
    if (before == EBB_LOAD_NONE)
        ebb_loads_set(&g->loads, id, home, how);
    else if (how == EBB_LOAD_URGENT)
        ebb_loads_make_urgent(&g->loads, id);
    if (how == EBB_LOAD_URGENT)                  /* an expert that was chosen */
        ebb_loads_take_memory_anyway(&g->loads, id);
    pthread_cond_broadcast(&g->space);
    pthread_mutex_unlock(&g->lock);
    return before;
}

void ebb_ring_unload(ebb_ring *g, uint32_t id)
{
    pthread_mutex_lock(&g->lock);
    ebb_loads_drop(&g->loads, id);
    while (g->loads.state[id] == EBB_LOAD_IN_FLIGHT)
        wait_progress(g);
    EBB_INVARIANT(ebb_ring_check_locked(g));
    pthread_mutex_unlock(&g->lock);
}

ebb_status ebb_ring_set_home_region(ebb_ring *g, const ebb_map *region, ebb_error *err)
{
    bool ok;

    pthread_mutex_lock(&g->lock);
    ebb_huge_pages_fini(&g->loads.pages);
    ok = !region || ebb_huge_pages_init(&g->loads.pages, region->data, region->n_bytes);
    pthread_mutex_unlock(&g->lock);
    return ok ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a list of huge pages");
}

void ebb_ring_give_home_back(ebb_ring *g, char *at, size_t n_bytes)
{
    ebb_map_advise(at, n_bytes, EBB_ADVISE_DONTNEED);
    pthread_mutex_lock(&g->lock);
    if (ebb_huge_pages_hold(&g->loads.pages, at))
        ebb_huge_pages_give_back(&g->loads.pages, at, n_bytes);
    pthread_mutex_unlock(&g->lock);
}

void ebb_ring_cancel_load(ebb_ring *g, uint32_t id)
{
    pthread_mutex_lock(&g->lock);
    ebb_loads_cancel_unissued(&g->loads, id);
    pthread_mutex_unlock(&g->lock);
}

ebb_load_state ebb_ring_load_state(ebb_ring *g, uint32_t id)
{
    ebb_load_state state;

    pthread_mutex_lock(&g->lock);
    state = g->loads.state[id];
    pthread_mutex_unlock(&g->lock);
    return state;
}

bool ebb_ring_is_loaded(ebb_ring *g, uint32_t id)
{
    return ebb_ring_load_state(g, id) == EBB_LOAD_LOADED;
}

bool ebb_ring_is_in_flight(ebb_ring *g, uint32_t first, uint32_t n)
{
    bool is;

    pthread_mutex_lock(&g->lock);
    is = memchr(g->loads.state + first, EBB_LOAD_IN_FLIGHT, n) != NULL;
    pthread_mutex_unlock(&g->lock);
    return is;
}

ebb_status ebb_ring_acquire(ebb_ring *g, uint32_t id, const atomic_bool *cancel, const void **ptr, ebb_error *err)
{
    ebb_ring_entry *e = NULL;
    ebb_status st;

    pthread_mutex_lock(&g->lock);
    if (hold_again(g, id, ptr)) {
        pthread_mutex_unlock(&g->lock);
        return EBB_OK;
    }
    if (g->loads.home[id]) {
        pthread_mutex_unlock(&g->lock);
        return acquire_load(g, id, cancel, ptr, err);
    }
    g->pos = (id + 1) % g->n_extents;
    st = g->extents[id].is_certain && ebb_range_bytes(&g->extents[id]) <= g->cap ? await_entry(g, id, cancel, &e, err)
                                                                                 : EBB_LIMIT;
    if (st == EBB_OK) {
        e->n_held++;
        *ptr = entry_address(g, e);
    } else if (e) {                              /* its read has failed */
        move_cursor(g, id);
        g->is_parked = true;
    } else if (st == EBB_LIMIT && g->cursor == id) {
        g->cursor = ebb_ring_next_streamed(g, (id + 1) % g->n_extents);
        pthread_cond_broadcast(&g->space);
    }
    EBB_INVARIANT(ebb_ring_check_locked(g));
    pthread_mutex_unlock(&g->lock);
    return st == EBB_LIMIT ? acquire_mapped(g, id, cancel, ptr, err) : st;
}

bool ebb_ring_is_ready(ebb_ring *g, uint32_t id)
{
    uint64_t n_held = 0;
    bool is_ready;
    const ebb_ring_entry *e;

    pthread_mutex_lock(&g->lock);
    for (uint32_t i = 0; i < g->n; i++)
        n_held += ebb_ring_get(g, i)->n_held > 0 ? ebb_ring_get(g, i)->n_bytes : 0;
    e = ebb_ring_find(g, id);
    is_ready = g->n_mapped_held[id] > 0 || g->loads.state[id] == EBB_LOAD_LOADED ||
               (e && e->st == EBB_OK && e->n_issued == e->n_bytes && e->n_in_flight == 0 &&
                (e->n_held > 0 || n_held + e->n_bytes <= g->cap / 2));
    pthread_mutex_unlock(&g->lock);
    return is_ready;
}

void ebb_ring_release(ebb_ring *g, uint32_t id)
{
    bool is_last = false;
    ebb_ring_entry *e;

    pthread_mutex_lock(&g->lock);
    if (g->n_mapped_held[id] > 0) {
        is_last = --g->n_mapped_held[id] == 0;
    } else {
        e = ebb_ring_find(g, id);
        assert(e && e->n_held > 0);
        if (--e->n_held == 0)
            retire_entry(g, e);
    }
    EBB_INVARIANT(ebb_ring_check_locked(g));
    pthread_mutex_unlock(&g->lock);
    if (is_last)
        ebb_ring_drop_pages(g, id);              /* it was held outside the ring */
}

/* -- Looking ---------------------------------------------------------------------------- */

bool ebb_ring_has(ebb_ring *g, uint32_t first, uint32_t n)
{
    bool has = false;

    pthread_mutex_lock(&g->lock);
    for (uint32_t i = 0; i < g->n; i++) {
        const ebb_ring_entry *e = ebb_ring_get(g, i);

        has |= !e->is_dead && e->id >= first && e->id - first < n;
    }
    pthread_mutex_unlock(&g->lock);
    return has;
}

void ebb_ring_get_stats(ebb_ring *g, ebb_ring_stats *out)
{
    pthread_mutex_lock(&g->lock);
    *out = (ebb_ring_stats){
        .ring_bytes = g->memory.n_bytes, .read_bytes = g->rate.total, .stall_ns = g->stall_ns,
        .pending_bytes = ebb_loads_pending_bytes(&g->loads),
        .bytes_s = ebb_rate_per_s(&g->rate) + ebb_rate_per_s(&g->load_rate),
    };
    pthread_mutex_unlock(&g->lock);
}
