/* kernels/quant_blocks_iq.h - blocks of the types whose weights are points of a grid
 * (kernels/grids.h); to be read after kernels/quant_blocks.h, whose forms they take.
 *
 * Their scales are s + 1/2 in some unit; here it is 2s + 1 in half of it, so that
 * everything but d is an integer: all products are exact in a float. */
#ifndef EBB_KERNELS_BLOCKS_IQ_H
#define EBB_KERNELS_BLOCKS_IQ_H
#include "kernels/grids.h"
#include "kernels/number.h"

/* Eight bytes 1 .. 127, negated where a bit of `signs` is set (byte i, bit i).  (The two forms
 * compute the same.) */
#if defined(__ARM_FEATURE_DOTPROD)
static inline void ebb_put_signed(uint64_t bytes, uint8_t signs, int8_t *q)
{
    uint8x8_t minus = vtst_u8(vdup_n_u8(signs), vcreate_u8(UINT64_C(0x8040201008040201)));

    vst1_s8(q, vreinterpret_s8_u8(vsub_u8(veor_u8(vcreate_u8(bytes), minus), minus)));
}
#else
static inline void ebb_put_signed(uint64_t bytes, uint8_t signs, int8_t *q)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t bits = signs * ones & UINT64_C(0x8040201008040201);
    uint64_t minus = (bits + 0x7f * ones) >> 7 & ones;       /* 1 in each byte that has its bit */

    bytes = (bytes ^ minus * 0xff) + minus;
    memcpy(q, &bytes, 8);
}
#endif

/* Seven signs; the eighth makes their number even. */
static inline uint8_t ebb_even_signs(uint32_t seven)
{
    uint32_t parity = seven ^ seven >> 4;

    parity ^= parity >> 2;
    return (uint8_t)((seven & 127) | (parity ^ parity >> 1) << 7);
}

static inline uint64_t ebb_two_points(uint32_t first, uint32_t second)
{
    return first | (uint64_t)second << 32;
}

/* d times `unit`, and no minima. */
static inline void ebb_decode_unit(float d, float unit, ebb_block256 *o)
{
    o->d = d * unit;
    o->dmin = 0;
    memset(o->min, 0, sizeof o->min);
}

/* The two scales of a sub-block of 32. */
static inline void ebb_put_scales(int first, int second, int sub, ebb_block256 *o)
{
    o->scale[2 * sub] = (int16_t)(2 * first + 1);
    o->scale[2 * sub + 1] = (int16_t)(2 * second + 1);
}

/*         0    2                                              66
 * IQ2_XXS | d  | 8 x ( 4 x point | word )                     |     word: | 4 scale | 4 x 7 signs |
 * w = d (2 scale + 1) / 8 * point, by its signs; the lowest signs belong to the first point. */
static inline void ebb_decode_IQ2_XXS(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    ebb_decode_unit(ebb_f16_load(b), 0.125f, o);
    for (int s = 0; s < 8; s++) {
        const uint8_t *p = b + 2 + 8 * s;
        uint32_t word = ebb_u32_load(p + 4);

        ebb_put_scales((int)(word >> 28), (int)(word >> 28), s, o);
        for (int j = 0; j < 4; j++)
            ebb_put_signed(ebb_grid.iq2_xxs[p[j]], ebb_even_signs(word >> 7 * j & 127),
                           o->q + 32 * s + 8 * j);
    }
}

/*        0    2                                          66                                 74
 * IQ2_XS | d  | 32 x u16: | 7 signs | 9 point |          | 8 x (lo: scale, hi: next scale)  |
 * A scale for each 16.  w as IQ2_XXS. */
static inline void ebb_decode_IQ2_XS(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    ebb_decode_unit(ebb_f16_load(b), 0.125f, o);
    for (int s = 0; s < 8; s++)
        ebb_put_scales(b[66 + s] & 15, b[66 + s] >> 4, s, o);
    for (int j = 0; j < 32; j++) {
        uint16_t v = ebb_u16_load(b + 2 + 2 * j);

        ebb_put_signed(ebb_grid.iq2_xs[v & 511], ebb_even_signs(v >> 9), o->q + 8 * j);
    }
}

/*    0    2             34              66                   74                                82
 *    | d  | 32 x point  | 32 x 8 signs  | 8 x (4 x 2 high)   | 8 x (lo: scale, hi: next scale) |
 * Point j has bits 9-8 in bits 2(j%4)+1.. of high byte j / 4.  w as IQ2_XXS. */
static inline void ebb_decode_IQ2_S(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    ebb_decode_unit(ebb_f16_load(b), 0.125f, o);
    for (int s = 0; s < 8; s++)
        ebb_put_scales(b[74 + s] & 15, b[74 + s] >> 4, s, o);
    for (int j = 0; j < 32; j++) {
        int point = b[2 + j] | (b[66 + j / 4] >> 2 * (j % 4) & 3) << 8;

        ebb_put_signed(ebb_grid.iq2_s[point], b[34 + j], o->q + 8 * j);
    }
}

/*         0    2                66                98
 * IQ3_XXS | d  | 64 x point     | 8 x word        |     word: | 4 scale | 4 x 7 signs |
 * A point is 4 elements.  w = d (2 scale + 1) / 4 * point, by its signs. */
static inline void ebb_decode_IQ3_XXS(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    const uint32_t *grid = ebb_grid.iq3_xxs;

    ebb_decode_unit(ebb_f16_load(b), 0.25f, o);
    for (int s = 0; s < 8; s++) {
        uint32_t word = ebb_u32_load(b + 66 + 4 * s);

        ebb_put_scales((int)(word >> 28), (int)(word >> 28), s, o);
        for (int j = 0; j < 4; j++) {
            const uint8_t *p = b + 2 + 8 * s + 2 * j;

            ebb_put_signed(ebb_two_points(grid[p[0]], grid[p[1]]),
                           ebb_even_signs(word >> 7 * j & 127), o->q + 32 * s + 8 * j);
        }
    }
}

/*       0    2               66            74              106                               110
 * IQ3_S | d  | 64 x point    | 8 x 8 high  | 32 x 8 signs  | 4 x (lo: scale, hi: next scale) |
 * Point j has bit 8 in bit j % 8 of high byte j / 8; a scale for each 32.
 * w = d (2 scale + 1) point, by its signs. */
static inline void ebb_decode_IQ3_S(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    const uint32_t *grid = ebb_grid.iq3_s;

    ebb_decode_unit(ebb_f16_load(b), 1, o);
    for (int s = 0; s < 8; s++) {
        int scale = b[106 + s / 2] >> 4 * (s % 2) & 15, high = b[66 + s];

        ebb_put_scales(scale, scale, s, o);
        for (int j = 0; j < 4; j++) {
            const uint8_t *p = b + 2 + 8 * s + 2 * j;
            int first = p[0] | (high >> 2 * j & 1) << 8, second = p[1] | (high >> (2 * j + 1) & 1)
                                                                             << 8;

            ebb_put_signed(ebb_two_points(grid[first], grid[second]), b[74 + 4 * s + j],
                           o->q + 32 * s + 8 * j);
        }
    }
}

/* A point of IQ1, each element 1/8 more or, if is_less (0 or 1), less; in eighths.
 * (The top bits only keep the subtraction from borrowing.) */
static inline void ebb_put_shifted(uint64_t bytes, int is_less, int8_t *q)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    bytes = ((bytes << 3 | 0x80 * ones) - (uint64_t)(7 + 2 * is_less) * ones) ^ 0x80 * ones;
    memcpy(q, &bytes, 8);
}

/*       0    2               34                                                       50
 * IQ1_S | d  | 32 x point    | 8 x u16: | 1 is less | 3 scale | 4 x 3 high |          |
 * Point j has bits 10-8 in the high bits j % 4 of word j / 4.
 * w = d (2 scale + 1) (point -+ 1/8) */
static inline void ebb_decode_IQ1_S(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    ebb_decode_unit(ebb_f16_load(b), 0.125f, o);
    for (int s = 0; s < 8; s++) {
        uint16_t v = ebb_u16_load(b + 34 + 2 * s);

        ebb_put_scales(v >> 12 & 7, v >> 12 & 7, s, o);
        for (int j = 0; j < 4; j++)
            ebb_put_shifted(ebb_grid.iq1[b[2 + 4 * s + j] | (v >> 3 * j & 7) << 8], v >> 15,
                            o->q + 32 * s + 8 * j);
    }
}

/*    0             32                                         48                            56
 *    | 32 x point  | 16 x | less | 3 high | less | 3 high |   | 4 x u16: 4 of d, 4 x 3 scale |
 * Of a byte the low half belongs to the first of two points; a scale for each 16; d's lowest bits
 * stand in the first word.  w as IQ1_S. */
static inline void ebb_decode_IQ1_M(const uint8_t *restrict b, ebb_block256 *restrict o)
{
    uint16_t word[4];
    unsigned d = 0;

    memcpy(word, b + 48, sizeof word);
    for (int i = 0; i < 4; i++)
        d |= (unsigned)(word[i] >> 12) << 4 * i;
    ebb_decode_unit(ebb_f16_to_f32((uint16_t)d), 0.125f, o);
    for (int s = 0; s < 8; s++) {
        int v = word[s / 2] >> 6 * (s % 2);

        ebb_put_scales(v & 7, v >> 3 & 7, s, o);
    }
    for (int j = 0; j < 16; j++) {
        int high = b[32 + j];

        ebb_put_shifted(ebb_grid.iq1[b[2 * j] | (high & 7) << 8], high >> 3 & 1, o->q + 16 * j);
        ebb_put_shifted(ebb_grid.iq1[b[2 * j + 1] | (high >> 4 & 7) << 8], high >> 7,
                        o->q + 16 * j + 8);
    }
}

#endif
