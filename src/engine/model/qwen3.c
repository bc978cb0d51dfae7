/* Qwen 3 (Yang et al. 2025): heads of their own width, each normed before it is turned. */
#include "model/arch.h"

static ebb_status bind(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    for (b->layer = 0; b->st == EBB_OK && b->layer < b->net->n_layers; b->layer++) {
        ebb_layer *l = &b->net->layers[b->layer];

        ebb_bind_attention(b, l);
        ebb_bind_head_norms(b, l);
        ebb_bind_ffn(b, l);
    }
    ebb_bind_ends(b);
    return b->st;
}

const ebb_arch ebb_arch_qwen3 = { .name = "qwen3", .bind = bind, .layer = ebb_block_layer };
