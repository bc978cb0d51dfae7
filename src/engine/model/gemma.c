/* Gemma 1, 2 and 3 (Gemma Team 2024, 2024, 2025).  The norms' weights hold their + 1 already. */
#include <math.h>

#include "model/arch.h"

static void bind_gemma_shape(ebb_binder *b)
{
    ebb_net *net = b->net;

    ebb_bind_shape(b, true);
    net->embd_scale = (float)sqrt((double)net->n_embd);
    net->ffn_gate = EBB_GATE_GELU;
}

/* Of the largest models only, scores are scaled by the width that a head would have. */
static void scale_scores(ebb_net *net, uint32_t n_layers_largest)
{
    if (net->n_layers == n_layers_largest)
        net->attn_scale = (float)(1.0 / sqrt((double)net->n_embd / net->n_head));
}

static void bind_gemma(ebb_binder *b)
{
    bind_gemma_shape(b);
    ebb_bind_layers(b, ebb_bind_plain_layer);
}

const ebb_arch ebb_arch_gemma = { .name = "gemma", .bind = bind_gemma };

/* -- Gemma 2: norms behind attention and feed-forward, soft caps, every other layer local */

static void bind_gemma2_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_plain_layer(b, l);
    ebb_bind_post_norms(b, l);
}

static void bind_gemma2(ebb_binder *b)
{
    ebb_net *net = b->net;

    bind_gemma_shape(b);
    ebb_bind_windows(b, 4096, 2, 0);
    net->attn_softcap = (float)ebb_bind_f64_or(b, ".attn_logit_softcapping", 50.0);
    net->logit_softcap = (float)ebb_bind_f64_or(b, ".final_logit_softcapping", 30.0);
    scale_scores(net, 46);
    ebb_bind_layers(b, bind_gemma2_layer);
}

const ebb_arch ebb_arch_gemma2 = { .name = "gemma2", .bind = bind_gemma2 };

/* -- Gemma 3: heads normed, five local layers for each global one, with a rope of their own.  Rnj-1 (Essential AI 2025)
 * goes by its name: no window in the file, so all layers are global. */

static void bind_gemma3_layer(ebb_binder *b, ebb_layer *l)
{
    ebb_bind_plain_layer(b, l);
    ebb_bind_qk_norm(b, l);
    ebb_bind_post_norms(b, l);
}

static void bind_gemma3(ebb_binder *b)
{
    ebb_net *net = b->net;

    bind_gemma_shape(b);
    net->logit_softcap = (float)ebb_bind_f64_or(b, ".final_logit_softcapping", 0);
    scale_scores(net, 62);
    ebb_bind_local_rope(b, ebb_bind_f64_or(b, ".rope.freq_base_swa", 10000.0));
    ebb_bind_windows(b, 0, 6, 1);
    ebb_bind_layers(b, bind_gemma3_layer);
}

/* Rnj-1 has another than 32, and was tried with readers that do not look. */
static const char *const gemma3_harmless[] = { ".rope.scaling.yarn_beta_fast", NULL };

const ebb_arch ebb_arch_gemma3 = { .name = "gemma3", .bind = bind_gemma3, .harmless = gemma3_harmless };
