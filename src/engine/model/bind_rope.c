/* RoPE and how it is scaled, from metadata (bind.h). */
#include <math.h>
#include <string.h>

#include "model/arch.h"

/* YaRN (Peng et al. 2023): the logits' temperature 0.1 ln(factor) + 1 goes to the magnitude.
 *
 * What files say beside the factor is believed where readers of such files believe it, and refused where it would
 * change what they compute: betas count in few architectures (has_yarn_betas), the others have 32 and 1 whatever the
 * file says; yarn_attn_factor is the magnitude again (OLMo 3 has it), and no second one. */
static void bind_yarn(ebb_binder *b, ebb_rope *rope)
{
    double magnitude = 1.0 + 0.1 * log(1.0 / rope->freq_scale);

    rope->is_yarn = true;
    rope->beta_fast = 32.0;
    rope->beta_slow = 1.0;
    if (b->has_yarn_betas) {
        rope->beta_fast = ebb_bind_f64_or(b, ".rope.scaling.yarn_beta_fast", rope->beta_fast);
        rope->beta_slow = ebb_bind_f64_or(b, ".rope.scaling.yarn_beta_slow", rope->beta_slow);
    }
    ebb_bind_either(b, ".rope.scaling.yarn_attn_factor", 1, magnitude);
    rope->magnitude *= magnitude;
    if (rope->n_ctx_orig == 0)
        rope->n_ctx_orig = b->net->n_ctx_train;
    if (!(rope->beta_fast > 0 && rope->beta_slow > 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope.scaling.yarn_beta: not above 0", b->net->arch->name);
}

/* What the file makes q and k longer by; YaRN's temperature is not in it. */
static double bind_attn_factor(ebb_binder *b)
{
    return ebb_bind_f64_or(b, ".rope.scaling.attn_factor", 1.0);
}

static void bind_scaling(ebb_binder *b, ebb_rope *rope)
{
    const char *type = ebb_bind_string(b, ".rope.scaling.type");
    double linear = ebb_bind_f64_or(b, ".rope.scale_linear", 1.0),
           factor = ebb_bind_f64_or(b, ".rope.scaling.factor", linear);

    rope->magnitude = bind_attn_factor(b);
    rope->n_ctx_orig = ebb_bind_u32_or(b, ".rope.scaling.original_context_length", 0, 0, 1u << 30);
    if (factor == 0)
        factor = 1.0;
    if (!(factor > 0) || !(rope->freq_base > 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope: a base or factor that is not above 0", b->net->arch->name);
    if (!type || strcmp(type, "linear") == 0 || strcmp(type, "yarn") == 0)
        rope->freq_scale = 1.0 / factor;
    else if (strcmp(type, "none") != 0 && strcmp(type, "longrope") != 0 && strcmp(type, "llama3") != 0)
        ebb_bind_fail(b, EBB_UNSUPPORTED,
                      "metadata %s.rope.scaling.type: '%.40s' is not supported; none, linear, llama3, "
                      "yarn and longrope are",
                      b->net->arch->name, type);
    if (type && strcmp(type, "yarn") == 0 && b->st == EBB_OK)
        bind_yarn(b, rope);
    ebb_bind_either(b, ".rope.scaling.yarn_ext_factor", 1, -1);
    if (!rope->is_yarn)
        ebb_bind_only(b, ".rope.scaling.yarn_attn_factor", 1);
    if (!b->has_yarn_betas) {
        ebb_bind_only(b, ".rope.scaling.yarn_beta_fast", 32);
        ebb_bind_only(b, ".rope.scaling.yarn_beta_slow", 1);
    }
}

void ebb_bind_rope(ebb_binder *b, bool is_halves)
{
    ebb_net *net = b->net;
    ebb_rope *rope = &net->ropes[0];

    net->n_ropes = 1;
    rope->n_rot = ebb_bind_u32_or(b, ".rope.dimension_count", net->dim_k, 2, net->dim_k) & ~1u;
    rope->is_halves = is_halves;
    rope->freq_base = ebb_bind_f64_or(b, ".rope.freq_base", 10000.0);
    rope->freq_scale = 1.0;
    bind_scaling(b, rope);
    ebb_bind_vector(b, &rope->freq_factors, "rope_freqs", rope->n_rot / 2, false);
    if (!ebb_bind_has(b, "rope_factors_long"))
        return;
    ebb_bind_vector(b, &rope->long_factors, "rope_factors_long", rope->n_rot / 2, true);
    ebb_bind_vector(b, &rope->freq_factors, "rope_factors_short", rope->n_rot / 2, true);
    if (rope->n_ctx_orig == 0)
        rope->n_ctx_orig = net->n_ctx_train;
}

void ebb_bind_local_rope(ebb_binder *b, double freq_base)
{
    ebb_net *net = b->net;

    net->ropes[1] = (ebb_rope){
        .n_rot = net->ropes[0].n_rot, .is_halves = net->ropes[0].is_halves, .freq_base = freq_base,
        .freq_scale = 1.0, .magnitude = bind_attn_factor(b),
    };
    net->n_ropes = 2;
    if (!(freq_base > 0))
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope: a base that is not above 0", net->arch->name);
}
