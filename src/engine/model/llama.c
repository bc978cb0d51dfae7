/* Llama 2 and 3, Mistral, SmolLM2 and their like (Touvron et al. 2023).
 *
 * Q and K rows are stored permuted, so that pairs to turn stand side by side.
 * Llama 3.1 brings its long-context scaling as rope_freqs.weight. */
#include "model/arch.h"

static ebb_status bind(ebb_binder *b)
{
    ebb_bind_shape(b, false);
    for (b->layer = 0; b->st == EBB_OK && b->layer < b->net->n_layers; b->layer++) {
        ebb_layer *l = &b->net->layers[b->layer];

        ebb_bind_attention(b, l);
        ebb_bind_ffn(b, l);
    }
    ebb_bind_ends(b);
    return b->st;
}

const ebb_arch ebb_arch_llama = { .name = "llama", .bind = bind, .layer = ebb_block_layer };
