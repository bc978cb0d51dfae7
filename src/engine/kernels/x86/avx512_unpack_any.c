/* Tiles of the types that have no unpacker of their own, through the decoders
 * of kernels/quant_blocks.h: a few bytes per cycle, which many columns share. */
#include "kernels/quant_blocks.h"
#include "kernels/x86/avx512_tile.h"

static void put_scales(const ebb_block256 *b, int row, int h, int n_scale, int has_min, ebb_tile256 *out)
{
    for (int i = 0; i < n_scale; i++)
        out->scale[i][h][row] = (uint16_t)b->scale[i * 16 / n_scale];
    for (int j = 0; has_min && j < 8; j++)
        memcpy(&out->min[j][h][row], b->min + 2 * j, 4);
    out->d[h][row] = b->d;
    out->dmin[h][row] = b->dmin;
}

static void put_values(uint8_t (*q)[256], int h, ebb_tile256 *out)
{
    for (int part = 0; part < 4; part++) {
        __m512i t[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            t[i] = _mm512_load_si512(q[i] + 64 * part);
        ebb_transpose16(t);
        for (int i = 0; i < 16; i++)
            _mm512_store_si512(out->q[16 * part + i][h], t[i]);
    }
}

#define UNPACK(T, add, n_scale, has_min)                                             \
void ebb_avx512_unpack_##T(const ebb_half *rows, int h, ebb_tile256 *out)            \
{                                                                                    \
    _Alignas(64) uint8_t q[16][256];                                                 \
    ebb_block256 b;                                                                  \
                                                                                     \
    for (int r = 0; r < 16; r++) {                                                   \
        ebb_decode_##T(rows->base + rows->offset[r], &b);                            \
        for (int i = 0; i < 256; i++)                                                \
            q[r][i] = (uint8_t)(b.q[i] + (add));                                     \
        put_scales(&b, r, h, n_scale, has_min, out);                                 \
    }                                                                                \
    put_values(q, h, out);                                                           \
}
UNPACK(Q2_K, 0, 16, 1)
UNPACK(Q3_K, 4, 16, 0)
UNPACK(TQ1_0, 1, 8, 0)
UNPACK(TQ2_0, 1, 8, 0)
UNPACK(IQ1_S, 9, 16, 0)
UNPACK(IQ1_M, 9, 16, 0)
UNPACK(IQ2_XXS, 43, 8, 0)
UNPACK(IQ2_XS, 43, 16, 0)
UNPACK(IQ2_S, 43, 16, 0)
UNPACK(IQ3_XXS, 62, 8, 0)
UNPACK(IQ3_S, 15, 16, 0)
