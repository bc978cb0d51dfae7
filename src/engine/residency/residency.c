/* Residency of weights (residency.h): opening, and who answers an acquire. */
#include "residency/residency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "residency/residency_impl.h"

/* -- Opening ----------------------------------------------------------------- */

/* The file may have changed since its header was read: its size is asked again. */
static ebb_status map_part(ebb_res *r, uint32_t i, const ebb_res_part *from, ebb_error *err)
{
    ebb_read_file *f = &r->files[i];
    ebb_status st;

    f->path = from->path;
    f->fd = from->fd;
    f->direct_fd = -1;
    f->n_bytes = from->n_bytes;
    r->bases[i] = from->memory;
    if (f->fd < 0)
        return EBB_OK;
    st = ebb_file_get_id(f->fd, f->path, &r->ids[i], err);
    f->n_bytes = r->ids[i].n_bytes;
    if (st == EBB_OK)
        st = ebb_map_file(f->fd, f->path, (size_t)f->n_bytes, &f->map, err);
    r->bases[i] = f->map.data;
    if (st == EBB_OK)
        st = ebb_guard_add(&f->map, &r->guards[i], err);
    return st;
}

static bool in_file(const ebb_res *r, uint32_t i_file, uint64_t offset, uint64_t n)
{
    return i_file < r->n_files && offset <= r->files[i_file].n_bytes && n <= r->files[i_file].n_bytes - offset;
}

static ebb_status add_extents(ebb_res *r, const ebb_res_extent *extents, uint32_t n, ebb_error *err)
{
    memcpy(r->extents, extents, n * sizeof *extents);
    r->n_extents = n;
    for (uint32_t i = 0; i < n; i++) {
        const ebb_res_extent *x = &r->extents[i];
        ebb_res_group *g = &r->groups[x->group];

        if (!in_file(r, x->part, x->offset, x->n_bytes))
            return EBB_FAIL(err, EBB_FORMAT, "%s: truncated: its tensor %s ends beyond it; download it again",
                            x->part < r->n_files ? r->files[x->part].path : "part", x->name);
        if (g->n == 0)
            g->first = i;
        assert(g->first + g->n == i);            /* a group's extents are contiguous */
        g->n++;
        g->state = EBB_LAYER_MAPPED;
        r->owner[i] = EBB_LAYER_MAPPED;
        r->resident[i] = true;
        r->at[i] = r->bases[x->part] + x->offset;
        r->mapped_bytes += x->n_bytes;
    }
    return EBB_OK;
}

static ebb_status alloc_tables(ebb_res *r, uint32_t n_parts, uint32_t n_extents, uint32_t n_layers, ebb_error *err)
{
    r->files = calloc(n_parts, sizeof *r->files);
    r->ids = calloc(n_parts, sizeof *r->ids);
    r->bases = calloc(n_parts, sizeof *r->bases);
    r->guards = calloc(n_parts, sizeof *r->guards);
    r->extents = calloc(n_extents, sizeof *r->extents);
    r->at = calloc(n_extents, sizeof *r->at);
    r->home = calloc(n_extents, sizeof *r->home);
    r->owner = calloc(n_extents, sizeof *r->owner);
    r->resident = calloc(n_extents, sizeof *r->resident);
    r->is_lent = calloc(n_extents, sizeof *r->is_lent);
    r->groups = calloc(n_layers + 1, sizeof *r->groups);
    if (!r->files || !r->ids || !r->bases || !r->guards || !r->extents || !r->at || !r->home || !r->owner ||
        !r->resident || !r->is_lent || !r->groups)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the weight table");
    r->n_groups = n_layers + 1;
    return EBB_OK;
}

/* What is known of the use of experts outlives the memory for them. */
static bool init_lrfu(ebb_res *r, const ebb_res_extent *extents, uint32_t n)
{
    uint32_t n_experts = 0, n_layers = 0, last = UINT32_MAX;

    for (uint32_t i = 0; i < n; i++) {
        if (extents[i].expert == 0)
            continue;
        n_experts = extents[i].expert > n_experts ? extents[i].expert : n_experts;
        n_layers += extents[i].group != last;
        last = extents[i].group;
    }
    return ebb_lrfu_init(&r->lrfu, n_experts, n_layers);
}

ebb_status ebb_res_open(const ebb_res_part *parts, uint32_t n_parts, const ebb_res_extent *extents,
                        uint32_t n_extents, uint32_t n_layers, ebb_res **out, ebb_error *err)
{
    ebb_res *r = calloc(1, sizeof *r);
    ebb_status st;

    *out = NULL;
    if (!r)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the weight table");
    pthread_mutex_init(&r->lock, NULL);
    r->ops = &ebb_reader_pread;
    st = alloc_tables(r, n_parts, n_extents, n_layers, err);
    if (st == EBB_OK && !init_lrfu(r, extents, n_extents))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a table of experts");
    while (st == EBB_OK && r->n_files < n_parts) {
        st = map_part(r, r->n_files, &parts[r->n_files], err);
        r->n_files++;
    }
    if (st == EBB_OK)
        st = add_extents(r, extents, n_extents, err);
    if (st != EBB_OK) {
        ebb_res_close(r);
        return st;
    }
    *out = r;
    return EBB_OK;
}

void ebb_res_close(ebb_res *r)
{
    if (!r)
        return;
    ebb_res_prefault_stop(r);
    ebb_res_close_expert_cache(r);
    ebb_ring_close(r->ring);
    for (uint32_t i = 0; i < r->n_groups; i++) {
        assert(r->groups[i].n_acquired == 0);
        ebb_map_fini(&r->groups[i].copy);
        ebb_map_fini(&r->groups[i].lent);
    }
    for (uint32_t i = 0; i < r->n_files; i++) {
        ebb_file_close(r->files[i].direct_fd);
        ebb_guard_remove(r->guards[i]);
        ebb_map_fini(&r->files[i].map);
    }
    pthread_mutex_destroy(&r->lock);
    ebb_lrfu_fini(&r->lrfu);
    free(r->files);
    free(r->ids);
    free(r->bases);
    free(r->guards);
    free(r->extents);
    free(r->at);
    free(r->home);
    free(r->owner);
    free(r->resident);
    free(r->is_lent);
    free(r->groups);
    free(r);
}

void ebb_res_set_cancel(ebb_res *r, const atomic_bool *cancel)
{
    r->cancel = cancel;
}

void ebb_res_set_headroom(ebb_res *r, ebb_headroom headroom)
{
    r->headroom = headroom;
}

const char *ebb_res_path(const ebb_res *r)
{
    return r->n_files ? r->files[0].path : "the model";
}

/* The files are what they were at open. */
static ebb_status check_files(const ebb_res *r, ebb_error *err)
{
    for (uint32_t i = 0; i < r->n_files; i++) {
        const ebb_read_file *f = &r->files[i];
        ebb_file_id now;
        ebb_status st;

        if (f->fd < 0)
            continue;
        st = ebb_file_get_id(f->fd, f->path, &now, err);
        if (st != EBB_OK)
            return st;
        if (now.n_bytes != r->ids[i].n_bytes)
            return EBB_FAIL(err, EBB_FORMAT, "%s: had %llu bytes and has %llu now; put it back, or open it again",
                            f->path, (unsigned long long)r->ids[i].n_bytes, (unsigned long long)now.n_bytes);
        if (now.modified_ns != r->ids[i].modified_ns)
            return EBB_FAIL(err, EBB_FORMAT, "%s: was written to while in use; open it again", f->path);
    }
    return EBB_OK;
}

ebb_status ebb_res_check_pass(ebb_res *r, ebb_error *err)
{
    for (uint32_t i = 0; i < r->n_files; i++)
        if (ebb_guard_is_hit(r->guards[i]))
            return EBB_FAIL(err, EBB_FORMAT,
                            "%s: was truncated or could not be read while in use; put it back, "
                            "or open it again",
                            r->files[i].path);
    return check_files(r, err);
}

ebb_status ebb_res_check(ebb_res *r, ebb_error *err)
{
    ebb_status st = check_files(r, err);

    ebb_guard_arm();
    for (uint32_t i = 0; i < r->n_files && st == EBB_OK; i++)
        if (r->files[i].fd >= 0 && !ebb_guard_heal(r->guards[i], r->files[i].fd))
            st = EBB_FAIL(err, EBB_IO, "%s: cannot be mapped again; open it again", r->files[i].path);
    return st;
}

/* -- Use --------------------------------------------------------------------- */

/* Where the extent is, NULL: not in memory, or not yet.  From here on nobody lets its group go. */
static const char *begin_use(ebb_res *r, uint32_t id, bool *comes_home)
{
    const char *at;

    pthread_mutex_lock(&r->lock);
    r->groups[r->extents[id].group].n_acquired++;
    at = r->at[id];
    *comes_home = r->home[id] != NULL;
    pthread_mutex_unlock(&r->lock);
    return at;
}

/* Returns where the extent was. */
static const char *end_use(ebb_res *r, uint32_t id)
{
    ebb_res_group *g = &r->groups[r->extents[id].group];
    const char *at;

    pthread_mutex_lock(&r->lock);
    assert(g->n_acquired > 0);
    g->n_acquired--;
    at = r->at[id];
    pthread_mutex_unlock(&r->lock);
    return at;
}

static ebb_status acquire_streamed(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err)
{
    ebb_status st = r->extents[id].is_certain ? EBB_LIMIT
                                              : ebb_expert_cache_acquire(&r->cache, id, r->cancel, ptr, err);

    return st == EBB_LIMIT ? ebb_ring_acquire(r->ring, id, r->cancel, ptr, err) : st;
}

ebb_status ebb_res_acquire(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err)
{
    bool comes_home;
    ebb_status st;

    assert(id < r->n_extents);
    *ptr = begin_use(r, id, &comes_home);
    if (*ptr)
        return EBB_OK;
    st = acquire_streamed(r, id, ptr, err);
    if (st == EBB_OK && comes_home) {
        pthread_mutex_lock(&r->lock);
        if (*ptr == ebb_pin_address(&r->extents[id], r->home[id])) {      /* it has come, and stays */
            ebb_ring_unload(r->ring, id);
            r->at[id] = *ptr;
            r->home[id] = NULL;
        }
        pthread_mutex_unlock(&r->lock);
    }
    if (st != EBB_OK)
        (void)end_use(r, id);
    return st;
}

bool ebb_res_is_resident(ebb_res *r, uint32_t id)
{
    bool is;

    pthread_mutex_lock(&r->lock);
    is = r->at[id] != NULL;
    pthread_mutex_unlock(&r->lock);
    return is;
}

/* -- Experts ------------------------------------------------------------------ */

void ebb_res_begin_experts(ebb_res *r, uint32_t n_tokens)
{
    ebb_expert_cache_begin_layer(&r->cache, n_tokens);
}

/* Whether extent `id` is neither in memory nor on its way to where it stays. */
static bool extent_is_streamed(ebb_res *r, uint32_t id)
{
    bool is;

    pthread_mutex_lock(&r->lock);
    is = r->owner[id] == EBB_LAYER_DISK;
    pthread_mutex_unlock(&r->lock);
    return is;
}

void ebb_res_announce_expert(ebb_res *r, uint32_t id, uint32_t n_members)
{
    ebb_res_prefault_expert(r, id);
    ebb_expert_cache_announce(&r->cache, r->extents[id].expert - 1, n_members, extent_is_streamed(r, id));
}

void ebb_res_end_experts(ebb_res *r)
{
    ebb_expert_cache_drop_mispredicted(&r->cache);
}

void ebb_res_prefetch_expert(ebb_res *r, uint32_t id)
{
    if (extent_is_streamed(r, id))
        ebb_expert_cache_prefetch(&r->cache, r->extents[id].expert - 1);
}

void ebb_res_finish_expert(ebb_res *r, uint32_t id)
{
    ebb_expert_cache_finish(&r->cache, r->extents[id].expert - 1);
}

bool ebb_res_streams_experts(const ebb_res *r)
{
    return r->cache.n_slots > 0;
}

void ebb_res_fill_expert_cache(ebb_res *r)
{
    pthread_mutex_lock(&r->lock);
    if (r->cache.n_slots > 0)
        ebb_expert_cache_fill(&r->cache, r->owner);
    pthread_mutex_unlock(&r->lock);
}

uint32_t ebb_res_n_experts(const ebb_res *r)
{
    return r->lrfu.n;
}

void ebb_res_get_expert_uses(const ebb_res *r, float *often)
{
    for (uint32_t e = 0; e < r->lrfu.n; e++)
        often[e] = ebb_lrfu_get_long_term(&r->lrfu, e);
}

void ebb_res_set_expert_uses(ebb_res *r, const float *often)
{
    for (uint32_t e = 0; e < r->lrfu.n; e++)
        ebb_lrfu_set_long_term(&r->lrfu, e, often[e]);
}

/* -- Figures ------------------------------------------------------------------ */

bool ebb_res_is_ready(ebb_res *r, uint32_t id)
{
    bool is_here;

    pthread_mutex_lock(&r->lock);
    is_here = r->at[id] != NULL;
    pthread_mutex_unlock(&r->lock);
    return is_here || ebb_ring_is_ready(r->ring, id);
}

void ebb_res_release(ebb_res *r, uint32_t id)
{
    assert(id < r->n_extents);
    if (!end_use(r, id) && !ebb_expert_cache_release(&r->cache, id))
        ebb_ring_release(r->ring, id);
}

/* The pinned extent that holds the range, NULL if there is none. */
static const char *find_pinned(const ebb_res *r, uint32_t i_file, uint64_t offset, size_t n)
{
    const ebb_res_group *g = &r->groups[r->n_groups - 1]; /* the only rows that are also an extent: a tied output */

    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (r->owner[i] == EBB_LAYER_PINNED && r->at[i] && x->part == i_file && offset >= x->offset &&
            offset + n <= x->offset + x->n_bytes)
            return r->at[i] + (offset - x->offset);
    }
    return NULL;
}

ebb_status ebb_res_read(ebb_res *r, uint32_t i_file, uint64_t offset, void *out, size_t n, ebb_error *err)
{
    const ebb_read_file *f = &r->files[i_file];
    const char *from;

    if (!in_file(r, i_file, offset, n))
        return EBB_FAIL(err, EBB_FORMAT, "%s: truncated: no %zu bytes at %llu", i_file < r->n_files ? f->path : "part",
                        n, (unsigned long long)offset);
    pthread_mutex_lock(&r->lock);                /* a row: it cannot be evicted while it is copied */
    from = f->fd < 0 ? r->bases[i_file] + offset : find_pinned(r, i_file, offset, n);
    if (from)
        memcpy(out, from, n);
    pthread_mutex_unlock(&r->lock);
    return from ? EBB_OK : ebb_file_read_at(f->fd, f->path, out, n, offset, err);
}

static double resident_share(const ebb_res *r, const ebb_res_group *g)
{
    uint64_t all = 0, here = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        all += r->extents[i].n_bytes;
        here += r->at[i] || (r->home[i] && ebb_res_is_loaded(r, i)) ? r->extents[i].n_bytes : 0;
    }
    return all ? (double)here / (double)all : 0;
}

uint64_t ebb_res_pending_bytes(ebb_res *r)
{
    ebb_ring_stats ring = { 0 };

    pthread_mutex_lock(&r->lock);
    if (r->ring)
        ebb_ring_get_stats(r->ring, &ring);
    pthread_mutex_unlock(&r->lock);
    return ring.pending_bytes;
}

void ebb_res_get_stats(ebb_res *r, ebb_res_stats *out)
{
    ebb_ring_stats ring = { 0 };
    double layers = 0;

    memset(out, 0, sizeof *out);
    pthread_mutex_lock(&r->lock);
    if (r->ring)
        ebb_ring_get_stats(r->ring, &ring);
    out->pinned_bytes = r->pinned_bytes;
    out->mapped_bytes = r->mapped_bytes;
    out->lent_bytes = r->lent_bytes;
    out->ring_bytes = ring.ring_bytes;
    out->cache_bytes = r->cache.open_bytes;
    out->experts = r->counts;
    ebb_res_add_counts(&out->experts, &r->cache.counts);
    out->read_bytes = r->read_bytes + out->experts.read_bytes + ring.read_bytes;
    out->stall_ns = r->stall_ns + ring.stall_ns;
    out->disk_bytes_s = ring.bytes_s;
    for (uint32_t i = 0; i + 1 < r->n_groups; i++)
        layers += resident_share(r, &r->groups[i]);
    out->n_resident = (uint32_t)(layers + 1e-6);
    pthread_mutex_unlock(&r->lock);
}
