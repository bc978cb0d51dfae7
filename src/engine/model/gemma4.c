/* Gemma 4 (2026): Gemma 3's layers with heads of another width in global layers than in local ones, a norm of V, and a
 * scale behind each layer.  Three kinds of files:
 *   dense    global layers may have fewer KV heads, and no V of their own: it is K before its norm;
 *   E        the last layers use K and V of layers before them, and each layer adds a vector of the token;
 *   mixture  experts beside the feed-forward, both on x after attention, each with norms of its own. */
#include <math.h>

#include "model/arch.h"

#define MAX_DIM   (1u << 14)
#define PERIOD    6u             /* one layer of so many is global, where the file does not say */

/* -- Whose K and V -------------------------------------------------------------------- */

/* The last layer of its kind before the n that have none. */
static uint32_t kv_layer_of(ebb_binder *b, uint32_t i, uint32_t n_own)
{
    uint32_t from = n_own;

    while (from > 0 && ebb_bind_is_windowed(b, from - 1, PERIOD) != ebb_bind_is_windowed(b, i, PERIOD))
        from--;
    if (from == 0)
        ebb_bind_fail(b, EBB_FORMAT, "metadata gemma4.attention.shared_kv_layers: no layer has K and V for layer %u",
                      i);
    return from > 0 ? from - 1 : i;
}

static void bind_layer_kinds(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t n_shared = ebb_bind_u32_or(b, ".attention.shared_kv_layers", 0, 0, net->n_layers - 1);
    uint32_t dim_k = ebb_bind_u32_or(b, ".attention.key_length_swa", net->dim_k, 2, MAX_DIM);
    uint32_t dim_v = ebb_bind_u32_or(b, ".attention.value_length_swa", net->dim_v, 1, MAX_DIM);

    (void)ebb_bind_product(b, ".attention.key_length_swa", net->n_head, dim_k, EBB_MAX_WIDTH);
    (void)ebb_bind_product(b, ".attention.value_length_swa", net->n_head, dim_v, EBB_MAX_WIDTH);
    for (uint32_t i = 0; i < net->n_layers && b->st == EBB_OK; i++) {
        ebb_layer *l = &net->layers[i];

        if (ebb_bind_is_windowed(b, i, PERIOD)) {
            l->window = net->window;
            l->rope = 1;
            l->heads.dim_k = dim_k;
            l->heads.dim_v = dim_v;
        }
        if (i >= net->n_layers - n_shared)
            l->kv_layer = kv_layer_of(b, i, net->n_layers - n_shared);
    }
}

/* -- A layer --------------------------------------------------------------------------- */

static void bind_kv(ebb_binder *b, ebb_layer *l)
{
    const ebb_heads *h = &l->heads;

    ebb_bind_matrix(b, &l->k, "attn_k", h->n_kv * h->dim_k, b->net->n_embd);
    if (ebb_bind_has(b, "attn_v"))
        ebb_bind_matrix(b, &l->v, "attn_v", h->n_kv * h->dim_v, b->net->n_embd);
    else if (h->dim_k != h->dim_v)
        ebb_bind_fail(b, EBB_FORMAT, "tensor blk.%u.attn_v.weight is missing, and keys are no values of its length",
                      b->layer);
}

static void bind_attention(ebb_binder *b, ebb_layer *l)
{
    bool has_kv = l->kv_layer == b->layer;

    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_matrix(b, &l->q, "attn_q", l->heads.n * l->heads.dim_k, b->net->n_embd);
    if (has_kv)
        bind_kv(b, l);
    ebb_bind_output(b, l);
    ebb_bind_norm(b, &l->q_norm, "attn_q_norm", l->heads.dim_k);
    if (has_kv) {
        ebb_bind_norm(b, &l->k_norm, "attn_k_norm", l->heads.dim_k);
        l->v_norm.is_on = true;
    } else {                                     /* converters write them all the same */
        ebb_bind_unused(b, "attn_k");
        ebb_bind_unused(b, "attn_v");
        ebb_bind_unused(b, "attn_k_norm");
    }
}

/* In the order of use: the router, the feed-forward while what it chose is read, the experts. */
static void bind_mixture(ebb_binder *b, ebb_layer *l)
{
    ebb_experts *x = &l->experts;
    uint32_t n = b->net->n_embd;

    b->net->has_mixture_beside = true;
    ebb_bind_router(b, x);
    ebb_bind_named_norm(b, &x->router_norm, "ffn_gate_inp.scale", n, 1 / sqrt((double)n));
    ebb_bind_dense(b, l);
    ebb_bind_norm(b, &x->shared_post_norm, "post_ffw_norm_1", n);
    ebb_bind_norm(b, &x->norm, "pre_ffw_norm_2", n);
    ebb_bind_experts(b, x);
    ebb_bind_norm(b, &x->post_norm, "post_ffw_norm_2", n);
}

static void bind_layer(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;

    bind_attention(b, l);
    ebb_bind_norm(b, &l->ffn_norm, "ffn_norm", net->n_embd);
    if (net->n_expert > 0 && ebb_bind_has(b, "ffn_gate_inp"))
        bind_mixture(b, l);
    else
        ebb_bind_dense(b, l);
    ebb_bind_post_norms(b, l);
    if (net->n_embd_layer > 0) {
        ebb_bind_matrix(b, &l->input.gate, "inp_gate", net->n_embd_layer, net->n_embd);
        ebb_bind_matrix(b, &l->input.proj, "proj", net->n_embd, net->n_embd_layer);
        ebb_bind_norm(b, &l->input.post_norm, "post_norm", net->n_embd);
    }
    ebb_bind_vector(b, &l->scale, "layer_output_scale", 1, false);
}

/* -- The network ------------------------------------------------------------------------ */

static void bind(ebb_binder *b)
{
    ebb_net *net = b->net;

    ebb_bind_shape(b, true);
    net->embd_scale = (float)sqrt((double)net->n_embd);
    net->attn_scale = 1;
    net->ffn_gate = EBB_GATE_GELU;
    net->window = ebb_bind_u32(b, ".attention.sliding_window", 1, 1u << 30);
    net->logit_softcap = (float)ebb_bind_f64_or(b, ".final_logit_softcapping", 0);
    ebb_bind_local_rope(b, ebb_bind_f64_or(b, ".rope.freq_base_swa", 10000.0));
    net->ropes[1].n_rot = ebb_bind_u32_or(b, ".rope.dimension_count_swa", net->ropes[0].n_rot, 2, MAX_DIM) & ~1u;
    if (b->st != EBB_OK)
        return;
    bind_layer_kinds(b);
    ebb_bind_layer_embeddings(b);
    ebb_bind_layers(b, bind_layer);
}

const ebb_arch ebb_arch_gemma4 = { .name = "gemma4", .bind = bind };
