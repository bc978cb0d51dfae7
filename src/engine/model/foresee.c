/* Which experts the next layer may choose (run.h).
 *
 * The residual stream changes little from layer to layer: what the next layer's norm and router say of it as it
 * stands before this layer's experts is often what they will say (Eliseev and Mazur 2023, "Fast Inference of
 * Mixture-of-Experts Language Models with Offloading", sec. 3.2).  So these are read while this layer's experts
 * are computed.  A guess costs a small product and, if it is wrong, some of the disk's time, never a bit of
 * the answer.  How often the i-th guess of a layer is right is measured all the time; those that are not often enough are
 * not read, and where none is, guessing rests for some passes. */
#include <math.h>
#include <string.h>

#include "model/run.h"

#define ALIGN      64u
#define COLS       32u           /* looked at, spread over those of the pass */
#define SURE_FIRST 0.6f          /* before anything is known */
#define SURE_LEAST 0.5f          /* that is worth a read */
#define LEARN_OVER 24            /* passes */
#define REST       15u           /* passes */

void ebb_foresee_layout(ebb_run *r, ebb_arena *a)
{
    const ebb_net *net = r->net;

    r->foreseen.scores = ebb_arena_take_rows(a, COLS, net->n_expert, sizeof(float), ALIGN);
    r->foreseen.chosen = ebb_arena_take_rows(a, COLS, net->n_expert_used, sizeof(uint32_t), ALIGN);
    r->foreseen.unsure = ebb_arena_take_rows(a, 1, net->n_expert, sizeof(float), ALIGN);
    r->foreseen.sure = ebb_arena_take_rows(a, net->n_layers, net->n_expert_used, sizeof(float), ALIGN);
    r->foreseen.n_rest = ebb_arena_take_rows(a, 1, net->n_layers, sizeof(uint32_t), ALIGN);
}

void ebb_foresee_init(ebb_run *r)
{
    const ebb_net *net = r->net;

    for (size_t i = 0; i < (size_t)net->n_layers * net->n_expert_used; i++)
        r->foreseen.sure[i] = SURE_FIRST;
    memset(r->foreseen.n_rest, 0, net->n_layers * sizeof *r->foreseen.n_rest);
    r->foreseen.layer = UINT32_MAX;
}

/* Every how many columns one is looked at. */
static uint32_t step(const ebb_run *r)
{
    return (r->c1 - r->c0 + COLS - 1) / COLS;
}

static bool was_chosen(const ebb_run *r, uint32_t c, uint32_t e)
{
    const uint32_t *chosen = r->chosen + (size_t)c * r->net->n_expert_used;

    for (uint32_t i = 0; i < r->net->n_expert_used; i++)
        if (chosen[i] == e)
            return true;
    return false;
}

/* This layer has chosen: how good was the guess? */
static void judge(ebb_run *r, uint32_t layer)
{
    ebb_foreseen *f = &r->foreseen;
    uint32_t used = r->net->n_expert_used, n = (r->c1 - r->c0 + step(r) - 1) / step(r);
    float best = 0;

    if (f->layer != layer || f->n_cols != n)
        return;
    for (uint32_t i = 0; i < used; i++) {
        float *sure = &f->sure[(size_t)layer * used + i];
        uint32_t n_right = 0;

        for (uint32_t k = 0; k < n; k++)
            n_right += was_chosen(r, r->c0 + k * step(r), f->chosen[k * used + i]);
        *sure += ((float)n_right / (float)n - *sure) / LEARN_OVER;
        best = *sure > best ? *sure : best;
    }
    if (best < SURE_LEAST)
        f->n_rest[layer] = REST;
}

/* What the next layer's router says of some columns. */
static ebb_status look(ebb_run *r, const ebb_layer *next, uint32_t *n_cols, ebb_error *err)
{
    const ebb_net *net = r->net;
    unsigned kind = ebb_kernel_act(next->experts.router.type);
    size_t bytes = ebb_act_col_bytes(kind, net->n_embd);
    ebb_mat m = { .w = &next->experts.router, .y = r->foreseen.scores, .y_stride = net->n_expert };
    float *h = ebb_run_floats(r, 0);
    ebb_run sub = *r;
    ebb_status st;

    memcpy(sub.act, r->gathered, sizeof sub.act);        /* the input of this layer's experts stays */
    sub.in_k = net->n_embd;
    sub.in_acts = 1u << kind;
    sub.c0 = sub.c1 = 0;
    for (uint32_t c = r->c0; c < r->c1; c += step(r), sub.c1++) {
        const float *x = r->x + (size_t)c * net->n_embd;

        if (next->ffn_norm.is_on)
            ebb_norm_row(r, &next->ffn_norm, h, x, net->n_embd);
        r->kern->quantize[kind](next->ffn_norm.is_on ? h : x, net->n_embd, (char *)sub.act[kind] + sub.c1 * bytes);
    }
    st = ebb_op_matmul(&sub, &m, 1, 0, err);
    ebb_run_take_time(r, &sub);
    *n_cols = sub.c1;
    return st;
}

/* Read what is sure enough, the surest of a column first. */
static void ask(ebb_run *r, const ebb_layer *next, uint32_t layer)
{
    ebb_foreseen *f = &r->foreseen;
    const ebb_net *net = r->net;
    uint32_t used = net->n_expert_used;

    for (uint32_t e = 0; e < net->n_expert; e++)
        f->unsure[e] = 1;
    for (uint32_t k = 0; k < f->n_cols * used; k++)
        f->unsure[f->chosen[k]] *= powf(1 - f->sure[(size_t)layer * used + k % used], (float)step(r));
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t k = 0; k < f->n_cols; k++) {
            uint32_t e = f->chosen[k * used + i];

            if (f->unsure[e] <= 1 - SURE_LEAST)
                ebb_res_guess(r->res, ebb_expert_extent(net, &next->experts, e));
        }
}

ebb_status ebb_foresee(ebb_run *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_net *net = r->net;
    uint32_t layer = (uint32_t)(l - net->layers) + 1;
    ebb_foreseen *f = &r->foreseen;
    ebb_status st;

    judge(r, layer - 1);
    f->layer = UINT32_MAX;
    if (layer == net->n_layers || !ebb_res_streams_experts(r->res) || !ebb_weight_is(&l[1].experts.router) ||
        !ebb_res_is_resident(r->res, net->matrices[l[1].experts.router.matrix].extent))
        return EBB_OK;
    if (f->n_rest[layer] > 0) {
        f->n_rest[layer]--;
        return EBB_OK;
    }
    st = look(r, &l[1], &f->n_cols, err);
    if (st != EBB_OK)
        return st;
    for (uint32_t k = 0; k < f->n_cols; k++)
        ebb_mixture_choose(r, &l[1].experts, f->scores + (size_t)k * net->n_expert, f->chosen + (size_t)k * net->n_expert_used);
    f->layer = layer;
    ask(r, &l[1], layer);
    return EBB_OK;
}
