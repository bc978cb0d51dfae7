/* Speed of kernels (kernel_meter.h). */
#include "plan/kernel_meter.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/median.h"
#include "model/forward.h"
#include "os/cpu.h"
#include "os/map.h"
#include "os/proc.h"
#include "os/thread.h"
#include "plan/contention.h"

#define CACHED_BYTES ((uint64_t)16 << 20)        /* a model that is no larger stays in a cache */
#define MATRIX_BYTES ((size_t)10 << 20)          /* of a matrix, but for the widest types */
#define WEIGHT_BYTES ((size_t)16 << 20)          /* ROWS of K_MIN floats */
#define LOAD_MAX     ((size_t)256 << 20)
#define LOAD_MIN     ((size_t)4 << 20)
#define PAGE_BYTES   ((size_t)4096)
#define ALIKE        1.03                        /* two times as near as that are believed */
#define OWN_SHARE    0.85                        /* of all processors, at least, in a time that counts */
#define PATIENCE_S   0.06
#define SAYS_S       0.2                         /* a shorter time is too few ticks to say who had it */
enum {
    ROWS = 4096,
    K_MAX = 4096,
    K_MIN = 1024,
    K_SMALL = 256,
    ROWS_MANY = 64,
    COLS = 128,
    MIN_TIMES = 3,
    MAX_TIMES = 12,
    SYNCS = 64,
    SIDE_TIMES = 15
};

struct ebb_meter {
    ebb_pool          *pool;
    const ebb_kernels *kern;
    uint32_t           n_threads;
    ebb_map            map, load;
    char              *weights, *scratch;
    bool               is_cached;        /* the weights stay in a cache between two times */
    bool               was_disturbed;
    ebb_contention_mark   opened;
    atomic_ullong      cpu_ns;           /* processor time of all slices */
    char              *x;        /* COLS columns of the activations that x_act names */
    float             *y;        /* [threads][COLS][ROWS_MANY] */
    unsigned           x_act;    /* EBB_ACT_COUNT: none yet */
    pthread_t          thread;
    atomic_bool        stop;
    ebb_type           type;     /* of the multiplication under way, ... */
    double             alone_s, busy_s;  /* ... what a round of it takes */
};

/* Zeroes are weights of any type; untouched pages would all be the same one. */
static void touch_pages(char *p, size_t n)
{
    for (size_t i = 0; i < n; i += PAGE_BYTES)
        p[i] = 0;
}

ebb_status ebb_meter_open(ebb_pool *pool, const ebb_kernels *kern, uint64_t weights_bytes, ebb_meter **out,
                          ebb_error *err)
{
    ebb_meter *m = calloc(1, sizeof *m);
    size_t x_bytes = 0, y_bytes, n_places;
    ebb_status st;

    *out = NULL;
    if (!m)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for measuring");
    *m = (ebb_meter){ .pool = pool, .kern = kern, .n_threads = ebb_pool_n_threads(pool), .x_act = EBB_ACT_COUNT,
                      .is_cached = weights_bytes <= CACHED_BYTES };
    for (int act = 0; act < EBB_ACT_COUNT; act++)
        x_bytes = x_bytes > ebb_act_col_bytes((ebb_act)act, K_MAX) ? x_bytes : ebb_act_col_bytes((ebb_act)act, K_MAX);
    x_bytes *= COLS;
    n_places = EBB_POOL_SCRATCHES(m->n_threads);
    y_bytes = n_places * sizeof(float) * COLS * ROWS_MANY;
    st = ebb_map_anon(WEIGHT_BYTES + x_bytes + y_bytes + n_places * EBB_KERNEL_SCRATCH, false, &m->map, err);
    /* small pages, as mapped weights have them */
    if (st != EBB_OK) {
        free(m);
        return st;
    }
    m->weights = m->map.data;                    /* every part is a multiple of 64 bytes */
    m->x = m->weights + WEIGHT_BYTES;
    m->y = (float *)(void *)(m->x + x_bytes);
    m->scratch = m->x + x_bytes + y_bytes;
    touch_pages(m->weights, WEIGHT_BYTES);
    ebb_contention_begin(&m->opened);
    *out = m;
    return EBB_OK;
}

void ebb_meter_close(ebb_meter *m)
{
    if (m) {
        ebb_map_fini(&m->map);
        ebb_map_fini(&m->load);
    }
    free(m);
}

/* Activations as norms leave them: kernels may be faster where all are small. */
static void make_x(ebb_meter *m, ebb_act act)
{
    float x[K_MAX];
    uint32_t seed = 1;

    if (m->x_act == (unsigned)act)
        return;
    for (int i = 0; i < K_MAX; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = tanf(3.0f * ((float)(seed >> 8) / 16777216.0f - 0.5f)) / 4;
    }
    for (int c = 0; c < COLS; c++)
        m->kern->quantize[act](x, K_MAX, m->x + (size_t)c * ebb_act_col_bytes(act, K_MAX));
    m->x_act = (unsigned)act;
}

/* -- Slices ------------------------------------------------------------------------- */

typedef struct slice_job {
    ebb_meter  *m;
    const char *weights;
    ebb_type    type;
    size_t      n_k, n_rows, n_cols, step;       /* step: bytes from one slice's weights to the next's */
} slice_job;

static void multiply_rows(const slice_job *job, uint32_t i, uint32_t thread)
{
    ebb_meter *m = job->m;
    uint64_t begin = ebb_thread_cpu_ns();
    ebb_matmul a = {
        .type = job->type, .w = job->weights + i * job->step,
        .row_bytes = (size_t)ebb_type_row_bytes(job->type, job->n_k),
        .n_rows = job->n_rows, .n_k = job->n_k, .x = m->x,
        .x_col_bytes = ebb_act_col_bytes(ebb_kernel_act(job->type), K_MAX),
        .n_cols = job->n_cols, .y = m->y + (size_t)thread * COLS * ROWS_MANY, .y_stride = job->n_rows,
        .scratch = m->scratch + thread * EBB_KERNEL_SCRATCH,
    };

    ebb_kernels_matmul(m->kern, &a);
    atomic_fetch_add_explicit(&m->cpu_ns, ebb_thread_cpu_ns() - begin, memory_order_relaxed);
}

static double cpu_of_thread_s(const ebb_meter *m)
{
    return (double)atomic_load(&m->cpu_ns) * 1e-9 / m->n_threads;
}

static void multiply_slice(void *arg, uint32_t i, uint32_t thread)
{
    multiply_rows(arg, i, thread);
}

static void compute_slice(const void *arg, uint32_t i, uint32_t thread, void *out)
{
    (void)out;
    multiply_rows(arg, i, thread);
}

static void commit_nothing(const void *arg, uint32_t i, const void *out)
{
    (void)arg;
    (void)i;
    (void)out;
}

static void do_nothing(void *arg, uint32_t i, uint32_t thread)
{
    (void)arg;
    (void)i;
    (void)thread;
}

/* Few columns, the way a pass runs them. */
static void run_one_token(const slice_job *job, uint32_t n_slices)
{
    static const ebb_hedged_work redo = { compute_slice, commit_nothing };

    ebb_pool_run_hedged(job->m->pool, &redo, job, sizeof *job, n_slices);
}

/* Threads that sleep are waked before the time begins: in a pass they are awake. */
static void wake_pool(ebb_meter *m)
{
    for (int i = 0; i < SYNCS; i++)
        ebb_pool_run(m->pool, do_nothing, NULL, m->n_threads);
}

/* *cpu_s: processor time, by thread. */
static double time_once(const slice_job *job, uint32_t n_slices, bool is_cold, double *cpu_s)
{
    double begin;

    if (is_cold)
        (void)ebb_cpu_flush(job->weights, n_slices * job->step);
    wake_pool(job->m);
    atomic_store(&job->m->cpu_ns, 0);
    begin = ebb_clock_s();
    if (job->n_cols == 1)
        run_one_token(job, n_slices);
    else
        ebb_pool_run(job->m->pool, multiply_slice, (void *)(uintptr_t)job, n_slices);
    begin = ebb_clock_s() - begin;
    *cpu_s = cpu_of_thread_s(job->m);
    return begin;
}

/* The least of some undisturbed times, of which two are alike; with contention the least processor time. */
static double least_time(const slice_job *job, uint32_t n_slices, bool is_cold)
{
    double least = INFINITY, second = INFINITY, least_cpu = INFINITY, until = ebb_clock_s() + PATIENCE_S;

    for (int i = 0;
         i < MIN_TIMES || (second > least * ALIKE && (i < MAX_TIMES || least == INFINITY) && ebb_clock_s() < until);
         i++) {
        double cpu, t = time_once(job, n_slices, is_cold, &cpu);

        least_cpu = fmin(least_cpu, cpu);
        if (cpu < OWN_SHARE * t)
            continue;
        second = fmin(second, fmax(t, least));
        least = fmin(least, t);
    }
    job->m->was_disturbed |= least == INFINITY;
    return least < INFINITY ? least : least_cpu;
}

static slice_job one_token_job(ebb_meter *m, ebb_type type, const char *weights)
{
    size_t k = K_MAX;

    while (k > K_MIN && ROWS * (size_t)ebb_type_row_bytes(type, k) > MATRIX_BYTES)
        k /= 2;
    make_x(m, ebb_kernel_act(type));
    return (slice_job){ .m = m, .weights = weights, .type = type, .n_k = k, .n_rows = EBB_SLICE_ROWS_FEW, .n_cols = 1,
                        .step = EBB_SLICE_ROWS_FEW * (size_t)ebb_type_row_bytes(type, k) };
}

double ebb_meter_bytes(ebb_meter *m, ebb_type type)
{
    slice_job job = one_token_job(m, type, m->weights);
    uint32_t n = ROWS / EBB_SLICE_ROWS_FEW;
    double t = least_time(&job, n, !m->is_cached);

    ebb_pool_drain(m->pool);
    return (double)n * (double)job.step / t;
}

double ebb_meter_macs(ebb_meter *m, ebb_type type)
{
    slice_job job = { .m = m, .weights = m->weights, .type = type, .n_k = K_MAX, .n_rows = ROWS_MANY, .n_cols = COLS,
                      .step = 0 };                /* a few rows for all: computation is timed */
    uint32_t n = 2 * m->n_threads;

    make_x(m, ebb_kernel_act(type));
    return (double)n * ROWS_MANY * COLS * K_MAX / least_time(&job, n, false);
}

double ebb_meter_sync(ebb_meter *m)
{
    double least = INFINITY;

    wake_pool(m);
    for (int i = 0; i < SYNCS; i++) {
        double begin = ebb_clock_s();

        ebb_pool_run(m->pool, do_nothing, NULL, m->n_threads);
        least = fmin(least, ebb_clock_s() - begin);
    }
    return least;
}

/* -- Beside large products ----------------------------------------------------------- */

enum {
    ATTEND_COLS = 8,
    ATTEND_GROUP = 4,
    ATTEND_POS = (int)(EBB_KV_BLOCK * EBB_KV_SEGMENT),
    ELEMENT_COLS = 32,
    STATE_DIM = 128,             /* of a head's state, a square of it */
    STATE_OPS = 3
};

/* The median of some times, all threads doing fn for each of n slices, or a product of one column if there is no fn.
 * These are microseconds: neighbours seldom hit half of them. */
static double usual_run(ebb_meter *m, ebb_slice_fn *fn, void *arg, uint32_t n)
{
    double times[SIDE_TIMES];

    wake_pool(m);
    for (int i = 0; i < SIDE_TIMES; i++) {
        double begin = ebb_clock_s();

        if (fn)
            ebb_pool_run(m->pool, fn, arg, n);
        else
            run_one_token(arg, n);
        times[i] = ebb_clock_s() - begin;
    }
    ebb_pool_drain(m->pool);
    return ebb_median(times, SIDE_TIMES);
}

typedef struct attend_job {
    ebb_meter *m;
    uint32_t   dim;
} attend_job;

/* Rows of zeroes; what comes of them is of no interest. */
static void attend_slice(void *arg, uint32_t i, uint32_t thread)
{
    const attend_job *job = arg;
    ebb_meter *m = job->m;
    const void *rows[EBB_KV_SEGMENT];
    ebb_attend a = {
        .k_type = EBB_KV_F16, .v_type = EBB_KV_F16, .k = rows, .v = rows, .pos0 = ATTEND_POS, .n_cols = ATTEND_COLS,
        .n_group = ATTEND_GROUP,
        .dim_k = job->dim, .dim_v = job->dim, .q = (const float *)(const void *)m->weights,
        .q_stride = ATTEND_GROUP * job->dim,
        .scale = 1, .acc = m->y + (size_t)thread * COLS * ROWS_MANY,
        .scratch = m->scratch + thread * EBB_KERNEL_SCRATCH,
    };

    (void)i;
    for (uint32_t b = 0; b < EBB_KV_SEGMENT; b++)
        rows[b] = m->weights + b * EBB_KV_BLOCK * ebb_kv_row_bytes(EBB_KV_F16, job->dim);
    m->kern->attend(&a);
}

/* Of a query head and a position that it sees. */
static double attend_s(ebb_meter *m, uint32_t dim)
{
    attend_job job = { m, dim };
    uint32_t n = m->n_threads;

    return usual_run(m, attend_slice, &job, n) / ((double)n * ATTEND_COLS * ATTEND_GROUP * ATTEND_POS);
}

static void element_slice(void *arg, uint32_t i, uint32_t thread)
{
    ebb_meter *m = arg;

    (void)i;
    m->kern->quantize[EBB_ACT_Q8_32]((const float *)(const void *)m->weights, K_MAX,
                                     m->y + (size_t)thread * COLS * ROWS_MANY);
}

/* A head's state fades, is added to and is read: rows of zeroes, a part of the weights for each thread. */
static void state_slice(void *arg, uint32_t i, uint32_t thread)
{
    ebb_meter *m = arg;
    size_t n_places = WEIGHT_BYTES / sizeof(float) / (STATE_DIM * STATE_DIM) - 1;
    float *x = (float *)(void *)m->weights, *a = x + (1 + thread % n_places) * STATE_DIM * STATE_DIM,
          *y = m->y + (size_t)thread * COLS * ROWS_MANY;

    (void)i;
    for (size_t r = 0; r < STATE_DIM; r++) {
        m->kern->scale(a + r * STATE_DIM, 0.5f, STATE_DIM);
        m->kern->axpy(a + r * STATE_DIM, 0.5f, x, STATE_DIM);
    }
    for (size_t r = 0; r < STATE_DIM; r++)
        y[r] = m->kern->dot(a + r * STATE_DIM, x, STATE_DIM);
}

void ebb_meter_overheads(ebb_meter *m, ebb_type type, const ebb_type_speed *large, ebb_overheads *out)
{
    slice_job one = one_token_job(m, type, m->weights), many = one;
    double outputs = 2.0 * m->n_threads * ROWS_MANY * COLS, small_s, near_s, far_s;

    one.n_k = K_SMALL;
    one.step = EBB_SLICE_ROWS_FEW * (size_t)ebb_type_row_bytes(type, K_SMALL);
    small_s = usual_run(m, NULL, &one, m->n_threads);
    out->product_s = fmax(small_s - m->n_threads * (double)one.step / large->bytes_s, 0);

    many.n_k = K_SMALL;
    many.n_rows = ROWS_MANY;
    many.n_cols = COLS;
    many.step = 0;
    small_s = usual_run(m, multiply_slice, &many, 2 * m->n_threads) / outputs;
    out->output_s = fmax(small_s - K_SMALL / large->mac_s, 0);

    near_s = attend_s(m, 32);
    far_s = attend_s(m, 128);
    out->attend_dim_s = fmax(far_s - near_s, 0) / (2 * (128 - 32));
    out->attend_s = fmax(near_s - 2 * 32 * out->attend_dim_s, 0);
    out->element_s = usual_run(m, element_slice, m, ELEMENT_COLS) / ((double)ELEMENT_COLS * K_MAX);
    out->state_s = usual_run(m, state_slice, m, ELEMENT_COLS) /
                   ((double)ELEMENT_COLS * STATE_OPS * STATE_DIM * STATE_DIM);
}

double ebb_meter_contention(const ebb_meter *m)
{
    return m->was_disturbed ? 1 : ebb_contention_since(&m->opened, SAYS_S, 0);
}

/* -- As a load ------------------------------------------------------------------------ */

static double time_rounds(ebb_meter *m, bool until_stop, double *own_share)
{
    slice_job job = one_token_job(m, m->type, m->load.data);
    uint32_t n = (uint32_t)(m->load.n_bytes / job.step);
    double begin = ebb_clock_s(), took;
    int rounds = 0;

    atomic_store(&m->cpu_ns, 0);
    do {
        run_one_token(&job, n);
        rounds++;
    } while (until_stop ? !atomic_load(&m->stop) : rounds < 2);
    ebb_pool_drain(m->pool);
    took = ebb_clock_s() - begin;
    *own_share = cpu_of_thread_s(m) / took;
    return took / rounds;
}

static void *keep_busy(void *arg)
{
    ebb_meter *m = arg;
    double own_share;

    m->busy_s = time_rounds(m, true, &own_share);
    return NULL;
}

ebb_status ebb_meter_begin_load(ebb_meter *m, ebb_type type, uint64_t load_bytes, ebb_error *err)
{
    size_t n = load_bytes < LOAD_MIN ? LOAD_MIN : load_bytes > LOAD_MAX ? LOAD_MAX : (size_t)load_bytes;
    double own_share;
    ebb_status st = EBB_OK;

    if (!m->load.data)
        st = ebb_map_anon(n, true, &m->load, err);
    if (st != EBB_OK)
        return st;
    touch_pages(m->load.data, m->load.n_bytes);
    m->type = type;
    m->alone_s = time_rounds(m, false, &own_share);
    m->was_disturbed |= own_share < OWN_SHARE;
    atomic_store(&m->stop, false);
    if (ebb_thread_start(&m->thread, keep_busy, m) != 0)
        return EBB_FAIL(err, EBB_NOMEM, "no thread for measuring");
    return EBB_OK;
}

double ebb_meter_end_load(ebb_meter *m)
{
    atomic_store(&m->stop, true);
    pthread_join(m->thread, NULL);
    return m->busy_s > m->alone_s ? m->alone_s / m->busy_s : 1;
}
