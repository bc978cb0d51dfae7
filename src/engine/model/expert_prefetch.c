/* Which experts the next layer may choose (forward.h).
 *
 * The residual stream changes little from layer to layer: what the next layer's norm and router say of it
 * before this layer's experts are added is often what they will say (Eliseev and Mazur 2023, "Fast Inference of
 * Mixture-of-Experts Language Models with Offloading", sec. 3.2).  So these are read while this layer's experts
 * are computed.  A prediction costs a small product and, if it is wrong, some of the disk's time, never a bit of
 * the answer.  How often the i-th prediction of a layer is right is measured all the time; those that are right too
 * seldom are not read, and where all are, prediction pauses for some passes. */
#include <math.h>
#include <string.h>

#include "model/forward.h"

#define ALIGN      64u
#define MAX_TOKENS 32u           /* looked at, spread over those of the pass */
#define CONFIDENCE_FIRST 0.6f    /* before anything is known */
#define CONFIDENCE_LEAST 0.5f    /* that is worth a read */
#define LEARN_OVER 24            /* passes */
#define SKIP_PASSES 15u          /* passes */

void ebb_expert_prefetch_layout(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;

    r->moe.prediction.scores = ebb_arena_take_rows(a, MAX_TOKENS, net->n_expert, sizeof(float), ALIGN);
    r->moe.prediction.chosen = ebb_arena_take_rows(a, MAX_TOKENS, net->n_expert_used, sizeof(uint32_t), ALIGN);
    r->moe.prediction.miss_chance = ebb_arena_take_rows(a, 1, net->n_expert, sizeof(float), ALIGN);
    r->moe.prediction.confidence = ebb_arena_take_rows(a, net->n_layers, net->n_expert_used, sizeof(float), ALIGN);
    r->moe.prediction.n_skip = ebb_arena_take_rows(a, 1, net->n_layers, sizeof(uint32_t), ALIGN);
}

void ebb_expert_prefetch_init(ebb_forward *r)
{
    const ebb_net *net = r->net;

    for (size_t i = 0; i < (size_t)net->n_layers * net->n_expert_used; i++)
        r->moe.prediction.confidence[i] = CONFIDENCE_FIRST;
    memset(r->moe.prediction.n_skip, 0, net->n_layers * sizeof *r->moe.prediction.n_skip);
    r->moe.prediction.layer = UINT32_MAX;
}

/* One of so many columns is predicted for. */
static uint32_t token_stride(const ebb_forward *r)
{
    return (ebb_n_columns(&r->cols) + MAX_TOKENS - 1) / MAX_TOKENS;
}

static bool was_chosen(const ebb_forward *r, uint32_t c, uint32_t e)
{
    const uint32_t *chosen = r->moe.chosen + (size_t)c * r->net->n_expert_used;

    for (uint32_t i = 0; i < r->net->n_expert_used; i++)
        if (chosen[i] == e)
            return true;
    return false;
}

/* This layer's router has selected: how good was the prediction? */
static void learn_accuracy(ebb_forward *r, uint32_t layer)
{
    ebb_expert_prediction *f = &r->moe.prediction;
    uint32_t used = r->net->n_expert_used, n = (ebb_n_columns(&r->cols) + token_stride(r) - 1) / token_stride(r);
    float best = 0;

    if (f->layer != layer || f->n_tokens != n)
        return;
    for (uint32_t i = 0; i < used; i++) {
        float *confidence = &f->confidence[(size_t)layer * used + i];
        uint32_t n_right = 0;

        for (uint32_t k = 0; k < n; k++)
            n_right += was_chosen(r, r->cols.c0 + k * token_stride(r), f->chosen[k * used + i]);
        *confidence += ((float)n_right / (float)n - *confidence) / LEARN_OVER;
        best = *confidence > best ? *confidence : best;
    }
    if (best < CONFIDENCE_LEAST)
        f->n_skip[layer] = SKIP_PASSES;
}

/* What the next layer's router says of some columns. */
static ebb_status predict_next(ebb_forward *r, const ebb_layer *next, uint32_t *n_tokens, ebb_error *err)
{
    const ebb_net *net = r->net;
    unsigned kind = ebb_kernel_act(next->experts.router.type);
    size_t bytes = ebb_act_col_bytes(kind, net->n_embd);
    ebb_mat m = { .w = &next->experts.router, .y = r->moe.prediction.scores, .y_stride = net->n_expert };
    static const ebb_norm none;
    const ebb_norm *norm = net->router_is_early ? &none :
                           next->experts.router_norm.is_on ? &next->experts.router_norm : &next->ffn_norm;
    float *h = ebb_forward_floats(r, 0);
    ebb_columns all = r->cols, some = { .in_k = net->n_embd, .in_acts = 1u << kind };
    ebb_status st;

    memcpy(some.act, r->moe.gathered, sizeof some.act);  /* the input of this layer's experts stays */
    for (uint32_t c = all.c0; c < all.c1; c += token_stride(r), some.c1++) {
        const float *x = r->buf.x + (size_t)c * net->n_embd;

        if (norm->is_on)
            ebb_norm_row(r, norm, h, x, net->n_embd);
        r->kern->quantize[kind](norm->is_on ? h : x, net->n_embd, (char *)some.act[kind] + some.c1 * bytes);
    }
    r->cols = some;
    st = ebb_op_matmul(r, &m, 1, 0, err);
    r->cols = all;
    *n_tokens = some.c1;
    return st;
}

/* Prefetch the experts that are probable enough, the most probable of a column first. */
static void prefetch_likely(ebb_forward *r, const ebb_layer *next, uint32_t layer)
{
    ebb_expert_prediction *f = &r->moe.prediction;
    const ebb_net *net = r->net;
    uint32_t used = net->n_expert_used;

    for (uint32_t e = 0; e < net->n_expert; e++)
        f->miss_chance[e] = 1;
    for (uint32_t k = 0; k < f->n_tokens * used; k++)
        f->miss_chance[f->chosen[k]] *= powf(1 - f->confidence[(size_t)layer * used + k % used],
                                             (float)token_stride(r));
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t k = 0; k < f->n_tokens; k++) {
            uint32_t e = f->chosen[k * used + i];

            if (f->miss_chance[e] <= 1 - CONFIDENCE_LEAST)
                ebb_res_prefetch_expert(r->res, ebb_expert_extent(net, &next->experts, e));
        }
}

ebb_status ebb_expert_prefetch(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    uint32_t layer = (uint32_t)(l - net->layers) + 1;
    ebb_expert_prediction *f = &r->moe.prediction;
    ebb_status st;

    learn_accuracy(r, layer - 1);
    f->layer = UINT32_MAX;
    if (layer >= net->n_layers || !ebb_res_streams_experts(r->res) || !ebb_weight_exists(&l[1].experts.router) ||
        !ebb_res_is_resident(r->res, net->matrices[l[1].experts.router.matrix].extent))
        return EBB_OK;
    if (f->n_skip[layer] > 0) {
        f->n_skip[layer]--;
        return EBB_OK;
    }
    st = predict_next(r, &l[1], &f->n_tokens, err);
    if (st != EBB_OK)
        return st;
    for (uint32_t k = 0; k < f->n_tokens; k++)
        ebb_moe_choose(r, &l[1].experts, f->scores + (size_t)k * net->n_expert,
                       f->chosen + (size_t)k * net->n_expert_used);
    f->layer = layer;
    prefetch_likely(r, &l[1], layer);
    return EBB_OK;
}
