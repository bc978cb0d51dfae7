/* A layer (forward.h): attention, something recurrent, or both, then a feed-forward or a mixture; some have one of
 * these only. */
#include "model/forward.h"

/* Bit of the activations that w wants; none if there is no w. */
static unsigned act_bit(const ebb_weight *w)
{
    return ebb_weight_exists(w) ? ebb_act_bit(w) : 0;
}

/* q, k, v and the gates of the heads; or k and v alone. */
static ebb_status project_qkv(ebb_forward *r, const ebb_layer *l, bool is_kv_only, ebb_error *err)
{
    const ebb_heads *h = &l->heads;
    size_t q_width = (size_t)h->n * h->dim_k * r->unit, k_width = (size_t)h->n_kv * h->dim_k;
    size_t v_width = (size_t)h->n_kv * h->dim_v, y_width = (size_t)h->n * h->dim_v;
    ebb_mat mats[EBB_MAX_MATS];
    uint32_t n = 0;

    if (!is_kv_only)
        mats[n++] = (ebb_mat){ &l->q, r->buf.q + r->cols.c0 * q_width, q_width };
    if (ebb_weight_exists(&l->k))
        mats[n++] = (ebb_mat){ &l->k, r->buf.k + r->cols.c0 * k_width, k_width };
    if (ebb_weight_exists(&l->v))
        mats[n++] = (ebb_mat){ &l->v, r->buf.v + r->cols.c0 * v_width, v_width };
    if (ebb_weight_exists(&l->head_gate) && !is_kv_only)
        mats[n++] = (ebb_mat){ &l->head_gate, r->buf.head_gate + r->cols.c0 * y_width, y_width };
    ebb_op_norm(r, &l->attn_norm, act_bit(&l->q) | act_bit(&l->k) | act_bit(&l->v) | act_bit(&l->head_gate));
    return ebb_op_matmul(r, mats, n, 0, err);
}

static ebb_status attention(ebb_forward *r, const ebb_layer *l, uint32_t i_layer, ebb_error *err)
{
    bool is_latent = ebb_weight_exists(&l->latent.kv_a), has_gate = ebb_weight_exists(&l->head_gate);
    ebb_status st = is_latent ? ebb_op_latent_qkv(r, l, err) : project_qkv(r, l, false, err);

    if (st != EBB_OK)
        return st;
    ebb_op_kv_store(r, i_layer);
    if (i_layer == r->net->last_mixing_layer && !r->net->has_draft_head)
        r->cols.c0 = ebb_batch_wanted(r->batch); /* all K and V are stored; the other columns end here */
    if (r->cols.c0 == r->cols.c1)
        return EBB_OK;
    ebb_op_attend(r, i_layer, is_latent || has_gate ? 0 : act_bit(&l->o));
    if (has_gate)
        ebb_op_head_gate(r, l);
    if (is_latent)
        st = ebb_op_latent_heads(r, l, err);
    else if (has_gate)
        ebb_op_input(r, r->buf.y, l->heads.n * l->heads.dim_v, act_bit(&l->o));
    if (st != EBB_OK)
        return st;
    return ebb_op_add(r, &l->o, &l->attn_post_norm, err);
}

ebb_status ebb_block_kv(ebb_forward *r, uint32_t i_layer, ebb_error *err)
{
    const ebb_layer *l = &r->net->layers[i_layer];
    ebb_status st = ebb_weight_exists(&l->latent.kv_a) ? ebb_op_latent_qkv(r, l, err) : project_qkv(r, l, true, err);

    if (st == EBB_OK)
        ebb_op_kv_store(r, i_layer);
    return st;
}

static ebb_status feed_forward(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_experts *x = &l->experts;
    ebb_status st;

    if (x->router_norm.is_on)
        return ebb_op_mixture_beside(r, l, err);
    r->cols.xielu = &l->xielu;
    r->residual.y_waits = r->net->is_parallel;
    ebb_op_norm(r, &l->ffn_norm,
                act_bit(&l->gate) | act_bit(&l->up) | act_bit(&x->router) | act_bit(&x->narrow) | x->acts |
                    act_bit(&x->shared_gate));
    if (ebb_weight_exists(&x->router))
        return ebb_op_moe(r, l, err);
    st = l->gate_cutoff > 0 ? ebb_op_sparse_gated(r, l, err) : ebb_op_gated(r, &l->gate, &l->up, err);
    if (st != EBB_OK)
        return st;
    ebb_op_input(r, r->buf.ff, l->up.n_rows, act_bit(&l->down));
    return ebb_op_add(r, &l->down, &l->ffn_post_norm, err);
}

ebb_status ebb_block_layer(ebb_forward *r, uint32_t i_layer, ebb_error *err)
{
    const ebb_layer *l = &r->net->layers[i_layer];
    bool has_attention = ebb_weight_exists(&l->o), has_streams = r->net->streams.n > 0;
    ebb_status st = has_streams ? ebb_op_predict(r, l, err) : EBB_OK;

    if (st == EBB_OK && r->net->router_is_early && ebb_weight_exists(&l->experts.router))
        st = ebb_op_early_router(r, l, err);
    if (st != EBB_OK)
        return st;
    if (l->recurrent.kind)
        st = ebb_op_recurrent(r, i_layer, has_attention, err);
    if (st == EBB_OK && has_attention)
        st = attention(r, l, i_layer, err);
    if (st != EBB_OK || r->cols.c0 == r->cols.c1)
        return st;
    if (has_streams)
        ebb_op_add_laurel(r);
    if (ebb_weight_exists(&l->up) || ebb_weight_exists(&l->experts.router))
        st = feed_forward(r, l, err);
    if (st == EBB_OK && has_streams)
        return ebb_op_correct(r, i_layer, err);
    if (st == EBB_OK && ebb_weight_exists(&l->input.gate))
        st = ebb_op_layer_input(r, i_layer, err);
    r->residual.x_scale = l->scale;
    return st;
}
