/* What the ring has read, and in which order: the reader's side (ring.h). */
#include <time.h>

#include "base/invariant.h"
#include "os/file.h"
#include "residency/ring_impl.h"

#define WAIT_NS 20000000L

ebb_ring_entry *ebb_ring_find(ebb_ring *g, uint32_t id)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (ebb_ring_get(g, i)->id == id && !ebb_ring_get(g, i)->is_dead)
            return ebb_ring_get(g, i);
    return NULL;
}

uint32_t ebb_ring_next_streamed(const ebb_ring *g, uint32_t id)
{
    for (uint32_t i = 0; i < g->n_extents; i++) {
        uint32_t k = (id + i) % g->n_extents;

        if (g->is_streamed[k] && g->extents[k].is_certain && ebb_range_bytes(&g->extents[k]) <= g->cap)
            return k;
    }
    return EBB_RING_NONE;
}

static bool is_gone(const ebb_ring *g, const ebb_ring_entry *e)
{
    if (!e->is_dead || e->n_in_flight > 0 || e->n_held > 0)
        return false;
    return !g->ops->is_mapped || e->n_issued == 0 || e->is_dropped;      /* else next() asks for the drop */
}

/* Room comes back at the tail, and at the head of what was read ahead in vain. */
void ebb_ring_pop_dead(ebb_ring *g)
{
    while (g->n > 0 && is_gone(g, ebb_ring_get(g, 0))) {
        g->tail += ebb_ring_get(g, 0)->n_pad + ebb_ring_get(g, 0)->n_bytes;
        g->first = (g->first + 1) % EBB_RING_ENTRIES;
        g->n--;
    }
    while (g->n > 0 && is_gone(g, ebb_ring_get(g, g->n - 1))) {
        g->head -= ebb_ring_get(g, g->n - 1)->n_pad + ebb_ring_get(g, g->n - 1)->n_bytes;
        g->n--;
    }
}

/* Whether n_bytes fit at the head without wrapping around, and what is skipped for that. */
bool ebb_ring_has_space(const ebb_ring *g, uint64_t n_bytes, uint64_t *n_pad)
{
    uint64_t left = g->cap - g->head % g->cap;

    *n_pad = g->ops->is_mapped || n_bytes <= left ? 0 : left;
    return g->head - g->tail + *n_pad + n_bytes <= g->cap;
}

/* Enter the extent at the cursor if there is room. */
static bool enter_next(ebb_ring *g)
{
    uint64_t n_bytes, n_pad;

    if (g->is_parked || g->cursor == EBB_RING_NONE || g->n == EBB_RING_ENTRIES)
        return false;
    if (ebb_ring_find(g, g->cursor))                      /* the whole round is entered already */
        return false;
    n_bytes = ebb_range_bytes(&g->extents[g->cursor]);
    if (g->n == 0)
        g->head = g->tail = 0;
    if (!ebb_ring_has_space(g, n_bytes, &n_pad))
        return false;
    *ebb_ring_get(g, g->n++) = (ebb_ring_entry){ .id = g->cursor, .at = g->head + n_pad, .n_pad = n_pad,
                                                 .n_bytes = n_bytes };
    g->head += n_pad + n_bytes;
    g->cursor = ebb_ring_next_streamed(g, (g->cursor + 1) % g->n_extents);
    return true;
}

static void issue_piece(ebb_ring *g, ebb_ring_entry *e, ebb_piece *out)
{
    const ebb_res_extent *x = &g->extents[e->id];
    uint64_t n = e->n_bytes - e->n_issued, place = g->cap ? (e->at + e->n_issued) % g->cap : 0, must;

    if (n > g->ops->piece_bytes)
        n = g->ops->piece_bytes;
    *out = (ebb_piece){
        .file = x->part, .tag = (uint32_t)(e - g->entries), .offset = ebb_range_begin(x) + e->n_issued,
        .n_bytes = (size_t)n,
        .to = g->ops->is_mapped ? NULL : (char *)g->memory.data + place,
    };
    must = x->offset + x->n_bytes - out->offset;
    out->n_must = (size_t)(must < n ? must : n);
    e->n_issued += n;
    e->n_in_flight++;
}

/* The page that a range shares with the extent behind it is dropped with that one. */
void ebb_ring_issue_drop(ebb_ring *g, ebb_ring_entry *e, ebb_piece *out)
{
    const ebb_res_extent *x = &g->extents[e->id];
    uint64_t end = (x->offset + x->n_bytes) & ~(EBB_READ_ALIGN - 1), from = ebb_range_begin(x);

    *out = (ebb_piece){ .file = x->part, .tag = (uint32_t)(e - g->entries), .offset = from, .is_drop = true,
                        .n_bytes = end > from ? (size_t)(end - from) : (size_t)EBB_READ_ALIGN };
    e->is_dropped = true;
    e->n_in_flight++;
}

static bool find_drop(ebb_ring *g, ebb_piece *out)
{
    for (uint32_t i = 0; i < g->n; i++) {
        ebb_ring_entry *e = ebb_ring_get(g, i);

        if (e->is_dead && g->ops->is_mapped && e->n_issued > 0 && e->n_in_flight == 0 && e->n_held == 0 &&
            !e->is_dropped) {
            ebb_ring_issue_drop(g, e, out);
            return true;
        }
    }
    return false;
}

/* The entry that wants a piece; a new one if there is room. */
static ebb_ring_entry *find_unissued(ebb_ring *g)
{
    do {
        for (uint32_t i = 0; i < g->n; i++) {
            ebb_ring_entry *e = ebb_ring_get(g, i);

            if (!e->is_dead && e->st == EBB_OK && e->n_issued < e->n_bytes)
                return e;
        }
    } while (enter_next(g));
    return NULL;
}

/* How soon the forward pass comes to `id`. */
static uint32_t stream_distance(const ebb_ring *g, uint32_t id)
{
    return (id + g->n_extents - g->pos) % g->n_extents;
}

/* What is needed first is read first; what stays is read on while the ring is full, and while there is room for it. */
static bool find_work(ebb_ring *g, ebb_piece *out)
{
    bool is_urgent;
    uint32_t load;
    ebb_ring_entry *e;

    if (find_drop(g, out))
        return true;
    e = find_unissued(g);
    if (ebb_loads_peek(&g->loads, g->pos, &load, &is_urgent) &&
        (!g->is_short || !ebb_loads_takes_memory(&g->loads, load)) &&
        (!e || is_urgent || stream_distance(g, load) < stream_distance(g, e->id))) {
        ebb_loads_issue(&g->loads, load, g->ops->piece_bytes, out);
        out->tag += EBB_RING_ENTRIES;
        return true;
    }
    if (e)
        issue_piece(g, e, out);
    return e != NULL;
}

void ebb_ring_wait(ebb_ring *g, pthread_cond_t *on)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(on, &g->lock, &until);
}

/* Whether memory can be taken for what is to stay.  The answer is good for one piece of each thread.  No more is asked
 * for than will be taken: with less, extents that are ready would have to be dropped. */
static void ask_headroom(ebb_ring *g)
{
    uint64_t pending = ebb_loads_pending_bytes(&g->loads);
    uint64_t n = pending < g->ops->piece_bytes ? pending : g->ops->piece_bytes;
    bool is_short = false;

    if (n > 0 && g->headroom.has) {
        pthread_mutex_unlock(&g->lock);
        is_short = !g->headroom.has(g->headroom.arg, n);
        pthread_mutex_lock(&g->lock);
    }
    if (is_short && !g->is_short)
        pthread_cond_signal(&g->progress);
    g->is_short = is_short;
}

bool ebb_ring_next(void *self, bool wait, ebb_piece *out)
{
    ebb_ring *g = self;
    bool found = false;

    pthread_mutex_lock(&g->lock);
    for (;;) {
        ask_headroom(g);
        if (g->is_stopping || (found = find_work(g, out)) || !wait)
            break;
        if (g->is_short)
            ebb_ring_wait(g, &g->space);
        else
            pthread_cond_wait(&g->space, &g->lock);
    }
    EBB_INVARIANT(ebb_ring_check_locked(g));
    pthread_mutex_unlock(&g->lock);
    return found;
}

/* R1: nothing of what stays remains in the page cache. */
void ebb_ring_drop_pages(const ebb_ring *g, uint32_t id)
{
    const ebb_res_extent *x = &g->extents[id];
    const ebb_read_file *f = &g->files[x->part];

    ebb_map_advise((char *)f->map.data + x->offset, (size_t)x->n_bytes, EBB_ADVISE_DONTNEED);
    ebb_file_drop_cache(f->fd, ebb_range_begin(x), ebb_range_bytes(x));
}

static void load_done(ebb_ring *g, ebb_piece p, ebb_status st, const ebb_error *err)
{
    uint32_t id;
    bool is_here;

    p.tag -= EBB_RING_ENTRIES;
    pthread_mutex_lock(&g->lock);
    id = g->loads.in_flight[p.tag].id;
    if (st == EBB_OK)
        ebb_rate_add(&g->load_rate, p.n_must);
    is_here = ebb_loads_done(&g->loads, &p, st, err);
    if (g->loads.state[id] != EBB_LOAD_IN_FLIGHT)
        pthread_cond_signal(&g->progress);
    pthread_mutex_unlock(&g->lock);
    if (is_here)
        ebb_ring_drop_pages(g, id);
}

void ebb_ring_done(void *self, const ebb_piece *p, ebb_status st, const ebb_error *err)
{
    ebb_ring *g = self;
    ebb_ring_entry *e = &g->entries[p->tag % EBB_RING_ENTRIES];

    if (p->tag >= EBB_RING_ENTRIES) {
        load_done(g, *p, st, err);
        return;
    }
    pthread_mutex_lock(&g->lock);
    e->n_in_flight--;
    if (st != EBB_OK && e->st == EBB_OK) {
        e->st = st;
        e->err = *err;
    } else if (st == EBB_OK && !p->is_drop) {
        ebb_rate_add(&g->rate, p->n_must);
    }
    if (e->is_dead) {
        ebb_ring_pop_dead(g);
        pthread_cond_broadcast(&g->space);
    }
    if (e->st != EBB_OK || (e->n_in_flight == 0 && e->n_issued == e->n_bytes) || e->is_dead)
        pthread_cond_signal(&g->progress);
    EBB_INVARIANT(ebb_ring_check_locked(g));
    pthread_mutex_unlock(&g->lock);
}
