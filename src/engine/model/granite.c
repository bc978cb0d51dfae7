/* Granite 3 and 4 without Mamba layers (IBM 2024, 2025): multipliers of embeddings, of what blocks add, of scores and of
 * logits; with experts there may be one for all tokens.  rope.scaling.finetuned false means that nothing is turned. */
#include "model/arch.h"

static void bind_rope_switch(ebb_binder *b)
{
    bool turns = ebb_bind_bool_or(b, ".rope.scaling.finetuned", true);

    for (uint32_t i = 0; !turns && i < b->net->n_layers; i++)
        b->net->layers[i].rope = EBB_NO_ROPE;
}

static const ebb_traits granite = { .has_multipliers = true, .routing = { .has_shared = true }, .more = bind_rope_switch };

const ebb_arch ebb_arch_granite = { .name = "granite", .bind = ebb_bind_traits, .traits = &granite };
const ebb_arch ebb_arch_granitemoe = { .name = "granitemoe", .bind = ebb_bind_traits, .traits = &granite };
