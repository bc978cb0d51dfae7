/* The forward pass (run.h). */
#include "model/run.h"

#include <string.h>

#include "model/arch.h"

#define ALIGN 64u

/* -- Buffers ------------------------------------------------------------------- */

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static float *take_floats(ebb_arena *a, size_t n)
{
    return ebb_arena_take(a, n * sizeof(float), ALIGN);
}

/* q, k and v, and in the same memory the feed-forward's columns. */
static void layout_wide(ebb_run *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_cols, from = (a->used + ALIGN - 1) / ALIGN * ALIGN, end;
    ebb_arena ff = { .base = a->base, .used = from, .cap = a->cap };

    r->q = take_floats(a, cols * net->n_head * net->dim_k);
    r->k = take_floats(a, cols * net->n_head_kv * net->dim_k);
    r->v = take_floats(a, cols * net->n_head_kv * net->dim_v);
    end = a->used;
    r->ff = take_floats(&ff, cols * net->n_ff);
    a->used = max_size(end, ff.used);
}

void ebb_run_layout(ebb_run *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_cols;

    r->x = take_floats(a, cols * net->n_embd);
    r->y = take_floats(a, cols * max_size(net->n_embd, (size_t)net->n_head * net->dim_v));
    layout_wide(r, a);
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (net->acts >> kind & 1)
            r->act[kind] = ebb_arena_take(a, cols * ebb_act_col_bytes((ebb_act)kind, net->max_k), ALIGN);
    for (uint32_t i = 0; i < net->n_ropes; i++) {
        r->cos_sin[i] = take_floats(a, cols * net->ropes[i].n_rot);
        r->freqs[i] = ebb_arena_take(a, net->ropes[i].n_rot / 2 * sizeof(double), ALIGN);
    }
    r->parts = take_floats(a, ebb_attend_part_floats(r));
    r->logits = take_floats(a, (size_t)r->cap_logits * net->n_vocab);
    /* a thread's floats: a normed column, or a slice of up; also the raw bytes of a row of token_embd */
    r->thread_bytes = EBB_KERNEL_SCRATCH +
                      max_size(max_size(net->n_embd, cols * EBB_SLICE_ROWS) * sizeof(float), net->embd_row_bytes);
    r->thread_bytes = (r->thread_bytes + ALIGN - 1) / ALIGN * ALIGN;
    r->thread = ebb_arena_take(a, r->thread_bytes * r->n_threads, ALIGN);
}

void ebb_run_init(ebb_run *r)
{
    for (uint32_t i = 0; i < r->net->n_ropes; i++)
        ebb_rope_freqs(&r->net->ropes[i], r->n_ctx, r->freqs[i]);
}

/* -- A pass -------------------------------------------------------------------- */

/* x = token_embd[id], a row at a time from wherever it is. */
static ebb_status embed(ebb_run *r, const ebb_token *ids, uint32_t n, ebb_error *err)
{
    const ebb_net *net = r->net;
    const ebb_gguf_tensor *t = net->embd;
    void *row = ebb_run_floats(r, 0);

    for (uint32_t c = 0; c < n; c++) {
        float *x = r->x + (size_t)c * net->n_embd;
        ebb_status st;

        if (ids[c] < 0 || (uint32_t)ids[c] >= net->n_vocab)
            return EBB_FAIL(err, EBB_USAGE, "token %d is not in the vocabulary of %u", (int)ids[c], net->n_vocab);
        st = ebb_res_read(r->res, t->part, t->offset + (uint64_t)ids[c] * net->embd_row_bytes, row,
                          net->embd_row_bytes, err);
        if (st != EBB_OK)
            return st;
        r->kern->dequantize[t->type](row, net->n_embd, x);
        if (net->embd_scale != 1.0f)
            r->kern->scale(x, net->embd_scale, net->n_embd);
    }
    return EBB_OK;
}

static ebb_status layers(ebb_run *r, ebb_error *err)
{
    for (uint32_t i = 0; i < r->net->n_layers; i++) {
        ebb_status st;

        if (r->cancel && atomic_load_explicit(r->cancel, memory_order_relaxed))
            return EBB_FAIL(err, EBB_CANCELED, "stopped in layer %u", i);
        st = r->net->arch->layer(r, i, err);
        if (st != EBB_OK)
            return st;
    }
    return EBB_OK;
}

/* Logits of the columns that are still active, some at a time. */
static ebb_status output(ebb_run *r, const ebb_pass *p, ebb_error *err)
{
    const ebb_net *net = r->net;
    uint32_t end = r->c1;

    ebb_op_norm(r, net->output_norm, ebb_act_bit(&net->output));
    for (; r->c0 < end; r->c0 = r->c1) {
        ebb_mat m = { .w = &net->output, .y = p->logits ? p->logits : r->logits, .y_stride = net->n_vocab };
        ebb_status st;

        r->c1 = end - r->c0 < r->cap_logits ? end : r->c0 + r->cap_logits;
        st = ebb_op_matmul(r, &m, 1, net->logit_softcap, err);
        if (st != EBB_OK)
            return st;
        if (p->each)
            p->each(p->arg, r->c0, r->c1 - r->c0, m.y);
    }
    return EBB_OK;
}

ebb_status ebb_run_pass(ebb_run *r, const ebb_pass *p, ebb_error *err)
{
    ebb_status st;

    r->table = p->table;
    r->pos0 = p->pos0;
    r->n = p->n;
    r->n_out = p->n_out;
    r->c0 = 0;
    r->c1 = p->n;
    r->has_y = false;
    st = embed(r, p->ids, p->n, err);
    if (st != EBB_OK)
        return st;
    for (uint32_t i = 0; i < r->net->n_ropes; i++)
        ebb_rope_table(&r->net->ropes[i], r->freqs[i], p->pos0, p->n, r->cos_sin[i]);
    st = layers(r, err);
    return st == EBB_OK && p->n_out > 0 ? output(r, p, err) : st;
}
