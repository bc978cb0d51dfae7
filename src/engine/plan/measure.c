#include "plan/measure.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "os/file.h"
#include "os/map.h"

#define MEASURE_S 0.15

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

/* -- Memory ------------------------------------------------------------------------ */

#define MEMORY_BYTES ((size_t)192 << 20)         /* several times the largest cache */
#define MEMORY_SLICE ((size_t)1 << 20)

typedef struct memory_job {
    const uint64_t *data;
    atomic_ullong   sum;         /* keeps the reads from being optimized away */
} memory_job;

static void memory_slice(void *arg, uint32_t slice, uint32_t thread)
{
    memory_job *job = arg;
    const uint64_t *p = job->data + slice * (MEMORY_SLICE / 8);
    uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

    (void)thread;
    for (size_t i = 0; i < MEMORY_SLICE / 8; i += 4) {
        s0 += p[i];
        s1 += p[i + 1];
        s2 += p[i + 2];
        s3 += p[i + 3];
    }
    atomic_fetch_add_explicit(&job->sum, s0 + s1 + s2 + s3, memory_order_relaxed);
}

double ebb_measure_memory(ebb_pool *p)
{
    memory_job job = { 0 };
    ebb_map map;
    double slices;

    if (ebb_map_anon(MEMORY_BYTES, true, &map, NULL) != EBB_OK)
        return 0;
    memset(map.data, 1, MEMORY_BYTES);           /* untouched pages would all be the same one */
    job.data = map.data;
    slices = rate(p, memory_slice, &job, MEMORY_BYTES / MEMORY_SLICE);
    ebb_map_fini(&map);
    return slices * (double)MEMORY_SLICE;
}

/* -- Kernels ----------------------------------------------------------------------- */

enum { K = 4096, ROWS = 64, COLS = 128 };

typedef struct int8_job {
    const ebb_kernels *kern;
    const void *w, *x;
    float      *y;               /* [threads][COLS][ROWS] */
    char       *scratch;
} int8_job;

static void int8_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const int8_job *job = arg;
    ebb_matmul a = {
        .type = EBB_TYPE_Q4_K, .w = job->w, .row_bytes = (size_t)ebb_type_row_bytes(EBB_TYPE_Q4_K, K),
        .n_rows = ROWS, .n_k = K, .x = job->x, .x_col_bytes = ebb_act_col_bytes(EBB_ACT_Q8_256, K), .n_cols = COLS,
        .y = job->y + (size_t)thread * COLS * ROWS, .y_stride = ROWS,
        .scratch = job->scratch + thread * EBB_KERNEL_SCRATCH,
    };

    (void)slice;
    job->kern->matmul[EBB_TYPE_Q4_K](&a);
}

double ebb_measure_int8(ebb_pool *p)
{
    uint32_t n_threads = ebb_pool_n_threads(p);
    size_t w_bytes = ROWS * (size_t)ebb_type_row_bytes(EBB_TYPE_Q4_K, K);
    size_t x_bytes = COLS * ebb_act_col_bytes(EBB_ACT_Q8_256, K), y_bytes = COLS * ROWS * sizeof(float);
    int8_job job = { 0 };
    ebb_map map;
    double slices;
    char *at;

    if (ebb_kernels_get(EBB_CPU_AUTO, &job.kern, NULL) != EBB_OK ||
        ebb_map_anon(w_bytes + x_bytes + n_threads * (y_bytes + EBB_KERNEL_SCRATCH), false, &map, NULL) != EBB_OK)
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

/* -- Disk -------------------------------------------------------------------------- */

#define DISK_READ ((size_t)2 << 20)

typedef struct disk_job {
    const char   *path;
    char         *buffers;       /* of each thread */
    int           fd;
    uint64_t      n_reads;       /* that the file has room for */
    atomic_ullong next;
    atomic_bool   failed;
} disk_job;

static void disk_slice(void *arg, uint32_t slice, uint32_t thread)
{
    disk_job *job = arg;
    uint64_t i = atomic_fetch_add(&job->next, 1) % job->n_reads;

    (void)slice;
    if (ebb_file_read_at(job->fd, job->path, job->buffers + thread * DISK_READ, DISK_READ, i * DISK_READ, NULL) != EBB_OK)
        atomic_store(&job->failed, true);
}

double ebb_measure_disk(ebb_pool *p, const char *path)
{
    disk_job job = { .path = path, .fd = -1 };
    uint64_t n_bytes = 0;
    ebb_map map = { 0 };
    double reads = 0;

    if (ebb_file_open(path, EBB_FILE_READ_DIRECT, &job.fd, NULL) != EBB_OK)
        return 0;
    if (ebb_file_size(job.fd, path, &n_bytes, NULL) == EBB_OK && n_bytes >= DISK_READ &&
        ebb_map_anon(ebb_pool_n_threads(p) * DISK_READ, false, &map, NULL) == EBB_OK) {
        job.buffers = map.data;
        job.n_reads = n_bytes / DISK_READ;
        job.next = job.n_reads / 3;              /* not the header, which was read a moment ago */
        reads = rate(p, disk_slice, &job, 4);
    }
    ebb_map_fini(&map);
    ebb_file_close(job.fd);
    return atomic_load(&job.failed) ? 0 : reads * (double)DISK_READ;
}
