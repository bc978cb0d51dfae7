/* The residual streams of Gemma 3n (altup.c): spread, predicted and corrected by a layer, gathered (bind.h). */
#include "model/arch.h"

void ebb_bind_spread(ebb_binder *b)
{
    ebb_net *net = b->net;

    ebb_bind_stack(b, &net->streams.spread, "altup_proj", net->streams.n - 1, net->n_embd, net->n_embd);
}

void ebb_bind_altup(ebb_binder *b, ebb_layer *l)
{
    const ebb_net *net = b->net;
    ebb_altup *a = &l->altup;
    uint32_t n = net->streams.n, rank = (uint32_t)ebb_bind_row_count(b, "laurel_l");

    ebb_bind_norm(b, &a->router_norm, "altup_router_norm", net->n_embd);
    ebb_bind_table(b, &a->router, "altup_router", n, net->n_embd);
    ebb_bind_table(b, &a->predict, "altup_predict_coef", n * n, n);
    ebb_bind_table(b, &a->correct, "altup_correct_coef", n, n);
    ebb_bind_vector(b, &a->scale, "altup_correct_scale", net->n_embd, true);
    ebb_bind_matrix(b, &a->down, "laurel_l", rank, net->n_embd);
    if (b->st == EBB_OK && rank > net->n_ff)     /* it is computed in the buffer of the feed-forward */
        ebb_bind_fail(b, EBB_FORMAT, "tensor blk.%u.laurel_l.weight: %u rows, more than the feed-forward has",
                      b->layer, rank);
    ebb_bind_matrix(b, &a->up, "laurel_r", net->n_embd, rank);
    ebb_bind_norm(b, &a->norm, "laurel_post_norm", net->n_embd);
}

void ebb_bind_gather(ebb_binder *b)
{
    static const char what[] = "altup_unembd_proj";
    ebb_net *net = b->net;
    ebb_weight *g = net->streams.gather;

    ebb_bind_stack(b, &g[0], what, net->streams.n - 1, net->n_embd, net->n_embd);
    g[0].n_rows = net->n_embd;
    for (uint32_t i = 1; b->st == EBB_OK && i + 1 < net->streams.n; i++) {
        g[i] = g[0];
        g[i].first = i * net->n_embd;
        ebb_bind_scale(b, &g[i], what);
    }
}
