/* Gemma 3 (Gemma Team 2025): five layers of six see a window and turn by a base
 * of their own; the sixth sees all, with the scaled base; heads are normed. */
#include <math.h>

#include "model/arch.h"

#define GLOBAL_EVERY 6u
#define LAYERS_27B   62u         /* the one size whose queries are scaled by E / H instead of D */

static ebb_status bind(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t window;

    ebb_bind_shape(b, true);
    window = ebb_bind_u32_or(b, ".attention.sliding_window", 1024, 0, UINT32_MAX);
    net->embd_scale = sqrtf((float)net->n_embd);
    net->ffn_gate = EBB_GATE_GELU;
    net->ropes[1] = net->ropes[0];               /* of the local layers */
    net->ropes[1].freq_base = ebb_bind_f64_or(b, ".rope.freq_base_swa", 10000.0);
    net->ropes[1].freq_scale = 1.0;
    net->n_ropes = 2;
    if (net->n_layers == LAYERS_27B)
        net->attn_scale = 1 / sqrtf((float)(net->n_embd / net->n_head));
    for (b->layer = 0; b->st == EBB_OK && b->layer < net->n_layers; b->layer++) {
        ebb_layer *l = &net->layers[b->layer];
        bool is_local = (b->layer + 1) % GLOBAL_EVERY != 0;

        l->window = is_local ? window : 0;
        l->rope = is_local;
        ebb_bind_attention(b, l);
        ebb_bind_head_norms(b, l);
        ebb_bind_ffn(b, l);
        ebb_bind_post_norms(b, l);
    }
    ebb_bind_ends(b);
    return b->st;
}

const ebb_arch ebb_arch_gemma3 = { .name = "gemma3", .bind = bind, .layer = ebb_block_layer };
