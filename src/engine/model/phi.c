/* Phi 2 (Javaheripi et al. 2023); Phi 3, 3.5 and 4 mini, Phi 3.5 MoE (Abdin et al. 2024). */
#include "model/arch.h"

/* LayerNorm, one for attention and feed-forward, which see the same x; biases everywhere. */
static void bind_phi2_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_attention(b, l);
    ebb_bind_norm(b, &l->ffn_norm, "attn_norm", b->net->n_embd);
    ebb_bind_ffn_matrices(b, l);
}

static void bind_phi2(ebb_binder *b)
{
    b->net->norm_is_layer = b->net->is_parallel = b->net->ffn_is_plain = true;
    b->net->ffn_gate = EBB_GATE_GELU;
    ebb_bind_shape(b, true);
    ebb_bind_layers(b, bind_phi2_layer);
}

const ebb_arch ebb_arch_phi2 = { .name = "phi2", .bind = bind_phi2 };

/* q, k and v are one tensor, gate and up another; RoPE may be partial.  LongRoPE (Ding et
 * al. 2024) has its factors in the file: those for long contexts hold where the context is longer than the
 * original one, from the first token on.  The window of the metadata is left out: what is
 * published under this name is used with full attention (converters wrote windows that the models do not have). */
static const ebb_traits phi3 = { .rope_is_halves = true };
static const char *const phi3_harmless[] = { ".attention.sliding_window", NULL };

const ebb_arch ebb_arch_phi3 = { .name = "phi3", .bind = ebb_bind_traits, .traits = &phi3, .harmless = phi3_harmless };

/* With experts.  The network was published with LayerNorm and a choice that drops experts by a threshold; files of it
 * are made for, and tried with, readers that take RMSNorm with its bias and the softmax of the two best, so that is
 * what they mean. */
static const ebb_traits phimoe = { .rope_is_halves = true, .norms_have_bias = true };

const ebb_arch ebb_arch_phimoe = { .name = "phimoe", .bind = ebb_bind_traits, .traits = &phimoe,
                                   .harmless = phi3_harmless };
