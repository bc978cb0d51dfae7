/* A guess of the draft head: a pass of one column through it alone (forward.h). */
#include "model/forward.h"

static ebb_status run_head(ebb_forward *r, const ebb_draft_step *p, ebb_error *err)
{
    const ebb_net *net = r->net;
    const ebb_weight *output = ebb_net_draft_output(net);
    ebb_status st = ebb_op_draft_join(r, err);

    if (st == EBB_OK)
        st = ebb_block_layer(r, net->n_layers, err);
    if (st != EBB_OK)
        return st;
    ebb_op_norm(r, &(ebb_norm){ .is_on = false }, 0);    /* what is still to be added to x */
    ebb_norm_row(r, &net->draft_head.norm, p->hidden, r->buf.x, net->n_embd);
    ebb_op_input(r, p->hidden, net->n_embd, ebb_act_bit(output));
    return ebb_op_logits(r, output, p->logits, err);
}

ebb_status ebb_forward_draft(ebb_forward *r, const ebb_draft_step *p, ebb_error *err)
{
    ebb_batch b = { .ids = &p->id, .n = 1, .pos0 = p->pos, .table = p->table, .n_out = 1, .hidden = p->hidden };
    ebb_status st = ebb_forward_begin(r, &b, err);

    return ebb_forward_close(r, st == EBB_OK ? run_head(r, p, err) : st, err);
}
