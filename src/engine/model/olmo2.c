/* OLMo 2 and 3 (OLMo et al. 2025), OLMoE (Muennighoff et al. 2024): q and k normed as a whole; no norms before
 * attention and feed-forward, but behind them (OLMoE as llama).  OLMo 3 has windows in three layers of four; their
 * RoPE is without YaRN. */
#include "model/arch.h"

static void bind_olmo2_windows(ebb_binder *b)
{
    double base = b->net->ropes[0].freq_base;

    ebb_bind_only(b, ".rope.freq_base_swa", base);       /* readers take rope.freq_base for both */
    ebb_bind_local_rope(b, base);
    b->net->ropes[1].magnitude = 1.0;                    /* nor is rope.scaling.attn_factor for it */
    ebb_bind_windows(b, 0, 4, 1);
}

static const ebb_traits olmo2 = {
    .rope_is_halves = true, .has_qk_norm = true, .qk_norm = EBB_QK_WHOLE, .norms = EBB_NORMS_BEHIND,
    .more = bind_olmo2_windows,
};
static const ebb_traits olmoe = {
    .rope_is_halves = true, .has_qk_norm = true, .qk_norm = EBB_QK_WHOLE, .routing = { .is_raw = true },
};

const ebb_arch ebb_arch_olmo2 = { .name = "olmo2", .bind = ebb_bind_traits, .traits = &olmo2 };
const ebb_arch ebb_arch_olmoe = { .name = "olmoe", .bind = ebb_bind_traits, .traits = &olmoe };
