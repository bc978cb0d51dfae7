/* Layers with a state: their kinds, their sizes, and what goes before and behind them (recurrent.h). */
#include "model/recurrent.h"

static const ebb_recurrent_class *const classes[] = {
    [EBB_RECURRENT_DELTA_NET] = &ebb_recurrent_delta_net, [EBB_RECURRENT_CONV] = &ebb_recurrent_conv,
    [EBB_RECURRENT_MAMBA2] = &ebb_recurrent_mamba2, [EBB_RECURRENT_MAMBA] = &ebb_recurrent_mamba,
};

/* -- Sizes ------------------------------------------------------------------------ */

static size_t whole_lines(size_t floats)
{
    return (floats * sizeof(float) + 63) / 64 * 64;
}

size_t ebb_recurrent_state_bytes(const ebb_net *net, ebb_recurrent_kind kind)
{
    return whole_lines(classes[kind]->state_floats(net));
}

size_t ebb_recurrent_log_bytes(const ebb_net *net, ebb_recurrent_kind kind)
{
    return whole_lines(classes[kind]->log_floats(net));
}

size_t ebb_recurrent_thread_floats(const ebb_net *net)
{
    size_t most = 0;

    for (uint32_t i = 0; i < net->n_layers; i++) {
        ebb_recurrent_kind kind = net->layers[i].recurrent.kind;
        size_t conv = kind ? ebb_conv_state_floats(net, EBB_CONV_CHANNELS) : 0;
        size_t more = kind && classes[kind]->thread_floats ? classes[kind]->thread_floats(net) : 0;

        most = conv > most ? conv : most;
        most = more > most ? more : most;
    }
    return most;
}

/* -- A layer -------------------------------------------------------------------------- */

static ebb_status project(ebb_forward *r, const ebb_layer *layer, ebb_error *err)
{
    const ebb_recurrent *l = &layer->recurrent;
    const struct { const ebb_weight *w; float *y;
    } all[] = {
        { &l->in, r->recurrent.in },
        { &l->z, r->recurrent.z },
        { &l->alpha, r->recurrent.alpha },
        { &l->beta, r->recurrent.beta },
    };
    ebb_mat mats[EBB_MAX_MATS];
    unsigned acts = 0;
    uint32_t n = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!ebb_weight_exists(all[i].w))
            continue;
        mats[n++] = (ebb_mat){ all[i].w, all[i].y + (size_t)r->cols.c0 * all[i].w->n_rows, all[i].w->n_rows };
        acts |= ebb_act_bit(all[i].w);
    }
    ebb_op_norm(r, &layer->attn_norm, acts);
    return ebb_op_matmul(r, mats, n, 0, err);
}

ebb_status ebb_op_recurrent(ebb_forward *r, uint32_t i_layer, bool is_beside, ebb_error *err)
{
    const ebb_layer *layer = &r->net->layers[i_layer];
    const ebb_recurrent *l = &layer->recurrent;
    ebb_status st = project(r, layer, err);

    if (st == EBB_OK)
        st = classes[l->kind]->advance(r, l, err);
    if (st != EBB_OK)
        return st;
    if (i_layer == r->net->last_mixing_layer && !is_beside)
        r->cols.c0 = ebb_batch_wanted(r->batch);
    if (r->cols.c0 == r->cols.c1)
        return EBB_OK;
    ebb_op_input(r, r->buf.y, l->out.n_k, ebb_act_bit(&l->out));
    st = ebb_op_add(r, &l->out, &layer->attn_post_norm, err);
    r->residual.y_waits = is_beside;                      /* attention sees the x that this has seen */
    return st;
}

void ebb_forward_settle_state(ebb_forward *r, char *state, uint32_t state_pos, uint32_t pos)
{
    ebb_batch_seq nothing = { .state = state, .state_pos = state_pos, .commit_pos = pos, .pos0 = pos };
    ebb_batch none = { .seqs = &nothing, .n_seqs = 1 };

    r->batch = &none;
    r->cols = (ebb_columns){ 0 };
    for (uint32_t i = 0; i < r->net->n_layers; i++) {
        const ebb_recurrent *l = &r->net->layers[i].recurrent;

        if (l->kind)                             /* nothing is read without columns, so nothing can fail */
            (void)!classes[l->kind]->advance(r, l, NULL);
    }
    r->batch = NULL;
}
