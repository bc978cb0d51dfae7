/* Qwen 2 and 2.5 (Yang et al. 2024): biases on q, k and v, pairs half a head apart. */
#include "model/arch.h"

static ebb_status bind(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    for (b->layer = 0; b->st == EBB_OK && b->layer < b->net->n_layers; b->layer++) {
        ebb_layer *l = &b->net->layers[b->layer];

        ebb_bind_attention(b, l);
        ebb_bind_ffn(b, l);
    }
    ebb_bind_ends(b);
    return b->st;
}

const ebb_arch ebb_arch_qwen2 = { .name = "qwen2", .bind = bind, .layer = ebb_block_layer };
