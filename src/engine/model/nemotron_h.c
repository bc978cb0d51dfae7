/* Nemotron H and Nemotron 3 (NVIDIA 2025): one thing per layer, all behind a norm of the same name.  A layer without KV
 * heads and feed-forward is Mamba 2, one with KV heads attention without RoPE; the others are a feed-forward
 * of relu^2, or experts, whose input and output may be projected to a narrower latent space. */
#include "model/arch.h"

static void bind_nemotron_layer(ebb_binder *b, ebb_layer *l)
{
    if (l->n_ff > 0) {
        ebb_bind_norm(b, &l->ffn_norm, "attn_norm", b->net->n_embd);
        ebb_bind_ffn_matrices(b, l);
    } else if (l->heads.n_kv > 0) {
        ebb_bind_attention(b, l);
    } else {
        ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
        ebb_bind_mamba2(b, l);
    }
    l->rope = EBB_NO_ROPE;
}

static void bind_nemotron(ebb_binder *b)
{
    ebb_net *net = b->net;

    b->routing = (ebb_routing){
        .is_sigmoid = true, .shares_are_in_file = true, .has_choice_bias = true, .has_shared = true,
    };
    net->ffn_gate = EBB_GATE_RELU2;
    net->ffn_is_plain = true;
    ebb_bind_shape(b, true);
    net->dim_experts = ebb_bind_u32_or(b, ".moe_latent_size", 0, 0, net->n_embd);
    ebb_bind_mamba2_shape(b);
    ebb_bind_layers(b, bind_nemotron_layer);
}

const ebb_arch ebb_arch_nemotron_h = { .name = "nemotron_h", .bind = bind_nemotron };
const ebb_arch ebb_arch_nemotron_h_moe = { .name = "nemotron_h_moe", .bind = bind_nemotron };
