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
 * A layer's state is its last K - 1 inputs of the convolution, then M of each head. */
#include <math.h>
#include <string.h>

#include "model/forward.h"

#define CONV_CHANNELS 64u        /* of a slice */

static size_t n_channels(const ebb_net *net)
{
    return (2 * (size_t)net->n_head_delta_k + net->n_head_delta_v) * net->dim_delta;
}

static size_t conv_floats(const ebb_net *net)
{
    return (net->n_conv - 1) * n_channels(net);
}

size_t ebb_delta_state_bytes(const ebb_net *net)
{
    size_t heads = (size_t)net->n_head_delta_v * net->dim_delta * net->dim_delta;

    return (conv_floats(net) + heads) * sizeof(float);
}

typedef struct delta_job {
    const ebb_forward *r;
    const ebb_delta *d;
    float           *state;
} delta_job;

/* n floats of the state are complete for position n_pos: copy them where a mark wants that. */
static void save_checkpoints(const delta_job *job, uint32_t n_pos, const float *from, size_t n)
{
    const ebb_forward *r = job->r;

    for (uint32_t i = 0; i < r->n_checkpoints; i++)
        if (r->checkpoints[i].n_pos == n_pos)
            memcpy(r->checkpoints[i].to + ((const char *)from - r->live_state), from, n * sizeof *from);
}

/* -- Convolution ----------------------------------------------------------------- */

/* Some channels through all columns: in place, silu included. */
static void conv_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const delta_job *job = arg;
    const ebb_forward *r = job->r;
    const uint32_t n_conv = r->net->n_conv, width = (uint32_t)n_channels(r->net), at = slice * CONV_CHANNELS;
    const uint32_t n = width - at < CONV_CHANNELS ? width - at : CONV_CHANNELS;
    const float *w = job->d->conv + (size_t)at * n_conv;
    float sum[CONV_CHANNELS], ones[CONV_CHANNELS], *past = job->state + at;

    (void)thread;
    for (uint32_t j = 0; j < n; j++)
        ones[j] = 1.0f;
    for (uint32_t c = r->c0; c < r->c1; c++) {
        float *x = r->conv + (size_t)c * width + at;

        for (uint32_t j = 0; j < n; j++) {
            sum[j] = 0;
            for (uint32_t k = 0; k + 1 < n_conv; k++)
                sum[j] += w[j * n_conv + k] * past[(size_t)k * width + j];
            sum[j] += w[j * n_conv + n_conv - 1] * x[j];
        }
        for (uint32_t k = 0; k + 2 < n_conv; k++)
            memcpy(past + (size_t)k * width, past + (size_t)(k + 1) * width, n * sizeof *past);
        memcpy(past + (size_t)(n_conv - 2) * width, x, n * sizeof *past);
        for (uint32_t k = 0; k + 1 < n_conv; k++)
            save_checkpoints(job, r->pos0 + c + 1, past + (size_t)k * width, n);
        r->kern->silu_mul(x, sum, ones, n);
    }
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
static void delta_step(const ebb_forward *r, float *m, const float *q, const float *k, float *v, float fade, float strength,
                 float *out)
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

/* softplus without overflow */
static float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

/* A head through all columns: its state stays in the cache. */
static void head_slice(void *arg, uint32_t h, uint32_t thread)
{
    const delta_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_net *net = r->net;
    const size_t n = net->dim_delta, width = n_channels(net), n_v = net->n_head_delta_v;
    const size_t g = net->delta_is_grouped ? h / (n_v / net->n_head_delta_k) : h % net->n_head_delta_k;
    float *m = job->state + conv_floats(net) + h * n * n, *q = ebb_forward_floats(r, thread), *k = q + n, *o = k + n;

    for (uint32_t c = r->c0; c < r->c1; c++) {
        float *x = r->conv + c * width, *v = x + (2 * net->n_head_delta_k + h) * n;
        float fade = expf(softplus(r->alpha[c * n_v + h] + job->d->dt[h]) * job->d->a[h]);

        normalize(r, q, x + g * n, 1.0f / sqrtf((float)n));
        normalize(r, k, x + (net->n_head_delta_k + g) * n, 1.0f);
        delta_step(r, m, q, k, v, fade, 1.0f / (1.0f + expf(-r->beta[c * n_v + h])), o);
        save_checkpoints(job, r->pos0 + c + 1, m, n * n);
        r->kern->rmsnorm(o, o, job->d->norm, n, net->norm_eps);
        r->kern->silu_mul(r->y + (c * n_v + h) * n, r->z + (c * n_v + h) * n, o, n);
    }
}

/* -- The layer -------------------------------------------------------------------- */

ebb_status ebb_op_delta_net(ebb_forward *r, const ebb_layer *l, uint32_t i_layer, ebb_error *err)
{
    const ebb_net *net = r->net;
    const ebb_delta *d = &l->delta;
    uint32_t width = (uint32_t)n_channels(net), inner = net->n_head_delta_v * net->dim_delta;
    ebb_mat mats[] = {
        { &d->qkv, r->conv, width }, { &d->z, r->z, inner },
        { &d->alpha, r->alpha, net->n_head_delta_v }, { &d->beta, r->beta, net->n_head_delta_v },
    };
    delta_job job = { .r = r, .d = d, .state = (float *)(void *)(r->live_state + d->state_at) };
    ebb_status st;

    ebb_op_norm(r, &l->attn_norm, ebb_act_bit(&d->qkv) | ebb_act_bit(&d->z) | ebb_act_bit(&d->alpha) |
                                  ebb_act_bit(&d->beta));
    st = ebb_op_matmul(r, mats, 4, 0, err);
    if (st != EBB_OK)
        return st;
    ebb_forward_slices(r, conv_slice, &job, (width + CONV_CHANNELS - 1) / CONV_CHANNELS);
    ebb_forward_slices(r, head_slice, &job, net->n_head_delta_v);
    if (i_layer + 1 == net->n_layers)
        r->c0 = r->c1 - r->n_out;
    if (r->c0 == r->c1)
        return EBB_OK;
    ebb_op_input(r, r->y, inner, ebb_act_bit(&d->out));
    return ebb_op_add(r, &d->out, &l->attn_post_norm, err);
}
