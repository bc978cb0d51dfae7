/* Sizes: how many blocks a pool has, and where a layer is in a block (kv.h). */
#include <string.h>

#include "base/size.h"
#include "kv/kv_impl.h"

#define LAYER_ALIGN 64u
#define REWIND_MAX 1024u         /* positions behind a window that are kept, to go back to */

uint32_t ebb_kv_blocks_of(uint32_t n_pos)
{
    return n_pos / EBB_KV_BLOCK + (n_pos % EBB_KV_BLOCK != 0);
}

static uint32_t blocks_for_all(const ebb_kv_shape *shape)
{
    return ebb_kv_blocks_of(shape->n_ctx) + 1;
}

static uint32_t blocks_for_window(const ebb_kv_shape *shape)
{
    uint64_t window = shape->window, back = window < REWIND_MAX ? window : REWIND_MAX;
    uint64_t others = shape->n_sequences > 1 ? (shape->n_sequences - 1) * (window + 2 * EBB_KV_BLOCK) : 0;

    return (uint32_t)((window + shape->n_batch + back + others + EBB_KV_BLOCK - 1) / EBB_KV_BLOCK) + 3;
}

bool ebb_kv_is_split(const ebb_kv_shape *shape)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < shape->n_layers; i++)
        n += shape->layers[i].has_window && shape->layers[i].n_head > 0;
    return n > 0 && blocks_for_window(shape) < blocks_for_all(shape);
}

/* Of all heads of a layer, in whole lines; where there is no such size, one that fits nowhere. */
static uint64_t layer_bytes(uint32_t n_head, size_t k, size_t v)
{
    uint64_t n = ebb_size_times(n_head, ebb_size_plus(k, v));

    return n > UINT64_MAX - LAYER_ALIGN ? n : (n + LAYER_ALIGN - 1) / LAYER_ALIGN * LAYER_ALIGN;
}

void ebb_kv_lay_out(const ebb_kv_shape *shape, size_t block_bytes[EBB_KV_GROUPS], ebb_kv_layout *out)
{
    bool is_split = ebb_kv_is_split(shape);

    memset(block_bytes, 0, EBB_KV_GROUPS * sizeof *block_bytes);
    for (uint32_t i = 0; i < shape->n_layers; i++) {
        const ebb_kv_layer *l = &shape->layers[i];
        size_t k = (size_t)ebb_size_times(EBB_KV_BLOCK, ebb_kv_row_bytes(shape->k_type, l->dim_k));
        size_t v = (size_t)ebb_size_times(EBB_KV_BLOCK, ebb_kv_row_bytes(shape->v_type, l->dim_v));
        int group = is_split && l->has_window ? EBB_KV_WINDOW : EBB_KV_ALL;
        size_t *at = &block_bytes[group];

        if (out)
            out[i] = (ebb_kv_layout){ .group = group, .n_head = l->n_head, .offset = *at, .k_head = k, .v_head = v,
                                     .v_offset = l->n_head * k };
        *at = (size_t)ebb_size_plus(*at, layer_bytes(l->n_head, k, v));
    }
}

uint32_t ebb_kv_blocks_for(const ebb_kv_shape *shape, int group)
{
    if (group == EBB_KV_ALL)
        return blocks_for_all(shape);
    return ebb_kv_is_split(shape) ? blocks_for_window(shape) : 0;
}

uint64_t ebb_kv_block_bytes(const ebb_kv_shape *shape)
{
    size_t bytes[EBB_KV_GROUPS];

    ebb_kv_lay_out(shape, bytes, NULL);
    return ebb_size_plus(bytes[EBB_KV_ALL], bytes[EBB_KV_WINDOW]);
}

uint64_t ebb_kv_all_block_bytes(const ebb_kv_shape *shape)
{
    size_t bytes[EBB_KV_GROUPS];

    ebb_kv_lay_out(shape, bytes, NULL);
    return bytes[EBB_KV_ALL];
}

uint64_t ebb_kv_pool_bytes(const ebb_kv_shape *shape)
{
    size_t bytes[EBB_KV_GROUPS];
    uint64_t sum = 0;

    ebb_kv_lay_out(shape, bytes, NULL);
    for (int g = 0; g < EBB_KV_GROUPS; g++)
        sum = ebb_size_plus(sum, ebb_size_times(bytes[g], ebb_kv_blocks_for(shape, g)));
    return sum;
}
