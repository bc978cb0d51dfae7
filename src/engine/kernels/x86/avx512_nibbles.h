/* x86/avx512_nibbles.h - the blocks of 32 whose numbers are 16 nibble bytes, read
 * with rows in lanes. */
#ifndef EBB_KERNELS_AVX512_NIBBLES_H
#define EBB_KERNELS_AVX512_NIBBLES_H
#include "kernels/x86/avx512_tile.h"

static inline __m512i low_nibbles(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

static inline __m512i high_nibbles(__m512i v)
{
    return low_nibbles(_mm512_srli_epi16(v, 4));
}

/* 16 bytes each of four blocks, the first at `at`; blocks past the n-th repeat it. */
static inline __attribute__((always_inline)) void load_4x16(const ebb_half *rows, size_t at,
                                                            size_t n, size_t block_bytes,
                                                            __m512i t[16])
{
    size_t second = n > 1 ? block_bytes : 0, third = n > 2 ? 2 * block_bytes : 0,
           fourth = n > 3 ? 3 * block_bytes : 0;

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const uint8_t *p = rows->base + rows->offset[i] + at;
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));

        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + second)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + third)), 2);
        t[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(p + fourth)), 3);
    }
    ebb_transpose16(t);
}

/* Bit 4g + j of each lane becomes bit 4 of byte j. */
static inline __m512i fifth_bits(__m512i high, int g)
{
    __m512i four = _mm512_and_si512(_mm512_srlv_epi32(high, _mm512_set1_epi32(4 * g)),
                                    _mm512_set1_epi32(15));
    __m512i spread = _mm512_mullo_epi32(four, _mm512_set1_epi32(0x00204081));

    return _mm512_slli_epi32(_mm512_and_si512(spread, _mm512_set1_epi32(0x01010101)), 4);
}

/* d (and m) of 16 rows from what stands at the start of their blocks. */
typedef enum head { HEAD_D, HEAD_D_M, HEAD_E } head;

static inline __m512 lanes_e8(__m512i v)
{
    __m512i e = _mm512_and_si512(v, _mm512_set1_epi32(255));
    __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __m512i bits = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);

    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(bits, _mm512_cmplt_epu32_mask(e, _mm512_set1_epi32(2)), tiny));
}

/* Where the nibbles stand. */
static inline size_t nibbles_at(head kind, int has_high)
{
    return (kind == HEAD_D ? 2u : kind == HEAD_D_M ? 4u : 1u) + (has_high ? 4u : 0u);
}

static inline __m512i table_of(const int8_t values[16], int offset)
{
    __m512i v = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)values));

    return _mm512_add_epi8(v, _mm512_set1_epi8((char)offset));
}

#endif
