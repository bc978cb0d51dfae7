/* What the parts of a layer must agree in, whichever architecture has bound them (bind.h).  Most of it follows from the
 * shapes of its tensors; an array of the metadata can contradict what a layer takes from the network or from another
 * layer, whose tensors have shapes of their own. */
#include "model/arch.h"

static bool has_rows(const ebb_weight *w, uint64_t n_rows)
{
    return !ebb_weight_exists(w) || w->n_rows == n_rows;
}

/* Latent attention takes its heads from the network. */
static bool are_heads_latent(const ebb_net *net, const ebb_layer *l)
{
    const ebb_heads *h = &l->heads;

    return h->n == net->n_head && h->n_kv == net->n_head_kv && h->dim_k == net->dim_k && h->dim_v == net->dim_v;
}

static bool are_heads_of_tensors(const ebb_layer *l)
{
    const ebb_heads *h = &l->heads;
    uint64_t n_q = (uint64_t)h->n * h->dim_k, n_y = (uint64_t)h->n * h->dim_v;

    return h->n_kv > 0 && l->q.n_rows == n_q && l->o.n_k == n_y && has_rows(&l->head_gate, n_y) &&
           has_rows(&l->k, (uint64_t)h->n_kv * h->dim_k) && has_rows(&l->v, (uint64_t)h->n_kv * h->dim_v);
}

static void check_heads(ebb_binder *b, const ebb_layer *l)
{
    bool is_right = ebb_weight_exists(&l->latent.kv_a) ? are_heads_latent(b->net, l) : are_heads_of_tensors(l);

    if (!is_right)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention: %u heads and %u KV heads are not those of layer %u's "
                                     "tensors", b->net->arch->name, l->heads.n, l->heads.n_kv, b->layer);
}

static void check_kv_layer(ebb_binder *b, const ebb_layer *l)
{
    const ebb_heads *h = &l->heads, *from = &b->net->layers[l->kv_layer].heads;

    if (h->n_kv != from->n_kv || h->dim_k != from->dim_k || h->dim_v != from->dim_v)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.attention: layer %u wants K and V of %u heads of %u and %u, and "
                                     "shares those of layer %u, which has %u of %u and %u", b->net->arch->name,
                      b->layer, h->n_kv, h->dim_k, h->dim_v, l->kv_layer, from->n_kv, from->dim_k, from->dim_v);
}

static void check_rope(ebb_binder *b, const ebb_layer *l)
{
    if (l->rope != EBB_NO_ROPE && b->net->ropes[l->rope].n_rot > l->heads.dim_k)
        ebb_bind_fail(b, EBB_FORMAT, "metadata %s.rope: %u elements are rotated in layer %u, whose heads have %u",
                      b->net->arch->name, b->net->ropes[l->rope].n_rot, b->layer, l->heads.dim_k);
}

void ebb_bind_check_layer(ebb_binder *b, const ebb_layer *l)
{
    if (b->st == EBB_OK && l->n_ff > b->net->n_ff)       /* a draft head's own */
        b->net->n_ff = l->n_ff;
    if (b->st != EBB_OK || !ebb_weight_exists(&l->o))
        return;
    check_heads(b, l);
    check_kv_layer(b, l);
    check_rope(b, l);
}
