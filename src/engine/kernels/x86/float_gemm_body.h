/* x86/float_gemm_body.h - products with F32, F16 and BF16 weights (rule K3),
 * compiled for each kind of v16: V16_ROWS x V16_COLS results in registers, the
 * weights converted as they are loaded.  Columns pass in groups that stay in L2
 * while the rows stream. */
#ifndef EBB_KERNELS_FLOAT_GEMM_BODY_H
#define EBB_KERNELS_FLOAT_GEMM_BODY_H
#include <string.h>

#include "kernels/kernels.h"

enum { COL_GROUP_BYTES = 768 << 10 };

V16_INLINE v16 load_weights(ebb_type type, const uint8_t *p)
{
    return type == EBB_TYPE_F16 ? v16_load_f16(p) : type == EBB_TYPE_BF16 ? v16_load_bf16(p) : v16_load((const float *)(const void *)p);
}

/* Rows r ..., columns c .. c + n - 1; rows past the end repeat the last and are not stored. */
V16_INLINE void micro(const ebb_matmul *a, ebb_type type, size_t r, size_t c, const int n)
{
    const size_t bytes = type == EBB_TYPE_F32 ? 4 : 2, whole = a->n_k / 16 * 16, rest = a->n_k - whole;
    const uint8_t *w[V16_ROWS];
    const float *x[V16_COLS];
    v16 s[V16_ROWS][V16_COLS];

#pragma GCC unroll 8
    for (int i = 0; i < V16_ROWS; i++)
        w[i] = (const uint8_t *)a->w + (r + (size_t)i < a->n_rows ? r + (size_t)i : a->n_rows - 1) * a->row_bytes;
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        x[j] = (const float *)((const char *)a->x + (c + (size_t)j) * a->x_col_bytes);
#pragma GCC unroll 8
        for (int i = 0; i < V16_ROWS; i++)
            s[i][j] = v16_zero();
    }
    for (size_t k = 0; k < whole; k += 16) {
        v16 wv[V16_ROWS];

#pragma GCC unroll 8
        for (int i = 0; i < V16_ROWS; i++)
            wv[i] = load_weights(type, w[i] + k * bytes);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) {
            v16 xv = v16_load(x[j] + k);
#pragma GCC unroll 8
            for (int i = 0; i < V16_ROWS; i++)
                s[i][j] = v16_fma(wv[i], xv, s[i][j]);
        }
    }
    if (rest) {
#pragma GCC unroll 8
        for (int i = 0; i < V16_ROWS; i++) {
            uint8_t tail[64] = { 0 };

            memcpy(tail, w[i] + whole * bytes, rest * bytes);
            v16 wv = load_weights(type, tail);
#pragma GCC unroll 8
            for (int j = 0; j < n; j++) {
                float x_tail[16] = { 0 };

                memcpy(x_tail, x[j] + whole, rest * sizeof(float));
                s[i][j] = v16_fma(wv, v16_load(x_tail), s[i][j]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < V16_ROWS; i++)
        if (r + (size_t)i < a->n_rows) {
#pragma GCC unroll 8
            for (int j = 0; j < n; j++)
                a->y[(c + (size_t)j) * a->y_stride + r + (size_t)i] = v16_sum(s[i][j]);
        }
}

V16_INLINE void columns(const ebb_matmul *a, ebb_type type, size_t r, size_t c, size_t n)
{
    switch (n) {
    case 1:  micro(a, type, r, c, 1); break;
    case 2:  micro(a, type, r, c, 2); break;
    case 3:  micro(a, type, r, c, 3); break;
#if V16_MORE_COLS
    case 4:  micro(a, type, r, c, 4); break;
    case 5:  micro(a, type, r, c, 5); break;
    default: micro(a, type, r, c, 6); break;
#endif
    }
}

V16_INLINE void gemm(const ebb_matmul *a, ebb_type type)
{
    size_t group = COL_GROUP_BYTES / (a->x_col_bytes + 1) / V16_COLS * V16_COLS;

    group = group < V16_COLS ? V16_COLS : group;
    for (size_t c0 = 0; c0 < a->n_cols; c0 += group) {
        size_t c1 = a->n_cols - c0 < group ? a->n_cols : c0 + group;

        for (size_t r = 0; r < a->n_rows; r += V16_ROWS)
            for (size_t c = c0; c < c1; c += V16_COLS)
                columns(a, type, r, c, c1 - c < V16_COLS ? c1 - c : V16_COLS);
    }
}

static void matmul_F32(const ebb_matmul *a)  { gemm(a, EBB_TYPE_F32); }
static void matmul_F16(const ebb_matmul *a)  { gemm(a, EBB_TYPE_F16); }
static void matmul_BF16(const ebb_matmul *a) { gemm(a, EBB_TYPE_BF16); }

static inline void float_gemm_fill(ebb_kernels *k)
{
    k->matmul[EBB_TYPE_F32] = matmul_F32;
    k->matmul[EBB_TYPE_F16] = matmul_F16;
    k->matmul[EBB_TYPE_BF16] = matmul_BF16;
}

#endif
