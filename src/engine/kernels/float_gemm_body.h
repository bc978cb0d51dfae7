/* kernels/float_gemm_body.h - products with F32, F16 and BF16 weights (rule K3), compiled for each
 * kind of v16: V16_ROWS x V16_COLS results in registers.
 *
 * Few columns: the weights are converted as they are loaded, and what is read next is asked for.
 * Many:
 *
 *   for a group of columns                                  their parts of a panel stay in L2
 *     for 16 rows, for a panel of 256 elements   converted to L1, once for all
 *       for V16_COLS columns: all rows           sums of 16 lanes, kept between panels */
#ifndef EBB_KERNELS_FLOAT_GEMM_BODY_H
#define EBB_KERNELS_FLOAT_GEMM_BODY_H
#include <string.h>

#include "kernels/kernels.h"

enum { PANEL_K = 256, PANEL_ROWS = 16, PANEL_COLS = 192, FEW_ROWS = 4, NEAR = 1024 };

typedef struct float_panel {
    float w[PANEL_ROWS][PANEL_K];
    float sum[PANEL_COLS][PANEL_ROWS][16];
} float_panel;

_Static_assert(sizeof(float_panel) <= EBB_KERNEL_SCRATCH,
               "a panel must fit the scratch of a thread");

V16_INLINE v16 load_weights(ebb_type type, const uint8_t *p)
{
    return type == EBB_TYPE_F16  ? v16_load_f16(p)
         : type == EBB_TYPE_BF16 ? v16_load_bf16(p)
                                 : v16_load((const float *)(const void *)p);
}

V16_INLINE size_t weight_bytes(ebb_type type)
{
    return type == EBB_TYPE_F32 ? 4 : 2;
}

V16_INLINE const uint8_t *weights_at(const ebb_matmul *a, size_t r)
{
    return (const uint8_t *)a->w + (r < a->n_rows ? r : a->n_rows - 1) * a->row_bytes;
}

V16_INLINE const float *floats_at(const ebb_matmul *a, size_t c)
{
    return (const float *)((const char *)a->x + c * a->x_col_bytes);
}

/* ---- few columns ---- */

/* The n < 16 elements from `whole` on, padded with zeroes. */
V16_INLINE void add_tail(ebb_type type, const uint8_t *w, const float *const *x, size_t whole,
                         size_t n_rest, const int n, v16 *s)
{
    uint8_t tail[64] = { 0 };

    memcpy(tail, w + whole * weight_bytes(type), n_rest * weight_bytes(type));
    v16 wv = load_weights(type, tail);
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        float x_tail[16] = { 0 };

        memcpy(x_tail, x[j] + whole, n_rest * sizeof(float));
        s[j] = v16_fma(wv, v16_load(x_tail), s[j]);
    }
}

/* Rows r .. r + n_rows - 1, columns c .. c + n - 1; rows past the end repeat the last and are not
 * stored.  The same bytes of as many rows from `next` on are fetched meanwhile, and what is read
 * very soon; next NULL: nothing. */
V16_INLINE void few(const ebb_matmul *a, ebb_type type, size_t r, size_t c, const int n_rows,
                    const int n, const uint8_t *next)
{
    const size_t bytes = weight_bytes(type), whole = a->n_k / 16 * 16;
    const uint8_t *w[FEW_ROWS];
    const float *x[V16_COLS];
    v16 s[FEW_ROWS][V16_COLS];

#pragma GCC unroll 8
    for (int j = 0; j < n; j++)
        x[j] = floats_at(a, c + (size_t)j);
#pragma GCC unroll 8
    for (int i = 0; i < n_rows; i++) {
        w[i] = weights_at(a, r + (size_t)i);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            s[i][j] = v16_zero();
    }
    for (size_t k = 0; k < whole; k += 16) {
        v16 wv[FEW_ROWS];

#pragma GCC unroll 8
        for (int i = 0; i < n_rows; i++) {
            if (next && k * bytes % 64 == 0) {
                __builtin_prefetch((const char *)next + (size_t)i * a->row_bytes + k * bytes, 0, 2);
                __builtin_prefetch((const char *)w[i] + k * bytes + NEAR, 0, 3);
            }
            wv[i] = load_weights(type, w[i] + k * bytes);
        }
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) {
            v16 xv = v16_load(x[j] + k);
#pragma GCC unroll 8
            for (int i = 0; i < n_rows; i++)
                s[i][j] = v16_fma(wv[i], xv, s[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n_rows; i++) {
        if (whole < a->n_k)
            add_tail(type, w[i], x, whole, a->n_k - whole, n, s[i]);
        for (int j = 0; r + (size_t)i < a->n_rows && j < n; j++)
            a->y[(c + (size_t)j) * a->y_stride + r + (size_t)i] = v16_sum(s[i][j]);
    }
}

/* n columns from c; the rows behind those from r on, or NULL if they are there already. */
V16_INLINE void few_columns(const ebb_matmul *a, ebb_type type, size_t r, size_t c, size_t n,
                            const uint8_t *next)
{
    switch (n) {
    case 1:  few(a, type, r, c, V16_ROWS, 1, next); break;
    case 2:  few(a, type, r, c, V16_ROWS, 2, next); break;
    case 3:  few(a, type, r, c, V16_ROWS, 3, next); break;
#if V16_MORE_COLS
    case 4:  few(a, type, r, c, V16_ROWS, 4, next); break;
    case 5:  few(a, type, r, c, V16_ROWS, 5, next); break;
    default: few(a, type, r, c, V16_ROWS, 6, next); break;
#endif
    }
}

V16_INLINE void all_few(const ebb_matmul *a, ebb_type type)
{
    const size_t n_rows = a->n_cols == 1 ? FEW_ROWS : V16_ROWS;

    for (size_t r = 0; r < a->n_rows; r += n_rows) {
        const uint8_t *next = r + 2 * n_rows <= a->n_rows ? weights_at(a, r + n_rows)
                            : a->next                     ? a->next
                                                          : weights_at(a, r);

        if (a->n_cols == 1)
            few(a, type, r, 0, FEW_ROWS, 1, next);
        else
            for (size_t c = 0; c < a->n_cols; c += V16_COLS)
                few_columns(a, type, r, c, a->n_cols - c < V16_COLS ? a->n_cols - c : V16_COLS,
                            c ? NULL : next);
    }
}

/* ---- many columns ---- */

/* V16_ROWS rows of a panel, from row i0 on, times n columns, n_k elements. */
V16_INLINE void panel_sums(float (*w)[PANEL_K], const float *const x[V16_COLS], size_t n_k,
                           bool is_first, float (*sum)[PANEL_ROWS][16], int i0, const int n)
{
    v16 s[V16_ROWS][V16_COLS];

#pragma GCC unroll 8
    for (int i = 0; i < V16_ROWS; i++)
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            s[i][j] = is_first ? v16_zero() : v16_load(sum[j][i0 + i]);
    for (size_t k = 0; k < n_k; k += 16) {
        v16 wv[V16_ROWS];

#pragma GCC unroll 8
        for (int i = 0; i < V16_ROWS; i++)
            wv[i] = v16_load(w[i] + k);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) {
            v16 xv = v16_load(x[j] + k);
#pragma GCC unroll 8
            for (int i = 0; i < V16_ROWS; i++)
                s[i][j] = v16_fma(wv[i], xv, s[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < V16_ROWS; i++)
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            v16_store(sum[j][i0 + i], s[i][j]);
}

/* All rows of a panel times n columns from c; the next ones are fetched meanwhile. */
V16_INLINE void panel_columns(const ebb_matmul *a, float_panel *p, size_t k0, size_t n_k, size_t c,
                              size_t at, const int n)
{
    const float *x[V16_COLS];

#pragma GCC unroll 8
    for (int j = 0; j < n; j++)
        x[j] = floats_at(a, c + (size_t)j) + k0;
    for (int i = 0; i < PANEL_ROWS; i += V16_ROWS) {
        const size_t part = PANEL_K * sizeof(float) / (PANEL_ROWS / V16_ROWS);

#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            for (size_t line = 0; line < part; line += 64)
                __builtin_prefetch((const char *)x[j] + (size_t)n * a->x_col_bytes +
                                       (size_t)i / V16_ROWS * part + line,
                                   0, 3);
        panel_sums(p->w + i, x, n_k, k0 == 0, p->sum + at, i, n);
    }
}

V16_INLINE void convert(const ebb_matmul *a, ebb_type type, size_t r0, size_t k0, size_t n_k,
                        float_panel *p)
{
    for (int i = 0; i < PANEL_ROWS; i++) {
        const uint8_t *w = weights_at(a, r0 + (size_t)i) + k0 * weight_bytes(type);

        for (size_t k = 0; k < n_k; k += 16) {
            __builtin_prefetch((const char *)w + (PANEL_K + k) * weight_bytes(type), 0, 2);
            v16_store(p->w[i] + k, load_weights(type, w + k * weight_bytes(type)));
        }
    }
}

/* The 16 lanes of each sum added up. */
V16_INLINE void store_sums(const ebb_matmul *a, size_t r0, size_t c, float (*sum)[16])
{
    size_t n = a->n_rows - r0 < PANEL_ROWS ? a->n_rows - r0 : PANEL_ROWS;
    float y[PANEL_ROWS];

    for (int i = 0; i < PANEL_ROWS; i += V16_KEYS) {
        v16 s[V16_KEYS];

#pragma GCC unroll 16
        for (int j = 0; j < V16_KEYS; j++)
            s[j] = v16_load(sum[i + j]);
        v16_sum_keys(s, y + i);
    }
    memcpy(a->y + c * a->y_stride + r0, y, n * sizeof *y);
}

/* Columns c0 .. c0 + n_cols - 1, at most PANEL_COLS. */
V16_INLINE void panel_rows(const ebb_matmul *a, ebb_type type, size_t r0, size_t c0, size_t n_cols)
{
    float_panel *p = a->scratch;

    for (size_t k0 = 0; k0 < a->n_k; k0 += PANEL_K) {
        size_t n_k = a->n_k - k0 < PANEL_K ? a->n_k - k0 : PANEL_K, c = 0;

        convert(a, type, r0, k0, n_k, p);
        for (; c + V16_COLS <= n_cols; c += V16_COLS)
            panel_columns(a, p, k0, n_k, c0 + c, c, V16_COLS);
        for (; c < n_cols; c++)
            panel_columns(a, p, k0, n_k, c0 + c, c, 1);
    }
    for (size_t c = 0; c < n_cols; c++)
        store_sums(a, r0, c0 + c, p->sum[c]);
}

V16_INLINE void float_gemm(const ebb_matmul *a, ebb_type type)
{
    if (a->n_cols <= 2 * V16_COLS || a->n_k % 16) {
        all_few(a, type);
        return;
    }
    for (size_t c = 0; c < a->n_cols; c += PANEL_COLS)
        for (size_t r = 0; r < a->n_rows; r += PANEL_ROWS)
            panel_rows(a, type, r, c, a->n_cols - c < PANEL_COLS ? a->n_cols - c : PANEL_COLS);
}

static void ISA_NAME(matmul_F32)(const ebb_matmul *a)  { float_gemm(a, EBB_TYPE_F32); }
static void ISA_NAME(matmul_F16)(const ebb_matmul *a)  { float_gemm(a, EBB_TYPE_F16); }
static void ISA_NAME(matmul_BF16)(const ebb_matmul *a) { float_gemm(a, EBB_TYPE_BF16); }

static inline void float_gemm_fill(ebb_kernels *k)
{
    k->matmul[EBB_TYPE_F32] = (ebb_matmul_slots){ .gemm = ISA_NAME(matmul_F32) };
    k->matmul[EBB_TYPE_F16] = (ebb_matmul_slots){ .gemm = ISA_NAME(matmul_F16) };
    k->matmul[EBB_TYPE_BF16] = (ebb_matmul_slots){ .gemm = ISA_NAME(matmul_BF16) };
}

#endif
