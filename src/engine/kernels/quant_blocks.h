/* kernels/quant_blocks.h - the blocks of the quantized types, and how to read them.
 *
 * Every type of blocks of 32 decodes to   w[i] = d * q[i] + m,
 * every type of blocks of 256 to          w[i] = d * scale[i / 16] * q[i] - dmin * min[i / 16],
 * with small integers q, scale and min.  These two forms are what the kernels
 * compute with (rule K2), so a new type is one decoder and one row of a table.
 * Some types have larger blocks that are several of 32 ("parts"), with no m; of NVFP4 each half of
 * a part has a scale of its own, d the first 16 elements, m the others.
 *
 * In the diagrams a block is drawn byte after byte; all numbers are little
 * endian; "lo" is the low nibble of a byte and "hi" the high one.  A half is
 * an IEEE binary16. */
#ifndef EBB_KERNELS_BLOCKS_H
#define EBB_KERNELS_BLOCKS_H
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#include "kernels/number.h"

typedef struct ebb_block32 {
    float  d, m;
    int8_t q[32];
} ebb_block32;

typedef struct ebb_block256 {
    float   d, dmin;
    int16_t scale[16], min[16];  /* one for each 16 elements */
    int8_t  q[256];
} ebb_block256;

/* name, offset so that q + offset >= 0 (the unsigned operand of SIMD products), has m / min */
#define EBB_TYPES_32(X)  X(Q8_0, 128, 0) X(Q4_0, 8, 0) X(Q4_1, 0, 1) X(Q5_0, 16, 0) X(Q5_1, 0, 1) \
                         X(IQ4_NL, 128, 0) X(MXFP4, 12, 0)
#define EBB_TYPES_256(X) X(Q2_K, 0, 1) X(Q3_K, 4, 0) X(Q4_K, 0, 1) X(Q5_K, 0, 1) X(Q6_K, 32, 0) \
                         X(IQ4_XS, 128, 0) X(TQ1_0, 1, 0) X(TQ2_0, 1, 0) X(IQ1_S, 9, 0)          \
                         X(IQ1_M, 9, 0) X(IQ2_XXS, 43, 0) X(IQ2_XS, 43, 0) X(IQ2_S, 43, 0)      \
                         X(IQ3_XXS, 62, 0) X(IQ3_S, 15, 0)

/* name, parts of a block, offset, whether the halves of a part have scales of their own */
#define EBB_TYPES_PARTS(X) X(Q1_0, 4, 1, 0) X(Q2_0, 2, 1, 0) X(NVFP4, 2, 12, 1)

/*      0    2                  34
 * Q8_0 | d  | 32 x int8 q      |          d: half */
static inline void ebb_decode_Q8_0(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = 0;
    memcpy(o->q, b + 2, 32);
}

/* 16 bytes: element i is lo of byte i, element 16 + i its hi; as they are less `offset`, or as
 * indices of a table.  (The forms of each compute the same.) */
#if defined(__AVX2__)
static inline __m256i ebb_nibbles(const uint8_t *b)
{
    __m128i v = _mm_loadu_si128((const void *)b);

    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), _mm256_set1_epi8(15));
}

static inline void ebb_decode_nibbles(const uint8_t *restrict b, int offset, int8_t *restrict q)
{
    _mm256_storeu_si256((void *)q, _mm256_sub_epi8(ebb_nibbles(b), _mm256_set1_epi8((char)offset)));
}

static inline void ebb_decode_table(const uint8_t *restrict b, const int8_t values[16],
                                    int8_t *restrict q)
{
    __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)values));

    _mm256_storeu_si256((void *)q, _mm256_shuffle_epi8(table, ebb_nibbles(b)));
}
#elif defined(__ARM_FEATURE_DOTPROD)
static inline int8x16x2_t ebb_table_bytes(const int8_t values[16], const uint8_t *b)
{
    int8x16_t table = vld1q_s8(values);
    uint8x16_t v = vld1q_u8(b);

    return (int8x16x2_t){ { vqtbl1q_s8(table, vandq_u8(v, vdupq_n_u8(15))),
                            vqtbl1q_s8(table, vshrq_n_u8(v, 4)) } };
}

static inline void ebb_decode_nibbles(const uint8_t *restrict b, int offset, int8_t *restrict q)
{
    uint8x16_t v = vld1q_u8(b), less = vdupq_n_u8((uint8_t)offset);

    vst1q_s8(q, vreinterpretq_s8_u8(vsubq_u8(vandq_u8(v, vdupq_n_u8(15)), less)));
    vst1q_s8(q + 16, vreinterpretq_s8_u8(vsubq_u8(vshrq_n_u8(v, 4), less)));
}

static inline void ebb_decode_table(const uint8_t *restrict b, const int8_t values[16],
                                    int8_t *restrict q)
{
    int8x16x2_t v = ebb_table_bytes(values, b);

    vst1q_s8(q, v.val[0]);
    vst1q_s8(q + 16, v.val[1]);
}
#else
static inline void ebb_decode_nibbles(const uint8_t *restrict b, int offset, int8_t *restrict q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t)((b[i] & 15) - offset);
        q[16 + i] = (int8_t)((b[i] >> 4) - offset);
    }
}

static inline void ebb_decode_table(const uint8_t *restrict b, const int8_t values[16],
                                    int8_t *restrict q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = values[b[i] & 15];
        q[16 + i] = values[b[i] >> 4];
    }
}
#endif

/*      0    2                          18
 * Q4_0 | d  | 16 x (lo: i, hi: 16 + i) |       w = d (q - 8) */
static inline void ebb_decode_Q4_0(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = 0;
    ebb_decode_nibbles(b + 2, 8, o->q);
}

/*      0    2    4                          20
 * Q4_1 | d  | m  | 16 x (lo: i, hi: 16 + i) |  w = d q + m */
static inline void ebb_decode_Q4_1(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = ebb_f16_load(b + 2);
    ebb_decode_nibbles(b + 4, 0, o->q);
}

/* Nibbles, and the fifth bit of element i as bit i of a 32-bit word before them. */
static inline void ebb_decode_fives(const uint8_t *restrict b, int offset, int8_t *restrict q)
{
    uint32_t high = ebb_u32_load(b);

    ebb_decode_nibbles(b + 4, offset, q);
    for (int i = 0; i < 32; i++)
        q[i] = (int8_t)(q[i] + (int)(high >> i & 1) * 16);
}

/*      0    2            6                          22
 * Q5_0 | d  | high bits  | 16 x (lo: i, hi: 16 + i) |       w = d (q - 16) */
static inline void ebb_decode_Q5_0(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = 0;
    ebb_decode_fives(b + 2, 16, o->q);
}

/*      0    2    4            8                          24
 * Q5_1 | d  | m  | high bits  | 16 x (lo: i, hi: 16 + i) |  w = d q + m */
static inline void ebb_decode_Q5_1(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = ebb_f16_load(b + 2);
    ebb_decode_fives(b + 4, 0, o->q);
}

/* The 12 bytes with eight 6-bit scales s and eight 6-bit minima m of Q4_K and Q5_K:
 *
 *   byte 0..3    | s[4+i] bits 5-4 | s[i] |
 *   byte 4..7    | m[4+i] bits 5-4 | m[i] |
 *   byte 8..11   | m[4+i] bits 3-0 | s[4+i] bits 3-0 |
 *
 * Each belongs to 32 elements, so it fills two of the 16 entries. */
static inline void ebb_decode_scales_k(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x03030303u;
    uint32_t w[3] = { ebb_u32_load(b), ebb_u32_load(b + 4), ebb_u32_load(b + 8) };
    uint32_t s[2] = { w[0] & six, (w[2] & four) | (w[0] >> 6 & two) << 4 };
    uint32_t m[2] = { w[1] & six, (w[2] >> 4 & four) | (w[1] >> 6 & two) << 4 };
    uint8_t scale[8], min[8];

    memcpy(scale, s, sizeof scale);
    memcpy(min, m, sizeof min);
    for (int i = 0; i < 16; i++) {
        o->scale[i] = scale[i / 2];
        o->min[i] = min[i / 2];
    }
}

/*      0    2      4         16                                      144
 * Q4_K | d  | dmin | scales  | 4 x 32 bytes: part p holds in byte i   |
 *      |    |      |         |   lo: element 64p + i, hi: 64p + 32 + i|
 * w = d s q - dmin m */
static inline void ebb_decode_Q4_K(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->dmin = ebb_f16_load(b + 2);
    ebb_decode_scales_k(b + 4, o);
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < 32; i++) {
            uint8_t v = b[16 + 32 * p + i];

            o->q[64 * p + i] = (int8_t)(v & 15);
            o->q[64 * p + 32 + i] = (int8_t)(v >> 4);
        }
}

/*      0    2      4         16            48                   176
 * Q5_K | d  | dmin | scales  | 32 x high   | nibbles as in Q4_K |
 * Bit s of high byte i is the fifth bit of element 32s + i. */
static inline void ebb_decode_Q5_K(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->dmin = ebb_f16_load(b + 2);
    ebb_decode_scales_k(b + 4, o);
    for (int p = 0; p < 4; p++)
        for (int i = 0; i < 32; i++) {
            uint8_t v = b[48 + 32 * p + i], h = b[16 + i];

            o->q[64 * p + i] = (int8_t)((v & 15) | (h >> 2 * p & 1) << 4);
            o->q[64 * p + 32 + i] = (int8_t)(v >> 4 | (h >> (2 * p + 1) & 1) << 4);
        }
}

/*      0               128           192              208  210
 * Q6_K | low 4 bits    | high 2 bits | 16 x int8 scale | d |
 * Halves of 128 elements (n = 0, 1), quarters of 32 (r = 0..3); element 128n + 32r + i has
 *   low bits:  byte 64n + 32 (r & 1) + i of the first part, lo if r < 2, else hi
 *   high bits: bits 2r+1..2r of byte 32n + i of the second
 * w = d s (q - 32) */
static inline void ebb_decode_Q6_K(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    o->d = ebb_f16_load(b + 208);
    o->dmin = 0;
    for (int j = 0; j < 16; j++) {
        o->scale[j] = (int8_t)b[192 + j];
        o->min[j] = 0;
    }
    for (int n = 0; n < 2; n++)
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 32; i++) {
                int low = b[64 * n + 32 * (r & 1) + i] >> (r < 2 ? 0 : 4) & 15;
                int high = b[128 + 32 * n + i] >> 2 * r & 3;

                o->q[128 * n + 32 * r + i] = (int8_t)((low | high << 4) - 32);
            }
}

/* The 16 values of the non-linear 4-bit types, denser around zero. */
static const int8_t ebb_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113 };

/*        0    2                          18
 * IQ4_NL | d  | 16 x (lo: i, hi: 16 + i) |     w = d values[q] */
static inline void ebb_decode_IQ4_NL(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = 0;
    ebb_decode_table(b + 2, ebb_iq4_values, o->q);
}

/* Twice the values of a 4-bit float: sign 1, exponent 2, fraction 1 (OCP Microscaling Formats 1.0,
 * 5.3.3). */
static const int8_t ebb_mxfp4_values[16] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
};

/* 2^(e - 128): half the scale that the byte stands for (same, 5.4.1). */
static inline float ebb_mxfp4_scale(uint8_t e)
{
    return ebb_from_bits(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

/*       0    1                          17
 * MXFP4 | e  | 16 x (lo: i, hi: 16 + i) |      w = 2^(e - 127) values[q] / 2 */
static inline void ebb_decode_MXFP4(const uint8_t *restrict b, ebb_block32 *restrict o)
{
    o->d = ebb_mxfp4_scale(b[0]);
    o->m = 0;
    ebb_decode_table(b + 1, ebb_mxfp4_values, o->q);
}

/* The scale of NVFP4: 4 bits of exponent, 3 of fraction, no sign (OCP FP8 E4M3 without it); 127 is
 * no number and counts as 0; half of it, as the values are twice theirs. */
static inline float ebb_nvfp4_scale(uint8_t b)
{
    uint32_t e = b >> 3 & 15, f = b & 7;

    if ((b & 127) == 127)
        return 0;
    return e ? ebb_from_bits((e + 119) << 23 | f << 20) : (float)f * ebb_from_bits(117u << 23);
}

/*       0           4                                                  36
 * NVFP4 | 4 scales  | 4 x 8 bytes (lo: i, hi: 8 + i), 16 elements each |
 * w = scale values[q] / 2 */
static inline void ebb_decode_NVFP4(const uint8_t *restrict b, size_t part, ebb_block32 *restrict o)
{
    o->d = ebb_nvfp4_scale(b[2 * part]);
    o->m = ebb_nvfp4_scale(b[2 * part + 1]);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 8; i++) {
            uint8_t v = b[4 + 16 * part + 8 * (size_t)h + (size_t)i];

            o->q[16 * h + i] = ebb_mxfp4_values[v & 15];
            o->q[16 * h + 8 + i] = ebb_mxfp4_values[v >> 4];
        }
}

/*      0    2           18
 * Q1_0 | d  | 128 bits  |      bit j of byte i: element 8i + j.  w = d where it is set, else -d */
static inline void ebb_decode_Q1_0(const uint8_t *restrict b, size_t part, ebb_block32 *restrict o)
{
    uint32_t bits = ebb_u32_load(b + 2 + 4 * part);

    o->d = ebb_f16_load(b);
    o->m = 0;
    for (int i = 0; i < 32; i++)
        o->q[i] = (int8_t)((int)(bits >> i & 1) * 2 - 1);
}

/*      0    2               18
 * Q2_0 | d  | 64 x 2 bits   |  bits 2j+1..2j of byte i: element 4i + j.  w = d (q - 1) */
static inline void ebb_decode_Q2_0(const uint8_t *restrict b, size_t part, ebb_block32 *restrict o)
{
    o->d = ebb_f16_load(b);
    o->m = 0;
    for (int i = 0; i < 32; i++)
        o->q[i] = (int8_t)((b[2 + 8 * part + (size_t)i / 4] >> 2 * (i % 4) & 3) - 1);
}

/*        0    2         4           8                                        136
 * IQ4_XS | d  | high    | low       | 8 x 16 bytes (lo: i, hi: 16 + i)       |
 * Scale of sub-block s (32): low bits in lo (s even) or hi of low byte s / 2, bits 5-4 in bits
 * 2s+1..2s of high.  w = d (scale - 32) values[q] */
static inline void ebb_decode_IQ4_XS(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    uint16_t high = ebb_u16_load(b + 2);

    o->d = ebb_f16_load(b);
    o->dmin = 0;
    memset(o->min, 0, sizeof o->min);
    for (int s = 0; s < 8; s++) {
        int scale = (b[4 + s / 2] >> 4 * (s % 2) & 15) | (high >> 2 * s & 3) << 4;

        o->scale[2 * s] = o->scale[2 * s + 1] = (int16_t)(scale - 32);
        ebb_decode_table(b + 8 + 16 * s, ebb_iq4_values, o->q + 32 * s);
    }
}

/*      0                             16                              80  82   84
 * Q2_K | 16 x (lo: scale, hi: min)   | 2 x 32 bytes of 4 x 2 bits    | d | dmin |
 * Bits 2r+1..2r of byte 32n + i: element 128n + 32r + i.    w = d s q - dmin m */
static inline void ebb_decode_Q2_K(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    o->d = ebb_f16_load(b + 80);
    o->dmin = ebb_f16_load(b + 82);
    for (int j = 0; j < 16; j++) {
        o->scale[j] = b[j] & 15;
        o->min[j] = b[j] >> 4;
    }
    for (int n = 0; n < 2; n++)
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 32; i++)
                o->q[128 * n + 32 * r + i] = (int8_t)(b[16 + 32 * n + i] >> 2 * r & 3);
}

/*      0           32                            96            108  110
 * Q3_K | 32 x high | 2 x 32 bytes of 4 x 2 bits  | 12: scales  | d  |
 * Element 128n + 32r + i: bits 2r+1..2r of byte 32n + i, and bit 4n + r of high byte i (set: 4
 * more).  Scale j: low 4 bits in lo (j < 8) or hi of byte j % 8, bits 5-4 in bits 2(j/4)+1.. of
 * byte 8 + j % 4.  w = d (s - 32) (q - 4) */
static inline void ebb_decode_Q3_K(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    const uint8_t *s = b + 96;

    o->d = ebb_f16_load(b + 108);
    o->dmin = 0;
    for (int j = 0; j < 16; j++) {
        o->scale[j] = (int16_t)(((s[j % 8] >> (j < 8 ? 0 : 4) & 15) |
                                 (s[8 + j % 4] >> 2 * (j / 4) & 3) << 4) -
                                32);
        o->min[j] = 0;
    }
    for (int n = 0; n < 2; n++)
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 32; i++) {
                int low = b[32 + 32 * n + i] >> 2 * r & 3, high = b[i] >> (4 * n + r) & 1;

                o->q[128 * n + 32 * r + i] = (int8_t)(low + 4 * high - 4);
            }
}

/* One scale for all, no minima. */
static inline void ebb_decode_flat(const uint8_t *d, ebb_block256 *o)
{
    o->d = ebb_f16_load(d);
    o->dmin = 0;
    for (int j = 0; j < 16; j++) {
        o->scale[j] = 1;
        o->min[j] = 0;
    }
}

/* n bytes of five (or four) ternary digits each, the first digit of all bytes first: a byte is the
 * number 0.t1 t2 t3 t4 t5 in base 3 times 256, rounded up; times 3^k its integer part's last digit
 * is t(k). */
static inline void ebb_decode_ternary(const uint8_t *restrict b, int n, int digits,
                                      int8_t *restrict q)
{
    uint8_t power = 1;

    for (int k = 0; k < digits; k++, power = (uint8_t)(power * 3))
        for (int i = 0; i < n; i++) {
            uint8_t rest = (uint8_t)(b[i] * power);

            q[k * n + i] = (int8_t)((rest * 3 >> 8) - 1);
        }
}

/*       0                    32                   48               52  54
 * TQ1_0 | 32 x 5 digits      | 16 x 5 digits      | 4 x 4 digits   | d |     w = d (t - 1) */
static inline void ebb_decode_TQ1_0(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    ebb_decode_flat(b + 52, o);
    ebb_decode_ternary(b, 32, 5, o->q);
    ebb_decode_ternary(b + 32, 16, 5, o->q + 160);
    ebb_decode_ternary(b + 48, 4, 4, o->q + 240);
}

/*       0                              64  66
 * TQ2_0 | 2 x 32 bytes of 4 x 2 bits   | d |
 * Bits 2r+1..2r of byte 32n + i: element 128n + 32r + i.  w = d (q - 1) */
static inline void ebb_decode_TQ2_0(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    ebb_decode_flat(b + 64, o);
    for (int n = 0; n < 2; n++)
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 32; i++)
                o->q[128 * n + 32 * r + i] = (int8_t)((b[32 * n + i] >> 2 * r & 3) - 1);
}

#include "kernels/quant_blocks_iq.h"

#endif
