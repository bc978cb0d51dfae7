/* Speed of kernels (measure.h). */
#include "plan/measure.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "os/map.h"

#define WEIGHTS_MAX   ((size_t)256 << 20)       /* the largest caches that a virtual machine is said to have are hardly its own */
#define WEIGHTS_MIN   ((size_t)4 << 20)
#define PAGE_BYTES    ((size_t)4096)
#define MEASURE_S     0.02                       /* on as much as caches do not hold; less on less */
#define MEASURE_BYTES ((size_t)64 << 20)
enum { K = 4096, ROWS_FEW = 32, ROWS_MANY = 64, COLS = 128, MAX_PASSES = 64, SYNCS = 64 };

struct ebb_meter {
    ebb_pool          *pool;
    const ebb_kernels *kern;
    uint32_t           n_threads;
    ebb_map            map;
    char              *weights, *scratch;
    size_t             weights_bytes;
    char              *x;        /* COLS columns of the activations that x_act names */
    float             *y;        /* [threads][COLS][ROWS_MANY] */
    unsigned           x_act;    /* EBB_ACT_COUNT: none yet */
    pthread_t          thread;
    atomic_bool        stop;
    ebb_type           type;     /* of the multiplication under way */
    double             bytes_s;  /* what came of it */
};

static size_t between(uint64_t n, size_t least, size_t most)
{
    return n < least ? least : n > most ? most : (size_t)n / PAGE_BYTES * PAGE_BYTES;
}

ebb_status ebb_meter_open(ebb_pool *pool, const ebb_kernels *kern, uint64_t weights_bytes, ebb_meter **out, ebb_error *err)
{
    ebb_meter *m = calloc(1, sizeof *m);
    size_t x_bytes = 0, y_bytes;
    ebb_status st;

    *out = NULL;
    if (!m)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for measuring");
    *m = (ebb_meter){ .pool = pool, .kern = kern, .n_threads = ebb_pool_n_threads(pool), .x_act = EBB_ACT_COUNT,
                      .weights_bytes = between(weights_bytes, WEIGHTS_MIN, WEIGHTS_MAX) };
    for (int act = 0; act < EBB_ACT_COUNT; act++)
        x_bytes = x_bytes > ebb_act_col_bytes((ebb_act)act, K) ? x_bytes : ebb_act_col_bytes((ebb_act)act, K);
    x_bytes *= COLS;
    y_bytes = m->n_threads * sizeof(float) * COLS * ROWS_MANY;
    st = ebb_map_anon(m->weights_bytes + x_bytes + y_bytes + m->n_threads * EBB_KERNEL_SCRATCH, true, &m->map, err);
    if (st != EBB_OK) {
        free(m);
        return st;
    }
    m->weights = m->map.data;                    /* every part is a multiple of 64 bytes */
    m->x = m->weights + m->weights_bytes;
    m->y = (float *)(void *)(m->x + x_bytes);
    m->scratch = m->x + x_bytes + y_bytes;
    for (size_t i = 0; i < m->weights_bytes; i += PAGE_BYTES)
        m->weights[i] = 0;                       /* zeroes are weights of any type; untouched pages would all be the same one */
    *out = m;
    return EBB_OK;
}

void ebb_meter_close(ebb_meter *m)
{
    if (m)
        ebb_map_fini(&m->map);
    free(m);
}

/* Activations as norms leave them: kernels may be faster where all are small. */
static void make_x(ebb_meter *m, ebb_act act)
{
    float x[K];
    uint32_t seed = 1;

    if (m->x_act == (unsigned)act)
        return;
    for (int i = 0; i < K; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = tanf(3.0f * ((float)(seed >> 8) / 16777216.0f - 0.5f)) / 4;
    }
    for (int c = 0; c < COLS; c++)
        m->kern->quantize[act](x, K, m->x + (size_t)c * ebb_act_col_bytes(act, K));
    m->x_act = (unsigned)act;
}

/* -- Slices ------------------------------------------------------------------------- */

typedef struct slice_job {
    ebb_meter *m;
    ebb_type   type;
    size_t     n_rows, n_cols, step;     /* step: bytes from one slice's weights to the next's */
} slice_job;

static void slice(void *arg, uint32_t i, uint32_t thread)
{
    const slice_job *job = arg;
    ebb_meter *m = job->m;
    ebb_matmul a = {
        .type = job->type, .w = m->weights + i * job->step, .row_bytes = (size_t)ebb_type_row_bytes(job->type, K),
        .n_rows = job->n_rows, .n_k = K, .x = m->x, .x_col_bytes = ebb_act_col_bytes(ebb_kernel_act(job->type), K),
        .n_cols = job->n_cols, .y = m->y + (size_t)thread * COLS * ROWS_MANY, .y_stride = ROWS_MANY,
        .scratch = m->scratch + thread * EBB_KERNEL_SCRATCH,
    };

    m->kern->matmul[job->type](&a);
}

static void nothing(void *arg, uint32_t i, uint32_t thread)
{
    (void)arg;
    (void)i;
    (void)thread;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Seconds of one call of the pool: the mean of the better half of some. */
static double time_pass(ebb_meter *m, ebb_slice_fn *fn, void *arg, uint32_t n_slices, int n_least)
{
    double took[MAX_PASSES], sum = 0, begin = ebb_clock_s(), last = begin;
    double enough = MEASURE_S * (m->weights_bytes < MEASURE_BYTES ? (double)m->weights_bytes / (double)MEASURE_BYTES : 1);
    int n = 0;

    while (n < MAX_PASSES && (n < n_least || last - begin < enough)) {
        double now;

        ebb_pool_run(m->pool, fn, arg, n_slices);
        now = ebb_clock_s();
        took[n++] = now - last;
        last = now;
    }
    qsort(took, (size_t)n, sizeof *took, by_value);
    for (int i = 0; i < (n + 1) / 2; i++)
        sum += took[i];
    return sum / ((n + 1) / 2);
}

static slice_job one_column(ebb_meter *m, ebb_type type)
{
    make_x(m, ebb_kernel_act(type));
    return (slice_job){ .m = m, .type = type, .n_rows = ROWS_FEW, .n_cols = 1,
                        .step = ROWS_FEW * (size_t)ebb_type_row_bytes(type, K) };
}

double ebb_meter_bytes(ebb_meter *m, ebb_type type)
{
    slice_job job = one_column(m, type);
    uint32_t n = (uint32_t)(m->weights_bytes / job.step);

    return (double)n * (double)job.step / time_pass(m, slice, &job, n, 3);
}

double ebb_meter_macs(ebb_meter *m, ebb_type type)
{
    slice_job job = { .m = m, .type = type, .n_rows = ROWS_MANY, .n_cols = COLS,
                      .step = ROWS_MANY * (size_t)ebb_type_row_bytes(type, K) };
    uint32_t n = 2 * m->n_threads;

    make_x(m, ebb_kernel_act(type));
    return (double)n * ROWS_MANY * COLS * K / time_pass(m, slice, &job, n, 2);
}

double ebb_meter_sync(ebb_meter *m)
{
    return time_pass(m, nothing, NULL, m->n_threads, SYNCS);
}

/* -- As a load ------------------------------------------------------------------------ */

static void *multiply(void *arg)
{
    ebb_meter *m = arg;
    slice_job job = one_column(m, m->type);
    uint32_t n = (uint32_t)(m->weights_bytes / job.step);
    double begin = ebb_clock_s();
    uint64_t passes = 0;

    do {
        ebb_pool_run(m->pool, slice, &job, n);
        passes++;
    } while (!atomic_load(&m->stop));
    m->bytes_s = (double)passes * (double)n * (double)job.step / (ebb_clock_s() - begin);
    return NULL;
}

ebb_status ebb_meter_begin(ebb_meter *m, ebb_type type, ebb_error *err)
{
    m->type = type;
    atomic_store(&m->stop, false);
    if (pthread_create(&m->thread, NULL, multiply, m) != 0)
        return EBB_FAIL(err, EBB_NOMEM, "no thread for measuring");
    return EBB_OK;
}

double ebb_meter_end(ebb_meter *m)
{
    atomic_store(&m->stop, true);
    pthread_join(m->thread, NULL);
    return m->bytes_s;
}
