/* Mamba 2 (Dao and Gu 2024, "Transformers are SSMs"), recurrent.h: of a column, z, x, B, C and dt are projected; x, B
 * and C pass a causal convolution over the last K columns.  Head h of M holds a state A [P, S]; with group g = floor(h
 * G / M)
 *
 *     t = softplus(dt + bias)
 *     A <- exp(t a) A + (t x)^T B
 *     y  = A C + d x,     y <- norm(y silu(z)) over each group of heads
 *
 * A layer's state is its last K - 1 inputs of the convolution, then A of each head.  The update of a head is t x
 * and the factor exp(t a); heads of a group share B. */
#include <math.h>
#include <string.h>

#include "model/recurrent.h"

/* P of a head; G S, what the groups have of B; channels of the convolution; floats of a projected column. */
static size_t dim_head(const ebb_net *net)
{
    return net->dim_mamba / net->n_mamba_head;
}

static size_t n_shared(const ebb_net *net)
{
    return (size_t)net->n_mamba_group * net->dim_mamba_state;
}

static size_t n_channels(const ebb_net *net)
{
    return net->dim_mamba + 2 * n_shared(net);
}

static size_t in_width(const ebb_net *net)
{
    return net->dim_mamba + n_channels(net) + net->n_mamba_head;
}

static size_t mamba2_conv_floats(const ebb_net *net)
{
    return ebb_conv_state_floats(net, (uint32_t)n_channels(net));
}

static size_t mamba2_state_floats(const ebb_net *net)
{
    return mamba2_conv_floats(net) + (size_t)net->dim_mamba * net->dim_mamba_state;
}

/* Where an entry of the log has the update of a head; B of all groups. */
static size_t mamba2_log_update_at(const ebb_net *net, size_t h)
{
    return n_channels(net) + h * (dim_head(net) + 1);
}

static size_t log_b_at(const ebb_net *net)
{
    return mamba2_log_update_at(net, net->n_mamba_head);
}

static size_t mamba2_log_floats(const ebb_net *net)
{
    return log_b_at(net) + n_shared(net);
}

static size_t mamba2_thread_floats(const ebb_net *net)
{
    return dim_head(net) * (1 + (size_t)net->dim_mamba_state);   /* t x, A */
}

/* -- Heads ------------------------------------------------------------------------ */

typedef struct mamba_job {
    ebb_recurrence x;
    const ebb_recurrent *l;
} mamba_job;

typedef struct head_part {
    const mamba_job *job;
    size_t h, b_at;              /* its B among those of the groups */
    float *u;                    /* [P] t x */
} head_part;

/* A <- fade A + u^T B */
static void add_update(const ebb_forward *r, float *a, float fade, const float *u, const float *b)
{
    size_t n = r->net->dim_mamba_state, n_rows = dim_head(r->net);

    for (size_t i = 0; i < n_rows; i++) {
        r->kern->scale(a + i * n, fade, n);
        r->kern->axpy(a + i * n, u[i], b, n);
    }
}

static void replay_head(void *arg, float *a, const float *log)
{
    const head_part *p = arg;
    const ebb_forward *r = p->job->x.r;
    const float *u = log + mamba2_log_update_at(r->net, p->h);

    add_update(r, a, u[dim_head(r->net)], u, log + log_b_at(r->net) + p->b_at);
}

static void step_head(void *arg, float *a, uint32_t c, float *log)
{
    const head_part *p = arg;
    const ebb_forward *r = p->job->x.r;
    const ebb_net *net = r->net;
    const size_t inner = net->dim_mamba, n = net->dim_mamba_state, n_rows = dim_head(net);
    const float *in = r->recurrent.in + c * in_width(net), *x = in + inner + p->h * n_rows,
                *b = in + 2 * inner + p->b_at;
    float t = ebb_softplus(in[inner + n_channels(net) + p->h] + p->job->l->dt[p->h]);
    float fade = expf(t * p->job->l->a[p->h]);
    float *y = r->buf.y + c * inner + p->h * n_rows;

    for (size_t i = 0; i < n_rows; i++)
        p->u[i] = t * x[i];
    add_update(r, a, fade, p->u, b);
    for (size_t i = 0; i < n_rows; i++)
        y[i] = fmaf(p->job->l->d[p->h], x[i], r->kern->dot(a + i * n, b + n_shared(net), n));
    if (log) {
        memcpy(log + mamba2_log_update_at(net, p->h), p->u, n_rows * sizeof *log);
        log[mamba2_log_update_at(net, p->h) + n_rows] = fade;
    }
}

static void head_slice(void *arg, uint32_t h, uint32_t thread)
{
    static const ebb_recurrence_ops ops = { replay_head, step_head };
    const mamba_job *job = arg;
    const ebb_net *net = job->x.r->net;
    const size_t n = dim_head(net) * net->dim_mamba_state;
    head_part p = { .job = job, .h = h, .u = ebb_forward_floats(job->x.r, thread) };

    p.b_at = h / (net->n_mamba_head / net->n_mamba_group) * net->dim_mamba_state;
    ebb_recurrence_advance(&job->x, &ops, &p, mamba2_conv_floats(net) + h * n, n, p.u + dim_head(net));
}

/* B, as all heads of a group have used it: only when none reads the log any more. */
static void log_b(const ebb_recurrence *x)
{
    const ebb_net *net = x->r->net;

    for (uint32_t c = 0; c < x->r->batch->n; c++) {
        const float *b = x->r->recurrent.in + c * in_width(net) + 2 * (size_t)net->dim_mamba;
        float *log = ebb_recurrence_column_log(x, c);

        if (log)
            memcpy(log + log_b_at(net), b, n_shared(net) * sizeof *b);
    }
}

/* -- The layer -------------------------------------------------------------------- */

/* A column: y <- norm(y silu(z)) */
static void gate_slice(void *arg, uint32_t c, uint32_t thread)
{
    const mamba_job *job = arg;
    const ebb_forward *r = job->x.r;
    const ebb_net *net = r->net;
    size_t n = net->dim_mamba / net->n_mamba_group;
    float *y = r->buf.y + (size_t)c * net->dim_mamba;

    (void)thread;
    r->kern->silu_mul(y, r->recurrent.in + c * in_width(net), y, net->dim_mamba);
    for (size_t g = 0; job->l->norm && g < net->n_mamba_group; g++)
        r->kern->rmsnorm(y + g * n, y + g * n, job->l->norm + g * n, n, net->norm_eps);
}

static ebb_status mamba2_advance(ebb_forward *r, const ebb_recurrent *l, ebb_error *err)
{
    mamba_job job = { .x = ebb_recurrence_of(r, l), .l = l };
    size_t width = in_width(r->net), inner = r->net->dim_mamba;

    (void)err;
    ebb_recurrence_convolve(&(ebb_conv){
        .x = &job.x, .w = l->conv, .bias = l->conv_bias, .n_channels = (uint32_t)n_channels(r->net),
        .in = r->recurrent.in + inner, .in_stride = width, .out = r->recurrent.in + inner, .out_stride = width,
    });
    ebb_forward_slices(r, head_slice, &job, r->net->n_mamba_head);
    log_b(&job.x);
    ebb_forward_slices(r, gate_slice, &job, r->batch->n);
    return EBB_OK;
}

const ebb_recurrent_class ebb_recurrent_mamba2 = {
    mamba2_state_floats, mamba2_log_floats, mamba2_thread_floats, mamba2_advance
};
