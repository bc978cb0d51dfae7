/* kernels/attend_body.h - attention over one segment, compiled for each kind of v16.
 *
 * A few queries use the rows of the cache as they are converted (attend_few.h).  For more, keys
 * and values of a block are made floats once, in the scratch; queries (columns and heads) then
 * pass in batches of 16: products in squares of a few queries by a few keys (or by a few vectors
 * of values), so that each load serves several.  Softmax has the keys in lanes, so that all are
 * in use whatever the number of queries.  The next block is fetched while one is computed.
 * The sums and their order are those of scalar_attend.c. */
#ifndef EBB_KERNELS_ATTEND_BODY_H
#define EBB_KERNELS_ATTEND_BODY_H
#include "kernels/float_body.h"
#include "kernels/impl.h"
#include "kernels/attend_few.h"

typedef struct batch {
    uint32_t     n;              /* queries */
    const float *q[BATCH];       /* width_k floats each */
    float       *acc[BATCH];
    uint32_t     j0[BATCH], j1[BATCH];           /* which positions of the block they see */
    uint32_t     lo, hi;         /* all that any of them sees */
} batch;

/* -- Scores -------------------------------------------------------------------- */

/* V16_SIDE queries from lane i by V16_SIDE keys from j. */
V16_INLINE void scores_square(const tile *t, const batch *b, uint32_t i, uint32_t j)
{
    const float *k = t->k + j * t->width_k;
    float out[V16_KEYS];
    v16 sum[V16_KEYS];

#pragma GCC unroll 16
    for (int n = 0; n < V16_KEYS; n++)
        sum[n] = v16_zero();
    for (size_t d = 0; d < t->width_k; d += 16) {
        v16 q[V16_SIDE];

#pragma GCC unroll 4
        for (int x = 0; x < V16_SIDE; x++)
            q[x] = v16_load(b->q[i + (uint32_t)x] + d);
#pragma GCC unroll 4
        for (int y = 0; y < V16_SIDE; y++) {
            v16 key = v16_load(k + (size_t)y * t->width_k + d);
#pragma GCC unroll 4
            for (int x = 0; x < V16_SIDE; x++)
                sum[x * V16_SIDE + y] = v16_fma(q[x], key, sum[x * V16_SIDE + y]);
        }
    }
    v16_sum_keys(sum, out);
    for (uint32_t x = 0; x < V16_SIDE; x++)
        memcpy(t->s + (i + x) * EBB_KV_BLOCK + j, out + x * V16_SIDE, V16_SIDE * sizeof(float));
}

/* Query i by V16_KEYS keys from j. */
V16_INLINE void scores_row(const tile *t, const batch *b, uint32_t i, uint32_t j)
{
    const float *k = t->k + j * t->width_k, *q = b->q[i];
    v16 sum[V16_KEYS];

#pragma GCC unroll 16
    for (int n = 0; n < V16_KEYS; n++)
        sum[n] = v16_zero();
    for (size_t d = 0; d < t->width_k; d += 16) {
        v16 x = v16_load(q + d);
#pragma GCC unroll 16
        for (int n = 0; n < V16_KEYS; n++)
            sum[n] = v16_fma(x, v16_load(k + (size_t)n * t->width_k + d), sum[n]);
    }
    v16_sum_keys(sum, t->s + i * EBB_KV_BLOCK + j);
}

static void scores(const tile *t, const batch *b)
{
    uint32_t i = 0;

    for (; i + V16_SIDE <= b->n; i += V16_SIDE)
        for (uint32_t j = b->lo / V16_SIDE * V16_SIDE; j < b->hi; j += V16_SIDE)
            scores_square(t, b, i, j);
    for (; i < b->n; i++)
        for (uint32_t j = b->lo / V16_KEYS * V16_KEYS; j < b->hi; j += V16_KEYS)
            scores_row(t, b, i, j);
}

/* -- Softmax, a key in each lane --------------------------------------------------- */

/* Scale the scores of [j0, j1), -inf for the rest; the largest of them and `most`. */
static float scale_scores(const ebb_attend *a, float *s, uint32_t j0, uint32_t j1, float most)
{
    v16 scale = v16_set(a->scale), top = v16_set(most);

    for (uint32_t j = 0; j < EBB_KV_BLOCK; j += 16)
        v16_store(s + j, v16_mul(scale, v16_load(s + j)));
    if (a->softcap > 0)
        for (uint32_t j = 0; j < EBB_KV_BLOCK; j++)
            s[j] = a->softcap * ebb_tanh(s[j] / a->softcap);
    for (uint32_t j = 0; j < j0; j++)
        s[j] = -INFINITY;
    for (uint32_t j = j1; j < EBB_KV_BLOCK; j++)
        s[j] = -INFINITY;
    for (uint32_t j = 0; j < EBB_KV_BLOCK; j += 16)
        top = v16_max(v16_load(s + j), top);
    return v16_most(top);
}

/* Scores to weights, m and l of each query; what its values keep.  Sums of the weights as K3. */
static void weigh(const ebb_attend *a, const tile *t, const batch *b, float rescale[BATCH])
{
    float m[BATCH] = { 0 }, old[BATCH] = { 0 };

    for (uint32_t i = 0; i < b->n; i++) {
        float *s = t->s + i * EBB_KV_BLOCK;

        old[i] = b->acc[i][0];
        m[i] = scale_scores(a, s, b->j0[i], b->j1[i], old[i]);
        for (uint32_t j = 0; j < EBB_KV_BLOCK; j += 16)
            v16_store(s + j, v16_exp(v16_add(v16_load(s + j), v16_set(-m[i]))));
    }
    v16_store(rescale, v16_exp(v16_add(v16_load(old), v16_mul(v16_load(m), v16_set(-1)))));
    for (uint32_t i = 0; i < b->n; i++) {
        const float *s = t->s + i * EBB_KV_BLOCK;

        b->acc[i][0] = m[i];
        b->acc[i][1] = fmaf(b->acc[i][1], rescale[i],
                            v16_sum(v16_add(v16_load(s), v16_load(s + 16))));
    }
}

/* -- Values -------------------------------------------------------------------- */

/* sum = sum * rescale + p . v of n_q queries from lane i, n_v vectors of 16 from element d. */
V16_INLINE void add_values(const tile *t, const batch *b, const float *rescale, uint32_t i,
                           size_t d, const int n_q, const int n_v)
{
    const float *v = t->v + d, *p = t->s + i * EBB_KV_BLOCK;
    v16 s[V16_KEYS];

#pragma GCC unroll 4
    for (int x = 0; x < n_q; x++)
#pragma GCC unroll 8
        for (int y = 0; y < n_v; y++)
            s[x * n_v + y] = v16_mul(v16_load(b->acc[i + (uint32_t)x] + 2 + d + 16 * y),
                                     v16_set(rescale[i + (uint32_t)x]));
    for (uint32_t j = b->j0[i]; j < b->j1[i]; j++) {
        v16 row[V16_VALUES];

#pragma GCC unroll 8
        for (int y = 0; y < n_v; y++)
            row[y] = v16_load(v + j * t->width_v + 16 * (size_t)y);
#pragma GCC unroll 4
        for (int x = 0; x < n_q; x++) {
            v16 w = v16_set(p[(uint32_t)x * EBB_KV_BLOCK + j]);
#pragma GCC unroll 8
            for (int y = 0; y < n_v; y++)
                s[x * n_v + y] = v16_fma(w, row[y], s[x * n_v + y]);
        }
    }
#pragma GCC unroll 4
    for (int x = 0; x < n_q; x++)
#pragma GCC unroll 8
        for (int y = 0; y < n_v; y++)
            v16_store(b->acc[i + (uint32_t)x] + 2 + d + 16 * y, s[x * n_v + y]);
}

/* The last dim_v % 16 elements of query i. */
static void add_rest(const tile *t, const batch *b, const float *rescale, uint32_t i, size_t d,
                     size_t n)
{
    float rest[2 + 16] = { 0 };
    batch one = { .acc = { [0] = rest }, .j0 = { b->j0[i] }, .j1 = { b->j1[i] } };
    tile at = *t;

    memcpy(rest + 2, b->acc[i] + 2 + d, n * sizeof(float));
    at.v += d;
    at.s += i * EBB_KV_BLOCK;
    add_values(&at, &one, rescale + i, 0, 0, 1, 1);
    memcpy(b->acc[i] + 2 + d, rest + 2, n * sizeof(float));
}

/* V16_SIDE queries that see the same positions. */
static void values_square(const tile *t, const batch *b, const float *rescale, uint32_t i,
                          size_t dim)
{
    size_t d = 0;

    for (; d + 16 * V16_SIDE <= dim; d += 16 * V16_SIDE)
        add_values(t, b, rescale, i, d, V16_SIDE, V16_SIDE);
    for (; d + 16 <= dim; d += 16)
        add_values(t, b, rescale, i, d, V16_SIDE, 1);
    for (uint32_t x = i; d < dim && x < i + V16_SIDE; x++)
        add_rest(t, b, rescale, x, d, dim - d);
}

static void values_row(const tile *t, const batch *b, const float *rescale, uint32_t i, size_t dim)
{
    size_t d = 0;

    for (; d + 16 * V16_VALUES <= dim; d += 16 * V16_VALUES)
        add_values(t, b, rescale, i, d, 1, V16_VALUES);
    for (; d + 16 <= dim; d += 16)
        add_values(t, b, rescale, i, d, 1, 1);
    if (d < dim)
        add_rest(t, b, rescale, i, d, dim - d);
}

static bool see_the_same(const batch *b, uint32_t i)
{
    if (i + V16_SIDE > b->n)
        return false;
    for (uint32_t x = 1; x < V16_SIDE; x++)
        if (b->j0[i + x] != b->j0[i] || b->j1[i + x] != b->j1[i])
            return false;
    return true;
}

static void values(const ebb_attend *a, const tile *t, const batch *b, const float *rescale)
{
    for (uint32_t i = 0; i < b->n;) {
        if (see_the_same(b, i)) {
            values_square(t, b, rescale, i, a->dim_v);
            i += V16_SIDE;
        } else {
            values_row(t, b, rescale, i++, a->dim_v);
        }
    }
}

/* -- Blocks ---------------------------------------------------------------------- */

/* The part [*j0, *j1) of the block at `pos` that the column sees. */
static bool visible(const ebb_attend *a, uint32_t c, uint32_t pos, uint32_t *j0, uint32_t *j1)
{
    uint32_t end = a->pos0 + c + 1, begin = a->window && end > a->window ? end - a->window : 0;

    *j0 = begin > pos ? begin - pos : 0;
    *j1 = end > pos ? end - pos : 0;
    *j1 = *j1 < EBB_KV_BLOCK ? *j1 : EBB_KV_BLOCK;
    return *j0 < *j1;
}

/* Query `n` (column and head) becomes one of the batch, if it sees anything of the block at
 * `pos`. */
static void batch_add(const ebb_attend *a, const tile *t, uint32_t pos, uint32_t n, batch *b)
{
    uint32_t c = n / a->n_group, g = n % a->n_group, i = b->n;
    const float *q = a->q + c * a->q_stride + (size_t)g * a->dim_k;

    if (!visible(a, c, pos, &b->j0[i], &b->j1[i]))
        return;
    if (a->dim_k != t->width_k) {
        memcpy(t->q + i * t->width_k, q, a->dim_k * sizeof(float));
        q = t->q + i * t->width_k;
    }
    b->q[i] = q;
    b->acc[i] = a->acc + n * ((size_t)a->dim_v + 2);
    b->lo = b->j0[i] < b->lo ? b->j0[i] : b->lo;
    b->hi = b->j1[i] > b->hi ? b->j1[i] : b->hi;
    b->n++;
}

/* Keys or values of block i of the segment, and of the one behind it. */
static kv_block segment_rows(const ebb_attend *a, bool is_v, uint32_t i)
{
    const void *const *rows = is_v ? a->v : a->k;
    const void *next = i + 1 < EBB_KV_SEGMENT ? rows[i + 1] : is_v ? a->next_v : a->next_k;

    return (kv_block){ is_v ? a->v_type : a->k_type, rows[i], next, is_v ? a->dim_v : a->dim_k };
}

static void block_many(const ebb_attend *a, const tile *t, uint32_t pos, const kv_block *k,
                       const kv_block *v, uint32_t j0, uint32_t j1)
{
    uint32_t n_queries = a->n_cols * a->n_group;

    rows_to_float(k->type, k->rows, k->next, j0, j1, k->dim, t->width_k, t->k);
    rows_to_float(v->type, v->rows, v->next, j0, j1, v->dim, t->width_v, t->v);
    for (uint32_t n = 0; n < n_queries;) {
        batch b = { .lo = EBB_KV_BLOCK };
        float rescale[BATCH];

        while (n < n_queries && b.n < BATCH)
            batch_add(a, t, pos, n++, &b);
        if (b.n == 0)
            continue;
        scores(t, &b);
        weigh(a, t, &b, rescale);
        values(a, t, &b, rescale);
    }
}

/* Whether queries use the rows as they are, or the tile.  Every V16_FEW of them convert a row
 * again, which for so many costs no more than writing it and reading it back. */
static bool are_few(const ebb_attend *a, const tile *t)
{
    return a->n_cols * a->n_group <= BATCH && t->width_k == a->dim_k && t->width_v == a->dim_v;
}

static void block(const ebb_attend *a, const tile *t, bool is_few, uint32_t i_block)
{
    uint32_t pos = a->seg_pos + i_block * EBB_KV_BLOCK, j0, j1, last_j0, last_j1;

    /* All that any column sees: from the first column's beginning to the last one's end. */
    visible(a, 0, pos, &j0, &j1);
    visible(a, a->n_cols - 1, pos, &last_j0, &last_j1);
    if (j0 >= last_j1)
        return;
    kv_block k = segment_rows(a, false, i_block), v = segment_rows(a, true, i_block);
    if (j0 == last_j0 && j1 == last_j1 && is_few)
        attend_few(a, &k, &v, j0, j1, t);
    else
        block_many(a, t, pos, &k, &v, j0, last_j1);
}

static void clear(const ebb_attend *a)
{
    for (size_t i = 0; i < (size_t)a->n_cols * a->n_group; i++) {
        float *acc = a->acc + i * (a->dim_v + 2);

        memset(acc, 0, (a->dim_v + 2) * sizeof(float));
        acc[0] = -INFINITY;
    }
}

static void attend(const ebb_attend *a)
{
    tile t = { .width_k = (a->dim_k + 15u) / 16 * 16, .width_v = (a->dim_v + 15u) / 16 * 16 };

    if (tile_floats(&t) > EBB_KERNEL_SCRATCH / sizeof(float) || a->n_cols == 0) {
        ebb_kernels_scalar_attend(a);            /* no model has heads this wide */
        return;
    }
    tile_place(&t, a->scratch);
    if (t.width_k != a->dim_k || t.width_v != a->dim_v)
        memset(a->scratch, 0, tile_floats(&t) * sizeof(float));
    clear(a);
    bool is_few = are_few(a, &t);
    if (is_few)
        few_queries(a, t.q);
    for (uint32_t b = 0; b < EBB_KV_SEGMENT; b++)
        block(a, &t, is_few, b);
}

/* The same bits as ebb_f32_to_f16, NaN payloads apart. */
static void store_f16(void *out, const float *x, size_t dim)
{
    size_t i = 0;

    for (; i + 8 <= dim; i += 8)
        v16_store_8_halves((uint8_t *)out + 2 * i, x + i);
    ISA_NAME(kv_store_f16)((uint8_t *)out + 2 * i, x + i, dim - i);
}

static inline void attend_fill(ebb_kernels *k)
{
    k->attend = attend;
    k->kv_store[EBB_KV_F16] = store_f16;
    k->kv_store[EBB_KV_F32] = ISA_NAME(kv_store_f32);
    k->kv_store[EBB_KV_Q8_0] = ISA_NAME(kv_store_q8_0);
    k->kv_store[EBB_KV_Q4_0] = ISA_NAME(kv_store_q4_0);
}

#endif
