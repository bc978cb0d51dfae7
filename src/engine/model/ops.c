/* Norms and matrices of a layer (run.h). */
#include <math.h>

#include "model/run.h"

/* Rows of a slice: a few microseconds of decode, so that a stolen CPU holds up
 * little; more for many columns, where kernels unpack a tile of weights once. */
#define ROWS_FEW 32u
#define FEW_COLS  4u

static uint32_t rows_of_slice(const ebb_run *r)
{
    return r->c1 - r->c0 <= FEW_COLS ? ROWS_FEW : EBB_SLICE_ROWS;
}

/* -- Inputs ------------------------------------------------------------------- */

/* One column becomes the kinds of activations that are wanted. */
static void quantize_col(const ebb_run *r, uint32_t c, const float *x)
{
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (r->in_acts >> kind & 1)
            r->kern->quantize[kind](x, r->in_k,
                                    (char *)r->act[kind] + c * ebb_act_col_bytes((ebb_act)kind, r->in_k));
}

typedef struct norm_job {
    const ebb_run *r;
    const float   *w;
} norm_job;

static void norm_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const norm_job *job = arg;
    const ebb_run *r = job->r;
    size_t n = r->net->n_embd, c = r->c0 + slice;
    float *x = r->x + c * n, *h = ebb_run_floats(r, thread);

    if (r->has_y) {
        float *y = r->y + c * n;

        if (r->post)
            r->kern->rmsnorm(y, y, r->post, n, r->net->norm_eps);
        r->kern->add(x, y, n);
    }
    r->kern->rmsnorm(h, x, job->w, n, r->net->norm_eps);
    quantize_col(r, (uint32_t)c, h);
}

void ebb_op_norm(ebb_run *r, const float *w, unsigned acts)
{
    norm_job job = { .r = r, .w = w };

    r->in_k = r->net->n_embd;
    r->in_acts = acts;
    ebb_run_slices(r, norm_slice, &job, r->c1 - r->c0);
    r->has_y = false;
}

typedef struct input_job {
    const ebb_run *r;
    const float   *src;
} input_job;

static void input_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const input_job *job = arg;
    uint32_t c = job->r->c0 + slice;

    (void)thread;
    quantize_col(job->r, c, job->src + (size_t)c * job->r->in_k);
}

void ebb_op_input(ebb_run *r, const float *src, uint32_t n_k, unsigned acts)
{
    input_job job = { .r = r, .src = src };

    r->in_k = n_k;
    r->in_acts = acts;
    ebb_run_slices(r, input_slice, &job, r->c1 - r->c0);
}

/* -- Matrices ----------------------------------------------------------------- */

/* Rows [row, row + n) of W times the active columns, with the bias. */
static void multiply(const ebb_run *r, const ebb_weight *w, const void *data, uint32_t row, uint32_t n,
                     float *y, size_t y_stride, uint32_t thread)
{
    ebb_act kind = ebb_kernel_act(w->type);
    size_t col_bytes = ebb_act_col_bytes(kind, w->n_k);
    ebb_matmul a = {
        .type = w->type, .w = (const char *)data + (w->first_row + row) * w->row_bytes, .row_bytes = w->row_bytes,
        .n_rows = n, .n_k = w->n_k,
        .x = (const char *)r->act[kind] + r->c0 * col_bytes, .x_col_bytes = col_bytes, .n_cols = r->c1 - r->c0,
        .y = y, .y_stride = y_stride, .scratch = ebb_run_scratch(r, thread),
    };

    r->kern->matmul[w->type](&a);
    for (uint32_t c = 0; w->bias && c < a.n_cols; c++)
        r->kern->add(y + c * y_stride, w->bias + row, n);
}

typedef struct mat_job {
    const ebb_run *r;
    const ebb_mat *mats;
    uint32_t       n_mats, rows;
    uint32_t       slices[EBB_MAX_MATS]; /* of each matrix */
    const void    *data[EBB_MAX_MATS];
    float          softcap;
} mat_job;

static void cap_logits(float *y, uint32_t n, float cap)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = cap * tanhf(y[i] / cap);
}

static void mat_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const mat_job *job = arg;
    const ebb_mat *m = job->mats;
    uint32_t i = 0, row, n;

    while (slice >= job->slices[i])
        slice -= job->slices[i++];
    m += i;
    row = slice * job->rows;
    n = m->w->n_rows - row < job->rows ? m->w->n_rows - row : job->rows;
    multiply(job->r, m->w, job->data[i], row, n, m->y + row, m->y_stride, thread);
    for (uint32_t c = 0; job->softcap != 0 && c < job->r->c1 - job->r->c0; c++)
        cap_logits(m->y + c * m->y_stride + row, n, job->softcap);
}

/* Acquire the matrices; on failure none is held. */
static ebb_status acquire(ebb_run *r, const ebb_weight *const *w, uint32_t n, const void **data, ebb_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        ebb_status st = ebb_res_acquire(r->res, w[i]->extent, &data[i], err);

        if (st != EBB_OK) {
            while (i-- > 0)
                ebb_res_release(r->res, w[i]->extent);
            return st;
        }
    }
    return EBB_OK;
}

ebb_status ebb_op_matmul(ebb_run *r, const ebb_mat *mats, uint32_t n, float softcap, ebb_error *err)
{
    mat_job job = { .r = r, .mats = mats, .n_mats = n, .rows = rows_of_slice(r), .softcap = softcap };
    const ebb_weight *w[EBB_MAX_MATS];
    uint32_t n_slices = 0;
    ebb_status st;

    for (uint32_t i = 0; i < n; i++) {
        w[i] = mats[i].w;
        job.slices[i] = (w[i]->n_rows + job.rows - 1) / job.rows;
        n_slices += job.slices[i];
    }
    st = acquire(r, w, n, job.data, err);
    if (st != EBB_OK)
        return st;
    ebb_run_slices(r, mat_slice, &job, n_slices);
    for (uint32_t i = 0; i < n; i++)
        ebb_res_release(r->res, w[i]->extent);
    return EBB_OK;
}

/* -- Gated feed-forward -------------------------------------------------------- */

typedef struct gate_job {
    const ebb_run    *r;
    const ebb_weight *gate, *up;
    const void       *data[2];
    uint32_t          rows;
} gate_job;

/* The same rows of gate and up; up's go to the thread's own floats, so that
 * only their product is ever stored. */
static void gate_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const gate_job *job = arg;
    const ebb_run *r = job->r;
    uint32_t n_ff = job->gate->n_rows, row = slice * job->rows;
    uint32_t n = n_ff - row < job->rows ? n_ff - row : job->rows;
    float *ff = r->ff + (size_t)r->c0 * n_ff + row, *up = ebb_run_floats(r, thread);

    multiply(r, job->gate, job->data[0], row, n, ff, n_ff, thread);
    multiply(r, job->up, job->data[1], row, n, up, n, thread);
    for (uint32_t c = 0; c < r->c1 - r->c0; c++, ff += n_ff, up += n) {
        if (r->net->ffn_gate == EBB_GATE_GELU)
            r->kern->gelu_mul(ff, ff, up, n);
        else
            r->kern->silu_mul(ff, ff, up, n);
    }
}

ebb_status ebb_op_gated(ebb_run *r, const ebb_weight *gate, const ebb_weight *up, ebb_error *err)
{
    gate_job job = { .r = r, .gate = gate, .up = up, .rows = rows_of_slice(r) };
    const ebb_weight *w[2] = { gate, up };
    ebb_status st = acquire(r, w, 2, job.data, err);

    if (st != EBB_OK)
        return st;
    ebb_run_slices(r, gate_slice, &job, (gate->n_rows + job.rows - 1) / job.rows);
    ebb_res_release(r->res, gate->extent);
    ebb_res_release(r->res, up->extent);
    return EBB_OK;
}

ebb_status ebb_op_add(ebb_run *r, const ebb_weight *w, const float *post, ebb_error *err)
{
    ebb_mat m = { .w = w, .y = r->y + (size_t)r->c0 * w->n_rows, .y_stride = w->n_rows };

    r->has_y = true;
    r->post = post;
    return ebb_op_matmul(r, &m, 1, 0, err);
}

/* -- Layers -------------------------------------------------------------------- */

static ebb_status attention(ebb_run *r, const ebb_layer *l, uint32_t i_layer, ebb_error *err)
{
    const ebb_net *net = r->net;
    uint32_t q_width = net->n_head * net->dim_k, k_width = net->n_head_kv * net->dim_k;
    uint32_t v_width = net->n_head_kv * net->dim_v;
    ebb_mat qkv[] = {
        { &l->q, r->q + (size_t)r->c0 * q_width, q_width },
        { &l->k, r->k + (size_t)r->c0 * k_width, k_width },
        { &l->v, r->v + (size_t)r->c0 * v_width, v_width },
    };
    ebb_status st;

    ebb_op_norm(r, l->attn_norm, ebb_act_bit(&l->q) | ebb_act_bit(&l->k) | ebb_act_bit(&l->v));
    st = ebb_op_matmul(r, qkv, 3, 0, err);
    if (st != EBB_OK)
        return st;
    ebb_op_store(r, i_layer);
    if (i_layer + 1 == net->n_layers)
        r->c0 = r->c1 - r->n_out;                /* K and V of all stand; the others are not needed any more */
    if (r->c0 == r->c1)
        return EBB_OK;
    ebb_op_attend(r, i_layer);
    ebb_op_input(r, r->y, net->n_head * net->dim_v, ebb_act_bit(&l->o));
    return ebb_op_add(r, &l->o, l->attn_post_norm, err);
}

static ebb_status feed_forward(ebb_run *r, const ebb_layer *l, ebb_error *err)
{
    ebb_status st;

    ebb_op_norm(r, l->ffn_norm, ebb_act_bit(&l->gate) | ebb_act_bit(&l->up));
    st = ebb_op_gated(r, &l->gate, &l->up, err);
    if (st != EBB_OK)
        return st;
    ebb_op_input(r, r->ff, l->gate.n_rows, ebb_act_bit(&l->down));
    return ebb_op_add(r, &l->down, l->ffn_post_norm, err);
}

ebb_status ebb_block_layer(ebb_run *r, uint32_t i_layer, ebb_error *err)
{
    const ebb_layer *l = &r->net->layers[i_layer];
    ebb_status st = attention(r, l, i_layer, err);

    if (st != EBB_OK || r->c0 == r->c1)
        return st;
    return feed_forward(r, l, err);
}
