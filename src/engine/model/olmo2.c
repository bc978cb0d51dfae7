/* OLMo 2 (OLMo et al. 2025): no norms before attention and feed-forward, but behind them; q and k are
 * normed as a whole. */
#include "model/arch.h"

static void bind_olmo2_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_qkv(b, l);
    ebb_bind_qk_norm(b, l);
    ebb_bind_matrix(b, &l->o, "attn_output", b->net->n_embd, b->net->n_head * b->net->dim_v);
    ebb_bind_ffn_matrices(b, l);
    ebb_bind_post_norms(b, l);
}

static void bind_olmo2(ebb_binder *b)
{
    b->net->qk_norm = EBB_QK_WHOLE;
    ebb_bind_shape(b, true);
    ebb_bind_layers(b, bind_olmo2_layer);
}

const ebb_arch ebb_arch_olmo2 = { .name = "olmo2", .bind = bind_olmo2 };
