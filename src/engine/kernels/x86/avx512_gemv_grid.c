/* The signed grid types times up to four columns: points are gathered as they
 * are, unsigned, and their signs go to the activations as masks. */
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx512_gemv.h"

/* 64 elements of a block: their magnitudes, and which are negative. */
typedef struct points {
    __m512i   q;
    __mmask64 minus;
} points;

EBB_INLINE uint64_t load_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/* Seven bits in each byte; the eighth makes their number even. */
EBB_INLINE __mmask64 even_signs(uint64_t seven)
{
    uint64_t p = seven ^ seven >> 4;

    p ^= p >> 2;
    p ^= p >> 1;
    return seven | (p & UINT64_C(0x0101010101010101)) << 7;
}

/* Of two words with 4 x 7 signs each. */
EBB_INLINE __mmask64 word_signs(uint32_t first, uint32_t second)
{
    const uint64_t low = 0x0fffffff;

    return even_signs(_pdep_u64((first & low) | (second & low) << 28, UINT64_C(0x7f7f7f7f7f7f7f7f)));
}

EBB_INLINE __m512i gather_8(const uint64_t *grid, __m256i index)
{
    return _mm512_i32gather_epi64(index, grid, 8);
}

EBB_INLINE __m512i gather_16(const uint32_t *grid, __m512i index)
{
    return _mm512_i32gather_epi32(index, grid, 4);
}

EBB_INLINE __m256i widen_8(uint64_t bytes)
{
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
}

/* Elements 64i .. 64i + 63 of block b; kernels/quant_blocks_iq.h draws it. */
EBB_INLINE points load_points(const uint8_t *b, int i, ebb_type type)
{
    if (type == EBB_TYPE_IQ2_XXS) {
        const uint8_t *p = b + 2 + 16 * i;
        uint64_t index = ebb_u32_load(p) | (uint64_t)ebb_u32_load(p + 8) << 32;

        return (points){ gather_8(ebb_grid.iq2_xxs, widen_8(index)),
                         word_signs(ebb_u32_load(p + 4), ebb_u32_load(p + 12)) };
    }
    if (type == EBB_TYPE_IQ2_XS) {
        __m128i v = _mm_loadu_si128((const void *)(b + 2 + 16 * i)), signs = _mm_srli_epi16(v, 9);
        __m256i index = _mm256_cvtepu16_epi32(_mm_and_si128(v, _mm_set1_epi16(511)));

        return (points){ gather_8(ebb_grid.iq2_xs, index),
                         even_signs((uint64_t)_mm_cvtsi128_si64(_mm_packus_epi16(signs, signs))) };
    }
    if (type == EBB_TYPE_IQ2_S) {
        __m256i high = widen_8(_pdep_u64(ebb_u16_load(b + 66 + 2 * i), UINT64_C(0x0303030303030303)));
        __m256i index = _mm256_or_si256(widen_8(load_u64(b + 2 + 8 * i)), _mm256_slli_epi32(high, 8));

        return (points){ gather_8(ebb_grid.iq2_s, index), load_u64(b + 34 + 8 * i) };
    }
    __m512i index = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(b + 2 + 16 * i)));
    index = _mm512_mask_add_epi32(index, ebb_u16_load(b + 66 + 2 * i), index, _mm512_set1_epi32(256));
    return (points){ gather_16(ebb_grid.iq3_s, index), load_u64(b + 74 + 8 * i) };
}

/* 2s + 1 for each 16 elements, as words. */
EBB_INLINE __m256i load_scales(const uint8_t *b, ebb_type type)
{
    const __m128i low4 = _mm_set1_epi8(15);
    __m128i s;

    if (type == EBB_TYPE_IQ2_XXS) {
        s = _mm512_cvtepi64_epi8(_mm512_srli_epi64(_mm512_loadu_si512(b + 2), 60));
    } else {
        s = type == EBB_TYPE_IQ3_S ? _mm_cvtsi32_si128((int)ebb_u32_load(b + 106))
                                   : _mm_cvtsi64_si128((long long)load_u64(b + (type == EBB_TYPE_IQ2_XS ? 66 : 74)));
        s = _mm_and_si128(_mm_unpacklo_epi8(s, _mm_srli_epi16(s, 4)), low4);
    }
    if (type != EBB_TYPE_IQ2_XS && type != EBB_TYPE_IQ2_S)
        s = _mm_unpacklo_epi8(s, s);             /* one for 32 elements */
    __m256i wide = _mm256_cvtepu8_epi16(s);
    return _mm256_add_epi16(_mm256_add_epi16(wide, wide), _mm256_set1_epi16(1));
}

/* A block of a row, 64 elements at a time, and their scales as words. */
typedef struct unpacked {
    points  p[4];
    __m512i scale[4];
} unpacked;

EBB_INLINE unpacked unpack(const uint8_t *w, ebb_type type)
{
    const __m512i lane = _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_setr_m128i(_mm_set1_epi16(0), _mm_set1_epi16(1))),
        _mm256_setr_m128i(_mm_set1_epi16(2), _mm_set1_epi16(3)), 1);
    __m512i s = _mm512_castsi256_si512(load_scales(w, type));
    unpacked o;

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        o.p[i] = load_points(w, i, type);
        o.scale[i] = _mm512_permutexvar_epi16(_mm512_add_epi16(lane, _mm512_set1_epi16((short)(4 * i))), s);
    }
    return o;
}

/* Against one column: at most 2 * 43 * 127 in 16 bits. */
EBB_INLINE __m512i dot(const unpacked *u, const ebb_q8_256 *x)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i sum = zero;

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i v = _mm512_loadu_si512(x->q + 64 * i);

        v = _mm512_mask_sub_epi8(v, u->p[i].minus, zero, v);
        sum = _mm512_dpwssd_epi32(sum, _mm512_maddubs_epi16(u->p[i].q, v), u->scale[i]);
    }
    return sum;
}

/* 16 rows times n columns: to gather the points takes the time, and they serve all columns. */
EBB_INLINE void rows16(const ebb_matmul *a, size_t r, size_t n, ebb_type type, float unit, size_t bytes)
{
    const ebb_q8_256 *x[GEMV_COLS];
    __m512 acc[GEMV_COLS];
    ebb_half rows;

    for (size_t c = 0; c < n; c++) {
        x[c] = (const ebb_q8_256 *)((const char *)a->x + c * a->x_col_bytes);
        acc[c] = _mm512_setzero_ps();
    }
    ebb_half_rows(a, r, 0, &rows);
    for (size_t b = 0; b < a->n_k / 256; b++) {
        __m512 d = _mm512_mul_ps(ebb_lanes_f16(ebb_half_gather(&rows, b * bytes)), _mm512_set1_ps(unit));
        __m512i s[GEMV_COLS][16];

#pragma GCC unroll 1
        for (int i = 0; i < 16; i++) {
            unpacked u = unpack(rows.base + rows.offset[i] + b * bytes, type);

            for (size_t c = 0; c < n; c++)
                s[c][i] = dot(&u, x[c] + b);
        }
        for (size_t c = 0; c < n; c++)
            acc[c] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x[c][b].d)),
                                     _mm512_cvtepi32_ps(ebb_sum16(s[c])), acc[c]);
    }
    for (size_t c = 0; c < n; c++)
        _mm512_mask_storeu_ps(a->y + c * a->y_stride + r, ebb_row_mask(a->n_rows, r), acc[c]);
}

EBB_INLINE void gemv(const ebb_matmul *a, ebb_type type, float unit, size_t bytes)
{
    for (size_t r = 0; r < a->n_rows; r += 16)
        switch (a->n_cols) {
        case 1: rows16(a, r, 1, type, unit, bytes); break;
        case 2: rows16(a, r, 2, type, unit, bytes); break;
        case 3: rows16(a, r, 3, type, unit, bytes); break;
        default: rows16(a, r, 4, type, unit, bytes); break;
        }
}

#define TYPE(T, unit, bytes)                                     \
void ebb_avx512_gemv_##T(const ebb_matmul *a)                    \
{                                                                \
    gemv(a, EBB_TYPE_##T, unit, bytes);                          \
}
TYPE(IQ2_XXS, 0.125f, 66)
TYPE(IQ2_XS, 0.125f, 74)
TYPE(IQ2_S, 0.125f, 82)
TYPE(IQ3_S, 1.0f, 110)
