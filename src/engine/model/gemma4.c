/* Gemma 3n (2025) and 4 (2026): Gemma 3's layers with a norm of V, of which the last may use K and V of layers before
 * them, and each may add a vector of the token.
 *
 * Gemma 3n: several residual streams (altup.c); of gate's products only the largest count in the first layers.
 *
 * Gemma 4: heads of another width in global layers than in local ones, a scale behind each layer.  Three kinds of
 * files:
 *   dense    global layers may have fewer KV heads, and no V of their own: it is K before its norm;
 *   E        the last layers use K and V of layers before them, and each layer adds a vector of the token;
 *   mixture  experts beside the feed-forward, both on x after attention, each with norms of its own. */
#include <math.h>

#include "model/arch.h"

#define MAX_DIM   (1u << 14)
#define PERIOD    6u             /* one layer of so many is global, where the file does not say; ... */
#define PERIOD_3N 5u             /* ... of Gemma 3n */
#define N_OWN_3N  20u            /* layers of Gemma 3n with K and V, ... */
#define N_CUT_3N  10u            /* ... layers whose gate is cut off, ... */
#define CUTOFF_3N 1.6448536f     /* ... so many deviations above the mean, above which are 5 % of a normal distribution:
                                    where the file does not say */

/* -- Whose K and V -------------------------------------------------------------------- */

/* The last layer of its kind before the n that have none. */
static uint32_t kv_layer_of(ebb_binder *b, uint32_t i, uint32_t n_own, uint32_t period)
{
    uint32_t from = n_own;

    while (from > 0 && ebb_bind_is_windowed(b, from - 1, period) != ebb_bind_is_windowed(b, i, period))
        from--;
    if (from == 0)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention.shared_kv_layers: no layer has K and V for layer %u",
                      b->net->arch->name, i);
    return from > 0 ? from - 1 : i;
}

/* n_shared: where the file does not say. */
static void bind_layer_kinds(ebb_binder *b, uint32_t period, uint32_t n_shared)
{
    ebb_net *net = b->net;
    uint32_t dim_k = ebb_bind_u32_or(b, ".attention.key_length_swa", net->dim_k, 2, MAX_DIM);
    uint32_t dim_v = ebb_bind_u32_or(b, ".attention.value_length_swa", net->dim_v, 1, MAX_DIM);
    uint32_t n_rot = net->ropes[0].n_rot < dim_k ? net->ropes[0].n_rot : dim_k;

    net->ropes[1].n_rot = ebb_bind_u32_or(b, ".rope.dimension_count_swa", n_rot, 2, dim_k) & ~1u;
    n_shared = ebb_bind_u32_or(b, ".attention.shared_kv_layers", n_shared, 0, net->n_layers - 1);
    (void)ebb_bind_product(b, ".attention.key_length_swa", net->n_head, dim_k, EBB_MAX_WIDTH);
    (void)ebb_bind_product(b, ".attention.value_length_swa", net->n_head, dim_v, EBB_MAX_WIDTH);
    for (uint32_t i = 0; i < net->n_layers && b->st == EBB_OK; i++) {
        ebb_layer *l = &net->layers[i];

        if (ebb_bind_is_windowed(b, i, period)) {
            l->window = net->window;
            l->rope = 1;
            l->heads.dim_k = dim_k;
            l->heads.dim_v = dim_v;
        }
        if (i >= net->n_layers - n_shared)
            l->kv_layer = kv_layer_of(b, i, net->n_layers - n_shared, period);
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
        ebb_bind_fail(b, EBB_FORMAT,
                      "tensor blk.%u.attn_v.weight is missing, and keys cannot serve as values of another length",
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

static void bind_layer_input(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;

    if (net->n_embd_layer == 0)
        return;
    ebb_bind_matrix(b, &l->input.gate, "inp_gate", net->n_embd_layer, net->n_embd);
    ebb_bind_matrix(b, &l->input.proj, "proj", net->n_embd, net->n_embd_layer);
    ebb_bind_norm(b, &l->input.post_norm, "post_norm", net->n_embd);
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
    bind_layer_input(b, l);
    ebb_bind_vector(b, &l->scale, "layer_output_scale", 1, false);
}

/* Minus infinity, of a share of 0 that is cut off: none is. */
static float cutoff_of(ebb_binder *b, uint32_t i)
{
    static const char key[] = ".activation_sparsity_scale";
    const ebb_gguf_kv *kv = ebb_bind_key(b, key);
    double v = i < N_CUT_3N ? CUTOFF_3N : 0;

    if (!kv)
        return (float)v;
    if (!ebb_gguf_item_f64(kv, i, &v) || !(v > 0 || v == -INFINITY) || v == INFINITY)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s: has no number above 0 for layer %u", b->net->arch->name, key, i);
    return v > 0 ? (float)v : 0;
}

static void bind_3n_layer(ebb_binder *b, ebb_layer *l)
{
    l->gate_cutoff = cutoff_of(b, b->layer);
    ebb_bind_altup(b, l);
    bind_attention(b, l);
    ebb_bind_norm(b, &l->ffn_norm, "ffn_norm", b->net->n_embd);
    ebb_bind_dense(b, l);
    ebb_bind_post_norms(b, l);
    bind_layer_input(b, l);
}

/* -- The network ------------------------------------------------------------------------ */

static void bind_shape(ebb_binder *b, uint32_t period, uint32_t n_own, double softcap)
{
    ebb_net *net = b->net;

    ebb_bind_shape(b, true);
    net->embd_scale = (float)sqrt((double)net->n_embd);
    net->attn_scale = 1;
    net->ffn_gate = EBB_GATE_GELU;
    net->window = ebb_bind_u32(b, ".attention.sliding_window", 1, 1u << 30);
    net->logit_softcap = (float)ebb_bind_f64_or(b, ".final_logit_softcapping", softcap);
    ebb_bind_local_rope(b, ebb_bind_f64_or(b, ".rope.freq_base_swa", 10000.0));
    if (b->st == EBB_OK)
        bind_layer_kinds(b, period, net->n_layers > n_own ? net->n_layers - n_own : 0);
    ebb_bind_layer_embeddings(b);
}

static void bind_3n(ebb_binder *b)
{
    ebb_net *net = b->net;

    bind_shape(b, PERIOD_3N, N_OWN_3N, 30.0);
    if (b->st == EBB_OK && net->n_embd_layer == 0)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.embedding_length_per_layer_input is missing", net->arch->name);
    net->streams.n = ebb_bind_u32_or(b, ".altup.num_inputs", 4, 2, EBB_MAX_STREAMS);
    ebb_bind_only(b, ".altup.active_idx", 0);
    ebb_bind_spread(b);
    ebb_bind_layers(b, bind_3n_layer);
}

const ebb_arch ebb_arch_gemma3n = { .name = "gemma3n", .bind = bind_3n };

static void bind(ebb_binder *b)
{
    bind_shape(b, PERIOD, UINT32_MAX, 0);
    ebb_bind_layers(b, bind_layer);
}

const ebb_arch ebb_arch_gemma4 = { .name = "gemma4", .bind = bind };
