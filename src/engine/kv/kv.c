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

typedef struct kv_block {
    uint32_t n_refs;             /* tables and writers that hold it */
    uint32_t next_named;         /* in its bucket */
    uint32_t older, newer;       /* among those that are named and have no references */
    bool     is_named;
    uint8_t  name[16];
} kv_block;

struct ebb_kv {
    ebb_map   pool;
    size_t    block_bytes;
    uint32_t  n_blocks, n_free, n_layers;
    uint32_t *free;              /* stack of free blocks without a name */
    uint32_t  n_stack;
    uint32_t  oldest, newest;    /* named blocks without references */
    kv_block *blocks;
    uint32_t *buckets;           /* [n_blocks] named blocks by name */
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
        kv->blocks = calloc(n_blocks, sizeof *kv->blocks);
        kv->buckets = calloc(n_blocks, sizeof *kv->buckets);
        kv->layers = calloc(shape->n_layers, sizeof *kv->layers);
    }
    if (!kv || !kv->free || !kv->blocks || !kv->buckets || !kv->layers)
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
    kv->n_blocks = kv->n_free = kv->n_stack = n_blocks;
    kv->oldest = kv->newest = EBB_KV_NONE;
    for (uint32_t i = 0; i < n_blocks; i++) {
        kv->free[i] = n_blocks - 1 - i;          /* block 0 is taken first */
        kv->buckets[i] = EBB_KV_NONE;
    }
    *out = kv;
    return EBB_OK;
}

void ebb_kv_close(ebb_kv *kv)
{
    if (!kv)
        return;
    ebb_map_fini(&kv->pool);
    free(kv->free);
    free(kv->blocks);
    free(kv->buckets);
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

size_t ebb_kv_size_of_block(const ebb_kv *kv)
{
    return kv->block_bytes;
}

void *ebb_kv_data(const ebb_kv *kv, uint32_t b)
{
    return (char *)kv->pool.data + b * kv->block_bytes;
}

/* -- Names --------------------------------------------------------------------- */

static uint32_t *bucket(const ebb_kv *kv, const uint8_t name[16])
{
    uint64_t x;

    memcpy(&x, name, sizeof x);
    return &kv->buckets[x % kv->n_blocks];
}

uint32_t ebb_kv_find(const ebb_kv *kv, const uint8_t name[16])
{
    uint32_t b = *bucket(kv, name);

    while (b != EBB_KV_NONE && memcmp(kv->blocks[b].name, name, sizeof kv->blocks[b].name) != 0)
        b = kv->blocks[b].next_named;
    return b;
}

void ebb_kv_name(ebb_kv *kv, const ebb_kv_table *t, uint32_t i, const uint8_t name[16])
{
    kv_block *b = &kv->blocks[t->blocks[i]];
    uint32_t *head = bucket(kv, name);

    assert((i + 1) * EBB_KV_BLOCK <= t->n_pos);
    if (b->is_named || ebb_kv_find(kv, name) != EBB_KV_NONE)
        return;
    memcpy(b->name, name, sizeof b->name);
    b->is_named = true;
    b->next_named = *head;
    *head = t->blocks[i];
}

static void forget(ebb_kv *kv, uint32_t b)
{
    uint32_t *at = bucket(kv, kv->blocks[b].name);

    while (*at != b)
        at = &kv->blocks[*at].next_named;
    *at = kv->blocks[b].next_named;
    kv->blocks[b].is_named = false;
}

/* The list of named blocks without references. */
static void enlist(ebb_kv *kv, uint32_t b)
{
    kv->blocks[b].older = kv->newest;
    kv->blocks[b].newer = EBB_KV_NONE;
    *(kv->newest == EBB_KV_NONE ? &kv->oldest : &kv->blocks[kv->newest].newer) = b;
    kv->newest = b;
}

static void unlist(ebb_kv *kv, uint32_t b)
{
    uint32_t older = kv->blocks[b].older, newer = kv->blocks[b].newer;

    *(older == EBB_KV_NONE ? &kv->oldest : &kv->blocks[older].newer) = newer;
    *(newer == EBB_KV_NONE ? &kv->newest : &kv->blocks[newer].older) = older;
}

void ebb_kv_hold(ebb_kv *kv, uint32_t b)
{
    if (kv->blocks[b].n_refs++ == 0) {
        unlist(kv, b);
        kv->n_free--;
    }
}

void ebb_kv_release(ebb_kv *kv, uint32_t b)
{
    assert(kv->blocks[b].n_refs > 0);
    if (--kv->blocks[b].n_refs > 0)
        return;
    kv->n_free++;
    if (kv->blocks[b].is_named)
        enlist(kv, b);
    else
        kv->free[kv->n_stack++] = b;
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
    uint32_t b = kv->oldest;

    if (kv->n_stack > 0) {
        b = kv->free[--kv->n_stack];
    } else {
        forget(kv, b);
        unlist(kv, b);
    }
    kv->n_free--;
    kv->blocks[b].n_refs = 1;
    return b;
}

/* Put a copy of *b in its place. */
static void copy(ebb_kv *kv, uint32_t *b)
{
    uint32_t fresh = take(kv);

    memcpy(ebb_kv_data(kv, fresh), ebb_kv_data(kv, *b), kv->block_bytes);
    ebb_kv_release(kv, *b);
    *b = fresh;
}

/* Make the last block of the table one that may be written. */
static void own_last(ebb_kv *kv, ebb_kv_table *t)
{
    uint32_t *last = &t->blocks[t->n_blocks - 1];

    if (kv->n_free == 0)                         /* ours alone: it is written over */
        forget(kv, *last);
    else
        copy(kv, last);
}

ebb_status ebb_kv_own(ebb_kv *kv, ebb_kv_table *t, uint32_t i, ebb_error *err)
{
    uint32_t need = 0;

    for (uint32_t k = i; k < t->n_blocks; k++)
        need += kv->blocks[t->blocks[k]].n_refs > 1;
    if (need > kv->n_free)
        return EBB_FAIL(err, EBB_BUDGET, "the KV pool has %u free blocks of %u tokens, %u are needed", kv->n_free,
                        EBB_KV_BLOCK, need);
    for (; i < t->n_blocks; i++) {
        if (kv->blocks[t->blocks[i]].n_refs > 1)
            copy(kv, &t->blocks[i]);
        else if (kv->blocks[t->blocks[i]].is_named)
            forget(kv, t->blocks[i]);
    }
    return EBB_OK;
}

ebb_status ebb_kv_grow(ebb_kv *kv, ebb_kv_table *t, uint32_t n_pos, ebb_error *err)
{
    uint32_t want = blocks_of(n_pos), need = want - t->n_blocks;
    const kv_block *last = t->n_pos % EBB_KV_BLOCK ? &kv->blocks[t->blocks[t->n_blocks - 1]] : NULL;
    bool is_shared = last && n_pos > t->n_pos && last->n_refs > 1;
    bool copies = is_shared || (last && n_pos > t->n_pos && last->is_named);

    assert(n_pos >= t->n_pos);
    if (want > t->cap)
        return EBB_FAIL(err, EBB_CONTEXT, "%u tokens do not fit a context of %u", n_pos, t->cap * EBB_KV_BLOCK);
    if (need + is_shared > kv->n_free)
        return EBB_FAIL(err, EBB_BUDGET, "the KV pool has %u free blocks of %u tokens, %u are needed", kv->n_free,
                        EBB_KV_BLOCK, need + is_shared);
    if (copies)
        own_last(kv, t);
    while (t->n_blocks < want)
        t->blocks[t->n_blocks++] = take(kv);
    t->n_pos = n_pos;
    return EBB_OK;
}

void ebb_kv_cut(ebb_kv *kv, ebb_kv_table *t, uint32_t n_pos)
{
    assert(n_pos <= t->n_pos);
    while (t->n_blocks > blocks_of(n_pos))
        ebb_kv_release(kv, t->blocks[--t->n_blocks]);
    t->n_pos = n_pos;
}

void ebb_kv_share(ebb_kv *kv, ebb_kv_table *t, const ebb_kv_table *from, uint32_t n_pos)
{
    assert(t != from && n_pos <= from->n_pos && blocks_of(n_pos) <= t->cap);
    ebb_kv_cut(kv, t, 0);
    while (t->n_blocks < blocks_of(n_pos)) {
        uint32_t b = from->blocks[t->n_blocks];

        ebb_kv_hold(kv, b);
        t->blocks[t->n_blocks++] = b;
    }
    t->n_pos = n_pos;
}

void ebb_kv_adopt(ebb_kv *kv, ebb_kv_table *t, uint32_t b)
{
    assert(t->n_pos % EBB_KV_BLOCK == 0 && t->n_blocks < t->cap);
    ebb_kv_hold(kv, b);
    t->blocks[t->n_blocks++] = b;
    t->n_pos += EBB_KV_BLOCK;
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
