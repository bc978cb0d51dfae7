/* EXAONE 4 (LG AI Research 2025): OLMo 2's norms, heads normed.  The model of 64 layers has windows in three of four;
 * the fourth has full attention without RoPE. */
#include "model/arch.h"

static void bind_exaone_windows(ebb_binder *b)
{
    if (b->net->n_layers != 64) {
        ebb_bind_only(b, ".attention.sliding_window", 0);
        return;
    }
    for (uint32_t i = 0; i < b->net->n_layers; i++)
        b->net->layers[i].rope = EBB_NO_ROPE;
    ebb_bind_windows(b, 4096, 4, 0);
}

static const ebb_traits exaone4 = {
    .rope_is_halves = true, .has_qk_norm = true, .norms = EBB_NORMS_BEHIND, .more = bind_exaone_windows,
};

const ebb_arch ebb_arch_exaone4 = { .name = "exaone4", .bind = ebb_bind_traits, .traits = &exaone4 };
