/* Q2_K, Q3_K, TQ2_0 and IQ4_XS times up to three columns; see avx512_gemv.h. */
#include "kernels/blocks.h"
#include "kernels/x86/avx512_gemv.h"

typedef struct head_low {
    __m512  d, dmin;
    __m512i scale[4], min[4];    /* of 4j .. 4j + 3 as bytes, rows in lanes */
    _Alignas(64) uint8_t scales[16][16];         /* the same for row r at scale_row(r) */
} head_low;

EBB_INLINE const uint8_t *scale_row(const head_low *h, int r)
{
    return h->scales[(r & 3) * 4 + r / 4];
}

EBB_INLINE void store_scales(head_low *h)
{
    __m512i a = _mm512_unpacklo_epi32(h->scale[0], h->scale[1]), b = _mm512_unpacklo_epi32(h->scale[2], h->scale[3]);
    __m512i c = _mm512_unpackhi_epi32(h->scale[0], h->scale[1]), d = _mm512_unpackhi_epi32(h->scale[2], h->scale[3]);

    _mm512_store_si512(h->scales[0], _mm512_unpacklo_epi64(a, b));
    _mm512_store_si512(h->scales[4], _mm512_unpackhi_epi64(a, b));
    _mm512_store_si512(h->scales[8], _mm512_unpacklo_epi64(c, d));
    _mm512_store_si512(h->scales[12], _mm512_unpackhi_epi64(c, d));
}

EBB_INLINE __m512i masked(__m512i v, int shift, int bits)
{
    return _mm512_and_si512(_mm512_srlv_epi32(v, _mm512_set1_epi32(shift)), _mm512_set1_epi32(bits));
}

EBB_INLINE void load_head_Q2_K(const ebb_half *rows, size_t at, head_low *h)
{
    __m512i dd = ebb_half_gather(rows, at + 80), w[4];

    h->d = ebb_lanes_f16(dd);
    h->dmin = ebb_lanes_f16(_mm512_srli_epi32(dd, 16));
    ebb_load_16x16(rows, at, w);
    for (int j = 0; j < 4; j++) {
        h->scale[j] = masked(w[j], 0, 0x0f0f0f0f);
        h->min[j] = masked(w[j], 4, 0x0f0f0f0f);
    }
    store_scales(h);
}

EBB_INLINE void load_head_Q3_K(const ebb_half *rows, size_t at, head_low *h)
{
    const int two = 0x03030303, four = 0x0f0f0f0f;
    __m512i w[4], s[3];

    ebb_load_16x16(rows, at + 94, w);            /* ends with the block */
    h->d = ebb_lanes_f16(_mm512_srli_epi32(w[3], 16));
    for (int j = 0; j < 3; j++)
        s[j] = _mm512_or_si512(_mm512_srli_epi32(w[j], 16), _mm512_slli_epi32(w[j + 1], 16));
    for (int j = 0; j < 4; j++) {
        __m512i low = masked(s[j % 2], j / 2 * 4, four), high = masked(s[2], 2 * j, two);

        h->scale[j] = _mm512_sub_epi8(_mm512_or_si512(low, _mm512_slli_epi32(high, 4)), _mm512_set1_epi8(32));
    }
    store_scales(h);
}

/* scale[0]: of the sub-blocks 0 2 4 6, scale[1]: of 1 3 5 7. */
EBB_INLINE void load_head_IQ4_XS(const ebb_half *rows, size_t at, head_low *h)
{
    const int two = 0x03030303, four = 0x0f0f0f0f;
    __m512i w[4];

    ebb_load_16x16(rows, at, w);
    h->d = ebb_lanes_f16(w[0]);
    __m512i high = _mm512_srli_epi32(w[0], 16);
    high = _mm512_and_si512(_mm512_or_si512(high, _mm512_slli_epi32(high, 8)), _mm512_set1_epi32(0x00ff00ff));
    high = _mm512_and_si512(_mm512_or_si512(high, _mm512_slli_epi32(high, 4)), _mm512_set1_epi32(four));
    for (int j = 0; j < 2; j++)
        h->scale[j] = _mm512_sub_epi8(_mm512_or_si512(masked(w[1], 4 * j, four), _mm512_slli_epi32(masked(high, 2 * j, two), 4)),
                                      _mm512_set1_epi8(32));
    h->scale[2] = h->scale[3] = _mm512_setzero_si512();
    store_scales(h);
}

/* One block of a row against x[r]: the elements 32r .. 32r + 31 of both halves.  `high`: the third bits of
 * Q3_K, or NULL; `scales`: 16 words, or NULL. */
EBB_INLINE __m512i row_2bit(const uint8_t *numbers, const uint8_t *high, const __m256i *scales, const __m512i x[4])
{
    const __m512i two = _mm512_set1_epi8(3), bit2 = _mm512_set1_epi8(4);
    const __m512i lane = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_setr_m128i(_mm_set1_epi16(0), _mm_set1_epi16(1))),
                                            _mm256_setr_m128i(_mm_set1_epi16(8), _mm_set1_epi16(9)), 1);
    __m512i v = _mm512_loadu_si512(numbers), h = v, sum = _mm512_setzero_si512();

    if (high) {
        __m256i bits = _mm256_loadu_si256((const void *)high);

        h = _mm512_inserti64x4(_mm512_castsi256_si512(bits), _mm256_srli_epi16(bits, 4), 1);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        __m512i w = _mm512_and_si512(r ? _mm512_srli_epi16(v, 2 * (unsigned)r) : v, two);

        if (high) {
            __m512i at2 = r < 2 ? _mm512_slli_epi16(h, 2 - (unsigned)r) : r > 2 ? _mm512_srli_epi16(h, 1) : h;
            w = _mm512_ternarylogic_epi64(w, at2, bit2, 0xf8);       /* a | b & c */
        }
        if (scales) {
            __m512i s = _mm512_permutexvar_epi16(_mm512_add_epi16(lane, _mm512_set1_epi16((short)(2 * r))), _mm512_castsi256_si512(*scales));
            sum = _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(w, x[r]), s);
        } else {
            sum = _mm512_dpbusd_epi32(sum, w, x[r]);
        }
    }
    return sum;
}

EBB_INLINE __m512i sum_of(const ebb_q8_256 *x)
{
    int sum = 0;

    for (int j = 0; j < 16; j++)
        sum += x->sum[j];
    return _mm512_set1_epi32(sum);
}

EBB_INLINE __m512i row_low(const uint8_t *w, const uint8_t *scales, const __m512i x[4], ebb_type type)
{
    __m128i s = _mm_load_si128((const void *)scales);

    if (type == EBB_TYPE_TQ2_0)
        return row_2bit(w, NULL, NULL, x);
    __m256i wide = _mm256_cvtepi8_epi16(s);
    return row_2bit(w + (type == EBB_TYPE_Q2_K ? 16 : 32), type == EBB_TYPE_Q2_K ? NULL : w, &wide, x);
}

EBB_INLINE void block_2bit(const ebb_half *rows, size_t at, const ebb_matmul *a, size_t b, ebb_type type, ebb_sums16 *acc)
{
    head_low h;

    if (type == EBB_TYPE_Q2_K)
        load_head_Q2_K(rows, at, &h);
    else if (type == EBB_TYPE_Q3_K)
        load_head_Q3_K(rows, at, &h);
    else
        h.d = ebb_lanes_f16(_mm512_srli_epi32(ebb_half_gather(rows, at + 62), 16));
    for (size_t c = 0; c < a->n_cols; c++) {
        const ebb_q8_256 *x = (const ebb_q8_256 *)((const char *)a->x + c * a->x_col_bytes) + b;
        __m512i xs[4] = { ebb_load_subs(x, 0, 4), ebb_load_subs(x, 1, 5), ebb_load_subs(x, 2, 6), ebb_load_subs(x, 3, 7) }, s[16];
        __m512 dx = _mm512_set1_ps(x->d);

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            s[i] = row_low(rows->base + rows->offset[i] + at, scale_row(&h, i), xs, type);
        __m512i sum = ebb_sum16(s);

        if (type == EBB_TYPE_Q3_K)
            sum = _mm512_sub_epi32(sum, _mm512_slli_epi32(ebb_offset_sum(h.scale, x), 2));
        if (type == EBB_TYPE_TQ2_0)
            sum = _mm512_sub_epi32(sum, sum_of(x));
        acc->y[c] = _mm512_fmadd_ps(_mm512_mul_ps(h.d, dx), _mm512_cvtepi32_ps(sum), acc->y[c]);
        if (type == EBB_TYPE_Q2_K)
            acc->y[c] = _mm512_fnmadd_ps(_mm512_mul_ps(h.dmin, dx), _mm512_cvtepi32_ps(ebb_offset_sum(h.min, x)), acc->y[c]);
    }
}

/* Sums of the values' 128 too many start the products; then no 16 bits hold them, so scales multiply in 32. */
EBB_INLINE __m512i row_iq4(const uint8_t *w, const uint8_t *scales, __m512i table, const __m512i x[4], const __m512i start[2])
{
    const __m512i low4 = _mm512_set1_epi8(15);
    const int none = 0x808080;
    const __m512i first = _mm512_setr_epi32(none, none, none, none, none | 4 << 24, none | 4 << 24, none | 4 << 24, none | 4 << 24,
                                            none | 1 << 24, none | 1 << 24, none | 1 << 24, none | 1 << 24,
                                            none | 5 << 24, none | 5 << 24, none | 5 << 24, none | 5 << 24);
    __m512i s = _mm512_broadcast_i32x4(_mm_load_si128((const void *)scales)), sum = _mm512_setzero_si512();

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i v = _mm512_loadu_si512(w + 8 + 64 * i);
        __m512i low = _mm512_shuffle_epi8(table, _mm512_and_si512(v, low4));
        __m512i up = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(v, 4), low4));
        __m512i scale = _mm512_srai_epi32(_mm512_shuffle_epi8(s, _mm512_add_epi32(first, _mm512_set1_epi32(i << 25))), 24);

        v = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(start[i], low, x[2 * i]), up, x[2 * i + 1]);
        sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(v, scale));
    }
    return sum;
}

EBB_INLINE void block_iq4(const ebb_half *rows, size_t at, const ebb_matmul *a, size_t b, ebb_sums16 *acc)
{
    const __m512i many = _mm512_set1_epi8(-128), zero = _mm512_setzero_si512();
    __m512i table = _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)ebb_iq4_values)), many);
    head_low h;

    load_head_IQ4_XS(rows, at, &h);
    for (size_t c = 0; c < a->n_cols; c++) {
        const ebb_q8_256 *x = (const ebb_q8_256 *)((const char *)a->x + c * a->x_col_bytes) + b;
        __m512i xs[4], start[2], s[16];

        for (int i = 0; i < 2; i++) {            /* the first 16 and the last 16 of four sub-blocks */
            __m512i v = _mm512_loadu_si512(x->q + 128 * i), next = _mm512_loadu_si512(x->q + 128 * i + 64);

            xs[2 * i] = _mm512_shuffle_i32x4(v, next, 0x88);
            xs[2 * i + 1] = _mm512_shuffle_i32x4(v, next, 0xdd);
            start[i] = _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, many, xs[2 * i]), many, xs[2 * i + 1]));
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            s[i] = row_iq4(rows->base + rows->offset[i] + at, scale_row(&h, i), table, xs, start);
        acc->y[c] = _mm512_fmadd_ps(_mm512_mul_ps(h.d, _mm512_set1_ps(x->d)), _mm512_cvtepi32_ps(ebb_sum16(s)), acc->y[c]);
    }
}

EBB_INLINE void rows16(const ebb_matmul *a, size_t r, ebb_type type, size_t bytes)
{
    size_t ahead = r + 32 <= a->n_rows ? 16 * a->row_bytes : 0;
    __mmask16 mask = ebb_row_mask(a->n_rows, r);
    ebb_sums16 acc;
    ebb_half rows;

    ebb_half_rows(a, r, 0, &rows);
    for (int c = 0; c < GEMV_COLS; c++)
        acc.y[c] = _mm512_setzero_ps();
    for (size_t b = 0; b < a->n_k / 256; b++) {
        if (ahead)
            ebb_prefetch_next(&rows, b * bytes, ahead, bytes);
        if (type == EBB_TYPE_IQ4_XS)
            block_iq4(&rows, b * bytes, a, b, &acc);
        else
            block_2bit(&rows, b * bytes, a, b, type, &acc);
    }
    for (size_t c = 0; c < a->n_cols; c++)
        _mm512_mask_storeu_ps(a->y + c * a->y_stride + r, mask, acc.y[c]);
}

#define TYPE(T, bytes)                                           \
void ebb_avx512_gemv_##T(const ebb_matmul *a)                    \
{                                                                \
    for (size_t r = 0; r < a->n_rows; r += 16)                   \
        rows16(a, r, EBB_TYPE_##T, bytes);                       \
}
TYPE(Q2_K, 84)
TYPE(Q3_K, 110)
TYPE(TQ2_0, 66)
TYPE(IQ4_XS, 136)
