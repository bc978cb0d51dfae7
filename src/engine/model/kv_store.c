/* K and V of the columns in the pool (forward.h), and moving them there. */
#include <math.h>
#include <string.h>

#include "model/forward.h"

/* -- Storing ------------------------------------------------------------------ */

typedef struct store_job {
    const ebb_forward *r;
    uint32_t       i_layer;
} store_job;

/* Heads from h0 on: all of them, where the norm is of all as one. */
static void norm_heads(const ebb_forward *r, const ebb_norm *norm, float *x, uint32_t h0, uint32_t n_heads,
                       uint32_t dim)
{
    size_t n = r->net->qk_norm == EBB_QK_WHOLE ? (size_t)n_heads * dim : dim;

    for (size_t at = 0; at < (size_t)n_heads * dim; at += n) {
        ebb_norm head = *norm;

        if (r->net->qk_norm == EBB_QK_EACH && head.w)
            head.w += (size_t)h0 * dim + at;
        ebb_norm_row(r, &head, x + at, x + at, n);
    }
}

static void rope_heads(const ebb_forward *r, const ebb_layer *l, uint32_t c, const ebb_norm *norm, float *x,
                       uint32_t h0, uint32_t n_heads)
{
    const ebb_rope *rope = l->rope == EBB_NO_ROPE ? NULL : &r->net->ropes[l->rope];
    bool is_late = r->net->qk_norm_is_late;

    if (norm->is_on && !is_late)
        norm_heads(r, norm, x, h0, n_heads, l->heads.dim_k);
    for (uint32_t h = 0; rope && h < n_heads; h++)
        ebb_rope_rotate(r, rope, r->buf.cos_sin[l->rope] + (size_t)c * rope->n_rot, x + (size_t)h * l->heads.dim_k);
    if (norm->is_on && is_late)
        norm_heads(r, norm, x, h0, n_heads, l->heads.dim_k);
}

/* Attention gets sharper with the position, so that long contexts do not blur it (Nakanishi 2025). */
static float temperature(const ebb_net *net, uint32_t pos)
{
    uint32_t n_spans = (pos + net->temperature_from) / net->temperature_span;    /* whole ones */

    return (float)(1 + net->temperature * log1p(n_spans));
}

/* Heads in the basis of a normalised Hadamard matrix: what stands out in a few elements is
 * spread over all, so that few bits hold it, and q . k stays the same (Ashkboos et al. 2024,
 * QuaRot).  Where the width is no power of two, pieces of the largest one that divides it. */
static void hadamard(float *x, size_t n, size_t width)
{
    float scale = 1.0f / sqrtf((float)width);

    for (float *end = x + n; x < end; x += width) {
        for (size_t half = 1; half < width; half *= 2)
            for (size_t i = 0; i < width; i += 2 * half)
                for (size_t j = i; j < i + half; j++) {
                    float a = x[j], b = x[j + half];

                    x[j] = a + b;
                    x[j + half] = a - b;
                }
        for (size_t i = 0; i < width; i++)
            x[i] *= scale;
    }
}

/* Does nothing where K is not rotated; its own inverse. */
static void hadamard_heads(const ebb_forward *r, const ebb_layer *l, float *x, uint32_t n_heads)
{
    size_t dim = l->heads.dim_k;

    if (r->k_type == EBB_KV_Q4_0)
        hadamard(x, n_heads * dim, dim & -dim);
}

/* q of each head to its place in a row of the cache, from the last on. */
static void spread_q(const ebb_forward *r, const ebb_layer *l, float *q)
{
    size_t dim = l->heads.dim_k, width = r->unit * dim, n_group = l->heads.n / l->heads.n_kv;

    for (size_t h = l->heads.n; r->unit > 1 && h-- > 0;) {
        float *row = q + h * width, *own = row + h / n_group % r->unit * dim;

        memmove(own, q + h * dim, dim * sizeof *own);
        memset(row, 0, (size_t)(own - row) * sizeof *own);
        memset(own + dim, 0, (size_t)(row + width - own - dim) * sizeof *own);
    }
}

/* What is done with q does not keep to one head. */
static bool has_whole_q(const ebb_forward *r, const ebb_layer *l)
{
    return r->unit > 1 || (l->q_norm.is_on && r->net->qk_norm == EBB_QK_WHOLE);
}

static void rope_q(const ebb_forward *r, const ebb_layer *l, uint32_t c, uint32_t h0, uint32_t n)
{
    float *q = r->buf.q + ((size_t)c * l->heads.n * r->unit + h0) * l->heads.dim_k;

    rope_heads(r, l, c, &l->q_norm, q, h0, n);
    if (l->has_temperature)
        r->kern->scale(q, temperature(r->net, ebb_batch_pos(r->batch, c)), (size_t)n * l->heads.dim_k);
    hadamard_heads(r, l, q, n);
}

void ebb_rope_q(const ebb_forward *r, uint32_t i_layer, uint32_t c, uint32_t h0, uint32_t n)
{
    const ebb_layer *l = &r->net->layers[i_layer];

    if (!has_whole_q(r, l))
        rope_q(r, l, c, h0, n);
}

/* What was projected becomes K and V as attention sees them. */
static void finish_kv(const ebb_forward *r, const ebb_layer *l, uint32_t c, float *k, float *v)
{
    const ebb_heads *h = &l->heads;

    if (!ebb_weight_exists(&l->v) && !ebb_weight_exists(&l->latent.kv_a))
        memcpy(v, k, (size_t)h->n_kv * h->dim_v * sizeof *v);
    for (uint32_t i = 0; l->v_norm.is_on && i < h->n_kv; i++)
        ebb_norm_row(r, &l->v_norm, v + (size_t)i * h->dim_v, v + (size_t)i * h->dim_v, h->dim_v);
    rope_heads(r, l, c, &l->k_norm, k, 0, h->n_kv);
    hadamard_heads(r, l, k, h->n_kv);
}

/* K and V of a column to its position in a table. */
static void store_rows(const store_job *job, const ebb_block_table *table, uint32_t pos, const float *k, const float *v)
{
    const ebb_forward *r = job->r;
    const ebb_heads *heads = &r->net->layers[job->i_layer].heads;
    size_t dim_k = r->unit * (size_t)heads->dim_k, dim_v = r->unit * (size_t)heads->dim_v, row = pos % EBB_KV_BLOCK;

    for (uint32_t h = 0; h < heads->n_kv / r->unit; h++) {
        char *to_k = ebb_kv_k(r->kv, table, pos / EBB_KV_BLOCK, job->i_layer, h);
        char *to_v = ebb_kv_v(r->kv, table, pos / EBB_KV_BLOCK, job->i_layer, h);

        r->kern->kv_store[r->k_type](to_k + row * ebb_kv_k_row_bytes(r->kv, job->i_layer), k + h * dim_k, dim_k);
        r->kern->kv_store[r->v_type](to_v + row * ebb_kv_v_row_bytes(r->kv, job->i_layer), v + h * dim_v, dim_v);
    }
}

static void store_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const store_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_batch *b = r->batch;
    const ebb_layer *l = &r->net->layers[job->i_layer];
    uint32_t c = r->cols.c0 + slice, pos = ebb_batch_pos(b, c), n_kv = l->heads.n_kv;
    float *k = r->buf.k + (size_t)c * n_kv * l->heads.dim_k, *v = r->buf.v + (size_t)c * n_kv * l->heads.dim_v;

    (void)thread;
    if (has_whole_q(r, l)) {
        rope_q(r, l, c, 0, l->heads.n);
        spread_q(r, l, r->buf.q + c * l->heads.n * r->unit * (size_t)l->heads.dim_k);
    }
    if (l->kv_layer != job->i_layer)
        return;
    finish_kv(r, l, c, k, v);
    store_rows(job, ebb_batch_seq_of(b, c)->table, pos, k, v);
    for (uint32_t i = 1; i < b->n_seqs; i++)     /* branches behind it */
        if (c < b->seqs[i].n_before)
            store_rows(job, b->seqs[i].table, pos, k, v);
}

void ebb_op_kv_store(ebb_forward *r, uint32_t i_layer)
{
    store_job job = { .r = r, .i_layer = i_layer };
    const ebb_layer *l = &r->net->layers[i_layer];

    if (l->kv_layer == i_layer || has_whole_q(r, l))
        ebb_forward_slices(r, store_slice, &job, ebb_n_columns(&r->cols));
}

/* -- Moving ------------------------------------------------------------------- */

typedef struct shift_job {
    const ebb_forward *r;
    const ebb_kv_shift *m;
} shift_job;

/* The rope of a layer's K and the first element of a head that it rotates; NULL: none. */
static const ebb_rope *rope_of(const ebb_net *net, const ebb_layer *l, uint32_t *i_rope, size_t *first)
{
    bool is_latent = ebb_weight_exists(&l->latent.kv_a);

    *i_rope = is_latent ? 0 : l->rope;
    *first = is_latent && ebb_weight_exists(&l->latent.kv_b) ? net->dim_nope : 0;
    return *i_rope == EBB_NO_ROPE ? NULL : &net->ropes[*i_rope];
}

static void shift_k(const shift_job *job, uint32_t i_layer, const void *from, void *to, float *x)
{
    const ebb_forward *r = job->r;
    const ebb_layer *l = &r->net->layers[i_layer];
    size_t first, dim = l->heads.dim_k;
    uint32_t i_rope;
    const ebb_rope *rope = rope_of(r->net, l, &i_rope, &first);

    if (!rope) {
        memmove(to, from, ebb_kv_k_row_bytes(r->kv, i_layer));
        return;
    }
    r->kern->kv_load(r->k_type, from, r->unit * dim, x);
    hadamard_heads(r, l, x, r->unit);
    for (uint32_t u = 0; u < r->unit; u++)
        ebb_rope_rotate(r, rope, r->buf.cos_sin[i_rope], x + u * dim + first);
    hadamard_heads(r, l, x, r->unit);
    r->kern->kv_store[r->k_type](to, x, r->unit * dim);
}

/* All rows of a KV head of a layer, in the order of positions: none is written before it was read. */
static void shift_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const shift_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_block_table *t = job->m->table;
    uint32_t n_heads = r->net->n_head_kv / r->unit, i_layer = slice / n_heads, head = slice % n_heads;
    int group;
    size_t k_bytes, v_bytes;

    if (head >= ebb_kv_n_heads(r->kv, i_layer))
        return;
    group = ebb_kv_group(r->kv, i_layer);
    k_bytes = ebb_kv_k_row_bytes(r->kv, i_layer);
    v_bytes = ebb_kv_v_row_bytes(r->kv, i_layer);
    for (uint32_t pos = job->m->from[group]; pos < job->m->end; pos++) {
        uint32_t old = pos + job->m->n_rows[group], b = pos / EBB_KV_BLOCK, old_b = old / EBB_KV_BLOCK;
        size_t row = pos % EBB_KV_BLOCK, old_row = old % EBB_KV_BLOCK;

        shift_k(job, i_layer, (char *)ebb_kv_k(r->kv, t, old_b, i_layer, head) + old_row * k_bytes,
               (char *)ebb_kv_k(r->kv, t, b, i_layer, head) + row * k_bytes, ebb_forward_floats(r, thread));
        memmove((char *)ebb_kv_v(r->kv, t, b, i_layer, head) + row * v_bytes,
                (char *)ebb_kv_v(r->kv, t, old_b, i_layer, head) + old_row * v_bytes, v_bytes);
    }
}

void ebb_forward_shift_kv(ebb_forward *r, const ebb_kv_shift *m)
{
    shift_job job = { .r = r, .m = m };

    for (uint32_t i = 0; i < r->net->n_ropes; i++)
        ebb_rope_shift_table(&r->net->ropes[i], r->buf.freqs[i], m->rerotate_by, r->buf.cos_sin[i]);
    ebb_forward_slices(r, shift_slice, &job, ebb_net_n_kv_layers(r->net) * (r->net->n_head_kv / r->unit));
}
