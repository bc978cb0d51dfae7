/* x86/v16_avx512.h - the 16 partial sums of rule K3 in one register. */
#ifndef EBB_KERNELS_V16_AVX512_H
#define EBB_KERNELS_V16_AVX512_H
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/number.h"

#define V16_INLINE static inline __attribute__((always_inline))
#define V16_FEW 8                /* queries that use a row as it is converted */
/* Rows by columns of a product; of attention queries by keys (or vectors of values), and keys or
 * vectors of one query. */
enum { V16_ROWS = 4, V16_COLS = 6, V16_SIDE = 4, V16_KEYS = V16_SIDE * V16_SIDE, V16_VALUES = 8 };

typedef __m512 v16;

V16_INLINE v16  v16_zero(void)                 { return _mm512_setzero_ps(); }
V16_INLINE v16  v16_set(float f)               { return _mm512_set1_ps(f); }
V16_INLINE v16  v16_load(const float *p)       { return _mm512_loadu_ps(p); }
V16_INLINE void v16_store(float *p, v16 v)     { _mm512_storeu_ps(p, v); }
V16_INLINE v16  v16_add(v16 a, v16 b)          { return _mm512_add_ps(a, b); }
V16_INLINE v16  v16_mul(v16 a, v16 b)          { return _mm512_mul_ps(a, b); }
/* a > b ? a : b */
V16_INLINE v16  v16_max(v16 a, v16 b)          { return _mm512_max_ps(a, b); }
V16_INLINE v16  v16_fma(v16 a, v16 b, v16 c)   { return _mm512_fmadd_ps(a, b, c); }

V16_INLINE v16 v16_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

/* Of the first half at p; 8 bytes are read, as that needs no shuffle. */
V16_INLINE v16 v16_set_f16(const void *p)
{
    return _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_loadl_epi64(p)));
}

/* Lane i: that of i ^ step, which is 8, 4, 2 or 1. */
V16_INLINE v16 v16_swap(v16 v, const int step)
{
    return step == 8 ? _mm512_shuffle_f32x4(v, v, 0x4e)
         : step == 4 ? _mm512_shuffle_f32x4(v, v, 0xb1)
         : step == 2 ? _mm512_permute_ps(v, 0x4e)
                     : _mm512_permute_ps(v, 0xb1);
}

/* e^x for x <= 0: ebb_exp, whose power of two is one instruction here. */
#define V16_EXP 1
V16_INLINE v16 v16_exp(v16 x)
{
    const v16 magic = v16_set(0x1.8p23f);

    x = v16_max(v16_set(-105.0f), x);
    v16 n = _mm512_sub_ps(v16_fma(x, v16_set(0x1.715476p+0f), magic), magic);
    v16 r = v16_fma(n, v16_set(-0x1.7f7d1cp-20f), v16_fma(n, v16_set(-0x1.62e4p-1f), x));
    v16 p = v16_fma(r, v16_set(1.9875691500e-4f), v16_set(1.3981999507e-3f));

    p = v16_fma(p, r, v16_set(8.3334519073e-3f));
    p = v16_fma(p, r, v16_set(4.1665795894e-2f));
    p = v16_fma(p, r, v16_set(1.6666665459e-1f));
    p = v16_fma(p, r, v16_set(5.0000001201e-1f));
    p = v16_add(v16_fma(v16_mul(p, r), r, r), v16_set(1.0f));
    return _mm512_scalef_ps(p, n);
}

/* 8 floats as halves, to nearest even. */
V16_INLINE void v16_store_8_halves(void *out, const float *x)
{
    _mm_storeu_si128(out, _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}

/* As ebb_bf16_load: a product with a number too small to be normal would take a hundred cycles. */
V16_INLINE v16 v16_load_bf16(const void *p)
{
    __m256i v = _mm256_loadu_si256((const void *)p);
    __mmask16 is_normal = _mm256_test_epi16_mask(v, _mm256_set1_epi16(0x7f80));

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_maskz_cvtepu16_epi32(is_normal, v), 16));
}

/* 16 bytes as integers. */
V16_INLINE v16 v16_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}

/* d times the low or high nibbles of 16 bytes, less 8: looked up, as only the low four bits of an
 * index count. */
V16_INLINE v16 v16_scaled_nibbles(const void *p, v16 d, const bool is_high)
{
    const v16 less_8 = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6,
                                      7);
    __m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));

    return _mm512_permutexvar_ps(is_high ? _mm512_srli_epi32(b, 4) : b, _mm512_mul_ps(d, less_8));
}

/* The largest, of numbers. */
V16_INLINE float v16_most(v16 v)
{
    return _mm512_reduce_max_ps(v);
}

V16_INLINE float v16_sum(v16 v)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* out[j] = the sum of s[j], all 16 at once; destroys s. */
V16_INLINE void v16_sum_keys(v16 s[V16_KEYS], float *out)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {                /* i + 8: rows i and i + 8 in one register */
        v16 a = s[i], b = s[i + 8];
        s[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {                /* i + 4: 128-bit lanes of rows i, i + 8, i + 4, i
                                                    + 12 */
        v16 a = s[i], b = s[i + 4];
        s[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {                /* i + 2: in each lane two places of row + 0, two
                                                    of row + 2 */
        __m512d a = _mm512_castps_pd(s[i]), b = _mm512_castps_pd(s[i + 2]);
        s[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    v16 r = _mm512_add_ps(_mm512_shuffle_ps(s[0], s[1], 0x88), _mm512_shuffle_ps(s[0], s[1], 0xdd));
    /* lane l, place p: row { 0 8 4 12 }[l] + { 0 2 1 3 }[p] */
    const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);

    _mm512_storeu_ps(out, _mm512_permutexvar_ps(order, r));
}

#endif
