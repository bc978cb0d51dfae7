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
    const float   *scales;       /* [EBB_KV_BLOCK][dim / 32] of quantized rows (block_scales) */
} kv_block;

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

/* The scales of all rows, if they have some: each serves 32 elements in several passes over the
 * block. */
static void block_scales(kv_block *b, float *out)
{
    size_t n = b->dim / 32 * EBB_KV_BLOCK, n_bytes = row_bytes_of(b->type, 32);

    if (!is_quantized(b->type))
        return;
    for (size_t i = 0; i < n; i += 16) {
        uint16_t half[16];

        for (size_t j = 0; j < 16; j++)
            half[j] = ebb_u16_load(b->rows + (i + j) * n_bytes);
        v16_store(out + i, v16_load_f16(half));
    }
    b->scales = out;
}

/* Elements [d, d + 16) of row j, of which is_second says as in row_load. */
V16_INLINE v16 block_load(const ebb_kv_type type, const kv_block *b, uint32_t j, size_t d,
                          const bool is_second)
{
    const uint8_t *row = b->rows + j * row_bytes_of(type, b->dim);

    return row_load(type, row, is_quantized(type) ? b->scales + j * (b->dim / 32) : NULL, d,
                    is_second);
}

/* -- Scores -------------------------------------------------------------------- */

/* One key after another: its products with 16 elements of each query. */
V16_INLINE void few_products(const ebb_kv_type type, const few *f, const kv_block *k, uint32_t j,
                             size_t d, const bool is_second, const int n, v16 sum[V16_KEYS])
{
    const int n_keys = V16_KEYS / n;

#pragma GCC unroll 16
    for (int y = 0; y < n_keys; y++) {
        v16 key = block_load(type, k, j + (uint32_t)y, d, is_second);
#pragma GCC unroll 4
        for (int x = 0; x < n; x++)
            sum[y * n + x] = v16_fma(v16_load(f->q[x] + d), key, sum[y * n + x]);
    }
}

V16_INLINE void few_scores_of(const ebb_kv_type type, const few *f, const kv_block *k, const int n)
{
    const uint32_t n_keys = V16_KEYS / (uint32_t)n;
    size_t row_bytes = row_bytes_of(type, k->dim);

    for (uint32_t j = f->j0 / n_keys * n_keys; j < f->j1; j += n_keys) {
        v16 sum[V16_KEYS];
        size_t d = 0;

        fetch_bytes(k->next, j * row_bytes, (j + n_keys) * row_bytes);
#pragma GCC unroll 16
        for (int i = 0; i < V16_KEYS; i++)
            sum[i] = v16_zero();
        for (; d + 32 <= k->dim; d += 32) {
            few_products(type, f, k, j, d, false, n, sum);
            few_products(type, f, k, j, d + 16, true, n, sum);
        }
        if (d < k->dim)
            few_products(type, f, k, j, d, false, n, sum);
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

/* The sums of n_v vectors of 16 elements from d on; at every second row a line of [*at, end) is
 * asked for. */
V16_INLINE void few_values_part(const ebb_kv_type type, const few *f, const kv_block *v, size_t d,
                                const bool is_second, const int n, const int n_v,
                                const uint8_t **at, const uint8_t *end)
{
    v16 s[V16_KEYS];

#pragma GCC unroll 4
    for (int x = 0; x < n; x++)
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            s[x * n_v + y] = v16_mul(v16_load(f->acc[x] + 2 + d + 16 * y), v16_set(f->rescale[x]));
    for (uint32_t j = f->j0; j < f->j1; j++) {
        v16 value[V16_KEYS];

        if (j % 2 == 0 && *at < end) {
            __builtin_prefetch(*at, 0, 3);
            *at += 64;
        }
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            value[y] = block_load(type, v, j, d + 16 * (size_t)y, is_second != (y % 2 == 1));
#pragma GCC unroll 4
        for (int x = 0; x < n; x++) {
            v16 w = v16_set(f->s[j * (uint32_t)n + (uint32_t)x]);
#pragma GCC unroll 16
            for (int y = 0; y < n_v; y++)
                s[x * n_v + y] = v16_fma(w, value[y], s[x * n_v + y]);
        }
    }
#pragma GCC unroll 4
    for (int x = 0; x < n; x++)
#pragma GCC unroll 16
        for (int y = 0; y < n_v; y++)
            v16_store(f->acc[x] + 2 + d + 16 * y, s[x * n_v + y]);
}

V16_INLINE void few_values_of(const ebb_kv_type type, const few *f, const kv_block *v, const int n)
{
    const int n_v = V16_KEYS / n < V16_VALUES ? V16_KEYS / n : V16_VALUES;
    const uint8_t *at = v->next, *end = at ? at + EBB_KV_BLOCK * row_bytes_of(type, v->dim) : NULL;
    size_t d = 0, step = n_v > 1 ? 16 * (size_t)n_v : 32;

    for (; d + step <= v->dim; d += step) {
        few_values_part(type, f, v, d, false, n, n_v, &at, end);
        if (n_v == 1)
            few_values_part(type, f, v, d + 16, true, n, 1, &at, end);
    }
    for (; d < v->dim; d += 32) {
        few_values_part(type, f, v, d, false, n, 1, &at, end);
        if (d + 16 < v->dim)
            few_values_part(type, f, v, d + 16, true, n, 1, &at, end);
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

static void attend_one(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, 1)
    few_weigh_of(a, f, 1);
    FEW_OF_TYPES(few_values_of, v->type, f, v, 1)
}

static void attend_two(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, 2)
    few_weigh_of(a, f, 2);
    FEW_OF_TYPES(few_values_of, v->type, f, v, 2)
}

static void attend_four(const ebb_attend *a, few *f, const kv_block *k, const kv_block *v)
{
    FEW_OF_TYPES(few_scores_of, k->type, f, k, 4)
    few_weigh_of(a, f, 4);
    FEW_OF_TYPES(few_values_of, v->type, f, v, 4)
}

/* Queries [from, from + n) of a, which see [j0, j1) of the block. */
static void attend_some(const ebb_attend *a, const kv_block *k, const kv_block *v, uint32_t from,
                        uint32_t n, uint32_t j0, uint32_t j1, float *s)
{
    few f = { .n = n == 3 ? 4 : n, .j0 = j0, .j1 = j1, .s = s };

    for (uint32_t x = 0; x < f.n; x++) {
        uint32_t i = from + (x < n ? x : n - 1);

        f.q[x] = a->q + i / a->n_group * a->q_stride + (size_t)(i % a->n_group) * a->dim_k;
        f.acc[x] = a->acc + i * ((size_t)a->dim_v + 2);
    }
    if (n > 2)
        attend_four(a, &f, k, v);
    else if (n == 2)
        attend_two(a, &f, k, v);
    else
        attend_one(a, &f, k, v);
}

/* All queries of a, which see [j0, j1) of the block; those behind the first four find it in the
 * first cache. */
static void attend_few(const ebb_attend *a, kv_block *k, kv_block *v, uint32_t j0, uint32_t j1,
                       const tile *t)
{
    uint32_t n = a->n_cols * a->n_group;

    block_scales(k, t->k);                       /* the tile serves nobody else here */
    block_scales(v, t->v);
    for (uint32_t i = 0; i < n; i += 4) {
        attend_some(a, k, v, i, n - i < 4 ? n - i : 4, j0, j1, t->s);
        k->next = v->next = NULL;
    }
}

#endif
