/* Llama 2 and 3, Mistral, Mixtral, SmolLM2 and their like (Touvron et al. 2023; Jiang et al. 2024).
 *
 * Q and K rows are stored permuted, so that the elements of a RoPE pair stand side by side.
 * Llama 3.1 brings its long-context scaling as rope_freqs.weight. */
#include "model/arch.h"

static const ebb_traits llama;

const ebb_arch ebb_arch_llama = { .name = "llama", .bind = ebb_bind_traits, .traits = &llama };

/* SmolLM 3: every fourth layer has no RoPE (NoPE, Kazemnejad et al. 2023). */
static const ebb_traits smollm3 = { .no_rope_period = 4 };

const ebb_arch ebb_arch_smollm3 = { .name = "smollm3", .bind = ebb_bind_traits, .traits = &smollm3 };

/* ERNIE 4.5 (Baidu 2025), dense and with experts, the first layers dense. */
static const ebb_traits ernie_moe = { .routing = { .has_choice_bias = true, .has_shared = true } };

const ebb_arch ebb_arch_ernie4_5 = { .name = "ernie4_5", .bind = ebb_bind_traits, .traits = &llama };
const ebb_arch ebb_arch_ernie4_5_moe = { .name = "ernie4_5-moe", .bind = ebb_bind_traits, .traits = &ernie_moe };

/* AFM (Arcee 2025) */
static const ebb_traits arcee = { .act = EBB_GATE_RELU2, .ffn_is_plain = true };

const ebb_arch ebb_arch_arcee = { .name = "arcee", .bind = ebb_bind_traits, .traits = &arcee };
