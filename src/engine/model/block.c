/* A layer of most architectures (forward.h): attention or a delta net, then a feed-forward or a mixture. */
#include "model/forward.h"

/* Bit of the activations that w wants; none if there is no w. */
static unsigned act_bit(const ebb_weight *w)
{
    return ebb_weight_exists(w) ? ebb_act_bit(w) : 0;
}

/* q, k, v and the gates of the heads. */
static ebb_status project_qkv(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    size_t q_width = (size_t)net->n_head * net->dim_k * r->unit, k_width = (size_t)net->n_head_kv * net->dim_k;
    size_t v_width = (size_t)net->n_head_kv * net->dim_v, y_width = (size_t)net->n_head * net->dim_v;
    bool has_gate = ebb_weight_exists(&l->head_gate);
    ebb_mat mats[] = {
        { &l->q, r->q + r->c0 * q_width, q_width },
        { &l->k, r->k + r->c0 * k_width, k_width },
        { &l->v, r->v + r->c0 * v_width, v_width },
        { &l->head_gate, r->head_gate + (has_gate ? r->c0 * y_width : 0), y_width },
    };

    ebb_op_norm(r, &l->attn_norm, act_bit(&l->q) | act_bit(&l->k) | act_bit(&l->v) | act_bit(&l->head_gate));
    return ebb_op_matmul(r, mats, has_gate ? 4 : 3, 0, err);
}

static ebb_status attention(ebb_forward *r, const ebb_layer *l, uint32_t i_layer, ebb_error *err)
{
    const ebb_net *net = r->net;
    bool is_latent = ebb_weight_exists(&l->latent.kv_a), has_gate = ebb_weight_exists(&l->head_gate);
    ebb_status st = is_latent ? ebb_op_latent_qkv(r, l, err) : project_qkv(r, l, err);

    if (st != EBB_OK)
        return st;
    ebb_op_kv_store(r, i_layer);
    if (i_layer + 1 == r->net->n_layers)
        r->c0 = r->c1 - r->n_out;                /* K and V of all stand; the others are not needed any more */
    if (r->c0 == r->c1)
        return EBB_OK;
    ebb_op_attend(r, i_layer, is_latent || has_gate ? 0 : act_bit(&l->o));
    if (has_gate)
        ebb_op_head_gate(r);
    if (is_latent)
        st = ebb_op_latent_heads(r, l, err);
    else if (has_gate)
        ebb_op_input(r, r->y, net->n_head * net->dim_v, act_bit(&l->o));
    if (st != EBB_OK)
        return st;
    return ebb_op_add(r, &l->o, &l->attn_post_norm, err);
}

static ebb_status feed_forward(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_experts *x = &l->experts;
    ebb_status st;

    r->y_waits = r->net->is_parallel;
    ebb_op_norm(r, &l->ffn_norm, act_bit(&l->gate) | act_bit(&l->up) | act_bit(&x->router) | x->acts |
                                 act_bit(&x->shared_gate));
    if (ebb_weight_exists(&x->router))
        return ebb_op_moe(r, l, err);
    st = ebb_op_gated(r, &l->gate, &l->up, err);
    if (st != EBB_OK)
        return st;
    ebb_op_input(r, r->ff, l->up.n_rows, act_bit(&l->down));
    return ebb_op_add(r, &l->down, &l->ffn_post_norm, err);
}

ebb_status ebb_block_layer(ebb_forward *r, uint32_t i_layer, ebb_error *err)
{
    const ebb_layer *l = &r->net->layers[i_layer];
    ebb_status st = ebb_weight_exists(&l->delta.out) ? ebb_op_delta_net(r, l, i_layer, err)
                                                 : attention(r, l, i_layer, err);

    if (st != EBB_OK || r->c0 == r->c1)
        return st;
    return feed_forward(r, l, err);
}
