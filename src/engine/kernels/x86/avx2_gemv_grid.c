/* The types of grids for AVX2 (and AVX-VNNI) times few columns.  Points are loaded one by one, which is no slower than
 * a gather and on many CPUs faster; signs go to the activations. */
#include "kernels/impl.h"
#include "kernels/x86/avx2_few.h"

/* ---- points ---- */

/* Each is loaded to all places and blended, which needs no port for shuffles. */
INLINE __m256i points_of_8(const uint64_t *grid, unsigned a, unsigned b, unsigned c, unsigned d)
{
    __m256i low = _mm256_blend_epi32(_mm256_set1_epi64x((long long)grid[a]), _mm256_set1_epi64x((long long)grid[b]),
                                     0x0c);
    __m256i high = _mm256_blend_epi32(_mm256_set1_epi64x((long long)grid[c]), _mm256_set1_epi64x((long long)grid[d]),
                                      0xc0);

    return _mm256_blend_epi32(low, high, 0xf0);
}

#define POINT(j) _mm256_set1_epi32((int)grid[at[j]])
#define POINTS_OF_4(name, number)                                                                                \
INLINE __m256i name(const uint32_t *grid, const number *at)                                                      \
{                                                                                                                \
    __m256i a = _mm256_blend_epi32(POINT(0), POINT(1), 0x02), b = _mm256_blend_epi32(POINT(2), POINT(3), 0x08);  \
    __m256i c = _mm256_blend_epi32(POINT(4), POINT(5), 0x20), d = _mm256_blend_epi32(POINT(6), POINT(7), 0x80);  \
                                                                                                                 \
    return _mm256_blend_epi32(_mm256_blend_epi32(a, b, 0x0c), _mm256_blend_epi32(c, d, 0xc0), 0xf0);             \
}
POINTS_OF_4(points_of_4, uint8_t)
POINTS_OF_4(points_of_4_wide, uint16_t)
#undef POINTS_OF_4
#undef POINT

/* Numbers of points of a block that do not stand there as bytes. */
typedef struct numbers {
    uint16_t at[64];
} numbers;

/* 16 bytes and, per word of `high`, what is beyond them. */
INLINE void put_numbers(numbers *o, int i, const uint8_t *low, __m256i high)
{
    _mm256_storeu_si256((void *)(o->at + 16 * i),
                        _mm256_or_si256(_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)low)), high));
}

/* Each of 4 bytes as 4 words. */
INLINE __m256i bytes_for_4(uint32_t bytes)
{
    const __m256i order = _mm256_setr_epi64x(
        (long long)UINT64_C(0x8000800080008000), (long long)UINT64_C(0x8001800180018001),
        (long long)UINT64_C(0x8002800280028002), (long long)UINT64_C(0x8003800380038003));

    return _mm256_shuffle_epi8(_mm256_set1_epi32((int)bytes), order);
}

INLINE void load_numbers(const uint8_t *b, ebb_type type, numbers *o)
{
    const __m256i shift2 = _mm256_set1_epi64x(256 | 64LL << 16 | 16LL << 32 | 4LL << 48), bits = _mm256_set1_epi16(768);
    const __m256i one_bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
                                              -32768);

    if (type == EBB_TYPE_IQ2_XS)
        for (int i = 0; i < 2; i++)
            _mm256_storeu_si256(
                (void *)(o->at + 16 * i),
                _mm256_and_si256(_mm256_loadu_si256((const void *)(b + 2 + 32 * i)), _mm256_set1_epi16(511)));
    if (type == EBB_TYPE_IQ2_S)
        for (int i = 0; i < 2; i++)
            put_numbers(o, i, b + 2 + 16 * i,
                        _mm256_and_si256(_mm256_mullo_epi16(bytes_for_4(ebb_u32_load(b + 66 + 4 * i)), shift2), bits));
    if (type == EBB_TYPE_IQ3_S)
        for (int i = 0; i < 4; i++) {
            __m256i high = _mm256_and_si256(_mm256_set1_epi16((short)ebb_u16_load(b + 66 + 2 * i)), one_bit);

            put_numbers(o, i, b + 2 + 16 * i,
                        _mm256_and_si256(_mm256_cmpeq_epi16(high, one_bit), _mm256_set1_epi16(256)));
        }
}

/* They are read from memory, one by one: to take them out of a register costs shuffles. */
INLINE void keep_in_memory(numbers *o)
{
    __asm__("" : "+m"(*o));
}

/* Magnitudes of the elements 32s .. 32s + 31. */
INLINE __m256i load_points(const uint8_t *b, const numbers *o, int s, ebb_type type)
{
    const uint64_t *grid = type == EBB_TYPE_IQ2_XS ? ebb_grid.iq2_xs : ebb_grid.iq2_s;
    const uint16_t *at = o->at + 4 * s;
    const uint8_t *p = b + 2 + 8 * s;

    if (type == EBB_TYPE_IQ2_XXS)
        return points_of_8(ebb_grid.iq2_xxs, p[0], p[1], p[2], p[3]);
    if (type == EBB_TYPE_IQ3_XXS)
        return points_of_4(ebb_grid.iq3_xxs, p);
    if (type == EBB_TYPE_IQ3_S)
        return points_of_4_wide(ebb_grid.iq3_s, at + 4 * s);
    return points_of_8(grid, at[0], at[1], at[2], at[3]);
}

/* ---- signs and scales of the signed grids ---- */

/* Eight words of 4 x 7 signs and a scale. */
INLINE __m256i load_words(const uint8_t *b, ebb_type type)
{
    if (type == EBB_TYPE_IQ3_XXS)
        return _mm256_loadu_si256((const void *)(b + 66));
    __m256 low = _mm256_loadu_ps((const float *)(const void *)(b + 2)),
           high = _mm256_loadu_ps((const float *)(const void *)(b + 34));
    return _mm256_permute4x64_epi64(_mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd)), 0xd8);
}

/* 7 bits to a byte each. */
INLINE __m256i spread_sevens(__m256i words)
{
    __m256i a = _mm256_and_si256(words, _mm256_set1_epi32(0x7f));
    __m256i b = _mm256_and_si256(_mm256_slli_epi32(words, 1), _mm256_set1_epi32(0x7f00));
    __m256i c = _mm256_and_si256(_mm256_slli_epi32(words, 2), _mm256_set1_epi32(0x7f0000));
    __m256i d = _mm256_and_si256(_mm256_slli_epi32(words, 3), _mm256_set1_epi32(0x7f000000));

    return _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
}

/* The eighth sign of each byte makes their number even. */
INLINE __m256i even_signs(__m256i sevens)
{
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(sevens, 4), _mm256_set1_epi8(15));

    return _mm256_or_si256(sevens, _mm256_xor_si256(_mm256_shuffle_epi8(odd, sevens), _mm256_shuffle_epi8(odd, high)));
}

/* 32 bytes of signs: where they stand or, made, in `room`. */
INLINE const uint8_t *load_signs(const uint8_t *b, __m256i words, ebb_type type, uint8_t room[32])
{
    if (type == EBB_TYPE_IQ2_S || type == EBB_TYPE_IQ3_S)
        return b + (type == EBB_TYPE_IQ2_S ? 34 : 74);
    if (type == EBB_TYPE_IQ2_XS) {
        __m256i low = _mm256_srli_epi16(_mm256_loadu_si256((const void *)(b + 2)), 9);
        __m256i high = _mm256_srli_epi16(_mm256_loadu_si256((const void *)(b + 34)), 9);

        _mm256_storeu_si256((void *)room, even_signs(_mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8)));
    } else {
        _mm256_storeu_si256((void *)room, even_signs(spread_sevens(words)));
    }
    return room;
}

/* 2s + 1. */
INLINE __m256i odd_numbers(__m256i words)
{
    return _mm256_add_epi16(_mm256_add_epi16(words, words), _mm256_set1_epi16(1));
}

/* The scales of 32 elements at a time are spread_word(scales, s). */
INLINE __m256i load_scales(const uint8_t *b, __m256i words, ebb_type type)
{
    const __m128i low4 = _mm_set1_epi8(15);

    if (type == EBB_TYPE_IQ2_XXS || type == EBB_TYPE_IQ3_XXS) {
        __m256i s = _mm256_srli_epi32(words, 28);

        return odd_numbers(_mm256_permute4x64_epi64(_mm256_packus_epi32(s, s), 0x88));
    }
    __m128i s = type == EBB_TYPE_IQ3_S ? _mm_cvtsi32_si128((int)ebb_u32_load(b + 106))
                                       : _mm_loadl_epi64((const void *)(b + (type == EBB_TYPE_IQ2_XS ? 66 : 74)));
    __m256i wide = odd_numbers(_mm256_cvtepu8_epi16(_mm_and_si128(_mm_unpacklo_epi8(s, _mm_srli_epi16(s, 4)), low4)));
    /* one for 32 or for 16 */
    return type == EBB_TYPE_IQ3_S ? _mm256_permute2x128_si256(wide, wide, 0) : even_odd(wide);
}

/* One block: at most 2 * 62 * 127 in 16 bits. */
INLINE void row_signed(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], ebb_type type)
{
    const bool has_words = type == EBB_TYPE_IQ2_XXS || type == EBB_TYPE_IQ3_XXS;
    __m256i words = has_words ? load_words(w, type) : _mm256_setzero_si256(), scales = load_scales(w, words, type);
    uint8_t room[32];
    numbers o;
    const uint8_t *signs = load_signs(w, words, type, room);

    load_numbers(w, type, &o);
    keep_in_memory(&o);
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        sum[c] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int s = 0; s < 8; s++) {
        __m256i minus = byte_mask(_mm256_set1_epi32((int)ebb_u32_load(signs + 4 * s)));
        __m256i q = load_points(w, &o, s, type), scale = spread_word(scales, s);

#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
            __m256i v = _mm256_sub_epi8(_mm256_xor_si256(load_x(x[c], s), minus), minus);

            sum[c] = dot_add_words(sum[c], _mm256_maddubs_epi16(q, v), scale);
        }
    }
}

/* ---- IQ1 ---- */

/* sum += 8 * scale * point * x; scales are 8 times as large. */
INLINE void add_points(__m256i q, __m256i scale, few_x x, int s, const int n, __m256i sum[FEW_COLS])
{
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        sum[c] = dot_add_words(sum[c], _mm256_maddubs_epi16(q, load_x(x[c], s)), scale);
}

/* An element is 8 * point - 7, and 2 less in some sub-blocks: the constant goes to the sums of x. */
INLINE void row_IQ1_S(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS])
{
    __m128i v = _mm_loadu_si128((const void *)(w + 34)),
            scale = _mm_and_si128(_mm_srli_epi16(v, 12), _mm_set1_epi16(7));
    __m128i less = _mm_sub_epi16(_mm_set1_epi16(7), _mm_slli_epi16(_mm_srai_epi16(v, 15), 1));       /* 7 or 9 */

    (void)min_sum;
    scale = _mm_add_epi16(_mm_add_epi16(scale, scale), _mm_set1_epi16(1));
    less = _mm_mullo_epi16(less, scale);
    __m256i twice = _mm256_set_m128i(_mm_unpackhi_epi16(less, less), _mm_unpacklo_epi16(less, less));
    __m256i scales = _mm256_broadcastsi128_si256(_mm_slli_epi16(scale, 3));
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        sum[c] = _mm256_sub_epi32(_mm256_setzero_si256(), dot_sums(twice, x[c]));
#pragma GCC unroll 8
    for (int s = 0; s < 8; s++) {                /* of each word 3 bits for each of 4 points */
        unsigned high = ebb_u16_load(w + 34 + 2 * s);
        const uint8_t *p = w + 2 + 4 * s;
        __m256i q = points_of_8(ebb_grid.iq1, p[0] | (high << 8 & 1792), p[1] | (high << 5 & 1792),
                                p[2] | (high << 2 & 1792), p[3] | (high >> 1 & 1792));

        add_points(q, spread_word(scales, s), x, s, n, sum);
    }
}

/* Element less 9: 8 * point, and 2 more where its point is not less. */
INLINE void row_IQ1_M(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS])
{
    const uint64_t three = UINT64_C(0x0007000700070007);
    const __m256i byte = _mm256_setr_epi64x(0, 0, 0x0101010101010101, 0x0101010101010101), two = _mm256_set1_epi8(2);
    const __m256i bit = _mm256_broadcastsi128_si256(
        _mm_setr_epi32(0x08080808, 0x08080808, (int)0x80808080u, (int)0x80808080u));
    __m256i words = _mm256_setr_epi64x(
        (long long)_pdep_u64(ebb_u16_load(w + 48), three), (long long)_pdep_u64(ebb_u16_load(w + 50), three),
        (long long)_pdep_u64(ebb_u16_load(w + 52), three), (long long)_pdep_u64(ebb_u16_load(w + 54), three));

    (void)min_sum;
    words = odd_numbers(words);
    __m256i nine = _mm256_mullo_epi16(words, _mm256_set1_epi16(9)), scales = even_odd(words);
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        sum[c] = _mm256_sub_epi32(_mm256_setzero_si256(), dot_sums(nine, x[c]));
#pragma GCC unroll 8
    for (int s = 0; s < 8; s++) {                /* of each byte 3 bits for each of 2 points */
        unsigned high = ebb_u16_load(w + 32 + 2 * s);
        const uint8_t *p = w + 4 * s;
        __m256i q = points_of_8(ebb_grid.iq1, p[0] | (high << 8 & 1792), p[1] | (high << 4 & 1792),
                                p[2] | (high & 1792), p[3] | (high >> 4 & 1792));
        __m256i less = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi16((short)high), byte), bit);

        q = _mm256_or_si256(_mm256_slli_epi16(q, 3),
                            _mm256_and_si256(_mm256_cmpeq_epi8(less, _mm256_setzero_si256()), two));
        add_points(q, spread_word(scales, s), x, s, n, sum);
    }
}

/* The top four bits of four words. */
INLINE uint16_t top(const uint8_t *b)
{
    uint64_t words;

    memcpy(&words, b, sizeof words);
    return (uint16_t)_pext_u64(words, UINT64_C(0xf000f000f000f000));
}

INLINE __m256 scales_IQ1_M(const uint8_t *const w[ROWS], size_t at)
{
    float d[ROWS];

    for (int i = 0; i < ROWS; i++)
        d[i] = ebb_f16_to_f32(top(w[i] + at + 48));
    return _mm256_loadu_ps(d);
}

FEW_HALF(half_0, 0)

#define SIGNED(T, bytes, unit)                                                                                \
INLINE void row_##T(const uint8_t *w, few_x x, const int n, __m256i sum[FEW_COLS], __m256i min_sum[FEW_COLS]) \
{                                                                                                             \
    (void)min_sum;                                                                                            \
    row_signed(w, x, n, sum, EBB_TYPE_##T);                                                                   \
}                                                                                                             \
FEW_TYPE(T, bytes, unit, half_0, NULL)
SIGNED(IQ2_XXS, 66, 0.125f)
SIGNED(IQ2_XS, 74, 0.125f)
SIGNED(IQ2_S, 82, 0.125f)
SIGNED(IQ3_XXS, 98, 0.25f)
SIGNED(IQ3_S, 110, 1)
FEW_TYPE(IQ1_S, 50, 0.125f, half_0, NULL)
FEW_TYPE(IQ1_M, 56, 0.125f, scales_IQ1_M, NULL)
