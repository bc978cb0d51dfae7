/* kernels/kv_rows.h - rows of the KV cache: float to the cache's type and back.
 * Q8_0 and Q4_0 rows are the blocks of the weight types of these names. */
#ifndef EBB_KERNELS_KV_ROWS_H
#define EBB_KERNELS_KV_ROWS_H
#include "kernels/quant_blocks.h"
#include "kernels/float_body.h"

static void ISA_NAME(kv_store_f16)(void *out, const float *x, size_t dim)
{
    for (size_t i = 0; i < dim; i++) {
        uint16_t h = ebb_f32_to_f16(x[i]);

        memcpy((uint8_t *)out + 2 * i, &h, sizeof h);
    }
}

static void ISA_NAME(kv_store_f32)(void *out, const float *x, size_t dim)
{
    memcpy(out, x, dim * sizeof *x);
}

static void ISA_NAME(kv_store_q8_0)(void *out, const float *x, size_t dim)
{
    for (uint8_t *b = out; dim > 0; dim -= 32, x += 32, b += 34) {
        int8_t q[32];
        uint16_t d = ebb_f32_to_f16(float_to_int8(x, 32, q));

        memcpy(b, &d, sizeof d);
        memcpy(b + 2, q, sizeof q);
    }
}

/* The element farthest from zero becomes -8: the side of the range that has one value more. */
static void ISA_NAME(kv_store_q4_0)(void *out, const float *x, size_t dim)
{
    for (uint8_t *b = out; dim > 0; dim -= 32, x += 32, b += 18) {
        float far = 0;
        int q[32];

        for (int i = 0; i < 32; i++)
            far = fabsf(x[i]) > fabsf(far) ? x[i] : far;
        uint16_t half = ebb_f32_to_f16(far / -8.0f);
        float d = ebb_f16_to_f32(half);
        for (int i = 0; i < 32; i++) {
            float v = d != 0 ? x[i] / d : 0;

            v = v < 7.0f ? v : 7.0f;
            v = v > -8.0f ? v : -8.0f;
            q[i] = (int)(ebb_bits(v + 0x1.8p23f) - ebb_bits(0x1.8p23f)) + 8;
        }
        memcpy(b, &half, sizeof half);
        for (int i = 0; i < 16; i++)
            b[2 + i] = (uint8_t)(q[i] | q[16 + i] << 4);
    }
}

/* One row of `dim` elements to floats. */
static inline void kv_load(ebb_kv_type type, const uint8_t *row, size_t dim, float *out)
{
    ebb_block32 b;

    switch (type) {
    case EBB_KV_F32:
        memcpy(out, row, dim * sizeof *out);
        break;
    case EBB_KV_F16:
        for (size_t i = 0; i < dim; i++)
            out[i] = ebb_f16_load(row + 2 * i);
        break;
    default:
        for (size_t k = 0; k < dim; k += 32) {
            if (type == EBB_KV_Q8_0)
                ebb_decode_Q8_0(row + k / 32 * 34, &b);
            else
                ebb_decode_Q4_0(row + k / 32 * 18, &b);
            for (int i = 0; i < 32; i++)
                out[k + i] = b.d * (float)b.q[i];
        }
    }
}

#endif
