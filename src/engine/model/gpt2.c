/* GPT-2 (Radford et al. 2019), StarCoder 2 (Lozhkov et al. 2024), Falcon (Almazrouei et al. 2023):
 * LayerNorm and a feed-forward without gate. */
#include "model/arch.h"

static void bind_gpt2_shape(ebb_binder *b)
{
    b->net->norm_is_layer = b->net->ffn_is_plain = true;
    b->net->ffn_gate = EBB_GATE_GELU;
    ebb_bind_shape(b, true);
}

static void bind_starcoder2(ebb_binder *b)
{
    bind_gpt2_shape(b);
    ebb_bind_layers(b, ebb_bind_plain_layer);
}

const ebb_arch ebb_arch_starcoder2 = { .name = "starcoder2", .bind = bind_starcoder2 };

/* Positions are learned: rows added to those of the tokens. */
static void bind_gpt2_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_plain_layer(b, l);
    l->rope = EBB_NO_ROPE;
}

static void bind_gpt2(ebb_binder *b)
{
    bind_gpt2_shape(b);
    b->net->positions = ebb_bind_rows(b, "position_embd", b->net->n_ctx_train, b->net->n_embd);
    ebb_bind_layers(b, bind_gpt2_layer);
}

const ebb_arch ebb_arch_gpt2 = { .name = "gpt2", .bind = bind_gpt2 };

/* Attention and feed-forward see the same x; the 40B model norms it for each of them. */
static void bind_falcon_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    if (ebb_bind_has(b, "attn_norm_2"))
        ebb_bind_norm(b, &l->attn_norm, "attn_norm_2", b->net->n_embd);
    ebb_bind_norm(b, &l->ffn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_falcon(ebb_binder *b)
{
    bind_gpt2_shape(b);
    b->net->is_parallel = true;
    ebb_bind_layers(b, bind_falcon_layer);
}

const ebb_arch ebb_arch_falcon = { .name = "falcon", .bind = bind_falcon };
