/* Every instruction set this machine has against the specification, bit for
 * bit, over shapes that hit the edges of tiles; and rule K1: a column alone
 * gives the same bits as among others. */
#include "ebb_test.h"

#include "kernel_data.h"

static const ebb_kernels *scalar;

static void fill_act(ebb_act act, uint8_t *x, size_t n_k, size_t n_cols)
{
    float *values = test_alloc(n_k * 4);

    for (size_t c = 0; c < n_cols; c++) {
        float size = c % 5 == 4 ? 1e-40f : c % 3 == 2 ? 30 : 1;      /* denormal columns too */

        for (size_t k = 0; k < n_k; k++)
            values[k] = c % 7 == 6 ? 0 : test_random() % 9 ? test_uniform(-size, size) : size;
        for (size_t k = 0; c % 2 == 0 && k < n_k; k++)       /* few large among many small: sums that fit 16 bits */
            values[k] *= k / 256 % 3 && test_random() % 16 ? 0.3f : 1.0f;
        scalar->quantize[act](values, n_k, x + c * ebb_act_col_bytes(act, n_k));
    }
    free(values);
}

/* The largest magnitudes a block can hold, so that a sum in too few bits would overflow. */
static void fill_extreme(ebb_type type, uint8_t *w, ebb_act act, uint8_t *x, size_t n_k, size_t n_rows, size_t n_cols)
{
    const ebb_type_info *t = ebb_type_get(type);
    float *values = test_alloc(n_k * 4);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t b = 0; b < n_k / t->block_len; b++) {
            uint8_t *p = w + r * (n_k / t->block_len) * t->block_bytes + b * t->block_bytes;

            memset(p, r % 3 == 0 ? 0xff : r % 3 == 1 ? 0x80 : 0, t->block_bytes);
            test_put_halves(type, p, 0x3c00);
        }
    for (size_t c = 0; c < n_cols; c++) {
        for (size_t k = 0; k < n_k; k++)
            values[k] = c % 3 == 0 || (c % 3 == 1 && k % 2) ? 1 : -1;
        scalar->quantize[act](values, n_k, x + c * ebb_act_col_bytes(act, n_k));
    }
    free(values);
}

typedef struct matmul_shape {
    size_t n_rows, n_cols, n_k;
} matmul_shape;

static void run_matmul(const ebb_kernels *k, ebb_type type, const uint8_t *w, const uint8_t *x, matmul_shape s,
                       float *y, size_t y_stride, void *scratch)
{
    size_t col_bytes = ebb_act_col_bytes(ebb_kernel_act(type), s.n_k);

    ebb_kernels_matmul(k, &(ebb_matmul){ .type = type, .w = w, .row_bytes = (size_t)ebb_type_row_bytes(type, s.n_k),
        .n_rows = s.n_rows, .n_k = s.n_k, .x = x, .x_col_bytes = col_bytes, .n_cols = s.n_cols,
        .y = y, .y_stride = y_stride, .scratch = scratch });
}

static void check_matmul(const ebb_kernels *k, ebb_type type, matmul_shape s, bool is_extreme)
{
    ebb_act act = ebb_kernel_act(type);
    size_t row_bytes = (size_t)ebb_type_row_bytes(type, s.n_k), col_bytes = ebb_act_col_bytes(act, s.n_k);
    size_t stride = s.n_rows + 3, y_bytes = s.n_cols * stride * 4;
    /* rows stand anywhere, at the very end too */
    uint8_t *w_memory = malloc(s.n_rows * row_bytes + 2), *w = w_memory + 2;
    uint8_t *x = test_alloc(s.n_cols * col_bytes);
    float *want = test_alloc(y_bytes), *got = test_alloc(y_bytes), *alone = test_alloc(y_bytes);
    void *scratch = test_alloc(EBB_KERNEL_SCRATCH);

    if (is_extreme) {
        fill_extreme(type, w, act, x, s.n_k, s.n_rows, s.n_cols);
    } else {
        for (size_t r = 0; r < s.n_rows; r++)
            test_weights(type, w + r * row_bytes, s.n_k);
        fill_act(act, x, s.n_k, s.n_cols);
    }
    memset(want, 0x7f, y_bytes);
    memset(got, 0x7f, y_bytes);
    memset(alone, 0x7f, y_bytes);
    memset(scratch, 0xff, EBB_KERNEL_SCRATCH);
    run_matmul(scalar, type, w, x, s, want, stride, scratch);
    run_matmul(k, type, w, x, s, got, stride, scratch);
    for (size_t c = 0; c < s.n_cols; c++)
        run_matmul(k, type, w, x + c * col_bytes, (matmul_shape){ s.n_rows, 1, s.n_k }, alone + c * stride, stride,
                   scratch);
    for (size_t i = 0; i < s.n_cols * stride; i++)
        if (memcmp(&want[i], &got[i], 4) != 0 || memcmp(&want[i], &alone[i], 4) != 0)
            fail_msg("%s %s rows %zu cols %zu k %zu%s: row %zu col %zu is %.9g, alone %.9g, should be %.9g", k->name,
                     ebb_type_get(type)->name, s.n_rows, s.n_cols, s.n_k, is_extreme ? " extreme" : "",
                     i % stride, i / stride, (double)got[i], (double)alone[i], (double)want[i]);
    free(w_memory);
    free(x);
    free(want);
    free(got);
    free(alone);
    free(scratch);
}

static void check_matmul_type(const ebb_kernels *k, ebb_type type)
{
    static const size_t rows[] = { 1, 2, 15, 16, 17, 33 }, cols[] = { 1, 2, 3, 4, 5, 7, 8, 9, 17, 64 };
    static const size_t blocks[] = { 1, 2, 3, 7, 9, 16, 21 }, odd[] = { 172, 31, 1, 256, 17 };
    size_t len = ebb_type_get(type)->block_len;

    for (size_t r = 0; r < 6; r++)
        for (size_t c = 0; c < 10; c++) {
            size_t i = r + c;

            check_matmul(k, type, (matmul_shape){ rows[r], cols[c], len == 1 ? odd[i % 5] : blocks[i % 7] * len },
                         false);
        }
    /* more than one tile each way */
    check_matmul(k, type, (matmul_shape){ 300, 13, len == 1 ? 1000 : 17 * len }, false);
    check_matmul(k, type, (matmul_shape){ 35, 7, len == 1 ? 64 : 2 * len }, true);
    check_matmul(k, type, (matmul_shape){ 35, 2, len == 1 ? 64 : 2 * len }, true);
    /* as many columns as some kernels are made for, in groups that are not alike */
    check_matmul(k, type, (matmul_shape){ 70, 101, len == 1 ? 300 : 3 * len }, false);
    check_matmul(k, type, (matmul_shape){ 35, 47, len == 1 ? 64 : 2 * len }, true);
}

static void test_bits_are_those_of_the_specification(void **state)
{
    (void)state;
    assert_int_equal(ebb_kernels_get(EBB_ISA_SCALAR, &scalar, NULL), EBB_OK);
    for (ebb_isa cpu = EBB_ISA_AVX2; cpu <= EBB_ISA_NEON; cpu++) {
        const ebb_kernels *k;

        if (ebb_kernels_get(cpu, &k, NULL) != EBB_OK)
            continue;
        for (uint32_t t = 0; t < EBB_TYPE_LIMIT; t++)
            if (ebb_kernel_has_type((ebb_type)t))
                check_matmul_type(k, (ebb_type)t);
        print_message("%s: all types\n", k->name);
    }
}

static void test_missing_instruction_set_is_named(void **state)
{
    const ebb_kernels *k;
    ebb_error err = { 0 };

    (void)state;
    for (ebb_isa cpu = EBB_ISA_SCALAR; cpu <= EBB_ISA_NEON; cpu++)
        if (ebb_kernels_get(cpu, &k, &err) != EBB_OK) {
            assert_int_equal(err.code, EBB_UNSUPPORTED);
            assert_non_null(strstr(err.msg, ebb_isa_names[cpu]));
        }
#if !defined(__x86_64__)
    assert_int_equal(ebb_kernels_get(EBB_ISA_AVX2, &k, NULL), EBB_UNSUPPORTED);
#endif
#if !defined(__aarch64__)
    assert_int_equal(ebb_kernels_get(EBB_ISA_NEON, &k, NULL), EBB_UNSUPPORTED);
#endif
    assert_int_equal(ebb_kernels_get(EBB_ISA_AUTO, &k, NULL), EBB_OK);
    if (err.code == EBB_UNSUPPORTED)             /* what there is instead */
        assert_non_null(strstr(err.msg, k->name));
    assert_int_equal(ebb_kernels_get((ebb_isa)99, &k, &err), EBB_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_those_of_the_specification),
        cmocka_unit_test(test_missing_instruction_set_is_named),
    };
    return cmocka_run_group_tests_name("matmul", tests, NULL, NULL);
}
