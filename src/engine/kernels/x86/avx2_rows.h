/* x86/avx2_rows.h - 8 rows at a time: their sums lie along their bytes and are then added
 * into one register with rows in lanes. */
#ifndef EBB_KERNELS_AVX2_ROWS_H
#define EBB_KERNELS_AVX2_ROWS_H
#include <immintrin.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define INLINE static inline __attribute__((always_inline))

enum { ROWS = 8, GEMV_COLS = 2 };                /* beyond, decoding once for all columns pays */

/* n_cols at most GEMV_COLS. */
typedef void ebb_gemv_fn(const ebb_matmul *a);
ebb_gemv_fn ebb_avx2_gemv_Q4_K, ebb_avx2_gemv_Q5_K, ebb_avx2_gemv_Q6_K, ebb_avx2_gemv_IQ4_XS, ebb_avx2_gemv_Q4_0, ebb_avx2_gemv_IQ4_NL,
            ebb_avx2_gemv_MXFP4;
/* Any n_cols (avx2_gemm_wide.c). */
ebb_gemv_fn ebb_avx2_gemm_Q8_0, ebb_avx2_gemm_IQ4_NL, ebb_avx2_gemm_IQ4_XS;

/* Lane i: the sum of the lanes of s[i]. */
INLINE __m256i sum8(const __m256i s[ROWS])
{
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));

    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

/* Lanes of rows that exist. */
INLINE __m256i row_mask(const ebb_matmul *a, size_t r)
{
    int n = a->n_rows - r < ROWS ? (int)(a->n_rows - r) : ROWS;

    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE const uint8_t *row_at(const ebb_matmul *a, size_t r)
{
    return (const uint8_t *)a->w + (r < a->n_rows ? r : a->n_rows - 1) * a->row_bytes;
}

INLINE const void *column(const ebb_matmul *a, size_t c)
{
    return (const char *)a->x + c * a->x_col_bytes;
}

#endif
