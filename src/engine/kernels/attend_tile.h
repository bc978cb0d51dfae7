/* kernels/attend_tile.h - rows of keys and values as floats, compiled for each kind of v16. */
#ifndef EBB_KERNELS_ATTEND_TILE_H
#define EBB_KERNELS_ATTEND_TILE_H
#include "kernels/kv_rows.h"

enum { BATCH = 16 };             /* queries that pass a tile together */

typedef struct tile {
    float *k, *v;                /* rows of width_k and width_v floats, zeroes behind the
                                    elements */
    size_t width_k, width_v;
    float *q;                    /* [BATCH][width_k]: queries, if dim_k is no multiple of 16 or
                                    they are few */
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

#ifndef V16_EXP
/* e^x for x <= 0. */
V16_INLINE v16 v16_exp(v16 x)
{
    float e[16];

    v16_store(e, v16_max(v16_set(-105.0f), x));
    for (int i = 0; i < 16; i++)
        e[i] = ebb_exp_near(e[i]);
    return v16_load(e);
}
#endif

/* Ask for bytes [from, to) of p, which may be NULL. */
V16_INLINE void fetch_bytes(const uint8_t *p, size_t from, size_t to)
{
    for (size_t at = from / 64 * 64; p && at < to; at += 64)
        __builtin_prefetch(p + at, 0, 3);
}

V16_INLINE bool is_quantized(const ebb_kv_type type)
{
    return type == EBB_KV_Q8_0 || type == EBB_KV_Q4_0;
}

V16_INLINE size_t row_bytes_of(const ebb_kv_type type, size_t dim)
{
    return type == EBB_KV_F32 ? 4 * dim
         : type == EBB_KV_F16 ? 2 * dim
                              : dim / 32 * (type == EBB_KV_Q8_0 ? 34 : 18);
}

/* 16 elements, the second or the first half of the 32 at `at`, of which d is the scale. */
V16_INLINE v16 half_load(const ebb_kv_type type, const uint8_t *at, v16 d, const bool is_second)
{
    switch (type) {
    case EBB_KV_F32:  return v16_load((const float *)(const void *)at + (is_second ? 16 : 0));
    case EBB_KV_F16:  return v16_load_f16(at + (is_second ? 32 : 0));
    case EBB_KV_Q8_0: return v16_mul(d, v16_load_i8((const int8_t *)at + 2 + (is_second ? 16 : 0)));
    default:          return v16_scaled_nibbles(at + 2, d, is_second);
    }
}

V16_INLINE v16 scale_at(const ebb_kv_type type, const uint8_t *at)
{
    return is_quantized(type) ? v16_set_f16(at) : v16_zero();
}

V16_INLINE void row_to_float(const ebb_kv_type type, const uint8_t *row, size_t dim, float *out)
{
    const uint8_t *at = row;
    size_t i = 0;

    for (; i + 32 <= dim; i += 32, at += row_bytes_of(type, 32)) {
        v16 d = scale_at(type, at);

        v16_store(out + i, half_load(type, at, d, false));
        v16_store(out + i + 16, half_load(type, at, d, true));
    }
    if (i < dim)
        kv_load(type, at, dim - i, out + i);
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
