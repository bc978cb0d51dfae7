/* Q4_K, Q5_K and Q6_K times up to four columns. */
#include "kernels/impl.h"
#include "kernels/x86/avx512_line.h"

/* Scales as pairs of words: of the sub-blocks a and a + 1 in the lower half, of a + 2 and a + 3 in the upper. */
EBB_INLINE __m512i scale_mask(int a)
{
    const int pair = (int)0x80018000u + a * 0x10001;

    return _mm512_inserti64x4(_mm512_set1_epi32(pair), _mm256_set1_epi32(pair + 0x20002), 1);
}

/* Bits of the 32 high bytes (twice) moved to bit `to`: of sub-block a below, a + 2 above. */
EBB_INLINE __m512i high_bit(__m512i h, int a, int to)
{
    int l = to - a, u = l - 2;
    __m512i left = _mm512_inserti64x4(_mm512_set1_epi16((short)(l > 0 ? l : 0)),
                                      _mm256_set1_epi16((short)(u > 0 ? u : 0)), 1);
    __m512i right = _mm512_inserti64x4(_mm512_set1_epi16((short)(l < 0 ? -l : 0)),
                                       _mm256_set1_epi16((short)(u < 0 ? -u : 0)), 1);

    h = l > 0 || u > 0 ? _mm512_sllv_epi16(h, left) : h;
    return l < 0 || u < 0 ? _mm512_srlv_epi16(h, right) : h;
}

/* 128 values twice, unpacked: the nibble bytes hold, 64 at a time, low the sub-blocks 0 2 | 4 6, high 1 3 | 5 7. */
typedef struct unpacked {
    __m512i low[2], up[2], scale[2];
} unpacked;

EBB_INLINE unpacked unpack_k(const uint8_t *values, bool has_high, const uint8_t *scales)
{
    const uint8_t *nibbles = values + (has_high ? 32 : 0);       /* behind the high bits */
    const __m512i low4 = _mm512_set1_epi8(15), bit4 = _mm512_set1_epi8(16), bit7 = _mm512_set1_epi8(-128);
    __m512i s = _mm512_set1_epi64(
        (long long)((uint64_t)ebb_u32_load(scales) | (uint64_t)ebb_u32_load(scales + 4) << 32));
    __m512i h = has_high ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)values)) : s;
    unpacked o;

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i v = _mm512_loadu_si512(nibbles + 64 * i), low, up;

        ebb_line_keep_order(&v);                 /* loaded once: most loads take two lines */
        low = _mm512_and_si512(v, low4);
        if (has_high) {                          /* a | b & c */
            low = _mm512_ternarylogic_epi64(low, high_bit(h, 4 * i, 4), bit4, 0xf8);
            up = _mm512_and_si512(_mm512_srli_epi16(v, 1), _mm512_set1_epi8(0x78));
            up = _mm512_ternarylogic_epi64(up, high_bit(h, 4 * i + 1, 7), bit7, 0xf8);
        } else {
            up = _mm512_andnot_si512(low4, v);
        }
        o.low[i] = low;
        o.up[i] = up;
        o.scale[i] = _mm512_shuffle_epi8(s, scale_mask(4 * i));
    }
    return o;
}

/* One block of one row against one column: 16 partial sums, each too large by 8192 (Q5_K: 16384) times the scales of
 * the even sub-blocks.  Four products fit 16 bits (4 * 31 * 127).  The upper nibbles stay where they are, so their sums
 * are 16 (8) times too large; shifted on, they stand in the upper halves of words, and those of the lower nibbles are
 * added below, where the excess keeps them from being negative. */
EBB_INLINE __m512i dot_k(const unpacked *w, bool has_high, const uint8_t x[256])
{
    const __m512i two = _mm512_set1_epi32(2);
    __m512i sum = _mm512_setzero_si512();

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i pairs = _mm512_dpbusd_epi32(two, w->up[i], _mm512_load_si512(x + 128 * i + 64));

        pairs = _mm512_dpbusd_epi32(_mm512_slli_epi32(pairs, has_high ? 13 : 12), w->low[i],
                                    _mm512_load_si512(x + 128 * i));
        sum = _mm512_dpwssd_epi32(sum, pairs, w->scale[i]);
    }
    return sum;
}

/* What the sums of dot_k are too large by: 8 words of each even sub-block. */
EBB_INLINE __m512i excess_k(const ebb_head_k *h, bool has_high)
{
    const __m512i even = _mm512_set1_epi32(0x00010001);
    __m512i s = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), h->scale[0], even), h->scale[1], even);

    return _mm512_slli_epi32(s, has_high ? 17 : 16);
}

/* 16 blocks times n columns: what was unpacked serves them all.  What comes is fetched. */
EBB_INLINE void columns_k(const ebb_line_args *p, size_t n, const ebb_head_k *h, const uint8_t *scales, bool has_high,
                          size_t bytes)
{
    __m512i s[GEMV_COLS][16], excess = excess_k(h, has_high);

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const uint8_t *w = p->w + (size_t)i * bytes;
        unpacked u;

        ebb_line_prefetch(p, i, bytes);
        u = unpack_k(w + 16, has_high, scales + ebb_scale_at(i));
        for (size_t c = 0; c < n; c++) {
            s[c][i] = dot_k(&u, has_high, p->x[c].q + 256 * (p->b + (size_t)i));
            ebb_line_keep_order(&s[c][i]);
        }
    }
    for (size_t c = 0; c < n; c++)
        ebb_line_put_min(p->sum[c], h->dd, _mm512_sub_epi32(ebb_sum16(s[c]), excess),
                         ebb_line_dot(h->min, 2, &p->x[c], p->b));
}

/* 16 blocks of Q4_K or (has_high) Q5_K. */
EBB_INLINE void blocks_k(const ebb_line_args *p, bool has_high, size_t bytes)
{
    _Alignas(64) uint8_t scales[128];
    const uint8_t *at = scales;
    ebb_half blocks = ebb_line_blocks(p->w, bytes);
    ebb_head_k h = ebb_load_head_k(&blocks, 0);

    ebb_store_scales_k(&h, scales);
    __asm__ volatile("" : "+r"(at) : : "memory");        /* a load is cheaper than taking words out of a vector */
    switch (p->n_cols) {
    case 1: columns_k(p, 1, &h, at, has_high, bytes); break;
    case 2: columns_k(p, 2, &h, at, has_high, bytes); break;
    case 3: columns_k(p, 3, &h, at, has_high, bytes); break;
    default: columns_k(p, 4, &h, at, has_high, bytes); break;
    }
}

static void order_k(const ebb_q8_256 *x, uint8_t out[256])
{
    ebb_line_order(x, (const int[]){ 0, 1, 4, 5 }, 2, out);
}

/* Values of Q6_K still with their offset: 64 elements at a time stand in order, 16 to a 128-bit lane. */
EBB_INLINE unpacked unpack_q6(const uint8_t *w)
{
    const __m512i low4 = _mm512_set1_epi8(15), bits = _mm512_set1_epi8(0x30);
    const __m512i left = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const __m512i right = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    const long long lane = 0x0001000100010001LL;
    const __m512i lanes = _mm512_setr_epi64(0, 4 * lane, lane, 5 * lane, 2 * lane, 6 * lane, 3 * lane, 7 * lane);
    __m512i s = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(w + 192))));
    unpacked o;

#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) {
        __m512i v = _mm512_loadu_si512(w + 64 * n),
                h = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(w + 128 + 32 * n)));

        ebb_line_keep_order(&v);
        o.low[n] = _mm512_ternarylogic_epi64(_mm512_and_si512(v, low4), _mm512_sllv_epi16(h, left), bits, 0xf8);
        o.up[n] = _mm512_ternarylogic_epi64(_mm512_and_si512(_mm512_srli_epi16(v, 4), low4),
                                            _mm512_srlv_epi16(h, right), bits, 0xf8);
        o.scale[n] = _mm512_permutexvar_epi16(_mm512_add_epi16(lanes, _mm512_set1_epi16((short)(8 * n))), s);
    }
    return o;
}

/* One block against one column.  Four products fit 16 bits (4 * 63 * 127). */
EBB_INLINE __m512i dot_q6(const unpacked *w, const uint8_t x[256])
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i sum = zero;

#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) {
        __m512i low = _mm512_dpbusd_epi32(zero, w->low[n], _mm512_load_si512(x + 128 * n)),
                up = _mm512_dpbusd_epi32(zero, w->up[n], _mm512_load_si512(x + 128 * n + 64));

        sum = _mm512_dpwssd_epi32(sum, _mm512_packs_epi32(low, up), w->scale[n]);
    }
    return sum;
}

EBB_INLINE void columns_q6(const ebb_line_args *p, size_t n, const __m512i scale[4])
{
    __m512i s[GEMV_COLS][16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        unpacked u;

        ebb_line_prefetch(p, i, 210);
        u = unpack_q6(p->w + 210 * (size_t)i);
        for (size_t c = 0; c < n; c++) {
            s[c][i] = dot_q6(&u, p->x[c].q + 256 * (p->b + (size_t)i));
            ebb_line_keep_order(&s[c][i]);
        }
    }
    for (size_t c = 0; c < n; c++)
        ebb_line_put(p->sum[c], _mm512_sub_epi32(ebb_sum16(s[c]),
                                                 _mm512_slli_epi32(ebb_line_dot_signed(scale, &p->x[c], p->b), 5)));
}

static void blocks_Q6_K(const ebb_line_args *p)
{
    ebb_half blocks = ebb_line_blocks(p->w, 210);
    __m512i scale[4];

    _mm512_storeu_ps(p->d, ebb_lanes_f16(_mm512_srli_epi32(ebb_half_gather(&blocks, 206), 16)));
    ebb_load_16x16(&blocks, 192, scale);
    switch (p->n_cols) {
    case 1: columns_q6(p, 1, scale); break;
    case 2: columns_q6(p, 2, scale); break;
    case 3: columns_q6(p, 3, scale); break;
    default: columns_q6(p, 4, scale); break;
    }
}

static void blocks_Q4_K(const ebb_line_args *p)
{
    blocks_k(p, false, 144);
}

static void blocks_Q5_K(const ebb_line_args *p)
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
