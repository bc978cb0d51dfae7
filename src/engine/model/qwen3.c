/* Qwen 3, dense and with experts (Yang et al. 2025): heads of their own width, each normed
 * before it is turned. */
#include "model/arch.h"

static void bind_qwen3_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    ebb_bind_qk_norm(b, l);
    ebb_bind_ffn(b, l);
}

static void bind_qwen3(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    ebb_bind_layers(b, bind_qwen3_layer);
}

const ebb_arch ebb_arch_qwen3 = { .name = "qwen3", .bind = bind_qwen3 };
const ebb_arch ebb_arch_qwen3moe = { .name = "qwen3moe", .bind = bind_qwen3 };
