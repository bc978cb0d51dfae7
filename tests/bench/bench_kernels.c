/* Speed of every kernel, and its share of what the machine can do: bytes per
 * second against the memory's read bandwidth where one pass over the weights
 * serves few columns, multiply-adds per second against the peak of int8 (or
 * float) products where it serves many.
 *
 *   bench_kernels [-t THREADS] [-c scalar|avx2|avxvnni|avx512|amx|neon] [-n COLUMNS] [-u] [TYPE...]
 *
 * -u divides by the CPU time the process used, not by the clock: on a machine
 * that is busy with other things this is what its share of the CPUs achieved. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../engine/kernels/kernel_data.h"
#include "base/clock.h"
#include "os/pool.h"

enum { N_K = 4096, N_ROWS = 4096, THREADS_MAX = 64 };

static const size_t stream_bytes = (size_t)800 << 20;    /* several times the caches */
static volatile float sink;
static uint32_t n_threads = 2;
static bool use_cpu_time;

static double now_s(void)
{
    struct timespec t;

    if (!use_cpu_time)
        return ebb_clock_s();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / n_threads;
}

typedef struct kernel_bench {
    const ebb_kernels *k;
    ebb_pool *pool;
    void     *scratch[THREADS_MAX];
    double    read_bytes, int8_macs, float_macs;         /* peaks, per second, all threads */
} kernel_bench;

/* ---- peaks ---- */

typedef struct read_region { const uint8_t *p; size_t bytes; } read_region;

/* A word of each line, the quarters of a slice side by side, a CPU's own fetching at work in each: the best of what was
 * tried. */
static void read_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const read_region *r = arg;
    const size_t n = r->bytes / 4 / sizeof(uint64_t);
    const uint64_t *p = (const void *)(r->p + (size_t)slice * r->bytes);
    uint64_t s = 0;

    (void)thread;
    for (size_t i = 0; i < n; i += 8)
        s += p[i] + p[n + i] + p[2 * n + i] + p[3 * n + i];
    sink = (float)s;
}

static double measure_read(kernel_bench *b)
{
    const size_t slice = 1 << 19;
    uint8_t *p = test_alloc(stream_bytes);
    double best = 0;

    for (int i = 0; i < 3; i++) {
        double t = now_s();

        ebb_pool_run(b->pool, read_slice, &(read_region){ p, slice }, (uint32_t)(stream_bytes / slice));
        double rate = (double)stream_bytes / (now_s() - t);
        best = rate > best ? rate : best;
    }
    free(p);
    return best;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Chains of dependent products, enough that none waits; in turn, whatever the compiler thinks of it. */
enum { CHAINS_512 = 16, CHAINS_256 = 12, ROUNDS = 150000 };

#define REPEAT12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define REPEAT16(X) REPEAT12(X) X(12) X(13) X(14) X(15)

__attribute__((target("avx512f,avx512bw,avx512vnni"))) static void int8_512(void *arg, uint32_t slice, uint32_t thread)
{
    __m512i w = _mm512_set1_epi8(3);
#define X(i) __m512i a##i = _mm512_set1_epi32(i);
    REPEAT16(X)
#undef X
    for (int n = 0; n < ROUNDS; n++) {
#define X(i) a##i = _mm512_dpbusd_epi32(a##i, w, w); __asm__ volatile("" : "+v"(a##i));
        REPEAT16(X)
#undef X
    }
#define X(i) a0 = _mm512_add_epi32(a0, a##i);
    REPEAT16(X)
#undef X
    sink = (float)_mm512_reduce_add_epi32(a0);
    (void)arg, (void)slice, (void)thread;
}

__attribute__((target("avx512f"))) static void float_512(void *arg, uint32_t slice, uint32_t thread)
{
    __m512 w = _mm512_set1_ps(0.5f);
#define X(i) __m512 a##i = _mm512_set1_ps(i);
    REPEAT16(X)
#undef X
    for (int n = 0; n < ROUNDS; n++) {
#define X(i) a##i = _mm512_fmadd_ps(a##i, w, w); __asm__ volatile("" : "+v"(a##i));
        REPEAT16(X)
#undef X
    }
#define X(i) a0 = _mm512_add_ps(a0, a##i);
    REPEAT16(X)
#undef X
    sink = _mm512_reduce_add_ps(a0);
    (void)arg, (void)slice, (void)thread;
}

__attribute__((target("avx2"))) static void int8_256(void *arg, uint32_t slice, uint32_t thread)
{
    __m256i w = _mm256_set1_epi8(3), one = _mm256_set1_epi16(1);
#define X(i) __m256i a##i = _mm256_set1_epi32(i);
    REPEAT12(X)
#undef X
    for (int n = 0; n < ROUNDS; n++) {
#define X(i) a##i = _mm256_add_epi32(a##i, _mm256_madd_epi16(_mm256_maddubs_epi16(w, w), one)); \
        __asm__ volatile("" : "+x"(a##i), "+x"(w));
        REPEAT12(X)
#undef X
    }
#define X(i) a0 = _mm256_add_epi32(a0, a##i);
    REPEAT12(X)
#undef X
    sink = (float)_mm256_extract_epi32(a0, 0);
    (void)arg, (void)slice, (void)thread;
}

__attribute__((target("fma"))) static void float_256(void *arg, uint32_t slice, uint32_t thread)
{
    __m256 w = _mm256_set1_ps(0.5f);
#define X(i) __m256 a##i = _mm256_set1_ps(i);
    REPEAT12(X)
#undef X
    for (int n = 0; n < ROUNDS; n++) {
#define X(i) a##i = _mm256_fmadd_ps(a##i, w, w); __asm__ volatile("" : "+x"(a##i));
        REPEAT12(X)
#undef X
    }
#define X(i) a0 = _mm256_add_ps(a0, a##i);
    REPEAT12(X)
#undef X
    sink = _mm256_cvtss_f32(a0);
    (void)arg, (void)slice, (void)thread;
}

static double measure_macs(kernel_bench *b, ebb_slice_fn *fn, double macs)
{
    uint32_t slices = ebb_pool_n_threads(b->pool) * 4;
    double best = 0;

    for (int i = 0; i < 3; i++) {
        double t = now_s();

        ebb_pool_run(b->pool, fn, NULL, slices);
        double rate = macs * ROUNDS * slices / (now_s() - t);
        best = rate > best ? rate : best;
    }
    return best;
}

static void measure_peaks(kernel_bench *b)
{
    bool wide = strcmp(b->k->name, "avx512") == 0 || strcmp(b->k->name, "amx") == 0;     /* without the tiles of AMX */

    if (strcmp(b->k->name, "scalar") == 0)
        return;
    b->int8_macs = measure_macs(b, wide ? int8_512 : int8_256, wide ? 64 * CHAINS_512 : 32 * CHAINS_256);
    b->float_macs = measure_macs(b, wide ? float_512 : float_256, wide ? 16 * CHAINS_512 : 8 * CHAINS_256);
}
#else
static void measure_peaks(kernel_bench *b)
{
    (void)b;
}
#endif

/* ---- products ---- */

typedef struct bench_job {
    kernel_bench *b;
    ebb_matmul a;
    uint32_t   n_slices;
} bench_job;

static void matmul_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const bench_job *j = arg;
    ebb_matmul a = j->a;

    a.w = (const uint8_t *)a.w + (size_t)slice * a.n_rows * a.row_bytes;
    a.next = slice + n_threads < j->n_slices ? (const uint8_t *)a.w + n_threads * a.n_rows * a.row_bytes : NULL;
    a.y += (size_t)slice % (N_ROWS / a.n_rows) * a.n_rows;
    a.scratch = j->b->scratch[thread];
    ebb_kernels_matmul(j->b->k, &a);
}

static void bench_matmul(kernel_bench *b, ebb_type type, size_t n_cols)
{
    ebb_act act = ebb_kernel_act(type);
    size_t row_bytes = (size_t)ebb_type_row_bytes(type, N_K), col_bytes = ebb_act_col_bytes(act, N_K);
    size_t copies = n_cols <= 16 ? stream_bytes / (row_bytes * N_ROWS) + 1 : 1;
    size_t slice_rows = n_cols <= 4 ? 128 : 64;          /* as the engine cuts */
    uint32_t slices = (uint32_t)(copies * (N_ROWS / slice_rows));
    uint8_t *w = test_alloc(copies * N_ROWS * row_bytes), *x = test_alloc(n_cols * col_bytes);
    float *values = test_alloc(N_K * 4), *y = test_alloc(n_cols * N_ROWS * 4);
    double best = 1e30;

    for (size_t r = 0; r < 64; r++)
        test_weights(type, w + r * row_bytes, N_K);
    for (size_t at = 0; type == EBB_TYPE_MXFP4 && at < 64 * row_bytes; at += 17)
        w[at] = 120;                             /* no denormal scales, which are slow and not met in models */
    for (size_t at = 64 * row_bytes, n = copies * N_ROWS * row_bytes; at < n; at *= 2)
        memcpy(w + at, w, at < n - at ? at : n - at);
    for (size_t c = 0; c < n_cols; c++) {
        memset(values, 0, N_K * sizeof *values);
        for (size_t i = 0; i < N_K; i++)
            for (int j = 0; j < 12; j++)         /* nearly normal, as activations are at best */
                values[i] += test_uniform(-1, 1);
        b->k->quantize[act](values, N_K, x + c * col_bytes);
    }
    bench_job j = { b, { .type = type, .w = w, .row_bytes = row_bytes, .n_rows = slice_rows, .n_k = N_K, .x = x,
                         .x_col_bytes = col_bytes,
                   .n_cols = n_cols, .y = y, .y_stride = N_ROWS }, slices };
    for (int i = 0; i < 3; i++) {
        double t = now_s();

        ebb_pool_run(b->pool, matmul_slice, &j, slices);
        t = now_s() - t;
        best = t < best ? t : best;
    }
    double bytes = (double)(copies * N_ROWS * row_bytes) / best;
    double macs = (double)copies * N_ROWS * N_K * (double)n_cols / best;
    double peak = act == EBB_ACT_F32 ? b->float_macs : b->int8_macs;
    printf("  %-8s n %4zu  %7.2f GB/s (%3.0f %%)  %8.2f GMAC/s (%3.0f %%)\n", ebb_type_get(type)->name, n_cols,
           bytes / 1e9, 100 * bytes / b->read_bytes, macs / 1e9, peak > 0 ? 100 * macs / peak : 0);
    fflush(stdout);
    free(w);
    free(x);
    free(y);
    free(values);
}

static int usage(void)
{
    fputs("usage: bench_kernels [-t THREADS] [-c scalar|avx2|avxvnni|avx512|amx|neon] [-n COLUMNS] [-u] [TYPE...]\n",
          stderr);
    return 2;
}

static bool wanted(ebb_type type, int argc, char **argv)
{
    for (int i = optind; i < argc; i++) {
        ebb_type t;

        if (ebb_type_parse(argv[i], &t) && t == type)
            return true;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    static const size_t all[] = { 1, 2, 4, 8, 32, 128, 512 };
    size_t n_cols = 0;
    int cpu = EBB_ISA_AUTO;
    ebb_error err;
    kernel_bench b = { 0 };

    for (int o; (o = getopt(argc, argv, "t:c:n:u")) != -1;) {
        if (o == 't')
            n_threads = (uint32_t)atoi(optarg);
        else if (o == 'n')
            n_cols = (size_t)atoi(optarg);
        else if (o == 'u')
            use_cpu_time = true;
        else if (o == 'c')
            for (cpu = EBB_ISA_NEON; cpu > 0 && strcmp(ebb_isa_names[cpu], optarg) != 0; cpu--)
                ;
        else
            return usage();
    }
    if (n_threads < 1 || n_threads > THREADS_MAX)
        return usage();
    if (ebb_kernels_get((ebb_isa)cpu, &b.k, &err) != EBB_OK || ebb_pool_new(n_threads, &b.pool, &err) != EBB_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (uint32_t i = 0; i < n_threads; i++)
        b.scratch[i] = test_alloc(EBB_KERNEL_SCRATCH);
    b.read_bytes = measure_read(&b);
    measure_peaks(&b);
    printf("%s, %u threads: reads %.1f GB/s, int8 %.0f GMAC/s, float %.0f GMAC/s\n", b.k->name, n_threads,
           b.read_bytes / 1e9, b.int8_macs / 1e9, b.float_macs / 1e9);
    for (uint32_t t = 0; t < EBB_TYPE_LIMIT; t++)
        if (ebb_kernel_has_type((ebb_type)t) && wanted((ebb_type)t, argc, argv))
            for (size_t i = 0; i < (n_cols ? 1 : sizeof all / sizeof *all); i++)
                if (n_cols || b.int8_macs > 0 || all[i] < 4)
                    bench_matmul(&b, (ebb_type)t, n_cols ? n_cols : all[i]);
    for (uint32_t i = 0; i < n_threads; i++)
        free(b.scratch[i]);
    ebb_pool_free(b.pool);
    return 0;
}
