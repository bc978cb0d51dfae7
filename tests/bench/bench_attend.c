/* Speed of attention where few tokens attend to many positions, against a bare read of the same bytes: K and V stand in
 * blocks as in the cache of a model with 8 KV heads, so each head's rows of a block are one piece of some KB, megabytes
 * from the next.
 *
 *   bench_attend [-t THREADS] [-c scalar|avx2|avxvnni|avx512|amx|neon] [-d POSITIONS] [-n TOKENS]
 *                [-g HEADS] [-w WIDTH] [-s MIB] [-u]
 *
 * -n tokens in the pass, -g query heads for each KV head, -w elements of a head; -s MiB of K and V (512, several
 * times what CPUs have as caches); -u: as bench_kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../engine/kernels/kernel_data.h"
#include "base/clock.h"
#include "os/map.h"
#include "os/pool.h"

enum { N_HEADS = 8, N_ROUNDS = 7, THREADS_MAX = 64, SEGMENT = EBB_KV_BLOCK * EBB_KV_SEGMENT };

static size_t kv_bytes = (size_t)512 << 20;
static uint32_t n_threads = 2, n_pos = 4096, n_tokens = 1, n_group = 4, width = 128;
static bool use_cpu_time;
static volatile uint64_t sink;

typedef struct bench {
    const ebb_kernels *k;
    ebb_pool    *pool;
    void        *scratch[THREADS_MAX];
    ebb_kv_type  type;
    uint8_t     *kv;             /* [block][layer][head] K then V of EBB_KV_BLOCK positions */
    uint32_t     n_layers, n_segs;
    size_t       head_bytes;     /* K or V of a head in a block */
    float       *q, *acc;
} bench;

static double now_s(void)
{
    struct timespec t;

    if (!use_cpu_time)
        return ebb_clock_s();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / n_threads;
}

static const uint8_t *rows_at(const bench *b, uint32_t block, uint32_t layer, uint32_t head)
{
    return b->kv + (((size_t)block * b->n_layers + layer) * N_HEADS + head) * 2 * b->head_bytes;
}

/* Slice: layer, head, segment, the last running fastest. */
static void attend_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const bench *b = arg;
    uint32_t seg = slice % b->n_segs, head = slice / b->n_segs % N_HEADS, layer = slice / b->n_segs / N_HEADS,
        after = slice + n_threads;
    const void *k[EBB_KV_SEGMENT], *v[EBB_KV_SEGMENT];
    size_t n_queries = (size_t)n_tokens * n_group;

    for (uint32_t i = 0; i < EBB_KV_SEGMENT; i++) {
        k[i] = rows_at(b, seg * EBB_KV_SEGMENT + i, layer, head);
        v[i] = (const uint8_t *)k[i] + b->head_bytes;
    }
    const uint8_t *next = after / b->n_segs / N_HEADS < b->n_layers
                        ? rows_at(b, after % b->n_segs * EBB_KV_SEGMENT, after / b->n_segs / N_HEADS,
                                  after / b->n_segs % N_HEADS) : NULL;
    b->k->attend(&(ebb_attend){
        .k_type = b->type, .v_type = b->type, .k = k, .v = v,
        .next_k = next, .next_v = next ? next + b->head_bytes : NULL, .seg_pos = seg * SEGMENT,
        .pos0 = n_pos - n_tokens, .n_cols = n_tokens,
        .n_group = n_group, .dim_k = width, .dim_v = width, .q = b->q, .q_stride = (size_t)n_group * width,
        .scale = 0.1f, .acc = b->acc + thread * n_queries * (width + 2), .scratch = b->scratch[thread] });
}

/* A word of each line of what a slice attends to. */
static void read_slice(void *arg, uint32_t slice, uint32_t thread)
{
    const bench *b = arg;
    uint32_t seg = slice % b->n_segs, head = slice / b->n_segs % N_HEADS, layer = slice / b->n_segs / N_HEADS;
    uint64_t s = 0;

    (void)thread;
    for (uint32_t i = 0; i < EBB_KV_SEGMENT; i++) {
        const uint64_t *p = (const void *)rows_at(b, seg * EBB_KV_SEGMENT + i, layer, head);

        for (size_t w = 0; w < 2 * b->head_bytes / sizeof *p; w += 8)
            s += p[w];
    }
    sink = s;
}

static double best_s(bench *b, ebb_slice_fn *fn)
{
    double best = 1e30;

    for (int i = 0; i < N_ROUNDS; i++) {
        double t = now_s();

        ebb_pool_run(b->pool, fn, b, b->n_layers * N_HEADS * b->n_segs);
        t = now_s() - t;
        best = t < best ? t : best;
    }
    return best;
}

static void fill_cache(bench *b, size_t bytes)
{
    size_t row_bytes = ebb_kv_row_bytes(b->type, width), n_rows = 64;
    float *x = test_alloc(width * sizeof *x);

    for (size_t r = 0; r < n_rows; r++) {
        for (uint32_t i = 0; i < width; i++)
            x[i] = test_uniform(-1, 1);
        b->k->kv_store[b->type](b->kv + r * row_bytes, x, width);
    }
    for (size_t at = n_rows * row_bytes; at < bytes; at *= 2)
        memcpy(b->kv + at, b->kv, at < bytes - at ? at : bytes - at);
    free(x);
}

static void bench_type(bench *b, ebb_kv_type type, const char *name)
{
    size_t bytes, n_queries = (size_t)n_tokens * n_group;
    ebb_map map;

    b->type = type;
    b->head_bytes = EBB_KV_BLOCK * ebb_kv_row_bytes(type, width);
    b->n_segs = n_pos / SEGMENT;
    b->n_layers = (uint32_t)(kv_bytes / (n_pos / EBB_KV_BLOCK * N_HEADS * 2 * b->head_bytes)) + 1;
    bytes = (size_t)n_pos / EBB_KV_BLOCK * b->n_layers * N_HEADS * 2 * b->head_bytes;
    if (ebb_map_anon(bytes, true, &map, NULL) != EBB_OK)         /* as the cache is */
        abort();
    b->kv = map.data;
    fill_cache(b, bytes);
    b->q = test_alloc(n_queries * width * sizeof(float));
    b->acc = test_alloc(n_threads * n_queries * (width + 2) * sizeof(float));
    for (size_t i = 0; i < n_queries * width; i++)
        b->q[i] = test_uniform(-1, 1);
    double read_s = best_s(b, read_slice), attend_s = best_s(b, attend_slice);

    printf("  %-5s %7.2f GB/s, %3.0f %% of a bare read (%.2f); %.2f ns for a position of a KV head\n", name,
           (double)bytes / attend_s / 1e9,
           100 * read_s / attend_s, (double)bytes / read_s / 1e9,
           1e9 * attend_s / ((double)n_pos * N_HEADS * b->n_layers));
    fflush(stdout);
    ebb_map_fini(&map);
    free(b->q);
    free(b->acc);
}

static int usage(void)
{
    fputs("usage: bench_attend [-t THREADS] [-c scalar|avx2|avxvnni|avx512|amx|neon] [-d POSITIONS] [-n TOKENS]\n"
          "                    [-g HEADS] [-w WIDTH] [-s MIB] [-u]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    int cpu = EBB_ISA_AUTO;
    ebb_error err;
    bench b = { 0 };

    for (int o; (o = getopt(argc, argv, "t:c:d:n:g:w:s:u")) != -1;) {
        uint32_t n = optarg ? (uint32_t)atoi(optarg) : 0;

        switch (o) {
        case 't': n_threads = n; break;
        case 'd': n_pos = (n + SEGMENT - 1) / SEGMENT * SEGMENT; break;
        case 'n': n_tokens = n; break;
        case 'g': n_group = n; break;
        case 'w': width = n / 32 * 32; break;
        case 's': kv_bytes = (size_t)n << 20; break;
        case 'u': use_cpu_time = true; break;
        case 'c':
            for (cpu = EBB_ISA_NEON; cpu > 0 && strcmp(ebb_isa_names[cpu], optarg) != 0; cpu--)
                ;
            break;
        default: return usage();
        }
    }
    if (n_threads < 1 || n_threads > THREADS_MAX || n_tokens < 1 || n_group < 1 || width < 32 || n_pos < n_tokens)
        return usage();
    if (ebb_kernels_get((ebb_isa)cpu, &b.k, &err) != EBB_OK || ebb_pool_new(n_threads, &b.pool, &err) != EBB_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    for (uint32_t i = 0; i < n_threads; i++)
        b.scratch[i] = test_alloc(EBB_KERNEL_SCRATCH);
    printf("%s, %u threads, %u positions, %u tokens, %u heads of %u for each KV head\n", b.k->name, n_threads, n_pos,
           n_tokens, n_group, width);
    bench_type(&b, EBB_KV_F16, "f16");
    bench_type(&b, EBB_KV_Q8_0, "q8_0");
    bench_type(&b, EBB_KV_Q4_0, "q4_0");
    bench_type(&b, EBB_KV_F32, "f32");
    for (uint32_t i = 0; i < n_threads; i++)
        free(b.scratch[i]);
    ebb_pool_free(b.pool);
    return 0;
}
