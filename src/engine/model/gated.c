/* The first half of a feed-forward: gate, up, and the activation between them (forward.h). */
#include <math.h>

#include "model/weight_view.h"

#define SOON  8u                 /* columns */
#define CLAMP 7.0f
#define SLOPE 1.702f             /* g sigmoid(1.702 g) = silu(1.702 g) / 1.702 */

typedef struct gate_job {
    const ebb_forward *r;
    ebb_columns cols;
    bool     has_gate;
    uint32_t rows, n_slices;
    ebb_weight_view gate, up;    /* of both the same rows */
} gate_job;

_Static_assert(sizeof(gate_job) <= EBB_HEDGED_ARG, "");

static void clamped_mul(const ebb_forward *r, float *y, float *gate, float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        gate[i] = SLOPE * (gate[i] < CLAMP ? gate[i] : CLAMP);
        up[i] = ((up[i] < -CLAMP ? -CLAMP : up[i] < CLAMP ? up[i] : CLAMP) + 1.0f) / SLOPE;
    }
    r->kern->silu_mul(y, gate, up, n);
}

static void relu_mul(float *y, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = (gate[i] > 0 ? gate[i] : 0) * up[i];
}

static void relu2_mul(float *y, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = gate[i] > 0 ? gate[i] * gate[i] * up[i] : 0;
}

static void xielu_mul(const ebb_xielu *p, float *y, const float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = gate[i], low = expm1f(x < p->eps ? x : p->eps) - x;

        y[i] = ((x > 0 ? p->p * x * x : p->n * low) + p->b * x) * up[i];
    }
}

/* y = act(gate) * up; y may be gate. */
static void activate(const ebb_forward *r, const ebb_xielu *xielu, float *y, float *gate, float *up, uint32_t n)
{
    switch (r->net->ffn_gate) {
    case EBB_GATE_SILU:    r->kern->silu_mul(y, gate, up, n); break;
    case EBB_GATE_GELU:    r->kern->gelu_mul(y, gate, up, n); break;
    case EBB_GATE_CLAMPED: clamped_mul(r, y, gate, up, n); break;
    case EBB_GATE_RELU:    relu_mul(y, gate, up, n); break;
    case EBB_GATE_RELU2:   relu2_mul(y, gate, up, n); break;
    case EBB_GATE_XIELU:   xielu_mul(xielu, y, gate, up, n); break;
    }
}

/* The slice's rows [*row, *row + *n). */
static void gate_rows_of(const gate_job *job, uint32_t slice, uint32_t *row, uint32_t *n)
{
    *row = slice * job->rows;
    *n = ebb_weight_view_n_rows(&job->up) - *row;
    *n = *n < job->rows ? *n : job->rows;
    *row += ebb_weight_view_first_row(&job->up);
}

/* Where the rows of a slice begin; NULL if there is none. */
static const void *gate_at(const gate_job *job, const ebb_weight_view *h, uint32_t slice)
{
    uint32_t row, n;

    if (slice >= job->n_slices || !ebb_weight_view_is_whole(h))
        return NULL;
    gate_rows_of(job, slice, &row, &n);
    return ebb_weight_view_row(h, row);
}

/* n floats that are written soon: each line has to be read first. */
static void fetch_row(const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 64 / sizeof *y)
        __builtin_prefetch(y + i, 1);
}

/* y = act(gate) * up of a slice's n rows; gate and up are at `both`, a column in a row, so that only their product is
 * ever stored far apart. */
static void gate_rows(const gate_job *job, uint32_t slice, float *both, float *y, size_t y_stride, uint32_t thread)
{
    const ebb_forward *r = job->r;
    uint32_t row, n, n_tokens = ebb_n_columns(&job->cols);
    const void *next = gate_at(job, job->has_gate ? &job->gate : &job->up, slice + r->n_threads);
    float *gate = both, *up;

    gate_rows_of(job, slice, &row, &n);
    up = both + n * n_tokens;

    ebb_weight_view_multiply(r, &job->cols, job->has_gate ? &job->gate : &job->up, row, n, gate, n, thread,
                             job->has_gate ? gate_at(job, &job->up, slice) : next);
    if (job->has_gate)
        ebb_weight_view_multiply(r, &job->cols, &job->up, row, n, up, n, thread, next);
    else
        for (uint32_t i = 0; i < n * n_tokens; i++)
            up[i] = 1.0f;
    for (uint32_t c = 0; c < n_tokens; c++, y += y_stride, gate += n, up += n) {
        if (c + SOON < n_tokens)
            fetch_row(y + SOON * y_stride, n);
        activate(r, job->cols.xielu, y, gate, up, n);
    }
}

static float *ff_of(const gate_job *job, uint32_t row)
{
    return job->r->buf.ff + (size_t)job->cols.c0 * job->up.w.n_rows + row;
}

static void gate_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const gate_job *job = arg;
    uint32_t row, n;

    gate_rows_of(job, slice, &row, &n);
    gate_rows(job, slice, ebb_forward_floats(job->r, thread), ff_of(job, row), job->up.w.n_rows, thread);
}

static void gate_compute(const void *arg, uint32_t slice, uint32_t thread, void *out)
{
    const gate_job *job = arg;
    uint32_t row, n;

    gate_rows_of(job, slice, &row, &n);
    gate_rows(job, slice, out, out, n, thread);
}

static void gate_commit(const void *arg, uint32_t slice, const void *out)
{
    const gate_job *job = arg;
    uint32_t row, n;

    gate_rows_of(job, slice, &row, &n);
    ebb_scatter_rows(out, n, ebb_n_columns(&job->cols), ff_of(job, row), job->up.w.n_rows);
}

static void run_gate(gate_job *job, uint32_t n_slices)
{
    static const ebb_hedged_work redo = { gate_compute, gate_commit };

    job->n_slices = n_slices;
    if (ebb_has_few_tokens(&job->cols))
        ebb_pool_run_hedged(job->r->pool, &redo, job, sizeof *job, n_slices);
    else
        ebb_forward_slices(job->r, gate_slice, job, n_slices);
}

/* The parts of gate and up alternate. */
static bool is_interleaved(const gate_job *job)
{
    return job->has_gate && job->gate.m->stride == 2 && ebb_weight_view_is_whole(&job->gate) &&
           ebb_weight_view_is_whole(&job->up);
}

/* The next part of both and what is ready behind; all, where parts of one do not go with the other's. */
static ebb_status hold_both(ebb_forward *r, gate_job *job, ebb_error *err)
{
    bool any = false, in_turn = is_interleaved(job);
    ebb_status st = EBB_OK;

    while (st == EBB_OK && job->has_gate && !in_turn && job->gate.end < job->gate.m->n_parts)
        st = ebb_weight_view_acquire(r, &job->gate, err);
    while (st == EBB_OK && job->up.end < job->up.m->n_parts) {
        if (any && (in_turn || !job->has_gate) &&
            !(ebb_weight_view_is_ready(r, in_turn ? &job->gate : &job->up) && ebb_weight_view_is_ready(r, &job->up)))
            break;
        any = true;
        if (in_turn)
            st = ebb_weight_view_acquire(r, &job->gate, err);
        if (st == EBB_OK)
            st = ebb_weight_view_acquire(r, &job->up, err);
    }
    return st;
}

ebb_status ebb_op_gated(ebb_forward *r, const ebb_weight *gate, const ebb_weight *up, ebb_error *err)
{
    gate_job job;
    ebb_status st = EBB_OK;

    ebb_forward_lap(r, EBB_TIME_OTHER);
    job.r = r;
    job.cols = r->cols;
    job.has_gate = ebb_weight_exists(gate);
    job.rows = ebb_slice_rows(&r->cols, up);
    ebb_weight_view_init(r, &job.gate, job.has_gate ? gate : up);
    ebb_weight_view_init(r, &job.up, up);
    while (st == EBB_OK && job.up.end < job.up.m->n_parts) {
        st = hold_both(r, &job, err);
        ebb_forward_lap(r, EBB_TIME_READS);
        if (st == EBB_OK)
            run_gate(&job, (ebb_weight_view_n_rows(&job.up) + job.rows - 1) / job.rows);
        ebb_forward_lap(r, EBB_TIME_MATMUL);
        ebb_weight_view_release(r, &job.gate);
        ebb_weight_view_release(r, &job.up);
    }
    return st;
}

/* -- Cut off ------------------------------------------------------------------------ */

typedef struct cut_job {
    const ebb_forward *r;
    const ebb_layer   *l;
} cut_job;

/* mean + cutoff * standard deviation of n numbers, the latter with n - 1 as readers of such files have it. */
static float cutoff_of(const float *x, uint32_t n, float cutoff)
{
    double sum = 0, square = 0, mean;

    for (uint32_t i = 0; i < n; i++)
        sum += x[i];
    mean = sum / n;
    for (uint32_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean);
    return (float)(mean + cutoff * sqrt(square / (n > 1 ? n - 1 : 1)));
}

static void cut_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const cut_job *job = arg;
    const ebb_forward *r = job->r;
    uint32_t n = job->l->up.n_rows;
    float *gate = r->buf.ff + (size_t)(r->cols.c0 + slice) * n, *up = r->buf.up + (size_t)(r->cols.c0 + slice) * n;
    float least = cutoff_of(gate, n, job->l->gate_cutoff);

    (void)thread;
    for (uint32_t i = 0; i < n; i++)
        gate[i] = gate[i] > least ? gate[i] - least : 0;
    activate(r, r->cols.xielu, gate, gate, up, n);
}

ebb_status ebb_op_sparse_gated(ebb_forward *r, const ebb_layer *l, ebb_error *err)
{
    uint32_t n = l->up.n_rows;
    ebb_mat mats[] = {
        { &l->gate, r->buf.ff + (size_t)r->cols.c0 * n, n }, { &l->up, r->buf.up + (size_t)r->cols.c0 * n, n },
    };
    cut_job job = { .r = r, .l = l };
    ebb_status st = ebb_op_matmul(r, mats, 2, 0, err);

    if (st == EBB_OK)
        ebb_forward_slices(r, cut_slice, &job, ebb_n_columns(&r->cols));
    return st;
}
