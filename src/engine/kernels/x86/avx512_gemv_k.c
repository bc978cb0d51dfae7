/* Q4_K, Q5_K and Q6_K times up to three columns. */
#include "kernels/impl.h"
#include "kernels/x86/avx512_line.h"

/* Scales as words, four of one sub-block and four of the next: a, a + 1 in the lower 128-bit lanes, a + 2, a + 3 in the upper. */
EBB_INLINE __m512i scale_mask(int a)
{
    const long long zero = (long long)0x8000800080008000ull, one = 0x0001000100010001ll;
    const long long s0 = zero + one * a, s1 = s0 + one, s2 = s1 + one, s3 = s2 + one;

    return _mm512_setr_epi64(s0, s1, s0, s1, s2, s3, s2, s3);
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
 * low the sub-blocks 0 2 | 4 6, high 1 3 | 5 7.  Four products fit 16 bits (4 * 31 * 127). */
EBB_INLINE __m512i row_k(const uint8_t *nibbles, const uint8_t *high, const uint8_t *scales, const uint8_t x[256])
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
        low = _mm512_dpbusd_epi32(zero, low, _mm512_load_si512(x + 128 * i));
        up = _mm512_dpbusd_epi32(zero, up, _mm512_load_si512(x + 128 * i + 64));
        sum = _mm512_dpwssd_epi32(sum, _mm512_packs_epi32(low, up), _mm512_shuffle_epi8(s, scale_mask(4 * i)));
    }
    return sum;
}

/* 16 blocks of Q4_K or (has_high) Q5_K. */
EBB_INLINE void blocks_k(const ebb_line_place *p, bool has_high, size_t bytes)
{
    _Alignas(64) uint8_t scales[128];
    ebb_half blocks = ebb_line_blocks(p->w, bytes);
    ebb_head_k h = ebb_load_head_k(&blocks, 0);

    ebb_store_scales_k(&h, scales);
    for (size_t c = 0; c < p->n_cols; c++) {
        const uint8_t *x = p->x[c].q + 256 * p->b;
        __m512i s[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            const uint8_t *w = p->w + (size_t)i * bytes;

            if (c == 0)
                ebb_line_prefetch(p, i, bytes);
            s[i] = row_k(w + (has_high ? 48 : 16), has_high ? w + 16 : NULL, scales + ebb_scale_at(i), x + 256 * i);
            ebb_line_keep_order(&s[i]);
        }
        ebb_line_put_min(p->sum[c], h.dd, ebb_sum16(s), ebb_line_dot(h.min, 2, &p->x[c], p->b));
    }
}

static void order_k(const ebb_q8_256 *x, uint8_t out[256])
{
    ebb_line_order(x, (const int[]){ 0, 1, 4, 5 }, 2, out);
}

/* One block of Q6_K, values still with their offset: 64 elements at a time stand in order, 16 to a 128-bit lane. */
EBB_INLINE __m512i row_q6(const uint8_t *w, const uint8_t x[256])
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
        sum = _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(low, _mm512_load_si512(x + 128 * n)), s0);      /* at most 2 * 63 * 127 */
        sum = _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(up, _mm512_load_si512(x + 128 * n + 64)), s1);
    }
    return sum;
}

static void blocks_Q6_K(const ebb_line_place *p)
{
    ebb_half blocks = ebb_line_blocks(p->w, 210);
    __m512i scale[4];

    _mm512_storeu_ps(p->d, ebb_lanes_f16(_mm512_srli_epi32(ebb_half_gather(&blocks, 206), 16)));
    ebb_load_16x16(&blocks, 192, scale);
    for (size_t c = 0; c < p->n_cols; c++) {
        const uint8_t *x = p->x[c].q + 256 * p->b;
        __m512i s[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            if (c == 0)
                ebb_line_prefetch(p, i, 210);
            s[i] = row_q6(p->w + 210 * (size_t)i, x + 256 * i);
            ebb_line_keep_order(&s[i]);
        }
        ebb_line_put(p->sum[c], _mm512_sub_epi32(ebb_sum16(s), _mm512_slli_epi32(ebb_line_dot_signed(scale, &p->x[c], p->b), 5)));
    }
}

static void blocks_Q4_K(const ebb_line_place *p)
{
    blocks_k(p, false, 144);
}

static void blocks_Q5_K(const ebb_line_place *p)
{
    blocks_k(p, true, 176);
}

static void order_q6(const ebb_q8_256 *x, uint8_t out[256])
{
    memcpy(out, x->q, sizeof x->q);
}

void ebb_avx512_gemv_Q4_K(const ebb_matmul *a)
{
    ebb_line(a, &(ebb_line_kind){ 144, true, true, order_k, blocks_Q4_K });
}

void ebb_avx512_gemv_Q5_K(const ebb_matmul *a)
{
    ebb_line(a, &(ebb_line_kind){ 176, true, true, order_k, blocks_Q5_K });
}

void ebb_avx512_gemv_Q6_K(const ebb_matmul *a)
{
    ebb_line(a, &(ebb_line_kind){ 210, false, false, order_q6, blocks_Q6_K });
}
