/* kernels/attend_few.h - a few queries that see the same of a block, V16_FEW at a time, compiled
 * for each kind of v16.
 *
 * This is decode: the query heads of one KV head, one token or a few.  Rows of the cache are used
 * as they are converted, in registers, so a block is read from memory once and written nowhere;
 * meanwhile the next one is fetched.  Scores, then weights, stand as [key][query], with 1, 2, 4
 * or 8 queries, so softmax fills all lanes. */
#ifndef EBB_KERNELS_ATTEND_FEW_H
#define EBB_KERNELS_ATTEND_FEW_H
#include "kernels/attend_tile.h"

typedef struct few {
    const float *q;              /* few_queries */
    float       *acc[V16_FEW];   /* m, l, sums */
    uint32_t     j0, j1;         /* what they see of the block */
    float       *s;              /* [EBB_KV_BLOCK][n] */
    float        old[16];        /* m so far, [16 / n][n]; gathered before the scores: a wide load
                                    waits for small stores just made */
    float        rescale[16];    /* what sums so far keep, as old */
} few;

/* Keys, or values, of the block under way. */
typedef struct kv_block {
    ebb_kv_type    type;
    const uint8_t *rows, *next;  /* next: of the block behind it, to be fetched; NULL if there is
                                    none */
    size_t         dim;
} kv_block;

/* How many of n queries are next: V16_FEW, 4, 2 or 1.  Where there are too few, the last one comes
 * several times, with the same results. */
static uint32_t few_of(uint32_t n)
{
    return n + 1 >= V16_FEW ? V16_FEW : n > 2 ? 4 : n;
}

/* Queries stand as [dim / 16][n][16], one behind the other as they are used: a pointer to each
 * would take the registers that rows need. */
static void few_queries(const ebb_attend *a, float *out)
{
    uint32_t n_queries = a->n_cols * a->n_group;

    for (uint32_t from = 0, n; from < n_queries; from += n) {
        n = few_of(n_queries - from);
        for (uint32_t x = 0; x < n; x++) {
            uint32_t i = from + x < n_queries ? from + x : n_queries - 1;
            const float *q = a->q + i / a->n_group * a->q_stride
                           + (size_t)(i % a->n_group) * a->dim_k;

            for (size_t d = 0; d < a->dim_k; d += 16)
                v16_store(out + from * (size_t)a->dim_k + d * n + 16 * x, v16_load(q + d));
        }
    }
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

/* Bytes of each half that are due with n of `of` parts of the keys, or of the values.  Rounded up:
 * a line that is not asked for is waited for. */
V16_INLINE size_t few_share(const few_ahead *h, size_t n, size_t of)
{
    return (h->most * n + 2 * of - 1) / (2 * of);
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

/* Keys from `row` on: their products with 16 n_halves elements of each query. */
V16_INLINE void few_products(const ebb_kv_type type, const float *q, const uint8_t *row,
                             size_t row_bytes, const int n_halves, const int n, v16 sum[V16_KEYS])
{
    const int n_keys = V16_KEYS / n;

#pragma GCC unroll 16
    for (int y = 0; y < n_keys; y++, row += row_bytes) {
        v16 scale = scale_at(type, row);
#pragma GCC unroll 2
        for (int h = 0; h < n_halves; h++) {
            v16 key = half_load(type, row, scale, h);
#pragma GCC unroll 8
            for (int x = 0; x < n; x++)
                sum[y * n + x] = v16_fma(v16_load(q + (h * n + x) * 16), key, sum[y * n + x]);
        }
    }
}

V16_INLINE void few_scores_of(const ebb_kv_type type, const few *f, const kv_block *k,
                              few_ahead *next, const int n)
{
    const uint32_t n_keys = V16_KEYS / (uint32_t)n, j1 = f->j1;
    const size_t row_bytes = row_bytes_of(type, k->dim), dim = k->dim;

    for (uint32_t j = f->j0 / n_keys * n_keys; j < j1; j += n_keys) {
        const uint8_t *at = k->rows + j * row_bytes;
        const float *q = f->q;
        v16 sum[V16_KEYS];
        size_t d = 0;

        few_fetch(next, few_share(next, n_keys, EBB_KV_BLOCK));
#pragma GCC unroll 16
        for (int i = 0; i < V16_KEYS; i++)
            sum[i] = v16_zero();
        for (; d + 32 <= dim; d += 32, at += row_bytes_of(type, 32), q += 32 * n)
            few_products(type, q, at, row_bytes, 2, n, sum);
        if (d < dim)
            few_products(type, q, at, row_bytes, 1, n, sum);
        v16_sum_keys(sum, f->s + j * (uint32_t)n);
    }
}

/* -- Softmax ------------------------------------------------------------------- */

/* Scores that are capped, or not all seen: scaled, -inf for those that are not. */
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

/* Scores to weights; m and l of each query.  A query has every nth lane; sums over the keys as K3:
 * j and j + 16, j + 8, j + 4, j + 2, j + 1. */
V16_INLINE void few_weigh_of(const ebb_attend *a, few *f, const int n)
{
    float m[16], sum[16];
    v16 s[2 * V16_FEW], scale = v16_set(a->scale), old = v16_load(f->old), top = old;

    if (a->softcap > 0 || f->j0 > 0 || f->j1 < EBB_KV_BLOCK) {
        few_scale(a, f, n);
        scale = v16_set(1);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 2 * n; i++) {
        s[i] = v16_mul(scale, v16_load(f->s + 16 * i));
        top = v16_max(s[i], top);
    }
#pragma GCC unroll 4
    for (int step = 8; step >= n; step /= 2)
        top = v16_max(top, v16_swap(top, step));
    v16 less = v16_mul(top, v16_set(-1));
    v16_store(f->rescale, v16_exp(v16_add(old, less)));
#pragma GCC unroll 16
    for (int i = 0; i < 2 * n; i++) {
        s[i] = v16_exp(v16_add(s[i], less));
        v16_store(f->s + 16 * i, s[i]);
    }
#pragma GCC unroll 4
    for (int step = n; step > 0; step /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < step; i++)
            s[i] = v16_add(s[i], s[i + step]);
#pragma GCC unroll 4
    for (int step = 8; step >= n; step /= 2)
        s[0] = v16_add(s[0], v16_swap(s[0], step));
    v16_store(m, top);
    v16_store(sum, s[0]);
    for (int i = 0; i < n; i++)
        sum[i] = fmaf(f->acc[i][1], f->rescale[i], sum[i]);
    for (int i = 0; i < n; i++) {                /* the last two may be one */
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
    const size_t row_bytes = row_bytes_of(type, v->dim);
    const size_t ahead = few_share(next, 16 * (size_t)n_v, EBB_KV_BLOCK * v->dim);
    const uint8_t *row = v->rows + f->j0 * row_bytes + row_bytes_of(type, d);
    const float *weight = f->s + f->j0 * (uint32_t)n;
    const size_t first = 2 + d + (is_second ? 16 : 0);
    v16 s[V16_KEYS];

#pragma GCC unroll 8
    for (int x = 0; x < n; x++)
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            s[x * n_v + y] = v16_mul(v16_load(f->acc[x] + first + 16 * y), v16_set(f->rescale[x]));
    for (uint32_t j = f->j0; j < f->j1; j++, row += row_bytes, weight += n) {
        v16 value[V16_KEYS];

        few_fetch(next, ahead);
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++) {
            const uint8_t *at = row + y / 2 * (int)row_bytes_of(type, 32);

            value[y] = half_load(type, at, scale_at(type, at), is_second != (y % 2 == 1));
        }
#pragma GCC unroll 8
        for (int x = 0; x < n; x++) {
            v16 w = v16_set(weight[x]);
#pragma GCC unroll 16
            for (int y = 0; y < n_v; y++)
                s[x * n_v + y] = v16_fma(w, value[y], s[x * n_v + y]);
        }
    }
#pragma GCC unroll 8
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

#if V16_FEW == 8
static void attend_eight(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v,
                         few_ahead *next)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, next, 8)
    few_weigh_of(a, f, 8);
    FEW_OF_TYPES(few_values_of, v->type, f, v, next, 8)
}
#endif

/* Queries of a from `from` on, which see [j0, j1) of the block; how many these are. */
static uint32_t attend_some(const ebb_attend *a, const kv_block *k, const kv_block *v,
                            few_ahead *next, uint32_t from, uint32_t j0, uint32_t j1, const tile *t)
{
    few f = { .q = t->q + from * (size_t)a->dim_k, .j0 = j0, .j1 = j1, .s = t->s };
    uint32_t last = a->n_cols * a->n_group - 1, n = few_of(last + 1 - from);

    for (uint32_t x = 0; x < n; x++)
        f.acc[x] = a->acc + (from + x < last ? from + x : last) * ((size_t)a->dim_v + 2);
    for (uint32_t i = 0; i < 16; i++)
        f.old[i] = f.acc[i % n][0];
    switch (n) {
    case 1:  attend_one(a, &f, k, v, next); break;
    case 2:  attend_two(a, &f, k, v, next); break;
    case 4:  attend_four(a, &f, k, v, next); break;
#if V16_FEW == 8
    default: attend_eight(a, &f, k, v, next); break;
#endif
    }
    return n;
}

/* All queries of a, which see [j0, j1) of the block; those behind the first few find it in the
 * first cache. */
static void attend_few(const ebb_attend *a, const kv_block *k, const kv_block *v, uint32_t j0,
                       uint32_t j1, const tile *t)
{
    few_ahead next = ahead_of(k, v);             /* the first few fetch all of it */

    for (uint32_t i = 0; i < a->n_cols * a->n_group;)
        i += attend_some(a, k, v, &next, i, j0, j1, t);
}

#endif
