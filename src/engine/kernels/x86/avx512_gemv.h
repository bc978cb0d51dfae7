/* x86/avx512_gemv.h - products with one to four columns, straight from the
 * file's blocks: 16 blocks at a time, each summed along its bytes; then the 16
 * vectors of partial sums are added and transposed into one. */
#ifndef EBB_KERNELS_AVX512_GEMV_H
#define EBB_KERNELS_AVX512_GEMV_H
#include "kernels/number.h"
#include "kernels/x86/avx512_tile.h"

enum { GEMV_COLS = 4 };          /* beyond, unpacking pays */
enum { GEMV_MOST_K = 1 << 17 };  /* for longer rows there would be no scratch */

/* n_cols at most GEMV_COLS, n_k at most GEMV_MOST_K. */
typedef void ebb_gemv_fn(const ebb_matmul *a);

ebb_gemv_fn ebb_avx512_gemv_Q4_0, ebb_avx512_gemv_Q4_1, ebb_avx512_gemv_Q5_0, ebb_avx512_gemv_Q5_1,
    ebb_avx512_gemv_IQ4_NL, ebb_avx512_gemv_MXFP4, ebb_avx512_gemv_Q4_K, ebb_avx512_gemv_Q5_K,
    ebb_avx512_gemv_Q6_K, ebb_avx512_gemv_Q2_K, ebb_avx512_gemv_Q3_K, ebb_avx512_gemv_TQ2_0,
    ebb_avx512_gemv_IQ4_XS, ebb_avx512_gemv_IQ2_XXS, ebb_avx512_gemv_IQ2_XS, ebb_avx512_gemv_IQ2_S,
    ebb_avx512_gemv_IQ3_S;

#define EBB_INLINE static inline __attribute__((always_inline))

/* Lane i of the result: the sum of the 16 lanes of s[i].  Destroys s. */
EBB_INLINE __m512i ebb_sum16(__m512i s[16])
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {                /* pairs i, i + 8: words of one in the even, of the
                                                    other in the odd places */
        __m512i a = s[i], b = s[i + 8];
        s[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {                /* i, i + 4, and their partners: places 0 2 1 3 */
        __m512i a = s[i], b = s[i + 4];
        s[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    /* place p of every 128-bit lane of s[i] belongs to row i + { 0 8 4 12 }[p] */
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i a = s[i], b = s[i + 2];
        s[i] = _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
    }
    __m512i r = _mm512_add_epi32(_mm512_shuffle_i32x4(s[0], s[1], 0x88),
                                 _mm512_shuffle_i32x4(s[0], s[1], 0xdd));
    /* 128-bit lane l: rows of { 0 2 1 3 }[l], place p as above */
    const __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15);

    return _mm512_permutexvar_epi32(order, r);
}

/* 128-bit lane l of z[i]: four words of row 4l + i; word j of all rows in out[j]. */
EBB_INLINE void ebb_words4(const __m512i z[4], __m512i out[4])
{
    __m512i a = _mm512_unpacklo_epi32(z[0], z[1]), b = _mm512_unpackhi_epi32(z[0], z[1]);
    __m512i c = _mm512_unpacklo_epi32(z[2], z[3]), d = _mm512_unpackhi_epi32(z[2], z[3]);

    out[0] = _mm512_unpacklo_epi64(a, c);
    out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d);
    out[3] = _mm512_unpackhi_epi64(b, d);
}

/* 16 bytes of each of 16 rows: word j of all rows in out[j]. */
EBB_INLINE void ebb_load_16x16(const ebb_half *rows, size_t at, __m512i out[4])
{
    __m512i z[4];

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {                /* 128-bit lane l: row 4l + i */
        const uint8_t *p = rows->base + at;
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(p + rows->offset[i])));

        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + rows->offset[4 + i])), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + rows->offset[8 + i])), 2);
        z[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + rows->offset[12 + i])), 3);
    }
    ebb_words4(z, out);
}

/* Byte j of each lane as (byte, 0); bytes 2j and 2j + 1 as a pair of 16 bits. */
EBB_INLINE __m512i ebb_byte_of(__m512i v, int j)
{
    return _mm512_and_si512(_mm512_srlv_epi32(v, _mm512_set1_epi32(8 * j)), _mm512_set1_epi32(255));
}

EBB_INLINE __m512i ebb_pair_of(__m512i v, int j)
{
    return _mm512_or_si512(ebb_byte_of(v, 2 * j), _mm512_slli_epi32(ebb_byte_of(v, 2 * j + 1), 16));
}

/* What stands in front of a block of Q4_K or Q5_K, rows in lanes: d and dmin, and the 6-bit scales
 * and minima of the sub-blocks 0..3 and 4..7 as bytes. */
typedef struct ebb_head_k {
    __m512i dd;                  /* d and dmin as they stand */
    __m512i scale[2], min[2];
} ebb_head_k;

EBB_INLINE ebb_head_k ebb_load_head_k(const ebb_half *rows, size_t at)
{
    const __m512i six = _mm512_set1_epi32(0x3f3f3f3f), four = _mm512_set1_epi32(0x0f0f0f0f),
                  two = _mm512_set1_epi32(0x03030303);
    __m512i w[4];
    ebb_head_k o;

    ebb_load_16x16(rows, at, w);
    o.dd = w[0];
    o.scale[0] = _mm512_and_si512(w[1], six);
    o.min[0] = _mm512_and_si512(w[2], six);
    o.scale[1] = _mm512_or_si512(
        _mm512_and_si512(w[3], four),
        _mm512_slli_epi32(_mm512_and_si512(_mm512_srli_epi32(w[1], 6), two), 4));
    o.min[1] = _mm512_or_si512(
        _mm512_and_si512(_mm512_srli_epi32(w[3], 4), four),
        _mm512_slli_epi32(_mm512_and_si512(_mm512_srli_epi32(w[2], 6), two), 4));
    return o;
}

/* The 8 scale bytes of row r are at out + ebb_scale_at(r). */
EBB_INLINE void ebb_store_scales_k(const ebb_head_k *h, uint8_t out[128])
{
    _mm512_store_si512(out, _mm512_unpacklo_epi32(h->scale[0], h->scale[1]));
    _mm512_store_si512(out + 64, _mm512_unpackhi_epi32(h->scale[0], h->scale[1]));
}

EBB_INLINE int ebb_scale_at(int r)
{
    return (r & 2) * 32 + r / 4 * 16 + (r & 1) * 8;
}

/* What is multiplied behind the 16 rows from r on; NULL: nobody knows. */
EBB_INLINE const uint8_t *ebb_behind_rows(const ebb_matmul *a, size_t r)
{
    return r + 16 < a->n_rows ? (const uint8_t *)a->w + (r + 16) * a->row_bytes : a->next;
}

/* Bytes from `at` on of all rows are wanted at once. */
EBB_INLINE void ebb_fetch_rows(const ebb_half *rows, size_t at)
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        _mm_prefetch((const char *)rows->base + rows->offset[i] + at, _MM_HINT_T0);
}

/* 64 bytes x of the sub-blocks a and b (32 each). */
EBB_INLINE __m512i ebb_load_subs(const ebb_q8_256 *x, int a, int b)
{
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(x->q + 32 * a))),
        _mm256_loadu_si256((const void *)(x->q + 32 * b)), 1);
}

#endif
