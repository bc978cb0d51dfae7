/* kernels/attend_few.h - a few queries that see the same of a block, four at a time, compiled for
 * each kind of v16.
 *
 * This is decode: the query heads of one KV head, one token.  Rows of the cache are used as they
 * are converted, in registers, so a block is read from memory once and written nowhere; meanwhile
 * the next one is fetched.  Scores, then weights, stand as [key][query], with 1, 2 or 4 queries, so
 * softmax fills all lanes. */
#ifndef EBB_KERNELS_ATTEND_FEW_H
#define EBB_KERNELS_ATTEND_FEW_H
#include "kernels/attend_tile.h"

typedef struct few {
    uint32_t     n;              /* 1, 2, 4: three queries are four, the last one twice, with the
                                    same results */
    const float *q[4];
    float       *acc[4];         /* m, l, sums */
    uint32_t     j0, j1;         /* what they see of the block */
    float       *s;              /* [EBB_KV_BLOCK][n] */
    float        rescale[16];    /* what sums so far keep */
} few;

/* Keys, or values, of the block under way. */
typedef struct kv_block {
    ebb_kv_type    type;
    const uint8_t *rows, *next;  /* next: of the block behind it, to be fetched; NULL if there is
                                    none */
    size_t         dim;
    const float   *scales;       /* [EBB_KV_BLOCK][dim / 32], of quantized rows (block_scales) */
} kv_block;

/* The scales of all rows, if they have some: each serves 32 elements in several passes over the
 * block.  They are gathered first, all of them: a wide load waits for small stores just made. */
static void block_scales(kv_block *b, float *out)
{
    size_t n = b->dim / 32 * EBB_KV_BLOCK, n_bytes = row_bytes_of(b->type, 32);
    uint16_t *half = (void *)(out + n);

    b->scales = out;
    if (!is_quantized(b->type))
        return;
    for (size_t i = 0; i < n; i++)
        half[i] = ebb_u16_load(b->rows + i * n_bytes);
    for (size_t i = 0; i < n; i += 16)
        v16_store(out + i, v16_load_f16(half + i));
}

V16_INLINE v16 scale_of(const ebb_kv_type type, const float *scale)
{
    return is_quantized(type) ? v16_set(*scale) : v16_zero();
}

/* -- What comes next --------------------------------------------------------------- */

/* The blocks of keys and values behind those under way: with each step of the work on these, as
 * much of those is fetched.  A CPU's own fetching follows within a page of 4 KiB what is asked for,
 * so the halves of both come side by side. */
typedef struct few_ahead {
    const uint8_t *k, *v;        /* NULL: there are none */
    size_t k_half, v_half;       /* bytes */
    size_t most;                 /* of these */
    size_t at, to;               /* of each half: what was asked for, what is due */
} few_ahead;

enum { AHEAD = 2 };              /* into the second cache: two blocks may be more than the first
                                    holds */

static few_ahead ahead_of(const kv_block *k, const kv_block *v)
{
    few_ahead h = { .k = k->next, .v = v->next };

    h.k_half = h.k ? EBB_KV_BLOCK * row_bytes_of(k->type, k->dim) / 2 : 0;
    h.v_half = h.v ? EBB_KV_BLOCK * row_bytes_of(v->type, v->dim) / 2 : 0;
    h.most = h.k_half > h.v_half ? h.k_half : h.v_half;
    return h;
}

/* n bytes more of each half. */
V16_INLINE void few_fetch(few_ahead *h, size_t n)
{
    for (h->to += n; h->at < h->to; h->at += 64) {
        if (h->at < h->k_half) {
            __builtin_prefetch(h->k + h->at, 0, AHEAD);
            __builtin_prefetch(h->k + h->k_half + h->at, 0, AHEAD);
        }
        if (h->at < h->v_half) {
            __builtin_prefetch(h->v + h->at, 0, AHEAD);
            __builtin_prefetch(h->v + h->v_half + h->at, 0, AHEAD);
        }
    }
}

/* -- Scores -------------------------------------------------------------------- */

/* Keys from `row` on: their products with elements [d, d + 16 n_halves) of each query. */
V16_INLINE void few_products(const ebb_kv_type type, const few *f, const uint8_t *row,
                             size_t row_bytes, const float *scale, size_t n_scales, size_t d,
                             const int n_halves, const int n, v16 sum[V16_KEYS])
{
    const int n_keys = V16_KEYS / n;

#pragma GCC unroll 16
    for (int y = 0; y < n_keys; y++, row += row_bytes, scale += n_scales) {
#pragma GCC unroll 2
        for (int h = 0; h < n_halves; h++) {
            v16 key = half_load(type, row, scale_of(type, scale), h);
#pragma GCC unroll 4
            for (int x = 0; x < n; x++)
                sum[y * n + x] = v16_fma(v16_load(f->q[x] + d + 16 * h), key, sum[y * n + x]);
        }
    }
}

V16_INLINE void few_scores_of(const ebb_kv_type type, const few *f, const kv_block *k,
                              few_ahead *next, const int n)
{
    const uint32_t n_keys = V16_KEYS / (uint32_t)n;
    const size_t row_bytes = row_bytes_of(type, k->dim), n_scales = k->dim / 32;

    for (uint32_t j = f->j0 / n_keys * n_keys; j < f->j1; j += n_keys) {
        const uint8_t *at = k->rows + j * row_bytes;
        const float *scale = k->scales + j * n_scales;
        v16 sum[V16_KEYS];
        size_t d = 0;

        few_fetch(next, next->most * n_keys / (2 * EBB_KV_BLOCK));
#pragma GCC unroll 16
        for (int i = 0; i < V16_KEYS; i++)
            sum[i] = v16_zero();
        for (; d + 32 <= k->dim; d += 32, at += row_bytes_of(type, 32), scale++)
            few_products(type, f, at, row_bytes, scale, n_scales, d, 2, n, sum);
        if (d < k->dim)
            few_products(type, f, at, row_bytes, scale, n_scales, d, 1, n, sum);
        v16_sum_keys(sum, f->s + j * (uint32_t)n);
    }
}

/* -- Softmax ------------------------------------------------------------------- */

/* Scale the scores; -inf for what is not seen. */
V16_INLINE void few_scale(const ebb_attend *a, const few *f, const int n)
{
    v16 scale = v16_set(a->scale);
    float *s = f->s;

    for (int i = 0; i < (int)EBB_KV_BLOCK * n; i += 16)
        v16_store(s + i, v16_mul(scale, v16_load(s + i)));
    if (a->softcap > 0)
        for (int i = 0; i < (int)EBB_KV_BLOCK * n; i++)
            s[i] = a->softcap * ebb_tanh(s[i] / a->softcap);
    for (int i = 0; i < (int)f->j0 * n; i++)
        s[i] = -INFINITY;
    for (int i = (int)f->j1 * n; i < (int)EBB_KV_BLOCK * n; i++)
        s[i] = -INFINITY;
}

/* Of each query the largest score and m so far; in all lanes of the query. */
V16_INLINE void few_most(const few *f, const float old[16], const int n, float m[16])
{
    v16 top = v16_load(old);

    for (int i = 0; i < (int)EBB_KV_BLOCK * n; i += 16)
        top = v16_max(v16_load(f->s + i), top);
    v16_store(m, top);
    for (int step = 8; step >= n; step /= 2)
        for (int i = 0; i < step; i++)
            m[i] = m[i] > m[i + step] ? m[i] : m[i + step];
    for (int i = n; i < 16; i++)
        m[i] = m[i % n];
}

/* Sums over the keys as K3: j and j + 16, j + 8, j + 4, j + 2, j + 1. */
V16_INLINE void few_sums(const few *f, const int n, float sum[16])
{
    v16 part[4];

    for (int i = 0; i < n; i++)
        part[i] = v16_add(v16_load(f->s + 16 * i), v16_load(f->s + 16 * (i + n)));
    for (int step = n / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            part[i] = v16_add(part[i], part[i + step]);
    v16_store(sum, part[0]);
    for (int step = 8; step >= n; step /= 2)
        for (int i = 0; i < step; i++)
            sum[i] += sum[i + step];
}

/* Scores to weights; m and l of each query. */
V16_INLINE void few_weigh_of(const ebb_attend *a, few *f, const int n)
{
    float old[16], m[16], sum[16];

    for (int i = 0; i < 16; i++)
        old[i] = f->acc[i % n][0];
    few_scale(a, f, n);
    few_most(f, old, n, m);
    for (int j = 0; j < (int)EBB_KV_BLOCK * n; j += 16)
        for (int i = 0; i < 16; i++)
            f->s[j + i] = ebb_exp(f->s[j + i] - m[i]);
    few_sums(f, n, sum);
    for (int i = 0; i < 16; i++)
        f->rescale[i] = ebb_exp(old[i] - m[i]);
    for (int i = 0; i < n; i++)
        sum[i] = fmaf(f->acc[i][1], f->rescale[i], sum[i]);
    for (int i = 0; i < n; i++) {
        f->acc[i][0] = m[i];
        f->acc[i][1] = sum[i];
    }
}

/* -- Values -------------------------------------------------------------------- */

/* The sums of n_v vectors of 16 elements from d on, a multiple of 32; if n_v is 1, from d + 16 on
 * if `is_second`. */
V16_INLINE void few_values_part(const ebb_kv_type type, const few *f, const kv_block *v,
                                few_ahead *next, size_t d, const bool is_second, const int n,
                                const int n_v)
{
    const size_t row_bytes = row_bytes_of(type, v->dim), n_scales = v->dim / 32;
    const size_t ahead = next->most * 16 * (size_t)n_v / v->dim / (2 * EBB_KV_BLOCK);
    const uint8_t *row = v->rows + f->j0 * row_bytes + row_bytes_of(type, d);
    const float *scale = v->scales + f->j0 * n_scales + d / 32;
    const float *weight = f->s + f->j0 * (uint32_t)n;
    const size_t first = 2 + d + (is_second ? 16 : 0);
    v16 s[V16_KEYS];

#pragma GCC unroll 4
    for (int x = 0; x < n; x++)
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            s[x * n_v + y] = v16_mul(v16_load(f->acc[x] + first + 16 * y), v16_set(f->rescale[x]));
    for (uint32_t j = f->j0; j < f->j1; j++, row += row_bytes, scale += n_scales, weight += n) {
        v16 value[V16_KEYS];

        few_fetch(next, ahead);
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            value[y] = half_load(type, row + y / 2 * (int)row_bytes_of(type, 32),
                                 scale_of(type, scale + y / 2), is_second != (y % 2 == 1));
#pragma GCC unroll 4
        for (int x = 0; x < n; x++) {
            v16 w = v16_set(weight[x]);
#pragma GCC unroll 16
            for (int y = 0; y < n_v; y++)
                s[x * n_v + y] = v16_fma(w, value[y], s[x * n_v + y]);
        }
    }
#pragma GCC unroll 4
    for (int x = 0; x < n; x++)
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            v16_store(f->acc[x] + first + 16 * y, s[x * n_v + y]);
}

V16_INLINE void few_values_of(const ebb_kv_type type, const few *f, const kv_block *v,
                              few_ahead *next, const int n)
{
    const int n_v = V16_KEYS / n < V16_VALUES ? V16_KEYS / n : V16_VALUES;
    size_t d = 0, step = n_v > 1 ? 16 * (size_t)n_v : 32;

    for (; d + step <= v->dim; d += step) {
        few_values_part(type, f, v, next, d, false, n, n_v);
        if (n_v == 1)
            few_values_part(type, f, v, next, d, true, n, 1);
    }
    for (; d < v->dim; d += 32) {
        few_values_part(type, f, v, next, d, false, n, 1);
        if (d + 16 < v->dim)
            few_values_part(type, f, v, next, d, true, n, 1);
    }
}

/* -- Which of them ---------------------------------------------------------------- */

#define FEW_OF_TYPES(call, type, ...)                          \
    switch (type) {                                            \
    case EBB_KV_F32:  call(EBB_KV_F32, __VA_ARGS__); break;    \
    case EBB_KV_F16:  call(EBB_KV_F16, __VA_ARGS__); break;    \
    case EBB_KV_Q8_0: call(EBB_KV_Q8_0, __VA_ARGS__); break;   \
    default:          call(EBB_KV_Q4_0, __VA_ARGS__); break;   \
    }

static void attend_one(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v,
                       few_ahead *next)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, next, 1)
    few_weigh_of(a, f, 1);
    FEW_OF_TYPES(few_values_of, v->type, f, v, next, 1)
}

static void attend_two(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v,
                       few_ahead *next)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, next, 2)
    few_weigh_of(a, f, 2);
    FEW_OF_TYPES(few_values_of, v->type, f, v, next, 2)
}

static void attend_four(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v,
                        few_ahead *next)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, next, 4)
    few_weigh_of(a, f, 4);
    FEW_OF_TYPES(few_values_of, v->type, f, v, next, 4)
}

/* Queries [from, from + n) of a, which see [j0, j1) of the block. */
static void attend_some(const ebb_attend *a, const kv_block *k, const kv_block *v, few_ahead *next,
                        uint32_t from, uint32_t n, uint32_t j0, uint32_t j1, float *s)
{
    few f = { .n = n == 3 ? 4 : n, .j0 = j0, .j1 = j1, .s = s };

    for (uint32_t x = 0; x < f.n; x++) {
        uint32_t i = from + (x < n ? x : n - 1);

        f.q[x] = a->q + i / a->n_group * a->q_stride + (size_t)(i % a->n_group) * a->dim_k;
        f.acc[x] = a->acc + i * ((size_t)a->dim_v + 2);
    }
    if (n > 2)
        attend_four(a, &f, k, v, next);
    else if (n == 2)
        attend_two(a, &f, k, v, next);
    else
        attend_one(a, &f, k, v, next);
}

/* All queries of a, which see [j0, j1) of the block; those behind the first four find it in the
 * first cache. */
static void attend_few(const ebb_attend *a, kv_block *k, kv_block *v, uint32_t j0, uint32_t j1,
                       const tile *t)
{
    uint32_t n = a->n_cols * a->n_group;
    few_ahead next = ahead_of(k, v);

    block_scales(k, t->k);                       /* the tile serves nobody else here */
    block_scales(v, t->v);
    for (uint32_t i = 0; i < n; i += 4)          /* the first four fetch all that comes next */
        attend_some(a, k, v, &next, i, n - i < 4 ? n - i : 4, j0, j1, t->s);
}

#endif
