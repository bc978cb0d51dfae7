/* What of the KV pools is memory (kv.h). */
#include "kv/kv_impl.h"

#define PAGE ((uintptr_t)4096)

void ebb_kv_set_limit(ebb_kv *kv, uint64_t limit_bytes, ebb_kv_host host)
{
    kv->limit_bytes = limit_bytes;
    kv->host = host;
}

uint64_t ebb_kv_taken_bytes(const ebb_kv *kv)
{
    return kv->taken_bytes;
}

uint64_t ebb_kv_unheld_bytes(const ebb_kv *kv)
{
    uint64_t sum = 0;

    for (int g = 0; g < EBB_KV_GROUPS; g++)
        for (uint32_t b = 0; b < kv->pools[g].n_blocks; b++)
            if (kv->pools[g].blocks[b].has_memory && kv->pools[g].blocks[b].n_refs == 0)
                sum += kv->pools[g].block_bytes;
    return sum;
}

void ebb_kv_held_use(const ebb_kv *kv, uint64_t *memory_bytes, uint64_t *file_bytes)
{
    *memory_bytes = *file_bytes = 0;
    for (int g = 0; g < EBB_KV_GROUPS; g++)
        for (uint32_t b = 0; b < kv->pools[g].n_blocks; b++)
            if (kv->pools[g].blocks[b].n_refs > 0)
                *(kv->pools[g].blocks[b].is_spilled ? file_bytes : memory_bytes) += kv->pools[g].block_bytes;
}

void ebb_kv_take_memory(ebb_kv *kv, ebb_kv_pool *p, uint32_t b)
{
    if (p->blocks[b].has_memory)
        return;
    if (kv->taken_bytes + p->block_bytes > kv->limit_bytes && kv->host.make_room)
        kv->host.make_room(kv->host.arg, kv->taken_bytes + p->block_bytes);
    p->blocks[b].has_memory = true;
    kv->taken_bytes += p->block_bytes;
}

void ebb_kv_release_memory(ebb_kv *kv, ebb_kv_pool *p, uint32_t b)
{
    uintptr_t from = ((uintptr_t)p->data + b * p->block_bytes + PAGE - 1) & ~(PAGE - 1);
    uintptr_t to = ((uintptr_t)p->data + (b + 1) * p->block_bytes) & ~(PAGE - 1);

    if (!p->blocks[b].has_memory)
        return;
    if (to > from)
        ebb_map_advise((void *)from, to - from, EBB_ADVISE_DONTNEED);
    p->blocks[b].has_memory = false;
    kv->taken_bytes -= p->block_bytes;
}
