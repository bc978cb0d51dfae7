/* Norms and matrices of a layer (run.h). */
#include <math.h>

#include "model/run.h"

/* Rows of a slice: a few microseconds of decode, so that a stolen CPU holds up
 * little; more for many columns, where kernels unpack a tile of weights once. */
#define ROWS_FEW 32u
#define FEW_COLS  4u

static uint32_t rows_of_slice(const ebb_run *r)
{
    return r->c1 - r->c0 <= FEW_COLS ? ROWS_FEW : EBB_SLICE_ROWS;
}

/* -- Inputs ------------------------------------------------------------------- */

/* One column becomes the kinds of activations that are wanted. */
static void quantize_col(const ebb_run *r, uint32_t c, const float *x)
{
    for (unsigned kind = 0; kind < EBB_ACT_COUNT; kind++)
        if (r->in_acts >> kind & 1)
            r->kern->quantize[kind](x, r->in_k,
                                    (char *)r->act[kind] + c * ebb_act_col_bytes((ebb_act)kind, r->in_k));
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

    r->in_k = r->net->n_embd;
    r->in_acts = acts;
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

void ebb_op_input(ebb_run *r, const float *src, uint32_t n_k, unsigned acts)
{
    input_job job = { .r = r, .src = src };

    r->in_k = n_k;
    r->in_acts = acts;
    ebb_run_slices(r, input_slice, &job, r->c1 - r->c0);
}

/* -- Matrices ----------------------------------------------------------------- */

/* Rows [row, row + n) of W times the active columns: rows of the tensor that stand in a row. */
static void multiply_run(const ebb_run *r, const ebb_weight *w, const void *data, uint32_t row, uint32_t n,
                         float *y, size_t y_stride, uint32_t thread)
{
    ebb_act kind = ebb_kernel_act(w->type);
    size_t col_bytes = ebb_act_col_bytes(kind, w->n_k);
    ebb_matmul a = {
        .type = w->type, .w = (const char *)data + row * w->row_bytes, .row_bytes = w->row_bytes,
        .n_rows = n, .n_k = w->n_k,
        .x = (const char *)r->act[kind] + r->c0 * col_bytes, .x_col_bytes = col_bytes, .n_cols = r->c1 - r->c0,
        .y = y, .y_stride = y_stride, .scratch = ebb_run_scratch(r, thread),
    };

    r->kern->matmul[w->type](&a);
}

/* Rows [row, row + n) of W times the active columns, with the bias. */
static void multiply(const ebb_run *r, const ebb_weight *w, const void *data, uint32_t row, uint32_t n,
                     float *y, size_t y_stride, uint32_t thread)
{
    for (uint32_t i = 0, m; i < n; i += m) {
        uint32_t at = row + i, in_run = w->run ? at % w->run : 0;

        m = w->run && w->run - in_run < n - i ? w->run - in_run : n - i;
        at = w->run ? at / w->run * (w->run + w->skip) + in_run : at;
        multiply_run(r, w, data, w->first + at, m, y + i, y_stride, thread);
    }
    for (uint32_t c = 0; w->bias && c < r->c1 - r->c0; c++)
        r->kern->add(y + c * y_stride, w->bias + row, n);
}

typedef struct mat_job {
    const ebb_run *r;
    const ebb_mat *mats;
    uint32_t       n_mats, rows;
    uint32_t       slices[EBB_MAX_MATS]; /* of each matrix */
    const void    *data[EBB_MAX_MATS];
    float          softcap;
} mat_job;

static void cap_logits(float *y, uint32_t n, float cap)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = cap * tanhf(y[i] / cap);
}

static void mat_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const mat_job *job = arg;
    const ebb_mat *m = job->mats;
    uint32_t i = 0, row, n;

    while (slice >= job->slices[i])
        slice -= job->slices[i++];
    m += i;
    row = slice * job->rows;
    n = m->w->n_rows - row < job->rows ? m->w->n_rows - row : job->rows;
    multiply(job->r, m->w, job->data[i], row, n, m->y + row, m->y_stride, thread);
    for (uint32_t c = 0; job->softcap != 0 && c < job->r->c1 - job->r->c0; c++)
        cap_logits(m->y + c * m->y_stride + row, n, job->softcap);
}

/* Whether an earlier matrix of the list is in the same extent: which one, else i. */
static uint32_t first_of(const ebb_weight *const *w, uint32_t i)
{
    uint32_t j = 0;

    while (w[j]->extent != w[i]->extent)
        j++;
    return j;
}

static void release(ebb_run *r, const ebb_weight *const *w, uint32_t n)
{
    while (n-- > 0)
        if (first_of(w, n) == n)
            ebb_res_release(r->res, w[n]->extent);
}

/* Acquire the matrices, each extent once; on failure none is held. */
static ebb_status acquire(ebb_run *r, const ebb_weight *const *w, uint32_t n, const void **data, ebb_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t same = first_of(w, i);
        ebb_status st = EBB_OK;

        if (same < i)
            data[i] = data[same];
        else
            st = ebb_res_acquire(r->res, w[i]->extent, &data[i], err);
        if (st != EBB_OK) {
            release(r, w, i);
            return st;
        }
    }
    return EBB_OK;
}

ebb_status ebb_op_matmul(ebb_run *r, const ebb_mat *mats, uint32_t n, float softcap, ebb_error *err)
{
    mat_job job = { .r = r, .mats = mats, .n_mats = n, .rows = rows_of_slice(r), .softcap = softcap };
    const ebb_weight *w[EBB_MAX_MATS] = { 0 };
    uint32_t n_slices = 0;
    ebb_status st;

    for (uint32_t i = 0; i < n; i++) {
        w[i] = mats[i].w;
        job.slices[i] = (w[i]->n_rows + job.rows - 1) / job.rows;
        n_slices += job.slices[i];
    }
    st = acquire(r, w, n, job.data, err);
    if (st != EBB_OK)
        return st;
    ebb_run_slices(r, mat_slice, &job, n_slices);
    release(r, w, n);
    return EBB_OK;
}

/* -- A matrix for each head ------------------------------------------------------ */

typedef struct heads_job {
    const ebb_run      *r;
    const ebb_mat      *m;
    const ebb_per_head *p;
    const void         *data;
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
    multiply(&sub, w, job->data, h * n_rows, n_rows, job->m->y + h * job->p->y_head, job->m->y_stride, thread);
}

ebb_status ebb_op_heads(ebb_run *r, const ebb_mat *m, const ebb_per_head *p, ebb_error *err)
{
    heads_job job = { .r = r, .m = m, .p = p };
    ebb_status st = acquire(r, &m->w, 1, &job.data, err);

    if (st != EBB_OK)
        return st;
    ebb_run_slices(r, heads_slice, &job, p->n_heads);
    release(r, &m->w, 1);
    return EBB_OK;
}

/* -- Feed-forward -------------------------------------------------------------- */

#define CLAMP 7.0f
#define SLOPE 1.702f             /* g sigmoid(1.702 g) = silu(1.702 g) / 1.702 */

typedef struct gate_job {
    const ebb_run    *r;
    const ebb_weight *gate, *up; /* gate without rows: none */
    const void       *data[2];
    uint32_t          rows;
} gate_job;

static void clamped_mul(const ebb_run *r, float *gate, float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        gate[i] = SLOPE * (gate[i] < CLAMP ? gate[i] : CLAMP);
        up[i] = ((up[i] < -CLAMP ? -CLAMP : up[i] < CLAMP ? up[i] : CLAMP) + 1.0f) / SLOPE;
    }
    r->kern->silu_mul(gate, gate, up, n);
}

/* gate = act(gate) * up */
static void activate(const ebb_run *r, float *gate, float *up, uint32_t n)
{
    switch (r->net->ffn_gate) {
    case EBB_GATE_SILU:    r->kern->silu_mul(gate, gate, up, n); break;
    case EBB_GATE_GELU:    r->kern->gelu_mul(gate, gate, up, n); break;
    case EBB_GATE_CLAMPED: clamped_mul(r, gate, up, n); break;
    }
}

/* The same rows of gate and up; up's go to the thread's own floats, so that
 * only their product is ever stored. */
static void gate_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const gate_job *job = arg;
    const ebb_run *r = job->r;
    bool has_gate = ebb_weight_is(job->gate);
    uint32_t n_ff = job->up->n_rows, row = slice * job->rows;
    uint32_t n = n_ff - row < job->rows ? n_ff - row : job->rows;
    float *ff = r->ff + (size_t)r->c0 * n_ff + row, *up = ebb_run_floats(r, thread);

    multiply(r, has_gate ? job->gate : job->up, job->data[0], row, n, ff, n_ff, thread);
    if (has_gate)
        multiply(r, job->up, job->data[1], row, n, up, n, thread);
    else
        for (uint32_t i = 0; i < n * (r->c1 - r->c0); i++)
            up[i] = 1.0f;
    for (uint32_t c = 0; c < r->c1 - r->c0; c++, ff += n_ff, up += n)
        activate(r, ff, up, n);
}

ebb_status ebb_op_gated(ebb_run *r, const ebb_weight *gate, const ebb_weight *up, ebb_error *err)
{
    gate_job job = { .r = r, .gate = gate, .up = up, .rows = rows_of_slice(r) };
    const ebb_weight *w[2] = { ebb_weight_is(gate) ? gate : up, up };
    ebb_status st = acquire(r, w, 2, job.data, err);

    if (st != EBB_OK)
        return st;
    ebb_run_slices(r, gate_slice, &job, (up->n_rows + job.rows - 1) / job.rows);
    release(r, w, 2);
    return EBB_OK;
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
