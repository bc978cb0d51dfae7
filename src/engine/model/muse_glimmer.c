/* Muse Glimmer (2026): norms before and behind, those with an epsilon of their own; gated heads; windows, and every
 * fourth layer with full attention without RoPE; rows of token_embd normed. */
#include "model/arch.h"

static void bind_kinds(ebb_binder *b)
{
    ebb_net *net = b->net;

    net->embd_is_normed = true;
    net->logit_scale = (float)ebb_bind_f64_or(b, ".logit_scale", 1.0);
    net->logit_softcap = (float)ebb_bind_f64_or(b, ".final_logit_softcapping", 0);
    for (uint32_t i = 0; i < net->n_layers; i++)
        net->layers[i].rope = EBB_NO_ROPE;
    ebb_bind_local_rope(b, ebb_bind_f64_or(b, ".rope.freq_base_swa", net->ropes[0].freq_base));
    ebb_bind_windows(b, 0, 4, 1);
}

static const ebb_traits muse_glimmer = {
    .has_qk_norm = true, .has_head_gate = true, .norms = EBB_NORMS_BOTH, .post_norm_eps = 1e-8f, .more = bind_kinds,
};

const ebb_arch ebb_arch_muse_glimmer = { .name = "muse-glimmer", .bind = ebb_bind_traits, .traits = &muse_glimmer };
