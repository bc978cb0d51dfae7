/* Phi 3.5 mini and Phi 4 mini (Abdin et al. 2024): q, k and v in one tensor, gate
 * and up in another; longrope; Phi 4 turns only a part of each head. */
#include "model/arch.h"

static ebb_status bind(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t window;

    ebb_bind_shape(b, true);
    window = ebb_bind_u32_or(b, ".attention.sliding_window", 0, 0, UINT32_MAX);
    for (b->layer = 0; b->st == EBB_OK && b->layer < net->n_layers; b->layer++) {
        ebb_layer *l = &net->layers[b->layer];
        ebb_weight *const qkv[] = { &l->q, &l->k, &l->v }, *const gate_up[] = { &l->gate, &l->up };
        const uint32_t qkv_rows[] = {
            net->n_head * net->dim_k, net->n_head_kv * net->dim_k, net->n_head_kv * net->dim_v,
        };
        const uint32_t ff_rows[] = { net->n_ff, net->n_ff };

        l->window = window;
        ebb_bind_vector(b, &l->attn_norm, "attn_norm", net->n_embd, true);
        ebb_bind_fused(b, qkv, qkv_rows, 3, "attn_qkv", net->n_embd);
        ebb_bind_matrix(b, &l->o, "attn_output", net->n_embd, net->n_head * net->dim_v);
        ebb_bind_vector(b, &l->ffn_norm, "ffn_norm", net->n_embd, true);
        ebb_bind_fused(b, gate_up, ff_rows, 2, "ffn_up", net->n_embd);
        ebb_bind_matrix(b, &l->down, "ffn_down", net->n_embd, net->n_ff);
    }
    ebb_bind_ends(b);
    return b->st;
}

const ebb_arch ebb_arch_phi3 = { .name = "phi3", .bind = bind, .layer = ebb_block_layer };
