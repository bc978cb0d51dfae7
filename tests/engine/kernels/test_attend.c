/* Attention: the specification against doubles, every instruction set against
 * the specification, and columns alone against columns together. */
#include "ebb_test.h"

#include "kernel_data.h"

enum { SEGMENT = EBB_KV_BLOCK * EBB_KV_SEGMENT, N_SEG = 2, N_POS = SEGMENT * N_SEG };

typedef struct setup {
    uint32_t dim_k, dim_v, n_group, pos0, n_cols, window;
    float    softcap;
    ebb_kv_type k_type, v_type;
} setup;

typedef struct attend_data {
    uint8_t *k[N_POS / EBB_KV_BLOCK], *v[N_POS / EBB_KV_BLOCK];
    float   *k_float, *v_float;  /* what the rows decode to: [N_POS, dim] */
    float   *q;
} attend_data;

static const ebb_kernels *scalar;
static float scale = 0.25f;      /* of q . k */
static uint32_t every = 1;       /* elements of a row, of which one is not 0 */

/* The value that a stored row holds, by the types' definitions. */
static void decode_row(ebb_kv_type type, const uint8_t *row, size_t dim, float *out)
{
    switch (type) {
    case EBB_KV_F32:  memcpy(out, row, dim * 4); break;
    case EBB_KV_F16:  scalar->dequantize[EBB_TYPE_F16](row, dim, out); break;
    case EBB_KV_Q8_0: scalar->dequantize[EBB_TYPE_Q8_0](row, dim, out); break;
    default:          scalar->dequantize[EBB_TYPE_Q4_0](row, dim, out); break;
    }
}

static void make_rows(const setup *s, ebb_kv_type type, uint32_t dim, uint8_t **blocks, float **floats)
{
    size_t bytes = ebb_kv_row_bytes(type, dim);
    float *x = test_alloc(dim * 4u);
    uint32_t n = s->pos0 + s->n_cols;

    *floats = test_alloc((size_t)N_POS * dim * 4);
    for (uint32_t b = 0; b < N_POS / EBB_KV_BLOCK; b++) {
        blocks[b] = b * EBB_KV_BLOCK < n ? malloc(bytes * EBB_KV_BLOCK) : NULL; /* nothing behind the last position */
        if (blocks[b])
            memset(blocks[b], 0xff, bytes * EBB_KV_BLOCK);       /* not a number where nothing was stored */
    }
    for (uint32_t p = 0; p < n; p++) {
        uint8_t *row = blocks[p / EBB_KV_BLOCK] + p % EBB_KV_BLOCK * bytes;

        for (uint32_t i = 0; i < dim; i++)
            x[i] = (i + p) % every == 0 ? test_uniform(-2, 2) : 0;
        scalar->kv_store[type](row, x, dim);
        decode_row(type, row, dim, *floats + (size_t)p * dim);
        for (uint32_t i = 0; i < dim; i++)
            assert_true(fabsf(x[i] - (*floats)[(size_t)p * dim + i]) <= (type == EBB_KV_Q4_0   ? 0.26f
                                                                         : type == EBB_KV_Q8_0 ? 0.01f
                                                                                               : 0.001f));
    }
    free(x);
}

static attend_data make_attend(const setup *s)
{
    attend_data d = { 0 };
    size_t n_q = (size_t)s->n_cols * s->n_group * s->dim_k;

    make_rows(s, s->k_type, s->dim_k, d.k, &d.k_float);
    make_rows(s, s->v_type, s->dim_v, d.v, &d.v_float);
    d.q = test_alloc(n_q * 4);
    for (size_t i = 0; i < n_q; i++)
        d.q[i] = test_uniform(-2, 2);
    return d;
}

static void free_attend(attend_data *d)
{
    for (int b = 0; b < N_POS / (int)EBB_KV_BLOCK; b++) {
        free(d->k[b]);
        free(d->v[b]);
    }
    free(d->k_float);
    free(d->v_float);
    free(d->q);
}

/* Columns [c0, c0 + n) of all segments; parts[c][g][seg][dim_v + 2]. */
static void run_attend(const ebb_kernels *k, const setup *s, const attend_data *d, uint32_t c0, uint32_t n,
                       float *parts)
{
    size_t part = s->dim_v + 2, n_q = (size_t)n * s->n_group;
    float *acc = test_alloc(n_q * part * 4);
    void *scratch = test_alloc(EBB_KERNEL_SCRATCH);

    memset(scratch, 0xff, EBB_KERNEL_SCRATCH);
    for (uint32_t seg = 0; seg < N_SEG; seg++) {
        ebb_attend a = { .k_type = s->k_type, .v_type = s->v_type,
                         .k = (const void *const *)d->k + seg * EBB_KV_SEGMENT,
                         .v = (const void *const *)d->v + seg * EBB_KV_SEGMENT, .next_k = d->k[0], .next_v = d->v[0],
                         .seg_pos = seg * SEGMENT, .pos0 = s->pos0 + c0,
                         .n_cols = n, .window = s->window, .n_group = s->n_group, .dim_k = s->dim_k, .dim_v = s->dim_v,
                         .q = d->q + (size_t)c0 * s->n_group * s->dim_k, .q_stride = (size_t)s->n_group * s->dim_k,
                         .scale = scale, .softcap = s->softcap, .acc = acc, .scratch = scratch };
        k->attend(&a);
        for (size_t i = 0; i < n_q; i++)
            memcpy(parts + (((size_t)c0 * s->n_group + i) * N_SEG + seg) * part, acc + i * part, part * 4);
    }
    free(acc);
    free(scratch);
}

static void reference(const setup *s, const attend_data *d, uint32_t c, uint32_t g, const float *sink, double *out)
{
    uint32_t pos = s->pos0 + c, first = s->window && pos + 1 > s->window ? pos + 1 - s->window : 0;
    const float *q = d->q + ((size_t)c * s->n_group + g) * s->dim_k;
    double sum = sink ? exp(*sink) : 0;

    memset(out, 0, s->dim_v * sizeof *out);
    for (uint32_t p = first; p <= pos; p++) {
        double dot = 0;

        for (uint32_t i = 0; i < s->dim_k; i++)
            dot += (double)q[i] * d->k_float[(size_t)p * s->dim_k + i];
        dot *= scale;
        if (s->softcap > 0)
            dot = s->softcap * tanh(dot / s->softcap);
        sum += exp(dot);
        for (uint32_t i = 0; i < s->dim_v; i++)
            out[i] += exp(dot) * d->v_float[(size_t)p * s->dim_v + i];
    }
    for (uint32_t i = 0; i < s->dim_v; i++)
        out[i] /= sum;
}

static void check_attend(const setup *s)
{
    attend_data d = make_attend(s);
    size_t part = s->dim_v + 2, n = (size_t)s->n_cols * s->n_group * N_SEG * part;
    float *want = test_alloc(n * 4), *got = test_alloc(n * 4), out[512], again[512];
    double exact[512];

    run_attend(scalar, s, &d, 0, s->n_cols, want);
    for (uint32_t c = 0; c < s->n_cols; c += 1 + s->n_cols / 3)
        for (uint32_t g = 0; g < s->n_group; g++) {
            const float *parts = want + ((size_t)c * s->n_group + g) * N_SEG * part, sink = 1.5f;

            scalar->attend_merge(out, parts, N_SEG, part, s->dim_v, c % 2 ? &sink : NULL);
            reference(s, &d, c, g, c % 2 ? &sink : NULL, exact);
            for (uint32_t i = 0; i < s->dim_v; i++)
                if (!(fabs(out[i] - exact[i]) < 1e-4))
                    fail_msg("column %u head %u value %u: %g, in double %g", c, g, i, (double)out[i], exact[i]);
        }
    for (ebb_isa cpu = EBB_ISA_SCALAR; cpu <= EBB_ISA_NEON; cpu++) {
        const ebb_kernels *k;

        if (ebb_kernels_get(cpu, &k, NULL) != EBB_OK)
            continue;
        memset(got, 0, n * 4);
        run_attend(k, s, &d, 0, s->n_cols, got);
        if (memcmp(want, got, n * 4) != 0)
            fail_msg("%s: dims %u %u, %u columns from %u, window %u, types %d %d", k->name, s->dim_k, s->dim_v,
                     s->n_cols, s->pos0, s->window, s->k_type, s->v_type);
        for (uint32_t c = 0; c < s->n_cols; c += 3)
            run_attend(k, s, &d, c, 1, got);     /* alone */
        run_attend(k, s, &d, s->n_cols / 2, s->n_cols - s->n_cols / 2, got);
        assert_memory_equal(want, got, n * 4);
        scalar->attend_merge(out, want, N_SEG, part, s->dim_v, NULL);
        k->attend_merge(again, want, N_SEG, part, s->dim_v, NULL);
        assert_memory_equal(out, again, s->dim_v * sizeof(float));
    }
    free(want);
    free(got);
    free_attend(&d);
}

static void test_shapes(void **state)
{
    static const setup cases[] = {
        { 128, 128, 4, 0, 1, 0, 0, EBB_KV_F16, EBB_KV_F16 },
        { 128, 128, 4, 700, 3, 0, 0, EBB_KV_F16, EBB_KV_F16 },
        { 64, 64, 3, 500, 40, 0, 0, EBB_KV_F16, EBB_KV_F16 },
        { 64, 64, 1, 0, 70, 0, 0, EBB_KV_F32, EBB_KV_F32 },
        { 8, 8, 2, 5, 33, 0, 0, EBB_KV_F32, EBB_KV_F16 },        /* stories260K: heads of 8 */
        { 20, 36, 1, 31, 2, 0, 0, EBB_KV_F16, EBB_KV_F32 },
        { 256, 256, 2, 600, 20, 100, 50, EBB_KV_F16, EBB_KV_F16 },
        { 96, 96, 1, 520, 9, 16, 0, EBB_KV_F16, EBB_KV_F16 },
        { 128, 128, 2, 300, 5, 0, 0, EBB_KV_Q8_0, EBB_KV_Q8_0 },
        { 64, 96, 2, 511, 2, 0, 30, EBB_KV_Q8_0, EBB_KV_Q4_0 },
        { 192, 128, 1, 40, 1, 0, 0, EBB_KV_Q4_0, EBB_KV_F16 },
        { 128, 128, 1, 77, 1, 0, 0, EBB_KV_F16, EBB_KV_F16 },    /* few queries: one, two, three, and more than four */
        { 64, 64, 2, 530, 1, 0, 0, EBB_KV_Q8_0, EBB_KV_F16 },
        { 64, 128, 3, 535, 1, 0, 30, EBB_KV_F32, EBB_KV_Q4_0 },
        { 128, 128, 4, 1000, 1, 0, 0, EBB_KV_Q4_0, EBB_KV_Q4_0 },
        { 96, 160, 4, 610, 1, 0, 0, EBB_KV_Q8_0, EBB_KV_Q8_0 },
        { 80, 80, 4, 801, 1, 0, 0, EBB_KV_F16, EBB_KV_F16 },     /* half a vector of 32 at the end */
        { 112, 48, 5, 650, 1, 90, 0, EBB_KV_F16, EBB_KV_F32 },
        { 64, 64, 6, 540, 1, 33, 50, EBB_KV_F16, EBB_KV_F16 },
        { 128, 256, 7, 512, 1, 0, 0, EBB_KV_F32, EBB_KV_F16 },
        { 256, 256, 8, 900, 1, 0, 0, EBB_KV_F16, EBB_KV_F16 },
        { 64, 64, 8, 900, 1, 0, 0, EBB_KV_Q4_0, EBB_KV_Q8_0 },
        { 128, 128, 4, 991, 2, 40, 0, EBB_KV_F16, EBB_KV_F16 },
        { 64, 64, 1, 600, 4, 0, 0, EBB_KV_Q8_0, EBB_KV_Q8_0 },
        { 128, 128, 7, 700, 1, 0, 0, EBB_KV_Q8_0, EBB_KV_Q4_0 },
        { 64, 96, 4, 800, 4, 0, 0, EBB_KV_Q4_0, EBB_KV_Q8_0 },   /* sixteen, and one more */
        { 64, 64, 17, 560, 1, 0, 0, EBB_KV_Q8_0, EBB_KV_Q8_0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_attend(&cases[i]);
}

/* Scores so far apart that many weights are 0 and some are less than 2^-126, and values that are mostly 0, so that
 * those weights count. */
static void test_far_apart(void **state)
{
    (void)state;
    scale = 30;
    every = 64;
    check_attend(&(setup){ 128, 128, 4, 1000, 1, 0, 0, EBB_KV_F16, EBB_KV_F16 });
    check_attend(&(setup){ 128, 128, 2, 600, 20, 0, 0, EBB_KV_F16, EBB_KV_F16 });
    scale = 0.25f;
    every = 1;
}

/* A column before the segment, or one whose window has left it, sees nothing: m = -inf, l = 0. */
static void test_nothing_visible(void **state)
{
    const void *none[EBB_KV_SEGMENT] = { 0 };
    float q[64] = { 1 }, acc[66], out[64], sink = -2;
    void *scratch = test_alloc(EBB_KERNEL_SCRATCH);

    (void)state;
    for (ebb_isa cpu = EBB_ISA_SCALAR; cpu <= EBB_ISA_NEON; cpu++) {
        const ebb_kernels *k;

        if (ebb_kernels_get(cpu, &k, NULL) != EBB_OK)
            continue;
        for (int i = 0; i < 2; i++) {
            memset(acc, 0x55, sizeof acc);
            k->attend(&(ebb_attend){ .k = none, .v = none, .seg_pos = i ? 0 : SEGMENT, .pos0 = i ? 3 * SEGMENT : 0,
                                     .n_cols = 1,
                .window = 64, .n_group = 1, .dim_k = 64, .dim_v = 64, .q = q, .q_stride = 64, .scale = 1, .acc = acc,
                .scratch = scratch });
            assert_true(acc[0] == -INFINITY && acc[1] == 0 && acc[2] == 0 && acc[65] == 0);
        }
        k->attend_merge(out, acc, 1, 66, 64, &sink);
        assert_true(out[0] == 0 && out[63] == 0);
    }
    free(scratch);
}

static int group_setup(void **state)
{
    (void)state;
    return ebb_kernels_get(EBB_ISA_SCALAR, &scalar, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_far_apart),
        cmocka_unit_test(test_nothing_visible),
    };
    return cmocka_run_group_tests_name("attention", tests, group_setup, NULL);
}
