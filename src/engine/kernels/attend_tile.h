/* kernels/attend_tile.h - rows of keys and values as floats, compiled for each kind of v16. */
#ifndef EBB_KERNELS_ATTEND_TILE_H
#define EBB_KERNELS_ATTEND_TILE_H
#include "kernels/kv_rows.h"

enum { BATCH = 16 };             /* queries that pass a tile together */

typedef struct tile {
    float *k, *v;                /* rows of width_k and width_v floats, zeroes behind the
                                    elements */
    size_t width_k, width_v;
    float *q;                    /* [BATCH][width_k]: queries, if dim_k is no multiple of 16 */
    float *s;                    /* [BATCH][EBB_KV_BLOCK]: scores, then weights */
} tile;

static size_t tile_floats(const tile *t)
{
    return (t->width_k + t->width_v) * EBB_KV_BLOCK + (t->width_k + EBB_KV_BLOCK) * BATCH;
}

static void tile_place(tile *t, float *scratch)
{
    t->s = scratch;
    t->k = t->s + EBB_KV_BLOCK * BATCH;
    t->v = t->k + EBB_KV_BLOCK * t->width_k;
    t->q = t->v + EBB_KV_BLOCK * t->width_v;
}

/* Ask for bytes [from, to) of p, which may be NULL. */
V16_INLINE void fetch_bytes(const uint8_t *p, size_t from, size_t to)
{
    for (size_t at = from / 64 * 64; p && at < to; at += 64)
        __builtin_prefetch(p + at, 0, 3);
}

/* Elements [i, i + 16) of a row, i a multiple of 32, or that and 16 if `is_second`.  Of a quantized
 * row, scale[i / 32] is the scale as a float; NULL: it is converted here. */
V16_INLINE v16 row_load(const ebb_kv_type type, const uint8_t *row, const float *scale, size_t i,
                        const bool is_second)
{
    const uint8_t *block = row + i / 32 * (type == EBB_KV_Q8_0 ? 34 : 18);

    if (type == EBB_KV_F32)
        return v16_load((const float *)(const void *)row + i);
    if (type == EBB_KV_F16)
        return v16_load_f16(row + 2 * i);
    v16 d = scale ? v16_set(scale[i / 32]) : v16_set_f16(block);
    if (type == EBB_KV_Q8_0)
        return v16_mul(d, v16_load_i8((const int8_t *)block + 2 + (is_second ? 16 : 0)));
    return v16_mul(d, v16_load_nibbles(block + 2, is_second));
}

V16_INLINE void row_to_float(const ebb_kv_type type, const uint8_t *row, size_t dim, float *out)
{
    size_t i = 0;

    for (; i + 32 <= dim; i += 32) {
        v16_store(out + i, row_load(type, row, NULL, i, false));
        v16_store(out + i + 16, row_load(type, row, NULL, i + 16, true));
    }
    if (i < dim)
        kv_load(type, row + ebb_kv_row_bytes(type, i), dim - i, out + i);
}

/* Rows [j0, j1) of a block; the same of the block that is next are asked for. */
V16_INLINE void block_to_float(const ebb_kv_type type, const uint8_t *rows, const uint8_t *next,
                               uint32_t j0, uint32_t j1, size_t dim, size_t width, float *out)
{
    size_t bytes = ebb_kv_row_bytes(type, dim);

    for (uint32_t j = j0; j < j1; j++) {
        fetch_bytes(next, j * bytes, (j + 1) * bytes);
        row_to_float(type, rows + j * bytes, dim, out + j * width);
    }
}

static void rows_to_float(ebb_kv_type type, const uint8_t *rows, const uint8_t *next, uint32_t j0,
                          uint32_t j1, size_t dim, size_t width, float *out)
{
    switch (type) {
    case EBB_KV_F32:  block_to_float(EBB_KV_F32, rows, next, j0, j1, dim, width, out); break;
    case EBB_KV_F16:  block_to_float(EBB_KV_F16, rows, next, j0, j1, dim, width, out); break;
    case EBB_KV_Q8_0: block_to_float(EBB_KV_Q8_0, rows, next, j0, j1, dim, width, out); break;
    default:          block_to_float(EBB_KV_Q4_0, rows, next, j0, j1, dim, width, out); break;
    }
}

#endif
