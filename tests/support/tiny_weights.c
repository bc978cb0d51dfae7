/* Weights, by chance (tiny_writer.h). */
#include "support/tiny_writer.h"

#include <math.h>
#include <string.h>

#include "ebb_test.h"

static uint64_t next_tiny_random(tiny_writer *w)
{
    uint64_t z = w->random += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Sum of four uniforms: near enough to normal, deviation 1. */
static float next_normal(tiny_writer *w)
{
    uint64_t r = next_tiny_random(w);
    double sum = (double)(r & 0xFFFF) + (double)(r >> 16 & 0xFFFF) + (double)(r >> 32 & 0xFFFF) + (double)(r >> 48);

    return (float)((sum - 131070) / 37837);
}

/* Halves of ordinary size only. */
static uint16_t to_f16(float x)
{
    uint32_t u;

    memcpy(&u, &x, 4);
    if ((u & 0x7FFFFFFF) < 0x38800000)           /* would be subnormal */
        return (uint16_t)(u >> 16 & 0x8000);
    u += 0x1000;
    return (uint16_t)((u >> 16 & 0x8000) | ((((u & 0x7FFFFFFF) - 0x38000000) >> 13) & 0x7FFF));
}

/* Random bytes are valid blocks; their scales are set so that weights have the deviation. */
static void add_blocks(tiny_writer *w, const tiny_tensor *t, uint64_t n)
{
    static const struct { ebb_type type; uint32_t d, dmin; float unit, middle;
    } shapes[] = {
        { EBB_TYPE_Q4_0, 0, 0, 4.64f, 0 },
        { EBB_TYPE_Q4_1, 0, 2, 4.69f, -7.5f },
        { EBB_TYPE_Q5_0, 0, 0, 9.25f, 0 },
        { EBB_TYPE_Q5_1, 0, 2, 9.39f, -15 },
        { EBB_TYPE_Q8_0, 0, 0, 73.3f, 0 },
        { EBB_TYPE_Q4_K, 0, 2, 242.5f, 7.5f },
        { EBB_TYPE_Q5_K, 0, 2, 491.5f, 15 },
        { EBB_TYPE_Q6_K, 208, 0, 1366, 0 },
        /* these within a factor of two */
        { EBB_TYPE_Q2_K, 80, 82, 14, 1.5f },
        { EBB_TYPE_Q3_K, 108, 0, 43, 0 },
        { EBB_TYPE_TQ1_0, 52, 0, 0.8f, 0 },
        { EBB_TYPE_TQ2_0, 64, 0, 1.2f, 0 },
        { EBB_TYPE_IQ4_NL, 0, 0, 68, 0 },
        { EBB_TYPE_IQ4_XS, 0, 0, 1258, 0 },
        { EBB_TYPE_IQ2_XXS, 0, 0, 45, 0 },
        { EBB_TYPE_IQ2_XS, 0, 0, 45, 0 },
        { EBB_TYPE_IQ2_S, 0, 0, 45, 0 },
        { EBB_TYPE_IQ3_XXS, 0, 0, 135, 0 },
        { EBB_TYPE_IQ3_S, 0, 0, 160, 0 },
        { EBB_TYPE_IQ1_S, 0, 0, 8, 0 },
        { EBB_TYPE_IQ1_M, 0, 0, 8, 0 },
        { EBB_TYPE_MXFP4, 0, 0, 6, 0 },
        { EBB_TYPE_NVFP4, 0, 0, 2.9f, 0 },
        { EBB_TYPE_Q1_0, 0, 0, 1, 0 },
        { EBB_TYPE_Q2_0, 0, 0, 1.2f, 0 },
    };
    const ebb_type_info *info = ebb_type_get(t->type);
    size_t i = 0;

    while (i < sizeof shapes / sizeof *shapes && shapes[i].type != t->type)
        i++;
    assert_true(i < sizeof shapes / sizeof *shapes);
    for (uint64_t b = 0; b < n / info->block_len; b++) {
        char block[256];
        float d = t->dev / shapes[i].unit * (0.5f + (float)(next_tiny_random(w) % 1000) / 1000);
        uint16_t half = to_f16(d);

        for (uint32_t j = 0; j < info->block_bytes; j++)
            block[j] = (char)next_tiny_random(w);
        if (t->type == EBB_TYPE_MXFP4)           /* an exponent */
            block[0] = (char)(126 + (int)floorf(log2f(d)));
        else if (t->type == EBB_TYPE_NVFP4)      /* four of 4 bits, of fractions that are random */
            for (int j = 0; j < 4; j++)
                block[j] = (char)((block[j] & 7) | (int)fmaxf(0, 7 + floorf(log2f(d))) << 3);
        else if (t->type == EBB_TYPE_IQ1_M)      /* a half in four parts */
            for (int j = 0; j < 4; j++)
                block[49 + 2 * j] = (char)((block[49 + 2 * j] & 15) | (half >> 4 * j & 15) << 4);
        else
            memcpy(block + shapes[i].d, &half, 2);
        half = to_f16(d * shapes[i].middle);
        if (shapes[i].middle != 0)
            memcpy(block + shapes[i].dmin, &half, 2);
        ebb_buf_add(&w->data, block, info->block_bytes);
    }
}

void tiny_add_weights(tiny_writer *w, const tiny_tensor *t)
{
    uint64_t n = (uint64_t)t->dims[0] * (t->n_dims > 1 ? t->dims[1] : 1) * t->dims[2];

    if (ebb_type_get(t->type)->block_len > 1) {
        add_blocks(w, t, n);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        float x = t->is_unit ? i % t->dims[0] == i / t->dims[0] : t->mean + t->dev * next_normal(w);
        uint16_t half = to_f16(x);
        uint32_t u;

        memcpy(&u, &x, 4);
        if (t->type == EBB_TYPE_F32)
            ebb_buf_add(&w->data, &x, 4);
        else if (t->type == EBB_TYPE_F16)
            ebb_buf_add(&w->data, &half, 2);
        else
            ebb_buf_add(&w->data, (char *)&u + 2, 2);    /* BF16, cut */
    }
}
