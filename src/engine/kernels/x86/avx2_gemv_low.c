/* Q2_K, Q3_K and the ternary types for AVX2 (and AVX-VNNI) times few columns. */
#include "kernels/impl.h"
#include "kernels/x86/avx2_few.h"

/* 2-bit numbers: quarter r of half n are bits 2r+1..2r of 32 bytes. */
INLINE __m256i two_bits(__m256i v, int r)
{
    return _mm256_and_si256(r ? _mm256_srli_epi16(v, 2 * r) : v, _mm256_set1_epi8(3));
}

/* Sums of 32 products times the scales of both 16, `scales` in the order of even_odd. */
INLINE void add_16s(__m256i q, __m256i scale, few_x x, int sub, const int n, __m256i sum[FEW_COLS])
{
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        sum[c] = dot_add_words(sum[c], _mm256_maddubs_epi16(q, load_x(x[c], sub)), scale);
}

INLINE void row_Q2_K(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS])
{
    const __m128i low4 = _mm_set1_epi8(15);
    __m128i bytes = _mm_loadu_si128((const void *)w);
    __m256i mins = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(bytes, 4), low4));
    __m256i scales = even_odd(_mm256_cvtepu8_epi16(_mm_and_si128(bytes, low4)));

#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        sum[c] = _mm256_setzero_si256();
        min_sum[c] = dot_sums(mins, x[c]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        add_16s(two_bits(_mm256_loadu_si256((const void *)(w + 16 + i / 4 * 32)), i % 4), spread_word(scales, i), x, i,
                n, sum);
}

/* The 16 scales, less 32. */
INLINE __m256i scales_Q3_K(const uint8_t *s)
{
    const uint32_t two = 0x03030303u;
    uint32_t high = ebb_u32_load(s + 8);
    __m128i low = _mm_loadl_epi64((const void *)s);
    __m128i bits = _mm_setr_epi32((int)(high & two), (int)(high >> 2 & two), (int)(high >> 4 & two),
                                  (int)(high >> 6 & two));

    low = _mm_and_si128(_mm_unpacklo_epi64(low, _mm_srli_epi16(low, 4)), _mm_set1_epi8(15));
    return _mm256_cvtepi8_epi16(_mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(bits, 4)), _mm_set1_epi8(32)));
}

INLINE void row_Q3_K(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS])
{
    const __m256i bit2 = _mm256_set1_epi8(4);
    __m256i high = _mm256_loadu_si256((const void *)w), words = scales_Q3_K(w + 96), scales = even_odd(words);

    (void)min_sum;
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)                  /* numbers are 4 too many */
        sum[c] = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(dot_sums(words, x[c]), 2));
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        __m256i third = i < 2 ? _mm256_slli_epi16(high, 2 - i) : i > 2 ? _mm256_srli_epi16(high, i - 2) : high;
        __m256i low = two_bits(_mm256_loadu_si256((const void *)(w + 32 + i / 4 * 32)), i % 4);

        add_16s(_mm256_or_si256(low, _mm256_and_si256(third, bit2)), spread_word(scales, i), x, i, n, sum);
    }
}

/* Of a type without scales: products are added first (in 16 bits: at most 8 * 2 * 3 * 127). */
INLINE void add_flat(__m256i q, few_x x, int sub, const int n, __m256i sum[FEW_COLS])
{
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        __m256i v = load_x(x[c], sub);

        sum[c] = sub ? dot_more(sum[c], q, v) : dot_start(q, v);
    }
}

/* Numbers were 1 too many. */
INLINE void finish_flat(few_x x, const int n, __m256i sum[FEW_COLS])
{
    const __m256i one = _mm256_set1_epi16(1);

#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        sum[c] = _mm256_sub_epi32(dot_total(_mm256_setzero_si256(), sum[c]), dot_sums(one, x[c]));
}

INLINE void row_TQ2_0(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS])
{
    (void)min_sum;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        add_flat(two_bits(_mm256_loadu_si256((const void *)(w + i / 4 * 32)), i % 4), x, i, n, sum);
    finish_flat(x, n, sum);
}

/* The next digit of 32 fractions of 256 in base 3: how many of 1/3 and 2/3 they reach; and the fractions times 3. */
INLINE __m256i digit(__m256i rest)
{
    const __m256i third = _mm256_set1_epi8(86), thirds = _mm256_set1_epi8((char)171);
    __m256i one = _mm256_cmpeq_epi8(_mm256_max_epu8(rest, third), rest),
            two = _mm256_cmpeq_epi8(_mm256_max_epu8(rest, thirds), rest);

    return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(one, two));
}

INLINE __m256i times_3(__m256i v)
{
    return _mm256_add_epi8(_mm256_add_epi8(v, v), v);
}

/* Three groups: 5 digits of 32 bytes; of 16, of which two digits at a time fill 32 elements; and 4 digits of 4, which
 * stand beside the last digit of the 16. */
INLINE void row_TQ1_0(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS])
{
    const __m256i powers = _mm256_setr_epi16(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27),
                  low8 = _mm256_set1_epi16(255);
    __m256i v = _mm256_loadu_si256((const void *)w),
            b = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)(w + 32)));
    __m256i four = _mm256_cvtepu8_epi16(_mm_set1_epi32((int)ebb_u32_load(w + 48)));

    (void)min_sum;
#pragma GCC unroll 5
    for (int i = 0; i < 5; i++, v = times_3(v))
        add_flat(digit(v), x, i, n, sum);
    b = _mm256_blend_epi32(b, times_3(b), 0xf0);
    add_flat(digit(b), x, 5, n, sum);
    b = times_3(times_3(b));
    add_flat(digit(b), x, 6, n, sum);
    b = times_3(times_3(b));
    four = _mm256_and_si256(_mm256_mullo_epi16(four, powers), low8);
    four = _mm256_permute4x64_epi64(_mm256_packus_epi16(four, four), 0x88);      /* the 16 bytes in both lanes */
    add_flat(digit(_mm256_blend_epi32(b, four, 0xf0)), x, 7, n, sum);
    finish_flat(x, n, sum);
}

FEW_HALF(half_52, 52)
FEW_HALF(half_64, 64)
FEW_HALF(half_80, 80)
FEW_HALF(half_82, 82)
FEW_HALF(half_108, 108)

FEW_TYPE(Q2_K, 84, 1, half_80, half_82)
FEW_TYPE(Q3_K, 110, 1, half_108, NULL)
FEW_TYPE(TQ1_0, 54, 1, half_52, NULL)
FEW_TYPE(TQ2_0, 66, 1, half_64, NULL)
