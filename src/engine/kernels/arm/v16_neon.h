/* arm/v16_neon.h - the 16 partial sums of rule K3 in four registers. */
#ifndef EBB_KERNELS_V16_NEON_H
#define EBB_KERNELS_V16_NEON_H
#include <arm_neon.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/number.h"

#define V16_INLINE static inline __attribute__((always_inline))
#define V16_FEW 4                /* queries that use a row as it is converted */
/* Rows by columns of a product; of attention queries by keys (or vectors of values), and keys or
 * vectors of one query. */
enum { V16_ROWS = 2, V16_COLS = 3, V16_SIDE = 2, V16_KEYS = V16_SIDE * V16_SIDE, V16_VALUES = 2 };

typedef struct v16 {
    float32x4_t a, b, c, d;      /* elements 0..3, 4..7, 8..11, 12..15 */
} v16;

V16_INLINE v16 v16_set(float f)
{
    float32x4_t v = vdupq_n_f32(f);

    return (v16){ v, v, v, v };
}

V16_INLINE v16 v16_zero(void)
{
    return v16_set(0);
}

V16_INLINE v16 v16_load(const float *p)
{
    return (v16){ vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12) };
}

V16_INLINE void v16_store(float *p, v16 v)
{
    vst1q_f32(p, v.a);
    vst1q_f32(p + 4, v.b);
    vst1q_f32(p + 8, v.c);
    vst1q_f32(p + 12, v.d);
}

V16_INLINE v16 v16_add(v16 x, v16 y)
{
    return (v16){ vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b), vaddq_f32(x.c, y.c),
                  vaddq_f32(x.d, y.d) };
}

V16_INLINE v16 v16_mul(v16 x, v16 y)
{
    return (v16){ vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b), vmulq_f32(x.c, y.c),
                  vmulq_f32(x.d, y.d) };
}

V16_INLINE float32x4_t v16_larger(float32x4_t x, float32x4_t y)
{
    return vbslq_f32(vcgtq_f32(x, y), x, y);
}

/* x > y ? x : y */
V16_INLINE v16 v16_max(v16 x, v16 y)
{
    return (v16){ v16_larger(x.a, y.a), v16_larger(x.b, y.b), v16_larger(x.c, y.c),
                  v16_larger(x.d, y.d) };
}

V16_INLINE v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){ vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c),
                  vfmaq_f32(z.d, x.d, y.d) };
}

V16_INLINE v16 v16_load_f16(const void *p)
{
    float16x8_t low = vreinterpretq_f16_u8(vld1q_u8(p)),
                high = vreinterpretq_f16_u8(vld1q_u8((const uint8_t *)p + 16));

    return (v16){ vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low),
                  vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high) };
}

V16_INLINE v16 v16_set_f16(const void *p)
{
    float32x4_t v = vcvt_f32_f16(vreinterpret_f16_u16(vld1_dup_u16(p)));

    return (v16){ v, v, v, v };
}

V16_INLINE float32x4_t v16_swap_4(float32x4_t v, const int step)
{
    return step == 2 ? vextq_f32(v, v, 2) : vrev64q_f32(v);
}

/* Lane i: that of i ^ step, which is 8, 4, 2 or 1. */
V16_INLINE v16 v16_swap(v16 v, const int step)
{
    return step == 8 ? (v16){ v.c, v.d, v.a, v.b }
         : step == 4 ? (v16){ v.b, v.a, v.d, v.c }
                     : (v16){ v16_swap_4(v.a, step), v16_swap_4(v.b, step), v16_swap_4(v.c, step),
                              v16_swap_4(v.d, step) };
}

/* 8 floats as halves, to nearest even. */
V16_INLINE void v16_store_8_halves(void *out, const float *x)
{
    vst1q_u8(out,
             vreinterpretq_u8_f16(vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(x)), vld1q_f32(x + 4))));
}

/* As ebb_bf16_load. */
V16_INLINE uint16x8_t v16_normal_bf16(const void *p)
{
    uint16x8_t v = vreinterpretq_u16_u8(vld1q_u8(p));

    return vandq_u16(v, vtstq_u16(v, vdupq_n_u16(0x7f80)));
}

V16_INLINE v16 v16_load_bf16(const void *p)
{
    uint16x8_t zero = vdupq_n_u16(0), low = v16_normal_bf16(p),
               high = v16_normal_bf16((const uint8_t *)p + 16);

    return (v16){ vreinterpretq_f32_u16(vzip1q_u16(zero, low)),
                  vreinterpretq_f32_u16(vzip2q_u16(zero, low)),
                  vreinterpretq_f32_u16(vzip1q_u16(zero, high)),
                  vreinterpretq_f32_u16(vzip2q_u16(zero, high)) };
}

V16_INLINE v16 v16_from_i8(int8x16_t v)
{
    int16x8_t low = vmovl_s8(vget_low_s8(v)), high = vmovl_high_s8(v);

    return (v16){ vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                  vcvtq_f32_s32(vmovl_high_s16(high)) };
}

/* 16 bytes as integers. */
V16_INLINE v16 v16_load_i8(const int8_t *p)
{
    return v16_from_i8(vld1q_s8(p));
}

/* d times the low or high nibbles of 16 bytes, less 8. */
V16_INLINE v16 v16_scaled_nibbles(const void *p, v16 d, const bool is_high)
{
    uint8x16_t b = vld1q_u8(p);

    b = is_high ? vshrq_n_u8(b, 4) : vandq_u8(b, vdupq_n_u8(15));
    return v16_mul(d, v16_from_i8(vsubq_s8(vreinterpretq_s8_u8(b), vdupq_n_s8(8))));
}

/* The largest, of numbers. */
V16_INLINE float v16_most(v16 v)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v.a, v.b), vmaxq_f32(v.c, v.d)));
}

/* i and i + 8, i and i + 4. */
V16_INLINE float32x4_t v16_quarter(v16 v)
{
    return vaddq_f32(vaddq_f32(v.a, v.c), vaddq_f32(v.b, v.d));
}

V16_INLINE float v16_sum(v16 v)
{
    float32x4_t q = v16_quarter(v);

    return vpadds_f32(vadd_f32(vget_low_f32(q), vget_high_f32(q)));
}

/* Of two quarters: i and i + 2. */
V16_INLINE float32x4_t v16_eighths(float32x4_t x, float32x4_t y)
{
    float64x2_t u = vreinterpretq_f64_f32(x), v = vreinterpretq_f64_f32(y);

    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(u, v)),
                     vreinterpretq_f32_f64(vzip2q_f64(u, v)));
}

/* out[j] = the sum of s[j]. */
V16_INLINE void v16_sum_keys(v16 s[V16_KEYS], float *out)
{
    float32x4_t low = v16_eighths(v16_quarter(s[0]), v16_quarter(s[1])),
                high = v16_eighths(v16_quarter(s[2]), v16_quarter(s[3]));

    vst1q_f32(out, vpaddq_f32(low, high));
}

#endif
