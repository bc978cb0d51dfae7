/* Qwen 3, dense and with experts (Yang et al. 2025): heads of their own width, each normed
 * before it is turned. */
#include "model/arch.h"

static void bind_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    ebb_bind_qk_norm(b, l);
    ebb_bind_ffn(b, l);
}

static void bind(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    ebb_bind_layers(b, bind_layer);
}

const ebb_arch ebb_arch_qwen3 = { .name = "qwen3", .bind = bind };
const ebb_arch ebb_arch_qwen3moe = { .name = "qwen3moe", .bind = bind };
