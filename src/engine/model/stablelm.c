/* StableLM 2 (Bellagente et al. 2024): LayerNorm, partial RoPE.  The 12B model norms each head
 * and has no second norm: attention and feed-forward see the same x. */
#include "model/arch.h"

static void bind_stablelm_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    if (ebb_bind_has(b, "attn_q_norm"))
        ebb_bind_qk_norm(b, l);
    ebb_bind_norm(b, &l->ffn_norm, b->net->is_parallel ? "attn_norm" : "ffn_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_stablelm(ebb_binder *b)
{
    b->net->norm_is_layer = true;
    b->net->qk_norm = EBB_QK_EACH;
    ebb_bind_shape(b, true);
    b->net->is_parallel = !ebb_bind_has(b, "blk.0.ffn_norm");
    ebb_bind_layers(b, bind_stablelm_layer);
}

/* Converters write use_parallel_residual true for models that have not said so; the tensors say how it is. */
static const char *const harmless[] = { ".use_parallel_residual", NULL };

const ebb_arch ebb_arch_stablelm = { .name = "stablelm", .bind = bind_stablelm, .harmless = harmless };
