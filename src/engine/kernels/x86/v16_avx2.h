/* x86/v16_avx2.h - the 16 partial sums of rule K3 in two registers. */
#ifndef EBB_KERNELS_V16_AVX2_H
#define EBB_KERNELS_V16_AVX2_H
#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/number.h"

#define V16_INLINE static inline __attribute__((always_inline))
#define V16_FEW 4                /* queries that use a row as it is converted */
/* Rows by columns of a product; of attention queries by keys (or vectors of values), and keys or
 * vectors of one query. */
enum { V16_ROWS = 2, V16_COLS = 3, V16_SIDE = 2, V16_KEYS = V16_SIDE * V16_SIDE, V16_VALUES = 4 };

typedef struct v16 {
    __m256 a, b;                 /* elements 0..7 and 8..15 */
} v16;

V16_INLINE v16 v16_zero(void)
{
    return (v16){ _mm256_setzero_ps(), _mm256_setzero_ps() };
}

V16_INLINE v16 v16_set(float f)
{
    return (v16){ _mm256_set1_ps(f), _mm256_set1_ps(f) };
}

V16_INLINE v16 v16_load(const float *p)
{
    return (v16){ _mm256_loadu_ps(p), _mm256_loadu_ps(p + 8) };
}

V16_INLINE void v16_store(float *p, v16 v)
{
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}

V16_INLINE v16 v16_add(v16 x, v16 y)
{
    return (v16){ _mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b) };
}

V16_INLINE v16 v16_mul(v16 x, v16 y)
{
    return (v16){ _mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b) };
}

/* x > y ? x : y */
V16_INLINE v16 v16_max(v16 x, v16 y)
{
    return (v16){ _mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b) };
}

V16_INLINE v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){ _mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b) };
}

V16_INLINE v16 v16_load_f16(const void *p)
{
    return (v16){ _mm256_cvtph_ps(_mm_loadu_si128(p)),
                  _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p + 1)) };
}

/* Of the first half at p; 8 bytes are read, as that needs no shuffle. */
V16_INLINE v16 v16_set_f16(const void *p)
{
    __m256 d = _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_loadl_epi64(p)));

    return (v16){ d, d };
}

V16_INLINE __m256 v16_swap_8(__m256 v, const int step)
{
    return step == 4 ? _mm256_permute2f128_ps(v, v, 1)
         : step == 2 ? _mm256_permute_ps(v, 0x4e)
                     : _mm256_permute_ps(v, 0xb1);
}

/* Lane i: that of i ^ step, which is 8, 4, 2 or 1. */
V16_INLINE v16 v16_swap(v16 v, const int step)
{
    return step == 8 ? (v16){ v.b, v.a } : (v16){ v16_swap_8(v.a, step), v16_swap_8(v.b, step) };
}

/* 8 floats as halves, to nearest even. */
V16_INLINE void v16_store_8_halves(void *out, const float *x)
{
    _mm_storeu_si128(out, _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT));
}

/* As ebb_bf16_load: a product with a number too small to be normal would take a hundred cycles. */
V16_INLINE v16 v16_load_bf16(const void *p)
{
    __m256i v = _mm256_loadu_si256(p), zero = _mm256_setzero_si256();
    __m256i is_small = _mm256_cmpeq_epi16(_mm256_and_si256(v, _mm256_set1_epi16(0x7f80)), zero);

    /* what is unpacked below then stands in order */
    v = _mm256_permute4x64_epi64(_mm256_andnot_si256(is_small, v), 0xd8);
    return (v16){ _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, v)),
                  _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, v)) };
}

/* 16 bytes as integers. */
V16_INLINE v16 v16_load_i8(const int8_t *p)
{
    return (
        v16){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p))),
              _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(p + 8)))) };
}

/* d times the low or high nibbles of 16 bytes, less 8. */
V16_INLINE v16 v16_scaled_nibbles(const void *p, v16 d, const bool is_high)
{
    __m128i b = _mm_loadu_si128(p);

    b = _mm_sub_epi8(_mm_and_si128(is_high ? _mm_srli_epi16(b, 4) : b, _mm_set1_epi8(15)),
                     _mm_set1_epi8(8));
    return v16_mul(d, (v16){ _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)),
                             _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(b, b))) });
}

/* The largest, of numbers. */
V16_INLINE float v16_most(v16 v)
{
    __m256 a = _mm256_max_ps(v.a, v.b);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

V16_INLINE float v16_sum(v16 v)
{
    __m256 a = _mm256_add_ps(v.a, v.b);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* out[j] = the sum of s[j]; destroys s. */
V16_INLINE void v16_sum_keys(v16 s[V16_KEYS], float *out)
{
    __m128 t[V16_KEYS];

#pragma GCC unroll 4
    for (int i = 0; i < V16_KEYS; i++) {
        __m256 a = _mm256_add_ps(s[i].a, s[i].b);
        t[i] = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    }
    _MM_TRANSPOSE4_PS(t[0], t[1], t[2], t[3]);   /* i + 2, then i + 1 */
    _mm_storeu_ps(out, _mm_add_ps(_mm_add_ps(t[0], t[2]), _mm_add_ps(t[1], t[3])));
}

#endif
