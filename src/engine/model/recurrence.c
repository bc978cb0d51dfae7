/* States that lag behind, and convolutions (recurrent.h). */
#include "model/recurrent.h"

#include <math.h>
#include <string.h>

ebb_recurrence ebb_recurrence_of(const ebb_forward *r, const ebb_recurrent *l)
{
    return (ebb_recurrence){ .r = r, .state_at = l->state_at, .log_at = l->log_at };
}

/* The layer's part of the state log's entry of a position. */
static float *log_of(const ebb_recurrence *x, uint32_t pos)
{
    const ebb_forward *r = x->r;

    return (float *)(void *)(r->recurrent.state_log + pos % r->n_state_log * r->net->state_log_bytes + x->log_at);
}

float *ebb_recurrence_column_log(const ebb_recurrence *x, uint32_t c)
{
    const ebb_batch_seq *s = ebb_batch_seq_of(x->r->batch, c);
    uint32_t pos = s->pos0 + c - s->c0;

    return pos < s->commit_pos ? NULL : log_of(x, pos);
}

/* n floats of a state are complete for position n_pos: copy them where a checkpoint wants that. */
static void save_checkpoints(const ebb_batch_seq *s, uint32_t n_pos, const float *part, size_t n)
{
    for (uint32_t i = 0; i < s->n_checkpoints; i++)
        if (s->checkpoints[i].n_pos == n_pos)
            memcpy(s->checkpoints[i].to + ((const char *)part - s->state), part, n * sizeof *part);
}

static void advance_seq(const ebb_recurrence *x, const ebb_batch_seq *s, const ebb_recurrence_ops *ops, void *arg,
                        size_t at, size_t n, float *work)
{
    float *part = (float *)(void *)(s->state + x->state_at) + at;

    for (uint32_t pos = s->state_pos; pos < s->pos0 + s->n; pos++) {
        bool is_logged = pos >= s->commit_pos;

        if (pos == s->commit_pos) {
            memcpy(work, part, n * sizeof *work);
            part = work;
        }
        if (pos < s->pos0)
            ops->replay(arg, part, log_of(x, pos));
        else
            ops->step(arg, part, s->c0 + pos - s->pos0, is_logged ? log_of(x, pos) : NULL);
        if (!is_logged)
            save_checkpoints(s, pos + 1, part, n);
    }
}

void ebb_recurrence_advance(const ebb_recurrence *x, const ebb_recurrence_ops *ops, void *arg, size_t at, size_t n,
                            float *work)
{
    for (uint32_t i = 0; i < x->r->batch->n_seqs; i++)
        advance_seq(x, &x->r->batch->seqs[i], ops, arg, at, n, work);
}

/* -- Convolution ----------------------------------------------------------------- */

/* Some channels. */
typedef struct conv_part {
    const ebb_conv *conv;
    uint32_t at, n;
} conv_part;

size_t ebb_conv_state_floats(const ebb_net *net, uint32_t n_channels)
{
    return (net->n_conv - 1) * (size_t)n_channels;
}

/* past [K - 1][n]: the oldest goes, u comes. */
static void push_input(const conv_part *p, float *past, const float *u)
{
    uint32_t n_past = p->conv->x->r->net->n_conv - 1;

    memmove(past, past + p->n, (size_t)(n_past - 1) * p->n * sizeof *past);
    memcpy(past + (size_t)(n_past - 1) * p->n, u, p->n * sizeof *past);
}

static void replay_input(void *arg, float *past, const float *log)
{
    const conv_part *p = arg;

    push_input(p, past, log + p->at);
}

static void convolve_column(void *arg, float *past, uint32_t c, float *log)
{
    const conv_part *p = arg;
    const ebb_conv *v = p->conv;
    const ebb_forward *r = v->x->r;
    const uint32_t n_conv = r->net->n_conv;
    const size_t in = c * v->in_stride + p->at;
    const float *w = v->w + (size_t)p->at * n_conv;
    float u[EBB_CONV_CHANNELS], sum[EBB_CONV_CHANNELS], gate[EBB_CONV_CHANNELS];
    float *y = v->out + c * v->out_stride + p->at;

    for (uint32_t j = 0; j < p->n; j++) {
        u[j] = v->in_gate ? v->in[in + j] * v->in_gate[in + j] : v->in[in + j];
        gate[j] = v->out_gate ? v->out_gate[in + j] : 1.0f;
        sum[j] = 0;
        for (uint32_t k = 0; k + 1 < n_conv; k++)
            sum[j] += w[j * n_conv + k] * past[(size_t)k * p->n + j];
        sum[j] += w[j * n_conv + n_conv - 1] * u[j];
        if (v->bias)
            sum[j] += v->bias[p->at + j];
    }
    push_input(p, past, u);
    if (log)
        memcpy(log + p->at, u, p->n * sizeof *log);
    if (!v->out_gate)
        r->kern->silu_mul(y, sum, gate, p->n);
    for (uint32_t j = 0; v->out_gate && j < p->n; j++)
        y[j] = sum[j] * gate[j];
}

static void conv_slice(void *arg, uint32_t slice, uint32_t thread)
{
    static const ebb_recurrence_ops ops = { replay_input, convolve_column };
    const ebb_conv *v = arg;
    const ebb_forward *r = v->x->r;
    conv_part p = { .conv = v, .at = slice * EBB_CONV_CHANNELS };
    size_t n_past = ebb_conv_state_floats(r->net, 1);

    p.n = v->n_channels - p.at < EBB_CONV_CHANNELS ? v->n_channels - p.at : EBB_CONV_CHANNELS;
    ebb_recurrence_advance(v->x, &ops, &p, p.at * n_past, p.n * n_past, ebb_forward_floats(r, thread));
}

void ebb_recurrence_convolve(const ebb_conv *conv)
{
    ebb_conv copy = *conv;

    ebb_forward_slices(conv->x->r, conv_slice, &copy, (conv->n_channels + EBB_CONV_CHANNELS - 1) / EBB_CONV_CHANNELS);
}

float ebb_softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}
