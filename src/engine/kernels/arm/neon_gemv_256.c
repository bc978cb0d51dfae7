/* The types of blocks of 256 for NEON times few columns: Q4_K, Q5_K, Q6_K and IQ4_XS straight from the
 * bytes, the others through the decoders of kernels/quant_blocks.h. */
#include "kernels/arm/neon_rows.h"

/* 32 elements of one scale, that of the lane. */
INLINE void add_32(row_sums *o, few_x x, const int n, int sub, int8x16_t q0, int8x16_t q1, int32x4_t scales,
                   const int lane)
{
    UNROLL for (int c = 0; c < n; c++) {
        const int8_t *v = x[c]->q + 32 * sub;
        int32x4_t dot = vdotq_s32(vdotq_s32(vdupq_n_s32(0), q0, vld1q_s8(v)), q1, vld1q_s8(v + 16));

        o->sum[c] = vmlaq_n_s32(o->sum[c], dot, scales[lane]);
    }
}

/* 16 of them. */
INLINE void add_16(row_sums *o, few_x x, const int n, int j, int8x16_t q, int32x4_t scales, const int lane)
{
    UNROLL for (int c = 0; c < n; c++)
        o->sum[c] = vmlaq_n_s32(o->sum[c], vdotq_s32(vdupq_n_s32(0), q, vld1q_s8(x[c]->q + 16 * j)), scales[lane]);
}

/* f times the sums of x, each of 16 elements. */
INLINE int32x4_t dot_sums(int16x8_t low, int16x8_t high, const ebb_q8_256 *x)
{
    int16x8_t a = vld1q_s16(x->sum), b = vld1q_s16(x->sum + 8);
    int32x4_t v = vmull_s16(vget_low_s16(low), vget_low_s16(a));

    v = vmlal_high_s16(v, low, a);
    v = vmlal_s16(v, vget_low_s16(high), vget_low_s16(b));
    return vmlal_high_s16(v, high, b);
}

/* ---- Q4_K, Q5_K ---- */

/* 8 bytes, wide. */
INLINE int16x8_t widen(uint64_t bytes)
{
    return vreinterpretq_s16_u16(vmovl_u8(vcreate_u8(bytes)));
}

/* Low bits, and bit `sub` of every byte of `high` as their bit 4. */
INLINE uint8x16_t with_fifth(uint8x16_t low, uint8x16_t high, int sub)
{
    return vbslq_u8(vdupq_n_u8(16), vshlq_u8(high, vdupq_n_s8((int8_t)(4 - sub))), low);
}

INLINE void row_k(const uint8_t *w, few_x x, const int n, bool has_high, row_sums *o)
{
    const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x03030303u;
    const uint8x16_t low4 = vdupq_n_u8(15);
    uint32_t a = ebb_u32_load(w + 4), b = ebb_u32_load(w + 8), c = ebb_u32_load(w + 12);
    int16x8_t s = widen((a & six) | (uint64_t)((c & four) | (a >> 6 & two) << 4) << 32);
    int16x8_t m = widen((b & six) | (uint64_t)((c >> 4 & four) | (b >> 6 & two) << 4) << 32);
    int32x4_t scales[2] = { vmovl_s16(vget_low_s16(s)), vmovl_high_s16(s) };
    uint8x16_t high[2] = { vld1q_u8(w + 16), vld1q_u8(w + 32) };
    const uint8_t *nibbles = w + (has_high ? 48 : 16);

    o->d = ebb_f16_load(w);
    o->dmin = ebb_f16_load(w + 2);
    UNROLL for (int i = 0; i < n; i++) {
        int16x8_t sums = vld1q_s16(x[i]->sum32);

        o->sum[i] = vdupq_n_s32(0);
        o->min[i] = vmlal_high_s16(vmull_s16(vget_low_s16(m), vget_low_s16(sums)), m, sums);
    }
    UNROLL for (int p = 0; p < 4; p++) {
        uint8x16_t q[2][2];

        UNROLL for (int i = 0; i < 2; i++) {
            uint8x16_t v = vld1q_u8(nibbles + 32 * p + 16 * i);

            q[0][i] = vandq_u8(v, low4);
            q[1][i] = vshrq_n_u8(v, 4);
            UNROLL for (int j = 0; has_high && j < 2; j++)
                q[j][i] = with_fifth(q[j][i], high[i], 2 * p + j);
        }
        add_32(o, x, n, 2 * p, vreinterpretq_s8_u8(q[0][0]), vreinterpretq_s8_u8(q[0][1]), scales[p / 2], 2 * p % 4);
        add_32(o, x, n, 2 * p + 1, vreinterpretq_s8_u8(q[1][0]), vreinterpretq_s8_u8(q[1][1]), scales[p / 2],
               2 * p % 4 + 1);
    }
}

INLINE void row_Q4_K(const uint8_t *w, few_x x, const int n, row_sums *o) { row_k(w, x, n, false, o); }
INLINE void row_Q5_K(const uint8_t *w, few_x x, const int n, row_sums *o) { row_k(w, x, n, true, o); }

/* ---- Q6_K ---- */

/* Of 16 bytes low and high bits the quarter r (of 32 elements) of a half: numbers 32 too many. */
INLINE int8x16_t six_bits(uint8x16_t low, uint8x16_t high, int r)
{
    uint8x16_t four = r < 2 ? vandq_u8(low, vdupq_n_u8(15)) : vshrq_n_u8(low, 4);
    uint8x16_t bits = vshlq_u8(high, vdupq_n_s8((int8_t)(4 - 2 * r)));

    return vreinterpretq_s8_u8(vbslq_u8(vdupq_n_u8(0x30), bits, four));
}

INLINE void row_Q6_K(const uint8_t *w, few_x x, const int n, row_sums *o)
{
    int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(w + 192));
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    int32x4_t scales[4] = { vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
                            vmovl_high_s16(high) };

    o->d = ebb_f16_load(w + 208);
    UNROLL for (int c = 0; c < n; c++)
        o->sum[c] = vmulq_n_s32(dot_sums(low, high, x[c]), -32);
    UNROLL for (int h = 0; h < 2; h++) {
        uint8x16_t b[4], bits[2];

        UNROLL for (int i = 0; i < 4; i++)
            b[i] = vld1q_u8(w + 64 * h + 16 * i);
        UNROLL for (int i = 0; i < 2; i++)
            bits[i] = vld1q_u8(w + 128 + 32 * h + 16 * i);
        UNROLL for (int r = 0; r < 4; r++) {
            int j = 8 * h + 2 * r;

            add_16(o, x, n, j, six_bits(b[2 * (r & 1)], bits[0], r), scales[j / 4], j % 4);
            add_16(o, x, n, j + 1, six_bits(b[2 * (r & 1) + 1], bits[1], r), scales[j / 4], j % 4 + 1);
        }
    }
}

/* ---- IQ4_XS ---- */

INLINE void row_IQ4_XS(const uint8_t *w, few_x x, const int n, row_sums *o)
{
    const int16x8_t places = { 0, -2, -4, -6, -8, -10, -12, -14 };
    uint8x8_t low = vreinterpret_u8_u32(vdup_n_u32(ebb_u32_load(w + 4)));
    uint16x8_t high = vandq_u16(vshlq_u16(vdupq_n_u16(ebb_u16_load(w + 2)), places), vdupq_n_u16(3));
    uint16x8_t six = vorrq_u16(vmovl_u8(vzip1_u8(vand_u8(low, vdup_n_u8(15)), vshr_n_u8(low, 4))),
                               vshlq_n_u16(high, 4));
    int16x8_t s = vsubq_s16(vreinterpretq_s16_u16(six), vdupq_n_s16(32));
    int32x4_t scales[2] = { vmovl_s16(vget_low_s16(s)), vmovl_high_s16(s) };

    o->d = ebb_f16_load(w);
    UNROLL for (int c = 0; c < n; c++)
        o->sum[c] = vdupq_n_s32(0);
    UNROLL for (int i = 0; i < 8; i++) {
        int8x16x2_t q = ebb_table_bytes(ebb_iq4_values, w + 8 + 16 * i);

        add_32(o, x, n, i, q.val[0], q.val[1], scales[i / 4], i % 4);
    }
}

/* ---- the others ---- */

INLINE void row_any(const ebb_block256 *b, few_x x, const int n, bool has_min, row_sums *o)
{
    o->d = b->d;
    o->dmin = b->dmin;
    UNROLL for (int c = 0; c < n; c++) {
        o->sum[c] = vdupq_n_s32(0);
        if (has_min)
            o->min[c] = dot_sums(vld1q_s16(b->min), vld1q_s16(b->min + 8), x[c]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        int32x4_t scales = vmovl_s16(vld1_s16(b->scale + 4 * i));

        UNROLL for (int j = 0; j < 4; j++)
            add_16(o, x, n, 4 * i + j, vld1q_s8(b->q + 64 * i + 16 * j), scales, j);
    }
}

#define DECODED(X) X(Q2_K, true) X(Q3_K, false) X(TQ1_0, false) X(TQ2_0, false) X(IQ1_S, false) X(IQ1_M, false) \
                   X(IQ2_XXS, false) X(IQ2_XS, false) X(IQ2_S, false) X(IQ3_XXS, false) X(IQ3_S, false)
#define X(T, has_min)                                                                    \
static void row_##T(const uint8_t *w, few_x x, const int n, row_sums *o)                 \
{                                                                                        \
    ebb_block256 b;                                                                      \
                                                                                         \
    ebb_decode_##T(w, &b);                                                               \
    row_any(&b, x, n, has_min, o);                                                       \
}
DECODED(X)
#undef X

#define TYPE(T, has_min)                                                                 \
void ebb_neon_gemv_##T(const ebb_matmul *a)                                              \
{                                                                                        \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                        \
                                                                                         \
    FEW_LOOP(few_256, a, bytes, has_min, row_##T)                                        \
}
TYPE(Q4_K, true)
TYPE(Q5_K, true)
TYPE(Q6_K, false)
TYPE(IQ4_XS, false)
DECODED(TYPE)
