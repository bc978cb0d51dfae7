/* Blocks of K and V in a file (kv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv/kv_impl.h"
#include "os/file.h"
#include "os/folder.h"

#define PAGE ((uintptr_t)4096)

static ebb_kv_pool *all(ebb_kv *kv)
{
    return &kv->pools[EBB_KV_ALL];
}

ebb_status ebb_kv_overflow_to(ebb_kv *kv, const char *dir, uint32_t max_in, ebb_error *err)
{
    size_t n = strlen(dir) + 64;
    char *path = malloc(n);

    if (!path)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    snprintf(path, n, "%s/overflow-%ld-%p.kv", dir, (long)getpid(), (void *)kv);     /* programs share the folder */
    free(kv->file.path);
    kv->file.path = path;
    kv->file.max_in = max_in;
    return EBB_OK;
}

uint32_t ebb_kv_n_out(const ebb_kv *kv)
{
    return kv->file.n_out;
}

/* -- The file ------------------------------------------------------------------------ */

/* Nobody else shall see it, and it shall not outlive us: it loses its name at once. */
static ebb_status open_file(ebb_kv *kv, ebb_error *err)
{
    ebb_kv_file *f = &kv->file;
    ebb_status st;

    if (f->map.data)
        return EBB_OK;
    if (!f->path)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "K and V may not be written to disk here (--no-kv-cache)");
    st = ebb_file_open(f->path, EBB_FILE_CREATE, &f->fd, err);
    if (st != EBB_OK)
        return st;
    ebb_file_remove(f->path);
    st = ebb_map_file(f->fd, f->path, all(kv)->n_blocks * all(kv)->block_bytes, &f->map, err);
    if (st == EBB_OK)
        st = ebb_guard_add(&f->map, &f->guard, err);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_map_fini(&f->map);
    ebb_file_close(f->fd);
    f->fd = -1;
    return st;
}

void ebb_kv_overflow_close(ebb_kv *kv)
{
    ebb_kv_file *f = &kv->file;

    if (!f->map.data)
        return;
    ebb_guard_remove(f->guard);
    ebb_map_fini(&f->map);
    ebb_file_close(f->fd);
    f->guard = NULL;
    f->fd = -1;
}

/* Writers may still read what came in from the file. */
static void close_if_unused(ebb_kv *kv)
{
    if (kv->file.n_out > 0)
        return;
    for (uint32_t b = 0; b < all(kv)->n_blocks; b++)
        if (all(kv)->blocks[b].n_held > 0)
            return;
    ebb_kv_overflow_close(kv);
}

/* -- Out -------------------------------------------------------------------------------- */

/* Whole pages of the block; those that it shares with a neighbour stay. */
static void give_pages(const ebb_kv_pool *p, uint32_t b)
{
    uintptr_t from = ((uintptr_t)p->data + b * p->block_bytes + PAGE - 1) & ~(PAGE - 1);
    uintptr_t to = ((uintptr_t)p->data + (b + 1) * p->block_bytes) & ~(PAGE - 1);

    if (to > from)
        ebb_map_advise((void *)from, to - from, EBB_ADVISE_DONTNEED);
}

/* Synced at once, so that its pages of the cache can go before the next ones come. */
static ebb_status send_out(ebb_kv *kv, uint32_t b, ebb_error *err)
{
    const ebb_kv_pool *p = all(kv);
    const ebb_kv_file *f = &kv->file;
    uint64_t at = (uint64_t)b * p->block_bytes;
    ebb_status st = ebb_file_write_at(f->fd, f->path, p->data + at, p->block_bytes, at, err);

    if (st == EBB_OK)
        st = ebb_file_sync(f->fd, f->path, err);
    if (st != EBB_OK)
        return st;
    ebb_file_drop_cache(f->fd, at, p->block_bytes);
    give_pages(p, b);
    p->blocks[b].is_out = true;
    kv->file.n_out++;
    return EBB_OK;
}

static bool may_go(const ebb_kv_pool *p, uint32_t b)
{
    return p->blocks[b].is_named && !p->blocks[b].is_out && p->blocks[b].n_held == 0;
}

ebb_status ebb_kv_overflow(ebb_kv *kv, uint32_t n, uint32_t *n_out, ebb_error *err)
{
    ebb_kv_pool *p = all(kv);
    ebb_status st = p->block_bytes > 0 ? open_file(kv, err) : EBB_OK;

    *n_out = 0;
    if (p->block_bytes == 0)                     /* no layer sees everything */
        return EBB_OK;
    for (uint32_t i = 0; i < p->n_stack && st == EBB_OK; i++)
        give_pages(p, p->free[i]);               /* of blocks that were used once */
    for (int held = 0; held < 2; held++)
        for (uint32_t b = 0; b < p->n_blocks && *n_out < n && st == EBB_OK; b++)
            if (may_go(p, b) && (p->blocks[b].n_refs > 0) == held) {
                st = send_out(kv, b, err);
                *n_out += st == EBB_OK;
            }
    return *n_out > 0 ? EBB_OK : st;
}

ebb_status ebb_kv_overflow_for(ebb_kv *kv, uint32_t n, ebb_error *err)
{
    const ebb_kv_pool *p = all(kv);
    uint32_t n_in = p->n_blocks - p->n_stack - kv->file.n_out, n_out;

    if (kv->file.max_in == 0 || n_in + n <= kv->file.max_in)
        return EBB_OK;
    return ebb_kv_overflow(kv, n_in + n - kv->file.max_in, &n_out, err);
}

/* -- In ---------------------------------------------------------------------------------- */

static void copy_in(ebb_kv *kv, uint32_t b)
{
    const ebb_kv_pool *p = all(kv);

    memcpy(p->data + b * p->block_bytes, ebb_kv_bytes_of(kv, p, b), p->block_bytes);
}

void ebb_kv_bring_in(ebb_kv *kv, uint32_t b)
{
    copy_in(kv, b);
    ebb_kv_forget_out(kv, b);
}

/* The block as it was, or still out: what can be found by its name is never made of what is missing. */
static bool take_back(ebb_kv *kv, uint32_t b)
{
    copy_in(kv, b);
    if (ebb_kv_is_lost(kv))
        return false;
    ebb_kv_forget_out(kv, b);
    return true;
}

void ebb_kv_forget_out(ebb_kv *kv, uint32_t b)
{
    all(kv)->blocks[b].is_out = false;
    kv->file.n_out--;
}

uint32_t ebb_kv_overflow_back(ebb_kv *kv, uint32_t n)
{
    const ebb_kv_pool *p = all(kv);
    uint32_t n_back = 0;

    for (uint32_t b = p->n_blocks; b-- > 0 && n_back < n && kv->file.n_out > 0;) {
        if (!p->blocks[b].is_out)
            continue;
        if (kv->file.max_in && p->n_blocks - p->n_stack - kv->file.n_out >= kv->file.max_in)
            break;
        if (!take_back(kv, b))
            return n_back;                       /* the next pass finds out, too, and says so */
        n_back++;
    }
    if (kv->file.map.data)
        close_if_unused(kv);
    return n_back;
}

void ebb_kv_ahead(const ebb_kv *kv, const ebb_kv_table *t, uint32_t i_layer)
{
    const ebb_kv_place *l = &kv->layers[i_layer];
    const ebb_kv_pool *p = &kv->pools[EBB_KV_ALL];
    size_t n = (i_layer + 1 < kv->n_layers && l[1].group == l->group && l[1].offset > l->offset ? l[1].offset : p->block_bytes) - l->offset;

    for (uint32_t i = 0; i < t->n_blocks && kv->file.n_out > 0 && l->group == EBB_KV_ALL; i++) {
        uint32_t b = t->blocks[EBB_KV_ALL][i];

        if (b != EBB_KV_NONE && p->blocks[b].is_out)
            ebb_map_advise((char *)ebb_kv_bytes_of(kv, p, b) + l->offset, n, EBB_ADVISE_WILLNEED);
    }
}

/* -- Losing it ------------------------------------------------------------------------------ */

const ebb_guard *ebb_kv_guard(const ebb_kv *kv)
{
    return kv->file.guard;
}

bool ebb_kv_is_lost(const ebb_kv *kv)
{
    return ebb_guard_is_hit(kv->file.guard);
}

void ebb_kv_overflow_drop(ebb_kv *kv)
{
    ebb_kv_pool *p = all(kv);

    for (uint32_t b = 0; b < p->n_blocks; b++) {
        if (!p->blocks[b].is_out)
            continue;
        if (p->blocks[b].n_refs == 0) {          /* on the list of those that can be found */
            ebb_kv_unlist(p, b);
            p->free[p->n_stack++] = b;
        }
        ebb_kv_unname(p, b);
        ebb_kv_forget_out(kv, b);
    }
    ebb_kv_overflow_close(kv);
}
