/* Several residual streams (Baykal et al. 2023, "Alternating Updates for Efficient Transformers"), as Gemma 3n has
 * them.  A layer computes with a prediction of its first stream only, and its output corrects all.  With streams s[i]
 * and m(v) = tanh(router norm(v) / E) of A elements:
 *
 *     p[i]  = s[i] + sum_k predict[i, k] s[k],   predict = predict_coef m(s[0])         x = p[0]
 *     x     = (x + attention + laurel) / sqrt(2),   laurel = h + norm(up (down h)),   h = norm(x) as attention sees it
 *     x     = x + feed-forward
 *     s[i]  = p[i] + (1 + correct[i]) (x - p[0]),   correct = correct_coef m(x)
 *     s[i] += norm(proj(gelu(gate (scale s[0])) z)),   i > 0                             z: layer_input.c
 *
 * What makes streams of the first, and one of all of them, keeps its length. */
#include <math.h>
#include <string.h>

#include "model/forward.h"

#define LEAST 1e-5f              /* mean square that a length is measured by */

typedef struct streams_job {
    const ebb_forward *r;
    const ebb_layer   *l;
    uint32_t i;                  /* stream */
} streams_job;

static float *stream_of(const ebb_forward *r, size_t c, uint32_t i)
{
    return r->buf.streams + (c * r->net->streams.n + i) * r->net->n_embd;
}

static void for_columns(ebb_forward *r, ebb_slice_fn *fn, const ebb_layer *l, uint32_t i)
{
    streams_job job = { .r = r, .l = l, .i = i };

    ebb_forward_slices(r, fn, &job, ebb_n_columns(&r->cols));
}

/* y becomes as long as x. */
static void lengthen(const ebb_forward *r, float *y, const float *x)
{
    size_t n = r->net->n_embd;
    float from = fmaxf(r->kern->dot(y, y, n), LEAST * (float)n), to = r->kern->dot(x, x, n);

    r->kern->scale(y, sqrtf(to / from), n);
}

/* -- The ends of a pass -------------------------------------------------------------- */

static void spread_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    size_t c = r->cols.c0 + slice, n = r->net->n_embd;

    (void)thread;
    memcpy(stream_of(r, c, 0), r->buf.x + c * n, n * sizeof(float));
    for (uint32_t i = 1; i < r->net->streams.n; i++)
        lengthen(r, stream_of(r, c, i), stream_of(r, c, 0));
}

ebb_status ebb_streams_begin(ebb_forward *r, ebb_error *err)
{
    const ebb_streams *s = &r->net->streams;
    ebb_mat m = { &s->spread, stream_of(r, r->cols.c0, 1), (size_t)s->n * r->net->n_embd };
    ebb_status st;

    ebb_op_input(r, r->buf.x, r->net->n_embd, ebb_act_bit(&s->spread));
    st = ebb_op_matmul(r, &m, 1, 0, err);
    if (st == EBB_OK)
        for_columns(r, spread_slice, NULL, 0);
    return st;
}

static void stream_input_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    uint32_t c = r->cols.c0 + slice;

    (void)thread;
    ebb_input_part(r, c, 0, r->net->n_embd, stream_of(r, c, job->i));
}

/* x = the mean of the first stream and of what the others give; behind the last of these it is complete. */
static void gather_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    size_t c = r->cols.c0 + slice, n = r->net->n_embd;
    float *x = r->buf.x + c * n, *y = r->buf.y + c * n;

    (void)thread;
    if (job->i == 1)
        memcpy(x, stream_of(r, c, 0), n * sizeof *x);
    lengthen(r, y, stream_of(r, c, 0));
    r->kern->add(x, y, n);
    if (job->i + 1 == r->net->streams.n)
        r->kern->scale(x, 1.0f / (float)r->net->streams.n, n);
}

ebb_status ebb_streams_end(ebb_forward *r, ebb_error *err)
{
    const ebb_streams *s = &r->net->streams;
    ebb_status st = EBB_OK;

    for (uint32_t i = 1; i < s->n && st == EBB_OK; i++) {
        ebb_mat m = { &s->gather[i - 1], r->buf.y + (size_t)r->cols.c0 * r->net->n_embd, r->net->n_embd };

        ebb_input_begin(r, r->net->n_embd, ebb_act_bit(m.w));
        for_columns(r, stream_input_slice, NULL, i);
        st = ebb_op_matmul(r, &m, 1, 0, err);
        if (st == EBB_OK)
            for_columns(r, gather_slice, NULL, i);
    }
    return st;
}

/* -- A layer ------------------------------------------------------------------------- */

/* m(v); h [E] is scratch. */
static void route(const ebb_forward *r, const ebb_altup *a, const float *v, float *h, float *m)
{
    size_t n = r->net->n_embd;

    ebb_norm_row(r, &a->router_norm, h, v, n);
    for (uint32_t i = 0; i < r->net->streams.n; i++)
        m[i] = tanhf(r->kern->dot(a->router + i * n, h, n) / (float)n);
}

/* y[i] = sum_k w[i * n + k] x[k] */
static void mix(const float *w, const float *x, float *y, uint32_t n_rows, uint32_t n)
{
    for (uint32_t i = 0; i < n_rows; i++) {
        y[i] = 0;
        for (uint32_t k = 0; k < n; k++)
            y[i] += w[i * n + k] * x[k];
    }
}

static void predict_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    const uint32_t n_streams = r->net->streams.n;
    size_t c = r->cols.c0 + slice, n = r->net->n_embd;
    float m[EBB_MAX_STREAMS], coef[EBB_MAX_STREAMS * EBB_MAX_STREAMS], *s = stream_of(r, c, 0);

    route(r, &job->l->altup, s, ebb_forward_floats(r, thread), m);
    mix(job->l->altup.predict, m, coef, n_streams * n_streams, n_streams);
    for (size_t j = 0; j < n; j++) {
        float old[EBB_MAX_STREAMS] = { 0 }, more[EBB_MAX_STREAMS];

        for (uint32_t k = 0; k < n_streams; k++)
            old[k] = s[k * n + j];
        mix(coef, old, more, n_streams, n_streams);
        for (uint32_t k = 0; k < n_streams; k++)
            s[k * n + j] = old[k] + more[k];
    }
    memcpy(r->buf.x + c * n, s, n * sizeof *s);
}

/* laurel = norm(laurel) + h */
static void laurel_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    size_t n = r->net->n_embd, at = (r->cols.c0 + slice) * n;
    float *y = r->buf.laurel + at, *h = ebb_forward_floats(r, thread);

    ebb_norm_row(r, &job->l->altup.norm, y, y, n);
    ebb_norm_row(r, &job->l->attn_norm, h, r->buf.x + at, n);
    r->kern->add(y, h, n);
}

ebb_status ebb_op_predict(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    const ebb_altup *a = &l->altup;
    uint32_t n = r->net->n_embd, rank = a->down.n_rows;
    ebb_mat down = { &a->down, r->buf.ff + (size_t)r->cols.c0 * rank, rank },
            up = { &a->up, r->buf.laurel + (size_t)r->cols.c0 * n, n };
    ebb_status st;

    for_columns(r, predict_slice, l, 0);
    ebb_op_norm(r, &l->attn_norm, ebb_act_bit(&a->down));
    st = ebb_op_matmul(r, &down, 1, 0, err);
    if (st != EBB_OK)
        return st;
    ebb_op_input(r, r->buf.ff, rank, ebb_act_bit(&a->up));
    st = ebb_op_matmul(r, &up, 1, 0, err);
    if (st == EBB_OK)
        for_columns(r, laurel_slice, l, 0);
    return st;
}

static void add_laurel_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    size_t n = r->net->n_embd, at = (r->cols.c0 + slice) * n;

    (void)thread;
    r->kern->add(r->buf.x + at, r->buf.laurel + at, n);
}

void ebb_op_add_laurel(ebb_forward *r)
{
    static const float root_half = 0.70710678f;

    for_columns(r, add_laurel_slice, NULL, 0);
    r->residual.x_scale = &root_half;            /* once attention is added */
}

/* The streams follow x; x = the first of them as the per-layer embedding sees it. */
static void correct_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    const ebb_altup *a = &job->l->altup;
    const uint32_t n_streams = r->net->streams.n;
    size_t c = r->cols.c0 + slice, n = r->net->n_embd;
    float *x = r->buf.x + c * n, *s = stream_of(r, c, 0), m[EBB_MAX_STREAMS], coef[EBB_MAX_STREAMS];

    route(r, a, x, ebb_forward_floats(r, thread), m);
    mix(a->correct, m, coef, n_streams, n_streams);
    r->kern->axpy(x, -1, s, n);
    for (uint32_t i = 0; i < n_streams; i++)
        r->kern->axpy(s + i * n, 1 + coef[i], x, n);
    for (size_t j = 0; j < n; j++)
        x[j] = s[j] * a->scale[j];
}

static void deliver_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const streams_job *job = arg;
    const ebb_forward *r = job->r;
    size_t c = r->cols.c0 + slice, n = r->net->n_embd;
    float *y = r->buf.y + c * n;

    (void)thread;
    ebb_norm_row(r, &job->l->input.post_norm, y, y, n);
    for (uint32_t i = 1; i < r->net->streams.n; i++)
        r->kern->add(stream_of(r, c, i), y, n);
}

ebb_status ebb_op_correct(ebb_forward *r, uint32_t i_layer, ebb_error *err)
{
    static const ebb_norm none = { 0 };
    const ebb_layer *l = &r->net->layers[i_layer];
    ebb_status st;

    ebb_op_norm(r, &none, 0);                    /* x is complete */
    for_columns(r, correct_slice, l, 0);
    st = ebb_op_layer_input(r, i_layer, err);
    if (st == EBB_OK)
        for_columns(r, deliver_slice, l, 0);
    r->residual.has_y = false;                   /* it went to the streams */
    return st;
}
