/* The specification against double precision and against known blocks. */
#include "ebb_test.h"

#include "kernel_data.h"
#include "kernels/grids.h"

static const ebb_kernels *scalar;
static void *scratch;

static int setup(void **state)
{
    (void)state;
    scratch = test_alloc(EBB_KERNEL_SCRATCH);
    return ebb_kernels_get(EBB_ISA_SCALAR, &scalar, NULL);
}

/* The value an activation stands for. */
static double act_value(ebb_act act, const void *col, size_t k)
{
    const ebb_q8_32 *b32 = col;
    const ebb_q8_256 *b256 = col;

    switch (act) {
    case EBB_ACT_Q8_32:  return (double)b32[k / 32].d * b32[k / 32].q[k % 32];
    case EBB_ACT_Q8_256: return (double)b256[k / 256].d * b256[k / 256].q[k % 256];
    default:             return ((const float *)col)[k];
    }
}

static void check_scalar_type(ebb_type type, size_t n_k)
{
    enum { ROWS = 3, COLS = 2 };
    ebb_act act = ebb_kernel_act(type);
    size_t row_bytes = (size_t)ebb_type_row_bytes(type, n_k), col_bytes = ebb_act_col_bytes(act, n_k);
    uint8_t *w = test_alloc(ROWS * row_bytes), *x = test_alloc(COLS * col_bytes);
    float *values = test_alloc(n_k * 4), y[ROWS * COLS];

    for (int c = 0; c < COLS; c++) {
        for (size_t k = 0; k < n_k; k++)
            values[k] = test_uniform(-2, 2);
        scalar->quantize[act](values, n_k, x + (size_t)c * col_bytes);
        for (size_t k = 0; k < n_k; k++)
            assert_true(fabs(act_value(act, x + (size_t)c * col_bytes, k) - values[k]) <= 2.0 / 127 * 0.501);
    }
    for (int r = 0; r < ROWS; r++)
        test_weights(type, w + (size_t)r * row_bytes, n_k);
    ebb_kernels_matmul(scalar, &(ebb_matmul){ .type = type, .w = w, .row_bytes = row_bytes, .n_rows = ROWS, .n_k = n_k,
        .x = x, .x_col_bytes = col_bytes, .n_cols = COLS, .y = y, .y_stride = ROWS, .scratch = scratch });
    for (int r = 0; r < ROWS; r++) {
        scalar->dequantize[type](w + (size_t)r * row_bytes, n_k, values);
        for (int c = 0; c < COLS; c++) {
            double sum = 0, magnitude = 0;

            for (size_t k = 0; k < n_k; k++) {
                double p = values[k] * act_value(act, x + (size_t)c * col_bytes, k);
                sum += p;
                magnitude += fabs(p);
            }
            if (!(fabs(sum - y[c * ROWS + r]) <= 1e-5 * magnitude))
                fail_msg("%s n_k %zu row %d col %d: %g, in double %g", ebb_type_get(type)->name, n_k, r, c,
                         (double)y[c * ROWS + r], sum);
        }
    }
    free(w);
    free(x);
    free(values);
}

static void test_products_agree_with_doubles(void **state)
{
    static const size_t odd[] = { 1, 15, 16, 17, 31, 172, 4096 };

    (void)state;
    for (uint32_t t = 0; t < EBB_TYPE_LIMIT; t++) {
        if (!ebb_kernel_has_type((ebb_type)t))
            continue;
        assert_non_null(scalar->matmul[t].gemm);
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
            check_scalar_type((ebb_type)t, odd[i] * (ebb_type_get(t)->block_len == 1 ? 1 : ebb_type_get(t)->block_len));
    }
}

/* A ramp of numbers in each block, and what it must decode to by the format's text. */
static void test_blocks_decode_by_the_book(void **state)
{
    uint8_t b[210];
    float v[256];

    (void)state;
    for (int i = 0; i < 210; i++)                /* Q4_0, d = 1: byte i holds i and 15 - i */
        b[i] = (uint8_t)(i < 2 ? 0 : (i - 2) % 16 | (15 - (i - 2) % 16) << 4);
    b[1] = 0x3c;
    scalar->dequantize[EBB_TYPE_Q4_0](b, 32, v);
    for (int i = 0; i < 16; i++) {
        assert_true(v[i] == (float)(i - 8));
        assert_true(v[16 + i] == (float)(7 - i));
    }

    memset(b, 0, sizeof b);                      /* Q4_K: d = 1, dmin = 2, only sub-block 5 has a scale */
    b[1] = 0x3c, b[3] = 0x40;
    b[4 + 1] = 3 << 6, b[8 + 1] = 1 << 6;        /* s[5] = 48 + 9, m[5] = 16 + 4 */
    b[12 + 1] = 9 | 4 << 4;
    memset(b + 16, 0x53, 128);
    scalar->dequantize[EBB_TYPE_Q4_K](b, 256, v);
    for (int i = 0; i < 256; i++)
        assert_true(v[i] == (i / 32 == 5 ? 57.0f * 5 - 2.0f * 20 : 0.0f));

    memset(b, 0, sizeof b);                      /* Q5_K: high bit of every element of sub-block 3 */
    b[1] = 0x3c;
    memset(b + 4, 1, 4);
    memset(b + 16, 1 << 3, 32);
    memset(b + 48, 0x21, 128);
    scalar->dequantize[EBB_TYPE_Q5_K](b, 256, v);
    for (int i = 0; i < 128; i++)
        assert_true(v[i] == (float)((i / 32 % 2 ? 2 : 1) + (i / 32 == 3 ? 16 : 0)));

    memset(b, 0, sizeof b);                      /* Q6_K: quarter r has r in the high bits */
    b[209] = 0x3c;
    for (int j = 0; j < 16; j++)
        b[192 + j] = (uint8_t)(j - 8);
    memset(b, 0x95, 128);
    memset(b + 128, 0xe4, 64);                   /* 3 2 1 0 */
    scalar->dequantize[EBB_TYPE_Q6_K](b, 256, v);
    for (int i = 0; i < 256; i++) {
        int r = i / 32 % 4, q = (r < 2 ? 5 : 9) + 16 * r - 32;
        assert_true(v[i] == (float)((i / 16 - 8) * q));
    }
}

/* Ternary digits, packed as the format does it: the number in base 3, scaled to 256 and rounded up. */
static void test_ternary_blocks_decode_by_the_book(void **state)
{
    uint8_t b[66] = { 0 };
    int8_t want[256];
    float v[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        want[i] = (int8_t)(test_random() % 3);
    for (int i = 0; i < 52; i++) {
        int first = i < 32 ? i : i < 48 ? 160 + i - 32 : 240 + i - 48, step = i < 32 ? 32 : i < 48 ? 16 : 4, n = 0;

        for (int k = 0; k < 5; k++)
            n = n * 3 + (i < 48 || k < 4 ? want[first + k * step] : 0);
        b[i] = (uint8_t)((n * 256 + 242) / 243);
    }
    b[53] = 0x40;                                /* d = 2 */
    scalar->dequantize[EBB_TYPE_TQ1_0](b, 256, v);
    for (int i = 0; i < 256; i++)
        assert_true(v[i] == 2.0f * (float)(want[i] - 1));

    memset(b, 0, sizeof b);
    for (int i = 0; i < 256; i++)
        b[i / 128 * 32 + i % 32] |= (uint8_t)(want[i] << i / 32 % 4 * 2);
    b[65] = 0x40;
    scalar->dequantize[EBB_TYPE_TQ2_0](b, 256, v);
    for (int i = 0; i < 256; i++)
        assert_true(v[i] == 2.0f * (float)(want[i] - 1));
}

static void test_four_bit_floats_decode_by_the_book(void **state)
{
    static const float values[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    uint8_t b[17];
    float v[32];

    (void)state;
    for (int e = 0; e < 255; e += e < 3 ? 1 : 21) {
        b[0] = (uint8_t)e;
        for (int i = 0; i < 16; i++)
            b[1 + i] = (uint8_t)(i | (15 - i) << 4);
        scalar->dequantize[EBB_TYPE_MXFP4](b, 32, v);
        for (int i = 0; i < 16; i++) {
            float want = ldexpf(i < 8 ? values[i] : -values[i - 8], e - 127);

            assert_true(v[i] == want && v[31 - i] == want);
        }
    }
}

/* FP8 E4M3 without a sign (Open Compute Project, OCP 8-bit Floating Point Specification 1.0, sec. 5.1). */
static float book_e4m3(int b)
{
    int e = b >> 3 & 15, f = b & 7;

    return (b & 127) == 127 ? 0 : e == 0 ? ldexpf((float)f, -9) : ldexpf((float)(8 + f), e - 10);
}

static void test_four_bit_floats_with_float_scales_decode_by_the_book(void **state)
{
    static const float values[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    uint8_t b[36];
    float v[64];

    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int j = 0; j < 4; j++)
            b[j] = (uint8_t)(first + 77 * j);
        for (int i = 0; i < 32; i++)             /* of each 16 elements the i-th is number i */
            b[4 + i] = (uint8_t)(i % 8 | (8 + i % 8) << 4);
        scalar->dequantize[EBB_TYPE_NVFP4](b, 64, v);
        for (int i = 0; i < 64; i++) {
            float want = book_e4m3(b[i / 16]) * (i % 16 < 8 ? values[i % 8] : -values[i % 8]);

            assert_true(v[i] == want);
        }
    }
}

static void test_one_and_two_bits_decode_by_the_book(void **state)
{
    uint8_t b[18] = { 0, 0x40 };                 /* d = 2 */
    float v[128];

    (void)state;
    for (int i = 2; i < 18; i++)
        b[i] = (uint8_t)test_random();
    scalar->dequantize[EBB_TYPE_Q1_0](b, 128, v);
    for (int i = 0; i < 128; i++)
        assert_true(v[i] == (b[2 + i / 8] >> i % 8 & 1 ? 2.0f : -2.0f));
    scalar->dequantize[EBB_TYPE_Q2_0](b, 64, v);
    for (int i = 0; i < 64; i++)
        assert_true(v[i] == 2.0f * (float)((b[2 + i / 4] >> i % 4 * 2 & 3) - 1));
}

/* A grid as a number: its points ascend as the format numbers them, so a wrong one shows. */
static uint64_t output_checksum(const void *grid, size_t bytes, size_t point)
{
    const uint8_t *b = grid;
    uint64_t h = UINT64_C(0xcbf29ce484222325);   /* FNV-1a */

    for (size_t i = 0; i < bytes; i++)
        h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    for (size_t at = point; at < bytes; at += point) {
        size_t i = point - 1;

        while (b[at + i] == b[at - point + i])
            i--;
        assert_true(b[at + i] > b[at - point + i]);
    }
    return h;
}

static void test_grids_are_those_of_the_format(void **state)
{
    (void)state;
    assert_true(output_checksum(ebb_grid.iq1, sizeof ebb_grid.iq1, 8) == UINT64_C(0xec28b6368f0c62e0));
    assert_true(output_checksum(ebb_grid.iq2_xxs, sizeof ebb_grid.iq2_xxs, 8) == UINT64_C(0xbb4ee025b5ac6e8e));
    assert_true(output_checksum(ebb_grid.iq2_xs, sizeof ebb_grid.iq2_xs, 8) == UINT64_C(0xc9b1ee61e79909bd));
    assert_true(output_checksum(ebb_grid.iq2_s, sizeof ebb_grid.iq2_s, 8) == UINT64_C(0x123edd38a3b62b90));
    assert_true(output_checksum(ebb_grid.iq3_xxs, sizeof ebb_grid.iq3_xxs, 4) == UINT64_C(0xdfa5dc83d6a155d5));
    assert_true(output_checksum(ebb_grid.iq3_s, sizeof ebb_grid.iq3_s, 4) == UINT64_C(0xfa37020c25b44829));
}

/* One group of each way to index, sign and scale; everything else is zero, d is 1. */
static void test_grid_blocks_decode_by_the_book(void **state)
{
    uint8_t b[110] = { [1] = 0x3c };
    float v[256];

    (void)state;
    b[2 + 8 * 5 + 1] = 7;                        /* IQ2_XXS: sub-block 5, point 1, signs 0000011, scale 9 */
    b[2 + 8 * 5 + 4] = 3 << 7 & 255, b[2 + 8 * 5 + 5] = 3 >> 1, b[2 + 8 * 5 + 7] = 9 << 4;
    scalar->dequantize[EBB_TYPE_IQ2_XXS](b, 256, v);
    for (int i = 0; i < 8; i++)
        assert_true(v[168 + i] == (i < 2 ? -1.0f : 1.0f) * 9.5f / 4 * (float)(ebb_grid.iq2_xxs[7] >> 8 * i & 255));
    assert_true(v[167] == 9.5f / 4 * 8 && v[0] == 1);

    memset(b + 2, 0, 108);                       /* IQ2_XS: point 300, one sign and the one that makes it two */
    b[2 + 2 * 3] = 300 & 255, b[3 + 2 * 3] = 300 >> 8 | 4 << 1, b[66] = 6 << 4;
    scalar->dequantize[EBB_TYPE_IQ2_XS](b, 256, v);
    for (int i = 0; i < 8; i++)
        assert_true(v[24 + i] ==
                    (i == 2 || i == 7 ? -1.0f : 1.0f) * 6.5f / 4 * (float)(ebb_grid.iq2_xs[300] >> 8 * i & 255));
    assert_true(v[0] == 1);

    memset(b + 2, 0, 108);                       /* IQ2_S: point 0x3a5 as the sixth, sign of element 7 alone */
    b[2 + 5] = 0xa5, b[66 + 1] = 3 << 2, b[34 + 5] = 0x80, b[74 + 1] = 15;
    scalar->dequantize[EBB_TYPE_IQ2_S](b, 256, v);
    for (int i = 0; i < 8; i++)
        assert_true(v[40 + i] == (i == 7 ? -1.0f : 1.0f) * 15.5f / 4 * (float)(ebb_grid.iq2_s[0x3a5] >> 8 * i & 255));

    memset(b + 2, 0, 108);                       /* IQ3_XXS: points 9 and 200 of sub-block 1 */
    b[2 + 8] = 9, b[2 + 9] = 200, b[66 + 4] = 0x10, b[66 + 7] = 3 << 4;
    scalar->dequantize[EBB_TYPE_IQ3_XXS](b, 256, v);
    for (int i = 0; i < 8; i++) {
        float point = (float)(ebb_grid.iq3_xxs[i < 4 ? 9 : 200] >> 8 * (i % 4) & 255);
        assert_true(v[32 + i] == (i == 4 || i == 7 ? -1.0f : 1.0f) * 3.5f / 2 * point);
    }

    memset(b + 2, 0, 108);                       /* IQ3_S: point 0x1c0 as the last */
    b[2 + 63] = 0xc0, b[66 + 7] = 0x80, b[74 + 31] = 0x20, b[106 + 3] = 11 << 4;
    scalar->dequantize[EBB_TYPE_IQ3_S](b, 256, v);
    for (int i = 0; i < 4; i++)
        assert_true(v[252 + i] == (i == 1 ? -1.0f : 1.0f) * 23 * (float)(ebb_grid.iq3_s[0x1c0] >> 8 * i & 255));

    memset(b + 2, 0, 108);                       /* IQ1_S: point 0x654 as the third of sub-block 7 */
    b[2 + 30] = 0x54, b[34 + 14] = 6 << 6 & 255, b[34 + 15] = 6 >> 2 | 0x80 | 5 << 4;
    scalar->dequantize[EBB_TYPE_IQ1_S](b, 256, v);
    for (int i = 0; i < 8; i++)
        assert_true(v[240 + i] == 11 * ((float)(ebb_grid.iq1[0x654] >> 8 * i & 255) - 1 - 0.125f));
    assert_true(v[0] == -0.875f);

    memset(b, 0, sizeof b);                      /* IQ1_M: d = 1 in four parts; point 0x2ff as the fourth, scale of the
                                                    second 16 */
    b[49 + 4] = 0xc0, b[49 + 6] = 0x30;
    b[3] = 0xff, b[32 + 1] = 0xa0, b[48] = 7 << 3;
    scalar->dequantize[EBB_TYPE_IQ1_M](b, 256, v);
    for (int i = 0; i < 8; i++)
        assert_true(v[24 + i] == 15 * ((float)(ebb_grid.iq1[0x2ff] >> 8 * i & 255) - 1 - 0.125f));
    assert_true(v[0] == -0.875f);
}

static void test_halves_round_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = ebb_f16_to_f32((uint16_t)h);

        if (!isnan(f))
            assert_int_equal(ebb_f32_to_f16(f), h);
        else
            assert_true((ebb_f32_to_f16(f) & 0x7fff) > 0x7c00);
    }
    assert_int_equal(ebb_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(ebb_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(ebb_f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(ebb_f32_to_f16(1.0f + 0x3p-11f), 0x3c02);
    assert_int_equal(ebb_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(ebb_f32_to_f16(0x1.8p-24f), 2);
    assert_int_equal(ebb_f32_to_f16(-0x1p-24f), 0x8001);
}

static double ulps(float got, double want)
{
    double ulp = ldexp(1, ilogb(want) < -126 ? -149 : ilogb(want) - 23);

    return fabs(got - want) / ulp;
}

static void test_bfloats_too_small_to_be_normal_are_zero(void **state)
{
    const uint16_t b[5] = { 0x3f80, 0x0080, 0x007f, 0x8001, 0x7f80 };
    const float want[5] = { 1, 0x1p-126f, 0, 0, INFINITY };
    float got[5];

    (void)state;
    scalar->dequantize[EBB_TYPE_BF16](b, 5, got);
    assert_memory_equal(got, want, sizeof want);
}

static void test_exp_and_tanh_are_within_two_ulp(void **state)
{
    double worst_exp = 0, worst_tanh = 0;

    (void)state;
    for (float x = -103; x < 88.7f; x += 0.00037f)
        worst_exp = fmax(worst_exp, ulps(ebb_exp(x), exp(x)));
    for (float x = -12; x < 12; x += 0.000041f)
        if (x != 0)
            worst_tanh = fmax(worst_tanh, ulps(ebb_tanh(x), tanh(x)));
    print_message("exp %.2f ulp, tanh %.2f ulp\n", worst_exp, worst_tanh);
    assert_true(worst_exp < 1.5);
    assert_true(worst_tanh < 2);
    assert_true(ebb_exp(0) == 1 && ebb_exp(-INFINITY) == 0 && ebb_exp(200) == INFINITY && isnan(ebb_exp(NAN)));
    assert_true(ebb_tanh(0) == 0 && ebb_tanh(100) == 1 && ebb_tanh(-100) == -1);
}

static void test_quantize_survives_strange_columns(void **state)
{
    float x[256] = { 0 };
    ebb_q8_256 o;

    (void)state;
    scalar->quantize[EBB_ACT_Q8_256](x, 256, &o);
    assert_true(o.d == 0 && o.q[0] == 0 && o.sum[0] == 0);
    x[3] = 0x1p-149f * 190;                      /* max / 127 has one bit: the quotient would be 190 */
    scalar->quantize[EBB_ACT_Q8_256](x, 256, &o);
    assert_int_equal(o.q[3], 127);
    x[7] = NAN;
    scalar->quantize[EBB_ACT_Q8_256](x, 256, &o);
    assert_true(isnan(o.d) && o.q[3] == 0);
    x[7] = -3e38f;
    x[8] = 1.5e38f;
    scalar->quantize[EBB_ACT_Q8_256](x, 256, &o);
    assert_true(o.q[7] == -127 && o.q[8] == 64 && o.sum[0] == -63 && o.sum32[0] == -63);    /* 63.5: to even */
}

static void test_norms_rope_softmax(void **state)
{
    float x[40], y[40], w[40], b[40], cs[8] = { 0, 1, 1, 0, 0.6f, 0.8f, 1, 0 };
    double sum = 0, squares = 0;

    (void)state;
    for (int i = 0; i < 40; i++) {
        x[i] = test_uniform(-3, 3);
        w[i] = test_uniform(0, 2);
        b[i] = test_uniform(-1, 1);
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    scalar->rmsnorm(y, x, w, 40, 1e-5f);
    for (int i = 0; i < 40; i++)
        assert_true(fabs(y[i] - x[i] / sqrt(squares / 40 + 1e-5) * w[i]) < 1e-5);
    scalar->layernorm(y, x, w, b, 40, 1e-5f);
    for (int i = 0; i < 40; i++)
        assert_true(fabs(y[i] - ((x[i] - sum / 40) / sqrt(squares / 40 - sum / 40 * sum / 40 + 1e-5) * w[i] + b[i])) <
                    1e-5);
    memcpy(y, x, sizeof x);
    scalar->softmax(y, 40);
    sum = 0;
    for (int i = 0; i < 40; i++)
        sum += exp(x[i]);
    for (int i = 0; i < 40; i++)
        assert_true(fabs(y[i] - exp(x[i]) / sum) < 1e-6);
    memcpy(y, x, sizeof x);
    scalar->rope_adjacent(y, cs, 8);
    assert_true(y[0] == -x[1] && y[1] == x[0] && y[2] == x[2] && y[8] == x[8]);
    assert_true(fabsf(y[4] - (0.6f * x[4] - 0.8f * x[5])) < 1e-6f && fabsf(y[5] - (0.8f * x[4] + 0.6f * x[5])) < 1e-6f);
    memcpy(y, x, sizeof x);
    scalar->rope_halves(y, cs, 8);
    assert_true(y[0] == -x[4] && y[4] == x[0] && y[1] == x[1] && y[8] == x[8]);
}

static void test_gates(void **state)
{
    (void)state;
    for (float g = -20; g < 20; g += 0.37f) {
        float y, up = 1.5f;
        double u = 0.7978845608 * (g + 0.044715 * pow(g, 3));

        scalar->silu_mul(&y, &g, &up, 1);
        assert_true(fabs(y - g / (1 + exp(-g)) * 1.5) < 1e-6 * (1 + fabs(g)));
        scalar->gelu_mul(&y, &g, &up, 1);
        assert_true(fabs(y - 0.5 * g * (1 + tanh(u)) * 1.5) < 3e-6 * (1 + fabs(g)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_agree_with_doubles),
        cmocka_unit_test(test_blocks_decode_by_the_book),
        cmocka_unit_test(test_ternary_blocks_decode_by_the_book),
        cmocka_unit_test(test_four_bit_floats_decode_by_the_book),
        cmocka_unit_test(test_four_bit_floats_with_float_scales_decode_by_the_book),
        cmocka_unit_test(test_one_and_two_bits_decode_by_the_book),
        cmocka_unit_test(test_grids_are_those_of_the_format),
        cmocka_unit_test(test_grid_blocks_decode_by_the_book),
        cmocka_unit_test(test_halves_round_to_even),
        cmocka_unit_test(test_bfloats_too_small_to_be_normal_are_zero),
        cmocka_unit_test(test_exp_and_tanh_are_within_two_ulp),
        cmocka_unit_test(test_quantize_survives_strange_columns),
        cmocka_unit_test(test_norms_rope_softmax),
        cmocka_unit_test(test_gates),
    };
    return cmocka_run_group_tests_name("scalar kernels", tests, setup, NULL);
}
