/* Networks of Mamba layers alone (mamba.c, mamba2.c), and Jamba (AI21 2024): Mamba, now and then attention
 * without RoPE, and behind each a feed-forward or experts. */
#include "model/arch.h"

static void bind_mamba2_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_mamba2(b, l);
}

static void bind_mamba2_net(ebb_binder *b)
{
    b->has_no_attention = true;
    ebb_bind_shape(b, false);
    ebb_bind_mamba2_shape(b);
    ebb_bind_layers(b, bind_mamba2_layer);
}

const ebb_arch ebb_arch_mamba2 = { .name = "mamba2", .bind = bind_mamba2_net };

static void bind_mamba_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_mamba(b, l);
}

static void bind_mamba_net(ebb_binder *b)
{
    b->has_no_attention = true;
    ebb_bind_shape(b, false);
    ebb_bind_mamba_shape(b);
    ebb_bind_layers(b, bind_mamba_layer);
}

const ebb_arch ebb_arch_mamba = { .name = "mamba", .bind = bind_mamba_net };

static void bind_jamba_layer(ebb_binder *b, ebb_layer *l)
{
    if (l->heads.n_kv == 0)
        bind_mamba_layer(b, l);
    else
        ebb_bind_attention(b, l);
    l->rope = EBB_NO_ROPE;
    ebb_bind_ffn(b, l);
}

static void bind_jamba(ebb_binder *b)
{
    b->routing.is_raw = true;
    ebb_bind_shape(b, false);
    ebb_bind_mamba_shape(b);
    ebb_bind_layers(b, bind_jamba_layer);
}

const ebb_arch ebb_arch_jamba = { .name = "jamba", .bind = bind_jamba };
