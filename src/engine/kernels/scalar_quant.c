/* Products with quantized weights in plain C (rule K2), and their values. */
#include "kernels/quant_blocks.h"
#include "kernels/impl.h"

static int dot_int8(const int8_t *a, const int8_t *b, int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static float step_32(const ebb_block32 *w, const ebb_q8_32 *x, bool has_min, float acc)
{
    acc = fmaf(w->d * x->d, (float)dot_int8(w->q, x->q, 32), acc);
    return has_min ? fmaf(w->m * x->d, (float)x->sum, acc) : acc;
}

static float step_256(const ebb_block256 *w, const ebb_q8_256 *x, bool has_min, float acc)
{
    int sum = 0, min_sum = 0;

    for (int j = 0; j < 16; j++) {
        sum += w->scale[j] * dot_int8(w->q + 16 * j, x->q + 16 * j, 16);
        min_sum += w->min[j] * x->sum[j];
    }
    return has_min ? fmaf(x->d, fmaf(-w->dmin, (float)min_sum, w->d * (float)sum), acc)
                   : fmaf(w->d * x->d, (float)sum, acc);
}

/* Without a minimum nothing is added: -1 times 0 stays -0. */
static void values_32(const ebb_block32 *w, bool has_min, float *out)
{
    for (int i = 0; i < 32; i++)
        out[i] = has_min ? fmaf(w->d, (float)w->q[i], w->m) : w->d * (float)w->q[i];
}

static void values_256(const ebb_block256 *w, bool has_min, float *out)
{
    for (int i = 0; i < 256; i++) {
        float d = w->d * (float)w->scale[i >> 4];

        out[i] = has_min ? fmaf(d, (float)w->q[i], -(w->dmin * (float)w->min[i >> 4])) : d * (float)w->q[i];
    }
}

/* matmul_T and values_T of one type; len is 32 or 256. */
#define TYPE(T, len, has_min)                                                            \
static void matmul_##T(const ebb_matmul *a)                                              \
{                                                                                        \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                        \
                                                                                         \
    for (size_t c = 0; c < a->n_cols; c++)                                               \
        for (size_t r = 0; r < a->n_rows; r++) {                                         \
            const uint8_t *w = (const uint8_t *)a->w + r * a->row_bytes;                 \
            const ebb_q8_##len *x = (const void *)((const char *)a->x + c * a->x_col_bytes); \
            float acc = 0;                                                               \
                                                                                         \
            for (size_t b = 0; b < a->n_k / len; b++) {                                  \
                ebb_block##len block;                                                    \
                                                                                         \
                ebb_decode_##T(w + b * bytes, &block);                                   \
                acc = step_##len(&block, x + b, has_min, acc);                           \
            }                                                                            \
            a->y[c * a->y_stride + r] = acc;                                             \
        }                                                                                \
}                                                                                        \
                                                                                         \
static void values_##T(const void *row, size_t n_k, float *out)                          \
{                                                                                        \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                        \
                                                                                         \
    for (size_t b = 0; b < n_k / len; b++) {                                             \
        ebb_block##len block;                                                            \
                                                                                         \
        ebb_decode_##T((const uint8_t *)row + b * bytes, &block);                        \
        values_##len(&block, has_min, out + b * len);                                    \
    }                                                                                    \
}
#define X(T, offset, has_min) TYPE(T, 32, has_min)
EBB_TYPES_32(X)
#undef X
#define X(T, offset, has_min) TYPE(T, 256, has_min)
EBB_TYPES_256(X)
#undef X

static float step_part(const ebb_block32 *w, const ebb_q8_32 *x, bool has_halves, float acc)
{
    if (!has_halves)
        return step_32(w, x, false, acc);
    acc = fmaf(w->d * x->d, (float)dot_int8(w->q, x->q, 16), acc);
    return fmaf(w->m * x->d, (float)dot_int8(w->q + 16, x->q + 16, 16), acc);
}

static void values_part(const ebb_block32 *w, bool has_halves, float *out)
{
    for (int i = 0; i < 32; i++)
        out[i] = (has_halves && i >= 16 ? w->m : w->d) * (float)w->q[i];
}

#define X(T, parts, offset, has_halves)                                                  \
static void matmul_##T(const ebb_matmul *a)                                              \
{                                                                                        \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                        \
                                                                                         \
    for (size_t c = 0; c < a->n_cols; c++)                                               \
        for (size_t r = 0; r < a->n_rows; r++) {                                         \
            const uint8_t *w = (const uint8_t *)a->w + r * a->row_bytes;                 \
            const ebb_q8_32 *x = (const void *)((const char *)a->x + c * a->x_col_bytes); \
            float acc = 0;                                                               \
                                                                                         \
            for (size_t b = 0; b < a->n_k / 32; b++) {                                   \
                ebb_block32 block;                                                       \
                                                                                         \
                ebb_decode_##T(w + b / (parts) * bytes, b % (parts), &block);            \
                acc = step_part(&block, x + b, has_halves, acc);                         \
            }                                                                            \
            a->y[c * a->y_stride + r] = acc;                                             \
        }                                                                                \
}                                                                                        \
                                                                                         \
static void values_##T(const void *row, size_t n_k, float *out)                          \
{                                                                                        \
    const size_t bytes = ebb_type_get(EBB_TYPE_##T)->block_bytes;                        \
                                                                                         \
    for (size_t b = 0; b < n_k / 32; b++) {                                              \
        ebb_block32 block;                                                               \
                                                                                         \
        ebb_decode_##T((const uint8_t *)row + b / (parts) * bytes, b % (parts), &block); \
        values_part(&block, has_halves, out + b * 32);                                   \
    }                                                                                    \
}
EBB_TYPES_PARTS(X)
#undef X

void ebb_kernels_fill_scalar_quant(ebb_kernels *k)
{
#define X(T, offset, has_min) k->matmul[EBB_TYPE_##T].gemm = matmul_##T; k->dequantize[EBB_TYPE_##T] = values_##T;
    EBB_TYPES_32(X)
    EBB_TYPES_256(X)
#undef X
#define X(T, ...) k->matmul[EBB_TYPE_##T].gemm = matmul_##T; k->dequantize[EBB_TYPE_##T] = values_##T;
    EBB_TYPES_PARTS(X)
#undef X
}
