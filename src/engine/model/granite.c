/* Granite 3 and 4 (IBM 2024, 2025), with Mamba 2 in place of attention in most layers or without: multipliers of
 * embeddings, of what blocks add, of scores and of logits; with experts there may be a shared one.
 * rope.scaling.finetuned false means no RoPE. */
#include "model/arch.h"

static void bind_rope_switch(ebb_binder *b)
{
    bool has_rope = ebb_bind_bool_or(b, ".rope.scaling.finetuned", true);

    for (uint32_t i = 0; !has_rope && b->st == EBB_OK && i < b->net->n_layers; i++)
        b->net->layers[i].rope = EBB_NO_ROPE;
}

static const ebb_traits granite = { .has_multipliers = true, .routing.has_shared = true, .more = bind_rope_switch };

const ebb_arch ebb_arch_granite = { .name = "granite", .bind = ebb_bind_traits, .traits = &granite };
const ebb_arch ebb_arch_granitemoe = { .name = "granitemoe", .bind = ebb_bind_traits, .traits = &granite };

static void bind_hybrid_layer(ebb_binder *b, ebb_layer *l)
{
    if (l->heads.n_kv == 0) {
        ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
        ebb_bind_mamba2(b, l);
    } else {
        ebb_bind_attention(b, l);
    }
    ebb_bind_ffn(b, l);
}

static void bind_hybrid(ebb_binder *b)
{
    b->routing = granite.routing;
    ebb_bind_shape(b, false);
    ebb_bind_multipliers(b);
    ebb_bind_mamba2_shape(b);
    bind_rope_switch(b);
    ebb_bind_layers(b, bind_hybrid_layer);
}

const ebb_arch ebb_arch_granitehybrid = { .name = "granitehybrid", .bind = bind_hybrid };
