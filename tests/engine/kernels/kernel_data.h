/* Random weights and activations for the tests and benches of the kernels. */
#ifndef EBB_TEST_KERNEL_DATA_H
#define EBB_TEST_KERNEL_DATA_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/number.h"

static uint64_t test_seed = 88172645463325252u;

static inline uint32_t test_random(void)         /* xorshift64 (Marsaglia 2003) */
{
    test_seed ^= test_seed << 13;
    test_seed ^= test_seed >> 7;
    test_seed ^= test_seed << 17;
    return (uint32_t)(test_seed >> 16);
}

static inline float test_uniform(float a, float b)
{
    return a + (b - a) * (float)(test_random() >> 8) / 16777216.0f;
}

/* Where the halves stand in a block; -1: none. */
static inline void test_half_offsets(ebb_type t, int at[2])
{
    at[0] = 0;
    at[1] = -1;
    switch ((int)t) {
    case EBB_TYPE_Q4_1:
    case EBB_TYPE_Q5_1:
    case EBB_TYPE_Q4_K:
    case EBB_TYPE_Q5_K: at[1] = 2; break;
    case EBB_TYPE_Q6_K: at[0] = 208; break;
    case EBB_TYPE_Q2_K: at[0] = 80; at[1] = 82; break;
    case EBB_TYPE_Q3_K: at[0] = 108; break;
    case EBB_TYPE_TQ1_0: at[0] = 52; break;
    case EBB_TYPE_TQ2_0: at[0] = 64; break;
    case EBB_TYPE_MXFP4: at[0] = -1; break;      /* a byte of exponent */
    case EBB_TYPE_NVFP4: at[0] = -1; break;      /* four bytes of floats */
    case EBB_TYPE_IQ1_M: at[0] = -1; break;      /* in four parts */
    default: break;
    }
}

/* Put `h` where the halves of a block stand. */
static inline void test_put_halves(ebb_type t, uint8_t *block, uint16_t h)
{
    int at[2];

    test_half_offsets(t, at);
    for (int j = 0; j < 2; j++)
        if (at[j] >= 0)
            memcpy(block + at[j], &h, sizeof h);
    if (t == EBB_TYPE_IQ1_M)
        for (int i = 0; i < 4; i++)
            block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 15) | (h >> 4 * i & 15) << 4);
}

/* Any bit pattern in the numbers of a block; scales of a sensible size. */
static inline void test_weights(ebb_type type, void *row, size_t n_k)
{
    const ebb_type_info *t = ebb_type_get(type);
    uint8_t *b = row;
    int at[2];

    test_half_offsets(type, at);
    for (size_t i = 0; i < n_k / t->block_len; i++, b += t->block_bytes) {
        if (t->block_len == 1) {
            float f = test_uniform(-1, 1);
            uint32_t u = ebb_bits(f);
            uint16_t h = type == EBB_TYPE_F16 ? ebb_f32_to_f16(f) : (uint16_t)(u >> 16);

            if (test_random() % 16 == 0)         /* too small to be normal */
                h &= type == EBB_TYPE_F16 ? 0x83ff : 0x807f;

            memcpy(b, type == EBB_TYPE_F32 ? (void *)&u : (void *)&h, t->block_bytes);
            continue;
        }
        for (uint32_t j = 0; j < t->block_bytes; j++)
            b[j] = (uint8_t)test_random();
        if (type == EBB_TYPE_MXFP4)
            b[0] = (uint8_t)(i % 4 ? 110 + test_random() % 16 : test_random() % 3);
        test_put_halves(type, b, ebb_f32_to_f16(test_uniform(-0.01f, 0.01f)));
        if (at[1] >= 0) {
            uint16_t h = ebb_f32_to_f16(test_uniform(-0.01f, 0.01f));

            memcpy(b + at[1], &h, sizeof h);
        }
    }
}

static inline void *test_alloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);

    if (!p)
        abort();
    memset(p, 0, (bytes + 63) / 64 * 64 + 64);
    return p;
}

#endif
