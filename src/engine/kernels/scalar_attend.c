/* Attention over one segment in plain C. */
#include "kernels/impl.h"
#include "kernels/kv_rows.h"

enum { DIM_MAX = 1024 };         /* elements of a row of keys or values that are converted at a time */

/* q . k, in pieces of DIM_MAX so that no buffer depends on the model. */
static float key_dot(const ebb_attend *a, const float *q, const uint8_t *row)
{
    float s[LANES] = { 0 }, k[DIM_MAX], t[LANES], u[LANES];

    for (size_t i = 0; i < a->dim_k; i += LANES) {
        if (i % DIM_MAX == 0)
            kv_load(a->k_type, row + ebb_kv_row_bytes(a->k_type, i),
                    a->dim_k - i < DIM_MAX ? a->dim_k - i : DIM_MAX, k);
        size_t n = a->dim_k - i < LANES ? a->dim_k - i : LANES;
        tail_load(t, q + i, n);
        tail_load(u, k + i % DIM_MAX, n);
        for (int j = 0; j < LANES; j++)
            s[j] = fmaf(t[j], u[j], s[j]);
    }
    return lanes_sum(s);
}

static void value_add(const ebb_attend *a, float p, const uint8_t *row, float *sum)
{
    float v[DIM_MAX];

    for (size_t i = 0; i < a->dim_v; i += DIM_MAX) {
        size_t n = a->dim_v - i < DIM_MAX ? a->dim_v - i : DIM_MAX;

        kv_load(a->v_type, row + ebb_kv_row_bytes(a->v_type, i), n, v);
        ISA_NAME(axpy)(sum + i, p, v, n);
    }
}

/* Positions [j0, j1) of block b into (m, l, sums) of one query. */
static void attend_block(const ebb_attend *a, const float *q, uint32_t b, uint32_t j0, uint32_t j1, float *acc)
{
    const uint8_t *k = a->k[b], *v = a->v[b];
    size_t k_bytes = ebb_kv_row_bytes(a->k_type, a->dim_k), v_bytes = ebb_kv_row_bytes(a->v_type, a->dim_v);
    float s[EBB_KV_BLOCK] = { 0 }, m = acc[0];

    for (uint32_t j = j0; j < j1; j++) {
        s[j] = a->scale * key_dot(a, q, k + j * k_bytes);
        if (a->softcap > 0)
            s[j] = a->softcap * ebb_tanh(s[j] / a->softcap);
        m = s[j] > m ? s[j] : m;
    }
    float rescale = ebb_exp(acc[0] - m);
    for (uint32_t j = j0; j < j1; j++)
        s[j] = ebb_exp(s[j] - m);
    acc[0] = m;
    acc[1] = fmaf(acc[1], rescale, ISA_NAME(sum)(s, EBB_KV_BLOCK));
    ISA_NAME(scale)(acc + 2, rescale, a->dim_v);
    for (uint32_t j = j0; j < j1; j++)
        value_add(a, s[j], v + j * v_bytes, acc + 2);
}

static void query(const ebb_attend *a, uint32_t c, uint32_t g)
{
    const float *q = a->q + c * a->q_stride + (size_t)g * a->dim_k;
    float *acc = a->acc + ((size_t)c * a->n_group + g) * (a->dim_v + 2);
    uint32_t end = a->pos0 + c + 1, begin = a->window && end > a->window ? end - a->window : 0;

    acc[0] = -INFINITY;
    for (size_t i = 1; i < a->dim_v + 2; i++)
        acc[i] = 0;
    for (uint32_t b = 0; b < EBB_KV_SEGMENT; b++) {
        uint32_t pos = a->seg_pos + b * EBB_KV_BLOCK;
        uint32_t j0 = begin > pos ? begin - pos : 0, j1 = end > pos ? end - pos : 0;

        j1 = j1 < EBB_KV_BLOCK ? j1 : EBB_KV_BLOCK;
        if (j0 < j1)
            attend_block(a, q, b, j0, j1, acc);
    }
}

void ebb_kernels_scalar_attend(const ebb_attend *a)
{
    for (uint32_t c = 0; c < a->n_cols; c++)
        for (uint32_t g = 0; g < a->n_group; g++)
            query(a, c, g);
}

static void load_row(ebb_kv_type type, const void *row, size_t dim, float *out)
{
    kv_load(type, row, dim, out);
}

void ebb_kernels_fill_scalar_attend(ebb_kernels *k)
{
    k->kv_store[EBB_KV_F16] = ISA_NAME(kv_store_f16);
    k->kv_store[EBB_KV_F32] = ISA_NAME(kv_store_f32);
    k->kv_store[EBB_KV_Q8_0] = ISA_NAME(kv_store_q8_0);
    k->kv_store[EBB_KV_Q4_0] = ISA_NAME(kv_store_q4_0);
    k->kv_load = load_row;
    k->attend = ebb_kernels_scalar_attend;
}
