/* Norms and matrices of a layer (forward.h). */
#include <math.h>
#include <stddef.h>

#include "model/weight_view.h"

/* -- Inputs ------------------------------------------------------------------- */

/* Elements of a column become the kinds of activations that are wanted. */
void ebb_input_part(const ebb_forward *r, uint32_t c, size_t from, size_t n, const float *x)
{
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (r->cols.in_acts >> kind & 1)
            r->kern->quantize[kind](x, n,
                                    (char *)r->cols.act[kind] + c * ebb_act_col_bytes((ebb_act)kind, r->cols.in_k) +
                                        ebb_act_bytes((ebb_act)kind, from));
}

static void quantize_col(const ebb_forward *r, uint32_t c, const float *x)
{
    ebb_input_part(r, c, 0, r->cols.in_k, x);
}

void ebb_norm_row(const ebb_forward *r, const ebb_norm *norm, float *y, const float *x, size_t n)
{
    float eps = norm->eps != 0 ? norm->eps : r->net->norm_eps;

    if (r->net->norm_is_layer)
        r->kern->layernorm(y, x, norm->w, norm->b, n, eps);
    else
        r->kern->rmsnorm(y, x, norm->w, n, eps);
    if (!r->net->norm_is_layer && norm->b)
        r->kern->add(y, norm->b, n);
}

typedef struct norm_job {
    const ebb_forward *r;
    const ebb_norm *norm;
} norm_job;

/* x += y as the block before left it. */
static void add_y(const ebb_forward *r, float *x, float *y, size_t n)
{
    if (r->residual.post)
        ebb_norm_row(r, r->residual.post, y, y, n);
    if (r->net->residual_scale != 1.0f)
        r->kern->scale(y, r->net->residual_scale, n);
    r->kern->add(x, y, n);
}

static void norm_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const norm_job *job = arg;
    const ebb_forward *r = job->r;
    size_t n = r->net->n_embd, c = r->cols.c0 + slice;
    float *x = r->buf.x + c * n, *h = ebb_forward_floats(r, thread);

    if (r->residual.has_y && !r->residual.y_waits)
        add_y(r, x, r->buf.y + c * n, n);
    if (r->residual.x_scale)
        r->kern->scale(x, *r->residual.x_scale, n);
    if (job->norm->is_on) {
        ebb_norm_row(r, job->norm, h, x, n);
        quantize_col(r, (uint32_t)c, h);
    } else {
        quantize_col(r, (uint32_t)c, x);
    }
    if (r->residual.has_y && r->residual.y_waits)
        add_y(r, x, r->buf.y + c * n, n);
}

void ebb_op_norm(ebb_forward *r, const ebb_norm *norm, unsigned acts)
{
    norm_job job = { .r = r, .norm = norm };

    ebb_input_begin(r, r->net->n_embd, acts);
    ebb_forward_slices(r, norm_slice, &job, ebb_n_columns(&r->cols));
    r->residual.has_y = r->residual.y_waits = false;
    r->residual.x_scale = NULL;
}

typedef struct input_job {
    const ebb_forward *r;
    const float   *src;
} input_job;

static void input_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const input_job *job = arg;
    uint32_t c = job->r->cols.c0 + slice;

    (void)thread;
    quantize_col(job->r, c, job->src + (size_t)c * job->r->cols.in_k);
}

void ebb_input_begin(ebb_forward *r, uint32_t n_k, unsigned acts)
{
    r->cols.in_k = n_k;
    r->cols.in_acts = acts;
}

void ebb_op_input(ebb_forward *r, const float *src, uint32_t n_k, unsigned acts)
{
    input_job job = { .r = r, .src = src };

    ebb_input_begin(r, n_k, acts);
    ebb_forward_slices(r, input_slice, &job, ebb_n_columns(&r->cols));
}

/* -- Matrices ----------------------------------------------------------------- */

/* A thread has its own copy where slices may be done twice (pool.h); the pass goes on while a late one
 * computes, so its columns are copied too, and of r only what is constant is looked at. */
typedef struct mat_job {
    const ebb_forward *r;
    ebb_columns cols;
    float    softcap;
    uint32_t rows;
    uint32_t n_slices, slices[EBB_MAX_MATS];     /* of what is held of each matrix */
    ebb_mat  mats[EBB_MAX_MATS];
    ebb_weight_view held[EBB_MAX_MATS];  /* last: only those in use are copied */
} mat_job;

static void cap_logits(float *y, uint32_t n, float scale, float cap)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = cap * tanhf(y[i] * scale / cap);
}

/* The slice's matrix, and its rows [*row, *row + *n). */
static uint32_t mat_of(const mat_job *job, uint32_t slice, uint32_t *row, uint32_t *n)
{
    uint32_t i = 0;

    while (slice >= job->slices[i])
        slice -= job->slices[i++];
    *row = slice * job->rows;
    *n = ebb_weight_view_n_rows(&job->held[i]) - *row;
    *n = *n < job->rows ? *n : job->rows;
    *row += ebb_weight_view_first_row(&job->held[i]);
    return i;
}

/* Where a slice begins; NULL if there is none, or its rows are not those of the tensor. */
static const void *mat_at(const mat_job *job, uint32_t slice)
{
    uint32_t row, n, i;

    if (slice >= job->n_slices)
        return NULL;
    i = mat_of(job, slice, &row, &n);
    return ebb_weight_view_is_whole(&job->held[i]) ? ebb_weight_view_row(&job->held[i], row) : NULL;
}

static void mat_rows(const mat_job *job, uint32_t slice, float *y, size_t y_stride, uint32_t thread)
{
    uint32_t row, n, i = mat_of(job, slice, &row, &n);

    ebb_weight_view_multiply(job->r, &job->cols, &job->held[i], row, n, y, y_stride, thread,
                             mat_at(job, slice + job->r->n_threads));
    for (uint32_t c = 0; job->softcap != 0 && c < ebb_n_columns(&job->cols); c++)
        cap_logits(y + c * y_stride, n, job->r->net->logit_scale, job->softcap);
}

static void mat_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const mat_job *job = arg;
    uint32_t row, n, i = mat_of(job, slice, &row, &n);

    (void)n;
    mat_rows(job, slice, job->mats[i].y + row, job->mats[i].y_stride, thread);
}

static void mat_compute(const void *arg, uint32_t slice, uint32_t thread, void *out)
{
    uint32_t row, n;

    mat_of(arg, slice, &row, &n);
    mat_rows(arg, slice, out, n, thread);
}

static void mat_commit(const void *arg, uint32_t slice, const void *out)
{
    const mat_job *job = arg;
    uint32_t row, n, i = mat_of(job, slice, &row, &n);

    ebb_scatter_rows(out, n, ebb_n_columns(&job->cols), job->mats[i].y + row, job->mats[i].y_stride);
}

_Static_assert(sizeof(mat_job) <= EBB_HEDGED_ARG &&
                   2 * EBB_FEW_TOKENS * EBB_SLICE_ROWS_FEW * sizeof(float) <= EBB_HEDGED_OUT,
               "");

/* n_slices of what is held of n matrices. */
static void run_mats(mat_job *job, uint32_t n, uint32_t n_slices)
{
    static const ebb_hedged_work redo = { mat_compute, mat_commit };

    job->n_slices = n_slices;
    if (ebb_has_few_tokens(&job->cols))
        ebb_pool_run_hedged(job->r->pool, &redo, job, offsetof(mat_job, held) + n * sizeof *job->held, n_slices);
    else
        ebb_forward_slices(job->r, mat_slice, job, n_slices);
}

/* Hold what comes next, from matrix *i on: a part, and all that can be had behind it without waiting. */
static ebb_status hold_some(ebb_forward *r, ebb_weight_view *h, uint32_t n, uint32_t *i, ebb_error *err)
{
    ebb_status st = EBB_OK;
    bool any = false;

    while (st == EBB_OK && *i < n && (!any || ebb_weight_view_is_ready(r, &h[*i]))) {
        st = ebb_weight_view_acquire_next(r, &h[*i], err);
        any = true;
        *i += h[*i].end == h[*i].m->n_parts;
    }
    return st;
}

ebb_status ebb_op_matmul(ebb_forward *r, const ebb_mat *mats, uint32_t n, float softcap, ebb_error *err)
{
    mat_job job;
    ebb_status st = EBB_OK;

    ebb_forward_lap(r, EBB_TIME_OTHER);
    job.r = r;
    job.cols = r->cols;
    job.rows = ebb_slice_rows(&r->cols, mats[0].w);
    job.softcap = softcap;
    for (uint32_t k = 0; k < n; k++) {
        job.mats[k] = mats[k];
        ebb_weight_view_init(r, &job.held[k], mats[k].w);
    }
    for (uint32_t i = 0; i < n && st == EBB_OK;) {
        uint32_t n_slices = 0;

        st = hold_some(r, job.held, n, &i, err);
        ebb_forward_lap(r, EBB_TIME_READS);
        for (uint32_t k = 0; k < n; k++) {
            job.slices[k] = (ebb_weight_view_n_rows(&job.held[k]) + job.rows - 1) / job.rows;
            n_slices += job.slices[k];
        }
        if (st == EBB_OK)
            run_mats(&job, n, n_slices);
        ebb_forward_lap(r, EBB_TIME_MATMUL);
        for (uint32_t k = 0; k < n; k++)
            ebb_weight_view_release(r, &job.held[k]);
    }
    return st;
}

/* -- A matrix for each head ------------------------------------------------------ */

typedef struct heads_job {
    const ebb_forward  *r;
    const ebb_mat      *m;
    const ebb_per_head *p;
    ebb_weight_view     held;
} heads_job;

/* The head's columns are made activations in the thread's own place. */
static void heads_slice(void *arg, uint32_t h, uint32_t thread)
{
    const heads_job *job = arg;
    const ebb_weight *w = job->m->w;
    uint32_t n_rows = w->n_rows / job->p->n_heads;
    ebb_act kind = ebb_kernel_act(w->type);
    size_t bytes = ebb_act_col_bytes(kind, w->n_k);
    const ebb_forward *r = job->r;
    ebb_columns cols = r->cols;

    cols.act[kind] = r->latent.head_acts + thread * r->latent.head_acts_bytes;
    for (uint32_t c = cols.c0; c < cols.c1; c++)
        r->kern->quantize[kind](job->p->src + c * job->p->src_stride + h * job->p->src_head, w->n_k,
                                (char *)cols.act[kind] + c * bytes);
    ebb_weight_view_multiply(r, &cols, &job->held, h * n_rows, n_rows, job->m->y + h * job->p->y_head,
                             job->m->y_stride, thread, NULL);
}

ebb_status ebb_op_heads(ebb_forward *r, const ebb_mat *m, const ebb_per_head *p, ebb_error *err)
{
    heads_job job;
    ebb_status st = EBB_OK;

    job.r = r;
    job.m = m;
    job.p = p;
    ebb_weight_view_init(r, &job.held, m->w);
    while (st == EBB_OK && job.held.end < job.held.m->n_parts)
        st = ebb_weight_view_acquire(r, &job.held, err);
    if (st == EBB_OK)
        ebb_forward_slices(r, heads_slice, &job, p->n_heads);
    ebb_weight_view_release(r, &job.held);
    ebb_forward_lap(r, EBB_TIME_MATMUL);
    return st;
}

ebb_status ebb_op_add(ebb_forward *r, const ebb_weight *w, const ebb_norm *post, ebb_error *err)
{
    ebb_mat m = { .w = w, .y = r->buf.y + (size_t)r->cols.c0 * w->n_rows, .y_stride = w->n_rows };

    ebb_op_add_y(r, post);
    return ebb_op_matmul(r, &m, 1, 0, err);
}

void ebb_op_add_y(ebb_forward *r, const ebb_norm *post)
{
    r->residual.has_y = true;
    r->residual.post = post && post->is_on ? post : NULL;
}
