/* From the file's blocks (kernels/quant_blocks.h draws them) to tiles for vpdpbusd. */
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx512_gemv.h"
#include "kernels/x86/avx512_nibbles.h"

/* 64 bytes of each row, transposed. */
static inline __attribute__((always_inline)) void load_64(const ebb_half *rows, size_t byte, __m512i t[16])
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        t[i] = _mm512_loadu_si512(rows->base + rows->offset[i] + byte);
    ebb_transpose16(t);
}

/* 32 bytes each of two blocks. */
static inline __attribute__((always_inline)) void load_2x32(const ebb_half *rows, size_t at, size_t next, __m512i t[16])
{
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const uint8_t *p = rows->base + rows->offset[i] + at;

        t[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)p)),
                                  _mm256_loadu_si256((const void *)(p + next)), 1);
    }
    ebb_transpose16(t);
}

void ebb_avx512_unpack_Q8_0(const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h, ebb_tile32 *out)
{
    __m512i t[16];

    for (size_t b = 0; b < n_blocks; b += 2) {
        size_t pair = b + 1 < n_blocks ? 2 : 1;

        load_2x32(rows, b * block_bytes + 2, (pair - 1) * block_bytes, t);
        for (size_t i = 0; i < pair; i++) {
            for (int g = 0; g < 8; g++)
                _mm512_store_si512(out[b + i].q[g][h], _mm512_xor_si512(t[8 * i + g], _mm512_set1_epi8(-128)));
            _mm512_store_ps(out[b + i].d[h], ebb_lanes_f16(ebb_half_gather(rows, (b + i) * block_bytes)));
        }
    }
}

/* The types of 16 nibble bytes: what the head says, the fifth bits if has_high, then the nibbles, which
 * may stand for the bytes of a table (offset added). */
static inline __attribute__((always_inline)) void unpack_nibbles(const ebb_half *rows, size_t block_bytes,
                                                                 size_t n_blocks, int h, ebb_tile32 *out, head kind,
                                                                 int has_high, const __m512i *table)
{
    size_t nibbles = nibbles_at(kind, has_high);
    __m512i t[16], high = _mm512_setzero_si512();

    for (size_t b = 0; b < n_blocks; b += 4) {
        size_t n = n_blocks - b < 4 ? n_blocks - b : 4;

        load_4x16(rows, b * block_bytes + nibbles, n, block_bytes, t);
        for (size_t i = 0; i < n; i++) {
            ebb_tile32 *o = out + b + i;
            __m512i first = ebb_half_gather(rows, (b + i) * block_bytes);

            _mm512_store_ps(o->d[h], kind == HEAD_E ? lanes_e8(first) : ebb_lanes_f16(first));
            if (kind == HEAD_D_M)
                _mm512_store_ps(o->m[h], ebb_lanes_f16(_mm512_srli_epi32(first, 16)));
            if (has_high)
                high = ebb_half_gather(rows, (b + i) * block_bytes + nibbles - 4);
            for (int g = 0; g < 4; g++) {
                __m512i low = low_nibbles(t[4 * i + g]), up = high_nibbles(t[4 * i + g]);

                if (has_high) {
                    low = _mm512_or_si512(low, fifth_bits(high, g));
                    up = _mm512_or_si512(up, fifth_bits(high, 4 + g));
                }
                _mm512_store_si512(o->q[g][h], table ? _mm512_shuffle_epi8(*table, low) : low);
                _mm512_store_si512(o->q[4 + g][h], table ? _mm512_shuffle_epi8(*table, up) : up);
            }
        }
    }
}

#define NIBBLES(T, kind, has_high)                                                                                     \
void ebb_avx512_unpack_##T(const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h, ebb_tile32 *out)         \
{                                                                                                                      \
    unpack_nibbles(rows, block_bytes, n_blocks, h, out, kind, has_high, NULL);                                         \
}
NIBBLES(Q4_0, HEAD_D, 0)
NIBBLES(Q4_1, HEAD_D_M, 0)
NIBBLES(Q5_0, HEAD_D, 1)
NIBBLES(Q5_1, HEAD_D_M, 1)

void ebb_avx512_unpack_IQ4_NL(const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h, ebb_tile32 *out)
{
    __m512i table = table_of(ebb_iq4_values, 128);

    unpack_nibbles(rows, block_bytes, n_blocks, h, out, HEAD_D, 0, &table);
}

void ebb_avx512_unpack_MXFP4(const ebb_half *rows, size_t block_bytes, size_t n_blocks, int h, ebb_tile32 *out)
{
    __m512i table = table_of(ebb_mxfp4_values, 12);

    unpack_nibbles(rows, block_bytes, n_blocks, h, out, HEAD_E, 0, &table);
}

/* The 16 bytes in front of a block of Q4_K or Q5_K. */
static inline void unpack_head_k(const ebb_half *rows, int h, ebb_tile256 *out)
{
    ebb_head_k k = ebb_load_head_k(rows, 0);

    _mm512_store_ps(out->d[h], ebb_lanes_f16(k.dd));
    _mm512_store_ps(out->dmin[h], ebb_lanes_f16(_mm512_srli_epi32(k.dd, 16)));
    for (int i = 0; i < 8; i++)
        _mm512_store_si512(out->scale[i][h], ebb_byte_of(k.scale[i / 4], i % 4));
    for (int j = 0; j < 4; j++)
        _mm512_store_si512(out->min[j][h], ebb_pair_of(k.min[j / 2], j % 2));
}

void ebb_avx512_unpack_Q4_K(const ebb_half *rows, int h, ebb_tile256 *out)
{
    __m512i t[16];

    unpack_head_k(rows, h, out);
    for (int n = 0; n < 2; n++) {
        load_64(rows, 16 + 64u * (unsigned)n, t);
        for (int i = 0; i < 16; i++) {
            int g = 32 * n + i / 8 * 16 + i % 8;

            _mm512_store_si512(out->q[g][h], low_nibbles(t[i]));
            _mm512_store_si512(out->q[g + 8][h], high_nibbles(t[i]));
        }
    }
}

/* Bit s of every byte, as bit 4. */
static inline __m512i bit_to_4(__m512i v, int s)
{
    __m512i one = _mm512_and_si512(_mm512_srlv_epi32(v, _mm512_set1_epi32(s)), _mm512_set1_epi8(1));

    return _mm512_slli_epi16(one, 4);
}

void ebb_avx512_unpack_Q5_K(const ebb_half *rows, int h, ebb_tile256 *out)
{
    __m512i t[16], high[16];

    unpack_head_k(rows, h, out);
    load_64(rows, 16, high);                     /* the first 8 are the high bits */
    for (int n = 0; n < 2; n++) {
        load_64(rows, 48 + 64u * (unsigned)n, t);
        for (int i = 0; i < 16; i++) {
            int s = 4 * n + i / 8 * 2, g = 8 * s + i % 8;

            _mm512_store_si512(out->q[g][h], _mm512_or_si512(low_nibbles(t[i]), bit_to_4(high[i % 8], s)));
            _mm512_store_si512(out->q[g + 8][h], _mm512_or_si512(high_nibbles(t[i]), bit_to_4(high[i % 8], s + 1)));
        }
    }
}

/* Bits 2r+1..2r of every byte, as bits 5..4. */
static inline __m512i bits_to_4(__m512i v, int r)
{
    __m512i two = _mm512_and_si512(_mm512_srlv_epi32(v, _mm512_set1_epi32(2 * r)), _mm512_set1_epi8(3));

    return _mm512_slli_epi16(two, 4);
}

void ebb_avx512_unpack_Q6_K(const ebb_half *rows, int h, ebb_tile256 *out)
{
    const __m512i low16 = _mm512_set1_epi32(0xffff);
    __m512i t[16], high[16], s[4];

    load_64(rows, 128, high);
    for (int n = 0; n < 2; n++) {
        load_64(rows, 64u * (unsigned)n, t);
        for (int i = 0; i < 16; i++) {
            int r = i / 8, g = 32 * n + 8 * r + i % 8;
            __m512i up = high[8 * n + i % 8];

            _mm512_store_si512(out->q[g][h], _mm512_or_si512(low_nibbles(t[i]), bits_to_4(up, r)));
            _mm512_store_si512(out->q[g + 16][h], _mm512_or_si512(high_nibbles(t[i]), bits_to_4(up, r + 2)));
        }
    }
    ebb_load_16x16(rows, 192, s);
    for (int j = 0; j < 16; j++) {               /* sign-extended to 16 bits */
        __m512i wide = _mm512_srai_epi32(_mm512_sllv_epi32(s[j / 4], _mm512_set1_epi32(24 - 8 * (j % 4))), 24);
        _mm512_store_si512(out->scale[j][h], _mm512_and_si512(wide, low16));
    }
    _mm512_store_ps(out->d[h], ebb_lanes_f16(_mm512_srli_epi32(ebb_half_gather(rows, 206), 16)));
}

void ebb_avx512_unpack_IQ4_XS(const ebb_half *rows, int h, ebb_tile256 *out)
{
    const __m512i table = table_of(ebb_iq4_values, 128);
    __m512i first = ebb_half_gather(rows, 0), low = ebb_half_gather(rows, 4), t[16];

    _mm512_store_ps(out->d[h], ebb_lanes_f16(first));
    for (int s = 0; s < 8; s++) {                /* less 32, sign-extended to 16 bits */
        __m512i bits = _mm512_and_si512(_mm512_srlv_epi32(low, _mm512_set1_epi32(4 * s)), _mm512_set1_epi32(15));
        __m512i high = _mm512_and_si512(_mm512_srlv_epi32(first, _mm512_set1_epi32(16 + 2 * s)), _mm512_set1_epi32(3));
        __m512i scale = _mm512_sub_epi32(_mm512_or_si512(bits, _mm512_slli_epi32(high, 4)), _mm512_set1_epi32(32));

        _mm512_store_si512(out->scale[s][h], _mm512_and_si512(scale, _mm512_set1_epi32(0xffff)));
    }
    for (int n = 0; n < 2; n++) {
        load_64(rows, 8 + 64u * (unsigned)n, t);
        for (int i = 0; i < 16; i++) {
            int g = 32 * n + i / 4 * 8 + i % 4;

            _mm512_store_si512(out->q[g][h], _mm512_shuffle_epi8(table, low_nibbles(t[i])));
            _mm512_store_si512(out->q[g + 4][h], _mm512_shuffle_epi8(table, high_nibbles(t[i])));
        }
    }
}
