/* SmallThinker (Song et al. 2025): the router sees x as it enters the layer, so that experts are read while attention
 * is computed; experts with relu.  One layer of four, the first, has full attention without RoPE. */
#include "model/arch.h"

#define WINDOW 4096u             /* readers of these files take it whatever number but 0 the file has, and so were they
                                    tried */

static void bind_smallthinker_windows(ebb_binder *b)
{
    ebb_net *net = b->net;

    net->router_is_early = true;
    net->window = ebb_bind_u32_or(b, ".attention.sliding_window", 0, 0, 1u << 30) ? WINDOW : 0;
    for (uint32_t i = 0; net->window && i < net->n_layers; i++) {
        net->layers[i].rope = i % 4 == 0 ? EBB_NO_ROPE : 0;
        net->layers[i].window = i % 4 == 0 ? 0 : net->window;
    }
}

static const ebb_traits smallthinker = {
    .rope_is_halves = true, .act = EBB_GATE_RELU, .routing = { .gating_is_in_file = true },
    .more = bind_smallthinker_windows,
};

const ebb_arch ebb_arch_smallthinker = { .name = "smallthinker", .bind = ebb_bind_traits, .traits = &smallthinker };
