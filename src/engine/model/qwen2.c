/* Qwen 2 and 2.5 (Yang et al. 2024): biases on q, k and v, pairs half a head apart. */
#include "model/arch.h"

static const ebb_traits qwen2 = { .rope_is_halves = true };

const ebb_arch ebb_arch_qwen2 = { .name = "qwen2", .bind = ebb_bind_traits, .traits = &qwen2 };

/* The text part of a vision model (M-RoPE): each section of the RoPE pairs has a position of its own; in text they
 * are the same. */
static const char *const image_keys[] = { ".rope.dimension_sections", ".n_deepstack_layers", NULL };

const ebb_arch ebb_arch_qwen2vl = { .name = "qwen2vl", .bind = ebb_bind_traits, .traits = &qwen2,
                                    .harmless = image_keys };

/* Qwen 1.5 and 2 with experts, and a shared one behind a gate of its own. */
static const ebb_traits qwen2moe = { .rope_is_halves = true, .routing = { .is_raw = true, .has_shared = true } };

const ebb_arch ebb_arch_qwen2moe = { .name = "qwen2moe", .bind = ebb_bind_traits, .traits = &qwen2moe };

/* Qwen 3, dense and with experts (Yang et al. 2025): heads of their own width, each normed before RoPE.
 * Of Qwen 3 VL's sections all pairs are rotated, as published; readers that leave pairs 61 and 62 of 64 alone differ
 * behind a hundred thousand tokens. */
static const ebb_traits qwen3 = { .rope_is_halves = true, .has_qk_norm = true };

const ebb_arch ebb_arch_qwen3 = { .name = "qwen3", .bind = ebb_bind_traits, .traits = &qwen3 };
const ebb_arch ebb_arch_qwen3moe = { .name = "qwen3moe", .bind = ebb_bind_traits, .traits = &qwen3 };
const ebb_arch ebb_arch_qwen3vl = { .name = "qwen3vl", .bind = ebb_bind_traits, .traits = &qwen3,
                                    .harmless = image_keys };
const ebb_arch ebb_arch_qwen3vlmoe = { .name = "qwen3vlmoe", .bind = ebb_bind_traits, .traits = &qwen3,
                                       .harmless = image_keys };
