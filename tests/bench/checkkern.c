/* checkkern: checks any kernel by name against the scalar one, bit for bit, and times it.
 *
 *   checkkern [--only NAME] [--isa scalar|avx2|avxvnni|avx512|amx|neon] [--bench] [--list]
 *
 * A kernel is called TYPE.gemv or TYPE.gemm (slots of a product), TYPE.unpack, or by its entry of the table (rmsnorm,
 * dot ...).  --only takes a whole name, or all that begin with NAME and a dot: "q4_K".  --bench adds the time of a
 * call, the least of many, on data that is in the caches: how good a kernel is; bench_kernels tells what a machine
 * makes of it.  A slot that an instruction set does not fill is that of the rung below, and is named so.  Exit status
 * 1: other bits. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../engine/kernels/kernel_data.h"
#include "base/clock.h"

enum { N_ROWS = 128, N_K = 2048, N_VECTOR = 4096, N_COLS_MOST = 64 };

typedef struct checker {
    const ebb_kernels *scalar, *k, *below;       /* below: the rung below k; NULL for scalar */
    const char *only;
    bool        is_bench, is_list;
    unsigned    n_checked, n_wrong;
    void       *scratch;
    uint8_t    *w, *x;
    float      *values, *want, *got;
} checker;

static bool is_wanted(const checker *c, const char *name)
{
    size_t n = c->only ? strlen(c->only) : 0;

    return !c->only || (strncasecmp(name, c->only, n) == 0 && (name[n] == '\0' || name[n] == '.'));
}

static double least_s(void (*call)(void *), void *arg)
{
    double best = 1e30, begin = ebb_clock_s();

    for (int i = 0; i < 2000 && ebb_clock_s() - begin < 0.2; i++) {
        double t = ebb_clock_s();

        call(arg);
        t = ebb_clock_s() - t;
        best = t < best ? t : best;
    }
    return best;
}

/* One line: name, whose entry it is, same or not, and speed in units (multiply-adds, elements) per second. */
static void report(checker *c, const char *name, bool is_own, size_t n_bytes, void (*call)(void *), void *arg,
                   double units)
{
    bool is_same;

    if (!c->is_list)
        call(arg);
    is_same = c->is_list || memcmp(c->want, c->got, n_bytes) == 0;
    c->n_checked++;
    c->n_wrong += !is_same;
    printf("%-7s %-18s %s%s", c->k->name, name, is_same ? "ok" : "OTHER BITS", is_own ? "" : " (of the rung below)");
    if (c->is_bench && !c->is_list)
        printf("  %10.2f G/s", units / least_s(call, arg) / 1e9);
    putchar('\n');
}

/* ---- products ---- */

typedef struct product {
    void (*slot)(const ebb_matmul *a);
    ebb_matmul a;
} product;

static void call_product(void *arg)
{
    product *p = arg;

    p->slot(&p->a);
}

static void check_slot(checker *c, ebb_type type, const char *slot_name, void (*slot)(const ebb_matmul *), bool is_own,
                       size_t n_cols)
{
    ebb_act act = ebb_kernel_act(type);
    char name[48];
    product p = { slot, { .type = type, .w = c->w, .row_bytes = (size_t)ebb_type_row_bytes(type, N_K),
                          .n_rows = N_ROWS, .n_k = N_K,
                          .x = c->x, .x_col_bytes = ebb_act_col_bytes(act, N_K), .n_cols = n_cols, .y = c->got,
                          .y_stride = N_ROWS, .scratch = c->scratch } };

    snprintf(name, sizeof name, "%s.%s", ebb_type_get(type)->name, slot_name);
    if (!slot || !is_wanted(c, name))
        return;
    for (size_t r = 0; r < N_ROWS; r++)
        test_weights(type, c->w + r * p.a.row_bytes, N_K);
    for (size_t i = 0; i < n_cols; i++) {
        for (size_t j = 0; j < N_K; j++)
            c->values[j] = test_uniform(-1, 1);
        c->scalar->quantize[act](c->values, N_K, c->x + i * p.a.x_col_bytes);
    }
    p.a.y = c->want;
    if (!c->is_list)
        c->scalar->matmul[type].gemm(&p.a);
    p.a.y = c->got;
    memset(c->got, 0x7f, n_cols * N_ROWS * sizeof *c->got);
    report(c, name, is_own, n_cols * N_ROWS * sizeof *c->got, call_product, &p, (double)n_cols * N_ROWS * N_K);
}

typedef struct unpacking {
    void (*fn)(const void *row, size_t n_k, float *out);
    const void *row;
    float *out;
} unpacking;

static void call_unpack(void *arg)
{
    const unpacking *u = arg;

    u->fn(u->row, N_K, u->out);
}

static void check_type(checker *c, ebb_type type)
{
    const ebb_matmul_slots *s = &c->k->matmul[type], *below = c->below ? &c->below->matmul[type] : NULL;
    unpacking u = { c->k->dequantize[type], c->w, c->got };
    char name[48];

    check_slot(c, type, "gemv", s->gemv, !below || s->gemv != below->gemv, 1);
    check_slot(c, type, "gemm", s->gemm, !below || s->gemm != below->gemm, N_COLS_MOST);
    snprintf(name, sizeof name, "%s.unpack", ebb_type_get(type)->name);
    if (!is_wanted(c, name))
        return;
    test_weights(type, c->w, N_K);
    c->scalar->dequantize[type](c->w, N_K, c->want);
    report(c, name, !c->below || u.fn != c->below->dequantize[type], N_K * sizeof *c->got, call_unpack, &u, N_K);
}

/* ---- vectors ---- */

typedef struct vector_call {
    const ebb_kernels *k;
    float *y;                    /* N_VECTOR */
    const float *a, *b;
} vector_call;

#define RESET(v) memcpy((v)->y, (v)->a, N_VECTOR * sizeof(float))
static void call_rmsnorm(void *p)   { vector_call *v = p; v->k->rmsnorm(v->y, v->a, v->b, N_VECTOR, 1e-5f); }
static void call_layernorm(void *p) { vector_call *v = p; v->k->layernorm(v->y, v->a, v->b, v->b, N_VECTOR, 1e-5f); }
static void call_add(void *p)       { vector_call *v = p; RESET(v); v->k->add(v->y, v->b, N_VECTOR); }
static void call_scale(void *p)     { vector_call *v = p; RESET(v); v->k->scale(v->y, 0.3f, N_VECTOR); }
static void call_silu_mul(void *p)  { vector_call *v = p; v->k->silu_mul(v->y, v->a, v->b, N_VECTOR); }
static void call_gelu_mul(void *p)  { vector_call *v = p; v->k->gelu_mul(v->y, v->a, v->b, N_VECTOR); }
static void call_dot(void *p)       { vector_call *v = p; v->y[0] = v->k->dot(v->a, v->b, N_VECTOR); }
static void call_axpy(void *p)      { vector_call *v = p; RESET(v); v->k->axpy(v->y, 0.7f, v->b, N_VECTOR); }
static void call_softmax(void *p)   { vector_call *v = p; RESET(v); v->k->softmax(v->y, N_VECTOR); }
static void call_rope_adjacent(void *p) { vector_call *v = p; RESET(v); v->k->rope_adjacent(v->y, v->b, N_VECTOR); }
static void call_rope_halves(void *p)   { vector_call *v = p; RESET(v); v->k->rope_halves(v->y, v->b, N_VECTOR); }

static void check_vectors(checker *c)
{
#define X(entry) { #entry, call_##entry, offsetof(ebb_kernels, entry) }
    static const struct { const char *name; void (*call)(void *); size_t at; } all[] = {
        X(rmsnorm), X(layernorm), X(add), X(scale), X(silu_mul), X(gelu_mul), X(dot), X(axpy), X(softmax),
        X(rope_adjacent), X(rope_halves),
    };
#undef X
    float *a = c->values, *b = c->values + N_VECTOR;

    for (size_t i = 0; i < N_VECTOR; i++) {
        a[i] = test_uniform(-3, 3);
        b[i] = test_uniform(-1, 1);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool is_own = !c->below ||
                      memcmp((const char *)c->k + all[i].at, (const char *)c->below + all[i].at, sizeof(void *)) != 0;

        if (!is_wanted(c, all[i].name))
            continue;
        memset(c->want, 0, N_VECTOR * sizeof *c->want);
        memset(c->got, 0, N_VECTOR * sizeof *c->got);
        all[i].call(&(vector_call){ c->scalar, c->want, a, b });
        report(c, all[i].name, is_own, N_VECTOR * sizeof *c->got, all[i].call,
               &(vector_call){ c->k, c->got, a, b }, N_VECTOR);
    }
}

/* ---- the program ---- */

static void check_isa(checker *c, ebb_isa isa)
{
    static const ebb_isa below[] = { [EBB_ISA_AVX2] = EBB_ISA_SCALAR, [EBB_ISA_AVXVNNI] = EBB_ISA_AVX2,
                                     [EBB_ISA_AVX512] = EBB_ISA_AVX2, [EBB_ISA_AMX] = EBB_ISA_AVX512,
                                     [EBB_ISA_NEON] = EBB_ISA_SCALAR };

    c->below = NULL;
    if (isa != EBB_ISA_SCALAR && ebb_kernels_get(below[isa], &c->below, NULL) != EBB_OK)
        c->below = c->scalar;
    for (uint32_t t = 0; t < EBB_TYPE_LIMIT; t++)
        if (ebb_kernel_has_type((ebb_type)t))
            check_type(c, (ebb_type)t);
    check_vectors(c);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "only", required_argument, NULL, 'o' }, { "isa", required_argument, NULL, 'i' },
        { "bench", no_argument, NULL, 'b' },      { "list", no_argument, NULL, 'l' },  { 0 },
    };
    ebb_isa first = EBB_ISA_SCALAR, last = EBB_ISA_NEON;
    checker c = { 0 };
    ebb_error err;

    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (o == 'o')
            c.only = optarg;
        else if (o == 'b')
            c.is_bench = true;
        else if (o == 'l')
            c.is_list = true;
        else if (o == 'i') {
            for (first = EBB_ISA_NEON; first > 0 && strcmp(ebb_isa_names[first], optarg) != 0; first--)
                ;
            last = first;
        }
        if (o == '?' || first == EBB_ISA_AUTO) {
            fputs("usage: checkkern [--only NAME] [--isa scalar|avx2|avxvnni|avx512|amx|neon] [--bench] [--list]\n",
                  stderr);
            return 2;
        }
    }
    if (ebb_kernels_get(EBB_ISA_SCALAR, &c.scalar, &err) != EBB_OK ||
        (first == last && ebb_kernels_get(first, &c.k, &err) != EBB_OK)) {
        fprintf(stderr, "checkkern: %s\n", err.msg);
        return 1;
    }
    c.scratch = test_alloc(EBB_KERNEL_SCRATCH);
    c.w = test_alloc((size_t)N_ROWS * N_K * sizeof(float));
    c.x = test_alloc((size_t)N_COLS_MOST * ebb_act_col_bytes(EBB_ACT_F32, N_K));
    c.values = test_alloc(2 * N_VECTOR * sizeof *c.values);
    c.want = test_alloc((size_t)N_ROWS * N_COLS_MOST * sizeof *c.want);
    c.got = test_alloc((size_t)N_ROWS * N_COLS_MOST * sizeof *c.got);
    for (ebb_isa isa = first; isa <= last; isa++)
        if (ebb_kernels_get(isa, &c.k, NULL) == EBB_OK)
            check_isa(&c, isa);
    if (c.n_checked == 0)
        fprintf(stderr, "checkkern: no kernel is called \"%s\"; --list names them\n", c.only);
    free(c.scratch);
    free(c.w);
    free(c.x);
    free(c.values);
    free(c.want);
    free(c.got);
    return c.n_wrong > 0 || c.n_checked == 0;
}
