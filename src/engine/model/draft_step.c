/* A draft token by the draft head: a pass of one token through the head alone (forward.h). */
#include <math.h>

#include "model/weight_view.h"

#define SLICE_ROWS 128u          /* of a slice: as many as those of few columns have elsewhere */
#define RUN_UNIT   64u           /* a run of rows ends at a multiple: it is of one part then */

typedef struct rows_job {
    const ebb_forward    *r;
    const ebb_draft_step *p;
    ebb_weight_view       held;
} rows_job;

/* How many of the rows, n at most, are neighbours. */
static uint32_t run_length(const uint32_t *rows, uint32_t n)
{
    uint32_t i = 1;

    while (i < n && rows[i] == rows[0] + i && rows[i] % RUN_UNIT != 0)
        i++;
    return i;
}

static void rows_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const rows_job *job = arg;
    const ebb_draft_step *p = job->p;
    uint32_t n_vocab = job->r->net->n_vocab, i = slice * SLICE_ROWS, n;
    uint32_t end = p->n_rows - i < SLICE_ROWS ? p->n_rows : i + SLICE_ROWS;

    for (; i < end; i += n) {
        const void *next;

        n = run_length(p->rows + i, end - i);
        next = i + n < p->n_rows ? ebb_weight_view_row(&job->held, p->rows[i + n]) : NULL;
        ebb_weight_view_multiply(job->r, &job->r->cols, &job->held, p->rows[i], n, p->logits + p->rows[i], n_vocab,
                                 thread, next);
    }
}

/* Rows in place: all parts of the output are held for as long as it takes. */
static ebb_status multiply_rows(ebb_forward *r, const ebb_weight *output, const ebb_draft_step *p, ebb_error *err)
{
    rows_job job;
    ebb_status st = EBB_OK;

    job.r = r;
    job.p = p;
    for (uint32_t i = 0; i < r->net->n_vocab; i++)
        p->logits[i] = -INFINITY;
    ebb_weight_view_init(r, &job.held, output);
    while (st == EBB_OK && job.held.end < job.held.m->n_parts)
        st = ebb_weight_view_acquire(r, &job.held, err);
    if (st == EBB_OK)
        ebb_forward_slices(r, rows_slice, &job, (p->n_rows + SLICE_ROWS - 1) / SLICE_ROWS);
    ebb_weight_view_release(r, &job.held);
    return st == EBB_OK ? ebb_op_finish_logits(r, p->logits, err) : st;
}

static ebb_status run_head(ebb_forward *r, const ebb_draft_step *p, ebb_error *err)
{
    const ebb_net *net = r->net;
    const ebb_weight *output = ebb_net_draft_output(net);
    ebb_status st = ebb_op_draft_join(r, err);

    if (st == EBB_OK)
        st = ebb_block_layer(r, net->n_layers, err);
    if (st != EBB_OK)
        return st;
    ebb_op_norm(r, &(ebb_norm){ .is_on = false }, 0);    /* the last block's output is still to be added to x */
    ebb_norm_row(r, &net->draft_head.norm, p->hidden, r->buf.x, net->n_embd);
    ebb_op_input(r, p->hidden, net->n_embd, ebb_act_bit(output));
    if (p->n_rows > 0 && net->logit_softcap == 0)
        return multiply_rows(r, output, p, err);
    return ebb_op_logits(r, output, p->logits, err);
}

ebb_status ebb_forward_draft(ebb_forward *r, const ebb_draft_step *p, ebb_error *err)
{
    ebb_batch_seq s = { .ids = &p->id, .n = 1, .pos0 = p->pos, .table = p->table, .n_out = 1, .hidden = p->hidden };
    ebb_batch b = { .seqs = &s, .n_seqs = 1, .n = 1 };
    ebb_status st = ebb_forward_begin(r, &b, err);

    return ebb_forward_close(r, st == EBB_OK ? run_head(r, p, err) : st, err);
}
