/* kernels/number.h - numbers that need care to be the same on every machine:
 * halves, bfloats, and exp and tanh out of fused multiply-adds alone, so that
 * scalar code and any SIMD code written alike give the same bits.  No
 * instruction set is assumed; where one has an instruction of the same meaning, it is used. */
#ifndef EBB_KERNELS_NUMBER_H
#define EBB_KERNELS_NUMBER_H
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

static inline uint32_t ebb_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float ebb_from_bits(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint16_t ebb_u16_load(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t ebb_u32_load(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* binary16, exact:  | sign 1 | exponent 5 (bias 15) | fraction 10 | */
#if defined(__F16C__)
static inline float ebb_f16_to_f32(uint16_t h)
{
    return _cvtsh_ss(h);
}
#elif defined(__aarch64__)
static inline float ebb_f16_to_f32(uint16_t h)
{
    __fp16 f;

    memcpy(&f, &h, sizeof f);
    return f;
}
#else
static inline float ebb_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 1023u;

    if (exponent == 31)
        return ebb_from_bits(sign | 0x7f800000u | (fraction ? 0x400000u | fraction << 13 : 0));
    if (exponent == 0)
        return ebb_from_bits(sign | ebb_bits((float)fraction * 0x1p-24f));
    return ebb_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}
#endif

/* To nearest, ties to even; beyond 65504: infinity. */
static inline uint16_t ebb_f32_to_f16(float f)
{
    uint32_t u = ebb_bits(f), sign = u >> 16 & 0x8000u, x = u & 0x7fffffffu;

    if (x > 0x7f800000u)                         /* not a number stays one */
        return (uint16_t)(sign | 0x7e00u | (x >> 13 & 1023u));
    if (x >= 0x477ff000u)                        /* 65520 */
        return (uint16_t)(sign | 0x7c00u);
    if (x < 0x38800000u)                         /* below 2^-14: at 0.5 the last bit is worth
                                                    2^-24 */
        return (uint16_t)(sign | (ebb_bits(ebb_from_bits(x) + 0.5f) - 0x3f000000u));
    x += 0xfffu + (x >> 13 & 1u);
    return (uint16_t)(sign | (x - 0x38000000u) >> 13);
}

static inline float ebb_f16_load(const void *p)  { return ebb_f16_to_f32(ebb_u16_load(p)); }

/* Below 2^-126 it is 0, as for the instructions that CPUs have for bfloats. */
static inline float ebb_bf16_load(const void *p)
{
    uint32_t b = ebb_u16_load(p);

    return ebb_from_bits(b & 0x7f80 ? b << 16 : 0);
}

/* e^x, error below 1.5 ulp; 0 below -104, infinity above 88.73.
 * x = n ln 2 + r, |r| <= ln 2 / 2 (ln 2 in two parts, the first exact for every n);
 * e^r by a polynomial of degree 7 (coefficients: Cephes, S. Moshier, expf); 2^n in two
 * factors, so that results below 2^-126 are rounded, not cut. */
static inline float ebb_exp_near(float x)        /* -105 <= x <= 89 */
{
    const float magic = 0x1.8p23f;               /* adding it rounds to an integer in the low
                                                    bits */

    float t = fmaf(x, 0x1.715476p+0f, magic), n = t - magic;
    int32_t i = (int32_t)(ebb_bits(t) - ebb_bits(magic)), half = i >> 1;
    float r = fmaf(n, -0x1.62e4p-1f, x);

    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = fmaf(r, 1.9875691500e-4f, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p * r, r, r) + 1.0f;
    p *= ebb_from_bits((uint32_t)(half + 127) << 23);
    return p * ebb_from_bits((uint32_t)(i - half + 127) << 23);
}

static inline float ebb_exp(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -105.0f ? -105.0f : x;
    return ebb_exp_near(x);
}

/* tanh x, error below 2 ulp: an odd polynomial up to 0.625, beyond it 1 - 2 / (e^2x + 1).
 * (Coefficients: Cephes, S. Moshier, tanhf.) */
static inline float ebb_tanh(float x)
{
    float z = x * x, a = fabsf(x);
    float p = fmaf(z, -5.70498872745e-3f, 2.06390887954e-2f);

    p = fmaf(p, z, -5.37397155531e-2f);
    p = fmaf(p, z, 1.33314422036e-1f);
    p = fmaf(p, z, -3.33332819422e-1f);
    p = fmaf(p * z, x, x);
    float big = copysignf(1.0f - 2.0f / (ebb_exp(a + a) + 1.0f), x);
    return a < 0.625f ? p : big;
}

#endif
