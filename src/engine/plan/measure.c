#include "plan/measure.h"

#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "os/map.h"

#define MEASURE_S 0.1

/* Run fn over n slices until the time is up; calls per second. */
static double rate(ebb_pool *p, ebb_slice_fn *fn, void *arg, uint32_t n)
{
    double begin = ebb_clock_s(), now;
    uint64_t done = 0;

    do {
        ebb_pool_run(p, fn, arg, n);
        done += n;
        now = ebb_clock_s();
    } while (now - begin < MEASURE_S);
    return (double)done / (now - begin);
}

/* -- Kernels ----------------------------------------------------------------------- */

enum { K = 4096, ROWS = 64, COLS = 128 };

typedef struct int8_job {
    const ebb_kernels *kern;
    const void *w, *x;
    float      *y;               /* [threads][COLS][ROWS] */
    char       *scratch;
    uint32_t    n_cols;
    size_t      slice_bytes;     /* from one slice's weights to the next's; 0: all take the same */
} int8_job;

static void int8_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const int8_job *job = arg;
    ebb_matmul a = {
        .type = EBB_TYPE_Q4_K, .w = job->w, .row_bytes = (size_t)ebb_type_row_bytes(EBB_TYPE_Q4_K, K),
        .n_rows = ROWS, .n_k = K, .x = job->x, .x_col_bytes = ebb_act_col_bytes(EBB_ACT_Q8_256, K), .n_cols = job->n_cols,
        .y = job->y + (size_t)thread * COLS * ROWS, .y_stride = ROWS,
        .scratch = job->scratch + thread * EBB_KERNEL_SCRATCH,
    };

    (void)slice;
    job->kern->matmul[EBB_TYPE_Q4_K](&a);
}

/* -- Memory ------------------------------------------------------------------------ */

#define MEMORY_BYTES ((size_t)64 << 20)          /* twice a usual third-level cache */

static void memory_slice(void *arg, uint32_t slice, uint32_t thread)
{
    int8_job job = *(const int8_job *)arg;

    job.w = (const char *)job.w + slice * job.slice_bytes;
    int8_slice(&job, slice, thread);
}

double ebb_measure_memory(ebb_pool *p, const ebb_kernels *kern)
{
    uint32_t n_threads = ebb_pool_n_threads(p), n;
    size_t w_bytes = ROWS * (size_t)ebb_type_row_bytes(EBB_TYPE_Q4_K, K), x_bytes = ebb_act_col_bytes(EBB_ACT_Q8_256, K);
    int8_job job = { .kern = kern, .n_cols = 1, .slice_bytes = w_bytes };
    ebb_map map;
    double slices;
    char *at;

    n = (uint32_t)(MEMORY_BYTES / w_bytes);
    if (ebb_map_anon(n * w_bytes + x_bytes + n_threads * (ROWS * COLS * sizeof(float) + EBB_KERNEL_SCRATCH), true, &map, NULL) != EBB_OK)
        return 0;
    memset(map.data, 0, n * w_bytes);            /* untouched pages would all be the same one */
    at = map.data;
    job.w = at;
    job.x = at += n * w_bytes;
    job.y = (float *)(void *)(at += x_bytes);
    job.scratch = at + n_threads * ROWS * COLS * sizeof(float);
    slices = rate(p, memory_slice, &job, n);
    ebb_map_fini(&map);
    return slices * (double)w_bytes;
}

/* -- Multiplication ----------------------------------------------------------------- */

double ebb_measure_int8(ebb_pool *p, const ebb_kernels *kern)
{
    uint32_t n_threads = ebb_pool_n_threads(p);
    size_t w_bytes = ROWS * (size_t)ebb_type_row_bytes(EBB_TYPE_Q4_K, K);
    size_t x_bytes = COLS * ebb_act_col_bytes(EBB_ACT_Q8_256, K), y_bytes = COLS * ROWS * sizeof(float);
    int8_job job = { .kern = kern, .n_cols = COLS };
    ebb_map map;
    double slices;
    char *at;

    if (ebb_map_anon(w_bytes + x_bytes + n_threads * (y_bytes + EBB_KERNEL_SCRATCH), false, &map, NULL) != EBB_OK)
        return 0;
    at = map.data;                               /* zeroes are weights too; every part is a multiple of 64 bytes */
    job.scratch = at;
    job.w = at += n_threads * EBB_KERNEL_SCRATCH;
    job.x = at += w_bytes;
    job.y = (float *)(void *)(at + x_bytes);
    slices = rate(p, int8_slice, &job, 2 * n_threads);
    ebb_map_fini(&map);
    return slices * K * ROWS * COLS;
}
