/* Norms and matrices of a layer (run.h). */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "model/run.h"

#define FEW_COLS    4u
/* A slice of few columns: some tens of microseconds of decode, so that nobody waits long for the last one. */
#define BYTES_FEW   ((size_t)512 << 10)
#define ROWS_FEWEST 32u
#define SOON        8u           /* columns */

static bool has_few_cols(const ebb_run *r)
{
    return r->c1 - r->c0 <= FEW_COLS;
}

static uint32_t rows_of_slice(const ebb_run *r, const ebb_weight *w)
{
    size_t rows = BYTES_FEW / w->row_bytes / 16 * 16;

    if (!has_few_cols(r))
        return EBB_SLICE_ROWS;
    return rows > EBB_SLICE_ROWS_FEW ? EBB_SLICE_ROWS_FEW : rows < ROWS_FEWEST ? ROWS_FEWEST : (uint32_t)rows;
}

/* -- Inputs ------------------------------------------------------------------- */

/* Elements of a column become the kinds of activations that are wanted. */
void ebb_input_part(const ebb_run *r, uint32_t c, size_t from, size_t n, const float *x)
{
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (r->in_acts >> kind & 1)
            r->kern->quantize[kind](x, n, (char *)r->act[kind] + c * ebb_act_col_bytes((ebb_act)kind, r->in_k) +
                                          ebb_act_bytes((ebb_act)kind, from));
}

static void quantize_col(const ebb_run *r, uint32_t c, const float *x)
{
    ebb_input_part(r, c, 0, r->in_k, x);
}

void ebb_norm_row(const ebb_run *r, const ebb_norm *norm, float *y, const float *x, size_t n)
{
    if (r->net->norm_is_layer)
        r->kern->layernorm(y, x, norm->w, norm->b, n, r->net->norm_eps);
    else
        r->kern->rmsnorm(y, x, norm->w, n, r->net->norm_eps);
}

typedef struct norm_job {
    const ebb_run  *r;
    const ebb_norm *norm;
} norm_job;

/* x += y as the block before left it. */
static void add_y(const ebb_run *r, float *x, float *y, size_t n)
{
    if (r->post)
        ebb_norm_row(r, r->post, y, y, n);
    if (r->net->residual_scale != 1.0f)
        r->kern->scale(y, r->net->residual_scale, n);
    r->kern->add(x, y, n);
}

static void norm_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const norm_job *job = arg;
    const ebb_run *r = job->r;
    size_t n = r->net->n_embd, c = r->c0 + slice;
    float *x = r->x + c * n, *h = ebb_run_floats(r, thread);

    if (r->has_y && !r->y_waits)
        add_y(r, x, r->y + c * n, n);
    if (job->norm->is_on) {
        ebb_norm_row(r, job->norm, h, x, n);
        quantize_col(r, (uint32_t)c, h);
    } else {
        quantize_col(r, (uint32_t)c, x);
    }
    if (r->has_y && r->y_waits)
        add_y(r, x, r->y + c * n, n);
}

void ebb_op_norm(ebb_run *r, const ebb_norm *norm, unsigned acts)
{
    norm_job job = { .r = r, .norm = norm };

    ebb_input_begin(r, r->net->n_embd, acts);
    ebb_run_slices(r, norm_slice, &job, r->c1 - r->c0);
    r->has_y = r->y_waits = false;
}

typedef struct input_job {
    const ebb_run *r;
    const float   *src;
} input_job;

static void input_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const input_job *job = arg;
    uint32_t c = job->r->c0 + slice;

    (void)thread;
    quantize_col(job->r, c, job->src + (size_t)c * job->r->in_k);
}

void ebb_input_begin(ebb_run *r, uint32_t n_k, unsigned acts)
{
    r->in_k = n_k;
    r->in_acts = acts;
}

void ebb_op_input(ebb_run *r, const float *src, uint32_t n_k, unsigned acts)
{
    input_job job = { .r = r, .src = src };

    ebb_input_begin(r, n_k, acts);
    ebb_run_slices(r, input_slice, &job, r->c1 - r->c0);
}

/* -- What is held of a matrix ---------------------------------------------------- */

/* Parts [begin, end) of a weight's matrix are held, and where they are. */
typedef struct held {
    ebb_weight        w;         /* a copy: a late thread of the pool may still look when the caller's is gone */
    const ebb_matrix *m;
    uint32_t          begin, end;
    const void       *at[EBB_MAX_PARTS];
} held;

static void hold_nothing(const ebb_run *r, held *h, const ebb_weight *w)
{
    h->w = *w;
    h->m = &r->net->matrices[w->matrix];
    h->begin = h->end = 0;
}

static uint32_t next_extent(const held *h)
{
    return h->m->extent + h->end * h->m->stride;
}

static bool is_ready(const ebb_run *r, const held *h)
{
    return ebb_res_is_ready(r->res, next_extent(h));
}

static ebb_status hold(ebb_run *r, held *h, ebb_error *err)
{
    ebb_status st = ebb_res_acquire(r->res, next_extent(h), &h->at[h->end], err);

    h->end += st == EBB_OK;
    return st;
}

/* The weight is its matrix, so that a part of it is a run of the weight's rows. */
static bool is_plain(const held *h)
{
    return h->w.first == 0 && h->w.run == 0;
}

/* The next part, or all of a matrix of which the weight is a view. */
static ebb_status hold_next(ebb_run *r, held *h, ebb_error *err)
{
    ebb_status st;

    do
        st = hold(r, h, err);
    while (st == EBB_OK && !is_plain(h) && h->end < h->m->n_parts);
    return st;
}

static void let_go(ebb_run *r, held *h)
{
    for (; h->begin < h->end; h->begin++)
        ebb_res_release(r->res, h->m->extent + h->begin * h->m->stride);
}

/* Rows of the weight that are held. */
static uint32_t first_row(const held *h)
{
    return is_plain(h) ? h->begin * h->m->part_rows : 0;
}

static uint32_t n_rows_held(const held *h)
{
    uint32_t end = h->end * h->m->part_rows;

    if (h->begin == h->end)
        return 0;
    return (is_plain(h) && end < h->w.n_rows ? end : h->w.n_rows) - first_row(h);
}

/* -- Matrices ----------------------------------------------------------------- */

/* Row of the tensor, in a part that is held. */
static const void *row_at(const held *h, uint32_t row)
{
    return (const char *)h->at[row / h->m->part_rows] + row % h->m->part_rows * h->w.row_bytes;
}

/* Rows [row, row + n) of the tensor, which lie in one part, times the active columns. */
static void multiply_run(const ebb_run *r, const held *h, uint32_t row, uint32_t n, float *y, size_t y_stride,
                         uint32_t thread, const void *next)
{
    const ebb_weight *w = &h->w;
    ebb_act kind = ebb_kernel_act(w->type);
    size_t col_bytes = ebb_act_col_bytes(kind, w->n_k);
    ebb_matmul a = {
        .type = w->type, .w = row_at(h, row), .row_bytes = w->row_bytes, .n_rows = n, .n_k = w->n_k,
        .x = (const char *)r->act[kind] + r->c0 * col_bytes, .x_col_bytes = col_bytes, .n_cols = r->c1 - r->c0,
        .y = y, .y_stride = y_stride, .scratch = ebb_run_scratch(r, thread), .next = next,
    };

    r->kern->matmul[w->type](&a);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Rows [row, row + n) of W times the active columns, with the bias; `next` as in kernels.h. */
static void multiply(const ebb_run *r, const held *h, uint32_t row, uint32_t n, float *y, size_t y_stride,
                     uint32_t thread, const void *next)
{
    const ebb_weight *w = &h->w;

    for (uint32_t i = 0, m; i < n; i += m) {
        uint32_t at = row + i, in_run = w->run ? at % w->run : 0;

        m = w->run ? smaller(w->run - in_run, n - i) : n - i;
        at = w->first + (w->run ? at / w->run * (w->run + w->skip) + in_run : at);
        m = smaller(m, h->m->part_rows - at % h->m->part_rows);
        multiply_run(r, h, at, m, y + i, y_stride, thread, i + m < n && is_plain(h) ? row_at(h, at + m) : next);
    }
    for (uint32_t c = 0; w->bias && c < r->c1 - r->c0; c++)
        r->kern->add(y + c * y_stride, w->bias + row, n);
}

/* A thread has its own copy where slices may be done twice (pool.h); the run goes on while a late one
 * computes, so it is copied too. */
typedef struct mat_job {
    ebb_run  r;
    float    softcap;
    uint32_t rows;
    uint32_t n_slices, slices[EBB_MAX_MATS];     /* of what is held of each matrix */
    ebb_mat  mats[EBB_MAX_MATS];
    held     held[EBB_MAX_MATS];         /* last: only those in use are copied */
} mat_job;

static void cap_logits(float *y, uint32_t n, float cap)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = cap * tanhf(y[i] / cap);
}

/* The slice's matrix, and its rows [*row, *row + *n). */
static uint32_t mat_of(const mat_job *job, uint32_t slice, uint32_t *row, uint32_t *n)
{
    uint32_t i = 0;

    while (slice >= job->slices[i])
        slice -= job->slices[i++];
    *row = slice * job->rows;
    *n = smaller(n_rows_held(&job->held[i]) - *row, job->rows);
    *row += first_row(&job->held[i]);
    return i;
}

/* Where a slice begins; NULL if there is none, or its rows are not those of the tensor. */
static const void *mat_at(const mat_job *job, uint32_t slice)
{
    uint32_t row, n, i;

    if (slice >= job->n_slices)
        return NULL;
    i = mat_of(job, slice, &row, &n);
    return is_plain(&job->held[i]) ? row_at(&job->held[i], row) : NULL;
}

/* A slice of a cold file waits for the disk: who cancels waits for no more than those at work. */
static bool is_canceled(const ebb_run *r)
{
    if (!r->cancel || !atomic_load_explicit(r->cancel, memory_order_relaxed))
        return false;
    atomic_store_explicit(r->is_cut, true, memory_order_relaxed);
    return true;
}

static void mat_rows(const mat_job *job, uint32_t slice, float *y, size_t y_stride, uint32_t thread)
{
    uint32_t row, n, i = mat_of(job, slice, &row, &n);

    if (is_canceled(&job->r)) {                  /* what goes on with them must find numbers */
        for (uint32_t c = 0; c < job->r.c1 - job->r.c0; c++)
            memset(y + c * y_stride, 0, n * sizeof *y);
        return;
    }
    multiply(&job->r, &job->held[i], row, n, y, y_stride, thread, mat_at(job, slice + job->r.n_threads));
    for (uint32_t c = 0; job->softcap != 0 && c < job->r.c1 - job->r.c0; c++)
        cap_logits(y + c * y_stride, n, job->softcap);
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

static void put_rows(const float *rows, uint32_t n, uint32_t n_cols, float *y, size_t y_stride)
{
    for (uint32_t c = 0; c < n_cols; c++)
        memcpy(y + c * y_stride, rows + c * n, n * sizeof *y);
}

static void mat_commit(const void *arg, uint32_t slice, const void *out)
{
    const mat_job *job = arg;
    uint32_t row, n, i = mat_of(job, slice, &row, &n);

    put_rows(out, n, job->r.c1 - job->r.c0, job->mats[i].y + row, job->mats[i].y_stride);
}

_Static_assert(sizeof(mat_job) <= EBB_REDO_ARG && 2 * FEW_COLS * EBB_SLICE_ROWS_FEW * sizeof(float) <= EBB_REDO_OUT, "");

/* n_slices of what is held of n matrices. */
static void run_mats(mat_job *job, uint32_t n, uint32_t n_slices)
{
    static const ebb_redo redo = { mat_compute, mat_commit };

    job->n_slices = n_slices;
    if (has_few_cols(&job->r))
        ebb_pool_run_redo(job->r.pool, &redo, job, offsetof(mat_job, held) + n * sizeof *job->held, n_slices);
    else
        ebb_run_slices(&job->r, mat_slice, job, n_slices);
}

/* Hold what comes next, from matrix *i on: a part, and all that can be had behind it without waiting. */
static ebb_status hold_some(ebb_run *r, held *h, uint32_t n, uint32_t *i, ebb_error *err)
{
    ebb_status st = EBB_OK;
    bool any = false;

    while (st == EBB_OK && *i < n && (!any || is_ready(r, &h[*i]))) {
        st = hold_next(r, &h[*i], err);
        any = true;
        *i += h[*i].end == h[*i].m->n_parts;
    }
    return st;
}

ebb_status ebb_op_matmul(ebb_run *r, const ebb_mat *mats, uint32_t n, float softcap, ebb_error *err)
{
    mat_job job;
    ebb_status st = EBB_OK;

    ebb_run_lap(r, EBB_SPENT_REST);
    job.r = *r;
    job.rows = rows_of_slice(r, mats[0].w);
    job.softcap = softcap;
    for (uint32_t k = 0; k < n; k++) {
        job.mats[k] = mats[k];
        hold_nothing(r, &job.held[k], mats[k].w);
    }
    for (uint32_t i = 0; i < n && st == EBB_OK;) {
        uint32_t n_slices = 0;

        st = hold_some(r, job.held, n, &i, err);
        ebb_run_lap(r, EBB_SPENT_READS);
        for (uint32_t k = 0; k < n; k++) {
            job.slices[k] = (n_rows_held(&job.held[k]) + job.rows - 1) / job.rows;
            n_slices += job.slices[k];
        }
        if (st == EBB_OK)
            run_mats(&job, n, n_slices);
        ebb_run_lap(r, EBB_SPENT_MATRICES);
        for (uint32_t k = 0; k < n; k++)
            let_go(r, &job.held[k]);
    }
    return st;
}

/* -- A matrix for each head ------------------------------------------------------ */

typedef struct heads_job {
    const ebb_run      *r;
    const ebb_mat      *m;
    const ebb_per_head *p;
    held                held;
} heads_job;

/* The head's columns are made activations in the thread's own place. */
static void heads_slice(void *arg, uint32_t h, uint32_t thread)
{
    const heads_job *job = arg;
    const ebb_weight *w = job->m->w;
    uint32_t n_rows = w->n_rows / job->p->n_heads;
    ebb_act kind = ebb_kernel_act(w->type);
    size_t bytes = ebb_act_col_bytes(kind, w->n_k);
    ebb_run sub = *job->r;

    sub.act[kind] = sub.head_acts + thread * sub.head_acts_bytes;
    for (uint32_t c = sub.c0; c < sub.c1; c++)
        sub.kern->quantize[kind](job->p->src + c * job->p->src_stride + h * job->p->src_head, w->n_k,
                                 (char *)sub.act[kind] + c * bytes);
    multiply(&sub, &job->held, h * n_rows, n_rows, job->m->y + h * job->p->y_head, job->m->y_stride, thread, NULL);
}

ebb_status ebb_op_heads(ebb_run *r, const ebb_mat *m, const ebb_per_head *p, ebb_error *err)
{
    heads_job job;
    ebb_status st = EBB_OK;

    job.r = r;
    job.m = m;
    job.p = p;
    hold_nothing(r, &job.held, m->w);
    while (st == EBB_OK && job.held.end < job.held.m->n_parts)
        st = hold(r, &job.held, err);
    if (st == EBB_OK)
        ebb_run_slices(r, heads_slice, &job, p->n_heads);
    let_go(r, &job.held);
    ebb_run_lap(r, EBB_SPENT_MATRICES);
    return st;
}

/* -- Feed-forward -------------------------------------------------------------- */

#define CLAMP 7.0f
#define SLOPE 1.702f             /* g sigmoid(1.702 g) = silu(1.702 g) / 1.702 */

typedef struct gate_job {
    ebb_run  r;
    bool     has_gate;
    uint32_t rows, n_slices;
    held     gate, up;           /* of both the same rows */
} gate_job;

_Static_assert(sizeof(gate_job) <= EBB_REDO_ARG, "");

static void clamped_mul(const ebb_run *r, float *y, float *gate, float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        gate[i] = SLOPE * (gate[i] < CLAMP ? gate[i] : CLAMP);
        up[i] = ((up[i] < -CLAMP ? -CLAMP : up[i] < CLAMP ? up[i] : CLAMP) + 1.0f) / SLOPE;
    }
    r->kern->silu_mul(y, gate, up, n);
}

/* y = act(gate) * up; y may be gate. */
static void activate(const ebb_run *r, float *y, float *gate, float *up, uint32_t n)
{
    switch (r->net->ffn_gate) {
    case EBB_GATE_SILU:    r->kern->silu_mul(y, gate, up, n); break;
    case EBB_GATE_GELU:    r->kern->gelu_mul(y, gate, up, n); break;
    case EBB_GATE_CLAMPED: clamped_mul(r, y, gate, up, n); break;
    }
}

/* The slice's rows [*row, *row + *n). */
static void gate_rows_of(const gate_job *job, uint32_t slice, uint32_t *row, uint32_t *n)
{
    *row = slice * job->rows;
    *n = smaller(n_rows_held(&job->up) - *row, job->rows);
    *row += first_row(&job->up);
}

/* Where the rows of a slice begin; NULL if there is none. */
static const void *gate_at(const gate_job *job, const held *h, uint32_t slice)
{
    uint32_t row, n;

    if (slice >= job->n_slices || !is_plain(h))
        return NULL;
    gate_rows_of(job, slice, &row, &n);
    return row_at(h, row);
}

/* n floats that are written soon: each line has to be read first. */
static void fetch_row(const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 64 / sizeof *y)
        __builtin_prefetch(y + i, 1);
}

/* y = act(gate) * up of a slice's n rows; gate and up stand at `both`, a column in a row, so that only their product is
 * ever stored far apart. */
static void gate_rows(const gate_job *job, uint32_t slice, float *both, float *y, size_t y_stride, uint32_t thread)
{
    const ebb_run *r = &job->r;
    uint32_t row, n;
    uint32_t n_cols = r->c1 - r->c0;
    const void *next = gate_at(job, job->has_gate ? &job->gate : &job->up, slice + r->n_threads);
    float *gate = both, *up;

    gate_rows_of(job, slice, &row, &n);
    up = both + n * n_cols;

    multiply(r, job->has_gate ? &job->gate : &job->up, row, n, gate, n, thread, job->has_gate ? gate_at(job, &job->up, slice) : next);
    if (job->has_gate)
        multiply(r, &job->up, row, n, up, n, thread, next);
    else
        for (uint32_t i = 0; i < n * n_cols; i++)
            up[i] = 1.0f;
    for (uint32_t c = 0; c < n_cols; c++, y += y_stride, gate += n, up += n) {
        if (c + SOON < n_cols)
            fetch_row(y + SOON * y_stride, n);
        activate(r, y, gate, up, n);
    }
}

static float *ff_of(const gate_job *job, uint32_t row)
{
    return job->r.ff + (size_t)job->r.c0 * job->up.w.n_rows + row;
}

static void gate_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const gate_job *job = arg;
    uint32_t row, n;

    gate_rows_of(job, slice, &row, &n);
    gate_rows(job, slice, ebb_run_floats(&job->r, thread), ff_of(job, row), job->up.w.n_rows, thread);
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
    put_rows(out, n, job->r.c1 - job->r.c0, ff_of(job, row), job->up.w.n_rows);
}

static void run_gate(gate_job *job, uint32_t n_slices)
{
    static const ebb_redo redo = { gate_compute, gate_commit };

    job->n_slices = n_slices;
    if (has_few_cols(&job->r))
        ebb_pool_run_redo(job->r.pool, &redo, job, sizeof *job, n_slices);
    else
        ebb_run_slices(&job->r, gate_slice, job, n_slices);
}

/* The parts of gate and up stand in turn. */
static bool is_in_turn(const gate_job *job)
{
    return job->has_gate && job->gate.m->stride == 2 && is_plain(&job->gate) && is_plain(&job->up);
}

/* The next part of both and what is ready behind; all, where parts of one do not go with the other's. */
static ebb_status hold_both(ebb_run *r, gate_job *job, ebb_error *err)
{
    bool any = false, in_turn = is_in_turn(job);
    ebb_status st = EBB_OK;

    while (st == EBB_OK && job->has_gate && !in_turn && job->gate.end < job->gate.m->n_parts)
        st = hold(r, &job->gate, err);
    while (st == EBB_OK && job->up.end < job->up.m->n_parts) {
        if (any && (in_turn || !job->has_gate) && !(is_ready(r, in_turn ? &job->gate : &job->up) && is_ready(r, &job->up)))
            break;
        any = true;
        if (in_turn)
            st = hold(r, &job->gate, err);
        if (st == EBB_OK)
            st = hold(r, &job->up, err);
    }
    return st;
}

ebb_status ebb_op_gated(ebb_run *r, const ebb_weight *gate, const ebb_weight *up, ebb_error *err)
{
    gate_job job;
    ebb_status st = EBB_OK;

    ebb_run_lap(r, EBB_SPENT_REST);
    job.r = *r;
    job.has_gate = ebb_weight_is(gate);
    job.rows = rows_of_slice(r, up);
    hold_nothing(r, &job.gate, job.has_gate ? gate : up);
    hold_nothing(r, &job.up, up);
    while (st == EBB_OK && job.up.end < job.up.m->n_parts) {
        st = hold_both(r, &job, err);
        ebb_run_lap(r, EBB_SPENT_READS);
        if (st == EBB_OK)
            run_gate(&job, (n_rows_held(&job.up) + job.rows - 1) / job.rows);
        ebb_run_lap(r, EBB_SPENT_MATRICES);
        let_go(r, &job.gate);
        let_go(r, &job.up);
    }
    return st;
}

ebb_status ebb_op_add(ebb_run *r, const ebb_weight *w, const ebb_norm *post, ebb_error *err)
{
    ebb_mat m = { .w = w, .y = r->y + (size_t)r->c0 * w->n_rows, .y_stride = w->n_rows };

    ebb_op_add_y(r, post);
    return ebb_op_matmul(r, &m, 1, 0, err);
}

void ebb_op_add_y(ebb_run *r, const ebb_norm *post)
{
    r->has_y = true;
    r->post = post && post->is_on ? post : NULL;
}
