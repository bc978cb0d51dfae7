/* Residency of weights (residency.h): mapped files and pinned copies. */
#include "residency/residency.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "os/map.h"

#define PIN_ALIGN   64u                          /* of an extent in a pinned copy */
#define READ_BYTES  ((size_t)8 << 20)            /* a pinned copy is read and its cache dropped in steps of this */
#define WARM_BYTES  ((uint64_t)128 << 20)        /* how far the first pass asks the kernel to read ahead of use */

typedef struct part {
    const char *path;
    int         fd;              /* the caller's; -1: in memory */
    ebb_map     map;             /* the whole file; empty if in memory */
    const char *base;            /* first byte */
    uint64_t    n_bytes;
} part;

typedef struct group {
    ebb_layer_state state;
    uint32_t first, n;           /* its extents */
    uint64_t n_bytes;            /* of a pinned copy */
    ebb_map  copy;               /* the pinned copy; empty unless PINNED */
} group;

struct ebb_res {
    part           *parts;
    uint32_t        n_parts;
    ebb_res_extent *extents;
    const char    **at;          /* where each extent is now */
    uint32_t        n_extents;
    group          *groups;      /* n_layers + 1 */
    uint32_t        n_groups;
    uint32_t        n_acquired;
    uint32_t        n_warmed;    /* extents that the kernel was asked to read, in order */
    uint64_t        warmed_bytes, used_bytes;    /* of them; used: by the first pass so far */
    _Atomic uint64_t pinned_bytes, mapped_bytes;
};

/* -- Opening ----------------------------------------------------------------- */

/* The file may have changed since its header was read: its size is asked again. */
static ebb_status map_part(part *p, const ebb_res_part *from, ebb_error *err)
{
    ebb_status st;

    p->path = from->path;
    p->fd = from->fd;
    p->n_bytes = from->n_bytes;
    p->base = from->memory;
    if (p->fd < 0)
        return EBB_OK;
    st = ebb_file_size(p->fd, p->path, &p->n_bytes, err);
    if (st == EBB_OK)
        st = ebb_map_file(p->fd, p->path, (size_t)p->n_bytes, &p->map, err);
    p->base = p->map.data;
    return st;
}

static bool in_part(const ebb_res *r, uint32_t i_part, uint64_t offset, uint64_t n)
{
    return i_part < r->n_parts && offset <= r->parts[i_part].n_bytes && n <= r->parts[i_part].n_bytes - offset;
}

static ebb_status add_extents(ebb_res *r, const ebb_res_extent *extents, uint32_t n, ebb_error *err)
{
    memcpy(r->extents, extents, n * sizeof *extents);
    r->n_extents = n;
    for (uint32_t i = 0; i < n; i++) {
        const ebb_res_extent *x = &r->extents[i];
        group *g = &r->groups[x->group];

        if (!in_part(r, x->part, x->offset, x->n_bytes))
            return EBB_FAIL(err, EBB_FORMAT, "tensor %s ends beyond the file: the file is truncated", x->name);
        if (g->n == 0)
            g->first = i;
        assert(g->first + g->n == i);            /* a group's extents are contiguous */
        g->n++;
        g->state = EBB_LAYER_MAPPED;
        g->n_bytes += (x->n_bytes + PIN_ALIGN - 1) / PIN_ALIGN * PIN_ALIGN;
        r->at[i] = r->parts[x->part].base + x->offset;
        r->mapped_bytes += x->n_bytes;
    }
    return EBB_OK;
}

ebb_status ebb_res_open(const ebb_res_part *parts, uint32_t n_parts, const ebb_res_extent *extents,
                        uint32_t n_extents, uint32_t n_layers, ebb_res **out, ebb_error *err)
{
    ebb_res *r = calloc(1, sizeof *r);
    ebb_status st = EBB_OK;

    *out = NULL;
    if (!r)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the weight table");
    r->parts = calloc(n_parts, sizeof *r->parts);
    r->extents = calloc(n_extents, sizeof *r->extents);
    r->at = calloc(n_extents, sizeof *r->at);
    r->groups = calloc(n_layers + 1, sizeof *r->groups);
    if (!r->parts || !r->extents || !r->at || !r->groups) {
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the weight table");
    } else {
        r->n_groups = n_layers + 1;
        while (st == EBB_OK && r->n_parts < n_parts) {
            st = map_part(&r->parts[r->n_parts], &parts[r->n_parts], err);
            r->n_parts++;
        }
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
    assert(r->n_acquired == 0);
    for (uint32_t i = 0; i < r->n_groups; i++)
        ebb_map_fini(&r->groups[i].copy);
    for (uint32_t i = 0; i < r->n_parts; i++)
        ebb_map_fini(&r->parts[i].map);
    free(r->parts);
    free(r->extents);
    free(r->at);
    free(r->groups);
    free(r);
}

/* -- States ------------------------------------------------------------------ */

uint64_t ebb_res_group_bytes(const ebb_res *r, uint32_t i)
{
    return r->groups[i].n_bytes;
}

ebb_layer_state ebb_res_state(const ebb_res *r, uint32_t i)
{
    return r->groups[i].state;
}

/* Read an extent into its copy; behind the read its pages leave the page cache (R1). */
static ebb_status copy_extent(ebb_res *r, const ebb_res_extent *x, char *to, ebb_error *err)
{
    part *p = &r->parts[x->part];

    if (p->fd < 0) {
        memcpy(to, p->base + x->offset, x->n_bytes);
        return EBB_OK;
    }
    for (uint64_t done = 0; done < x->n_bytes;) {
        size_t n = x->n_bytes - done < READ_BYTES ? (size_t)(x->n_bytes - done) : READ_BYTES;
        ebb_status st = ebb_file_read_at(p->fd, p->path, to + done, n, x->offset + done, err);

        if (st != EBB_OK)
            return st;
        ebb_map_advise((char *)p->map.data + x->offset + done, n, EBB_ADVISE_DONTNEED);
        ebb_file_drop_cache(p->fd, x->offset + done, n);
        done += n;
    }
    return EBB_OK;
}

static ebb_status pin(ebb_res *r, group *g, ebb_error *err)
{
    ebb_map copy;
    ebb_status st = ebb_map_anon((size_t)g->n_bytes, true, &copy, err);
    char *to = copy.data;

    for (uint32_t i = g->first; i < g->first + g->n && st == EBB_OK; i++) {
        st = copy_extent(r, &r->extents[i], to, err);
        to += (r->extents[i].n_bytes + PIN_ALIGN - 1) / PIN_ALIGN * PIN_ALIGN;
    }
    if (st != EBB_OK) {
        ebb_map_fini(&copy);
        return st;
    }
    to = copy.data;
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        r->at[i] = to;
        to += (r->extents[i].n_bytes + PIN_ALIGN - 1) / PIN_ALIGN * PIN_ALIGN;
    }
    g->copy = copy;
    return EBB_OK;
}

static void unpin(ebb_res *r, group *g)
{
    ebb_map_fini(&g->copy);
    for (uint32_t i = g->first; i < g->first + g->n; i++)
        r->at[i] = r->parts[r->extents[i].part].base + r->extents[i].offset;
}

static uint64_t sum_bytes(const ebb_res *r, const group *g)
{
    uint64_t sum = 0;

    for (uint32_t i = g->first; i < g->first + g->n; i++)
        sum += r->extents[i].n_bytes;
    return sum;
}

ebb_status ebb_res_place(ebb_res *r, uint32_t i, ebb_layer_state state, ebb_error *err)
{
    group *g = &r->groups[i];
    uint64_t n_bytes = sum_bytes(r, g);
    ebb_status st = EBB_OK;

    assert(r->n_acquired == 0);
    if (g->n == 0 || g->state == state)
        return EBB_OK;
    if (state == EBB_LAYER_PINNED)
        st = pin(r, g, err);
    else if (state == EBB_LAYER_MAPPED)
        unpin(r, g);
    else
        return EBB_FAIL(err, EBB_UNSUPPORTED, "weights can be mapped or pinned; there is no reader for others");
    if (st != EBB_OK)
        return st;
    g->state = state;
    if (state == EBB_LAYER_PINNED) {
        r->pinned_bytes += g->n_bytes;
        r->mapped_bytes -= n_bytes;
    } else {
        r->pinned_bytes -= g->n_bytes;
        r->mapped_bytes += n_bytes;
    }
    return EBB_OK;
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
        if (r->groups[x->group].state == EBB_LAYER_MAPPED && r->parts[x->part].fd >= 0)
            ebb_map_advise((char *)r->parts[x->part].map.data + x->offset, (size_t)x->n_bytes, EBB_ADVISE_WILLNEED);
    }
}

ebb_status ebb_res_acquire(ebb_res *r, uint32_t id, const void **ptr, ebb_error *err)
{
    (void)err;                                   /* mapped and pinned extents are always there */
    assert(id < r->n_extents);
    if (r->n_warmed < r->n_extents)
        warm_ahead(r, id);
    r->n_acquired++;
    *ptr = r->at[id];
    return EBB_OK;
}

void ebb_res_release(ebb_res *r, uint32_t id)
{
    assert(id < r->n_extents && r->n_acquired > 0);
    (void)id;
    r->n_acquired--;
}

/* The pinned extent that holds the range, NULL if there is none. */
static const char *find_pinned(const ebb_res *r, uint32_t i_part, uint64_t offset, size_t n)
{
    const group *g = &r->groups[r->n_groups - 1];        /* the only rows that are also an extent: a tied output */

    if (g->state != EBB_LAYER_PINNED)
        return NULL;
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const ebb_res_extent *x = &r->extents[i];

        if (x->part == i_part && offset >= x->offset && offset + n <= x->offset + x->n_bytes)
            return r->at[i] + (offset - x->offset);
    }
    return NULL;
}

ebb_status ebb_res_read(ebb_res *r, uint32_t i_part, uint64_t offset, void *out, size_t n, ebb_error *err)
{
    const part *p = &r->parts[i_part];
    const char *from;

    if (!in_part(r, i_part, offset, n))
        return EBB_FAIL(err, EBB_FORMAT, "%s: truncated: no %zu bytes at %llu", i_part < r->n_parts ? p->path : "part",
                        n, (unsigned long long)offset);
    from = p->fd < 0 ? p->base + offset : find_pinned(r, i_part, offset, n);
    if (!from)
        return ebb_file_read_at(p->fd, p->path, out, n, offset, err);
    memcpy(out, from, n);
    return EBB_OK;
}

void ebb_res_get_stats(ebb_res *r, ebb_res_stats *out)
{
    memset(out, 0, sizeof *out);
    out->pinned_bytes = r->pinned_bytes;
    out->mapped_bytes = r->mapped_bytes;
}
