/* Multi-head latent attention (DeepSeek-AI 2024, "DeepSeek-V2", sec. 2.1), forward.h.
 *
 * A column has one latent c [L] and one rotated key r [R] for all heads; keys and values of a head are
 * matrices times c.  With these matrices applied to the query and to the result instead (k_b, v_b), one KV
 * head of [r | c] serves all query heads; with kv_b, keys and values of each head are made and kept. */
#include <string.h>

#include "model/forward.h"

#define ALIGN 64u

static size_t dim_rotated(const ebb_net *net)
{
    return net->ropes[0].n_rot;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

void ebb_latent_layout(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_tokens, n = dim_rotated(net) + max_size(net->dim_nope, net->dim_head_v);

    r->latent.low_q = ebb_arena_take_rows(a, cols, net->dim_latent_q, sizeof(float), ALIGN);
    r->latent.low_kv = ebb_arena_take_rows(a, cols, net->dim_latent + dim_rotated(net), sizeof(float), ALIGN);
    n = max_size(n, (size_t)net->dim_nope + net->dim_head_v);
    r->latent.wide = ebb_arena_take_rows(a, cols, net->n_head * n, sizeof(float), ALIGN);
    r->latent.head_acts_bytes = cols * ebb_act_col_bytes(EBB_ACT_F32, max_size(net->dim_latent, net->dim_nope));
    r->latent.head_acts = ebb_arena_take_rows(a, r->n_threads, r->latent.head_acts_bytes, 1, ALIGN);
}

/* -- Small steps of a column --------------------------------------------------------- */

static void rope_part(const ebb_forward *r, uint32_t c, float *x)
{
    const ebb_rope *rope = &r->net->ropes[0];

    ebb_rope_rotate(r, rope, r->buf.cos_sin[0] + (size_t)c * rope->n_rot, x);
}

typedef struct latent_job {
    const ebb_forward *r;
    const ebb_layer *l;
} latent_job;

static void norm_q_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const latent_job *job = arg;
    size_t n = job->r->net->dim_latent_q;
    float *x = job->r->latent.low_q + (job->r->cols.c0 + slice) * n;

    (void)thread;
    ebb_norm_row(job->r, &job->l->latent.q_a_norm, x, x, n);
}

/* Norm the latent, rotate the parts of k and q that RoPE has. */
static void prepare_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const latent_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_net *net = r->net;
    uint32_t c = r->cols.c0 + slice;
    size_t n_rot = dim_rotated(net), n = net->dim_nope + n_rot;
    float *kv = r->latent.low_kv + c * (net->dim_latent + n_rot), *q = r->latent.wide + c * net->n_head * n;

    (void)thread;
    ebb_norm_row(r, &job->l->latent.kv_a_norm, kv, kv, net->dim_latent);
    rope_part(r, c, kv + net->dim_latent);
    for (uint32_t h = 0; h < net->n_head; h++)
        rope_part(r, c, q + h * n + net->dim_nope);
}

/* -- One KV head for all -------------------------------------------------------------- */

/* k = [r | c], v = c, and the rotated part of each head's q. */
static void join_latent_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const latent_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_net *net = r->net;
    size_t c = r->cols.c0 + slice, n_rot = dim_rotated(net), n_l = net->dim_latent, n = net->dim_nope + n_rot;
    const float *kv = r->latent.low_kv + c * (n_l + n_rot), *q = r->latent.wide + c * net->n_head * n + net->dim_nope;
    float *k = r->buf.k + c * net->dim_k, *to = r->buf.q + c * net->n_head * net->dim_k;

    (void)thread;
    memcpy(k, kv + n_l, n_rot * sizeof *k);
    memcpy(k + n_rot, kv, n_l * sizeof *k);
    memcpy(r->buf.v + c * net->dim_v, kv, n_l * sizeof *k);
    for (uint32_t h = 0; h < net->n_head; h++)
        memcpy(to + h * net->dim_k, q + h * n, n_rot * sizeof *to);
}

static ebb_status absorb(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    size_t n_rot = dim_rotated(net), n = net->dim_nope + n_rot, q_width = (size_t)net->n_head * net->dim_k;
    ebb_mat m = { .w = &l->latent.k_b, .y = r->buf.q + r->cols.c0 * q_width + n_rot, .y_stride = q_width };
    ebb_per_head p = { .src = r->latent.wide, .src_stride = net->n_head * n, .src_head = n, .y_head = net->dim_k,
                       .n_heads = net->n_head };
    latent_job job = { .r = r, .l = l };

    ebb_forward_slices(r, join_latent_slice, &job, ebb_n_columns(&r->cols));
    return ebb_op_heads(r, &m, &p, err);
}

/* -- Keys and values of each head -------------------------------------------------------- */

static void split_kv_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const latent_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_net *net = r->net;
    size_t c = r->cols.c0 + slice, n_rot = dim_rotated(net), n_n = net->dim_nope, n_v = net->dim_head_v;
    const float *both = r->latent.wide + c * net->n_head * (n_n + n_v);
    const float *rotated = r->latent.low_kv + c * (net->dim_latent + n_rot) + net->dim_latent;

    (void)thread;
    for (uint32_t h = 0; h < net->n_head; h++, both += n_n + n_v) {
        float *k = r->buf.k + (c * net->n_head + h) * net->dim_k;

        memcpy(k, both, n_n * sizeof *k);
        memcpy(k + n_n, rotated, n_rot * sizeof *k);
        memcpy(r->buf.v + (c * net->n_head + h) * n_v, both + n_n, n_v * sizeof *k);
    }
}

static ebb_status expand(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    size_t n_rot = dim_rotated(net), q_width = (size_t)net->n_head * (net->dim_nope + n_rot);
    size_t width = net->n_head * (size_t)(net->dim_nope + net->dim_head_v);
    ebb_mat m = { .w = &l->latent.kv_b, .y = r->latent.wide + r->cols.c0 * width, .y_stride = width };
    ebb_per_head p = { .src = r->latent.low_kv, .src_stride = net->dim_latent + n_rot, .y_head = width / net->n_head,
                       .n_heads = net->n_head };
    latent_job job = { .r = r, .l = l };
    ebb_status st;

    memcpy(r->buf.q + r->cols.c0 * q_width, r->latent.wide + r->cols.c0 * q_width,
           ebb_n_columns(&r->cols) * q_width * sizeof *r->buf.q);
    st = ebb_op_heads(r, &m, &p, err);           /* all heads from the same latent */
    if (st == EBB_OK)
        ebb_forward_slices(r, split_kv_slice, &job, ebb_n_columns(&r->cols));
    return st;
}

/* -- The layer -------------------------------------------------------------------------- */

/* low_kv = kv_a x, and wide = q x, through the latent of q where there is one. */
static ebb_status project_latent(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    const ebb_latent *t = &l->latent;
    bool has_q_a = ebb_weight_exists(&t->q_a);
    const ebb_weight *first = has_q_a ? &t->q_a : &l->q;
    ebb_mat mats[] = {
        { first, has_q_a ? r->latent.low_q : r->latent.wide, first->n_rows },
        { &t->kv_a, r->latent.low_kv, t->kv_a.n_rows },
    };
    ebb_mat q = { &l->q, r->latent.wide, l->q.n_rows };
    latent_job job = { .r = r, .l = l };
    ebb_status st;

    ebb_op_norm(r, &l->attn_norm, ebb_act_bit(first) | ebb_act_bit(&t->kv_a));
    st = ebb_op_matmul(r, mats, 2, 0, err);
    if (st != EBB_OK || !has_q_a)
        return st;
    ebb_forward_slices(r, norm_q_slice, &job, ebb_n_columns(&r->cols));
    ebb_op_input(r, r->latent.low_q, net->dim_latent_q, ebb_act_bit(&l->q));
    return ebb_op_matmul(r, &q, 1, 0, err);
}

ebb_status ebb_op_latent_qkv(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    latent_job job = { .r = r, .l = l };
    ebb_status st = project_latent(r, l, err);

    if (st != EBB_OK)
        return st;
    ebb_forward_slices(r, prepare_slice, &job, ebb_n_columns(&r->cols));
    return ebb_weight_exists(&l->latent.kv_b) ? expand(r, l, err) : absorb(r, l, err);
}

ebb_status ebb_op_latent_heads(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    size_t width = (size_t)net->n_head * net->dim_head_v;
    ebb_mat m = { .w = &l->latent.v_b, .y = r->latent.wide + r->cols.c0 * width, .y_stride = width };
    ebb_per_head p = { .src = r->buf.y, .src_stride = (size_t)net->n_head * net->dim_v, .src_head = net->dim_v,
                       .y_head = net->dim_head_v, .n_heads = net->n_head };
    ebb_status st = EBB_OK;

    if (ebb_weight_exists(&l->latent.v_b))
        st = ebb_op_heads(r, &m, &p, err);
    if (st == EBB_OK)
        ebb_op_input(r, ebb_weight_exists(&l->latent.v_b) ? r->latent.wide : r->buf.y, l->o.n_k, ebb_act_bit(&l->o));
    return st;
}
