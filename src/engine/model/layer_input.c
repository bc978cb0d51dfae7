/* Per-layer embeddings (forward.h): each layer adds what a vector of P elements says, which comes from the token and
 * from x as it enters the first layer:
 *
 *     z = (per_layer_token_embd[id] sqrt(P) + norm(per_layer_model_proj x / sqrt(E))) / sqrt(2)      of all layers
 *     x += norm(proj(gelu(inp_gate x) * z[layer]))
 *
 * The table is read by rows, as token_embd is: it may be half of the file, and a token needs one row of it. */
#include <math.h>

#include "model/forward.h"

#define ALIGN 64u

size_t ebb_layer_row_at(const ebb_net *net)
{
    size_t n = (size_t)ebb_type_row_bytes((ebb_type)net->layer_embd->type, net->n_layers * net->n_embd_layer);

    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* z of a column: what x gave, joined with the token's row. */
static void join(const ebb_forward *r, float *z, float *row)
{
    const ebb_net *net = r->net;
    size_t n_p = net->n_embd_layer, n = net->n_layers * n_p;

    r->kern->scale(z, (float)(1 / sqrt((double)net->n_embd)), n);
    for (size_t at = 0; at < n; at += n_p)
        ebb_norm_row(r, &net->layer_proj_norm, z + at, z + at, n_p);
    r->kern->scale(row, (float)sqrt((double)n_p), n);
    r->kern->add(z, row, n);
    r->kern->scale(z, (float)sqrt(0.5), n);
}

ebb_status ebb_layer_inputs(ebb_forward *r, ebb_error *err)
{
    const ebb_net *net = r->net;
    uint32_t width = net->n_layers * net->n_embd_layer;
    ebb_mat m = { .w = &net->layer_proj, .y = r->buf.layer_input, .y_stride = width };
    float *row = (float *)(void *)((char *)ebb_forward_floats(r, 0) + ebb_layer_row_at(net));
    ebb_status st;

    ebb_op_input(r, r->buf.x, net->n_embd, ebb_act_bit(&net->layer_proj));
    st = ebb_op_matmul(r, &m, 1, 0, err);
    for (uint32_t c = 0; c < r->batch->n && st == EBB_OK; c++) {
        const ebb_batch_seq *s = ebb_batch_seq_of(r->batch, c);

        st = ebb_run_read_row(r, net->layer_embd, (uint64_t)s->ids[c - s->c0], width, row, err);
        if (st == EBB_OK)
            join(r, r->buf.layer_input + (size_t)c * width, row);
    }
    return st;
}

typedef struct input_job {
    const ebb_forward *r;
    uint32_t       i_layer;
} input_job;

static void layer_input_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const input_job *job = arg;
    const ebb_forward *r = job->r;
    size_t c = r->cols.c0 + slice, n = r->net->n_embd_layer;
    float *y = r->buf.ff + c * n;

    (void)thread;
    r->kern->gelu_mul(y, y, r->buf.layer_input + (c * r->net->n_layers + job->i_layer) * n, n);
}

ebb_status ebb_op_layer_input(ebb_forward *r, uint32_t i_layer, ebb_error *err)
{
    static const ebb_norm none = { 0 };
    const ebb_layer_input *in = &r->net->layers[i_layer].input;
    uint32_t n = r->net->n_embd_layer;
    ebb_mat m = { .w = &in->gate, .y = r->buf.ff + (size_t)r->cols.c0 * n, .y_stride = n };
    input_job job = { .r = r, .i_layer = i_layer };
    ebb_status st;

    ebb_op_norm(r, &none, ebb_act_bit(&in->gate));
    st = ebb_op_matmul(r, &m, 1, 0, err);
    if (st != EBB_OK)
        return st;
    ebb_forward_slices(r, layer_input_slice, &job, ebb_n_columns(&r->cols));
    ebb_op_input(r, r->buf.ff, n, ebb_act_bit(&in->proj));
    return ebb_op_add(r, &in->proj, &in->post_norm, err);
}
