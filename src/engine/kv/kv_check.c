/* Whether the rules of the pools and tables hold (kv.h). */
#include <stdlib.h>

#include "kv/kv_impl.h"

/* The stack of free blocks, and the LRU list of cached ones. */
static const char *check_free(const ebb_kv_pool *p)
{
    uint32_t n_list = 0, last = EBB_KV_NONE;

    for (uint32_t i = 0; i < p->n_stack; i++) {
        const ebb_kv_block *b = &p->blocks[p->free[i]];

        if (p->free[i] >= p->n_blocks || b->n_refs > 0 || b->is_hashed || b->is_spilled)
            return "KV3: a block on the stack of free ones is referenced, hashed or spilled";
    }
    for (uint32_t b = p->oldest; b != EBB_KV_NONE; last = b, b = p->blocks[b].newer) {
        if (++n_list > p->n_blocks || p->blocks[b].older != last)
            return "KV3: the list of cached blocks is torn";
        if (p->blocks[b].n_refs > 0 || !p->blocks[b].is_hashed)
            return "KV3: a block on the list of cached ones is referenced, or has no hash";
    }
    if (last != p->newest)
        return "KV3: the list of cached blocks does not end with the newest";
    return n_list + p->n_stack == p->n_free ? NULL : "KV3: free blocks are counted wrong";
}

static const char *check_blocks(const ebb_kv_pool *p, uint32_t *n_spilled)
{
    uint32_t n_used = 0, n_hashed = 0, n_in_buckets = 0;

    *n_spilled = 0;
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const ebb_kv_block *b = &p->blocks[i];

        n_used += b->n_refs > 0;
        n_hashed += b->is_hashed;
        *n_spilled += b->is_spilled;
        if (b->n_writer_refs > b->n_refs)
            return "KV3: a block has more references of writers than it has in all";
        if (b->is_hashed && ebb_kv_pool_find(p, b->hash) != i)
            return "KV4: two blocks have one hash, or one cannot be found by it";
        if (b->is_spilled && !b->is_hashed)
            return "KV5: a block without a hash is spilled";
    }
    for (uint32_t i = 0; i < p->n_blocks; i++)
        for (uint32_t b = p->buckets[i]; b != EBB_KV_NONE && n_in_buckets <= p->n_blocks; b = p->blocks[b].next_hashed)
            n_in_buckets++;
    if (n_in_buckets != n_hashed)
        return "KV4: a block that has lost its hash can be found";
    return n_used + p->n_free == p->n_blocks ? NULL : "KV3: a block is neither free nor referenced";
}

/* A block that is referenced and not spilled has been written, or is about to be. */
static const char *check_memory(const ebb_kv_pool *p, uint64_t *taken)
{
    for (uint32_t i = 0; i < p->n_blocks; i++) {
        const ebb_kv_block *b = &p->blocks[i];

        *taken += b->has_memory ? p->block_bytes : 0;
        if (b->has_memory ? b->is_spilled : b->n_refs > 0 && !b->is_spilled)
            return "KV6: a block is spilled and has memory, or is referenced and has none";
    }
    return NULL;
}

const char *ebb_kv_check(const ebb_kv *kv)
{
    uint64_t taken = 0;

    for (int g = 0; g < EBB_KV_GROUPS; g++) {
        const ebb_kv_pool *p = &kv->pools[g];
        uint32_t n_spilled = 0;
        const char *rule = p->n_blocks > 0 ? check_free(p) : NULL;

        if (!rule && p->n_blocks > 0)
            rule = check_blocks(p, &n_spilled);
        if (rule)
            return rule;
        if (p->n_blocks > 0 && n_spilled != (g == EBB_KV_ALL ? kv->spill.n_spilled : 0))
            return "KV5: spilled blocks are counted wrong";
        rule = check_memory(p, &taken);
        if (rule)
            return rule;
    }
    return taken == kv->taken_bytes ? NULL : "KV6: the memory of blocks is counted wrong";
}

const char *ebb_block_table_check(const ebb_kv *kv, const ebb_block_table *t, uint32_t writable_from)
{
    if (t->n_blocks != ebb_kv_blocks_of(t->n_pos) || t->n_blocks > t->cap)
        return "KV2: a table has not as many places as its positions take";
    for (int g = 0; g < EBB_KV_GROUPS && kv->pools[g].n_blocks > 0; g++)
        for (uint32_t i = ebb_kv_first_visible(kv, g, t->n_pos); i < t->n_blocks; i++) {
            uint32_t at = t->blocks[g][i];
            const ebb_kv_block *b = &kv->pools[g].blocks[at];

            if (at == EBB_KV_NONE)
                return "KV2: a block that the next position sees is not there";
            if (at >= kv->pools[g].n_blocks || b->n_refs == 0)
                return "KV2: a table has a block without references";
            if (writable_from < t->n_pos && (i + 1) * EBB_KV_BLOCK > writable_from &&
                (b->n_refs > 1 || b->is_hashed || b->is_spilled))
                return "KV1: a block is written that is shared, hashed or spilled";
        }
    return NULL;
}

const char *ebb_kv_check_refs(const ebb_kv *kv, const ebb_block_table *const *tables, size_t n)
{
    const char *rule = NULL;

    for (int g = 0; g < EBB_KV_GROUPS && kv->pools[g].n_blocks > 0 && !rule; g++) {
        const ebb_kv_pool *p = &kv->pools[g];
        uint32_t *n_refs = calloc(p->n_blocks, sizeof *n_refs);

        if (!n_refs)
            return "no memory to count references";
        for (size_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < tables[k]->n_blocks; i++)
                if (tables[k]->blocks[g][i] < p->n_blocks)
                    n_refs[tables[k]->blocks[g][i]]++;
        for (uint32_t b = 0; b < p->n_blocks && !rule; b++)
            if (n_refs[b] + p->blocks[b].n_writer_refs != p->blocks[b].n_refs)
                rule = "KV3: a block has more or fewer references than tables and writers have";
        free(n_refs);
    }
    return rule;
}
