/* Blocks of K and V in a file (kv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/invariant.h"
#include "kv/kv_impl.h"
#include "os/file.h"
#include "os/folder.h"

static ebb_kv_pool *main_pool(ebb_kv *kv)
{
    return &kv->pools[EBB_KV_ALL];
}

ebb_status ebb_kv_set_spill(ebb_kv *kv, const char *dir, uint32_t max_resident, ebb_error *err)
{
    size_t n = strlen(dir) + 64;
    char *path = malloc(n);

    if (!path)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a path");
    snprintf(path, n, "%s/overflow-%ld-%p.kv", dir, (long)getpid(), (void *)kv);     /* programs share the folder */
    free(kv->spill.path);
    kv->spill.path = path;
    kv->spill.max_resident = max_resident;
    return EBB_OK;
}

uint32_t ebb_kv_n_spilled(const ebb_kv *kv)
{
    return kv->spill.n_spilled;
}

/* -- The file ------------------------------------------------------------------------ */

/* Unlinked at once: no other program shall see the file, and it shall not outlive the process. */
static ebb_status open_spill_file(ebb_kv *kv, ebb_error *err)
{
    ebb_kv_spill_file *f = &kv->spill;
    ebb_buf name = { 0 };
    ebb_status st;

    if (f->map.data)
        return EBB_OK;
    if (!f->path)
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "K and V may not be spilled to disk here (--no-kv-cache, or it is encrypted)");
    st = ebb_file_begin_beside(f->path, &name, &f->fd, err);
    if (st == EBB_OK)
        ebb_file_remove(name.data);
    ebb_buf_fini(&name);
    if (st != EBB_OK)
        return st;
    st = ebb_map_file(f->fd, f->path, main_pool(kv)->n_blocks * main_pool(kv)->block_bytes, &f->map, err);
    if (st == EBB_OK)
        st = ebb_guard_add(&f->map, &f->guard, err);
    if (st == EBB_OK)
        return EBB_OK;
    ebb_map_fini(&f->map);
    ebb_file_close(f->fd);
    f->fd = -1;
    return st;
}

void ebb_kv_close_spill(ebb_kv *kv)
{
    ebb_kv_spill_file *f = &kv->spill;

    if (!f->map.data)
        return;
    ebb_guard_remove(f->guard);
    ebb_map_fini(&f->map);
    ebb_file_close(f->fd);
    f->guard = NULL;
    f->fd = -1;
}

/* Writers may still read blocks that were reloaded. */
static void close_spill_if_unused(ebb_kv *kv)
{
    if (kv->spill.n_spilled > 0)
        return;
    for (uint32_t b = 0; b < main_pool(kv)->n_blocks; b++)
        if (main_pool(kv)->blocks[b].n_writer_refs > 0)
            return;
    ebb_kv_close_spill(kv);
}

/* -- Spilling -------------------------------------------------------------------------------- */

/* Synced at once, so that its pages of the page cache can be dropped before the next block is written. */
static ebb_status spill_block(ebb_kv *kv, uint32_t b, ebb_error *err)
{
    const ebb_kv_pool *p = main_pool(kv);
    const ebb_kv_spill_file *f = &kv->spill;
    uint64_t at = (uint64_t)b * p->block_bytes;
    ebb_status st = ebb_file_write_at(f->fd, f->path, p->data + at, p->block_bytes, at, err);

    if (st == EBB_OK)
        st = ebb_file_sync(f->fd, f->path, err);
    if (st != EBB_OK)
        return st;
    ebb_file_drop_cache(f->fd, at, p->block_bytes);
    ebb_kv_release_memory(kv, main_pool(kv), b);
    p->blocks[b].is_spilled = true;
    kv->spill.n_spilled++;
    return EBB_OK;
}

static bool can_spill(const ebb_kv_pool *p, uint32_t b)
{
    return p->blocks[b].is_hashed && !p->blocks[b].is_spilled && p->blocks[b].n_writer_refs == 0;
}

ebb_status ebb_kv_spill(ebb_kv *kv, uint32_t n, uint32_t *n_spilled, ebb_error *err)
{
    ebb_kv_pool *p = main_pool(kv);
    ebb_status st = p->block_bytes > 0 ? open_spill_file(kv, err) : EBB_OK;

    *n_spilled = 0;
    if (p->block_bytes == 0)                     /* no layer with full attention */
        return EBB_OK;
    for (uint32_t i = 0; i < p->n_stack && st == EBB_OK; i++)
        ebb_kv_release_memory(kv, p, p->free[i]);        /* of blocks that were used once */
    for (int held = 0; held < 2; held++)
        for (uint32_t b = 0; b < p->n_blocks && *n_spilled < n && st == EBB_OK; b++)
            if (can_spill(p, b) && (p->blocks[b].n_refs > 0) == held) {
                st = spill_block(kv, b, err);
                *n_spilled += st == EBB_OK;
            }
    EBB_INVARIANT(ebb_kv_check(kv));
    return *n_spilled > 0 ? EBB_OK : st;
}

ebb_status ebb_kv_spill_for(ebb_kv *kv, uint32_t n, ebb_error *err)
{
    const ebb_kv_pool *p = main_pool(kv);
    uint32_t n_in = p->n_blocks - p->n_stack - kv->spill.n_spilled, n_spilled;

    if (kv->spill.max_resident == 0 || n_in + n <= kv->spill.max_resident)
        return EBB_OK;
    return ebb_kv_spill(kv, n_in + n - kv->spill.max_resident, &n_spilled, err);
}

/* -- Reloading ---------------------------------------------------------------------------------- */

static void copy_from_file(ebb_kv *kv, uint32_t b)
{
    ebb_kv_pool *p = main_pool(kv);

    ebb_kv_take_memory(kv, p, b);
    memcpy(p->data + b * p->block_bytes, ebb_kv_bytes_of(kv, p, b), p->block_bytes);
}

void ebb_kv_unspill_block(ebb_kv *kv, uint32_t b)
{
    copy_from_file(kv, b);
    ebb_kv_forget_spilled(kv, b);
}

/* Reloads the block, or leaves it spilled: a block that can be found by its hash never has missing bytes. */
static bool unspill_if_intact(ebb_kv *kv, uint32_t b)
{
    copy_from_file(kv, b);
    if (ebb_kv_spill_is_lost(kv)) {
        ebb_kv_release_memory(kv, main_pool(kv), b);
        return false;
    }
    ebb_kv_forget_spilled(kv, b);
    return true;
}

void ebb_kv_forget_spilled(ebb_kv *kv, uint32_t b)
{
    main_pool(kv)->blocks[b].is_spilled = false;
    kv->spill.n_spilled--;
}

uint32_t ebb_kv_unspill(ebb_kv *kv, uint32_t n)
{
    const ebb_kv_pool *p = main_pool(kv);
    uint32_t n_back = 0;

    for (uint32_t b = p->n_blocks; b-- > 0 && n_back < n && kv->spill.n_spilled > 0;) {
        if (!p->blocks[b].is_spilled)
            continue;
        if (kv->spill.max_resident && p->n_blocks - p->n_stack - kv->spill.n_spilled >= kv->spill.max_resident)
            break;
        if (!unspill_if_intact(kv, b))
            return n_back;                       /* the next pass fails for the same reason and reports it */
        n_back++;
    }
    if (kv->spill.map.data)
        close_spill_if_unused(kv);
    return n_back;
}

void ebb_kv_prefetch_spilled(const ebb_kv *kv, const ebb_block_table *t, uint32_t i_layer)
{
    const ebb_kv_layout *l = &kv->layers[i_layer];
    const ebb_kv_pool *p = &kv->pools[EBB_KV_ALL];
    size_t n = (i_layer + 1 < kv->n_layers && l[1].group == l->group && l[1].offset > l->offset ? l[1].offset
                                                                                                : p->block_bytes) -
               l->offset;

    for (uint32_t i = 0; i < t->n_blocks && kv->spill.n_spilled > 0 && l->group == EBB_KV_ALL; i++) {
        uint32_t b = t->blocks[EBB_KV_ALL][i];

        if (b != EBB_KV_NONE && p->blocks[b].is_spilled)
            ebb_map_advise((char *)ebb_kv_bytes_of(kv, p, b) + l->offset, n, EBB_ADVISE_WILLNEED);
    }
}

/* -- A lost file ------------------------------------------------------------------------------ */

const ebb_guard *ebb_kv_spill_guard(const ebb_kv *kv)
{
    return kv->spill.guard;
}

bool ebb_kv_spill_is_lost(const ebb_kv *kv)
{
    return ebb_guard_is_hit(kv->spill.guard);
}

void ebb_kv_drop_spilled(ebb_kv *kv)
{
    ebb_kv_pool *p = main_pool(kv);

    for (uint32_t b = 0; b < p->n_blocks; b++) {
        if (!p->blocks[b].is_spilled)
            continue;
        if (p->blocks[b].n_refs == 0) {          /* on the LRU list */
            ebb_kv_lru_remove(p, b);
            p->free[p->n_stack++] = b;
        }
        ebb_kv_clear_hash(p, b);
        ebb_kv_forget_spilled(kv, b);
    }
    EBB_INVARIANT(ebb_kv_check(kv));
    ebb_kv_close_spill(kv);
}
