/* x86/avx2_tile.h - tiles of 16 rows for AVX2, rows in lanes: the rows' blocks as the decoders of
 * kernels/quant_blocks.h leave them, transposed. */
#ifndef EBB_KERNELS_AVX2_TILE_H
#define EBB_KERNELS_AVX2_TILE_H
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx2_rows.h"
#include "kernels/gemm.h"

enum { TILE_ROWS = 2 * ROWS, SLAB = GEMM_TILES * TILE_ROWS, PANEL_32 = 8 };

/* 32 bytes each of 8 rows, the first at `from`: 4 bytes of every row in turn. */
INLINE void load_transposed(const void *from, size_t row_bytes, __m256i t[ROWS])
{
    __m256i u[ROWS];

#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i += 2) {
        const char *p = (const char *)from + (size_t)i * row_bytes;
        __m256i a = _mm256_loadu_si256((const void *)p),
                b = _mm256_loadu_si256((const void *)(p + row_bytes));

        u[i] = _mm256_unpacklo_epi32(a, b);      /* of each 16 bytes words 0 and 1 ... */
        u[i + 1] = _mm256_unpackhi_epi32(a, b);  /* ... 2 and 3 */
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m256i a = _mm256_unpacklo_epi64(u[i], u[2 + i]),
                b = _mm256_unpacklo_epi64(u[4 + i], u[6 + i]);
        __m256i c = _mm256_unpackhi_epi64(u[i], u[2 + i]),
                d = _mm256_unpackhi_epi64(u[4 + i], u[6 + i]);

        t[2 * i] = _mm256_permute2x128_si256(a, b, 0x20);
        t[2 * i + 4] = _mm256_permute2x128_si256(a, b, 0x31);
        t[2 * i + 1] = _mm256_permute2x128_si256(c, d, 0x20);
        t[2 * i + 5] = _mm256_permute2x128_si256(c, d, 0x31);
    }
}

/* acc = fmaf(d * dx, sum, acc) */
INLINE __m256 step(const float d[ROWS], __m256 dx, __m256i sum, __m256 acc)
{
    return _mm256_fmadd_ps(_mm256_mul_ps(_mm256_load_ps(d), dx), _mm256_cvtepi32_ps(sum), acc);
}

#endif
