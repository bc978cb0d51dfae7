/* The KV pool (kv.h). */
#include "kv/kv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "os/map.h"

#define LAYER_ALIGN 64u

typedef struct layer {
    size_t offset;               /* in a block */
    size_t k_head, v_head;       /* bytes of a head's rows */
    size_t v_offset;             /* of V, in the layer */
} layer;

struct ebb_kv {
    ebb_map   pool;
    size_t    block_bytes;
    uint32_t  n_blocks, n_free, n_layers;
    uint32_t *free;              /* stack of free blocks */
    uint32_t *n_refs;            /* tables that hold each block */
    layer    *layers;
};

/* Places the layers of a block in `out` (NULL: only counts); returns the bytes of a block. */
static size_t place_layers(const ebb_kv_shape *shape, layer *out)
{
    size_t at = 0;

    for (uint32_t i = 0; i < shape->n_layers; i++) {
        const ebb_kv_layer *l = &shape->layers[i];
        size_t k = EBB_KV_BLOCK * ebb_kv_row_bytes(shape->k_type, l->dim_k);
        size_t v = EBB_KV_BLOCK * ebb_kv_row_bytes(shape->v_type, l->dim_v);

        if (out)
            out[i] = (layer){ .offset = at, .k_head = k, .v_head = v, .v_offset = l->n_head * k };
        at += (l->n_head * (k + v) + LAYER_ALIGN - 1) / LAYER_ALIGN * LAYER_ALIGN;
    }
    return at;
}

uint64_t ebb_kv_block_bytes(const ebb_kv_shape *shape)
{
    return place_layers(shape, NULL);
}

uint32_t ebb_kv_blocks_for(uint32_t n_ctx)
{
    return n_ctx / EBB_KV_BLOCK + (n_ctx % EBB_KV_BLOCK != 0) + 1;
}

ebb_status ebb_kv_open(const ebb_kv_shape *shape, uint32_t n_blocks, ebb_kv **out, ebb_error *err)
{
    ebb_kv *kv = calloc(1, sizeof *kv);
    ebb_status st = EBB_OK;

    *out = NULL;
    if (kv) {
        kv->free = calloc(n_blocks, sizeof *kv->free);
        kv->n_refs = calloc(n_blocks, sizeof *kv->n_refs);
        kv->layers = calloc(shape->n_layers, sizeof *kv->layers);
    }
    if (!kv || !kv->free || !kv->n_refs || !kv->layers)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the table of %u KV blocks", n_blocks);
    if (st == EBB_OK) {
        kv->block_bytes = place_layers(shape, kv->layers);
        kv->n_layers = shape->n_layers;
        st = ebb_map_anon(kv->block_bytes * n_blocks, true, &kv->pool, err);
    }
    if (st != EBB_OK) {
        ebb_kv_close(kv);
        return st;
    }
    kv->n_blocks = kv->n_free = n_blocks;
    for (uint32_t i = 0; i < n_blocks; i++)
        kv->free[i] = n_blocks - 1 - i;          /* block 0 is taken first */
    *out = kv;
    return EBB_OK;
}

void ebb_kv_close(ebb_kv *kv)
{
    if (!kv)
        return;
    ebb_map_fini(&kv->pool);
    free(kv->free);
    free(kv->n_refs);
    free(kv->layers);
    free(kv);
}

uint64_t ebb_kv_bytes(const ebb_kv *kv)
{
    return (uint64_t)kv->block_bytes * kv->n_blocks;
}

uint32_t ebb_kv_n_free(const ebb_kv *kv)
{
    return kv->n_free;
}

/* -- Tables ------------------------------------------------------------------ */

static uint32_t blocks_of(uint32_t n_pos)
{
    return n_pos / EBB_KV_BLOCK + (n_pos % EBB_KV_BLOCK != 0);
}

ebb_status ebb_kv_table_init(ebb_kv_table *t, uint32_t n_ctx, ebb_error *err)
{
    memset(t, 0, sizeof *t);
    t->cap = blocks_of(n_ctx);
    t->blocks = calloc(t->cap ? t->cap : 1, sizeof *t->blocks);
    return t->blocks ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %u blocks", t->cap);
}

void ebb_kv_table_fini(ebb_kv *kv, ebb_kv_table *t)
{
    if (t->blocks)
        ebb_kv_cut(kv, t, 0);
    free(t->blocks);
    memset(t, 0, sizeof *t);
}

static uint32_t take(ebb_kv *kv)
{
    uint32_t b = kv->free[--kv->n_free];

    kv->n_refs[b] = 1;
    return b;
}

static void drop(ebb_kv *kv, uint32_t b)
{
    assert(kv->n_refs[b] > 0);
    if (--kv->n_refs[b] == 0)
        kv->free[kv->n_free++] = b;
}

ebb_status ebb_kv_grow(ebb_kv *kv, ebb_kv_table *t, uint32_t n_pos, ebb_error *err)
{
    uint32_t want = blocks_of(n_pos);
    uint32_t *last = t->n_pos % EBB_KV_BLOCK ? &t->blocks[t->n_blocks - 1] : NULL;
    bool copies = last && n_pos > t->n_pos && kv->n_refs[*last] > 1;
    uint32_t need = want - t->n_blocks + copies;

    assert(n_pos >= t->n_pos);
    if (want > t->cap)
        return EBB_FAIL(err, EBB_CONTEXT, "%u tokens do not fit a context of %u", n_pos, t->cap * EBB_KV_BLOCK);
    if (need > kv->n_free)
        return EBB_FAIL(err, EBB_BUDGET, "the KV pool has %u free blocks of %u tokens, %u are needed", kv->n_free,
                        EBB_KV_BLOCK, need);
    if (copies) {
        uint32_t b = take(kv);

        memcpy((char *)kv->pool.data + b * kv->block_bytes, (char *)kv->pool.data + *last * kv->block_bytes,
               kv->block_bytes);
        drop(kv, *last);
        *last = b;
    }
    while (t->n_blocks < want)
        t->blocks[t->n_blocks++] = take(kv);
    t->n_pos = n_pos;
    return EBB_OK;
}

void ebb_kv_cut(ebb_kv *kv, ebb_kv_table *t, uint32_t n_pos)
{
    assert(n_pos <= t->n_pos);
    while (t->n_blocks > blocks_of(n_pos))
        drop(kv, t->blocks[--t->n_blocks]);
    t->n_pos = n_pos;
}

void ebb_kv_share(ebb_kv *kv, ebb_kv_table *t, const ebb_kv_table *from, uint32_t n_pos)
{
    assert(t != from && n_pos <= from->n_pos && blocks_of(n_pos) <= t->cap);
    ebb_kv_cut(kv, t, 0);
    while (t->n_blocks < blocks_of(n_pos)) {
        uint32_t b = from->blocks[t->n_blocks];

        kv->n_refs[b]++;
        t->blocks[t->n_blocks++] = b;
    }
    t->n_pos = n_pos;
}

/* -- Rows -------------------------------------------------------------------- */

void *ebb_kv_k(const ebb_kv *kv, uint32_t block, uint32_t i_layer, uint32_t head)
{
    const layer *l = &kv->layers[i_layer];

    return (char *)kv->pool.data + block * kv->block_bytes + l->offset + head * l->k_head;
}

void *ebb_kv_v(const ebb_kv *kv, uint32_t block, uint32_t i_layer, uint32_t head)
{
    const layer *l = &kv->layers[i_layer];

    return (char *)kv->pool.data + block * kv->block_bytes + l->offset + l->v_offset + head * l->v_head;
}

size_t ebb_kv_k_row_bytes(const ebb_kv *kv, uint32_t i_layer)
{
    return kv->layers[i_layer].k_head / EBB_KV_BLOCK;
}

size_t ebb_kv_v_row_bytes(const ebb_kv *kv, uint32_t i_layer)
{
    return kv->layers[i_layer].v_head / EBB_KV_BLOCK;
}
