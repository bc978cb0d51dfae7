/* Networks of llama's kind with RoPE as in GPT-NeoX: the elements of a pair are half a head apart. */
#include "model/arch.h"

/* Hunyuan (Tencent 2025), dense and with experts: each head is normed after RoPE. */
static const ebb_traits hunyuan = {
    .rope_is_halves = true, .has_qk_norm = true, .qk_norm_is_late = true, .routing = { .has_shared = true },
};

const ebb_arch ebb_arch_hunyuan_dense = { .name = "hunyuan-dense", .bind = ebb_bind_traits, .traits = &hunyuan };
const ebb_arch ebb_arch_hunyuan_moe = { .name = "hunyuan-moe", .bind = ebb_bind_traits, .traits = &hunyuan };

/* Seed-OSS (ByteDance 2025): Qwen 2 with another name for a norm. */
static const ebb_traits seed_oss = { .rope_is_halves = true, .ffn_norm = "post_attention_norm" };

const ebb_arch ebb_arch_seed_oss = { .name = "seed_oss", .bind = ebb_bind_traits, .traits = &seed_oss };

/* MiniMax M2 (2025): q and k normed as a whole, partial RoPE. */
static const ebb_traits minimax_m2 = {
    .rope_is_halves = true, .has_qk_norm = true, .qk_norm = EBB_QK_WHOLE,
    .routing = { .is_sigmoid = true, .gating_is_in_file = true, .has_choice_bias = true },
};

const ebb_arch ebb_arch_minimax_m2 = { .name = "minimax-m2", .bind = ebb_bind_traits, .traits = &minimax_m2 };

/* Ling and Ring 2 (Inclusion AI 2025): experts in groups, the first layers dense. */
static const ebb_traits bailingmoe2 = {
    .rope_is_halves = true, .has_qk_norm = true,
    .routing = { .is_sigmoid = true, .is_raw = true, .gating_is_in_file = true, .shares_are_in_file = true,
                 .has_choice_bias = true, .has_shared = true, .is_shared_multiple = true },
};

const ebb_arch ebb_arch_bailingmoe2 = { .name = "bailingmoe2", .bind = ebb_bind_traits, .traits = &bailingmoe2,
                                        .has_mtp = true };
