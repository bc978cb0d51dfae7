/* Ministral 3 (Mistral AI 2025): YaRN by the file's own figures, and queries that grow with their position, as in Llama
 * 4. */
#include <math.h>

#include "model/arch.h"

static void bind_long_context(ebb_binder *b)
{
    ebb_net *net = b->net;
    ebb_rope *rope = &net->ropes[0];
    double m = ebb_bind_f64_or(b, ".rope.scaling.yarn_log_multiplier", 0);

    if (rope->is_yarn && m != 0)
        rope->magnitude /= 1 + 0.1 * m * log(1 / rope->freq_scale);
    net->temperature = ebb_bind_f64_or(b, ".attention.temperature_scale", 0);
    net->temperature_span = rope->n_ctx_orig;
    if (net->temperature != 0 && net->temperature_span == 0)
        ebb_bind_fail(b, EBB_FORMAT,
                      "metadata mistral3.attention.temperature_scale: needs rope.scaling.original_context_length");
    for (uint32_t i = 0; i < net->n_layers; i++)
        net->layers[i].has_temperature = net->temperature != 0;
}

static const ebb_traits mistral3 = { .has_yarn_betas = true, .more = bind_long_context };

const ebb_arch ebb_arch_mistral3 = { .name = "mistral3", .bind = ebb_bind_traits, .traits = &mistral3 };
