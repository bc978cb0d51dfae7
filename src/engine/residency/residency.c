/* Residency of weights (residency.h): states of groups, and who answers an acquire. */
#include "residency/residency.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "os/file.h"
#include "os/guard.h"
#include "os/map.h"
#include "residency/cache.h"
#include "residency/measure.h"
#include "residency/pin.h"
#include "residency/ring.h"

#define WARM_BYTES  ((uint64_t)128 << 20)        /* how far the first pass asks the kernel to read ahead of use */

typedef struct group {
    ebb_layer_state state;
    uint32_t first, n;           /* its extents */
    uint32_t n_acquired;
    ebb_map  copy;               /* the pinned copy; empty unless PINNED */
} group;

struct ebb_res {
    ebb_read_file  *files;
    ebb_file_id    *ids;         /* of the files at open */
    const char    **bases;       /* their first bytes */
    ebb_guard     **guards;      /* of their mappings */
    uint32_t        n_files;
    ebb_res_extent *extents;
    const char    **at;          /* where each extent is now; NULL: in the ring, or on its way to ... */
    char          **home;        /* ... its place in the group's copy, where that is read in the background */
    uint8_t        *owner;       /* of each: PINNED, MAPPED or DISK */
    bool           *stays;       /* with its group, when that is PINNED or MAPPED */
    uint32_t        n_extents;
    group          *groups;      /* n_layers + 1 */
    uint32_t        n_groups;
    const atomic_bool *cancel;
    const ebb_reader_ops *ops;   /* who reads */
    char            note[160];
    uint32_t        n_warmed;    /* extents that the kernel was asked to read, in order */
    uint64_t        warmed_bytes, used_bytes;    /* of them; used: by the first pass so far */

    pthread_mutex_t lock;        /* the figures' reader: states, ring, and the sums below */
    ebb_ring       *ring;        /* NULL: nothing can be streamed */
    ebb_cache       cache;       /* of experts; has no place without a ring */
    uint64_t        pinned_bytes, mapped_bytes;
    uint64_t        read_bytes, stall_ns;        /* of rings that are closed */
};

/* -- Opening ----------------------------------------------------------------- */

/* The file may have changed since its header was read: its size is asked again. */
static ebb_status open_file(ebb_res *r, uint32_t i, const ebb_res_part *from, ebb_error *err)
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
        r->guards[i] = ebb_guard_add(&f->map);
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
        group *g = &r->groups[x->group];

        if (!in_file(r, x->part, x->offset, x->n_bytes))
            return EBB_FAIL(err, EBB_FORMAT, "tensor %s ends beyond the file: the file is truncated", x->name);
        if (g->n == 0)
            g->first = i;
        assert(g->first + g->n == i);            /* a group's extents are contiguous */
        g->n++;
        g->state = EBB_LAYER_MAPPED;
        r->owner[i] = EBB_LAYER_MAPPED;
        r->stays[i] = true;
        r->at[i] = r->bases[x->part] + x->offset;
        r->mapped_bytes += x->n_bytes;
    }
    return EBB_OK;
}

static const char *mapped_at(const ebb_res *r, uint32_t id)
{
    return r->bases[r->extents[id].part] + r->extents[id].offset;
}

static ebb_status alloc(ebb_res *r, uint32_t n_parts, uint32_t n_extents, uint32_t n_layers, ebb_error *err)
{
    r->files = calloc(n_parts, sizeof *r->files);
    r->ids = calloc(n_parts, sizeof *r->ids);
    r->bases = calloc(n_parts, sizeof *r->bases);
    r->guards = calloc(n_parts, sizeof *r->guards);
    r->extents = calloc(n_extents, sizeof *r->extents);
    r->at = calloc(n_extents, sizeof *r->at);
    r->home = calloc(n_extents, sizeof *r->home);
    r->owner = calloc(n_extents, sizeof *r->owner);
    r->stays = calloc(n_extents, sizeof *r->stays);
    r->groups = calloc(n_layers + 1, sizeof *r->groups);
    if (!r->files || !r->ids || !r->bases || !r->guards || !r->extents || !r->at || !r->home || !r->owner || !r->stays || !r->groups)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the weight table");
    r->n_groups = n_layers + 1;
    return EBB_OK;
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
    st = alloc(r, n_parts, n_extents, n_layers, err);
    while (st == EBB_OK && r->n_files < n_parts) {
        st = open_file(r, r->n_files, &parts[r->n_files], err);
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

static void close_cache(ebb_res *r)
{
    pthread_mutex_lock(&r->lock);
    r->read_bytes += r->cache.read_bytes;
    ebb_cache_close(&r->cache);
    pthread_mutex_unlock(&r->lock);
}

void ebb_res_close(ebb_res *r)
{
    if (!r)
        return;
    close_cache(r);
    ebb_ring_close(r->ring);
    for (uint32_t i = 0; i < r->n_groups; i++) {
        assert(r->groups[i].n_acquired == 0);
        ebb_map_fini(&r->groups[i].copy);
    }
    for (uint32_t i = 0; i < r->n_files; i++) {
        ebb_file_close(r->files[i].direct_fd);
        ebb_guard_remove(r->guards[i]);
        ebb_map_fini(&r->files[i].map);
    }
    pthread_mutex_destroy(&r->lock);
    free(r->files);
    free(r->ids);
    free(r->bases);
    free(r->guards);
    free(r->extents);
    free(r->at);
    free(r->home);
    free(r->owner);
    free(r->stays);
    free(r->groups);
    free(r);
}

void ebb_res_set_cancel(ebb_res *r, const atomic_bool *cancel)
{
    r->cancel = cancel;
}

ebb_status ebb_res_check_pass(ebb_res *r, ebb_error *err)
{
    for (uint32_t i = 0; i < r->n_files; i++)
        if (ebb_guard_is_hit(r->guards[i]))
            return EBB_FAIL(err, EBB_FORMAT, "%s: was cut off or could not be read while it was computed with; put it back, "
                            "or open it anew", r->files[i].path);
    return EBB_OK;
}

ebb_status ebb_res_check(ebb_res *r, ebb_error *err)
{
    ebb_guard_arm();
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
            return EBB_FAIL(err, EBB_FORMAT, "%s: had %llu bytes and has %llu now; put it back, or open it anew", f->path,
                            (unsigned long long)r->ids[i].n_bytes, (unsigned long long)now.n_bytes);
        if (now.modified_ns != r->ids[i].modified_ns)
            return EBB_FAIL(err, EBB_FORMAT, "%s: was written to while in use; open it anew", f->path);
        if (!ebb_guard_heal(r->guards[i], f->fd))
            return EBB_FAIL(err, EBB_IO, "%s: cannot be mapped again; open it anew", f->path);
    }
    return EBB_OK;
}

/* -- The reader --------------------------------------------------------------- */

static void give(ebb_res *r, uint32_t id, ebb_layer_state owner, const char *at);

static void note(ebb_res *r, const char *text)
{
    snprintf(r->note, sizeof r->note, "%.159s", text);
    ebb_log("reader", "%s", text);
}

/* What has come in the background by now needs the ring no more. */
static void settle(ebb_res *r)
{
    for (uint32_t i = 0; i < r->n_extents; i++)
        if (r->home[i] && ebb_ring_is_loaded(r->ring, i)) {
            r->at[i] = ebb_pin_address(&r->extents[i], r->home[i]);
            r->home[i] = NULL;
        }
}

static void close_ring(ebb_res *r)
{
    ebb_ring_stats s;

    if (!r->ring)
        return;
    settle(r);
    close_cache(r);
    ebb_ring_get_stats(r->ring, &s);
    pthread_mutex_lock(&r->lock);
    r->read_bytes += s.read_bytes;
    r->stall_ns += s.stall_ns;
    ebb_ring_close(r->ring);
    r->ring = NULL;
    pthread_mutex_unlock(&r->lock);
}

static ebb_status open_ring(ebb_res *r, uint64_t ring_bytes, ebb_error *err)
{
    ebb_ring *ring;
    ebb_status st = ebb_ring_open(r->ops, r->files, r->n_files, r->extents, r->n_extents, ring_bytes, &ring, err);

    if (st != EBB_OK)
        return st;
    for (uint32_t i = 0; i < r->n_extents; i++)
        if (r->home[i])
            ebb_ring_load(ring, i, r->home[i]);
        else if (!r->at[i])
            ebb_ring_stream(ring, i, true);
    pthread_mutex_lock(&r->lock);
    r->ring = ring;
    pthread_mutex_unlock(&r->lock);
    return EBB_OK;
}

/* The reader of `want` if the system allows it, else pread, which needs nothing. */
static void choose(ebb_res *r, ebb_io want)
{
    ebb_io tries[] = { want, EBB_IO_PREAD };
    char text[320];
    ebb_error why = { 0 };

    for (uint32_t i = 0; i < 2; i++) {
        r->ops = ebb_reader_get(tries[i]);
        if (ebb_reader_try(r->ops, r->files, r->n_files, &why) == EBB_OK)
            return;
        if (tries[i] == EBB_IO_PREAD)            /* reads through the page cache, whose pages are dropped behind */
            snprintf(text, sizeof text, "reader pread without direct reads: %.200s", why.msg);
        else
            snprintf(text, sizeof text, "reader pread, because %s is not to be had: %.200s", r->ops->name, why.msg);
        note(r, text);
        if (tries[i] == EBB_IO_PREAD)
            return;
    }
}

static void note_speeds(ebb_res *r, const ebb_read_speed *s)
{
    char text[160];

    snprintf(text, sizeof text, "reader %s, by measurement: uring %.2f, pread %.2f, mmap %.2f GB/s", r->ops->name,
             s[EBB_IO_URING].bytes_s / 1e9, s[EBB_IO_PREAD].bytes_s / 1e9, s[EBB_IO_MMAP].bytes_s / 1e9);
    note(r, text);
}

ebb_status ebb_res_set_reader(ebb_res *r, ebb_io io, const ebb_read_speed *speeds, uint64_t ring_bytes, ebb_error *err)
{
    ebb_status st = EBB_OK;

    r->note[0] = '\0';
    close_ring(r);
    choose(r, io != EBB_IO_AUTO ? io : speeds ? ebb_read_best(speeds) : EBB_IO_PREAD);
    if (io == EBB_IO_AUTO && speeds && !r->note[0])
        note_speeds(r, speeds);
    if (ring_bytes > 0)
        st = open_ring(r, ring_bytes, err);
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->n_extents && !r->ring; i++)
        if (!r->at[i])
            give(r, i, EBB_LAYER_MAPPED, mapped_at(r, i));
    for (uint32_t i = 0; i < r->n_groups && !r->ring; i++)
        if (r->groups[i].state == EBB_LAYER_DISK)
            r->groups[i].state = EBB_LAYER_MAPPED;
    pthread_mutex_unlock(&r->lock);
    return st;
}

ebb_status ebb_res_set_cache(ebb_res *r, uint64_t n_bytes, ebb_error *err)
{
    uint64_t place = 0;
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i < r->n_extents; i++)
        if (!r->extents[i].is_certain && ebb_pin_bytes(&r->extents[i]) > place)
            place = ebb_pin_bytes(&r->extents[i]);
    close_cache(r);
    pthread_mutex_lock(&r->lock);
    if (r->ring)
        st = ebb_cache_open(&r->cache, r->ring, r->extents, r->n_extents, n_bytes, (size_t)place, err);
    pthread_mutex_unlock(&r->lock);
    return st;
}

const char *ebb_res_io_name(const ebb_res *r)
{
    return r->ops->name;
}

const char *ebb_res_io_note(const ebb_res *r)
{
    return r->note;
}

/* The file of the last layers, and its weights. */
static bool find_stretch(const ebb_res *r, uint32_t *file, uint64_t *from, uint64_t *to)
{
    *from = UINT64_MAX;
    *to = 0;
    *file = 0;
    for (uint32_t i = 0; i < r->n_extents; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (r->files[x->part].fd < 0)
            return false;
        if (x->part != *file)
            *from = UINT64_MAX, *to = 0;
        *file = x->part;
        *from = x->offset < *from ? x->offset : *from;
        *to = x->offset + x->n_bytes > *to ? x->offset + x->n_bytes : *to;
    }
    return *to > *from;
}

void ebb_res_measure(ebb_res *r, ebb_io only, double seconds, ebb_read_speed *speeds)
{
    uint64_t from, to;
    uint32_t file;

    memset(speeds, 0, (EBB_IO_MMAP + 1) * sizeof *speeds);
    if (find_stretch(r, &file, &from, &to))
        ebb_read_measure(r->files, r->n_files, file, from, to - from, only, seconds, speeds);
}

double ebb_res_read_speed(ebb_res *r, uint64_t n_bytes)
{
    uint64_t from, to;
    uint32_t file;

    if (!r->ring || !find_stretch(r, &file, &from, &to))
        return 0;
    return ebb_read_time(r->files, r->n_files, file, from, n_bytes < to - from ? n_bytes : to - from, r->ops);
}

/* -- States ------------------------------------------------------------------ */

uint64_t ebb_res_group_bytes(const ebb_res *r, uint32_t i)
{
    const group *g = &r->groups[i];
    uint64_t sum = 0;

    for (uint32_t k = g->first; k < g->first + g->n; k++)
        sum += r->stays[k] ? r->extents[k].n_bytes : 0;
    return sum;
}

ebb_layer_state ebb_res_state(const ebb_res *r, uint32_t i)
{
    return r->groups[i].state;
}

static uint32_t count_owned(const ebb_res *r, const group *g, ebb_layer_state owner)
{
    uint32_t n = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        n += r->owner[i] == owner;
    return n;
}

static bool is_loading(const ebb_res *r, const group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (r->home[i] && !ebb_ring_is_loaded(r->ring, i))
            return true;
    return false;
}

void ebb_res_states(ebb_res *r, uint8_t *out, uint32_t n)
{
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < n && i < r->n_groups; i++) {
        const group *g = &r->groups[i];

        out[i] = (uint8_t)(g->state != EBB_LAYER_DISK && count_owned(r, g, EBB_LAYER_DISK) > 0 ? EBB_LAYER_PARTLY : g->state);
        if (is_loading(r, g) || (out[i] <= EBB_LAYER_PARTLY && r->ring && ebb_ring_has(r->ring, g->first, g->n)))
            out[i] = EBB_LAYER_READING;
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_in_memory(const ebb_res *r, const group *g)
{
    return r->files[r->extents[g->first].part].fd < 0;
}

/* Extents of the group that stay, to `list`. */
static uint32_t list_staying(const ebb_res *r, const group *g, ebb_res_extent *list)
{
    uint32_t n = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (r->stays[i])
            list[n++] = r->extents[i];
    return n;
}

/* Memory for what stays of the group. */
static ebb_status make_copy(const ebb_res *r, const group *g, ebb_map *copy, ebb_error *err)
{
    uint64_t sum = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        sum += r->stays[i] ? ebb_pin_bytes(&r->extents[i]) : 0;
    return ebb_map_anon((size_t)sum, true, copy, err);
}

/* Read what stays of the group into *copy. */
static ebb_status pin(ebb_res *r, const group *g, ebb_map *copy, ebb_error *err)
{
    ebb_res_extent *list = malloc(g->n * sizeof *list);
    uint32_t n;
    char *to;
    ebb_status st;

    memset(copy, 0, sizeof *copy);
    if (!list)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of %u tensors", g->n);
    n = list_staying(r, g, list);
    st = make_copy(r, g, copy, err);
    if (st == EBB_OK && !is_in_memory(r, g) && n > 0)
        st = ebb_pin_read(r->ops, r->files, r->n_files, list, n, copy->data, r->cancel, err);
    to = copy->data;
    for (uint32_t i = 0; i < n && st == EBB_OK && is_in_memory(r, g); i++) {
        memcpy((char *)(uintptr_t)ebb_pin_address(&list[i], to), r->bases[list[i].part] + list[i].offset, (size_t)list[i].n_bytes);
        to += ebb_pin_bytes(&list[i]);
    }
    if (st != EBB_OK)
        ebb_map_fini(copy);
    free(list);
    return st;
}

/* Pages that the mapping brought into the page cache are let go. */
static void unmap_pages(ebb_res *r, const group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (r->owner[i] != EBB_LAYER_MAPPED)
            continue;
        ebb_map_advise((char *)r->files[x->part].map.data + x->offset, (size_t)x->n_bytes, EBB_ADVISE_DONTNEED);
        ebb_file_drop_cache(r->files[x->part].fd, x->offset, x->n_bytes);
    }
}

static void count_bytes(ebb_res *r, uint32_t id, bool more)
{
    uint64_t *sum = r->owner[id] == EBB_LAYER_PINNED ? &r->pinned_bytes : &r->mapped_bytes;
    uint64_t n = r->owner[id] == EBB_LAYER_PINNED ? ebb_pin_bytes(&r->extents[id]) : r->extents[id].n_bytes;

    if (r->owner[id] != EBB_LAYER_DISK)
        *sum = more ? *sum + n : *sum - n;
}

static void give(ebb_res *r, uint32_t id, ebb_layer_state owner, const char *at)
{
    count_bytes(r, id, false);
    ebb_cache_forget(&r->cache, id);
    if (r->home[id] && r->ring)
        ebb_ring_load(r->ring, id, NULL);
    r->home[id] = NULL;
    if (r->owner[id] == EBB_LAYER_DISK && owner != EBB_LAYER_DISK && r->ring)
        ebb_ring_stream(r->ring, id, false);
    if (r->owner[id] != EBB_LAYER_DISK && owner == EBB_LAYER_DISK)
        ebb_ring_stream(r->ring, id, true);
    r->owner[id] = (uint8_t)owner;
    r->at[id] = at;
    count_bytes(r, id, true);
}

/* `later`: the copy is still to be read. */
static void enter(ebb_res *r, group *g, ebb_layer_state state, ebb_map copy, bool later)
{
    char *to = copy.data;

    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        if (state == EBB_LAYER_DISK || !r->stays[i]) {
            give(r, i, EBB_LAYER_DISK, NULL);
        } else if (state == EBB_LAYER_MAPPED) {
            give(r, i, EBB_LAYER_MAPPED, mapped_at(r, i));
        } else {
            give(r, i, EBB_LAYER_PINNED, later ? NULL : ebb_pin_address(&r->extents[i], to));
            r->home[i] = later ? to : NULL;
            if (later)
                ebb_ring_load(r->ring, i, to);
            to += ebb_pin_bytes(&r->extents[i]);
        }
    }
    ebb_map_fini(&g->copy);
    g->copy = copy;
    g->state = state;
}

/* Whether part of the group is left to the ring in that state. */
static bool is_streamed(const ebb_res *r, const group *g, ebb_layer_state state)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        if (state == EBB_LAYER_DISK || !r->stays[i])
            return true;
    return false;
}

static ebb_status place(ebb_res *r, uint32_t i, ebb_layer_state state, bool later, ebb_error *err)
{
    group *g = &r->groups[i];
    ebb_map copy = { 0 };
    ebb_status st = EBB_OK;

    assert(g->n_acquired == 0);
    if (g->n == 0 || g->state == state)
        return EBB_OK;
    if (state == EBB_LAYER_READING || state == EBB_LAYER_PARTLY || (is_streamed(r, g, state) && (!r->ring || is_in_memory(r, g))))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "weights can only be streamed from a file, through a ring");
    if (state == EBB_LAYER_PINNED)
        st = later ? make_copy(r, g, &copy, err) : pin(r, g, &copy, err);
    if (st != EBB_OK)
        return st;
    if (!is_in_memory(r, g))
        unmap_pages(r, g);
    pthread_mutex_lock(&r->lock);
    enter(r, g, state, copy, later);
    pthread_mutex_unlock(&r->lock);
    return EBB_OK;
}

ebb_status ebb_res_place(ebb_res *r, uint32_t i, ebb_layer_state state, ebb_error *err)
{
    return place(r, i, state, false, err);
}

ebb_status ebb_res_pin_later(ebb_res *r, uint32_t i, ebb_error *err)
{
    return place(r, i, EBB_LAYER_PINNED, r->ring && r->groups[i].n > 0 && !is_in_memory(r, &r->groups[i]), err);
}

ebb_status ebb_res_keep(ebb_res *r, const bool *stays, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t i = 0; i < r->n_groups && st == EBB_OK; i++) {
        group *g = &r->groups[i];
        bool is_new = false;

        for (uint32_t k = g->first; k < g->first + g->n; k++) {
            bool will = !stays || stays[k];

            is_new |= r->stays[k] != will;
            r->stays[k] = will;
        }
        if (is_new && r->ring && !is_in_memory(r, g))
            st = ebb_res_place(r, i, EBB_LAYER_DISK, err);
    }
    return st;
}

/* -- Use --------------------------------------------------------------------- */

/* During the first pass, ask the kernel for the mapped extents that come next:
 * plain faults would read a cold file at a fifth of the disk's speed. */
static void warm_ahead(ebb_res *r, uint32_t id)
{
    r->used_bytes += r->extents[id].n_bytes;
    while (r->n_warmed < r->n_extents && r->warmed_bytes < r->used_bytes + WARM_BYTES) {
        const ebb_res_extent *x = &r->extents[r->n_warmed++];

        r->warmed_bytes += x->n_bytes;
        if (r->owner[r->n_warmed - 1] == EBB_LAYER_MAPPED && r->files[x->part].fd >= 0)
            ebb_map_advise((char *)r->files[x->part].map.data + x->offset, (size_t)x->n_bytes, EBB_ADVISE_WILLNEED);
    }
}

ebb_status ebb_res_acquire(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err)
{
    group *g = &r->groups[r->extents[id].group];
    ebb_status st = EBB_OK;

    assert(id < r->n_extents);
    if (r->n_warmed < r->n_extents)
        warm_ahead(r, id);
    if (r->at[id])
        *ptr = r->at[id];
    else
        st = r->extents[id].is_certain ? EBB_LIMIT : ebb_cache_acquire(&r->cache, id, r->cancel, ptr, err);
    if (st == EBB_LIMIT)
        st = ebb_ring_acquire(r->ring, id, r->cancel, ptr, err);
    if (st == EBB_OK && r->home[id]) {           /* it has come, and stays */
        pthread_mutex_lock(&r->lock);
        ebb_ring_load(r->ring, id, NULL);
        r->at[id] = *ptr;
        r->home[id] = NULL;
        pthread_mutex_unlock(&r->lock);
    }
    g->n_acquired += st == EBB_OK;
    return st;
}

void ebb_res_expect_begin(ebb_res *r)
{
    ebb_cache_begin(&r->cache);
}

void ebb_res_expect(ebb_res *r, uint32_t id)
{
    if (!r->at[id] && !r->home[id])
        ebb_cache_expect(&r->cache, id);
}

bool ebb_res_is_ready(ebb_res *r, uint32_t id)
{
    return r->at[id] || ebb_ring_is_ready(r->ring, id);
}

void ebb_res_release(ebb_res *r, uint32_t id)
{
    group *g = &r->groups[r->extents[id].group];

    assert(id < r->n_extents && g->n_acquired > 0);
    g->n_acquired--;
    if (!r->at[id] && !ebb_cache_release(&r->cache, id))
        ebb_ring_release(r->ring, id);
}

/* The pinned extent that holds the range, NULL if there is none. */
static const char *find_pinned(const ebb_res *r, uint32_t i_file, uint64_t offset, size_t n)
{
    const group *g = &r->groups[r->n_groups - 1];        /* the only rows that are also an extent: a tied output */

    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (r->owner[i] == EBB_LAYER_PINNED && r->at[i] && x->part == i_file && offset >= x->offset && offset + n <= x->offset + x->n_bytes)
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
    from = f->fd < 0 ? r->bases[i_file] + offset : find_pinned(r, i_file, offset, n);
    if (!from)
        return ebb_file_read_at(f->fd, f->path, out, n, offset, err);
    memcpy(out, from, n);
    return EBB_OK;
}

static double resident_share(const ebb_res *r, const group *g)
{
    uint64_t all = 0, here = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        all += r->extents[i].n_bytes;
        here += r->at[i] || (r->home[i] && ebb_ring_is_loaded(r->ring, i)) ? r->extents[i].n_bytes : 0;
    }
    return all ? (double)here / (double)all : 0;
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
    out->ring_bytes = ring.ring_bytes;
    out->cache_bytes = r->cache.memory.n_bytes;
    out->read_bytes = r->read_bytes + r->cache.read_bytes + ring.read_bytes;
    out->stall_ns = r->stall_ns + ring.stall_ns;
    out->disk_bytes_s = ring.bytes_s;
    for (uint32_t i = 0; i + 1 < r->n_groups; i++)
        layers += resident_share(r, &r->groups[i]);
    out->n_resident = (uint32_t)(layers + 1e-6);
    pthread_mutex_unlock(&r->lock);
}
