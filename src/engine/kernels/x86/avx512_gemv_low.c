/* Q2_K, Q3_K, TQ2_0 and IQ4_XS times up to four columns; see avx512_gemv.h. */
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx512_line.h"

typedef struct head_low {
    __m512i d;                   /* floats; of Q2_K d and dmin as they stand */
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

EBB_INLINE __m512i floats_f16(__m512i v)
{
    return _mm512_castps_si512(ebb_lanes_f16(v));
}

EBB_INLINE __m512i masked(__m512i v, int shift, int bits)
{
    return _mm512_and_si512(_mm512_srlv_epi32(v, _mm512_set1_epi32(shift)), _mm512_set1_epi32(bits));
}

EBB_INLINE void load_head_Q2_K(const ebb_half *rows, size_t at, head_low *h)
{
    __m512i w[4];

    h->d = ebb_half_gather(rows, at + 80);
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
    h->d = floats_f16(_mm512_srli_epi32(w[3], 16));
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
    h->d = floats_f16(w[0]);
    __m512i high = _mm512_srli_epi32(w[0], 16);
    high = _mm512_and_si512(_mm512_or_si512(high, _mm512_slli_epi32(high, 8)), _mm512_set1_epi32(0x00ff00ff));
    high = _mm512_and_si512(_mm512_or_si512(high, _mm512_slli_epi32(high, 4)), _mm512_set1_epi32(four));
    for (int j = 0; j < 2; j++)
        h->scale[j] = _mm512_sub_epi8(
            _mm512_or_si512(masked(w[1], 4 * j, four), _mm512_slli_epi32(masked(high, 2 * j, two), 4)),
            _mm512_set1_epi8(32));
    h->scale[2] = h->scale[3] = _mm512_setzero_si512();
    store_scales(h);
}

/* A block of a row; vector r has the elements 32r .. 32r + 31 of both halves, and their scales as words. */
typedef struct unpacked_2bit {
    __m512i w[4], scale[4];
} unpacked_2bit;

/* `high`: the third bits of Q3_K, or NULL; `scales`: 16 words, or NULL. */
EBB_INLINE unpacked_2bit unpack_2bit(const uint8_t *numbers, const uint8_t *high, const __m256i *scales)
{
    const __m512i two = _mm512_set1_epi8(3), bit2 = _mm512_set1_epi8(4);
    const __m512i lane = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_setr_m128i(_mm_set1_epi16(0), _mm_set1_epi16(1))),
        _mm256_setr_m128i(_mm_set1_epi16(8), _mm_set1_epi16(9)), 1);
    __m512i v = _mm512_loadu_si512(numbers), h = v;
    unpacked_2bit o;

    if (high) {
        __m256i bits = _mm256_loadu_si256((const void *)high);

        h = _mm512_inserti64x4(_mm512_castsi256_si512(bits), _mm256_srli_epi16(bits, 4), 1);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        o.w[r] = _mm512_and_si512(r ? _mm512_srli_epi16(v, 2 * (unsigned)r) : v, two);
        if (high) {
            __m512i at2 = r < 2 ? _mm512_slli_epi16(h, 2 - (unsigned)r) : r > 2 ? _mm512_srli_epi16(h, 1) : h;
            o.w[r] = _mm512_ternarylogic_epi64(o.w[r], at2, bit2, 0xf8);         /* a | b & c */
        }
        o.scale[r] = scales ? _mm512_permutexvar_epi16(_mm512_add_epi16(lane, _mm512_set1_epi16((short)(2 * r))),
                                                       _mm512_castsi256_si512(*scales))
                            : v;
    }
    return o;
}

EBB_INLINE __m512i dot_2bit(const unpacked_2bit *u, bool has_scales, const uint8_t x[256])
{
    __m512i sum = _mm512_setzero_si512();

#pragma GCC unroll 4
    for (int r = 0; r < 4; r++) {
        __m512i v = _mm512_load_si512(x + 64 * r);

        sum = has_scales ? _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(u->w[r], v), u->scale[r])
                         : _mm512_dpbusd_epi32(sum, u->w[r], v);
    }
    return sum;
}

EBB_INLINE unpacked_2bit unpack_low(const uint8_t *w, const uint8_t *scales, ebb_type type)
{
    __m256i wide = _mm256_cvtepi8_epi16(_mm_load_si128((const void *)scales));

    if (type == EBB_TYPE_TQ2_0)
        return unpack_2bit(w, NULL, NULL);
    return unpack_2bit(w + (type == EBB_TYPE_Q2_K ? 16 : 32), type == EBB_TYPE_Q2_K ? NULL : w, &wide);
}

EBB_INLINE void load_head(const ebb_half *blocks, head_low *h, ebb_type type)
{
    if (type == EBB_TYPE_Q2_K)
        load_head_Q2_K(blocks, 0, h);
    else if (type == EBB_TYPE_Q3_K)
        load_head_Q3_K(blocks, 0, h);
    else
        h->d = floats_f16(_mm512_srli_epi32(ebb_half_gather(blocks, 62), 16));
}

/* 16 blocks times n columns: what was unpacked serves them all.  What comes is fetched. */
EBB_INLINE void columns_2bit(const ebb_line_args *p, size_t n, const head_low *h, ebb_type type, size_t bytes)
{
    __m512i s[GEMV_COLS][16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        unpacked_2bit u;

        ebb_line_prefetch(p, i, bytes);
        u = unpack_low(p->w + (size_t)i * bytes, scale_row(h, i), type);
        for (size_t c = 0; c < n; c++) {
            s[c][i] = dot_2bit(&u, type != EBB_TYPE_TQ2_0, p->x[c].q + 256 * (p->b + (size_t)i));
            ebb_line_keep_order(&s[c][i]);
        }
    }
    for (size_t c = 0; c < n; c++) {
        __m512i sum = ebb_sum16(s[c]);

        if (type == EBB_TYPE_Q3_K)
            sum = _mm512_sub_epi32(sum, _mm512_slli_epi32(ebb_line_dot_signed(h->scale, &p->x[c], p->b), 2));
        if (type == EBB_TYPE_TQ2_0)
            sum = _mm512_sub_epi32(sum, ebb_line_at(p->x[c].total, p->b));
        if (type == EBB_TYPE_Q2_K)
            ebb_line_put_min(p->sum[c], h->d, sum, ebb_line_dot(h->min, 4, &p->x[c], p->b));
        else
            ebb_line_put(p->sum[c], sum);
    }
}

EBB_INLINE void blocks_2bit(const ebb_line_args *p, ebb_type type, size_t bytes)
{
    ebb_half blocks = ebb_line_blocks(p->w, bytes);
    head_low h;

    load_head(&blocks, &h, type);
    if (type != EBB_TYPE_Q2_K)
        _mm512_storeu_si512(p->d, h.d);
    switch (p->n_cols) {
    case 1: columns_2bit(p, 1, &h, type, bytes); break;
    case 2: columns_2bit(p, 2, &h, type, bytes); break;
    case 3: columns_2bit(p, 3, &h, type, bytes); break;
    default: columns_2bit(p, 4, &h, type, bytes); break;
    }
}

static void order_2bit(const ebb_q8_256 *x, uint8_t out[256])
{
    ebb_line_order(x, (const int[]){ 0, 1, 2, 3 }, 4, out);
}

/* 64 values twice: low the sub-blocks' first halves, up their second ones; values are 128 too many. */
typedef struct unpacked_iq4 {
    __m512i low[2], up[2], scale[2];
} unpacked_iq4;

EBB_INLINE unpacked_iq4 unpack_iq4(const uint8_t *w, const uint8_t *scales, __m512i table)
{
    const __m512i low4 = _mm512_set1_epi8(15);
    const int none = 0x808080;
    const __m512i first = _mm512_setr_epi32(
        none, none, none, none, none | 4 << 24, none | 4 << 24, none | 4 << 24, none | 4 << 24, none | 1 << 24,
        none | 1 << 24, none | 1 << 24, none | 1 << 24, none | 5 << 24, none | 5 << 24, none | 5 << 24, none | 5 << 24);
    __m512i s = _mm512_broadcast_i32x4(_mm_load_si128((const void *)scales));
    unpacked_iq4 o;

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i v = _mm512_loadu_si512(w + 8 + 64 * i);

        o.low[i] = _mm512_shuffle_epi8(table, _mm512_and_si512(v, low4));
        o.up[i] = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(v, 4), low4));
        o.scale[i] = _mm512_srai_epi32(_mm512_shuffle_epi8(s, _mm512_add_epi32(first, _mm512_set1_epi32(i << 25))), 24);
    }
    return o;
}

/* Sums of the values' 128 too many start the products; then no 16 bits hold them, so scales multiply in 32. */
EBB_INLINE __m512i dot_iq4(const unpacked_iq4 *u, const uint8_t x[256])
{
    const __m512i many = _mm512_set1_epi8(-128), zero = _mm512_setzero_si512();
    __m512i sum = zero;

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m512i x0 = _mm512_load_si512(x + 128 * i), x1 = _mm512_load_si512(x + 128 * i + 64);
        __m512i start = _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, many, x0), many, x1));

        sum = _mm512_add_epi32(sum, _mm512_mullo_epi32(
            _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(start, u->low[i], x0), u->up[i], x1), u->scale[i]));
    }
    return sum;
}

EBB_INLINE void columns_iq4(const ebb_line_args *p, size_t n, const head_low *h, __m512i table)
{
    __m512i s[GEMV_COLS][16];

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        unpacked_iq4 u;

        ebb_line_prefetch(p, i, 136);
        u = unpack_iq4(p->w + 136 * (size_t)i, scale_row(h, i), table);
        for (size_t c = 0; c < n; c++) {
            s[c][i] = dot_iq4(&u, p->x[c].q + 256 * (p->b + (size_t)i));
            ebb_line_keep_order(&s[c][i]);
        }
    }
    for (size_t c = 0; c < n; c++)
        ebb_line_put(p->sum[c], ebb_sum16(s[c]));
}

static void blocks_IQ4_XS(const ebb_line_args *p)
{
    __m512i table = _mm512_add_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const void *)ebb_iq4_values)),
                                    _mm512_set1_epi8(-128));
    ebb_half blocks = ebb_line_blocks(p->w, 136);
    head_low h;

    load_head_IQ4_XS(&blocks, 0, &h);
    _mm512_storeu_si512(p->d, h.d);
    switch (p->n_cols) {
    case 1: columns_iq4(p, 1, &h, table); break;
    case 2: columns_iq4(p, 2, &h, table); break;
    case 3: columns_iq4(p, 3, &h, table); break;
    default: columns_iq4(p, 4, &h, table); break;
    }
}

/* The first 16 and the last 16 of four sub-blocks. */
static void order_iq4(const ebb_q8_256 *x, uint8_t out[256])
{
    for (int i = 0; i < 2; i++) {
        __m512i v = _mm512_loadu_si512(x->q + 128 * i), next = _mm512_loadu_si512(x->q + 128 * i + 64);

        _mm512_store_si512(out + 128 * i, _mm512_shuffle_i32x4(v, next, 0x88));
        _mm512_store_si512(out + 128 * i + 64, _mm512_shuffle_i32x4(v, next, 0xdd));
    }
}

#define TYPE(T, bytes, has_min)                                  \
static void blocks_##T(const ebb_line_args *p)                   \
{                                                                \
    blocks_2bit(p, EBB_TYPE_##T, bytes);                         \
}                                                                \
void ebb_avx512_gemv_##T(const ebb_matmul *a)                    \
{                                                                \
    ebb_line(a, &(ebb_line_kind){ bytes, has_min, false, order_2bit, blocks_##T }); \
}
TYPE(Q2_K, 84, true)
TYPE(Q3_K, 110, false)
TYPE(TQ2_0, 66, false)

void ebb_avx512_gemv_IQ4_XS(const ebb_matmul *a)
{
    ebb_line(a, &(ebb_line_kind){ 136, false, false, order_iq4, blocks_IQ4_XS });
}
