/* ChatGLM 3 and GLM 4 (GLM Team 2024): q, k and v are one tensor, gate and up another; RoPE
 * rotates half of a head.  GLM 4 0414 norms also behind attention and feed-forward. */
#include "model/arch.h"

static const ebb_traits chatglm, glm4 = { .norms = EBB_NORMS_BOTH };

const ebb_arch ebb_arch_chatglm = { .name = "chatglm", .bind = ebb_bind_traits, .traits = &chatglm };
const ebb_arch ebb_arch_glm4 = { .name = "glm4", .bind = ebb_bind_traits, .traits = &glm4 };
