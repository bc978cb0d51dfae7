/* x86/avx2_rows.h - 8 rows at a time: their sums lie along their bytes and are then added
 * into one register with rows in lanes. */
#ifndef EBB_KERNELS_AVX2_ROWS_H
#define EBB_KERNELS_AVX2_ROWS_H
#include <immintrin.h>
#include <stdint.h>

#include "kernels/rows.h"
#include "kernels/number.h"
#include "kernels/x86/avx2_dot.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = 8 };

/* Few columns. */
typedef void ebb_gemv_fn(const ebb_matmul *a);
ebb_gemv_fn EBB_YMM(gemv_Q4_K), EBB_YMM(gemv_Q5_K), EBB_YMM(gemv_Q6_K), EBB_YMM(gemv_IQ4_XS),
    EBB_YMM(gemv_Q8_0), EBB_YMM(gemv_Q4_0), EBB_YMM(gemv_Q4_1), EBB_YMM(gemv_Q5_0),
    EBB_YMM(gemv_Q5_1), EBB_YMM(gemv_IQ4_NL), EBB_YMM(gemv_MXFP4), EBB_YMM(gemv_Q2_K),
    EBB_YMM(gemv_Q3_K), EBB_YMM(gemv_NVFP4), EBB_YMM(gemv_Q1_0), EBB_YMM(gemv_Q2_0),
    EBB_YMM(gemv_TQ1_0), EBB_YMM(gemv_TQ2_0), EBB_YMM(gemv_IQ1_S), EBB_YMM(gemv_IQ1_M),
    EBB_YMM(gemv_IQ2_XXS), EBB_YMM(gemv_IQ2_XS), EBB_YMM(gemv_IQ2_S), EBB_YMM(gemv_IQ3_XXS),
    EBB_YMM(gemv_IQ3_S);
/* Any n_cols (avx2_gemm_wide.c). */
ebb_gemv_fn ebb_avx2_gemm_Q8_0, ebb_avx2_gemm_IQ4_NL, ebb_avx2_gemm_IQ4_XS;

/* Lane i: the sum of the lanes of s[i]. */
INLINE __m256i sum8(const __m256i s[ROWS])
{
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));

    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* Lanes of rows that exist. */
INLINE __m256i row_mask(const ebb_matmul *a, size_t r)
{
    int n = a->n_rows - r < ROWS ? (int)(a->n_rows - r) : ROWS;

    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Word i of both 128-bit lanes, everywhere. */
INLINE __m256i spread_word(__m256i v, int i)
{
    return _mm256_shuffle_epi8(v, _mm256_set1_epi16((short)(0x0100 + 0x0202 * i)));
}

INLINE __m256i load_x(const ebb_q8_256 *x, int sub)
{
    return _mm256_loadu_si256((const void *)(x->q + 32 * sub));
}

/* All ones in byte i where bit i of `bits` is set; `bits` stands in every 4 bytes. */
INLINE __m256i byte_mask(__m256i bits)
{
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                            0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)UINT64_C(0x8040201008040201));

    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(bits, byte), bit), bit);
}

/* The half at `byte` of 8 rows. */
INLINE __m256 load_halves(const uint8_t *const w[ROWS], size_t byte)
{
    __m128i v = _mm_setzero_si128();

    v = _mm_insert_epi16(v, ebb_u16_load(w[0] + byte), 0);
    v = _mm_insert_epi16(v, ebb_u16_load(w[1] + byte), 1);
    v = _mm_insert_epi16(v, ebb_u16_load(w[2] + byte), 2);
    v = _mm_insert_epi16(v, ebb_u16_load(w[3] + byte), 3);
    v = _mm_insert_epi16(v, ebb_u16_load(w[4] + byte), 4);
    v = _mm_insert_epi16(v, ebb_u16_load(w[5] + byte), 5);
    v = _mm_insert_epi16(v, ebb_u16_load(w[6] + byte), 6);
    return _mm256_cvtph_ps(_mm_insert_epi16(v, ebb_u16_load(w[7] + byte), 7));
}

#endif
