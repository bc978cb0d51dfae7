/* Mixture of experts (Shazeer et al. 2017; Fedus et al. 2021), forward.h.
 *
 * Columns choose their experts; then each expert that was chosen is taken once,
 * for all its columns together: these are the columns for as long, with the inputs
 * gathered side by side.  What they give is added up in the order of their numbers; with few
 * columns they are computed in the order in which they come from disk, each into slots of its own. */
#include <math.h>
#include <string.h>

#include "model/forward.h"

#define ALIGN      64u
#define MAX_GROUPS 256u
#define LEAST_SUM  0x1p-14f      /* of shares before they are made to sum to 1 */

void ebb_moe_layout(ebb_forward *r, ebb_arena *a)
{
    const ebb_net *net = r->net;
    size_t cols = r->cap_tokens;

    r->moe.out = ebb_arena_take_rows(a, cols, net->n_embd, sizeof(float), ALIGN);
    r->moe.narrow = ebb_arena_take_rows(a, cols, net->dim_experts, sizeof(float), ALIGN);
    r->moe.scores = ebb_arena_take_rows(a, cols, net->n_expert, sizeof(float), ALIGN);
    r->moe.chosen = ebb_arena_take_rows(a, cols, net->n_expert_used, sizeof(uint32_t), ALIGN);
    r->moe.members = ebb_arena_take_rows(a, cols, net->n_expert_used, sizeof(uint32_t), ALIGN);
    r->moe.first_member = ebb_arena_take_rows(a, 1, (size_t)net->n_expert + 1, sizeof(uint32_t), ALIGN);
    r->moe.is_computed = ebb_arena_take(a, net->n_expert, ALIGN);
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (net->acts >> kind & 1)
            r->moe.gathered[kind] = ebb_arena_take_rows(a, cols, ebb_act_col_bytes((ebb_act)kind, net->max_k), 1,
                                                        ALIGN);
    ebb_expert_prefetch_layout(r, a);
}

/* -- Choosing ------------------------------------------------------------------- */

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* The best `n` of n_all by their scores, best first; of equals the first. */
static void choose_top_k(const float *score, uint32_t n_all, uint32_t n, uint32_t *out)
{
    uint32_t n_out = 0;

    for (uint32_t e = 0; e < n_all; e++) {
        uint32_t at = n_out;

        while (at > 0 && score[e] > score[out[at - 1]])
            at--;
        if (at == n)
            continue;
        n_out += n_out < n;
        memmove(out + at + 1, out + at, (n_out - at - 1) * sizeof *out);
        out[at] = e;
    }
}

/* Experts outside the best groups can not be chosen; a group counts as much as its best two together
 * (DeepSeek-AI 2024, "DeepSeek-V3"). */
static void drop_groups(const ebb_net *net, float *choice)
{
    uint32_t n = net->n_expert / net->n_expert_group, best[2];
    float sum[MAX_GROUPS];

    for (uint32_t g = 0; g < net->n_expert_group; g++) {
        best[1] = best[0] = 0;
        choose_top_k(choice + g * n, n, n < 2 ? n : 2, best);
        sum[g] = choice[g * n + best[0]] + (n < 2 ? 0 : choice[g * n + best[1]]);
    }
    for (uint32_t left = net->n_expert_group; left > net->n_expert_group_used; left--) {
        uint32_t worst = 0;

        for (uint32_t g = 1; g < net->n_expert_group; g++)
            worst = sum[g] <= sum[worst] ? g : worst;
        sum[worst] = INFINITY;
        for (uint32_t i = 0; i < n; i++)
            choice[worst * n + i] = -INFINITY;
    }
}

/* Whether probabilities decide, not scores: they do where something is added to them.  (Their order is the same, but
 * sigmoids of large scores are all 1.) */
static bool are_ranked(const ebb_net *net, const ebb_experts *x)
{
    return x->choice_bias || net->n_expert_group > 1 || (net->router_is_sigmoid && !net->share_is_on_input);
}

static void make_probabilities(const ebb_forward *r, float *score)
{
    if (!r->net->router_is_sigmoid)
        r->kern->softmax(score, r->net->n_expert);
    for (uint32_t e = 0; r->net->router_is_sigmoid && e < r->net->n_expert; e++)
        score[e] = sigmoid(score[e]);
}

void ebb_moe_choose(const ebb_forward *r, const ebb_experts *x, float *score, uint32_t *chosen)
{
    const ebb_net *net = r->net;
    float *choice = ebb_forward_floats(r, 0);

    if (are_ranked(net, x))
        make_probabilities(r, score);
    memcpy(choice, score, net->n_expert * sizeof *choice);
    if (x->choice_bias)
        r->kern->add(choice, x->choice_bias, net->n_expert);
    if (net->n_expert_group > 1)
        drop_groups(net, choice);
    choose_top_k(choice, net->n_expert, net->n_expert_used, chosen);
}

/* scores of column c become router weights: 0 but for the selected. */
static void route_token(const ebb_forward *r, const ebb_experts *x, uint32_t c)
{
    const ebb_net *net = r->net;
    float *score = r->moe.scores + (size_t)c * net->n_expert, sum = 0;
    uint32_t *chosen = r->moe.chosen + (size_t)c * net->n_expert_used;

    ebb_moe_choose(r, x, score, chosen);
    if (!are_ranked(net, x))
        make_probabilities(r, score);
    for (uint32_t i = 0; i < net->n_expert_used; i++)
        sum += score[chosen[i]];
    sum = sum > LEAST_SUM ? sum : LEAST_SUM;
    for (uint32_t i = 0; i < net->n_expert_used; i++)
        score[chosen[i]] *= net->router_normalizes ? net->router_scale / sum : net->router_scale;
}

/* members[first_member[e], first_member[e + 1]) are the columns that chose e, in their order. */
static void list_members(ebb_forward *r)
{
    uint32_t used = r->net->n_expert_used, n_expert = r->net->n_expert, *at = r->moe.first_member;

    memset(at, 0, (n_expert + 1) * sizeof *at);
    for (size_t i = (size_t)r->cols.c0 * used; i < (size_t)r->cols.c1 * used; i++)
        at[r->moe.chosen[i] + 1]++;
    for (uint32_t e = 0; e < n_expert; e++)
        at[e + 1] += at[e];
    for (size_t i = (size_t)r->cols.c0 * used; i < (size_t)r->cols.c1 * used; i++)
        r->moe.members[at[r->moe.chosen[i]]++] = (uint32_t)(i / used);
    memmove(at + 1, at, n_expert * sizeof *at);  /* each stands at its end now, where the next one begins */
    at[0] = 0;
}

static uint32_t n_members(const ebb_forward *r, uint32_t e)
{
    return r->moe.first_member[e + 1] - r->moe.first_member[e];
}

/* -- Computing ------------------------------------------------------------------- */

/* Weight views of expert e, from those of expert 0. */
static ebb_weight expert_weight(const ebb_forward *r, const ebb_experts *x, const ebb_weight *first, uint32_t e)
{
    ebb_weight w = *first;

    if (!ebb_weight_exists(first))
        return w;                                /* experts have no gate */
    w.matrix += e * x->n_matrices;
    w.type = r->net->matrices[w.matrix].type;
    w.row_bytes = (size_t)ebb_type_row_bytes(w.type, w.n_k);
    if (w.bias)
        w.bias += (size_t)e * w.n_rows;
    if (w.scale)
        w.scale += e;
    return w;
}

/* The input of an expert's column: x normed as that of all, times the column's share of it. */
static void gather_scaled(const ebb_forward *r, const ebb_layer *l, uint32_t expert, uint32_t c, uint32_t to)
{
    size_t n = r->net->n_embd;
    float *h = ebb_forward_floats(r, 0);

    ebb_norm_row(r, &l->ffn_norm, h, r->buf.x + c * n, n);
    r->kern->scale(h, r->moe.scores[c * r->net->n_expert + expert], n);
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (r->cols.in_acts >> kind & 1)
            r->kern->quantize[kind](
                h, n, (char *)r->moe.gathered[kind] + to * ebb_act_col_bytes((ebb_act)kind, r->cols.in_k));
}

/* The expert's columns become the active ones, with their input gathered. */
static void gather_tokens(ebb_forward *r, const ebb_layer *l, uint32_t expert)
{
    const uint32_t *members = r->moe.members + r->moe.first_member[expert];
    uint32_t n = n_members(r, expert);

    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++) {
        size_t bytes = ebb_act_col_bytes((ebb_act)kind, r->cols.in_k);

        if (!(r->cols.in_acts >> kind & 1) || r->net->share_is_on_input)
            continue;
        for (uint32_t i = 0; i < n; i++)
            memcpy((char *)r->moe.gathered[kind] + i * bytes, (char *)r->cols.act[kind] + members[i] * bytes, bytes);
    }
    for (uint32_t i = 0; r->net->share_is_on_input && i < n; i++)
        gather_scaled(r, l, expert, members[i], i);
    memcpy(r->cols.act, r->moe.gathered, sizeof r->cols.act);
    r->cols.c0 = 0;
    r->cols.c1 = n;
}

/* out = down(act(gate x) * up x) */
static ebb_status run_expert_ffn(ebb_forward *r, const ebb_weight *gate, const ebb_weight *up, const ebb_weight *down,
                                 float *out, ebb_error *err)
{
    ebb_mat m = { .w = down, .y = out + (size_t)r->cols.c0 * down->n_rows, .y_stride = down->n_rows };
    ebb_status st = ebb_op_gated(r, gate, up, err);

    if (st != EBB_OK)
        return st;
    ebb_op_input(r, r->buf.ff, up->n_rows, ebb_act_bit(down));
    return ebb_op_matmul(r, &m, 1, 0, err);
}

/* The output of expert e for its columns, to `out`. */
static ebb_status run_expert(ebb_forward *r, const ebb_layer *l, uint32_t e, float *out, ebb_error *err)
{
    const ebb_experts *x = &l->experts;
    ebb_weight gate = expert_weight(r, x, &x->gate, e), up = expert_weight(r, x, &x->up, e);
    ebb_weight down = expert_weight(r, x, &x->down, e);
    ebb_columns all = r->cols;
    ebb_status st;

    gather_tokens(r, l, e);
    st = run_expert_ffn(r, &gate, &up, &down, out, err);
    r->cols = all;
    ebb_res_finish_expert(r->res, ebb_expert_extent(r->net, x, e));
    return st;
}

typedef struct add_job {
    const ebb_forward *r;
    const ebb_experts *x;
    uint32_t       expert;
} add_job;

/* The router weight of an expert's output for a column. */
static float share_of(const ebb_forward *r, size_t c, uint32_t e)
{
    return r->net->share_is_on_input ? 1 : r->moe.scores[c * r->net->n_expert + e];
}

static void add_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const add_job *job = arg;
    const ebb_forward *r = job->r;
    size_t n = job->x->down.n_rows, c = r->moe.members[r->moe.first_member[job->expert] + slice];

    (void)thread;
    r->kern->axpy(r->moe.sum + c * n, share_of(r, c, job->expert), r->moe.out + slice * n, n);
}

/* With many columns: experts in the order of their numbers, in which they are also read. */
static ebb_status run_in_order(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    ebb_status st = EBB_OK;

    for (uint32_t e = 0; e < r->net->n_expert && st == EBB_OK; e++) {
        add_job job = { .r = r, .x = &l->experts, .expert = e };

        if (n_members(r, e) == 0)
            continue;
        st = run_expert(r, l, e, r->moe.out, err);
        if (st == EBB_OK)
            ebb_forward_slices(r, add_slice, &job, n_members(r, e));
    }
    return st;
}

/* The slots of expert e begin there: one for each of its columns. */
static float *expert_output(const ebb_forward *r, const ebb_experts *x, uint32_t e)
{
    return r->moe.out + (size_t)r->moe.first_member[e] * x->down.n_rows;
}

/* The outputs of a column's experts are added in the order of their numbers. */
static void add_slots(ebb_forward *r, const ebb_experts *x)
{
    size_t n = x->down.n_rows;

    for (uint32_t e = 0; e < r->net->n_expert; e++)
        for (uint32_t i = 0; i < n_members(r, e); i++) {
            size_t c = r->moe.members[r->moe.first_member[e] + i];

            r->kern->axpy(r->moe.sum + c * n, share_of(r, c, e), expert_output(r, x, e) + i * n, n);
        }
}

static bool is_ready(const ebb_forward *r, const ebb_experts *x, uint32_t e)
{
    for (uint32_t i = 0; i < x->n_matrices; i++)
        if (!ebb_res_is_ready(r->res, ebb_expert_extent(r->net, x, e) + i))
            return false;
    return true;
}

/* The first that is in memory, else the first that is still to be read; n_expert: all are computed. */
static uint32_t next_expert(const ebb_forward *r, const ebb_experts *x)
{
    uint32_t n = r->net->n_expert, first = n;

    for (uint32_t e = 0; e < n; e++) {
        if (r->moe.is_computed[e] || n_members(r, e) == 0)
            continue;
        if (is_ready(r, x, e))
            return e;
        first = first < n ? first : e;
    }
    return first;
}

/* With few columns: experts in the order in which they arrive. */
static ebb_status run_as_read(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    ebb_status st = EBB_OK;
    uint32_t e;

    memset(r->moe.is_computed, 0, r->net->n_expert);
    while (st == EBB_OK && (e = next_expert(r, &l->experts)) < r->net->n_expert) {
        st = run_expert(r, l, e, expert_output(r, &l->experts, e), err);
        r->moe.is_computed[e] = true;
    }
    if (st == EBB_OK)
        add_slots(r, &l->experts);
    return st;
}

/* The layer's own feed-forward, for every column; its share is 1, or sigmoid(shared_gate x). */
static ebb_status add_shared_expert(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_weight *gate = &l->experts.shared_gate;
    ebb_mat m = { .w = gate, .y = r->moe.scores + r->cols.c0, .y_stride = 1 };
    bool is_gated = ebb_weight_exists(gate);
    size_t n = r->net->n_embd;
    ebb_status st = EBB_OK;

    if (is_gated)
        st = ebb_op_matmul(r, &m, 1, 0, err);
    if (st == EBB_OK)
        st = run_expert_ffn(r, &l->gate, &l->up, &l->down, r->moe.out, err);
    for (uint32_t c = r->cols.c0; st == EBB_OK && c < r->cols.c1; c++)
        r->kern->axpy(r->buf.y + c * n, is_gated ? sigmoid(r->moe.scores[c]) : 1.0f, r->moe.out + c * n, n);
    return st;
}

/* Announce all selected experts at once: those that are not in memory are read. */
static void announce_experts(ebb_forward *r, const ebb_experts *x)
{
    ebb_res_begin_experts(r->res, ebb_n_columns(&r->cols));
    for (uint32_t e = 0; e < r->net->n_expert; e++)
        if (n_members(r, e) > 0)
            ebb_res_announce_expert(r->res, ebb_expert_extent(r->net, x, e), n_members(r, e));
    ebb_res_end_experts(r->res);
}

/* The router's scores of the current input. */
static ebb_status score_experts(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_router_trace *trace = r->moe.trace;
    uint32_t n = r->net->n_expert;
    ebb_mat m = { .w = &l->experts.router, .y = r->moe.scores + (size_t)r->cols.c0 * n, .y_stride = n };
    ebb_status st = ebb_op_matmul(r, &m, 1, 0, err);

    for (uint32_t c = r->cols.c0; trace && st == EBB_OK && c < r->cols.c1; c++)
        trace->score(trace->arg, (uint32_t)(l - r->net->layers), ebb_batch_pos(r->batch, c),
                     r->moe.scores + (size_t)c * n);
    return st;
}

ebb_status ebb_op_early_router(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    static const ebb_norm none;

    ebb_op_norm(r, &none, ebb_act_bit(&l->experts.router));
    return score_experts(r, l, err);
}

/* Select each column's experts by the current input, unless it was scored before, and announce them for reading. */
static ebb_status choose_experts(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_experts *x = &l->experts;
    ebb_status st = r->net->router_is_early ? EBB_OK : score_experts(r, l, err);

    if (st != EBB_OK)
        return st;
    for (uint32_t c = r->cols.c0; c < r->cols.c1; c++) {
        if (ebb_forward_is_stopped(r))           /* thousands of experts take a while to choose from */
            return EBB_FAIL(err, EBB_CANCELED, "stopped while experts were chosen");
        route_token(r, x, c);
    }
    list_members(r);
    announce_experts(r, x);
    return ebb_expert_prefetch(r, l, err);
}

/* The weighted sum of the selected experts' outputs for the current input, to `sum`. */
static ebb_status compute_experts(ebb_forward *r, const ebb_layer *l, float *sum, ebb_error *err)
{
    size_t n = l->experts.down.n_rows, n_cols = ebb_n_columns(&r->cols);

    r->moe.sum = sum;
    memset(sum + r->cols.c0 * n, 0, n_cols * n * sizeof *sum);
    return n_cols * r->net->n_expert_used <= r->cap_tokens ? run_as_read(r, l, err) : run_in_order(r, l, err);
}

static void clear_y(ebb_forward *r)
{
    memset(r->buf.y + (size_t)r->cols.c0 * r->net->n_embd, 0,
           (size_t)ebb_n_columns(&r->cols) * r->net->n_embd * sizeof *r->buf.y);
}

/* y = the shared expert's output, from the full input, plus that of the others, from the latent space. */
static ebb_status compute_narrow(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_experts *x = &l->experts;
    size_t n = r->net->n_embd, n_in = x->narrow.n_rows;
    ebb_mat narrow = { &x->narrow, r->moe.narrow + r->cols.c0 * n_in, n_in },
            wide = { &x->widen, r->moe.out + r->cols.c0 * n, n };
    ebb_status st = ebb_op_matmul(r, &narrow, 1, 0, err);

    clear_y(r);
    if (st == EBB_OK && ebb_weight_exists(&l->up))
        st = add_shared_expert(r, l, err);
    ebb_op_input(r, r->moe.narrow, (uint32_t)n_in, x->acts);
    if (st == EBB_OK)
        st = compute_experts(r, l, r->moe.narrow, err);
    ebb_op_input(r, r->moe.narrow, (uint32_t)n_in, ebb_act_bit(&x->widen));
    if (st == EBB_OK)
        st = ebb_op_matmul(r, &wide, 1, 0, err);
    for (uint32_t c = r->cols.c0; st == EBB_OK && c < r->cols.c1; c++)
        r->kern->add(r->buf.y + c * n, r->moe.out + c * n, n);
    return st;
}

ebb_status ebb_op_moe(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    bool is_narrow = ebb_weight_exists(&l->experts.narrow);
    ebb_status st = choose_experts(r, l, err);

    if (st == EBB_OK)
        st = is_narrow ? compute_narrow(r, l, err) : compute_experts(r, l, r->buf.y, err);
    if (st == EBB_OK && !is_narrow && ebb_weight_exists(&l->up))
        st = add_shared_expert(r, l, err);
    ebb_op_add_y(r, &l->ffn_post_norm);
    return st;
}

/* -- Experts and a feed-forward side by side --------------------------------------- */

typedef struct join_job {
    const ebb_forward *r;
    const ebb_experts *x;
} join_job;

/* y = norm(y) + norm(beside) */
static void join_mixture_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const join_job *job = arg;
    const ebb_forward *r = job->r;
    size_t n = r->net->n_embd, at = (r->cols.c0 + slice) * n;

    (void)thread;
    ebb_norm_row(r, &job->x->post_norm, r->buf.y + at, r->buf.y + at, n);
    ebb_norm_row(r, &job->x->shared_post_norm, r->buf.beside + at, r->buf.beside + at, n);
    r->kern->add(r->buf.y + at, r->buf.beside + at, n);
}

/* The feed-forward is computed while the selected experts are read. */
ebb_status ebb_op_mixture_beside(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_experts *x = &l->experts;
    join_job job = { .r = r, .x = x };
    ebb_status st;

    ebb_op_norm(r, &x->router_norm, ebb_act_bit(&x->router));
    st = choose_experts(r, l, err);
    if (st != EBB_OK)
        return st;
    ebb_op_norm(r, &l->ffn_norm, ebb_act_bit(&l->gate) | ebb_act_bit(&l->up));
    st = run_expert_ffn(r, &l->gate, &l->up, &l->down, r->buf.beside, err);
    if (st != EBB_OK)
        return st;
    ebb_op_norm(r, &x->norm, x->acts);
    st = compute_experts(r, l, r->buf.y, err);
    if (st != EBB_OK)
        return st;
    ebb_forward_slices(r, join_mixture_slice, &job, ebb_n_columns(&r->cols));
    ebb_op_add_y(r, &l->ffn_post_norm);
    return EBB_OK;
}
