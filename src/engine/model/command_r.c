/* Command R (Cohere 2024) and R7B (cohere2): LayerNorm without bias, attention and feed-forward see the
 * same x, logits are scaled.  R+ norms each head.  R7B's layers have a sliding window but
 * for every fourth, which has full attention without RoPE. */
#include "model/arch.h"

static void bind_command_r_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    if (ebb_bind_has(b, "attn_q_norm"))
        ebb_bind_qk_norm(b, l);
    ebb_bind_norm(b, &l->ffn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_command_r_shape(ebb_binder *b)
{
    b->net->norm_is_layer = b->net->is_parallel = true;
    b->net->qk_norm = EBB_QK_EACH;
    ebb_bind_shape(b, false);
    b->net->logit_scale = (float)ebb_bind_f64_or(b, ".logit_scale", 1.0);
}

static void bind_command_r(ebb_binder *b)
{
    bind_command_r_shape(b);
    ebb_bind_layers(b, bind_command_r_layer);
}

static void bind_cohere2(ebb_binder *b)
{
    bind_command_r_shape(b);
    for (uint32_t i = 0; b->st == EBB_OK && i < b->net->n_layers; i++)
        b->net->layers[i].rope = EBB_NO_ROPE;
    ebb_bind_windows(b, 4096, 4, 0);
    ebb_bind_layers(b, bind_command_r_layer);
}

const ebb_arch ebb_arch_command_r = { .name = "command-r", .bind = bind_command_r };
const ebb_arch ebb_arch_cohere2 = { .name = "cohere2", .bind = bind_cohere2 };
