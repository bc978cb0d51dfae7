/* LFM 2 (Liquid AI 2025), dense and with experts: most layers are short convolutions, those with KV heads attention. */
#include "model/arch.h"

static void bind_lfm2_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_norm(b, &l->attn_norm, "attn_norm", b->net->n_embd);
    if (l->heads.n_kv == 0) {
        ebb_bind_short_conv(b, l);
    } else {
        ebb_bind_qkv(b, l);
        ebb_bind_qk_norm(b, l);
        ebb_bind_output(b, l);
    }
    ebb_bind_ffn(b, l);
}

static void bind_lfm2(ebb_binder *b)
{
    b->routing = (ebb_routing){ .is_sigmoid = true, .gating_is_in_file = true, .has_choice_bias = true };
    b->output_norm = "token_embd_norm";
    ebb_bind_shape(b, true);
    ebb_bind_windows(b, 0, 0, 0);
    ebb_bind_layers(b, bind_lfm2_layer);
}

const ebb_arch ebb_arch_lfm2 = { .name = "lfm2", .bind = bind_lfm2 };
const ebb_arch ebb_arch_lfm2moe = { .name = "lfm2moe", .bind = bind_lfm2 };
