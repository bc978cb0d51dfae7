/* Llama 2 and 3, Mistral, Mixtral, SmolLM2 and their like (Touvron et al. 2023; Jiang et al. 2024).
 *
 * Q and K rows are stored permuted, so that pairs to turn stand side by side.
 * Llama 3.1 brings its long-context scaling as rope_freqs.weight. */
#include "model/arch.h"

static void bind_llama(ebb_binder *b)
{
    ebb_bind_plain(b, false);
}

const ebb_arch ebb_arch_llama = { .name = "llama", .bind = bind_llama };

/* SmolLM 3: every fourth layer turns nothing (NoPE, Kazemnejad et al. 2023). */
static void bind_smollm3_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_plain_layer(b, l);
    l->rope = (b->layer + 1) % 4 == 0 ? EBB_NO_ROPE : 0;
}

static void bind_smollm3(ebb_binder *b)
{
    ebb_bind_shape(b, false);
    ebb_bind_layers(b, bind_smollm3_layer);
}

const ebb_arch ebb_arch_smollm3 = { .name = "smollm3", .bind = bind_smollm3 };

/* Granite 3: multipliers of embeddings, of what blocks add, of scores and of logits. */
static void bind_granite(ebb_binder *b)
{
    ebb_net *net = b->net;

    ebb_bind_shape(b, false);
    net->embd_scale = (float)ebb_bind_f64_or(b, ".embedding_scale", 1.0);
    net->residual_scale = (float)ebb_bind_f64_or(b, ".residual_scale", 1.0);
    net->logit_scale = (float)(1.0 / ebb_bind_f64_or(b, ".logit_scale", 1.0));
    ebb_bind_layers(b, ebb_bind_plain_layer);
}

const ebb_arch ebb_arch_granite = { .name = "granite", .bind = bind_granite };
const ebb_arch ebb_arch_granitemoe = { .name = "granitemoe", .bind = bind_granite };
