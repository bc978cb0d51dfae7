/* The parts of a network that architectures share (bind.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/arch.h"

#define MAX_LAYERS  4096u
#define MAX_EXPERTS 4096u        /* of a layer ... */
#define MAX_ALL     (1u << 17)   /* ... and of all; the largest known have 30,000 */

/* -- Rope ---------------------------------------------------------------------- */

/* YaRN (Peng et al. 2023): the logits' temperature 0.1 ln(factor) + 1 goes to the magnitude. */
static void bind_yarn(ebb_binder *b, ebb_rope *rope)
{
    rope->is_yarn = true;
    rope->beta_fast = ebb_bind_f64_or(b, ".rope.scaling.yarn_beta_fast", 32.0);
    rope->beta_slow = ebb_bind_f64_or(b, ".rope.scaling.yarn_beta_slow", 1.0);
    rope->magnitude *= 1.0 + 0.1 * log(1.0 / rope->freq_scale);
    if (rope->n_ctx_orig == 0)
        rope->n_ctx_orig = b->net->n_ctx_train;
}

static void bind_scaling(ebb_binder *b, ebb_rope *rope)
{
    const char *type = ebb_gguf_get_string(b->g, ".rope.scaling.type");
    double factor = ebb_bind_f64_or(b, ".rope.scaling.factor", ebb_bind_f64_or(b, ".rope.scale_linear", 1.0));

    rope->magnitude = ebb_bind_f64_or(b, ".rope.scaling.attn_factor", 1.0);
    rope->n_ctx_orig = ebb_bind_u32_or(b, ".rope.scaling.original_context_length", 0, 0, 1u << 30);
    if (factor == 0)
        factor = 1.0;
    if (!(factor > 0) || !(rope->freq_base > 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope: a base or factor that is not above 0", b->net->arch->name);
    if (!type || strcmp(type, "linear") == 0 || strcmp(type, "yarn") == 0)
        rope->freq_scale = 1.0 / factor;
    else if (strcmp(type, "none") != 0 && strcmp(type, "longrope") != 0 && strcmp(type, "llama3") != 0)
        ebb_bind_fail(b, EBB_UNSUPPORTED, "rope scaling \"%.40s\" is not supported; none, linear, llama3, yarn and "
                      "longrope are", type);
    if (type && strcmp(type, "yarn") == 0 && b->st == EBB_OK)
        bind_yarn(b, rope);
}

static void bind_rope(ebb_binder *b, bool is_halves)
{
    ebb_net *net = b->net;
    ebb_rope *rope = &net->ropes[0];

    net->n_ropes = 1;
    rope->n_rot = ebb_bind_u32_or(b, ".rope.dimension_count", net->dim_k, 2, net->dim_k) & ~1u;
    rope->is_halves = is_halves;
    rope->freq_base = ebb_bind_f64_or(b, ".rope.freq_base", 10000.0);
    rope->freq_scale = 1.0;
    bind_scaling(b, rope);
    ebb_bind_vector(b, &rope->freq_factors, "rope_freqs", rope->n_rot / 2, false);
    if (!ebb_bind_has(b, "rope_factors_long"))
        return;
    ebb_bind_vector(b, &rope->long_factors, "rope_factors_long", rope->n_rot / 2, true);
    ebb_bind_vector(b, &rope->freq_factors, "rope_factors_short", rope->n_rot / 2, true);
}

void ebb_bind_local_rope(ebb_binder *b, double freq_base)
{
    ebb_net *net = b->net;

    net->ropes[1] = (ebb_rope){
        .n_rot = net->ropes[0].n_rot, .is_halves = net->ropes[0].is_halves, .freq_base = freq_base,
        .freq_scale = 1.0, .magnitude = 1.0,
    };
    net->n_ropes = 2;
    if (!(freq_base > 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope: a base that is not above 0", net->arch->name);
}

/* -- Sizes --------------------------------------------------------------------- */

static void bind_heads(ebb_binder *b)
{
    ebb_net *net = b->net;

    if (b->st == EBB_OK && !ebb_gguf_find(b->g, ".attention.head_count"))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention.head_count is missing", net->arch->name);
    net->n_head = ebb_bind_u32_most(b, ".attention.head_count", 1, 1, 1u << 16);
    net->n_head_kv = ebb_bind_u32_most(b, ".attention.head_count_kv", net->n_head, 1, net->n_head);
    net->dim_k = ebb_bind_u32_or(b, ".attention.key_length", net->n_embd / net->n_head, 2, 1u << 14);
    net->dim_v = ebb_bind_u32_or(b, ".attention.value_length", net->n_embd / net->n_head, 1, 1u << 14);
    net->attn_scale = (float)ebb_bind_f64_or(b, ".attention.scale", 1.0 / sqrt((double)net->dim_k));
    (void)ebb_bind_product(b, ".attention.key_length", net->n_head, net->dim_k, EBB_MAX_WIDTH);
    (void)ebb_bind_product(b, ".attention.value_length", net->n_head, net->dim_v, EBB_MAX_WIDTH);
}

void ebb_bind_same_heads(ebb_binder *b)
{
    const ebb_net *net = b->net;

    for (uint32_t i = 0; i < net->n_layers && b->st == EBB_OK; i++)
        net->layers[i].heads = (ebb_heads){ net->n_head, net->n_head_kv, net->dim_k, net->dim_v };
}

/* What may differ from layer to layer. */
static void bind_layer_shapes(ebb_binder *b)
{
    ebb_net *net = b->net;

    ebb_bind_same_heads(b);
    for (uint32_t i = 0; i < net->n_layers && b->st == EBB_OK; i++) {
        ebb_heads *h = &net->layers[i].heads;

        h->n = ebb_bind_u32_at(b, ".attention.head_count", i, net->n_head, 0, net->n_head);
        h->n_kv = ebb_bind_u32_at(b, ".attention.head_count_kv", i, h->n, 0, net->n_head_kv);
        net->layers[i].n_ff = ebb_bind_u32_at(b, ".feed_forward_length", i, 0, 0, EBB_MAX_WIDTH);
        net->layers[i].kv_layer = i;
        if (b->st == EBB_OK && h->n_kv > 0 && h->n % h->n_kv != 0)
            ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention: %u heads do not share %u KV heads in layer %u", net->arch->name,
                          h->n, h->n_kv, i);
    }
}

static void bind_expert_shape(ebb_binder *b)
{
    ebb_net *net = b->net;

    net->n_expert = ebb_bind_u32_or(b, ".expert_count", 0, 0, MAX_EXPERTS);
    net->router_normalizes = ebb_bind_bool_or(b, ".expert_weights_norm", true);
    net->router_is_sigmoid = ebb_bind_u32_or(b, ".expert_gating_func", 1, 0, 3) == 2;
    net->router_scale = (float)ebb_bind_f64_or(b, ".expert_weights_scale", 1.0);
    if (net->router_scale == 0)
        net->router_scale = 1.0f;                /* old files say 0 for none */
    if (net->n_expert == 0)
        return;
    (void)ebb_bind_product(b, ".expert_count", net->n_layers, net->n_expert, MAX_ALL);
    net->n_expert_used = ebb_bind_u32(b, ".expert_used_count", 1, net->n_expert);
    net->n_ff_expert = ebb_bind_u32_or(b, ".expert_feed_forward_length", net->n_ff, 1, EBB_MAX_WIDTH);
}

void ebb_bind_shape(ebb_binder *b, bool rope_is_halves)
{
    ebb_net *net = b->net;
    const char *eps = net->norm_is_layer ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon";
    uint32_t n_blocks = ebb_bind_u32(b, ".block_count", 1, MAX_LAYERS);

    /* the last blocks may be for multi-token prediction */
    net->n_layers = n_blocks - ebb_bind_u32_or(b, ".nextn_predict_layers", 0, 0, n_blocks - 1);
    net->n_embd = ebb_bind_u32(b, ".embedding_length", 1, EBB_MAX_WIDTH);
    net->n_ff = ebb_bind_u32_most(b, ".feed_forward_length", 0, 0, EBB_MAX_WIDTH);
    net->n_ctx_train = ebb_bind_u32_or(b, ".context_length", 2048, 1, 1u << 30);
    net->norm_eps = (float)ebb_bind_f64_or(b, eps, 1e-5);
    net->embd_scale = net->residual_scale = net->logit_scale = 1.0f;
    bind_heads(b);
    bind_expert_shape(b);
    if (b->st == EBB_OK && net->n_ff == 0 && net->n_expert == 0)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.feed_forward_length is missing", net->arch->name);
    b->layer = EBB_NO_LAYER;
    bind_rope(b, rope_is_halves);
    if (b->st != EBB_OK)
        return;
    net->layers = calloc(net->n_layers, sizeof *net->layers);
    if (!net->layers)
        ebb_bind_fail(b, EBB_NOMEM, "no memory for a table of %u layers", net->n_layers);
    bind_layer_shapes(b);
}

void ebb_bind_layers(ebb_binder *b, void (*bind)(ebb_binder *b, ebb_layer *l))
{
    for (b->layer = 0; b->st == EBB_OK && b->layer < b->net->n_layers; b->layer++)
        bind(b, &b->net->layers[b->layer]);
    ebb_bind_embd_and_output(b);
}

bool ebb_bind_is_windowed(ebb_binder *b, uint32_t i, uint32_t period)
{
    static const char key[] = ".attention.sliding_window_pattern";
    const ebb_gguf_kv *kv = ebb_gguf_find(b->g, key);

    if (kv && kv->type == EBB_GGUF_ARRAY)
        return ebb_bind_u32_at(b, key, i, 0, 0, 1) != 0;
    period = ebb_bind_u32_or(b, key, period, 1, 1u << 16);
    return (i + 1) % period != 0;
}

void ebb_bind_layer_embeddings(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t n;

    if (b->st != EBB_OK)
        return;
    net->n_embd_layer = ebb_bind_u32_or(b, ".embedding_length_per_layer_input", 0, 0, EBB_MAX_WIDTH / net->n_layers);
    if (net->n_embd_layer == 0)
        return;
    n = net->n_embd_layer * net->n_layers;
    net->layer_embd = ebb_bind_rows(b, "per_layer_token_embd", (uint32_t)ebb_bind_row_count(b, "token_embd"), n);
    ebb_bind_matrix(b, &net->layer_proj, "per_layer_model_proj", n, net->n_embd);
    ebb_bind_norm(b, &net->layer_proj_norm, "per_layer_proj_norm", net->n_embd_layer);
}

/* -- A layer's parts ------------------------------------------------------------ */

void ebb_bind_qkv(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    const ebb_heads *h = &l->heads;
    uint32_t n_q = h->n * h->dim_k, n_k = h->n_kv * h->dim_k, n_v = h->n_kv * h->dim_v;
    ebb_weight *const parts[] = { &l->q, &l->k, &l->v };

    if (ebb_bind_has(b, "attn_qkv")) {
        l->q.n_rows = n_q;
        l->k.n_rows = n_k;
        l->v.n_rows = n_v;
        ebb_bind_fused(b, parts, 3, "attn_qkv", net->n_embd);
        return;
    }
    ebb_bind_matrix(b, &l->q, "attn_q", n_q, net->n_embd);
    ebb_bind_matrix(b, &l->k, "attn_k", n_k, net->n_embd);
    ebb_bind_matrix(b, &l->v, "attn_v", n_v, net->n_embd);
}

void ebb_bind_attention(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_qkv(b, l);
    ebb_bind_output(b, l);
}

void ebb_bind_output(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_matrix(b, &l->o, "attn_output", b->net->n_embd, l->heads.n * l->heads.dim_v);
}

void ebb_bind_qk_norm(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    uint32_t n_q = net->qk_norm == EBB_QK_HEAD ? 1 : l->heads.n, n_k = net->qk_norm == EBB_QK_HEAD ? 1 : l->heads.n_kv;
    uint32_t dim = l->heads.dim_k;

    l->q_norm.is_on = l->k_norm.is_on = true;
    if (net->qk_norm == EBB_QK_EACH) {
        ebb_bind_table(b, &l->q_norm.w, "attn_q_norm", n_q, dim);
        ebb_bind_table(b, &l->k_norm.w, "attn_k_norm", n_k, dim);
    } else {
        ebb_bind_vector(b, &l->q_norm.w, "attn_q_norm", n_q * dim, true);
        ebb_bind_vector(b, &l->k_norm.w, "attn_k_norm", n_k * dim, true);
    }
}

void ebb_bind_dense(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    uint32_t n_ff = l->n_ff;
    ebb_weight *const halves[] = { &l->gate, &l->up };

    if (net->ffn_is_plain) {
        ebb_bind_matrix(b, &l->up, "ffn_up", n_ff, net->n_embd);
    } else if (!ebb_bind_has(b, "ffn_gate") && ebb_bind_row_count(b, "ffn_up") == 2 * (uint64_t)n_ff) {
        l->gate.n_rows = l->up.n_rows = n_ff;
        ebb_bind_fused(b, halves, 2, "ffn_up", net->n_embd);
    } else {
        ebb_bind_matrix(b, &l->gate, "ffn_gate", n_ff, net->n_embd);
        ebb_bind_matrix(b, &l->up, "ffn_up", n_ff, net->n_embd);
        ebb_bind_pair(b, &l->gate, &l->up);
    }
    ebb_bind_matrix(b, &l->down, "ffn_down", net->n_embd, n_ff);
}

void ebb_bind_ffn_matrices(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;

    if (net->n_expert == 0 || !ebb_bind_has(b, "ffn_gate_inp")) {
        ebb_bind_dense(b, l);
        return;
    }
    ebb_bind_router(b, &l->experts);
    ebb_bind_experts(b, &l->experts);
}

void ebb_bind_ffn(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->ffn_norm, "ffn_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

void ebb_bind_plain_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    ebb_bind_ffn(b, l);
}

void ebb_bind_plain(ebb_binder *b, bool rope_is_halves)
{
    ebb_bind_shape(b, rope_is_halves);
    ebb_bind_layers(b, ebb_bind_plain_layer);
}

void ebb_bind_post_norms(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_post_norm, "post_attention_norm", b->net->n_embd);
    ebb_bind_norm(b, &l->ffn_post_norm, "post_ffw_norm", b->net->n_embd);
}

void ebb_bind_shared_expert(ebb_binder *b, ebb_layer *l, uint32_t n_ff)
{
    ebb_net *net = b->net;

    if (ebb_bind_has(b, "ffn_gate_inp_shexp"))
        ebb_bind_matrix(b, &l->experts.shared_gate, "ffn_gate_inp_shexp", 1, net->n_embd);
    ebb_bind_matrix(b, &l->gate, "ffn_gate_shexp", n_ff, net->n_embd);
    ebb_bind_matrix(b, &l->up, "ffn_up_shexp", n_ff, net->n_embd);
    ebb_bind_pair(b, &l->gate, &l->up);
    ebb_bind_matrix(b, &l->down, "ffn_down_shexp", net->n_embd, n_ff);
    if (n_ff > net->n_ff)
        net->n_ff = n_ff;
}
