/* x86/avx512_line.h - products with one to four columns that read blocks of 256
 * in the order in which they stand.  That is what memory is fastest at: a core gets
 * 18 GB/s of one stream, and 12 of 16 rows side by side.
 *
 * 16 blocks in turn, whatever rows they belong to, become 16 integer sums at once;
 * when 16 rows are through, their sums are turned, and the float chain of rule K2 runs with rows
 * in lanes. */
#ifndef EBB_KERNELS_AVX512_LINE_H
#define EBB_KERNELS_AVX512_LINE_H
#include "kernels/x86/avx512_gemv.h"

/* A column: its blocks and, where rows are no multiple of 16 blocks, the first 16 behind the last,
 * so that any 16 in turn stand side by side. */
typedef struct ebb_line_x {
    uint8_t *q;                  /* [n + 16][256] in the type's own order */
    __m512i_u *low[4], *high[4]; /* [n + 16] words: of four sums each (of 16 or of 32 elements) the
                                    low 7 bits and the signed rest, as bytes */
    __m512i_u *total;            /* [n + 16] the sum of all elements */
} ebb_line_x;

/* 16 blocks of weights from w on, times block b of the columns and those behind it. */
typedef struct ebb_line_args {
    const uint8_t    *w, *near;  /* 16 blocks; those that will be wanted very soon */
    const uint8_t    *far;       /* what will be wanted after them: a fourth as much from here on as
                                    from w, and as much ... */
    size_t            quarter;   /* ... so many bytes behind that, and twice and three times as
                                    many */
    const ebb_line_x *x;         /* [n_cols] */
    size_t            n_cols, b;
    float *d;                    /* out: scales of the blocks, unless there are minima */
    float *sum[GEMV_COLS];       /* out: their integer sums; if there are minima, what rule K2
                                    multiplies with d_x */
} ebb_line_args;

typedef struct ebb_line_kind {
    size_t bytes;                /* of a block */
    bool   has_min, has_sums32;  /* sums are wanted of 32 elements, not of 16 */
    void (*order)(const ebb_q8_256 *x, uint8_t out[256]);
    void (*blocks)(const ebb_line_args *p);
} ebb_line_kind;

void ebb_line(const ebb_matmul *a, const ebb_line_kind *k);

/* The sub-blocks of 32 in pairs that stand in one vector: x of { i, i + step } for each. */
EBB_INLINE void ebb_line_order(const ebb_q8_256 *x, const int first[4], int step, uint8_t out[256])
{
    for (int i = 0; i < 4; i++)
        _mm512_store_si512(out + 64 * i, ebb_load_subs(x, first[i], first[i] + step));
}

/* Fetch what stands opposite block i of 16: a line of each quarter in turn into the second cache,
 * and what was fetched there before into the first. */
EBB_INLINE void ebb_line_prefetch(const ebb_line_args *p, int i, size_t bytes)
{
    size_t lines = (16 * bytes / 4 + 63) / 64;   /* of a quarter */

    for (size_t line = (size_t)i * bytes / 64; line < ((size_t)i + 1) * bytes / 64; line++)
        _mm_prefetch((const char *)p->near + 64 * line, _MM_HINT_T0);
    for (size_t line = (size_t)i * lines / 4; line < ((size_t)i + 1) * lines / 4; line++)
        _mm_prefetch((const char *)p->far + line % 4 * p->quarter + line / 4 * 64, _MM_HINT_T1);
}

/* Nothing is computed earlier: what is fetched in between is spread evenly. */
EBB_INLINE void ebb_line_keep_order(__m512i *v)
{
    __asm__ volatile("" : "+v"(*v));
}

/* Where 16 blocks stand. */
EBB_INLINE ebb_half ebb_line_blocks(const uint8_t *w, size_t bytes)
{
    ebb_half h = { .base = w };

    for (int i = 0; i < 16; i++)
        h.offset[i] = i * (int)bytes;
    return h;
}

EBB_INLINE __m512i ebb_line_at(const __m512i_u *words, size_t b)
{
    return _mm512_loadu_si512((const uint32_t *)words + b);
}

/* sum_j f_j * (sum j of the column), f: n vectors of four unsigned bytes each, blocks in lanes. */
EBB_INLINE __m512i ebb_line_dot(const __m512i *f, int n, const ebb_line_x *x, size_t b)
{
    __m512i low = _mm512_setzero_si512(), high = low;

    for (int j = 0; j < n; j++) {
        low = _mm512_dpbusd_epi32(low, f[j], ebb_line_at(x->low[j], b));
        high = _mm512_dpbusd_epi32(high, f[j], ebb_line_at(x->high[j], b));
    }
    return _mm512_add_epi32(low, _mm512_slli_epi32(high, 7));
}

/* The same for signed bytes: 128 is added to each, and what that adds taken off. */
EBB_INLINE __m512i ebb_line_dot_signed(const __m512i f[4], const ebb_line_x *x, size_t b)
{
    const __m512i sign = _mm512_set1_epi8(-128);
    __m512i u[4];

    for (int j = 0; j < 4; j++)
        u[j] = _mm512_xor_si512(f[j], sign);
    return _mm512_sub_epi32(ebb_line_dot(u, 4, x, b),
                            _mm512_slli_epi32(ebb_line_at(x->total, b), 7));
}

EBB_INLINE void ebb_line_put(float *out, __m512i sums)
{
    _mm512_storeu_ps(out, _mm512_cvtepi32_ps(sums));
}

/* dd: d and dmin as they stand in a block, as two halves. */
EBB_INLINE void ebb_line_put_min(float *out, __m512i dd, __m512i sums, __m512i min_sums)
{
    __m512 d = ebb_lanes_f16(dd), dmin = ebb_lanes_f16(_mm512_srli_epi32(dd, 16));

    _mm512_storeu_ps(out, _mm512_fnmadd_ps(dmin, _mm512_cvtepi32_ps(min_sums),
                                           _mm512_mul_ps(d, _mm512_cvtepi32_ps(sums))));
}

#endif
