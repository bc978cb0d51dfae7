/* kernels/float_body.h - the kernels that are one loop over floats, written
 * once and compiled for every instruction set: scalar.c and the float files of x86/ and arm/
 * include this file, the compiler makes vectors of the loops, and since every
 * operation is an IEEE one in a fixed order (-ffp-contract=off, fmaf where a
 * fused operation is meant) all of them give the same bits. */
#ifndef EBB_KERNELS_FLOAT_BODY_H
#define EBB_KERNELS_FLOAT_BODY_H
#include "kernels/isa_name.h"
#include "kernels/kernels.h"
#include "kernels/number.h"
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

enum { LANES = 16 };             /* partial sums of rule K3 */

/* i and i + 8, i + 4, i + 2, i + 1. */
static inline float lanes_sum(float s[LANES])
{
    for (int step = LANES / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            s[i] += s[i + step];
    return s[0];
}

/* The last n % 16 elements, padded with zeroes; also when there is none. */
static inline void tail_load(float out[LANES], const float *x, size_t n)
{
    for (int i = 0; i < LANES; i++)
        out[i] = 0;
    for (size_t i = 0; i < n; i++)
        out[i] = x[i];
}

static float ISA_NAME(dot)(const float *a, const float *b, size_t n)
{
    float s[LANES] = { 0 }, ta[LANES], tb[LANES];
    size_t whole = n / LANES * LANES;

    for (size_t k = 0; k < whole; k += LANES)
        for (int i = 0; i < LANES; i++)
            s[i] = fmaf(a[k + i], b[k + i], s[i]);
    if (whole < n) {
        tail_load(ta, a + whole, n - whole);
        tail_load(tb, b + whole, n - whole);
        for (int i = 0; i < LANES; i++)
            s[i] = fmaf(ta[i], tb[i], s[i]);
    }
    return lanes_sum(s);
}

static float ISA_NAME(sum)(const float *x, size_t n)
{
    float s[LANES] = { 0 }, t[LANES];
    size_t whole = n / LANES * LANES;

    for (size_t k = 0; k < whole; k += LANES)
        for (int i = 0; i < LANES; i++)
            s[i] += x[k + i];
    if (whole < n) {
        tail_load(t, x + whole, n - whole);
        for (int i = 0; i < LANES; i++)
            s[i] += t[i];
    }
    return lanes_sum(s);
}

static void ISA_NAME(rmsnorm)(float *y, const float *x, const float *w, size_t n, float eps)
{
    float r = 1.0f / sqrtf(ISA_NAME(dot)(x, x, n) / (float)n + eps);

    if (w)
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * r * w[i];
    else
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * r;
}

static void ISA_NAME(layernorm)(float *y, const float *x, const float *w, const float *b, size_t n,
                                float eps)
{
    float mean = ISA_NAME(sum)(x, n) / (float)n;

    for (size_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
    float r = 1.0f / sqrtf(ISA_NAME(dot)(y, y, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] *= r;
    if (w)
        for (size_t i = 0; i < n; i++)
            y[i] *= w[i];
    if (b)
        for (size_t i = 0; i < n; i++)
            y[i] += b[i];
}

static void ISA_NAME(add)(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void ISA_NAME(scale)(float *y, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= s;
}

static void ISA_NAME(axpy)(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(a, x[i], y[i]);
}

static void ISA_NAME(silu_mul)(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = gate[i] / (1.0f + ebb_exp(-gate[i])) * up[i];
}

/* gelu(x) = x / 2 (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
 * (Hendrycks & Gimpel 2016). */
static void ISA_NAME(gelu_mul)(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = gate[i], u = 0.7978845608f * fmaf(0.044715f * x * x, x, x);

        y[i] = x / (1.0f + ebb_exp(-(u + u))) * up[i];
    }
}

static float float_max(const float *x, size_t n)
{
    float m = -INFINITY;

    for (size_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

static void ISA_NAME(softmax)(float *x, size_t n)
{
    float m = float_max(x, n);

    for (size_t i = 0; i < n; i++)
        x[i] = ebb_exp(x[i] - m);
    ISA_NAME(scale)(x, 1.0f / ISA_NAME(sum)(x, n), n);
}

static void ISA_NAME(rope_adjacent)(float *x, const float *cos_sin, size_t n_rot)
{
    for (size_t i = 0; i < n_rot; i += 2) {
        float c = cos_sin[i], s = cos_sin[i + 1], a = x[i], b = x[i + 1];

        x[i] = fmaf(a, c, -(b * s));
        x[i + 1] = fmaf(a, s, b * c);
    }
}

static void ISA_NAME(rope_halves)(float *x, const float *cos_sin, size_t n_rot)
{
    size_t half = n_rot / 2;

    for (size_t i = 0; i < half; i++) {
        float c = cos_sin[2 * i], s = cos_sin[2 * i + 1], a = x[i], b = x[half + i];

        x[i] = fmaf(a, c, -(b * s));
        x[half + i] = fmaf(a, s, b * c);
    }
}

/* The parts in order; an empty one (l = 0) counts for nothing. */
static void ISA_NAME(attend_merge)(float *out, const float *parts, size_t n_seg, size_t stride,
                                  size_t dim_v, const float *sink)
{
    float m = sink ? *sink : -INFINITY, l = 0;

    for (size_t s = 0; s < n_seg; s++)
        if (parts[s * stride + 1] > 0)
            m = parts[s * stride] > m ? parts[s * stride] : m;
    for (size_t i = 0; i < dim_v; i++)
        out[i] = 0;
    for (size_t s = 0; s < n_seg; s++) {
        const float *part = parts + s * stride;

        if (!(part[1] > 0))
            continue;
        float e = ebb_exp(part[0] - m);
        l = fmaf(part[1], e, l);
        ISA_NAME(axpy)(out, e, part + 2, dim_v);
    }
    if (sink)
        l += ebb_exp(*sink - m);
    ISA_NAME(scale)(out, 1.0f / l, dim_v);
}

/* max |x| as bits, so that an infinity or a NaN is seen and no order matters. */
static inline uint32_t float_max_bits(const float *x, size_t n)
{
    uint32_t m = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t u = ebb_bits(x[i]) & 0x7fffffffu;

        m = u > m ? u : m;
    }
    return m;
}

/* The nearest integer, to even, of |v| < 2^22. */
static inline int8_t nearest(float v)
{
    const float magic = 0x1.8p23f;

    return (int8_t)(ebb_bits(v + magic) - ebb_bits(magic));
}

/* The same where 1 / d overflows; beyond 127 only where d has few bits left. */
static inline void tiny_to_int8(const float *x, size_t n, float d, int8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        float v = x[i] / d;

        v = v > 127.0f ? 127.0f : v;
        q[i] = nearest(v < -127.0f ? -127.0f : v);
    }
}

/* n values to int8 and their scale.  A block that holds an infinity or a NaN gets the scale NaN. */
static inline float float_to_int8(const float *x, size_t n, int8_t *q)
{
    uint32_t max = float_max_bits(x, n);
    float d = ebb_from_bits(max) / 127.0f, inverse;

    if (max >= 0x7f800000u || !(d > 0)) {
        memset(q, 0, n);
        return max >= 0x7f800000u ? NAN : 0;
    }
    if (d < 0x1p-126f) {
        tiny_to_int8(x, n, d, q);
        return d;
    }
    inverse = 1.0f / d;
    for (size_t i = 0; i < n; i++)
        q[i] = nearest(x[i] * inverse);
    return d;
}

static void ISA_NAME(quantize_f32)(const float *x, size_t n_k, void *out)
{
    memcpy(out, x, n_k * sizeof *x);
}

static void ISA_NAME(quantize_q8_32)(const float *x, size_t n_k, void *out)
{
    ebb_q8_32 *o = out;

    for (size_t b = 0; b < n_k / 32; b++, o++) {
        o->d = float_to_int8(x + 32 * b, 32, o->q);
        o->sum = 0;
        for (int i = 0; i < 32; i++)
            o->sum += o->q[i];
    }
}

/* Of each 16 of 256 int8 the sum and the sum of what they are without a sign.  (The forms compute
 * the same.) */
#if defined(__AVX2__)
static inline int both_eights(__m128i v)
{
    return _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_unpackhi_epi64(v, v)));
}

static inline void sums_of_16(const int8_t *q, int sum[16], int size[16])
{
    for (int j = 0; j < 16; j += 2) {            /* unsigned sums of eights: of q + 128 and of
                                                    |q| */
        __m256i v = _mm256_loadu_si256((const void *)(q + 16 * j)), zero = _mm256_setzero_si256();
        __m256i a = _mm256_sad_epu8(_mm256_xor_si256(v, _mm256_set1_epi8(-128)), zero),
                b = _mm256_sad_epu8(_mm256_abs_epi8(v), zero);

        sum[j] = both_eights(_mm256_castsi256_si128(a)) - 16 * 128;
        sum[j + 1] = both_eights(_mm256_extracti128_si256(a, 1)) - 16 * 128;
        size[j] = both_eights(_mm256_castsi256_si128(b));
        size[j + 1] = both_eights(_mm256_extracti128_si256(b, 1));
    }
}
#elif defined(__ARM_FEATURE_DOTPROD)
static inline void sums_of_16(const int8_t *q, int sum[16], int size[16])
{
    for (int j = 0; j < 16; j++) {
        int8x16_t v = vld1q_s8(q + 16 * j);

        sum[j] = vaddlvq_s8(v);
        size[j] = vaddlvq_u8(vreinterpretq_u8_s8(vabsq_s8(v)));
    }
}
#else
static inline void sums_of_16(const int8_t *q, int sum[16], int size[16])
{
    for (int j = 0; j < 16; j++) {
        sum[j] = size[j] = 0;
        for (int i = 0; i < 16; i++) {
            int v = q[16 * j + i];

            sum[j] += v;
            size[j] += v < 0 ? -v : v;
        }
    }
}
#endif

/* The sums of 256 int8. */
static inline void q8_256_sums(ebb_q8_256 *o)
{
    int sum[16], size[16], peak = 0, side = 0;

    sums_of_16(o->q, sum, size);
    for (int j = 0; j < 16; j++) {
        o->sum[j] = (int16_t)sum[j];
        peak = size[j] > peak ? size[j] : peak;
    }
    for (int j = 0; j < 16; j += 2) {            /* twice the larger side is |sum| more than both
                                                    together */
        int total = sum[j] + sum[j + 1],
            both = size[j] + size[j + 1] + (total < 0 ? -total : total);

        o->sum32[j / 2] = (int16_t)total;
        side = both > side ? both : side;
    }
    memset(o->unused, 0, sizeof o->unused);
    o->peak = (uint16_t)peak;
    o->side = (uint16_t)(side / 2);
}

static void ISA_NAME(quantize_q8_256)(const float *x, size_t n_k, void *out)
{
    ebb_q8_256 *o = out;

    for (size_t b = 0; b < n_k / 256; b++, o++) {
        o->d = float_to_int8(x + 256 * b, 256, o->q);
        q8_256_sums(o);
    }
}

static inline void float_body_fill(ebb_kernels *k)
{
    k->quantize[EBB_ACT_F32] = ISA_NAME(quantize_f32);
    k->quantize[EBB_ACT_Q8_32] = ISA_NAME(quantize_q8_32);
    k->quantize[EBB_ACT_Q8_256] = ISA_NAME(quantize_q8_256);
    k->rmsnorm = ISA_NAME(rmsnorm);
    k->layernorm = ISA_NAME(layernorm);
    k->add = ISA_NAME(add);
    k->scale = ISA_NAME(scale);
    k->silu_mul = ISA_NAME(silu_mul);
    k->gelu_mul = ISA_NAME(gelu_mul);
    k->dot = ISA_NAME(dot);
    k->axpy = ISA_NAME(axpy);
    k->softmax = ISA_NAME(softmax);
    k->rope_adjacent = ISA_NAME(rope_adjacent);
    k->rope_halves = ISA_NAME(rope_halves);
    k->attend_merge = ISA_NAME(attend_merge);
}

#endif
