/* ChatGLM 3 and GLM 4 (GLM Team 2024): q, k and v are one tensor, gate and up another; half of a head
 * is turned.  GLM 4 0414 norms also behind attention and feed-forward. */
#include "model/arch.h"

static void bind_chatglm(ebb_binder *b)
{
    ebb_bind_plain(b, false);
}

const ebb_arch ebb_arch_chatglm = { .name = "chatglm", .bind = bind_chatglm };

static void bind_glm4_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_plain_layer(b, l);
    ebb_bind_post_norms(b, l);
}

static void bind_glm4(ebb_binder *b)
{
    ebb_bind_shape(b, false);
    ebb_bind_layers(b, bind_glm4_layer);
}

const ebb_arch ebb_arch_glm4 = { .name = "glm4", .bind = bind_glm4 };
