/* x86/avx2_few.h - blocks of 256 times few columns, 8 rows at a time: a block of a row is decoded
 * once and multiplied by the blocks of up to 4 columns. */
#ifndef EBB_KERNELS_AVX2_FEW_H
#define EBB_KERNELS_AVX2_FEW_H
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx2_rows.h"

enum { FEW_COLS = 4 };

typedef const ebb_q8_256 *const few_x[FEW_COLS];

/* sum[c]: the products with column c, all lanes together; min_sum likewise, of a type that has
 * minima. */
typedef void few_row(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS],
                     __m256i min_sum[FEW_COLS]);
/* d of 8 blocks at w[i] + at. */
typedef __m256 few_scales(const uint8_t *const w[ROWS], size_t at);

typedef struct few_kind {
    size_t      bytes;
    float       unit;            /* of d */
    few_row    *row;
    few_scales *d, *dmin;        /* dmin NULL: no minima */
} few_kind;

/* 16 words in the order 0 2 4 .. 14, 1 3 5 .. 15: those of 32 elements in both 128-bit lanes. */
INLINE __m256i even_odd(__m256i words)
{
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));

    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(words, order), 0xd8);
}

/* sum of f_j * (sum of 16 elements j). */
INLINE __m256i dot_sums(__m256i f, const ebb_q8_256 *x)
{
    return _mm256_madd_epi16(f, _mm256_loadu_si256((const void *)x->sum));
}

INLINE void few_rows8(const ebb_matmul *a, size_t r, size_t c0, const int n, const few_kind *k)
{
    size_t to_next = r + 2 * ROWS <= a->n_rows && c0 == 0 ? ROWS * a->row_bytes : 0;
    const ebb_q8_256 *x[FEW_COLS] = { NULL };
    const uint8_t *w[ROWS];
    __m256 acc[FEW_COLS];

    for (int i = 0; i < ROWS; i++)
        w[i] = row_at(a, r + (size_t)i);
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        x[c] = column(a, c0 + (size_t)c);
        acc[c] = _mm256_setzero_ps();
    }
    for (size_t at = 0; at < a->n_k / 256 * k->bytes; at += k->bytes) {
        __m256i s[FEW_COLS][ROWS], m[FEW_COLS][ROWS], sum[FEW_COLS], min_sum[FEW_COLS];

#pragma GCC unroll 1
        for (int i = 0; i < ROWS; i++) {
            for (size_t line = 0; to_next && line < k->bytes; line += 64)
                _mm_prefetch((const char *)w[i] + to_next + at + line, _MM_HINT_T1);
            k->row(w[i] + at, x, n, sum, min_sum);
#pragma GCC unroll 4
            for (int c = 0; c < n; c++) {
                s[c][i] = sum[c];
                if (k->dmin)
                    m[c][i] = min_sum[c];
            }
        }
        __m256 d = k->d(w, at);
        if (k->unit != 1)
            d = _mm256_mul_ps(d, _mm256_set1_ps(k->unit));
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
            __m256 dx = _mm256_set1_ps(x[c]++->d);

            __m256 total = _mm256_cvtepi32_ps(sum8(s[c]));

            if (k->dmin) {
                total = _mm256_fnmadd_ps(k->dmin(w, at), _mm256_cvtepi32_ps(sum8(m[c])),
                                         _mm256_mul_ps(d, total));
                acc[c] = _mm256_fmadd_ps(dx, total, acc[c]);
            } else {
                acc[c] = _mm256_fmadd_ps(_mm256_mul_ps(d, dx), total, acc[c]);
            }
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        _mm256_maskstore_ps(a->y + (c0 + (size_t)c) * a->y_stride + r, row_mask(a, r), acc[c]);
}

INLINE void few_all(const ebb_matmul *a, const few_kind *k)
{
    for (size_t r = 0; r < a->n_rows; r += ROWS)
        for (size_t c = 0; c < a->n_cols; c += FEW_COLS)
            switch (a->n_cols - c) {
            case 1:  few_rows8(a, r, c, 1, k); break;
            case 2:  few_rows8(a, r, c, 2, k); break;
            case 3:  few_rows8(a, r, c, 3, k); break;
            default: few_rows8(a, r, c, 4, k); break;
            }
}

/* The half at byte `at` of a block. */
#define FEW_HALF(name, byte)                                             \
INLINE __m256 name(const uint8_t *const w[ROWS], size_t at)              \
{                                                                        \
    return load_halves(w, at + (byte));                                  \
}

#define FEW_TYPE(T, bytes, unit, d, dmin)                                \
void EBB_YMM(gemv_##T)(const ebb_matmul *a)                              \
{                                                                        \
    few_all(a, &(const few_kind){ bytes, unit, row_##T, d, dmin });      \
}

#endif
