/* Q4_K, Q5_K and Q6_K times up to three columns. */
#include "kernels/impl.h"
#include "kernels/x86/avx512_gemv.h"

/* The first bytes of dword scales (scale, 0) for the sub-blocks a (lower 256 bits) and b (upper). */
EBB_INLINE __m512i scale_mask(int a, int b)
{
    const int zero = (int)0x80808000u;

    return _mm512_inserti64x4(_mm512_set1_epi32(zero | a), _mm256_set1_epi32(zero | b), 1);
}

/* Bits of the 32 high bytes (twice) moved to bit 4: of sub-block a below, b above. */
EBB_INLINE __m512i high_bit(__m512i h, int a, int b)
{
    __m512i left = _mm512_inserti64x4(_mm512_set1_epi16((short)(a < 4 ? 4 - a : 0)), _mm256_set1_epi16((short)(b < 4 ? 4 - b : 0)), 1);
    __m512i right = _mm512_inserti64x4(_mm512_set1_epi16((short)(a < 4 ? 0 : a - 4)), _mm256_set1_epi16((short)(b < 4 ? 0 : b - 4)), 1);

    h = a < 4 || b < 4 ? _mm512_sllv_epi16(h, left) : h;
    return a > 4 || b > 4 ? _mm512_srlv_epi16(h, right) : h;
}

/* One block of one row against one column: 16 partial sums.  The nibble bytes hold, 64 at a time,
 * low the sub-blocks 0 2 | 4 6, high 1 3 | 5 7. */
EBB_INLINE __m512i row_k(const uint8_t *nibbles, const uint8_t *high, const uint8_t *scales, const __m512i x[4])
{
    const __m512i low4 = _mm512_set1_epi8(15), bit4 = _mm512_set1_epi8(16);
    __m512i s = _mm512_set1_epi64((long long)((uint64_t)ebb_u32_load(scales) | (uint64_t)ebb_u32_load(scales + 4) << 32));
    __m512i h = high ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)high)) : s;
    __m512i sum = _mm512_setzero_si512(), zero = sum;

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i v = _mm512_loadu_si512(nibbles + 64 * i);
        __m512i low = _mm512_and_si512(v, low4), up = _mm512_and_si512(_mm512_srli_epi16(v, 4), low4);

        if (high) {                              /* a | b & c */
            low = _mm512_ternarylogic_epi64(low, high_bit(h, 4 * i, 4 * i + 2), bit4, 0xf8);
            up = _mm512_ternarylogic_epi64(up, high_bit(h, 4 * i + 1, 4 * i + 3), bit4, 0xf8);
        }
        sum = _mm512_dpwssd_epi32(sum, _mm512_dpbusd_epi32(zero, low, x[2 * i]), _mm512_shuffle_epi8(s, scale_mask(4 * i, 4 * i + 2)));
        sum = _mm512_dpwssd_epi32(sum, _mm512_dpbusd_epi32(zero, up, x[2 * i + 1]), _mm512_shuffle_epi8(s, scale_mask(4 * i + 1, 4 * i + 3)));
    }
    return sum;
}

EBB_INLINE void block_k(const ebb_half *rows, size_t at, const uint8_t *const x_cols, size_t x_col_bytes, size_t n_cols, size_t b,
                        bool has_high, ebb_sums16 *acc)
{
    _Alignas(64) uint8_t scales[128];
    ebb_head_k h = ebb_load_head_k(rows, at);

    ebb_store_scales_k(&h, scales);
    for (size_t c = 0; c < n_cols; c++) {
        const ebb_q8_256 *x = (const ebb_q8_256 *)(x_cols + c * x_col_bytes) + b;
        __m512i xs[4] = { ebb_load_subs(x, 0, 2), ebb_load_subs(x, 1, 3), ebb_load_subs(x, 4, 6), ebb_load_subs(x, 5, 7) }, s[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            const uint8_t *w = rows->base + rows->offset[i] + at;

            s[i] = row_k(w + (has_high ? 48 : 16), has_high ? w + 16 : NULL, scales + ebb_scale_at(i), xs);
        }
        acc->y[c] = ebb_step_k(acc->y[c], &h, x->d, ebb_sum16(s), ebb_min_sum_k(&h, x));
    }
}

/* One block of Q6_K, values still with their offset: 64 elements at a time stand in order, 16 to a 128-bit lane. */
EBB_INLINE __m512i row_q6(const uint8_t *w, const __m512i x[4])
{
    const __m512i low4 = _mm512_set1_epi8(15), bits = _mm512_set1_epi8(0x30);
    const __m512i left = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    const __m512i lane = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_setr_m128i(_mm_set1_epi16(0), _mm_set1_epi16(1))),
                                            _mm256_setr_m128i(_mm_set1_epi16(2), _mm_set1_epi16(3)), 1);
    __m512i s = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(w + 192))));
    __m512i sum = _mm512_setzero_si512();

#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) {
        __m512i v = _mm512_loadu_si512(w + 64 * n), h = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(w + 128 + 32 * n)));
        __m512i low = _mm512_and_si512(v, low4), up = _mm512_and_si512(_mm512_srli_epi16(v, 4), low4);

        low = _mm512_ternarylogic_epi64(low, _mm512_sllv_epi16(h, left), bits, 0xf8);
        up = _mm512_ternarylogic_epi64(up, _mm512_srlv_epi16(h, right), bits, 0xf8);
        __m512i s0 = _mm512_permutexvar_epi16(_mm512_add_epi16(lane, _mm512_set1_epi16((short)(8 * n))), s);
        __m512i s1 = _mm512_permutexvar_epi16(_mm512_add_epi16(lane, _mm512_set1_epi16((short)(8 * n + 4))), s);
        sum = _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(low, x[2 * n]), s0);      /* at most 2 * 63 * 127 */
        sum = _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(up, x[2 * n + 1]), s1);
    }
    return sum;
}

EBB_INLINE void block_q6(const ebb_half *rows, size_t at, const uint8_t *const x_cols, size_t x_col_bytes, size_t n_cols, size_t b,
                         ebb_sums16 *acc)
{
    __m512 d = ebb_lanes_f16(_mm512_srli_epi32(ebb_half_gather(rows, at + 206), 16));
    __m512i scale[4];

    ebb_load_16x16(rows, at + 192, scale);
    for (size_t c = 0; c < n_cols; c++) {
        const ebb_q8_256 *x = (const ebb_q8_256 *)(x_cols + c * x_col_bytes) + b;
        __m512i xs[4] = { _mm512_loadu_si512(x->q), _mm512_loadu_si512(x->q + 64), _mm512_loadu_si512(x->q + 128),
                          _mm512_loadu_si512(x->q + 192) }, s[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            s[i] = row_q6(rows->base + rows->offset[i] + at, xs);
        __m512i sum = _mm512_sub_epi32(ebb_sum16(s), _mm512_slli_epi32(ebb_offset_sum(scale, x), 5));
        acc->y[c] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x->d)), _mm512_cvtepi32_ps(sum), acc->y[c]);
    }
}

/* All blocks of rows r .. r + 15. */
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
        if (type == EBB_TYPE_Q6_K)
            block_q6(&rows, b * bytes, a->x, a->x_col_bytes, a->n_cols, b, &acc);
        else
            block_k(&rows, b * bytes, a->x, a->x_col_bytes, a->n_cols, b, type == EBB_TYPE_Q5_K, &acc);
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
TYPE(Q4_K, 144)
TYPE(Q5_K, 176)
TYPE(Q6_K, 210)
