/* Falcon H1 (TII 2025): Mamba 2 and attention side by side on the same norm, in every layer. */
#include "model/arch.h"

static void bind_falcon_h1_layer(ebb_binder *b, ebb_layer *l)
{
    uint32_t n = b->net->n_embd;

    ebb_bind_norm(b, &l->attn_norm, "attn_norm", n);
    ebb_bind_mamba2(b, l);
    ebb_bind_qkv(b, l);
    ebb_bind_output(b, l);
    if (ebb_bind_has_named(b, "ffn_norm"))       /* so it is called in these files */
        ebb_bind_named_norm(b, &l->ffn_norm, "ffn_norm", n, 1);
    else
        ebb_bind_norm(b, &l->ffn_norm, "ffn_norm", n);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_falcon_h1(ebb_binder *b)
{
    ebb_bind_shape(b, true);
    ebb_bind_mamba2_shape(b);
    ebb_bind_layers(b, bind_falcon_h1_layer);
}

const ebb_arch ebb_arch_falcon_h1 = { .name = "falcon-h1", .bind = bind_falcon_h1 };
