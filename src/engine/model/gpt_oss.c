/* gpt-oss (OpenAI 2025): experts with a clamped gate and biases, a sink beside the scores of each
 * head (Xiao et al. 2023), every other layer local, YaRN. */
#include "model/arch.h"

static void bind_gpt_oss_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_net *net = b->net;

    ebb_bind_attention(b, l);
    ebb_bind_vector(b, &l->sinks, "attn_sinks", net->n_head, true);
    ebb_bind_norm(b, &l->ffn_norm, "post_attention_norm", net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_gpt_oss(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    b->net->ffn_gate = EBB_GATE_CLAMPED;
    ebb_bind_windows(b, 128, 2, 0);
    ebb_bind_layers(b, bind_gpt_oss_layer);
}

const ebb_arch ebb_arch_gpt_oss = { .name = "gpt-oss", .bind = bind_gpt_oss };
