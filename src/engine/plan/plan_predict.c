/* What a plan will cost in time (plan/layout.h).
 *
 * A pass multiplies F bytes of weights, each type at its kernels' speed, T = sum F / Bm, hands slices out and back some
 * times for each layer, and spends some microseconds of each on what is no product: of a model that stands in the
 * processor's cache that is most of the time.  Of these, S bytes come from disk meanwhile, at Bd while all threads
 * multiply and at Bd' while they wait; multiplying goes on with a share b then:
 *
 *     S <= Bd T / b:   t = T + S / Bd (1 - b)                 the reads are done first
 *     else:            t = T / b + (S - Bd T / b) / Bd'       they are waited for
 *
 * A prompt of n columns multiplies n times as much, and unpacks all weights once, which takes about what a pass of one
 * column takes.  Each column also has its norms and roundings, what is done with each number that comes of a product,
 * and attention to what stands before it: of a large model a tenth of its time, of a small one most of it.  The first
 * one also waits for what shall be resident and is not in memory yet.  Attention reads K and V of all positions: at Bm
 * where they are in memory, at Bd' where they are in a file.  Recurrent states are read and written once in a pass, at
 * Bm, or for as long as a column's multiply-adds with them take if that is longer; each further column takes these
 * alone: a head's state stays in the cache.  Of experts, S counts those that are chosen and not in memory: as many as
 * in earlier runs, and passes take so much longer than this says as they did then, because what is read is known late.
 */
#include <math.h>

#include "model/recurrent.h"
#include "plan/layout.h"
#include "speculate/draft_rows.h"

#define MEMORY_BYTES_S  10e9                     /* per core, where it was not measured */
#define DISK_BYTES_S    1e9
#define INT8_MAC_S      60e9
#define SYNC_S          10e-6
#define BUSY_SHARE      0.9
#define LAYER_S         60e-6                    /* norms, attention to few positions, the edges of small products */
#define OPS_PER_LAYER   10                       /* norms, inputs, products, rope, attention, activation */
#define ELEMENT_OPS     3       /* of an element that goes into a product, beside its rounding: norm, activation, sum */
#define PREFILL_DEPTH 512u
#define PROMPT_TOKENS   64
/* Multiply-adds of a token with each element of a state; an exponential takes as long as so many. */
static const double state_ops[] = {
    [EBB_RECURRENT_DELTA_NET] = 4, [EBB_RECURRENT_CONV] = 2, [EBB_RECURRENT_MAMBA2] = 3, [EBB_RECURRENT_MAMBA] = 2 + 50,
};
#define WAITS           1.3                      /* a pass that takes so many times its computation waits for reads */

static double or_usual(double measured, double usual)
{
    return measured > 0 ? measured : usual;
}

/* Share of a matrix that a pass of few columns uses: of experts those that are chosen. */
static double share_used(const ebb_net *net, const ebb_matrix *m)
{
    return m->whole.is_certain || net->n_expert == 0 ? 1 : (double)net->n_expert_used / net->n_expert;
}

/* Whether matrix i is multiplied with all columns of a prompt: behind the last K and V only those whose logits are
 * wanted go on, unless a draft head needs the states of all. */
static bool has_all_columns(const ebb_net *net, uint32_t i)
{
    return net->matrices[i].whole.group <= net->last_mixing_layer ||
           (net->has_draft_head && i >= net->draft_head.first_matrix);
}

/* Seconds that all products of one column take; of many, a column's: in layers behind the last K and V only those whose
 * logits are wanted go on. */
typedef enum columns { ONE, MANY, FEW } columns;         /* of few, all give logits */

static double product_s(const ebb_net *net, const ebb_machine *m, const ebb_plan *p, columns of)
{
    double memory = or_usual(m->memory_bytes_s, MEMORY_BYTES_S * p->n_threads);
    double mac_s = or_usual(m->int8_mac_s, INT8_MAC_S * p->n_threads), s = 0;

    for (uint32_t i = 0; i < net->n_matrices; i++) {
        const ebb_matrix *w = &net->matrices[i];
        const ebb_type_speed *speed = &m->types[w->type];

        if (!ebb_net_is_of_pass(net, i))
            continue;
        if (of == ONE)
            s += share_used(net, w) * (double)w->whole.n_bytes / or_usual(speed->bytes_s, memory);
        else if (of == FEW || has_all_columns(net, i))
            s += share_used(net, w) * (double)w->whole.n_elems / or_usual(speed->mac_s, mac_s);
    }
    return s;
}

/* Products of one column, and what many of them give for a column. */
static void count_products(const ebb_net *net, double *n, double *outputs)
{
    *n = *outputs = 0;
    for (uint32_t i = 0; i < net->n_matrices; i++) {
        const ebb_matrix *w = &net->matrices[i];

        if (!ebb_net_is_of_pass(net, i))
            continue;
        if (w->whole.is_certain)
            *n += 1;
        if (has_all_columns(net, i))
            *outputs += share_used(net, w) * w->n_rows;
    }
}

/* Seconds of attention of a column that has n / 2 positions before it: a layer looks at no more than its window or
 * chunk shows, and many a one has a state in its place. */
static double attention_s(const ebb_net *net, const ebb_machine *m, uint32_t n)
{
    double s = 0;

    for (uint32_t i = 0; i <= net->last_mixing_layer && i < net->n_layers; i++) {
        const ebb_layer *l = &net->layers[i];
        double seen = l->heads.n_kv ? n / 2.0 : 0;

        if (l->window)
            seen = fmin(seen, l->window);
        if (l->chunk)
            seen = fmin(seen, l->chunk / 2.0);
        s += l->heads.n * seen *
             (m->overheads.attend_s + (l->heads.dim_k + l->heads.dim_v) * m->overheads.attend_dim_s);
    }
    return s;
}

/* Seconds that a column takes to bring the states of all layers a token further, while they are in the cache. */
static double states_s(const ebb_net *net, const ebb_machine *m)
{
    double s = 0;

    for (uint32_t i = 0; i < net->n_layers; i++) {
        ebb_recurrent_kind kind = net->layers[i].recurrent.kind;

        if (kind)
            s += (double)ebb_recurrent_state_bytes(net, kind) / sizeof(float) * state_ops[kind] * m->overheads.state_s;
    }
    return s;
}

/* What a column of a prompt of n takes beside multiply-adds: of every product what it gives, what goes into them, and
 * attention to the half of the prompt that stands before it on average. */
static double column_side_s(const ebb_net *net, const ebb_machine *m, uint32_t n)
{
    double n_products, outputs,
        elements = (2.0 * net->n_embd + (double)net->n_head * net->dim_v + net->n_ff) * (net->last_mixing_layer + 1);

    count_products(net, &n_products, &outputs);
    return outputs * m->overheads.output_s + elements * ELEMENT_OPS * m->overheads.element_s + attention_s(net, m, n) +
           states_s(net, m);
}

/* Of products that take so long alone, while so much is read. */
static double with_reads(const ebb_machine *m, double alone_s, double read_bytes)
{
    double idle = or_usual(m->disk_bytes_s, DISK_BYTES_S), busy = or_usual(m->disk_busy_bytes_s, idle * BUSY_SHARE);
    double share = or_usual(m->busy_share, BUSY_SHARE), both_s = alone_s / share;

    if (read_bytes <= busy * both_s)
        return alone_s + read_bytes / busy * (1 - share);
    return both_s + (read_bytes - busy * both_s) / idle;
}

/* What a pass of one column computes.  All states are read and written once. */
static double compute_s(const ebb_net *net, const ebb_machine *m, const ebb_plan *p)
{
    double n_products, outputs,
        states_moved_s = 2.0 * (double)net->state_bytes / or_usual(m->memory_bytes_s, MEMORY_BYTES_S * p->n_threads);

    count_products(net, &n_products, &outputs);
    return product_s(net, m, p, ONE) + n_products * m->overheads.product_s + fmax(states_moved_s, states_s(net, m)) +
           (or_usual(m->sync_s, SYNC_S) * OPS_PER_LAYER + LAYER_S) * p->n_layers;
}

/* Copies that are made at open. */
static double copied_bytes(const ebb_plan *p)
{
    return p->is_mapped ? 0 : (double)p->weights_resident_bytes + (double)p->lent_bytes;
}

/* Bytes that the first pass reads beside what it streams: copies are made past the page cache. */
static double cold_bytes(const ebb_machine *m, const ebb_plan *p)
{
    double share = p->is_mapped ? 1 - m->page_cache_share : 1;

    return share > 0 ? ((double)p->weights_resident_bytes + (double)p->lent_bytes) * share : 0;
}

/* Bytes that a pass of n columns reads.  Columns choose experts of their own: of many, each reads those that have no
 * room and that any of them chose; the first ones find the places empty. */
static double read_bytes(const ebb_net *net, const ebb_plan *p, uint32_t n, bool is_first)
{
    double certain = (double)(p->stream_bytes - p->expert_read_bytes), room, any;

    if (n <= 1 || p->expert_read_bytes == 0)
        return (double)(p->stream_bytes - p->lent_read_bytes);
    any = 1 - pow(1 - (double)net->n_expert_used / net->n_expert, n);
    if (is_first)
        return certain + any * (double)p->expert_disk_bytes;
    room = (double)p->expert_bytes / (double)p->expert_disk_bytes;
    return certain + fmin(n * (double)p->expert_read_bytes, any * (1 - fmin(room, 1)) * (double)p->expert_disk_bytes);
}

/* A pass of n columns of a prompt, each of which sees twice_seen / 2 positions on average. */
static double prompt_pass_s(const ebb_net *net, const ebb_machine *m, const ebb_plan *p, uint32_t n,
                            uint32_t twice_seen, bool is_first)
{
    double column_s = product_s(net, m, p, MANY) + column_side_s(net, m, twice_seen);

    return with_reads(m, column_s * n + compute_s(net, m, p),
                      read_bytes(net, p, n, is_first) + (is_first ? cold_bytes(m, p) : 0));
}

double ebb_plan_prompt_s(const ebb_net *net, const ebb_machine *m, const ebb_plan *p, uint32_t n_past,
                         uint32_t n_tokens, bool is_first)
{
    double s = 0;

    for (uint32_t at = 0, n; at < n_tokens; at += n) {
        n = n_tokens - at < p->n_batch ? n_tokens - at : p->n_batch;
        s += prompt_pass_s(net, m, p, n, 2 * (n_past + at) + n, is_first && at == 0);
    }
    return s;
}

void ebb_plan_predict(const ebb_net *net, const ebb_machine *m, ebb_plan *p)
{
    /* Wider chunks are told of the same prompt. */
    uint32_t depth = p->n_batch < PREFILL_DEPTH ? p->n_batch : PREFILL_DEPTH;
    double pace = p->expert_read_bytes > 0 ? or_usual(m->expert_slowdown, 1) : 1;

    p->compute_s = compute_s(net, m, p);
    p->predicted_decode_tok_s = 1 / (with_reads(m, p->compute_s, read_bytes(net, p, 1, false)) * pace);
    p->predicted_full_tok_s = ebb_plan_decode_tok_s_at(p, m, p->n_ctx);
    p->predicted_prefill_tok_s = p->n_batch / prompt_pass_s(net, m, p, p->n_batch, depth, false);
    p->predicted_load_s = copied_bytes(p) / or_usual(m->disk_bytes_s, DISK_BYTES_S);
    p->predicted_first_token_s = ebb_plan_prompt_s(net, m, p, 0, PROMPT_TOKENS, true);
}

double ebb_plan_pass_s(const ebb_net *net, const ebb_machine *m, const ebb_plan *p, uint32_t n_tokens)
{
    double further_s = n_tokens > 1 ? (n_tokens - 1) * (product_s(net, m, p, FEW) + states_s(net, m)) : 0;

    return with_reads(m, compute_s(net, m, p) + further_s, read_bytes(net, p, n_tokens, false));
}

double ebb_plan_head_s(const ebb_net *net, const ebb_machine *m, const ebb_plan *p)
{
    double memory = or_usual(m->memory_bytes_s, MEMORY_BYTES_S * p->n_threads);
    double rows = (double)ebb_draft_rows_at_first(net->n_vocab) / net->n_vocab;
    double s = or_usual(m->sync_s, SYNC_S) * OPS_PER_LAYER + LAYER_S;
    uint32_t output = ebb_net_draft_output(net)->matrix;

    for (uint32_t i = 0; i < net->n_matrices; i++) {
        const ebb_matrix *w = &net->matrices[i];

        if (i == output || i >= net->draft_head.first_matrix)
            s += share_used(net, w) * (i == output ? rows : 1) * (double)w->whole.n_bytes /
                 or_usual(m->types[w->type].bytes_s, memory);
    }
    return s;
}

double ebb_plan_disk_factor(const ebb_net *net, const ebb_machine *m, const ebb_plan *p, double pass_s)
{
    double idle = or_usual(m->disk_bytes_s, DISK_BYTES_S), busy = or_usual(m->disk_busy_bytes_s, idle * BUSY_SHARE);
    double both_s = compute_s(net, m, p) / or_usual(m->busy_share, BUSY_SHARE);
    double waited_s = pass_s - both_s * (1 - busy / idle);

    if (p->stream_bytes == 0 || pass_s < WAITS * both_s || waited_s <= 0)
        return 0;
    return (double)p->stream_bytes / idle / waited_s;
}

/* What a pass takes while so much of what the plan streams is in memory, beside what it takes at first. */
static double later_share(const ebb_plan *p, const ebb_machine *m, double lent_read_bytes)
{
    double reads = (double)p->stream_bytes, lent = fmin(lent_read_bytes, reads);

    if (p->compute_s <= 0 || lent == (double)p->lent_read_bytes)
        return 1;
    return with_reads(m, p->compute_s, reads - lent) /
           with_reads(m, p->compute_s, reads - (double)p->lent_read_bytes);
}

double ebb_plan_decode_tok_s_with(const ebb_plan *p, const ebb_machine *m, double memory_bytes, double file_bytes,
                                  double lent_read_bytes)
{
    double kv_s = memory_bytes / or_usual(m->memory_bytes_s, MEMORY_BYTES_S * p->n_threads) +
                  file_bytes / or_usual(m->disk_bytes_s, DISK_BYTES_S);

    return p->predicted_decode_tok_s > 0
               ? 1 / (later_share(p, m, lent_read_bytes) / p->predicted_decode_tok_s + kv_s) : 0;
}

double ebb_plan_decode_tok_s_at(const ebb_plan *p, const ebb_machine *m, uint32_t n_pos)
{
    double all = p->n_ctx ? ((double)p->kv_bytes + (double)p->kv_spill_bytes) / p->n_ctx * n_pos : 0;
    double memory = fmin(all, (double)p->kv_bytes), left = fmin((double)p->kv_bytes - memory, (double)p->lent_bytes);

    return ebb_plan_decode_tok_s_with(p, m, memory, all - memory,
                                      p->lent_bytes ? left / (double)p->lent_bytes * (double)p->lent_read_bytes : 0);
}

ebb_plan ebb_plan_with_lent(const ebb_plan *p, const ebb_machine *m, uint64_t lent_read_bytes)
{
    ebb_plan now = *p;

    lent_read_bytes = lent_read_bytes < p->stream_bytes ? lent_read_bytes : p->stream_bytes;
    now.predicted_decode_tok_s = ebb_plan_decode_tok_s_with(p, m, 0, 0, (double)lent_read_bytes);
    now.stream_bytes -= lent_read_bytes;
    now.lent_bytes = now.lent_read_bytes = 0;
    return now;
}
