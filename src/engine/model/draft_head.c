/* The draft head (net.h, forward.h): the input of its layer, and its K and V of every pass. */
#include <string.h>

#include "model/forward.h"

/* A sequence's first column whose hidden state is kept. */
static uint32_t first_kept(const ebb_forward *r, const ebb_batch_seq *s)
{
    return s->c0 + s->n - ebb_batch_seq_kept(r, s);
}

void ebb_op_keep_hidden(ebb_forward *r)
{
    size_t n = r->net->n_embd;
    float *to = r->buf.hidden;

    ebb_op_norm(r, &(ebb_norm){ .is_on = false }, 0);    /* what is still to be added to x */
    for (uint32_t i = 0; i < r->batch->n_seqs; i++) {
        const ebb_batch_seq *s = &r->batch->seqs[i];

        for (uint32_t c = first_kept(r, s); c < s->c0 + s->n; c++, to += n)
            ebb_norm_row(r, &r->net->output_norm, to, r->buf.x + c * n, n);
    }
}

/* -- The input of its layer -------------------------------------------------------- */

/* Both halves of a column, normed.  The state is that of the column before. */
static void join_column(void *arg, uint32_t c, uint32_t thread)
{
    const ebb_forward *r = arg;
    const ebb_draft_head *head = &r->net->draft_head;
    const ebb_batch_seq *s = ebb_batch_seq_of(r->batch, c);
    size_t n = r->net->n_embd;
    float *both = ebb_forward_floats(r, thread), *g = both + 2 * n;

    ebb_norm_row(r, &head->token_norm, both, r->buf.y + c * n, n);
    if (c > s->c0 || s->n_before > 0)
        ebb_norm_row(r, &r->net->output_norm, g, r->buf.x + (c > s->c0 ? c - 1 : s->n_before - 1) * n, n);
    else if (s->hidden)
        memcpy(g, s->hidden, n * sizeof *g);
    else                                         /* a sequence begins, or goes on from K and V that were found */
        memset(g, 0, n * sizeof *g);
    ebb_norm_row(r, &head->state_norm, both + n, g, n);
    ebb_input_part(r, c, 0, 2 * n, both);
}

ebb_status ebb_op_draft_join(ebb_forward *r, ebb_error *err)
{
    const ebb_draft_head *head = &r->net->draft_head;
    const ebb_batch *b = r->batch;
    size_t n = r->net->n_embd;
    ebb_mat m = { .w = &head->join, .y = r->buf.x, .y_stride = n };
    ebb_status st = EBB_OK;

    for (uint32_t c = 0; c < b->n && st == EBB_OK; c++) {
        const ebb_batch_seq *s = ebb_batch_seq_of(b, c);

        st = ebb_run_embed(r, head->embd, s->ids[c - s->c0], r->buf.y + c * n, err);
    }
    if (st != EBB_OK)
        return st;
    ebb_input_begin(r, 2 * (uint32_t)n, ebb_act_bit(&head->join));
    ebb_forward_slices(r, join_column, r, b->n);
    return ebb_op_matmul(r, &m, 1, 0, err);
}

ebb_status ebb_op_draft_kv(ebb_forward *r, ebb_error *err)
{
    ebb_status st = ebb_op_draft_join(r, err);

    return st == EBB_OK ? ebb_block_kv(r, r->net->n_layers, err) : st;
}
