/* Which tensors there are, of what shapes (tiny_writer.h). */
#include "support/tiny_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ebb_test.h"

void tiny_add_tensor(tiny_writer *w, const char *name, ebb_type type, uint32_t n_k, uint32_t n_rows, float mean,
                     float dev)
{
    tiny_tensor *t = &w->tensors[w->n_tensors++];

    assert_true(w->n_tensors <= MAX_TENSORS);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->type = type;
    t->dims[0] = n_k;
    t->dims[1] = n_rows;
    t->dims[2] = 1;
    t->n_dims = n_rows ? 2 : 1;
    t->mean = mean;
    t->dev = dev;
}

static void matrix(tiny_writer *w, uint32_t layer, const char *what, ebb_type type, uint32_t n_k, uint32_t n_rows)
{
    char name[64];

    snprintf(name, sizeof name, "blk.%u.%.40s.weight", layer, what);
    tiny_add_tensor(w, name, type, n_k, n_rows, 0, 1 / sqrtf((float)n_k));
    if (strstr(what, "attn_output") || strstr(what, "ffn_down") || strcmp(what, "ssm_out") == 0)
        w->tensors[w->n_tensors - 1].dev *= w->added;
}

static void vector(tiny_writer *w, uint32_t layer, const char *what, uint32_t n, float mean)
{
    char name[64];

    snprintf(name, sizeof name, "blk.%u.%.40s", layer, what);
    tiny_add_tensor(w, name, EBB_TYPE_F32, n, 0, mean, mean != 0 ? 0.1f : 0.3f);
}

static void norm(tiny_writer *w, const ebb_tiny_opts *o, uint32_t layer, const char *what)
{
    char name[64];

    snprintf(name, sizeof name, "%s.weight", what);
    vector(w, layer, name, o->n_embd, 1);
    if (tiny_has(o, NORM_BIAS)) {
        snprintf(name, sizeof name, "%s.bias", what);
        vector(w, layer, name, o->n_embd, 0);
    }
}

/* A matrix, and its bias if it has one. */
static void linear(tiny_writer *w, const ebb_tiny_opts *o, uint32_t layer, const char *what, uint32_t n_k,
                   uint32_t n_rows, bool has_bias)
{
    char name[64];

    matrix(w, layer, what, o->type, n_k, n_rows);
    snprintf(name, sizeof name, "%s.bias", what);
    if (has_bias)
        vector(w, layer, name, n_rows, 0);
}

static void attention_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t q = o->n_head * o->head_dim, kv = o->n_head_kv * o->head_dim;

    if (tiny_has(o, FUSED_QKV)) {
        linear(w, o, i, "attn_qkv", o->n_embd, q + 2 * kv, tiny_has(o, QKV_BIAS));
    } else {
        linear(w, o, i, "attn_q", o->n_embd, tiny_has(o, HYBRID) ? 2 * q : q, tiny_has(o, QKV_BIAS));
        linear(w, o, i, "attn_k", o->n_embd, kv, tiny_has(o, QKV_BIAS));
        linear(w, o, i, "attn_v", o->n_embd, kv, tiny_has(o, QKV_BIAS));
    }
    if (tiny_has(o, QK_NORM) || tiny_has(o, QK_WHOLE)) {
        vector(w, i, "attn_q_norm.weight", tiny_has(o, QK_WHOLE) ? q : o->head_dim, 2);
        vector(w, i, "attn_k_norm.weight", tiny_has(o, QK_WHOLE) ? kv : o->head_dim, 1);
    }
    if (tiny_has(o, SINKS))
        vector(w, i, "attn_sinks.weight", o->n_head, 0);
    if (tiny_has(o, HEAD_GATE))
        matrix(w, i, "attn_gate", o->type, o->n_embd, q);
    linear(w, o, i, "attn_output", q, o->n_embd, tiny_has(o, BIAS));
}

/* The matrices of all heads, one behind the other in a tensor of three dimensions. */
static void head_matrix(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i, const char *what, uint32_t n_k,
                        uint32_t n_rows)
{
    matrix(w, i, what, o->type, n_k, n_rows);
    w->tensors[w->n_tensors - 1].dims[2] = o->n_head;
    w->tensors[w->n_tensors - 1].n_dims = 3;
}

static void latent_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t q = o->n_head * (DIM_NOPE + DIM_TURNED);

    if (o->is_split) {
        matrix(w, i, "attn_q", o->type, o->n_embd, q);
    } else {
        matrix(w, i, "attn_q_a", o->type, o->n_embd, DIM_LATENT_Q);
        vector(w, i, "attn_q_a_norm.weight", DIM_LATENT_Q, 1);
        matrix(w, i, "attn_q_b", o->type, DIM_LATENT_Q, q);
    }
    matrix(w, i, "attn_kv_a_mqa", o->type, o->n_embd, DIM_LATENT + DIM_TURNED);
    vector(w, i, "attn_kv_a_norm.weight", DIM_LATENT, 1);
    if (o->is_split) {
        matrix(w, i, "attn_kv_b", o->type, DIM_LATENT, o->n_head * (DIM_NOPE + DIM_HEAD_V));
    } else {
        head_matrix(w, o, i, "attn_k_b", DIM_NOPE, DIM_LATENT);
        head_matrix(w, o, i, "attn_v_b", DIM_LATENT, DIM_HEAD_V);
    }
    matrix(w, i, "attn_output", o->type, o->n_head * DIM_HEAD_V, o->n_embd);
}

static void delta_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t inner = DELTA_V * DELTA_DIM, channels = 2 * DELTA_K * DELTA_DIM + inner;

    matrix(w, i, "attn_qkv", o->type, o->n_embd, channels);
    matrix(w, i, "attn_gate", o->type, o->n_embd, inner);
    matrix(w, i, "ssm_conv1d", EBB_TYPE_F32, DELTA_CONV, channels);
    vector(w, i, "ssm_dt.bias", DELTA_V, -3);
    vector(w, i, "ssm_a", DELTA_V, -5);
    if (tiny_has(o, GROUPED)) {
        matrix(w, i, "ssm_ba", o->type, o->n_embd, 2 * DELTA_V);
    } else {
        matrix(w, i, "ssm_alpha", o->type, o->n_embd, DELTA_V);
        matrix(w, i, "ssm_beta", o->type, o->n_embd, DELTA_V);
    }
    vector(w, i, "ssm_norm.weight", DELTA_DIM, 1);
    matrix(w, i, "ssm_out", o->type, inner, o->n_embd);
}

/* The experts' matrices of one kind: one tensor, or as old files have them. */
static void single_expert(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i, const char *what, uint32_t e,
                          uint32_t n_k, uint32_t n_rows)
{
    char name[64];

    snprintf(name, sizeof name, "%s.%u", what, e);
    matrix(w, i, name, o->is_mixed && e % 2 ? EBB_TYPE_F16 : o->type, n_k, n_rows);
}

static void expert_matrix(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i, const char *what, uint32_t n_k,
                          uint32_t n_rows)
{
    char name[64];

    if (o->is_split && !tiny_has(o, LATENT)) {
        for (uint32_t e = 0; e < o->n_expert; e++)
            single_expert(w, o, i, what, e, n_k, n_rows);
        return;
    }
    snprintf(name, sizeof name, "%s_exps", what);
    matrix(w, i, name, o->type, n_k, n_rows);
    w->tensors[w->n_tensors - 1].dims[2] = o->n_expert;
    w->tensors[w->n_tensors - 1].n_dims = 3;
    snprintf(name, sizeof name, "blk.%u.%.40s_exps.bias", i, what);
    if (tiny_has(o, SINKS))
        tiny_add_tensor(w, name, EBB_TYPE_F32, n_rows, o->n_expert, 0, 0.3f);
}

static void gates_and_ups(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    if (o->is_joined && !o->is_split) {
        expert_matrix(w, o, i, "ffn_gate_up", o->n_embd, 2 * o->n_ff);
        return;
    }
    for (uint32_t e = 0; o->is_joined && e < o->n_expert; e++) {
        single_expert(w, o, i, "ffn_gate", e, o->n_embd, o->n_ff);
        single_expert(w, o, i, "ffn_up", e, o->n_embd, o->n_ff);
    }
    if (!o->is_joined) {
        expert_matrix(w, o, i, "ffn_gate", o->n_embd, o->n_ff);
        expert_matrix(w, o, i, "ffn_up", o->n_embd, o->n_ff);
    }
}

static void ffn_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    bool is_mixture = o->n_expert && !(tiny_has(o, ONE_FOR_ALL) && i == 0);

    if (is_mixture) {
        matrix(w, i, "ffn_gate_inp", EBB_TYPE_F32, o->n_embd, o->n_expert);
        if (tiny_has(o, SINKS))
            vector(w, i, "ffn_gate_inp.bias", o->n_expert, 0);
        gates_and_ups(w, o, i);
        expert_matrix(w, o, i, "ffn_down", o->n_ff, o->n_embd);
    }
    if (tiny_has(o, SHARED))
        vector(w, i, "ffn_gate_inp_shexp.weight", o->n_embd, 0);
    if (is_mixture && tiny_has(o, CHOICE_BIAS | SOFT_BIAS))
        vector(w, i, "exp_probs_b.bias", o->n_expert, 0);
    if (is_mixture && tiny_has(o, SHARED | ONE_FOR_ALL)) {
        matrix(w, i, "ffn_gate_shexp", o->type, o->n_embd, o->n_ff);
        matrix(w, i, "ffn_up_shexp", o->type, o->n_embd, o->n_ff);
        matrix(w, i, "ffn_down_shexp", o->type, o->n_ff, o->n_embd);
    }
    if (is_mixture)
        return;
    if (!tiny_has(o, FUSED_FFN) && !tiny_has(o, PLAIN_FFN))
        matrix(w, i, "ffn_gate", o->type, o->n_embd, o->n_ff);
    linear(w, o, i, "ffn_up", o->n_embd, tiny_has(o, FUSED_FFN) ? 2 * o->n_ff : o->n_ff, tiny_has(o, BIAS));
    linear(w, o, i, "ffn_down", o->n_ff, o->n_embd, tiny_has(o, BIAS));
}

/* -- Gemma 4 (tiny_archs.c says what is special) -- */

static void gemma4_attention(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t dim = i % 2 ? 2 * o->head_dim : o->head_dim, kv = tiny_gemma4_n_kv(o, i) * dim;

    matrix(w, i, "attn_q", o->type, o->n_embd, o->n_head * dim);
    vector(w, i, "attn_q_norm.weight", dim, 0.5f);
    if (!tiny_gemma4_is_shared(o, i)) {
        matrix(w, i, "attn_k", o->type, o->n_embd, kv);
        vector(w, i, "attn_k_norm.weight", dim, 1);
        if (i % 2 == 0)
            matrix(w, i, "attn_v", o->type, o->n_embd, kv);
    }
    matrix(w, i, "attn_output", o->type, o->n_head * dim, o->n_embd);
}

static void gemma4_ffn(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    static const char *const norms[] = { "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2" };
    uint32_t n_ff = tiny_gemma4_is_shared(o, i) ? 2 * o->n_ff : o->n_ff;

    matrix(w, i, "ffn_gate", o->type, o->n_embd, n_ff);
    matrix(w, i, "ffn_up", o->type, o->n_embd, n_ff);
    matrix(w, i, "ffn_down", o->type, n_ff, o->n_embd);
    matrix(w, i, "ffn_gate_inp", EBB_TYPE_F32, o->n_embd, o->n_expert);
    w->tensors[w->n_tensors - 1].dev = 2;        /* what it sees is divided by sqrt(E) */
    vector(w, i, "ffn_gate_inp.scale", o->n_embd, 1);
    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
        norm(w, o, i, norms[k]);
    gates_and_ups(w, o, i);
    expert_matrix(w, o, i, "ffn_down", o->n_ff, o->n_embd);
    vector(w, i, "ffn_down_exps.scale", o->n_expert, 1);
}

static void gemma4_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    static const char *const norms[] = { "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm" };

    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
        norm(w, o, i, norms[k]);
    gemma4_attention(w, o, i);
    gemma4_ffn(w, o, i);
    matrix(w, i, "inp_gate", o->type, o->n_embd, o->n_embd);
    matrix(w, i, "proj", o->type, o->n_embd, o->n_embd);
    vector(w, i, "layer_output_scale.weight", 1, 0.8f);
}

static void gemma4_ends(tiny_writer *w, const ebb_tiny_opts *o)
{
    uint32_t width = o->n_embd * o->n_layers;

    tiny_add_tensor(w, "rope_freqs.weight", EBB_TYPE_F32, o->head_dim, 0, 2, 0.3f);
    tiny_add_tensor(w, "per_layer_token_embd.weight", o->type, width, EBB_TINY_VOCAB, 0, 1 / sqrtf((float)o->n_embd));
    tiny_add_tensor(w, "per_layer_model_proj.weight", EBB_TYPE_BF16, o->n_embd, width, 0, 1);
    tiny_add_tensor(w, "per_layer_proj_norm.weight", EBB_TYPE_F32, o->n_embd, 0, 1, 0.1f);
}

/* -- Gemma 3n -- */

static void gemma3n_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    static const char *const norms[] = {
        "altup_router_norm", "laurel_post_norm", "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm",
        "post_norm", "altup_correct_scale",
    };

    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
        norm(w, o, i, norms[k]);
    matrix(w, i, "altup_router", EBB_TYPE_F32, o->n_embd, N_STREAMS);
    w->tensors[w->n_tensors - 1].dev = 4;        /* what it gives is divided by E */
    matrix(w, i, "altup_predict_coef", EBB_TYPE_F32, N_STREAMS, N_STREAMS * N_STREAMS);
    matrix(w, i, "altup_correct_coef", EBB_TYPE_F32, N_STREAMS, N_STREAMS);
    matrix(w, i, "laurel_l", o->type, o->n_embd, LAUREL_RANK);
    matrix(w, i, "laurel_r", o->type, LAUREL_RANK, o->n_embd);
    matrix(w, i, "attn_q", o->type, o->n_embd, o->n_head * o->head_dim);
    vector(w, i, "attn_q_norm.weight", o->head_dim, 0.5f);
    /* in all layers, as converters write them */
    matrix(w, i, "attn_k", o->type, o->n_embd, o->n_head_kv * o->head_dim);
    vector(w, i, "attn_k_norm.weight", o->head_dim, 1);
    matrix(w, i, "attn_v", o->type, o->n_embd, o->n_head_kv * o->head_dim);
    matrix(w, i, "attn_output", o->type, o->n_head * o->head_dim, o->n_embd);
    matrix(w, i, "ffn_gate", o->type, o->n_embd, o->n_ff);
    matrix(w, i, "ffn_up", o->type, o->n_embd, o->n_ff);
    matrix(w, i, "ffn_down", o->type, o->n_ff, o->n_embd);
    matrix(w, i, "inp_gate", o->type, o->n_embd, DIM_LAYER_INPUT);
    matrix(w, i, "proj", o->type, DIM_LAYER_INPUT, o->n_embd);
}

static void gemma3n_ends(tiny_writer *w, const ebb_tiny_opts *o)
{
    static const char *const both[] = { "altup_proj.weight", "altup_unembd_proj.weight" };
    uint32_t width = DIM_LAYER_INPUT * o->n_layers;

    tiny_add_tensor(w, "per_layer_token_embd.weight", o->type, width, EBB_TINY_VOCAB, 0, 1 / sqrtf(DIM_LAYER_INPUT));
    tiny_add_tensor(w, "per_layer_model_proj.weight", o->type, o->n_embd, width, 0, 1);
    tiny_add_tensor(w, "per_layer_proj_norm.weight", EBB_TYPE_F32, DIM_LAYER_INPUT, 0, 1, 0.1f);
    for (size_t k = 0; k < 2; k++) {
        tiny_add_tensor(w, both[k], o->type, o->n_embd, o->n_embd, 0, 1 / sqrtf((float)o->n_embd));
        w->tensors[w->n_tensors - 1].dims[2] = N_STREAMS - 1;
        w->tensors[w->n_tensors - 1].n_dims = 3;
    }
}

/* -- Recurrent layers -- */

static void short_conv_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    matrix(w, i, "shortconv.in_proj", o->type, o->n_embd, 3 * o->n_embd);
    matrix(w, i, "shortconv.conv", EBB_TYPE_F32, SHORT_CONV, o->n_embd);
    matrix(w, i, "shortconv.out_proj", o->type, o->n_embd, o->n_embd);
}

/* A vector that the file has as a matrix of one column; [n_groups][n / n_groups]. */
static void column(tiny_writer *w, uint32_t i, const char *what, uint32_t n, uint32_t n_groups, float mean)
{
    vector(w, i, what, n / n_groups, mean);
    w->tensors[w->n_tensors - 1].dims[1] = n_groups;
    w->tensors[w->n_tensors - 1].n_dims = 2;
}

static void mamba2_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t channels = MAMBA_INNER + 2 * MAMBA_GROUPS * MAMBA_STATE;

    matrix(w, i, "ssm_in", o->type, o->n_embd, MAMBA_INNER + channels + MAMBA_HEADS);
    matrix(w, i, "ssm_conv1d", EBB_TYPE_F32, MAMBA_CONV, channels);
    vector(w, i, "ssm_conv1d.bias", channels, 0);
    vector(w, i, "ssm_dt.bias", MAMBA_HEADS, -1);
    column(w, i, "ssm_a", MAMBA_HEADS, MAMBA_HEADS, -1);
    column(w, i, "ssm_d", MAMBA_HEADS, MAMBA_HEADS, 1);
    if (strcmp(o->arch, "falcon-h1") != 0)       /* it need not be there */
        column(w, i, "ssm_norm.weight", MAMBA_INNER, MAMBA_GROUPS, 1);
    matrix(w, i, "ssm_out", o->type, MAMBA_INNER, o->n_embd);
}

static void mamba_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    matrix(w, i, "ssm_in", o->type, o->n_embd, 2 * MAMBA_INNER);
    matrix(w, i, "ssm_conv1d", EBB_TYPE_F32, MAMBA_CONV, MAMBA_INNER);
    vector(w, i, "ssm_conv1d.bias", MAMBA_INNER, 0);
    matrix(w, i, "ssm_x", o->type, MAMBA_INNER, MAMBA_RANK + 2 * MAMBA_STATE);
    if (!tiny_is_bare(o)) {
        vector(w, i, "ssm_dt_norm.weight", MAMBA_RANK, 1);
        vector(w, i, "ssm_b_norm.weight", MAMBA_STATE, 1);
        vector(w, i, "ssm_c_norm.weight", MAMBA_STATE, 1);
    }
    matrix(w, i, "ssm_dt", o->type, MAMBA_RANK, MAMBA_INNER);
    vector(w, i, "ssm_dt.bias", MAMBA_INNER, -1);
    column(w, i, "ssm_a", MAMBA_INNER * MAMBA_STATE, MAMBA_INNER, -1);
    vector(w, i, "ssm_d", MAMBA_INNER, 1);
    matrix(w, i, "ssm_out", o->type, MAMBA_INNER, o->n_embd);
}

/* Relu^2, experts in a space of 32, and one for all tokens. */
static void nemotron_ffn(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    if (o->n_expert) {
        matrix(w, i, "ffn_gate_inp", EBB_TYPE_F32, o->n_embd, o->n_expert);
        vector(w, i, "exp_probs_b.bias", o->n_expert, 0);
        matrix(w, i, "ffn_latent_down", o->type, o->n_embd, 32);
        expert_matrix(w, o, i, "ffn_up", 32, o->n_ff);
        expert_matrix(w, o, i, "ffn_down", o->n_ff, 32);
        matrix(w, i, "ffn_latent_up", o->type, 32, o->n_embd);
    }
    matrix(w, i, o->n_expert ? "ffn_up_shexp" : "ffn_up", o->type, o->n_embd, o->n_ff);
    matrix(w, i, o->n_expert ? "ffn_down_shexp" : "ffn_down", o->type, o->n_ff, o->n_embd);
}

static void recurrent_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    char kind = tiny_kind_of(o, i);

    norm(w, o, i, "attn_norm");
    if (kind == 'c')
        short_conv_tensors(w, o, i);
    if (kind == '2' || kind == 'b')
        mamba2_tensors(w, o, i);
    if (kind == '1')
        mamba_tensors(w, o, i);
    if (tiny_has_heads(o, i))
        attention_tensors(w, o, i);
    if (kind == 'F')
        nemotron_ffn(w, o, i);
    if (tiny_is_single(o))
        return;
    if (kind == 'b')                             /* without ".weight" */
        vector(w, i, "ffn_norm", o->n_embd, 1);
    else
        norm(w, o, i, "ffn_norm");
    ffn_tensors(w, o, i);
}

void tiny_layer_tensors(tiny_writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    if (tiny_has(o, GEMMA3N)) {
        gemma3n_tensors(w, o, i);
        return;
    }
    if (tiny_is_recurrent(o)) {
        recurrent_tensors(w, o, i);
        return;
    }
    if (tiny_has(o, GEMMA4)) {
        gemma4_tensors(w, o, i);
        return;
    }
    if (!tiny_has(o, NO_PRE_NORMS))
        norm(w, o, i, "attn_norm");
    if (tiny_has(o, LATENT))
        latent_tensors(w, o, i);
    else if (tiny_has(o, HYBRID) && (i + 1) % 4 && i < o->n_layers)
        delta_tensors(w, o, i);
    else
        attention_tensors(w, o, i);
    if (tiny_has(o, BARE)) {
        vector(w, i, "post_attention_norm", o->n_embd, 1);
        vector(w, i, "post_ffw_norm", o->n_embd, 1);
    } else if (tiny_has(o, POST_NORMS)) {
        norm(w, o, i, "post_attention_norm");
        norm(w, o, i, "post_ffw_norm");
    }
    if (!tiny_has(o, NO_PRE_NORMS) && !tiny_has(o, PARALLEL))
        norm(w, o, i, tiny_has(o, POST_IS_FFN) ? "post_attention_norm" : "ffn_norm");
    ffn_tensors(w, o, i);
}

void tiny_end_tensors(tiny_writer *w, const ebb_tiny_opts *o)
{
    if (tiny_has(o, GEMMA4))
        gemma4_ends(w, o);
    if (tiny_has(o, GEMMA3N))
        gemma3n_ends(w, o);
    if (tiny_has(o, POSITIONS))
        tiny_add_tensor(w, "position_embd.weight", EBB_TYPE_F32, o->n_embd, o->n_ctx, 0, 0.5f);
    if (tiny_has(o, LONGROPE)) {
        tiny_add_tensor(w, "rope_factors_long.weight", EBB_TYPE_F32, tiny_n_rot(o) / 2, 0, 8, 1);
        tiny_add_tensor(w, "rope_factors_short.weight", EBB_TYPE_F32, tiny_n_rot(o) / 2, 0, 2, 0.3f);
    }
    tiny_add_tensor(w, tiny_is_recurrent(o) && tiny_kind_of(o, 0) == 'c' ? "token_embd_norm.weight"
                                                                         : "output_norm.weight",
                    EBB_TYPE_F32, o->n_embd, 0, 1, 0.1f);
    if (tiny_has(o, NORM_BIAS))
        tiny_add_tensor(w, "output_norm.bias", EBB_TYPE_F32, o->n_embd, 0, 0, 0.3f);
    if (!o->is_tied)
        tiny_add_tensor(w, "output.weight", o->type, o->n_embd, EBB_TINY_VOCAB, 0, 1 / sqrtf((float)o->n_embd));
    if (tiny_has(o, OUTPUT_BIAS))
        tiny_add_tensor(w, "output.bias", EBB_TYPE_F32, EBB_TINY_VOCAB, 0, 0, 0.3f);
}

void tiny_draft_head_tensors(tiny_writer *w, const ebb_tiny_opts *o)
{
    norm(w, o, o->n_layers, "nextn.enorm");
    norm(w, o, o->n_layers, "nextn.hnorm");
    norm(w, o, o->n_layers, "nextn.shared_head_norm");
    matrix(w, o->n_layers, "nextn.eh_proj", o->type, 2 * o->n_embd, o->n_embd);
    w->tensors[w->n_tensors - 1].is_unit = true;
    tiny_layer_tensors(w, o, o->n_layers);
}
