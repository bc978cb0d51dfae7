/* Gated delta net (Yang, Kautz, Hatamizadeh 2025, eq. 10), forward.h: attention whose
 * memory is one matrix for each head instead of all keys and values.
 *
 * Of a column, q, k and v pass a causal convolution over the last K columns; then
 * head h holds a state M [S, S], and with key head g = h mod KH (Qwen 3 Next: floor(h KH / VH))
 *
 *     M <- exp(softplus(alpha + dt) a) M          it fades,
 *     M <- M + k^T sigmoid(beta) (v - k M)        is corrected towards v at k,
 *     o  = q M                                    and read at q;   q, k of length 1, q / sqrt(S)
 *
 * A layer's state is its last K - 1 inputs of the convolution, then M of each head.  What a token adds to M is
 * k^T u, u = sigmoid(beta) (v - k M): the update of a head is u and the factor by which M fades; heads share k. */
#include <math.h>
#include <string.h>

#include "model/recurrent.h"

static size_t n_channels(const ebb_net *net)
{
    return (2 * (size_t)net->n_head_delta_k + net->n_head_delta_v) * net->dim_delta;
}

static size_t delta_net_conv_floats(const ebb_net *net)
{
    return ebb_conv_state_floats(net, (uint32_t)n_channels(net));
}

static size_t delta_net_state_floats(const ebb_net *net)
{
    return delta_net_conv_floats(net) + (size_t)net->n_head_delta_v * net->dim_delta * net->dim_delta;
}

/* Where an entry of the log has the update of a head; a key. */
static size_t delta_net_log_update_at(const ebb_net *net, size_t h)
{
    return n_channels(net) + h * (net->dim_delta + 1);
}

static size_t log_key_at(const ebb_net *net, size_t g)
{
    return delta_net_log_update_at(net, net->n_head_delta_v) + g * net->dim_delta;
}

static size_t delta_net_log_floats(const ebb_net *net)
{
    return log_key_at(net, net->n_head_delta_k);
}

static size_t delta_net_thread_floats(const ebb_net *net)
{
    return (3 + (size_t)net->dim_delta) * net->dim_delta;        /* q, k, o, M */
}

/* -- Heads ------------------------------------------------------------------------ */

/* y = x / max(|x|, eps) * scale */
static void normalize(const ebb_forward *r, float *y, const float *x, float scale)
{
    size_t n = r->net->dim_delta;

    memcpy(y, x, n * sizeof *y);
    r->kern->scale(y, scale / fmaxf(sqrtf(r->kern->dot(x, x, n)), r->net->norm_eps), n);
}

/* One column: fade, correct, read. */
static void delta_step(const ebb_forward *r, float *m, const float *q, const float *k, float *v, float fade,
                       float strength, float *out)
{
    size_t n = r->net->dim_delta;

    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < n; i++) {             /* out = k M for now */
        r->kern->scale(m + i * n, fade, n);
        r->kern->axpy(out, k[i], m + i * n, n);
    }
    r->kern->axpy(v, -1.0f, out, n);
    r->kern->scale(v, strength, n);
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        r->kern->axpy(m + i * n, k[i], v, n);
        r->kern->axpy(out, q[i], m + i * n, n);
    }
}

typedef struct delta_job {
    ebb_recurrence x;
    const ebb_recurrent *d;
} delta_job;

/* A head, and a thread's floats. */
typedef struct head_part {
    const delta_job *job;
    size_t h, g;
    float *q, *k, *o;
} head_part;

static void replay_head(void *arg, float *m, const float *log)
{
    const head_part *p = arg;
    const ebb_forward *r = p->job->x.r;
    const size_t n = r->net->dim_delta;
    const float *u = log + delta_net_log_update_at(r->net, p->h), *k = log + log_key_at(r->net, p->g);

    for (size_t i = 0; i < n; i++) {
        r->kern->scale(m + i * n, u[n], n);
        r->kern->axpy(m + i * n, k[i], u, n);
    }
}

static void step_head(void *arg, float *m, uint32_t c, float *log)
{
    const head_part *p = arg;
    const ebb_forward *r = p->job->x.r;
    const ebb_net *net = r->net;
    const size_t n = net->dim_delta, n_v = net->n_head_delta_v, h = p->h;
    float *x = r->recurrent.in + c * n_channels(net), *v = x + (2 * net->n_head_delta_k + h) * n;
    float fade = expf(ebb_softplus(r->recurrent.alpha[c * n_v + h] + p->job->d->dt[h]) * p->job->d->a[h]);

    normalize(r, p->q, x + p->g * n, 1.0f / sqrtf((float)n));
    normalize(r, p->k, x + (net->n_head_delta_k + p->g) * n, 1.0f);
    delta_step(r, m, p->q, p->k, v, fade, 1.0f / (1.0f + expf(-r->recurrent.beta[c * n_v + h])), p->o);
    if (log) {
        memcpy(log + delta_net_log_update_at(net, h), v, n * sizeof *log);
        log[delta_net_log_update_at(net, h) + n] = fade;
    }
    r->kern->rmsnorm(p->o, p->o, p->job->d->norm, n, net->norm_eps);
    r->kern->silu_mul(r->buf.y + (c * n_v + h) * n, r->recurrent.z + (c * n_v + h) * n, p->o, n);
}

/* A head through all columns: its state stays in the cache. */
static void head_slice(void *arg, uint32_t h, uint32_t thread)
{
    static const ebb_recurrence_ops ops = { replay_head, step_head };
    const delta_job *job = arg;
    const ebb_forward *r = job->x.r;
    const ebb_net *net = r->net;
    const size_t n = net->dim_delta, n_k = net->n_head_delta_k;
    float *q = ebb_forward_floats(r, thread);
    head_part p = { .job = job, .h = h, .q = q, .k = q + n, .o = q + 2 * n };

    p.g = net->delta_is_grouped ? h / (net->n_head_delta_v / n_k) : h % n_k;
    ebb_recurrence_advance(&job->x, &ops, &p, delta_net_conv_floats(net) + h * n * n, n * n, q + 3 * n);
}

/* Keys, as several heads have used them: only when none reads the log any more. */
static void log_keys(const ebb_recurrence *x)
{
    const ebb_forward *r = x->r;
    const size_t n = r->net->dim_delta, n_k = r->net->n_head_delta_k;

    for (uint32_t c = 0; c < r->batch->n; c++) {
        float *log = ebb_recurrence_column_log(x, c);

        for (size_t g = 0; g < n_k && log; g++)
            normalize(r, log + log_key_at(r->net, g), r->recurrent.in + c * n_channels(r->net) + (n_k + g) * n, 1.0f);
    }
}

/* -- The layer -------------------------------------------------------------------- */

static ebb_status delta_net_advance(ebb_forward *r, const ebb_recurrent *d, ebb_error *err)
{
    delta_job job = { .x = ebb_recurrence_of(r, d), .d = d };
    uint32_t width = (uint32_t)n_channels(r->net);

    (void)err;
    ebb_recurrence_convolve(&(ebb_conv){
        .x = &job.x, .w = d->conv, .n_channels = width,
        .in = r->recurrent.in, .in_stride = width, .out = r->recurrent.in, .out_stride = width,
    });
    ebb_forward_slices(r, head_slice, &job, r->net->n_head_delta_v);
    log_keys(&job.x);
    return EBB_OK;
}

const ebb_recurrent_class ebb_recurrent_delta_net = {
    delta_net_state_floats, delta_net_log_floats, delta_net_thread_floats, delta_net_advance
};
