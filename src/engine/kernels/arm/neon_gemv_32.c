/* The types of blocks of 32 for NEON times few columns. */
#include "kernels/arm/neon_rows.h"

/* ---- the numbers of a block ---- */

INLINE int8x16x2_t numbers_Q8_0(const uint8_t *b)
{
    return (int8x16x2_t){ { vreinterpretq_s8_u8(vld1q_u8(b + 2)), vreinterpretq_s8_u8(vld1q_u8(b + 18)) } };
}

INLINE int8x16x2_t nibbles(const uint8_t *b)
{
    uint8x16_t v = vld1q_u8(b);

    return (int8x16x2_t){ { vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8(v, 4)) } };
}

INLINE int8x16x2_t numbers_Q4_0(const uint8_t *b) { return nibbles(b + 2); }
INLINE int8x16x2_t numbers_Q4_1(const uint8_t *b) { return nibbles(b + 4); }

/* 16 in byte i where bit i of a word is set, which stands in every 4 bytes; of its bytes `first` and the next. */
INLINE int8x16_t fifths(uint8x16_t word, int first)
{
    const uint8x16_t bits = vreinterpretq_u8_u64(vdupq_n_u64(UINT64_C(0x8040201008040201)));
    uint8x16_t bytes = vqtbl1q_u8(word, vcombine_u8(vdup_n_u8((uint8_t)first), vdup_n_u8((uint8_t)(first + 1))));

    return vreinterpretq_s8_u8(vandq_u8(vtstq_u8(bytes, bits), vdupq_n_u8(16)));
}

INLINE int8x16x2_t fives(const uint8_t *b)
{
    uint8x16_t word = vreinterpretq_u8_u32(vdupq_n_u32(ebb_u32_load(b)));
    int8x16x2_t q = nibbles(b + 4);

    return (int8x16x2_t){ { vorrq_s8(q.val[0], fifths(word, 0)), vorrq_s8(q.val[1], fifths(word, 2)) } };
}

INLINE int8x16x2_t numbers_Q5_0(const uint8_t *b) { return fives(b + 2); }
INLINE int8x16x2_t numbers_Q5_1(const uint8_t *b) { return fives(b + 4); }

INLINE int8x16x2_t numbers_IQ4_NL(const uint8_t *b) { return ebb_table_bytes(ebb_iq4_values, b + 2); }
INLINE int8x16x2_t numbers_MXFP4(const uint8_t *b)  { return ebb_table_bytes(ebb_mxfp4_values, b + 1); }

/* ---- their scales ---- */

INLINE float32x4_t half_0(const uint8_t *const w[ROWS], size_t at) { return load_halves(w, at); }
INLINE float32x4_t half_2(const uint8_t *const w[ROWS], size_t at) { return load_halves(w, at + 2); }

INLINE float32x4_t exponents(const uint8_t *const w[ROWS], size_t at)
{
    float d[ROWS];

    for (int i = 0; i < ROWS; i++)
        d[i] = ebb_mxfp4_scale(w[i][at]);
    return vld1q_f32(d);
}

#define TYPE(T, bytes, offset, d, m)                                     \
void ebb_neon_gemv_##T(const ebb_matmul *a)                              \
{                                                                        \
    FEW_LOOP(few_32, a, bytes, offset, numbers_##T, d, m)                \
}
TYPE(Q8_0, 34, 0, half_0, NULL)
TYPE(Q4_0, 18, 8, half_0, NULL)
TYPE(Q4_1, 20, 0, half_0, half_2)
TYPE(Q5_0, 22, 16, half_0, NULL)
TYPE(Q5_1, 24, 0, half_0, half_2)
TYPE(IQ4_NL, 18, 0, half_0, NULL)
TYPE(MXFP4, 17, 0, exponents, NULL)
