/* Llama 4 (Meta 2025): every fourth layer has full attention without RoPE, and queries that are scaled up with
 * their position; the others attend within a chunk and norm q and k after RoPE.  A router weight multiplies its
 * expert's input, not its output. */
#include "model/arch.h"

#define CHUNK     8192u
#define EXPERTS_WITHOUT_NORM 128u        /* Maverick's */

static void bind_layer_kind(ebb_binder *b, ebb_layer *l, uint32_t i)
{
    bool is_global = (i + 1) % 4 == 0;

    l->rope = is_global ? EBB_NO_ROPE : 0;
    l->has_temperature = is_global;
    l->chunk = is_global ? 0 : CHUNK;
    l->q_norm.is_on = l->k_norm.is_on = !is_global && b->net->n_expert != EXPERTS_WITHOUT_NORM;
}

/* A window of 0 means none of this. */
static void bind_layer_kinds(ebb_binder *b)
{
    ebb_net *net = b->net;
    uint32_t window = ebb_bind_u32_or(b, ".attention.sliding_window", CHUNK, 0, 1u << 30);

    net->share_is_on_input = true;
    net->temperature = 0.1;
    net->temperature_from = 1;
    net->temperature_span = CHUNK;
    ebb_bind_only(b, ".rope.freq_base_swa", net->ropes[0].freq_base);
    ebb_bind_only(b, ".attention.sliding_window_pattern", 4);
    if (window != 0)
        ebb_bind_only(b, ".attention.sliding_window", CHUNK);
    for (uint32_t i = 0; window != 0 && i < net->n_layers; i++)
        bind_layer_kind(b, &net->layers[i], i);
    for (uint32_t i = 0; window == 0 && i < net->n_layers; i++)
        net->layers[i].q_norm.is_on = net->layers[i].k_norm.is_on = net->n_expert != EXPERTS_WITHOUT_NORM;
}

static const ebb_traits llama4 = {
    .qk_norm_is_late = true, .routing = { .is_sigmoid = true, .is_raw = true, .has_shared = true },
    .more = bind_layer_kinds,
};

const ebb_arch ebb_arch_llama4 = { .name = "llama4", .bind = ebb_bind_traits, .traits = &llama4 };
