/* Qwen 2 and 2.5 (Yang et al. 2024): biases on q, k and v, pairs half a head apart. */
#include "model/arch.h"

static void bind_qwen2(ebb_binder *b)
{
    ebb_bind_plain(b, true);
}

const ebb_arch ebb_arch_qwen2 = { .name = "qwen2", .bind = bind_qwen2 };

/* Qwen 1.5 and 2 with experts: beside them one for all tokens, behind a gate of its own. */
static void bind_qwen2_moe_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_plain_layer(b, l);
    ebb_bind_shared_expert(b, l, ebb_bind_u32_or(b, ".expert_shared_feed_forward_length", b->net->n_ff, 1,
                                                 EBB_MAX_WIDTH));
}

static void bind_qwen2_moe(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    b->net->router_normalizes = ebb_bind_bool_or(b, ".expert_weights_norm", false);
    ebb_bind_layers(b, bind_qwen2_moe_layer);
}

const ebb_arch ebb_arch_qwen2moe = { .name = "qwen2moe", .bind = bind_qwen2_moe };
