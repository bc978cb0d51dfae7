/* The parts of a network that architectures share (bind.h). */
#include <math.h>
#include <stdlib.h>

#include "model/arch.h"

#define MAX_LAYERS  4096u
#define MAX_EXPERTS 4096u        /* of a layer ... */
#define MAX_ALL     (1u << 17)   /* ... and of all; the largest known have 30,000 */

/* -- Sizes --------------------------------------------------------------------- */

static void bind_heads(ebb_binder *b)
{
    ebb_net *net = b->net;

    if (b->st == EBB_OK && !ebb_bind_key(b, ".attention.head_count"))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention.head_count is missing", net->arch->name);
    net->n_head = ebb_bind_u32_most(b, ".attention.head_count", 1, 1, 1u << 16);
    net->n_head_kv = ebb_bind_u32_most(b, ".attention.head_count_kv", net->n_head, 1, net->n_head);
    net->dim_k = ebb_bind_u32_or(b, ".attention.key_length", net->n_embd / net->n_head, 2, 1u << 14);
    net->dim_v = ebb_bind_u32_or(b, ".attention.value_length", net->n_embd / net->n_head, 1, 1u << 14);
    net->attn_scale = (float)(1.0 / sqrt((double)net->dim_k));
    ebb_bind_only(b, ".attention.causal", true);
    ebb_bind_only(b, ".attention.max_alibi_bias", 0);
    ebb_bind_only(b, ".attention.clamp_kqv", 0);
    (void)ebb_bind_product(b, ".attention.key_length", net->n_head, net->dim_k, EBB_MAX_WIDTH);
    (void)ebb_bind_product(b, ".attention.value_length", net->n_head, net->dim_v, EBB_MAX_WIDTH);
}

/* All layers have the heads that the net says. */
static void bind_same_heads(ebb_binder *b)
{
    const ebb_net *net = b->net;

    for (uint32_t i = 0; i < ebb_net_n_kv_layers(net) && b->st == EBB_OK; i++)
        net->layers[i].heads = (ebb_heads){ net->n_head, net->n_head_kv, net->dim_k, net->dim_v };
}

/* What may differ from layer to layer. */
static void bind_layer_shapes(ebb_binder *b)
{
    ebb_net *net = b->net;

    bind_same_heads(b);
    for (uint32_t i = 0; i < ebb_net_n_kv_layers(net) && b->st == EBB_OK; i++) {
        ebb_heads *h = &net->layers[i].heads;

        h->n = ebb_bind_u32_at(b, ".attention.head_count", i, net->n_head, 0, net->n_head);
        h->n_kv = ebb_bind_u32_at(b, ".attention.head_count_kv", i, h->n, 0, net->n_head_kv);
        net->layers[i].n_ff = ebb_bind_u32_at(b, ".feed_forward_length", i, 0, 0, EBB_MAX_WIDTH);
        net->layers[i].kv_layer = i;
        if (b->st == EBB_OK && h->n_kv > 0 && h->n % h->n_kv != 0)
            ebb_bind_fail(b, EBB_FORMAT,
                          "metadata %s.attention: %u heads are not a multiple of %u KV heads in layer %u",
                          net->arch->name, h->n, h->n_kv, i);
    }
}

enum { GATING_SOFTMAX = 1, GATING_SIGMOID, GATING_SOFTMAX_OF_CHOSEN };   /* expert_gating_func */

/* What an architecture does is written in it; some leave it to the file.  Where they do not, a file that says something
 * else is refused: readers of such files do not look, so nobody knows what it was meant to give. */
static void bind_routing(ebb_binder *b)
{
    ebb_net *net = b->net;
    const ebb_routing *how = &b->routing;
    uint32_t gating = how->is_sigmoid ? GATING_SIGMOID : GATING_SOFTMAX;

    net->router_normalizes = !how->is_raw;
    net->router_scale = 1;
    if (how->gating_is_in_file) {                /* old files say 0 for none; likewise the scale */
        uint32_t in_file = ebb_bind_u32_or(b, ".expert_gating_func", 0, 0, GATING_SOFTMAX_OF_CHOSEN);

        gating = in_file ? in_file : gating;
    } else {
        ebb_bind_either(b, ".expert_gating_func", gating, 0);
    }
    net->router_is_sigmoid = gating == GATING_SIGMOID;
    if (how->shares_are_in_file) {
        net->router_normalizes = ebb_bind_bool_or(b, ".expert_weights_norm", !how->is_raw);
        net->router_scale = (float)ebb_bind_f64_or(b, ".expert_weights_scale", 1.0);
        net->router_scale = net->router_scale == 0 ? 1 : net->router_scale;
    } else {
        ebb_bind_only(b, ".expert_weights_norm", !how->is_raw);
        ebb_bind_either(b, ".expert_weights_scale", 1, 0);
    }
    if (gating == GATING_SOFTMAX_OF_CHOSEN)
        net->router_normalizes = true;
}

static void bind_expert_groups(ebb_binder *b)
{
    ebb_net *net = b->net;

    net->n_expert_group = ebb_bind_u32_or(b, ".expert_group_count", 0, 0, 256);
    net->n_expert_group_used = ebb_bind_u32_or(b, ".expert_group_used_count", net->n_expert_group, 0,
                                               net->n_expert_group);
    if (net->n_expert_group > 1 &&
        (net->n_expert % net->n_expert_group != 0 || net->n_expert_group_used == 0 ||
         net->n_expert / net->n_expert_group * net->n_expert_group_used < net->n_expert_used))
        ebb_bind_fail(b, EBB_FORMAT,
                      "metadata %s.expert_group_count: %u groups, %u of them used, do not fit %u experts",
                      net->arch->name, net->n_expert_group, net->n_expert_group_used, net->n_expert);
}

/* Width of the shared expert. */
static void bind_shared_shape(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t n, width;

    if (!b->routing.has_shared) {
        ebb_bind_only(b, ".expert_shared_count", 0);
        ebb_bind_only(b, ".expert_shared_feed_forward_length", 0);
        return;
    }
    n = ebb_bind_u32_or(b, ".expert_shared_count", 1, 0, 1024);
    width = ebb_bind_u32_or(b, ".expert_shared_feed_forward_length", 0, 0, EBB_MAX_WIDTH);
    net->says_shared = width > 0 || ebb_bind_key(b, ".expert_shared_count");
    if (width == 0)
        width = net->n_ff_expert;
    else if (!b->routing.is_shared_multiple)
        n = 1;
    net->n_ff_shared = ebb_bind_product(b, ".expert_shared_count", width, n, EBB_MAX_WIDTH);
}

static void bind_expert_shape(ebb_binder *b)
{
    ebb_net *net = b->net;

    net->n_expert = ebb_bind_u32_or(b, ".expert_count", 0, 0, MAX_EXPERTS);
    (void)ebb_bind_product(b, ".expert_count", ebb_net_n_kv_layers(net), net->n_expert, MAX_ALL);
    net->n_expert_used = ebb_bind_u32_or(b, ".expert_used_count", 0, net->n_expert ? 1 : 0, net->n_expert);
    net->n_ff_expert = ebb_bind_u32_or(b, ".expert_feed_forward_length", net->n_ff, 0, EBB_MAX_WIDTH);
    if (net->n_ff_expert == 0)
        net->n_ff_expert = net->n_ff;
    net->n_dense_layers = ebb_bind_u32_or(b, ".leading_dense_block_count", 0, 0, net->n_layers);
    net->expert_period = ebb_bind_u32_or(b, ".interleave_moe_layer_step", 1, 0, MAX_LAYERS);
    bind_shared_shape(b);
    bind_routing(b);
    bind_expert_groups(b);
}

void ebb_bind_shape(ebb_binder *b, bool rope_is_halves)
{
    ebb_net *net = b->net;
    const char *eps = net->norm_is_layer ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon";
    uint32_t n_blocks = ebb_bind_u32(b, ".block_count", 1, MAX_LAYERS);

    if (net->arch->has_mtp)                      /* the last blocks may be for multi-token prediction */
        net->n_mtp_layers = ebb_bind_u32_or(b, ".nextn_predict_layers", 0, 0, n_blocks - 1);
    net->n_layers = n_blocks - net->n_mtp_layers;
    b->layer = net->n_layers;
    net->has_draft_head = net->n_mtp_layers > 0 && ebb_bind_has(b, "nextn.eh_proj");
    net->n_embd = ebb_bind_u32(b, ".embedding_length", 1, EBB_MAX_WIDTH);
    net->n_ff = ebb_bind_u32_most(b, ".feed_forward_length", 0, 0, EBB_MAX_WIDTH);
    net->n_ctx_train = ebb_bind_u32_or(b, ".context_length", 2048, 1, 1u << 30);
    net->norm_eps = (float)ebb_bind_f64_or(b, eps, 1e-5);
    if (net->norm_eps < 0 || net->norm_eps >= 1)         /* a root of less than zero; or a norm that is none */
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s%s is %g, not within [0, 1)", net->arch->name, eps,
                      (double)net->norm_eps);
    net->embd_scale = net->residual_scale = net->logit_scale = 1.0f;
    b->layer = EBB_NO_LAYER;
    if (b->has_no_attention) {
        ebb_bind_only(b, ".attention.head_count", 0);
        ebb_bind_only(b, ".attention.head_count_kv", 0);
        ebb_bind_only(b, ".feed_forward_length", 0);
    } else {
        bind_heads(b);
        bind_expert_shape(b);
        ebb_bind_rope(b, rope_is_halves);
        if (b->st == EBB_OK && net->n_ff == 0 && net->n_expert == 0)
            ebb_bind_fail(b, EBB_FORMAT, "metadata %s.feed_forward_length is missing", net->arch->name);
    }
    if (b->st != EBB_OK)
        return;
    net->layers = calloc(ebb_net_n_kv_layers(net), sizeof *net->layers);
    if (!net->layers)
        ebb_bind_fail(b, EBB_NOMEM, "no memory for a table of %u layers", net->n_layers);
    if (!b->has_no_attention)
        bind_layer_shapes(b);
}

void ebb_bind_layers(ebb_binder *b, void (*bind)(ebb_binder *b, ebb_layer *l))
{
    for (b->layer = 0; b->st == EBB_OK && b->layer < b->net->n_layers; b->layer++) {
        bind(b, &b->net->layers[b->layer]);
        ebb_bind_check_layer(b, &b->net->layers[b->layer]);
    }
    ebb_bind_embd_and_output(b);
    if (b->st == EBB_OK && b->net->has_draft_head)
        ebb_bind_draft_head(b, bind);
}

bool ebb_bind_is_windowed(ebb_binder *b, uint32_t i, uint32_t period)
{
    static const char key[] = ".attention.sliding_window_pattern";
    const ebb_gguf_kv *kv = ebb_bind_key(b, key);

    if (kv && kv->type == EBB_GGUF_ARRAY)
        return ebb_bind_u32_at(b, key, i, 0, 0, 1) != 0;
    period = ebb_bind_u32_or(b, key, period, 0, 1u << 16);
    return period == 0 || (i + 1) % period != 0;
}

void ebb_bind_windows(ebb_binder *b, uint32_t otherwise, uint32_t period, uint32_t rope)
{
    ebb_net *net = b->net;

    net->window = ebb_bind_u32_or(b, ".attention.sliding_window", otherwise, 0, 1u << 30);
    for (uint32_t i = 0; b->st == EBB_OK && i < net->n_layers; i++) {
        if (!ebb_bind_is_windowed(b, i, period) || net->window == 0)
            continue;
        net->layers[i].window = net->window;
        net->layers[i].rope = rope;
    }
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

/* attn_gate: the heads' outputs are multiplied by its sigmoid. */
static void bind_head_gate(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_matrix(b, &l->head_gate, "attn_gate", l->heads.n * l->heads.dim_v, b->net->n_embd);
    b->net->has_head_gate = true;
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
        if (!(l->gate_cutoff > 0))               /* else all of gate is needed at once */
            ebb_bind_pair(b, &l->gate, &l->up);
    }
    ebb_bind_matrix(b, &l->down, "ffn_down", net->n_embd, n_ff);
}

/* ffn_*_shexp, and its gate if there is one. */
static void bind_shared_expert(ebb_binder *b, ebb_layer *l)
{
    ebb_net *net = b->net;
    uint32_t n_ff = net->says_shared ? net->n_ff_shared /* old files do not say; the tensor then does */
                                     : ebb_bind_product(b, ".expert_shared_count",
                                                        ebb_bind_row_count(b, "ffn_up_shexp"), 1, EBB_MAX_WIDTH);

    if (n_ff == 0)
        return;
    if (ebb_bind_has(b, "ffn_gate_inp_shexp"))
        ebb_bind_matrix(b, &l->experts.shared_gate, "ffn_gate_inp_shexp", 1, net->n_embd);
    if (!net->ffn_is_plain)
        ebb_bind_matrix(b, &l->gate, "ffn_gate_shexp", n_ff, net->n_embd);
    ebb_bind_matrix(b, &l->up, "ffn_up_shexp", n_ff, net->n_embd);
    if (!net->ffn_is_plain)
        ebb_bind_pair(b, &l->gate, &l->up);
    ebb_bind_matrix(b, &l->down, "ffn_down_shexp", net->n_embd, n_ff);
    if (n_ff > net->n_ff)
        net->n_ff = n_ff;
}

/* Whether the layer has experts; keys and tensors must agree. */
static bool has_experts(ebb_binder *b)
{
    const ebb_net *net = b->net;
    bool has_router = ebb_bind_has(b, "ffn_gate_inp"), is_dense = b->layer < net->n_dense_layers;

    if (net->n_expert == 0)
        return false;
    if (is_dense && has_router)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.leading_dense_block_count: %u, but layer %u has experts",
                      net->arch->name, net->n_dense_layers, b->layer);
    if (!is_dense && net->expert_period > 0 && (b->layer + 1) % net->expert_period != 0)
        is_dense = true;
    if (!has_router && !is_dense && ebb_bind_key(b, ".leading_dense_block_count"))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.leading_dense_block_count: %u, but layer %u has no experts",
                      net->arch->name, net->n_dense_layers, b->layer);
    if (has_router != !is_dense && ebb_bind_key(b, ".interleave_moe_layer_step"))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.interleave_moe_layer_step: %u, but layer %u %s", net->arch->name,
                      net->expert_period, b->layer, has_router ? "has experts" : "has none");
    return has_router;
}

void ebb_bind_ffn_matrices(ebb_binder *b, ebb_layer *l)
{
    if (!has_experts(b)) {
        ebb_bind_dense(b, l);
        return;
    }
    ebb_bind_router(b, &l->experts);
    if (b->routing.has_choice_bias && ebb_bind_has_named(b, "exp_probs_b.bias"))
        ebb_bind_named(b, &l->experts.choice_bias, "exp_probs_b.bias", b->net->n_expert);
    ebb_bind_experts(b, &l->experts);
    if (b->routing.has_shared)
        bind_shared_expert(b, l);
    if (b->net->dim_experts)
        ebb_bind_matrix(b, &l->experts.widen, "ffn_latent_up", b->net->n_embd, b->net->dim_experts);
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

void ebb_bind_post_norms(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_post_norm, "post_attention_norm", b->net->n_embd);
    ebb_bind_norm(b, &l->ffn_post_norm, "post_ffw_norm", b->net->n_embd);
}

void ebb_bind_multipliers(ebb_binder *b)
{
    ebb_net *net = b->net;
    double scale = ebb_bind_f64_or(b, ".attention.scale", 0), logits = ebb_bind_f64_or(b, ".logit_scale", 1.0);

    net->embd_scale = (float)ebb_bind_f64_or(b, ".embedding_scale", 1.0);
    net->residual_scale = (float)ebb_bind_f64_or(b, ".residual_scale", 1.0);
    if (scale != 0)
        net->attn_scale = (float)scale;
    if (!(logits > 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.logit_scale: not above 0", net->arch->name);
    net->logit_scale = (float)(1.0 / logits);
}

/* -- Networks of llama's kind ------------------------------------------------------ */

static void bind_behind(ebb_binder *b, ebb_norm *norm, const char *what)
{
    const ebb_traits *t = b->net->arch->traits;

    norm->eps = t->post_norm_eps;
    if (t->post_norms_are_bare)
        ebb_bind_named_norm(b, norm, what, b->net->n_embd, 1);
    else
        ebb_bind_norm(b, norm, what, b->net->n_embd);
}

static void bind_traits_layer(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    const ebb_traits *t = net->arch->traits;

    if (t->norms != EBB_NORMS_BEHIND)
        ebb_bind_norm(b, &l->attn_norm, "attn_norm", net->n_embd);
    ebb_bind_qkv(b, l);
    if (t->has_qk_norm)
        ebb_bind_qk_norm(b, l);
    if (t->has_head_gate)
        bind_head_gate(b, l);
    ebb_bind_output(b, l);
    if (t->norms != EBB_NORMS_BEFORE)
        bind_behind(b, &l->attn_post_norm, "post_attention_norm");
    if (t->norms != EBB_NORMS_BEHIND)
        ebb_bind_norm(b, &l->ffn_norm, t->ffn_norm ? t->ffn_norm : "ffn_norm", net->n_embd);
    ebb_bind_ffn_matrices(b, l);
    if (t->norms != EBB_NORMS_BEFORE)
        bind_behind(b, &l->ffn_post_norm, "post_ffw_norm");
    if (t->no_rope_period && (b->layer + 1) % t->no_rope_period == 0)
        l->rope = EBB_NO_ROPE;
}

void ebb_bind_traits(ebb_binder *b)
{
    ebb_net *net = b->net;
    const ebb_traits *t = net->arch->traits;

    b->routing = t->routing;
    b->has_yarn_betas = t->has_yarn_betas;
    b->norms_have_bias = t->norms_have_bias;
    net->ffn_gate = t->act;
    net->ffn_is_plain = t->ffn_is_plain;
    net->qk_norm = t->qk_norm;
    net->qk_norm_is_late = t->qk_norm_is_late;
    ebb_bind_shape(b, t->rope_is_halves);
    if (t->has_multipliers)
        ebb_bind_multipliers(b);
    if (t->more && b->st == EBB_OK)
        t->more(b);
    ebb_bind_layers(b, bind_traits_layer);
}
