/* x86/attend_body.h - attention over one segment, compiled for each kind of v16.
 *
 * Keys and values of a block are made floats once, in the scratch, for all the
 * queries (columns and heads) that see the block; then each query takes its
 * step.  The sums and their order are those of scalar_attend.c. */
#ifndef EBB_KERNELS_ATTEND_BODY_H
#define EBB_KERNELS_ATTEND_BODY_H
#include "kernels/float_body.h"
#include "kernels/impl.h"
#include "kernels/kv_rows.h"

typedef struct tile {
    float *k, *v;                /* rows of width_k and width_v floats, zeroes behind the elements */
    size_t width_k, width_v;
    float *q;                    /* a query of width_k */
} tile;

static void rows_to_float(ebb_kv_type type, const uint8_t *rows, uint32_t j0, uint32_t j1, size_t dim, size_t width, float *out)
{
    size_t bytes = ebb_kv_row_bytes(type, dim);

    for (uint32_t j = j0; j < j1; j++) {
        const uint8_t *row = rows + j * bytes;
        float *o = out + j * width;
        size_t i = 0;

        if (type == EBB_KV_F16)
            for (; i + 16 <= dim; i += 16)
                v16_store(o + i, v16_load_f16(row + 2 * i));
        if (type == EBB_KV_Q8_0)
            for (; i + 32 <= dim; i += 32) {
                const uint8_t *b = row + i / 32 * 34;
                v16 d = v16_set(ebb_f16_load(b));

                v16_store(o + i, v16_mul(d, v16_load_i8((const int8_t *)b + 2)));
                v16_store(o + i + 16, v16_mul(d, v16_load_i8((const int8_t *)b + 18)));
            }
        if (i < dim)
            kv_load(type, row + ebb_kv_row_bytes(type, i), dim - i, o + i);
    }
}

/* s[j] = q . k[j] for the 32 keys of the block, where any of V16_KEYS keys is in [j0, j1). */
static void scores(const tile *t, const float *q, uint32_t j0, uint32_t j1, float s[EBB_KV_BLOCK])
{
    for (uint32_t j = j0 / V16_KEYS * V16_KEYS; j < j1; j += V16_KEYS) {
        const float *k = t->k + j * t->width_k;
        v16 sum[V16_KEYS];

#pragma GCC unroll 16
        for (int i = 0; i < V16_KEYS; i++)
            sum[i] = v16_zero();
        for (size_t d = 0; d < t->width_k; d += 16) {
            v16 x = v16_load(q + d);
#pragma GCC unroll 16
            for (int i = 0; i < V16_KEYS; i++)
                sum[i] = v16_fma(x, v16_load(k + (size_t)i * t->width_k + d), sum[i]);
        }
        v16_sum_keys(sum, s + j);
    }
}

/* sum = sum * keep + p . v, n vectors of 16 at once. */
V16_INLINE void add_values(const tile *t, const float *p, uint32_t j0, uint32_t j1, float keep, float *sum, const float *v, const int n)
{
    v16 s[V16_VALUES];

#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        s[i] = v16_mul(v16_load(sum + 16 * i), v16_set(keep));
    for (uint32_t j = j0; j < j1; j++) {
        v16 w = v16_set(p[j]);
#pragma GCC unroll 8
        for (int i = 0; i < n; i++)
            s[i] = v16_fma(w, v16_load(v + j * t->width_v + 16 * (size_t)i), s[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        v16_store(sum + 16 * i, s[i]);
}

static void weigh_values(const ebb_attend *a, const tile *t, const float *p, uint32_t j0, uint32_t j1, float keep, float *sum)
{
    size_t i = 0;

    for (; i + 16 * V16_VALUES <= a->dim_v; i += 16 * V16_VALUES)
        add_values(t, p, j0, j1, keep, sum + i, t->v + i, V16_VALUES);
    for (; i + 16 <= a->dim_v; i += 16)
        add_values(t, p, j0, j1, keep, sum + i, t->v + i, 1);
    if (i < a->dim_v) {
        float rest[16] = { 0 };

        memcpy(rest, sum + i, (a->dim_v - i) * sizeof(float));
        add_values(t, p, j0, j1, keep, rest, t->v + i, 1);
        memcpy(sum + i, rest, (a->dim_v - i) * sizeof(float));
    }
}

static void step(const ebb_attend *a, const tile *t, const float *q, uint32_t j0, uint32_t j1, float *acc)
{
    float s[EBB_KV_BLOCK], m = acc[0];

    if (a->dim_k != t->width_k) {
        memcpy(t->q, q, a->dim_k * sizeof(float));
        q = t->q;
    }
    scores(t, q, j0, j1, s);
    for (uint32_t j = 0; j < EBB_KV_BLOCK; j++)
        s[j] = j >= j0 && j < j1 ? a->scale * s[j] : -INFINITY;
    if (a->softcap > 0)
        for (uint32_t j = j0; j < j1; j++)
            s[j] = a->softcap * ebb_tanh(s[j] / a->softcap);
    for (uint32_t j = 0; j < EBB_KV_BLOCK; j++)
        m = s[j] > m ? s[j] : m;
    for (uint32_t j = 0; j < EBB_KV_BLOCK; j++)  /* 0 where nothing is seen */
        s[j] = ebb_exp(s[j] - m);
    float keep = ebb_exp(acc[0] - m);

    acc[0] = m;
    acc[1] = fmaf(acc[1], keep, v16_sum(v16_add(v16_load(s), v16_load(s + 16))));
    weigh_values(a, t, s, j0, j1, keep, acc + 2);
}

/* The part [*j0, *j1) of the block at `pos` that the column sees. */
static bool visible(const ebb_attend *a, uint32_t c, uint32_t pos, uint32_t *j0, uint32_t *j1)
{
    uint32_t end = a->pos0 + c + 1, begin = a->window && end > a->window ? end - a->window : 0;

    *j0 = begin > pos ? begin - pos : 0;
    *j1 = end > pos ? end - pos : 0;
    *j1 = *j1 < EBB_KV_BLOCK ? *j1 : EBB_KV_BLOCK;
    return *j0 < *j1;
}

static void clear(const ebb_attend *a)
{
    for (size_t i = 0; i < (size_t)a->n_cols * a->n_group; i++) {
        float *acc = a->acc + i * (a->dim_v + 2);

        memset(acc, 0, (a->dim_v + 2) * sizeof(float));
        acc[0] = -INFINITY;
    }
}

static void block(const ebb_attend *a, const tile *t, uint32_t b)
{
    uint32_t pos = a->seg_pos + b * EBB_KV_BLOCK, j0, j1, j_end;

    /* All that any column sees: from the first column's beginning to the last one's end. */
    visible(a, 0, pos, &j0, &j1);
    visible(a, a->n_cols - 1, pos, &j1, &j_end);
    if (j0 >= j_end)
        return;
    rows_to_float(a->k_type, a->k[b], j0, j_end, a->dim_k, t->width_k, t->k);
    rows_to_float(a->v_type, a->v[b], j0, j_end, a->dim_v, t->width_v, t->v);
    for (uint32_t c = 0; c < a->n_cols; c++)
        if (visible(a, c, pos, &j0, &j1))
            for (uint32_t g = 0; g < a->n_group; g++)
                step(a, t, a->q + c * a->q_stride + (size_t)g * a->dim_k, j0, j1,
                     a->acc + ((size_t)c * a->n_group + g) * (a->dim_v + 2));
}

static void attend(const ebb_attend *a)
{
    tile t = { .width_k = (a->dim_k + 15u) / 16 * 16, .width_v = (a->dim_v + 15u) / 16 * 16 };

    if ((t.width_k + t.width_v) * EBB_KV_BLOCK + t.width_k > EBB_KERNEL_SCRATCH / sizeof(float) || a->n_cols == 0) {
        ebb_kernels_scalar_attend(a);            /* no model has heads this wide */
        return;
    }
    t.k = a->scratch;
    t.v = t.k + EBB_KV_BLOCK * t.width_k;
    t.q = t.v + EBB_KV_BLOCK * t.width_v;
    if (t.width_k != a->dim_k || t.width_v != a->dim_v)
        memset(t.k, 0, ((t.width_k + t.width_v) * EBB_KV_BLOCK + t.width_k) * sizeof(float));
    clear(a);
    for (uint32_t b = 0; b < EBB_KV_SEGMENT; b++)
        block(a, &t, b);
}

/* The same bits as ebb_f32_to_f16, NaN payloads apart. */
static void store_f16(void *out, const float *x, size_t dim)
{
    size_t i = 0;

    for (; i + 8 <= dim; i += 8)
        _mm_storeu_si128((void *)((uint8_t *)out + 2 * i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    kv_store_f16((uint8_t *)out + 2 * i, x + i, dim - i);
}

static inline void attend_fill(ebb_kernels *k)
{
    k->attend = attend;
    k->kv_store[EBB_KV_F16] = store_f16;
    k->kv_store[EBB_KV_F32] = kv_store_f32;
    k->kv_store[EBB_KV_Q8_0] = kv_store_q8_0;
    k->kv_store[EBB_KV_Q4_0] = kv_store_q4_0;
}

#endif
