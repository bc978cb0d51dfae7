/* PLaMo 3 (Preferred Networks 2025): heads normed, norms before and behind, seven layers of eight have a window and a
 * RoPE base of their own. */
#include "model/arch.h"

static void bind_plamo3_windows(ebb_binder *b)
{
    ebb_bind_local_rope(b, ebb_bind_f64_or(b, ".rope.freq_base_swa", 10000.0));
    ebb_bind_windows(b, 0, 8, 1);
}

static const ebb_traits plamo3 = {
    .rope_is_halves = true, .has_qk_norm = true, .norms = EBB_NORMS_BOTH, .post_norms_are_bare = true,
    .more = bind_plamo3_windows,
};

const ebb_arch ebb_arch_plamo3 = { .name = "plamo3", .bind = ebb_bind_traits, .traits = &plamo3 };
