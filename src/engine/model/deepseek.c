/* DeepSeek MoE (Dai et al. 2024); DeepSeek V2, V3 and R1 (DeepSeek-AI 2024) with latent attention (mla.c);
 * GLM 4.5 (GLM Team 2025).  The first layers are dense; in the others shared experts stand beside
 * those that the router selects. */
#include <math.h>

#include "model/arch.h"

#define MAX_DIM 16384u

/* -- DeepSeek MoE ------------------------------------------------------------------ */

static const ebb_traits deepseek = { .routing = { .is_raw = true, .shares_are_in_file = true, .has_shared = true } };

const ebb_arch ebb_arch_deepseek = { .name = "deepseek", .bind = ebb_bind_traits, .traits = &deepseek };

/* -- GLM 4.5 ------------------------------------------------------------------------- */

static void bind_glm_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    if (ebb_bind_has(b, "attn_q_norm"))
        ebb_bind_qk_norm(b, l);
    ebb_bind_norm(b, &l->ffn_norm, "post_attention_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_glm(ebb_binder *b)
{
    b->routing = (ebb_routing){
        .is_sigmoid = true, .gating_is_in_file = true, .shares_are_in_file = true, .has_choice_bias = true,
        .has_shared = true,
    };
    ebb_bind_shape(b, true);
    ebb_bind_layers(b, bind_glm_layer);
}

static const char *const glm_harmless[] = { ".rope.dimension_sections", NULL };  /* of images; text has one position */

const ebb_arch ebb_arch_glm4moe = { .name = "glm4moe", .bind = bind_glm, .has_mtp = true, .harmless = glm_harmless };

/* -- Latent attention ------------------------------------------------------------------ */

static void bind_latent(ebb_binder *b, ebb_layer *l)
{
    ebb_net *net = b->net;
    ebb_latent *t = &l->latent;
    uint32_t n_rot = net->ropes[0].n_rot, n_q = net->n_head * (net->dim_nope + n_rot);

    if (net->dim_latent_q) {
        ebb_bind_matrix(b, &t->q_a, "attn_q_a", net->dim_latent_q, net->n_embd);
        ebb_bind_norm(b, &t->q_a_norm, "attn_q_a_norm", net->dim_latent_q);
    } else {
        ebb_bind_matrix(b, &l->q, "attn_q", n_q, net->n_embd);
    }
    ebb_bind_matrix(b, &t->kv_a, "attn_kv_a_mqa", net->dim_latent + n_rot, net->n_embd);
    ebb_bind_norm(b, &t->kv_a_norm, "attn_kv_a_norm", net->dim_latent);
    if (net->dim_latent_q)
        ebb_bind_matrix(b, &l->q, "attn_q_b", n_q, net->dim_latent_q);
    if (net->n_head_kv == 1) {
        ebb_bind_stack(b, &t->k_b, "attn_k_b", net->n_head, net->dim_latent, net->dim_nope);
        ebb_bind_stack(b, &t->v_b, "attn_v_b", net->n_head, net->dim_head_v, net->dim_latent);
    } else {
        ebb_bind_matrix(b, &t->kv_b, "attn_kv_b", net->n_head * (net->dim_nope + net->dim_head_v), net->dim_latent);
        ebb_bind_whole(b, &t->kv_b);
    }
    l->rope = EBB_NO_ROPE;                       /* mla.c rotates */
    ebb_bind_matrix(b, &l->o, "attn_output", net->n_embd, net->n_head * net->dim_head_v);
}

static void bind_latent_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    bind_latent(b, l);
    ebb_bind_ffn(b, l);
}

/* Where the file names YaRN's multiplier, the temperature goes to the scores, squared, and none to the angles. */
static void bind_temperature(ebb_binder *b, uint32_t dim_head)
{
    ebb_rope *rope = &b->net->ropes[0];
    double mul = ebb_bind_f64_or(b, ".rope.scaling.yarn_log_multiplier", 0), t = 1;

    if (rope->is_yarn && mul != 0) {
        t = 1 + mul * log(1 / rope->freq_scale);
        rope->magnitude = 1;
    }
    b->net->attn_scale = (float)(t * t / sqrt((double)dim_head));
}

static void bind_v2(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t n_rot, dim_head;

    b->routing = (ebb_routing){
        .is_raw = true, .gating_is_in_file = true, .shares_are_in_file = true, .has_choice_bias = true,
        .has_shared = true,
    };
    ebb_bind_shape(b, false);
    n_rot = net->ropes[0].n_rot;
    dim_head = ebb_bind_u32_or(b, ".attention.key_length_mla", net->dim_k, n_rot + 1, MAX_DIM);
    net->dim_head_v = ebb_bind_u32_or(b, ".attention.value_length_mla", net->dim_v, 1, MAX_DIM);
    net->dim_latent = ebb_bind_u32(b, ".attention.kv_lora_rank", 1, MAX_DIM);
    net->dim_latent_q = ebb_bind_u32_or(b, ".attention.q_lora_rank", 0, 0, MAX_DIM);
    net->dim_nope = dim_head - n_rot;
    if (b->st == EBB_OK && (net->n_head_kv == 1
                            ? net->dim_k != net->dim_latent + n_rot || net->dim_v != net->dim_latent
                            : net->n_head_kv != net->n_head || net->dim_k != dim_head || net->dim_v != net->dim_head_v))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention: keys of %u and values of %u do not fit latents of %u",
                      net->arch->name, net->dim_k, net->dim_v, net->dim_latent);
    (void)ebb_bind_product(b, ".attention.key_length_mla", net->n_head, dim_head, EBB_MAX_WIDTH);
    (void)ebb_bind_product(b, ".attention.kv_lora_rank", net->n_head, net->dim_latent, EBB_MAX_WIDTH);
    (void)ebb_bind_product(b, ".attention.value_length_mla", net->n_head, (uint64_t)net->dim_nope + net->dim_head_v,
                           EBB_MAX_WIDTH);
    bind_temperature(b, dim_head);
    ebb_bind_layers(b, bind_latent_layer);
}

const ebb_arch ebb_arch_deepseek2 = { .name = "deepseek2", .bind = bind_v2, .has_mtp = true };
