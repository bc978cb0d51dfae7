/* Mamba (Gu and Dao 2023), recurrent.h: of a column, x and z are projected; x passes a causal convolution over the last
 * K columns, and dt, B and C are projected from what that gives.  Channel i holds a state h [S]:
 *
 *     t = softplus(dt_up(dt))_i
 *     h <- exp(t a_i) h + t x_i B
 *     y  = (h C + d_i x_i) silu(z_i)
 *
 * A layer's state is its last K - 1 inputs of the convolution, then h of each channel.  The update of a channel is t
 * and t x; all share B. */
#include <math.h>
#include <string.h>

#include "model/recurrent.h"

#define CHANNELS 32u             /* of a slice */

static size_t mamba_conv_floats(const ebb_net *net)
{
    return ebb_conv_state_floats(net, net->dim_mamba);
}

static size_t mamba_state_floats(const ebb_net *net)
{
    return mamba_conv_floats(net) + (size_t)net->dim_mamba * net->dim_mamba_state;
}

/* Where an entry of the log has t of the channels, then t x of them; B. */
static size_t mamba_log_update_at(const ebb_net *net)
{
    return net->dim_mamba;
}

static size_t log_b_at(const ebb_net *net)
{
    return 3 * (size_t)net->dim_mamba;
}

static size_t mamba_log_floats(const ebb_net *net)
{
    return log_b_at(net) + net->dim_mamba_state;
}

static size_t mamba_thread_floats(const ebb_net *net)
{
    return CHANNELS * (size_t)net->dim_mamba_state;
}

/* Floats of dt, B and C of a column. */
static size_t low_width(const ebb_net *net)
{
    return net->dim_mamba_dt + 2 * (size_t)net->dim_mamba_state;
}

/* -- Channels ----------------------------------------------------------------------- */

typedef struct mamba_job {
    ebb_recurrence x;
    const ebb_recurrent *l;
} mamba_job;

typedef struct channels_part {
    const mamba_job *job;
    uint32_t at, n;
} channels_part;

/* h <- exp(t a) h + u B */
static void add_update(const ebb_forward *r, float *h, float t, const float *a, float u, const float *b)
{
    size_t n = r->net->dim_mamba_state;

    for (size_t i = 0; i < n; i++)
        h[i] *= expf(t * a[i]);
    r->kern->axpy(h, u, b, n);
}

static void replay_channels(void *arg, float *h, const float *log)
{
    const channels_part *p = arg;
    const ebb_forward *r = p->job->x.r;
    const size_t n = r->net->dim_mamba_state;
    const float *t = log + mamba_log_update_at(r->net) + p->at, *u = t + r->net->dim_mamba;

    for (uint32_t j = 0; j < p->n; j++)
        add_update(r, h + j * n, t[j], p->job->l->a + (p->at + j) * n, u[j], log + log_b_at(r->net));
}

static void step_channels(void *arg, float *h, uint32_t c, float *log)
{
    const channels_part *p = arg;
    const ebb_forward *r = p->job->x.r;
    const ebb_net *net = r->net;
    const size_t n = net->dim_mamba_state, inner = net->dim_mamba;
    const float *b = r->recurrent.beta + c * low_width(net) + net->dim_mamba_dt,
                *x = r->recurrent.z + c * inner + p->at;
    float *y = r->buf.y + c * inner + p->at;

    for (uint32_t j = 0; j < p->n; j++) {
        size_t i = p->at + j;
        float t = ebb_softplus(r->recurrent.alpha[c * inner + i]), u = t * x[j];

        add_update(r, h + j * n, t, p->job->l->a + i * n, u, b);
        y[j] = fmaf(p->job->l->d[i], x[j], r->kern->dot(h + j * n, b + n, n));
        if (log) {
            log[mamba_log_update_at(net) + i] = t;
            log[mamba_log_update_at(net) + inner + i] = u;
        }
    }
    r->kern->silu_mul(y, r->recurrent.in + c * 2 * inner + inner + p->at, y, p->n);
}

static void channels_slice(void *arg, uint32_t slice, uint32_t thread)
{
    static const ebb_recurrence_ops ops = { replay_channels, step_channels };
    const mamba_job *job = arg;
    const ebb_net *net = job->x.r->net;
    channels_part p = { .job = job, .at = slice * CHANNELS };
    size_t n = net->dim_mamba_state;

    p.n = net->dim_mamba - p.at < CHANNELS ? net->dim_mamba - p.at : CHANNELS;
    ebb_recurrence_advance(&job->x, &ops, &p, mamba_conv_floats(net) + p.at * n, p.n * n,
                           ebb_forward_floats(job->x.r, thread));
}

/* B, as all channels have used it: only when none reads the log any more. */
static void log_b(const ebb_recurrence *x)
{
    const ebb_net *net = x->r->net;

    for (uint32_t c = 0; c < x->r->batch->n; c++) {
        const float *b = x->r->recurrent.beta + c * low_width(net) + net->dim_mamba_dt;
        float *log = ebb_recurrence_column_log(x, c);

        if (log)
            memcpy(log + log_b_at(net), b, net->dim_mamba_state * sizeof *b);
    }
}

/* -- The layer -------------------------------------------------------------------- */

/* A column's dt, B and C are normed where the layer does that; dt becomes input. */
static void dt_slice(void *arg, uint32_t c, uint32_t thread)
{
    const mamba_job *job = arg;
    const ebb_forward *r = job->x.r;
    const ebb_net *net = r->net;
    float *dt = r->recurrent.beta + c * low_width(net), *b = dt + net->dim_mamba_dt;

    (void)thread;
    if (job->l->dt_norm.is_on) {
        ebb_norm_row(r, &job->l->dt_norm, dt, dt, net->dim_mamba_dt);
        ebb_norm_row(r, &job->l->b_norm, b, b, net->dim_mamba_state);
        ebb_norm_row(r, &job->l->c_norm, b + net->dim_mamba_state, b + net->dim_mamba_state, net->dim_mamba_state);
    }
    ebb_input_part(r, c, 0, net->dim_mamba_dt, dt);
}

/* dt of the channels, B and C, from what the convolution gave. */
static ebb_status project_dt(ebb_forward *r, const ebb_recurrent *l, mamba_job *job, ebb_error *err)
{
    const ebb_net *net = r->net;
    ebb_mat low = { &l->dt_b_c, r->recurrent.beta, low_width(net) },
            up = { &l->dt_up, r->recurrent.alpha, net->dim_mamba };
    ebb_status st;

    ebb_op_input(r, r->recurrent.z, net->dim_mamba, ebb_act_bit(&l->dt_b_c));
    st = ebb_op_matmul(r, &low, 1, 0, err);
    if (st != EBB_OK)
        return st;
    ebb_input_begin(r, net->dim_mamba_dt, ebb_act_bit(&l->dt_up));
    ebb_forward_slices(r, dt_slice, job, r->batch->n);
    return ebb_op_matmul(r, &up, 1, 0, err);
}

static ebb_status mamba_advance(ebb_forward *r, const ebb_recurrent *l, ebb_error *err)
{
    mamba_job job = { .x = ebb_recurrence_of(r, l), .l = l };
    uint32_t inner = r->net->dim_mamba;
    ebb_status st = EBB_OK;

    ebb_recurrence_convolve(&(ebb_conv){
        .x = &job.x, .w = l->conv, .bias = l->conv_bias, .n_channels = inner,
        .in = r->recurrent.in, .in_stride = 2 * (size_t)inner, .out = r->recurrent.z, .out_stride = inner,
    });
    if (r->batch->n > 0)
        st = project_dt(r, l, &job, err);
    if (st != EBB_OK)
        return st;
    ebb_forward_slices(r, channels_slice, &job, (inner + CHANNELS - 1) / CHANNELS);
    log_b(&job.x);
    return EBB_OK;
}

const ebb_recurrent_class ebb_recurrent_mamba = {
    mamba_state_floats, mamba_log_floats, mamba_thread_floats, mamba_advance
};
