/* ChatGLM 3 and GLM 4 (GLM Team 2024): q, k and v are one tensor, gate and up another; RoPE
 * rotates half of a head.  GLM 4 0414 norms also behind attention and feed-forward. */
#include "model/arch.h"

/* The text of GLM 4.1V and 4.6V Flash: a text's position is the same in all sections, but where there are some, the
 * rows of q and k are in the order that pairs them half a head apart. */
static void bind_sections(ebb_binder *b)
{
    const ebb_gguf_kv *kv = ebb_bind_key(b, ".rope.dimension_sections");
    uint64_t n[2] = { 0 };

    for (uint32_t i = 0; kv && i < 2; i++)
        if (!ebb_gguf_item_u64(kv, i, &n[i]))
            ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope.dimension_sections: item %u is not a whole number",
                          b->net->arch->name, i);
    b->net->ropes[0].is_halves = n[0] > 0 && n[1] > 0;
}

static const ebb_traits chatglm, glm4 = { .norms = EBB_NORMS_BOTH, .more = bind_sections };

const ebb_arch ebb_arch_chatglm = { .name = "chatglm", .bind = ebb_bind_traits, .traits = &chatglm };
const ebb_arch ebb_arch_glm4 = { .name = "glm4", .bind = ebb_bind_traits, .traits = &glm4 };
