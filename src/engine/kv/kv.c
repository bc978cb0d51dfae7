/* The KV pools (kv.h). */
#include "kv/kv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/invariant.h"
#include "kv/kv_impl.h"

/* -- Opening --------------------------------------------------------------------- */

static ebb_status open_pool(ebb_kv_pool *p, uint32_t n, size_t block_bytes, ebb_error *err)
{
    p->n_blocks = p->n_free = p->n_stack = n;
    p->block_bytes = block_bytes;
    p->oldest = p->newest = EBB_KV_NONE;
    p->free = calloc(n + 1, sizeof *p->free);
    p->blocks = calloc(n + 1, sizeof *p->blocks);
    p->buckets = calloc(n + 1, sizeof *p->buckets);
    if (!p->free || !p->blocks || !p->buckets)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the table of %u KV blocks", n);
    for (uint32_t i = 0; i < n; i++) {
        p->free[i] = n - 1 - i;                  /* block 0 is taken first */
        p->buckets[i] = EBB_KV_NONE;
    }
    return EBB_OK;
}

static ebb_status open_pools(ebb_kv *kv, const ebb_kv_shape *shape, ebb_error *err)
{
    size_t bytes[EBB_KV_GROUPS];
    uint64_t n_bytes = ebb_kv_pool_bytes(shape);
    char *at;
    ebb_status st;

    kv->layers = calloc(shape->n_layers, sizeof *kv->layers);
    if (!kv->layers)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %u layers", shape->n_layers);
    kv->n_layers = shape->n_layers;
    kv->window = ebb_kv_is_split(shape) ? shape->window : 0;
    ebb_kv_lay_out(shape, bytes, kv->layers);
    /* first: this is what may be too much */
    st = (shape->has_file ? ebb_map_sparse : ebb_map_anon)(n_bytes, true, &kv->map, err);
    for (int g = 0; g < EBB_KV_GROUPS && st == EBB_OK; g++)
        st = open_pool(&kv->pools[g], ebb_kv_blocks_for(shape, g), bytes[g], err);
    at = kv->map.data;
    for (int g = 0; g < EBB_KV_GROUPS && st == EBB_OK; g++) {
        kv->pools[g].data = at;
        at += kv->pools[g].block_bytes * kv->pools[g].n_blocks;
    }
    return st;
}

ebb_status ebb_kv_open(const ebb_kv_shape *shape, ebb_kv **out, ebb_error *err)
{
    ebb_kv *kv = calloc(1, sizeof *kv);

    if (kv) {
        kv->spill.fd = -1;
        kv->limit_bytes = UINT64_MAX;
    }
    ebb_status st = kv ? open_pools(kv, shape, err) : EBB_FAIL(err, EBB_NOMEM, "no memory for the KV pool");

    if (st != EBB_OK) {
        ebb_kv_close(kv);
        kv = NULL;
    }
    *out = kv;
    return st;
}

void ebb_kv_close(ebb_kv *kv)
{
    if (!kv)
        return;
    ebb_kv_close_spill(kv);
    free(kv->spill.path);
    ebb_map_fini(&kv->map);
    for (int g = 0; g < EBB_KV_GROUPS; g++) {
        free(kv->pools[g].free);
        free(kv->pools[g].blocks);
        free(kv->pools[g].buckets);
    }
    free(kv->layers);
    free(kv);
}

uint64_t ebb_kv_bytes(const ebb_kv *kv)
{
    uint64_t sum = 0;

    for (int g = 0; g < EBB_KV_GROUPS; g++)
        sum += (uint64_t)kv->pools[g].block_bytes * kv->pools[g].n_blocks;
    return sum;
}

uint32_t ebb_kv_window(const ebb_kv *kv)
{
    return kv->window;
}

uint32_t ebb_kv_n_blocks(const ebb_kv *kv, int g)
{
    return kv->pools[g].n_blocks;
}

uint32_t ebb_kv_n_free(const ebb_kv *kv, int g)
{
    return kv->pools[g].n_free;
}

size_t ebb_kv_group_block_bytes(const ebb_kv *kv, int g)
{
    return kv->pools[g].block_bytes;
}

void *ebb_kv_data(const ebb_kv *kv, int g, uint32_t b)
{
    return ebb_kv_bytes_of(kv, &kv->pools[g], b);
}

uint32_t ebb_kv_first_visible(const ebb_kv *kv, int g, uint32_t pos)
{
    return g == EBB_KV_WINDOW && kv->window && pos >= kv->window ? (pos - kv->window + 1) / EBB_KV_BLOCK : 0;
}

/* -- Hashes -------------------------------------------------------------------- */

static uint32_t *hash_bucket(const ebb_kv_pool *p, const uint8_t hash[16])
{
    uint64_t x;

    memcpy(&x, hash, sizeof x);
    return &p->buckets[x % p->n_blocks];
}

uint32_t ebb_kv_pool_find(const ebb_kv_pool *p, const uint8_t hash[16])
{
    uint32_t b = p->n_blocks ? *hash_bucket(p, hash) : EBB_KV_NONE;

    while (b != EBB_KV_NONE && memcmp(p->blocks[b].hash, hash, sizeof p->blocks[b].hash) != 0)
        b = p->blocks[b].next_hashed;
    return b;
}

uint32_t ebb_kv_find_block(const ebb_kv *kv, int g, const uint8_t hash[16])
{
    return ebb_kv_pool_find(&kv->pools[g], hash);
}

void ebb_kv_set_hash(ebb_kv *kv, const ebb_block_table *t, int g, uint32_t i, const ebb_block_hash *block_hash)
{
    ebb_kv_pool *p = &kv->pools[g];
    ebb_kv_block *b = &p->blocks[t->blocks[g][i]];
    uint32_t *head = hash_bucket(p, block_hash->hash);

    assert((i + 1) * EBB_KV_BLOCK <= t->n_pos);
    if (b->is_hashed || ebb_kv_pool_find(p, block_hash->hash) != EBB_KV_NONE)
        return;
    memcpy(b->hash, block_hash->hash, sizeof b->hash);
    memcpy(b->parent_hash, block_hash->parent_hash, sizeof b->parent_hash);
    memcpy(b->ids, block_hash->ids, sizeof b->ids);
    b->is_hashed = true;
    b->next_hashed = *head;
    *head = t->blocks[g][i];
}

uint32_t ebb_kv_find_child(const ebb_kv *kv, int g, const uint8_t parent_hash[16], const int32_t *ids, uint32_t n,
                           uint32_t *n_same)
{
    const ebb_kv_pool *p = &kv->pools[g];
    uint32_t best = EBB_KV_NONE;

    *n_same = 0;
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        const ebb_kv_block *x = &p->blocks[b];
        uint32_t same = 0;

        if (!x->is_hashed || memcmp(x->parent_hash, parent_hash, sizeof x->parent_hash) != 0)
            continue;
        while (same < n && same < EBB_KV_BLOCK && x->ids[same] == ids[same])
            same++;
        if (same > *n_same) {
            *n_same = same;
            best = b;
        }
    }
    return best;
}

const uint8_t *ebb_kv_hash_of(const ebb_kv *kv, int g, uint32_t b)
{
    return kv->pools[g].blocks[b].hash;
}

void ebb_kv_clear_hash(ebb_kv_pool *p, uint32_t b)
{
    uint32_t *at = hash_bucket(p, p->blocks[b].hash);

    while (*at != b)
        at = &p->blocks[*at].next_hashed;
    *at = p->blocks[b].next_hashed;
    p->blocks[b].is_hashed = false;
}

/* The LRU list of cached blocks. */
static void lru_append(ebb_kv_pool *p, uint32_t b)
{
    p->blocks[b].older = p->newest;
    p->blocks[b].newer = EBB_KV_NONE;
    *(p->newest == EBB_KV_NONE ? &p->oldest : &p->blocks[p->newest].newer) = b;
    p->newest = b;
}

void ebb_kv_lru_remove(ebb_kv_pool *p, uint32_t b)
{
    uint32_t older = p->blocks[b].older, newer = p->blocks[b].newer;

    *(older == EBB_KV_NONE ? &p->oldest : &p->blocks[older].newer) = newer;
    *(newer == EBB_KV_NONE ? &p->newest : &p->blocks[newer].older) = older;
}

static void ref_block(ebb_kv_pool *p, uint32_t b)
{
    if (p->blocks[b].n_refs++ == 0) {
        ebb_kv_lru_remove(p, b);
        p->n_free--;
    }
}

static void unref_block(ebb_kv_pool *p, uint32_t b)
{
    assert(p->blocks[b].n_refs > 0);
    if (--p->blocks[b].n_refs > 0)
        return;
    p->n_free++;
    if (p->blocks[b].is_hashed)
        lru_append(p, b);
    else
        p->free[p->n_stack++] = b;
}

void ebb_kv_ref(ebb_kv *kv, int g, uint32_t b)
{
    kv->pools[g].blocks[b].n_writer_refs++;
    ref_block(&kv->pools[g], b);
}

void ebb_kv_unref(ebb_kv *kv, int g, uint32_t b)
{
    kv->pools[g].blocks[b].n_writer_refs--;
    unref_block(&kv->pools[g], b);
}

void ebb_kv_table_use(const ebb_kv *kv, const ebb_block_table *t, uint32_t n_pos, uint64_t *memory_bytes,
                      uint64_t *file_bytes)
{
    uint32_t n = ebb_kv_blocks_of(n_pos) < t->n_blocks ? ebb_kv_blocks_of(n_pos) : t->n_blocks;

    *memory_bytes = *file_bytes = 0;
    for (int g = 0; g < EBB_KV_GROUPS; g++)
        for (uint32_t i = 0; i < n && kv->pools[g].block_bytes > 0; i++)
            if (t->blocks[g][i] != EBB_KV_NONE)
                *(kv->pools[g].blocks[t->blocks[g][i]].is_spilled ? file_bytes
                                                                  : memory_bytes) += kv->pools[g].block_bytes;
}

/* -- Tables ------------------------------------------------------------------ */

ebb_status ebb_block_table_init(ebb_block_table *t, uint32_t n_ctx, ebb_error *err)
{
    memset(t, 0, sizeof *t);
    t->cap = ebb_kv_blocks_of(n_ctx);
    for (int g = 0; g < EBB_KV_GROUPS; g++) {
        t->blocks[g] = calloc(t->cap + 1, sizeof **t->blocks);
        if (!t->blocks[g])
            return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %u blocks", t->cap);
    }
    return EBB_OK;
}

void ebb_block_table_fini(ebb_kv *kv, ebb_block_table *t)
{
    if (t->n_blocks > 0)
        ebb_kv_truncate(kv, t, 0);
    for (int g = 0; g < EBB_KV_GROUPS; g++)
        free(t->blocks[g]);
    memset(t, 0, sizeof *t);
}

/* A block that can only be found gives less than what else its memory would be taken from. */
static bool reuses_oldest(const ebb_kv *kv, const ebb_kv_pool *p)
{
    if (p->n_stack == 0)
        return true;
    return p->oldest != EBB_KV_NONE && p->blocks[p->oldest].has_memory &&
           !p->blocks[p->free[p->n_stack - 1]].has_memory && kv->taken_bytes + p->block_bytes > kv->limit_bytes;
}

static uint32_t take_block(ebb_kv *kv, ebb_kv_pool *p)
{
    uint32_t b = p->oldest;

    if (reuses_oldest(kv, p)) {
        ebb_kv_clear_hash(p, b);
        ebb_kv_lru_remove(p, b);
    } else {
        b = p->free[--p->n_stack];
    }
    if (p->blocks[b].is_spilled)
        ebb_kv_forget_spilled(kv, b);
    ebb_kv_take_memory(kv, p, b);
    p->n_free--;
    p->blocks[b].n_refs = 1;
    return b;
}

/* Replaces *b by a copy. */
static void copy_block(ebb_kv *kv, ebb_kv_pool *p, uint32_t *b)
{
    uint32_t fresh = take_block(kv, p);

    if (p->block_bytes > 0)                      /* else there is no pool */
        memcpy(ebb_kv_bytes_of(kv, p, fresh), ebb_kv_bytes_of(kv, p, *b), p->block_bytes);
    unref_block(p, *b);
    *b = fresh;
}

/* Make a block one that may be written. */
static void make_writable(ebb_kv *kv, ebb_kv_pool *p, uint32_t *b)
{
    if (p->blocks[*b].n_refs == 1 && (!p->blocks[*b].is_hashed || p->n_free == 0)) {
        if (p->blocks[*b].is_hashed)             /* the table's own: it is overwritten */
            ebb_kv_clear_hash(p, *b);
        if (p->blocks[*b].is_spilled)
            ebb_kv_unspill_block(kv, *b);
        return;
    }
    copy_block(kv, p, b);
}

static ebb_status fail_full(const ebb_kv_pool *p, uint32_t need, ebb_error *err)
{
    return EBB_FAIL(err, EBB_BUDGET, "the KV pool has %u free blocks of %u tokens; %u are needed", p->n_free,
                    EBB_KV_BLOCK, need);
}

/* Releases the blocks that position pos and later ones do not see. */
static void release_unseen(ebb_kv *kv, ebb_block_table *t, int g, uint32_t pos)
{
    uint32_t end = ebb_kv_first_visible(kv, g, pos), i = end;

    while (i > 0 && t->blocks[g][i - 1] != EBB_KV_NONE)
        i--;
    for (; i < end; i++)                         /* so the block farthest back is the first to be evicted */
        ebb_kv_set_block(kv, t, g, i, EBB_KV_NONE);
}

/* Whether the last block is partly filled and shared. */
static bool last_block_is_shared(const ebb_kv_pool *p, const ebb_block_table *t, int g)
{
    return t->n_pos % EBB_KV_BLOCK && p->blocks[t->blocks[g][t->n_blocks - 1]].n_refs > 1;
}

static bool group_exists(const ebb_kv *kv, int g)
{
    return kv->pools[g].n_blocks > 0;
}

ebb_status ebb_kv_grow(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos, ebb_error *err)
{
    uint32_t want = ebb_kv_blocks_of(n_pos), old = t->n_blocks;
    uint32_t written_from = t->n_pos;
    bool writes_last = n_pos > t->n_pos && t->n_pos % EBB_KV_BLOCK;

    assert(n_pos >= t->n_pos);
    EBB_INVARIANT(ebb_block_table_check(kv, t, t->n_pos));
    if (want > t->cap)
        return EBB_FAIL(err, EBB_CONTEXT, "%u tokens do not fit a context of %u", n_pos, t->cap * EBB_KV_BLOCK);
    for (int g = 0; g < EBB_KV_GROUPS && group_exists(kv, g); g++) {
        uint32_t need = want - old + (writes_last && last_block_is_shared(&kv->pools[g], t, g));

        release_unseen(kv, t, g, t->n_pos);
        if (need > kv->pools[g].n_free)
            return fail_full(&kv->pools[g], need, err);
        if (g == EBB_KV_ALL && ebb_kv_spill_for(kv, need, err) != EBB_OK)
            return EBB_IO;
    }
    for (int g = 0; g < EBB_KV_GROUPS && group_exists(kv, g); g++) {
        if (writes_last)
            make_writable(kv, &kv->pools[g], &t->blocks[g][old - 1]);
        for (uint32_t i = old; i < want; i++)
            t->blocks[g][i] = take_block(kv, &kv->pools[g]);
    }
    EBB_INVARIANT(ebb_kv_check(kv));
    t->n_blocks = want;
    t->n_pos = n_pos;
    EBB_INVARIANT(ebb_block_table_check(kv, t, written_from));
    return EBB_OK;
}

ebb_status ebb_kv_make_writable(ebb_kv *kv, ebb_block_table *t, uint32_t first, ebb_error *err)
{
    for (int g = 0; g < EBB_KV_GROUPS && group_exists(kv, g); g++) {
        ebb_kv_pool *p = &kv->pools[g];
        uint32_t need = 0;

        for (uint32_t i = first; i < t->n_blocks; i++)
            need += t->blocks[g][i] != EBB_KV_NONE && p->blocks[t->blocks[g][i]].n_refs > 1;
        if (need > p->n_free)
            return fail_full(p, need, err);
    }
    for (int g = 0; g < EBB_KV_GROUPS && group_exists(kv, g); g++) {
        ebb_kv_pool *p = &kv->pools[g];

        for (uint32_t i = first; i < t->n_blocks; i++) {
            uint32_t *b = &t->blocks[g][i];

            if (*b == EBB_KV_NONE)
                continue;
            if (p->blocks[*b].n_refs > 1)
                copy_block(kv, p, b);
            else if (p->blocks[*b].is_hashed)
                ebb_kv_clear_hash(p, *b);
            if (p->blocks[*b].is_spilled)
                ebb_kv_unspill_block(kv, *b);
        }
    }
    EBB_INVARIANT(ebb_kv_check(kv));
    return EBB_OK;
}

void ebb_kv_set_block(ebb_kv *kv, ebb_block_table *t, int g, uint32_t i, uint32_t b)
{
    uint32_t old = t->blocks[g][i];

    assert(i < t->n_blocks);
    if (b != EBB_KV_NONE)
        ref_block(&kv->pools[g], b);
    t->blocks[g][i] = b;
    if (old != EBB_KV_NONE)
        unref_block(&kv->pools[g], old);
}

ebb_status ebb_kv_alloc_block(ebb_kv *kv, ebb_block_table *t, int g, uint32_t i, ebb_error *err)
{
    ebb_kv_pool *p = &kv->pools[g];

    if (p->n_free == 0)
        return fail_full(p, 1, err);
    if (g == EBB_KV_ALL && ebb_kv_spill_for(kv, 1, err) != EBB_OK)
        return EBB_IO;
    ebb_kv_set_block(kv, t, g, i, EBB_KV_NONE);
    t->blocks[g][i] = take_block(kv, p);
    return EBB_OK;
}

void ebb_kv_resize_table(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos)
{
    uint32_t want = ebb_kv_blocks_of(n_pos);

    assert(want <= t->cap);
    for (int g = 0; g < EBB_KV_GROUPS && group_exists(kv, g); g++) {
        for (uint32_t i = t->n_blocks; i < want; i++)
            t->blocks[g][i] = EBB_KV_NONE;
        for (uint32_t i = t->n_blocks; i-- > want;)      /* so the last block is the first to be evicted */
            ebb_kv_set_block(kv, t, g, i, EBB_KV_NONE);
    }
    t->n_blocks = want;
    t->n_pos = n_pos;
    EBB_INVARIANT(ebb_kv_check(kv));
}

void ebb_kv_truncate(ebb_kv *kv, ebb_block_table *t, uint32_t n_pos)
{
    assert(n_pos <= t->n_pos);
    ebb_kv_resize_table(kv, t, n_pos);
}

void ebb_kv_share(ebb_kv *kv, const ebb_block_table *from, uint32_t n_pos, ebb_block_table *to)
{
    assert(to->n_pos == 0 && n_pos <= from->n_pos);
    ebb_kv_resize_table(kv, to, n_pos);
    for (int g = 0; g < EBB_KV_GROUPS && group_exists(kv, g); g++)
        for (uint32_t i = 0; i < to->n_blocks; i++)
            ebb_kv_set_block(kv, to, g, i, from->blocks[g][i]);
}

void ebb_kv_shift_blocks(ebb_kv *kv, ebb_block_table *t, int g, uint32_t to, uint32_t n)
{
    uint32_t *blocks = t->blocks[g];

    for (uint32_t i = 0; i < to + n; i++)
        ebb_kv_set_block(kv, t, g, i, EBB_KV_NONE);
    for (uint32_t i = to; n > 0 && i < t->n_blocks; i++)
        blocks[i] = i + n < t->n_blocks ? blocks[i + n] : EBB_KV_NONE;
}

/* -- Memory that nobody's blocks have ------------------------------------------------ */

/* What is out of it is forgotten, too. */
static void free_oldest(ebb_kv *kv, ebb_kv_pool *p)
{
    uint32_t b = p->oldest;

    ebb_kv_clear_hash(p, b);
    ebb_kv_lru_remove(p, b);
    if (p->blocks[b].is_spilled)
        ebb_kv_forget_spilled(kv, b);
    p->free[p->n_stack++] = b;
}

uint64_t ebb_kv_release_unheld(ebb_kv *kv, uint64_t n_bytes)
{
    uint64_t had = kv->taken_bytes;

    for (int g = 0; g < EBB_KV_GROUPS; g++) {
        ebb_kv_pool *p = &kv->pools[g];

        for (uint32_t i = 0; i < p->n_stack && had - kv->taken_bytes < n_bytes; i++)
            ebb_kv_release_memory(kv, p, p->free[i]);
        while (p->n_blocks > 0 && p->oldest != EBB_KV_NONE && had - kv->taken_bytes < n_bytes) {
            free_oldest(kv, p);
            ebb_kv_release_memory(kv, p, p->free[p->n_stack - 1]);
        }
    }
    EBB_INVARIANT(ebb_kv_check(kv));
    return had - kv->taken_bytes;
}

/* -- Rows -------------------------------------------------------------------- */

uint32_t ebb_kv_n_heads(const ebb_kv *kv, uint32_t i_layer)
{
    return kv->layers[i_layer].n_head;
}

int ebb_kv_group(const ebb_kv *kv, uint32_t i_layer)
{
    return kv->layers[i_layer].group;
}

static char *layer_data(const ebb_kv *kv, const ebb_block_table *t, uint32_t i, const ebb_kv_layout *l)
{
    return (char *)ebb_kv_bytes_of(kv, &kv->pools[l->group], t->blocks[l->group][i]) + l->offset;
}

void *ebb_kv_k(const ebb_kv *kv, const ebb_block_table *t, uint32_t i, uint32_t i_layer, uint32_t head)
{
    const ebb_kv_layout *l = &kv->layers[i_layer];

    return layer_data(kv, t, i, l) + head * l->k_head;
}

void *ebb_kv_v(const ebb_kv *kv, const ebb_block_table *t, uint32_t i, uint32_t i_layer, uint32_t head)
{
    const ebb_kv_layout *l = &kv->layers[i_layer];

    return layer_data(kv, t, i, l) + l->v_offset + head * l->v_head;
}

size_t ebb_kv_k_row_bytes(const ebb_kv *kv, uint32_t i_layer)
{
    return kv->layers[i_layer].k_head / EBB_KV_BLOCK;
}

size_t ebb_kv_v_row_bytes(const ebb_kv *kv, uint32_t i_layer)
{
    return kv->layers[i_layer].v_head / EBB_KV_BLOCK;
}
