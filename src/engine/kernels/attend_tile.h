/* kernels/attend_tile.h - a block of keys and values as floats, compiled for each kind of v16. */
#ifndef EBB_KERNELS_ATTEND_TILE_H
#define EBB_KERNELS_ATTEND_TILE_H
#include "kernels/kv_rows.h"

enum { BATCH = 16 };             /* queries whose softmax is taken at once, a lane each */

typedef struct tile {
    float *k, *v;                /* rows of width_k and width_v floats, zeroes behind the elements */
    size_t width_k, width_v;
    float *q;                    /* [BATCH][width_k]: queries, if dim_k is no multiple of 16 */
    float *s;                    /* [EBB_KV_BLOCK][BATCH]: scores, then weights */
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

V16_INLINE void bytes_to_float(const int8_t q[32], v16 d, float *out)
{
    v16_store(out, v16_mul(d, v16_load_i8(q)));
    v16_store(out + 16, v16_mul(d, v16_load_i8(q + 16)));
}

static void row_to_float(ebb_kv_type type, const uint8_t *row, size_t dim, float *out)
{
    size_t i = 0;

    if (type == EBB_KV_F16)
        for (; i + 16 <= dim; i += 16)
            v16_store(out + i, v16_load_f16(row + 2 * i));
    if (type == EBB_KV_Q8_0)
        for (const uint8_t *b = row; i + 32 <= dim; i += 32, b += 34)
            bytes_to_float((const int8_t *)b + 2, v16_set_f16(b), out + i);
    if (type == EBB_KV_Q4_0)
        for (const uint8_t *b = row; i + 32 <= dim; i += 32, b += 18) {
            int8_t q[32];

            ebb_decode_nibbles(b + 2, 8, q);
            bytes_to_float(q, v16_set_f16(b), out + i);
        }
    if (i < dim)
        kv_load(type, row + ebb_kv_row_bytes(type, i), dim - i, out + i);
}

static void rows_to_float(ebb_kv_type type, const uint8_t *rows, uint32_t j0, uint32_t j1, size_t dim, size_t width, float *out)
{
    size_t bytes = ebb_kv_row_bytes(type, dim);

    for (uint32_t j = j0; j < j1; j++)
        row_to_float(type, rows + j * bytes, dim, out + j * width);
}

#endif
