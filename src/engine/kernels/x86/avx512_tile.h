/* x86/avx512_tile.h - weights unpacked for vpdpbusd: a tile is 32 rows of one
 * block, rows in lanes, so that a product needs no horizontal sum.
 *
 *   q[g][h]   64 bytes: of the rows 16h .. 16h + 15 in turn the elements 4g .. 4g + 3,
 *             as unsigned bytes (the type's offset added)
 *
 * Rows past the end of the matrix repeat its last row; their results are not stored. */
#ifndef EBB_KERNELS_AVX512_TILE_H
#define EBB_KERNELS_AVX512_TILE_H
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

enum { TILE_ROWS = 32, HALF_ROWS = 16 };

typedef struct ebb_tile32 {
    uint8_t q[8][2][64];
    float   d[2][16], m[2][16];
} ebb_tile32;

/* One scale for each 16 or each 32 elements, as the type says, as (int16, 0): what vpdpwssd
 * multiplies a sum by that fits 16 bits.  Minima as pairs of int16: for pairs of 32 elements (4 of
 * them) or of 16 (8). */
typedef struct ebb_tile256 {
    uint8_t q[64][2][64];
    int32_t scale[16][2][16], min[8][2][16];
    float   d[2][16], dmin[2][16];
} ebb_tile256;

/* The 16 rows of a half tile: block b of row i stands at base + offset[i] + b * block bytes. */
typedef struct ebb_half {
    const uint8_t *base;
    int32_t offset[HALF_ROWS];
} ebb_half;

typedef void ebb_unpack32_fn(const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h,
                             ebb_tile32 *out);
typedef void ebb_unpack256_fn(const ebb_half *rows, int h, ebb_tile256 *out);

ebb_unpack32_fn ebb_avx512_unpack_Q8_0, ebb_avx512_unpack_Q4_0, ebb_avx512_unpack_Q4_1,
    ebb_avx512_unpack_Q5_0, ebb_avx512_unpack_Q5_1, ebb_avx512_unpack_IQ4_NL,
    ebb_avx512_unpack_MXFP4;
ebb_unpack256_fn ebb_avx512_unpack_Q4_K, ebb_avx512_unpack_Q5_K, ebb_avx512_unpack_Q6_K,
    ebb_avx512_unpack_Q2_K, ebb_avx512_unpack_Q3_K, ebb_avx512_unpack_IQ4_XS,
    ebb_avx512_unpack_TQ1_0, ebb_avx512_unpack_TQ2_0, ebb_avx512_unpack_IQ1_S,
    ebb_avx512_unpack_IQ1_M, ebb_avx512_unpack_IQ2_XXS, ebb_avx512_unpack_IQ2_XS,
    ebb_avx512_unpack_IQ2_S, ebb_avx512_unpack_IQ3_XXS, ebb_avx512_unpack_IQ3_S;

/* Rows r0 .. r0 + 15 of a, the last row repeated. */
static inline void ebb_half_rows(const ebb_matmul *a, size_t r0, size_t byte, ebb_half *h)
{
    size_t first = r0 < a->n_rows ? r0 : a->n_rows - 1;

    h->base = (const uint8_t *)a->w + first * a->row_bytes + byte;
    for (size_t i = 0; i < HALF_ROWS; i++) {
        size_t r = r0 + i < a->n_rows ? r0 + i : a->n_rows - 1;
        h->offset[i] = (int32_t)((r - first) * a->row_bytes);
    }
}

/* Which of 16 rows from r0 exist. */
static inline __mmask16 ebb_row_mask(size_t n_rows, size_t r0)
{
    size_t n = r0 < n_rows ? n_rows - r0 : 0;

    return (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1);
}

static inline __m512i ebb_half_gather(const ebb_half *h, size_t byte)
{
    return _mm512_i32gather_epi32(_mm512_loadu_si512(h->offset), h->base + byte, 1);
}

/* 16 halves in the low 16 bits of each lane. */
static inline __m512 ebb_lanes_f16(__m512i v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

/* 16 x 16 words: t[i] lane j becomes t[j] lane i. */
static inline __attribute__((always_inline)) void ebb_transpose16(__m512i t[16])
{
    __m512i u[16];

#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_unpacklo_epi32(t[i], t[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {            /* t[i + j]: word 4 lane + j of the rows i .. i +
                                                    3 */
        t[i] = _mm512_unpacklo_epi64(u[i], u[i + 2]);
        t[i + 1] = _mm512_unpackhi_epi64(u[i], u[i + 2]);
        t[i + 2] = _mm512_unpacklo_epi64(u[i + 1], u[i + 3]);
        t[i + 3] = _mm512_unpackhi_epi64(u[i + 1], u[i + 3]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        u[j] = _mm512_shuffle_i32x4(t[j], t[4 + j], 0x88);           /* lanes 0 2 of both */
        u[4 + j] = _mm512_shuffle_i32x4(t[j], t[4 + j], 0xdd);       /* lanes 1 3 */
        u[8 + j] = _mm512_shuffle_i32x4(t[8 + j], t[12 + j], 0x88);
        u[12 + j] = _mm512_shuffle_i32x4(t[8 + j], t[12 + j], 0xdd);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(u[j], u[8 + j], 0x88);
        t[4 + j] = _mm512_shuffle_i32x4(u[4 + j], u[12 + j], 0x88);
        t[8 + j] = _mm512_shuffle_i32x4(u[j], u[8 + j], 0xdd);
        t[12 + j] = _mm512_shuffle_i32x4(u[4 + j], u[12 + j], 0xdd);
    }
}

#endif
