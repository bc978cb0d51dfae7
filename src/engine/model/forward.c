/* The forward pass (forward.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/forward.h"

#define ALIGN 64u

/* -- Buffers ------------------------------------------------------------------- */

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* [n_rows][n] */
static float *take_floats(ebb_arena *a, size_t n_rows, size_t n)
{
    return ebb_arena_take_rows(a, n_rows, n, sizeof(float), ALIGN);
}

static void layout_attention(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_tokens;

    r->buf.q = take_floats(a, cols, (size_t)net->max_q * r->unit);
    r->buf.k = take_floats(a, cols, net->max_k_row);
    r->buf.v = take_floats(a, cols, net->max_v_row);
    if (net->has_head_gate)
        r->buf.head_gate = take_floats(a, cols, net->max_y);
}

static void layout_recurrent(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_tokens;

    r->recurrent.in = take_floats(a, cols, net->max_in);
    r->recurrent.z = take_floats(a, cols, net->max_z);
    r->recurrent.alpha = take_floats(a, cols, net->max_alpha);
    r->recurrent.beta = take_floats(a, cols, net->max_beta);
}

static bool has_cutoff(const ebb_net *net)
{
    for (uint32_t i = 0; i < net->n_layers; i++)
        if (net->layers[i].gate_cutoff > 0)
            return true;
    return false;
}

static void layout_ff(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;

    if (has_cutoff(net))
        r->buf.up = take_floats(a, r->cap_tokens, net->n_ff);
    r->buf.ff = take_floats(a, r->cap_tokens, max_size(max_size(net->n_ff, net->n_ff_expert), net->n_embd_layer));
    if (net->has_mixture_beside)
        r->buf.beside = take_floats(a, r->cap_tokens, net->n_embd);
}

/* What a part of a layer holds shares its memory with the other parts. */
static void layout_wide(ebb_forward *r, ebb_arena *a)
{
    static void (*const parts[])(ebb_forward *, ebb_arena *) = { layout_attention, layout_recurrent, layout_ff };
    size_t from, end;

    (void)ebb_arena_take(a, 0, ALIGN);
    from = end = a->used;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        a->used = from;
        parts[i](r, a);
        end = max_size(end, a->used);
    }
    a->used = end;
}

/* Of per-layer embeddings: the raw row, and behind it its floats. */
static size_t layer_row_bytes(const ebb_net *net)
{
    size_t n = (size_t)net->n_layers * net->n_embd_layer;

    return n ? ebb_layer_row_at(net) + n * sizeof(float) : 0;
}

void ebb_forward_layout(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_tokens, floats;

    r->buf.x = take_floats(a, cols, net->n_embd);
    r->buf.y = take_floats(a, cols, max_size(net->n_embd, net->max_y));
    layout_wide(r, a);
    r->buf.layer_input = take_floats(a, cols, (size_t)net->n_layers * net->n_embd_layer);
    if (net->streams.n) {
        r->buf.streams = take_floats(a, cols, (size_t)net->streams.n * net->n_embd);
        r->buf.laurel = take_floats(a, cols, net->n_embd);
    }
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (net->acts >> kind & 1)
            r->buf.act[kind] = ebb_arena_take_rows(a, cols, ebb_act_col_bytes((ebb_act)kind, net->max_k), 1, ALIGN);
    for (uint32_t i = 0; i < net->n_ropes; i++) {
        r->buf.cos_sin[i] = take_floats(a, cols, net->ropes[i].n_rot);
        r->buf.freqs[i] = ebb_arena_take_rows(a, 1, net->ropes[i].n_rot / 2, sizeof(double), ALIGN);
    }
    if (net->dim_latent)
        ebb_latent_layout(r, a);
    if (net->n_expert)
        ebb_moe_layout(r, a);
    if (net->state_bytes) {
        r->recurrent.state = ebb_arena_take_rows(a, r->n_states, net->state_bytes, 1, ALIGN);
        r->recurrent.state_log = ebb_arena_take_rows(a, r->n_state_log, net->state_log_bytes, 1, ALIGN);
    }
    r->buf.parts = take_floats(a, 1, ebb_attend_part_floats(r));
    r->buf.logits = take_floats(a, r->cap_logits, net->n_vocab);
    if (net->has_draft_head)
        r->buf.hidden = take_floats(a, r->cap_hidden, net->n_embd);
    /* a thread's floats: a normed column, or what a draft head joins, a slice of gate and up, scores of experts, a row
     * of K or V, a part of a state; also the raw bytes of a row of token_embd */
    floats = max_size(net->has_draft_head ? 3 * (size_t)net->n_embd : net->n_embd, 2 * cols * EBB_SLICE_ROWS);
    floats = max_size(floats, net->state_bytes ? ebb_recurrent_thread_floats(net) : 0);
    floats = max_size(floats, max_size(net->n_expert, (size_t)r->unit * net->max_dim));
    r->buf.thread_bytes = EBB_KERNEL_SCRATCH +
                          max_size(floats * sizeof(float), max_size(net->embd_row_bytes, layer_row_bytes(net)));
    r->buf.thread_bytes = (r->buf.thread_bytes + ALIGN - 1) / ALIGN * ALIGN;
    r->buf.thread = ebb_arena_take_rows(a, EBB_POOL_SCRATCHES(r->n_threads), r->buf.thread_bytes, 1, ALIGN);
}

void ebb_forward_init(ebb_forward *r)
{
    for (uint32_t i = 0; i < r->net->n_ropes; i++)
        ebb_rope_freqs(&r->net->ropes[i], r->n_ctx, r->buf.freqs[i]);
    if (r->net->n_expert)
        ebb_expert_prefetch_init(r);
}

/* -- A pass -------------------------------------------------------------------- */

/* x += positions[pos]: learned positions. */
static ebb_status add_position(ebb_forward *r, uint32_t pos, float *x, ebb_error *err)
{
    float *row = r->buf.y;
    ebb_status st;

    if (pos >= r->net->positions->dims[1])
        return EBB_FAIL(err, EBB_CONTEXT, "tensor %s: has no position %u", r->net->positions->name, pos);
    st = ebb_run_read_row(r, r->net->positions, pos, r->net->n_embd, row, err);
    if (st == EBB_OK)
        r->kern->add(x, row, r->net->n_embd);
    return st;
}

/* x = token_embd[id], a row at a time from wherever it is. */
static ebb_status embed(ebb_forward *r, const ebb_batch_seq *s, ebb_error *err)
{
    const ebb_net *net = r->net;

    for (uint32_t i = 0; i < s->n; i++) {
        float *x = r->buf.x + (size_t)(s->c0 + i) * net->n_embd;
        ebb_status st = ebb_run_embed(r, net->embd, s->ids[i], x, err);

        if (st == EBB_OK && net->positions)
            st = add_position(r, s->pos0 + i, x, err);
        if (st != EBB_OK)
            return st;
    }
    return EBB_OK;
}

static void suppress(const ebb_net *net, float *logits)
{
    for (uint32_t i = 0; i < net->n_suppressed; i++)
        logits[net->suppressed[i]] = -INFINITY;
}

ebb_status ebb_op_finish_logits(ebb_forward *r, float *y, ebb_error *err)
{
    const ebb_net *net = r->net;

    if (ebb_forward_left_work_out(r))
        return EBB_FAIL(err, EBB_CANCELED, "stopped in the output");
    for (uint32_t i = r->cols.c0; i < r->cols.c1; i++, y += net->n_vocab) {
        if (net->logit_scale != 1.0f && net->logit_softcap == 0)
            r->kern->scale(y, net->logit_scale, net->n_vocab);
        suppress(net, y);
    }
    return EBB_OK;
}

ebb_status ebb_op_logits(ebb_forward *r, const ebb_weight *w, float *y, ebb_error *err)
{
    ebb_mat m = { .w = w, .y = y, .y_stride = r->net->n_vocab };
    ebb_status st = ebb_op_matmul(r, &m, 1, r->net->logit_softcap, err);

    return st == EBB_OK ? ebb_op_finish_logits(r, y, err) : st;
}

static ebb_status fail_no_numbers(const ebb_forward *r, ebb_error *err, const char *where, uint32_t i_layer)
{
    char number[16] = "";

    if (i_layer < r->net->n_layers)
        snprintf(number, sizeof number, " %u", i_layer);
    return EBB_FAIL(err, EBB_FORMAT,
                    "%.200s: its %s%s computes no numbers (NaN or infinity): the file is damaged or was converted "
                    "wrongly; download or convert it again", ebb_res_path(r->res), where, number);
}

/* One that is a number is found at once; those that are suppressed are none. */
static bool has_number(const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isfinite(y[i]))
            return true;
    return false;
}

/* Logits of columns [r->cols.c0, r->cols.c1). */
static ebb_status run_output_some(ebb_forward *r, ebb_error *err)
{
    const ebb_batch *p = r->batch;
    float *y = p->logits ? p->logits : r->buf.logits;
    ebb_status st = ebb_op_logits(r, &r->net->output, y, err);

    for (uint32_t i = 0; i < ebb_n_columns(&r->cols) && st == EBB_OK; i++)
        if (!has_number(y + (size_t)i * r->net->n_vocab, r->net->n_vocab))
            st = fail_no_numbers(r, err, "output", r->net->n_layers);
    if (st == EBB_OK && p->each)
        p->each(p->arg, r->cols.c0, ebb_n_columns(&r->cols), y);
    return st;
}

/* Logits of columns [c0, end), some at a time. */
static ebb_status run_output_of(ebb_forward *r, uint32_t c0, uint32_t end, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (r->cols.c0 = c0; r->cols.c0 < end && st == EBB_OK; r->cols.c0 = r->cols.c1) {
        r->cols.c1 = end - r->cols.c0 < r->cap_logits ? end : r->cols.c0 + r->cap_logits;
        st = run_output_some(r, err);
    }
    return st;
}

/* Logits of the columns that are wanted; those beside each other share the reads of the output. */
static ebb_status run_output(ebb_forward *r, ebb_error *err)
{
    const ebb_batch *b = r->batch;
    ebb_status st = r->net->streams.n ? ebb_streams_end(r, err) : EBB_OK;

    ebb_op_norm(r, &r->net->output_norm, ebb_act_bit(&r->net->output));
    for (uint32_t i = 0; i < b->n_seqs && st == EBB_OK;) {
        uint32_t c0 = ebb_batch_seq_wanted(&b->seqs[i]), end = b->seqs[i].c0 + b->seqs[i].n;

        for (i++; i < b->n_seqs && ebb_batch_seq_wanted(&b->seqs[i]) == end; i++)
            end += b->seqs[i].n;
        st = run_output_of(r, c0, end, err);
    }
    return st;
}

/* What says where a sequence's columns are: their tokens, the angles of their positions. */
static ebb_status begin_seq(ebb_forward *r, const ebb_batch_seq *s, ebb_error *err)
{
    ebb_status st = embed(r, s, err);

    for (uint32_t i = 0; i < r->net->n_ropes && st == EBB_OK; i++)
        ebb_rope_table(&r->net->ropes[i], r->buf.freqs[i], s->pos0, s->n,
                       r->buf.cos_sin[i] + (size_t)s->c0 * r->net->ropes[i].n_rot);
    ebb_kv_prefetch_spilled(r->kv, s->table, 0);
    return st;
}

ebb_status ebb_forward_begin(ebb_forward *r, const ebb_batch *b, ebb_error *err)
{
    ebb_status st = EBB_OK;

    r->batch = b;
    r->cols = (ebb_columns){ .c1 = b->n };
    memcpy(r->cols.act, r->buf.act, sizeof r->cols.act);
    r->residual = (ebb_residual){ 0 };
    r->i_layer = 0;
    r->lap_ns = ebb_clock_ns();
    if (r->is_cut)
        atomic_store_explicit(r->is_cut, false, memory_order_relaxed);
    for (uint32_t i = 0; i < b->n_seqs && st == EBB_OK; i++)
        st = begin_seq(r, &b->seqs[i], err);
    if (st == EBB_OK && r->net->n_embd_layer)
        st = ebb_layer_inputs(r, err);
    if (st == EBB_OK && r->net->streams.n)
        st = ebb_streams_begin(r, err);
    return st;
}

bool ebb_forward_has_layer(const ebb_forward *r)
{
    return r->i_layer < r->net->n_layers && r->cols.c0 < r->cols.c1;
}

/* Infinity and NaN are what has every bit of the exponent. */
static bool are_numbers(const float *x, size_t n)
{
    const uint32_t exponent = 0x7f800000u;
    uint32_t bits, n_others = 0;

    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, &x[i], sizeof bits);
        n_others += (bits & exponent) == exponent;
    }
    return n_others == 0;
}

/* The last column's residual stream, with what is still to be added: once it is none of numbers, nothing behind it
 * is.  Of a batch the last one has attended to the others. */
static bool is_sound(const ebb_forward *r)
{
    size_t n = r->net->n_embd, at = (r->cols.c1 - 1) * n;

    if (r->cols.c0 >= r->cols.c1)
        return true;
    return are_numbers(r->buf.x + at, n) && (!r->residual.has_y || are_numbers(r->buf.y + at, n));
}

ebb_status ebb_forward_layer(ebb_forward *r, ebb_error *err)
{
    uint32_t i = r->i_layer++;
    ebb_status st;

    if (ebb_forward_is_stopped(r))
        return EBB_FAIL(err, EBB_CANCELED, "stopped in layer %u", i);
    for (uint32_t k = 0; k < r->batch->n_seqs && r->i_layer < r->net->n_layers; k++)
        ebb_kv_prefetch_spilled(r->kv, r->batch->seqs[k].table, r->i_layer);
    st = ebb_block_layer(r, i, err);
    if (st == EBB_OK && !ebb_forward_left_work_out(r) && !is_sound(r))
        st = fail_no_numbers(r, err, "layer", i);
    if (st == EBB_OK && r->cols.c0 < r->cols.c1)
        atomic_store_explicit(&r->n_layers_done, r->i_layer, memory_order_relaxed);
    return st;
}

/* The logits; and what the draft head will need of the pass, its own K and V. */
static ebb_status run_ends(ebb_forward *r, ebb_error *err)
{
    const ebb_batch *p = r->batch;
    ebb_status st = EBB_OK;

    if (!r->net->has_draft_head)
        return ebb_batch_wanted(p) < p->n ? run_output(r, err) : EBB_OK;
    ebb_op_keep_hidden(r);
    r->cols.c0 = ebb_batch_wanted(p);
    if (r->cols.c0 < p->n)
        st = run_output(r, err);
    r->cols.c0 = 0;
    r->cols.c1 = p->n;
    return st == EBB_OK ? ebb_op_draft_kv(r, err) : st;
}

ebb_status ebb_forward_end(ebb_forward *r, ebb_status st, ebb_error *err)
{
    return ebb_forward_close(r, st == EBB_OK ? run_ends(r, err) : st, err);
}

ebb_status ebb_forward_close(ebb_forward *r, ebb_status st, ebb_error *err)
{
    ebb_pool_drain(r->pool);                     /* the weights may be given away now */
    if (st == EBB_OK && ebb_forward_left_work_out(r))
        st = EBB_FAIL(err, EBB_CANCELED, "stopped in the last layer");
    ebb_forward_lap(r, EBB_TIME_OTHER);
    r->batch = NULL;
    return st;
}
