/* arm/neon_rows.h - quantized weights times few columns, 4 rows at a time: a block of a row is
 * decoded once and multiplied by the blocks of up to 4 columns, summed along its bytes; then the
 * sums of 4 rows are added into one register with rows in lanes, where the float chain of rule K2
 * runs. */
#ifndef EBB_KERNELS_NEON_ROWS_H
#define EBB_KERNELS_NEON_ROWS_H
#include <arm_neon.h>

#include "kernels/quant_blocks.h"
#include "kernels/rows.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { ROWS = 4, FEW_COLS = 4 };

/* All types; few columns. */
typedef void ebb_neon_gemv(const ebb_matmul *a);
#define X(T, offset, has_min) ebb_neon_gemv ebb_neon_gemv_##T;
EBB_TYPES_32(X)
EBB_TYPES_256(X)
#undef X

/* Lane i: the sum of the lanes of s[i]. */
INLINE int32x4_t sum4(const int32x4_t s[ROWS])
{
    return vpaddq_s32(vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3]));
}

/* The rows that exist. */
INLINE void store_rows(const ebb_matmul *a, size_t r, size_t c, float32x4_t v)
{
    float *y = a->y + c * a->y_stride + r, rest[ROWS];

    if (a->n_rows - r >= ROWS) {
        vst1q_f32(y, v);
        return;
    }
    vst1q_f32(rest, v);
    memcpy(y, rest, (a->n_rows - r) * sizeof *y);
}

/* f(a, r, c0, n) for all rows and columns, n a constant. */
#define FEW_LOOP(f, a, ...)                                              \
    for (size_t r_ = 0; r_ < (a)->n_rows; r_ += ROWS)                    \
        for (size_t c_ = 0; c_ < (a)->n_cols; c_ += FEW_COLS)            \
            switch ((a)->n_cols - c_) {                                  \
            case 1:  f(a, r_, c_, 1, __VA_ARGS__); break;                \
            case 2:  f(a, r_, c_, 2, __VA_ARGS__); break;                \
            case 3:  f(a, r_, c_, 3, __VA_ARGS__); break;                \
            default: f(a, r_, c_, 4, __VA_ARGS__); break;                \
            }

/* ---- blocks of 256 ---- */

typedef const ebb_q8_256 *const few_x[FEW_COLS];

/* A block of one row: its scales, and for each column the products (all lanes together), likewise
 * of its minima. */
typedef struct row_sums {
    float     d, dmin;
    int32x4_t sum[FEW_COLS], min[FEW_COLS];
} row_sums;

typedef void row_fn(const uint8_t *w, few_x x, const int n, row_sums *o);

INLINE void few_256(const ebb_matmul *a, size_t r, size_t c0, const int n, size_t bytes,
                    bool has_min, row_fn *row)
{
    const ebb_q8_256 *x[FEW_COLS] = { NULL };
    const uint8_t *w[ROWS];
    float32x4_t acc[FEW_COLS];

    for (int i = 0; i < ROWS; i++)
        w[i] = row_at(a, r + (size_t)i);
    UNROLL for (int c = 0; c < n; c++) {
        x[c] = column(a, c0 + (size_t)c);
        acc[c] = vdupq_n_f32(0);
    }
    for (size_t at = 0; at < a->n_k / 256 * bytes; at += bytes) {
        int32x4_t sum[FEW_COLS][ROWS], min[FEW_COLS][ROWS];
        float d[ROWS], dmin[ROWS];

        _Pragma("GCC unroll 1") for (int i = 0; i < ROWS; i++) {
            row_sums o;

            UNROLL for (int c = 0; c < n; c++)
                __asm__("" : "+r"(x[c]));        /* or all of x would be loaded before the rows, and
                                                    stored again */
            row(w[i] + at, x, n, &o);
            d[i] = o.d;
            dmin[i] = has_min ? o.dmin : 0;
            UNROLL for (int c = 0; c < n; c++) {
                sum[c][i] = o.sum[c];
                if (has_min)
                    min[c][i] = o.min[c];
            }
        }
        float32x4_t dw = vld1q_f32(d), mw = vld1q_f32(dmin);
        UNROLL for (int c = 0; c < n; c++) {
            float32x4_t total = vcvtq_f32_s32(sum4(sum[c])), dx = vdupq_n_f32(x[c]++->d);

            if (has_min)
                acc[c] = vfmaq_f32(
                    acc[c], dx, vfmsq_f32(vmulq_f32(dw, total), mw, vcvtq_f32_s32(sum4(min[c]))));
            else
                acc[c] = vfmaq_f32(acc[c], vmulq_f32(dw, dx), total);
        }
    }
    UNROLL for (int c = 0; c < n; c++)
        store_rows(a, r, c0 + (size_t)c, acc[c]);
}

/* ---- blocks of 32 ---- */

/* The numbers of a block, `offset` too many. */
typedef int8x16x2_t numbers_fn(const uint8_t *b);

/* Where the scales of a type stand: halves at d and, if it has minima, at m. */
typedef float32x4_t scales_fn(const uint8_t *const w[ROWS], size_t at);

INLINE void few_32(const ebb_matmul *a, size_t r, size_t c0, const int n, size_t bytes, int offset,
                   numbers_fn *numbers, scales_fn *d, scales_fn *m)
{
    const ebb_q8_32 *x[FEW_COLS] = { NULL };
    const uint8_t *w[ROWS];
    float32x4_t acc[FEW_COLS];

    for (int i = 0; i < ROWS; i++)
        w[i] = row_at(a, r + (size_t)i);
    UNROLL for (int c = 0; c < n; c++) {
        x[c] = column(a, c0 + (size_t)c);
        acc[c] = vdupq_n_f32(0);
    }
    for (size_t at = 0; at < a->n_k / 32 * bytes; at += bytes) {
        int32x4_t sum[FEW_COLS][ROWS];

        UNROLL for (int i = 0; i < ROWS; i++) {
            int8x16x2_t q = numbers(w[i] + at);

            UNROLL for (int c = 0; c < n; c++)
                sum[c][i] = vdotq_s32(vdotq_s32(vdupq_n_s32(0), q.val[0], vld1q_s8(x[c]->q)),
                                      q.val[1], vld1q_s8(x[c]->q + 16));
        }
        float32x4_t dw = d(w, at);
        UNROLL for (int c = 0; c < n; c++) {
            const ebb_q8_32 *b = x[c]++;
            int32x4_t total = sum4(sum[c]);
            float32x4_t dx = vdupq_n_f32(b->d);

            if (offset > 0)
                total = vsubq_s32(total, vdupq_n_s32(offset * b->sum));
            acc[c] = vfmaq_f32(acc[c], vmulq_f32(dw, dx), vcvtq_f32_s32(total));
            if (m)
                acc[c] = vfmaq_f32(acc[c], vmulq_f32(m(w, at), dx), vdupq_n_f32((float)b->sum));
        }
    }
    UNROLL for (int c = 0; c < n; c++)
        store_rows(a, r, c0 + (size_t)c, acc[c]);
}

/* The half at `byte` of 4 rows. */
INLINE float32x4_t load_halves(const uint8_t *const w[ROWS], size_t byte)
{
    uint16x4_t h = vdup_n_u16(ebb_u16_load(w[0] + byte));

    h = vld1_lane_u16((const void *)(w[1] + byte), h, 1);
    h = vld1_lane_u16((const void *)(w[2] + byte), h, 2);
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_lane_u16((const void *)(w[3] + byte), h, 3)));
}

#endif
