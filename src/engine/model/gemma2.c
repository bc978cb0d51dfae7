/* Gemma 2 (Gemma Team 2024): every other layer sees a window; scores and logits
 * are capped; what a block adds is normed once more.  Norm weights in the file
 * have the 1 added already. */
#include <math.h>

#include "model/arch.h"

#define LAYERS_27B 46u           /* the one size whose queries are scaled by E / H instead of D */

static ebb_status bind(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t window;

    ebb_bind_shape(b, true);
    window = ebb_bind_u32_or(b, ".attention.sliding_window", 4096, 0, UINT32_MAX);
    net->attn_softcap = (float)ebb_bind_f64_or(b, ".attn_logit_softcapping", 50.0);
    net->logit_softcap = (float)ebb_bind_f64_or(b, ".final_logit_softcapping", 30.0);
    net->embd_scale = sqrtf((float)net->n_embd);
    net->ffn_gate = EBB_GATE_GELU;
    if (net->n_layers == LAYERS_27B)
        net->attn_scale = 1 / sqrtf((float)(net->n_embd / net->n_head));
    for (b->layer = 0; b->st == EBB_OK && b->layer < net->n_layers; b->layer++) {
        ebb_layer *l = &net->layers[b->layer];

        l->window = b->layer % 2 == 0 ? window : 0;
        ebb_bind_attention(b, l);
        ebb_bind_ffn(b, l);
        ebb_bind_post_norms(b, l);
    }
    ebb_bind_ends(b);
    return b->st;
}

const ebb_arch ebb_arch_gemma2 = { .name = "gemma2", .bind = bind, .layer = ebb_block_layer };
