/* Q4_K, Q5_K, Q6_K, IQ4_XS and the types of blocks of 32 and of several parts for AVX2 (and AVX-VNNI) times one or two
 * columns, straight from the blocks: 8 rows at a time, each summed along its bytes; then the sums of 8 rows are added
 * into one register with rows in lanes, where the float chain of rule K2 runs. */
#include "kernels/quant_blocks.h"
#include "kernels/impl.h"
#include "kernels/x86/avx2_rows.h"
#include "kernels/x86/prefetch.h"

INLINE __m256i add_scaled(__m256i sum, __m256i w, const ebb_q8_256 *x, int sub, __m256i scales)
{
    return dot_add_words(sum, _mm256_maddubs_epi16(w, load_x(x, sub)), spread_word(scales, sub));
}

/* Bit `sub` of every byte, as bit 4. */
INLINE __m256i fifth(__m256i high, int sub)
{
    __m256i v = sub < 4 ? _mm256_slli_epi16(high, 4 - sub) : _mm256_srli_epi16(high, sub - 4);

    return _mm256_and_si256(v, _mm256_set1_epi8(16));
}

/* One block of Q4_K or (has_high) Q5_K against one column; x_sums: those of 32 elements, 8 words. */
INLINE void row_k(const uint8_t *w, const ebb_q8_256 *x, __m128i x_sums, bool has_high, __m256i *sum, __m256i *min_sum)
{
    const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x03030303u;
    const __m256i low4 = _mm256_set1_epi8(15);
    uint32_t a = ebb_u32_load(w + 4), b = ebb_u32_load(w + 8), c = ebb_u32_load(w + 12);
    uint64_t s = (a & six) | (uint64_t)((c & four) | (a >> 6 & two) << 4) << 32;
    uint64_t m = (b & six) | (uint64_t)((c >> 4 & four) | (b >> 6 & two) << 4) << 32;
    __m256i scales = _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)s)));
    __m256i high = has_high ? _mm256_loadu_si256((const void *)(w + 16)) : low4, total = _mm256_setzero_si256();
    const uint8_t *nibbles = w + (has_high ? 48 : 16);

#pragma GCC unroll 4
    for (int p = 0; p < 4; p++) {
        __m256i v = _mm256_loadu_si256((const void *)(nibbles + 32 * p));
        __m256i low = _mm256_and_si256(v, low4), up = _mm256_and_si256(_mm256_srli_epi16(v, 4), low4);

        if (has_high) {
            low = _mm256_or_si256(low, fifth(high, 2 * p));
            up = _mm256_or_si256(up, fifth(high, 2 * p + 1));
        }
        total = add_scaled(total, low, x, 2 * p, scales);
        total = add_scaled(total, up, x, 2 * p + 1, scales);
    }
    *sum = total;
    *min_sum = _mm256_zextsi128_si256(_mm_madd_epi16(_mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)m)), x_sums));
}

/* One block of Q6_K. */
INLINE __m256i row_q6(const uint8_t *w, const ebb_q8_256 *x)
{
    const __m256i low4 = _mm256_set1_epi8(15), bits = _mm256_set1_epi8(0x30);
    const __m128i even_odd = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    __m128i bytes = _mm_loadu_si128((const void *)(w + 192));
    __m256i scales = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, even_odd));
    __m256i fix = _mm256_madd_epi16(_mm256_cvtepi8_epi16(bytes), _mm256_loadu_si256((const void *)x->sum));
    __m256i sum = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(fix, 5));

#pragma GCC unroll 2
    for (int n = 0; n < 2; n++) {
        __m256i a = _mm256_loadu_si256((const void *)(w + 64 * n)),
                b = _mm256_loadu_si256((const void *)(w + 64 * n + 32));
        __m256i h = _mm256_loadu_si256((const void *)(w + 128 + 32 * n));

        sum = add_scaled(sum,
                         _mm256_or_si256(_mm256_and_si256(a, low4), _mm256_and_si256(_mm256_slli_epi16(h, 4), bits)), x,
                         4 * n, scales);
        sum = add_scaled(sum,
                         _mm256_or_si256(_mm256_and_si256(b, low4), _mm256_and_si256(_mm256_slli_epi16(h, 2), bits)), x,
                         4 * n + 1, scales);
        a = _mm256_and_si256(_mm256_srli_epi16(a, 4), low4);
        b = _mm256_and_si256(_mm256_srli_epi16(b, 4), low4);
        sum = add_scaled(sum, _mm256_or_si256(a, _mm256_and_si256(h, bits)), x, 4 * n + 2, scales);
        sum = add_scaled(sum, _mm256_or_si256(b, _mm256_and_si256(_mm256_srli_epi16(h, 2), bits)), x, 4 * n + 3,
                         scales);
    }
    return sum;
}

/* Sums of two neighbouring products; w signed, at most 2 * 128 * 127. */
INLINE __m256i signed_products(__m256i w, __m256i x)
{
    return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

/* Of each four bytes; w signed. */
INLINE __m256i dot_signed(__m256i w, __m256i x)
{
    return dot_bytes(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

/* The bytes that nibbles stand for. */
INLINE __m256i table_bytes(const int8_t values[16], const uint8_t *nibbles)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)values)),
                               ebb_nibbles(nibbles));
}

/* One block of IQ4_XS. */
INLINE __m256i row_iq4(const uint8_t *w, const ebb_q8_256 *x)
{
    uint64_t low = _pdep_u64(ebb_u32_load(w + 4), UINT64_C(0x0f0f0f0f0f0f0f0f));
    uint64_t high = _pdep_u64(ebb_u16_load(w + 2), UINT64_C(0x3030303030303030));
    __m128i six = _mm_sub_epi8(_mm_cvtsi64_si128((long long)(low | high)), _mm_set1_epi8(32));
    __m256i scales = _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(six)), sum = _mm256_setzero_si256();

#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        __m256i v = signed_products(table_bytes(ebb_iq4_values, w + 8 + 16 * i), load_x(x, i));

        sum = dot_add_words(sum, v, spread_word(scales, i));
    }
    return sum;
}

INLINE __m256 block_256(const uint8_t *const w[ROWS], size_t at, const ebb_q8_256 *x, ebb_type type, __m256 acc)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums = _mm256_madd_epi16(_mm256_loadu_si256((const void *)x->sum), ones), s[ROWS], m[ROWS];
    __m128i x_sums = _mm_packs_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    __m256 dx = _mm256_set1_ps(x->d);

#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        if (type == EBB_TYPE_Q6_K)
            s[i] = row_q6(w[i] + at, x);
        else if (type == EBB_TYPE_IQ4_XS)
            s[i] = row_iq4(w[i] + at, x);
        else
            row_k(w[i] + at, x, x_sums, type == EBB_TYPE_Q5_K, &s[i], &m[i]);
    }
    __m256 d = load_halves(w, at + (type == EBB_TYPE_Q6_K ? 208 : 0));
    __m256 sum = _mm256_cvtepi32_ps(sum8(s));
    if (type == EBB_TYPE_Q6_K || type == EBB_TYPE_IQ4_XS)
        return _mm256_fmadd_ps(_mm256_mul_ps(d, dx), sum, acc);
    sum = _mm256_fnmadd_ps(load_halves(w, at + 2), _mm256_cvtepi32_ps(sum8(m)), _mm256_mul_ps(d, sum));
    return _mm256_fmadd_ps(dx, sum, acc);
}

/* 32 bits of a fifth each, then nibbles. */
INLINE __m256i fives(const uint8_t *w)
{
    __m256i fifth_bit = _mm256_and_si256(byte_mask(_mm256_set1_epi32((int)ebb_u32_load(w))), _mm256_set1_epi8(16));

    return _mm256_or_si256(ebb_nibbles(w + 4), fifth_bit);
}

INLINE __m256i row_32(const uint8_t *w, __m256i x, ebb_type type)
{
    return type == EBB_TYPE_Q4_0     ? dot_bytes(ebb_nibbles(w + 2), x)
           : type == EBB_TYPE_Q4_1   ? dot_bytes(ebb_nibbles(w + 4), x)
           : type == EBB_TYPE_Q5_0   ? dot_bytes(fives(w + 2), x)
           : type == EBB_TYPE_Q5_1   ? dot_bytes(fives(w + 4), x)
           : type == EBB_TYPE_IQ4_NL ? dot_signed(table_bytes(ebb_iq4_values, w + 2), x)
           : type == EBB_TYPE_MXFP4  ? dot_signed(table_bytes(ebb_mxfp4_values, w + 1), x)
                                     : dot_signed(_mm256_loadu_si256((const void *)(w + 2)), x);
}

INLINE __m256 load_exponents(const uint8_t *const w[ROWS], size_t byte)
{
    float d[ROWS];

    for (int i = 0; i < ROWS; i++)
        d[i] = ebb_mxfp4_scale(w[i][byte]);
    return _mm256_loadu_ps(d);
}

INLINE __m256 block_32(const uint8_t *const w[ROWS], size_t at, const ebb_q8_32 *x, ebb_type type, __m256 acc)
{
    __m256i v = _mm256_loadu_si256((const void *)x->q), s[ROWS];
    __m256 d = type == EBB_TYPE_MXFP4 ? load_exponents(w, at) : load_halves(w, at), dx = _mm256_set1_ps(x->d);

#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
        s[i] = row_32(w[i] + at, v, type);
    __m256i sum = sum8(s);

    if (type == EBB_TYPE_Q4_0 || type == EBB_TYPE_Q5_0)
        sum = _mm256_sub_epi32(sum, _mm256_set1_epi32((type == EBB_TYPE_Q4_0 ? 8 : 16) * x->sum));
    acc = _mm256_fmadd_ps(_mm256_mul_ps(d, dx), _mm256_cvtepi32_ps(sum), acc);
    if (type == EBB_TYPE_Q4_1 || type == EBB_TYPE_Q5_1)
        acc = _mm256_fmadd_ps(_mm256_mul_ps(load_halves(w, at + 2), dx), _mm256_set1_ps((float)x->sum), acc);
    return acc;
}

/* ---- blocks of several parts ---- */

/* 64 bits: 32 numbers of 2, as bytes. */
INLINE __m256i twos(const uint8_t *w)
{
    const __m256i spread = _mm256_setr_epi32(0, 0x01010101, 0x02020202, 0x03030303, 0x04040404, 0x05050505, 0x06060606,
                                             0x07070707);
    __m256i v = _mm256_shuffle_epi8(
        _mm256_set1_epi64x((long long)((uint64_t)ebb_u32_load(w + 4) << 32 | ebb_u32_load(w))), spread);
    __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0x00300003)),
            high = _mm256_and_si256(v, _mm256_set1_epi32((int)0xc0000c00u));

    low = _mm256_or_si256(low, _mm256_srli_epi32(high, 2));      /* bytes 0 1 as they are, 2 3 four bits too high */
    return _mm256_and_si256(_mm256_or_si256(low, _mm256_srli_epi32(low, 4)), _mm256_set1_epi8(3));
}

/* 16 bytes: of each 8 the low nibbles, then the high ones, as what they stand for. */
INLINE __m256i fours(const uint8_t *w)
{
    __m128i v = _mm_loadu_si128((const void *)w), low = _mm_and_si128(v, _mm_set1_epi8(15));
    __m128i high = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
    __m256i q = _mm256_set_m128i(_mm_unpackhi_epi64(low, high), _mm_unpacklo_epi64(low, high));

    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)ebb_mxfp4_values)), q);
}

INLINE __m256i row_part(const uint8_t *w, size_t part, __m256i x, ebb_type type)
{
    const __m256i one = _mm256_set1_epi8(1);
    return type == EBB_TYPE_Q1_0
             ? dot_bytes(_mm256_and_si256(byte_mask(_mm256_set1_epi32((int)ebb_u32_load(w + 2 + 4 * part))), one), x)
         : type == EBB_TYPE_Q2_0 ? dot_bytes(twos(w + 2 + 8 * part), x)
                                 : dot_signed(fours(w + 4 + 16 * part), x);
}

/* Scale byte `byte` of 8 rows (ebb_nvfp4_scale): exponent and fraction stand as in a float, 2^119 too low. */
INLINE __m256 load_scales(const uint8_t *const w[ROWS], size_t byte)
{
    __m256i b = _mm256_setr_epi32(w[0][byte], w[1][byte], w[2][byte], w[3][byte], w[4][byte], w[5][byte], w[6][byte],
                                  w[7][byte]);
    __m256i code = _mm256_and_si256(b, _mm256_set1_epi32(127)), none = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(127));
    __m256 d = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_slli_epi32(code, 20)), _mm256_set1_ps(0x1p119f));

    return _mm256_andnot_ps(_mm256_castsi256_ps(none), d);
}

INLINE __m256 part_32(const uint8_t *const w[ROWS], size_t at, size_t part, const ebb_q8_32 *x, ebb_type type,
                      __m256 acc)
{
    __m256i v = _mm256_loadu_si256((const void *)x->q), s[ROWS], sum;
    __m256 dx = _mm256_set1_ps(x->d);

#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++)
        s[i] = row_part(w[i] + at, part, v, type);
    if (type == EBB_TYPE_NVFP4) {                /* the first 16 elements stand in the low lanes */
        __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
        __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));

        acc = _mm256_fmadd_ps(_mm256_mul_ps(load_scales(w, at + 2 * part), dx),
                              _mm256_cvtepi32_ps(_mm256_permute2x128_si256(a, b, 0x20)), acc);
        return _mm256_fmadd_ps(_mm256_mul_ps(load_scales(w, at + 2 * part + 1), dx),
                               _mm256_cvtepi32_ps(_mm256_permute2x128_si256(a, b, 0x31)), acc);
    }
    sum = sum8(s);
    if (type == EBB_TYPE_Q1_0)                   /* bits as 0 and 1 stand for -1 and 1 */
        sum = _mm256_add_epi32(sum, sum);
    sum = _mm256_sub_epi32(sum, _mm256_set1_epi32(x->sum));
    return _mm256_fmadd_ps(_mm256_mul_ps(load_halves(w, at), dx), _mm256_cvtepi32_ps(sum), acc);
}

/* ---- the product ---- */

enum { NEAR = 384 };             /* bytes that are on their way from the second cache */

/* Rows r .. r + 7 times column c; the rows behind them will be wanted next.  A block has len elements: 256, 32, or
 * several parts of 32. */
INLINE void rows8(const ebb_matmul *a, size_t r, size_t c, ebb_type type, size_t len, size_t bytes)
{
    const char *next = c > 0 ? NULL : r + ROWS < a->n_rows ? (const char *)row_at(a, r + ROWS) : a->next;
    const uint8_t *w[ROWS];
    __m256 acc = _mm256_setzero_ps();

    for (int i = 0; i < ROWS; i++)
        w[i] = row_at(a, r + (size_t)i);
    for (size_t b = 0; b < a->n_k / len; b++) {
        size_t at = b * bytes;

        for (int i = 0; i < ROWS; i++)
            _mm_prefetch((const char *)w[i] + at + NEAR, _MM_HINT_T0);
        if (next)
            ebb_fetch_quarters(next, ROWS * a->row_bytes, ROWS / 4 * at, ROWS / 4 * (at + bytes));
        if (len == 256)
            acc = block_256(w, at, (const ebb_q8_256 *)column(a, c) + b, type, acc);
        else if (len == 32)
            acc = block_32(w, at, (const ebb_q8_32 *)column(a, c) + b, type, acc);
        else
            for (size_t part = 0; part < len / 32; part++)
                acc = part_32(w, at, part, (const ebb_q8_32 *)column(a, c) + b * (len / 32) + part, type, acc);
    }
    _mm256_maskstore_ps(a->y + c * a->y_stride + r, row_mask(a, r), acc);
}

#define TYPE(T, len, bytes)                                      \
void EBB_YMM(gemv_##T)(const ebb_matmul *a)                      \
{                                                                \
    for (size_t r = 0; r < a->n_rows; r += ROWS)                 \
        for (size_t c = 0; c < a->n_cols; c++)                   \
            rows8(a, r, c, EBB_TYPE_##T, len, bytes);            \
}
TYPE(Q4_K, 256, 144)
TYPE(Q5_K, 256, 176)
TYPE(Q6_K, 256, 210)
TYPE(IQ4_XS, 256, 136)
TYPE(Q8_0, 32, 34)
TYPE(Q4_0, 32, 18)
TYPE(Q4_1, 32, 20)
TYPE(Q5_0, 32, 22)
TYPE(Q5_1, 32, 24)
TYPE(IQ4_NL, 32, 18)
TYPE(MXFP4, 32, 17)
TYPE(Q1_0, 128, 18)
TYPE(Q2_0, 64, 18)
TYPE(NVFP4, 64, 36)
