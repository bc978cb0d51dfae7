/* Apertus (Swiss AI 2025): heads normed, and a feed-forward of one matrix and xIELU, whose figures each layer has
 * learned. */
#include <math.h>

#include "model/arch.h"

static double softplus(double x)
{
    return log1p(exp(x));
}

static double figure(ebb_binder *b, const char *key, uint32_t i)
{
    if (!ebb_bind_key(b, key))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s is missing", key);
    return ebb_bind_f64_at(b, key, i, 0);
}

static void bind_xielu(ebb_binder *b)
{
    for (uint32_t i = 0; i < b->net->n_layers; i++) {
        double bend = figure(b, "xielu.beta", i);

        b->net->layers[i].xielu = (ebb_xielu){
            .p = (float)softplus(figure(b, "xielu.alpha_p", i)),
            .n = (float)(bend + softplus(figure(b, "xielu.alpha_n", i))),
            .b = (float)bend, .eps = (float)figure(b, "xielu.eps", i),
        };
    }
}

static const ebb_traits apertus = {
    .rope_is_halves = true, .has_qk_norm = true, .act = EBB_GATE_XIELU, .ffn_is_plain = true, .more = bind_xielu,
};

const ebb_arch ebb_arch_apertus = { .name = "apertus", .bind = ebb_bind_traits, .traits = &apertus };
