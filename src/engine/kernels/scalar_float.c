/* Products with F32, F16 and BF16 weights in plain C (rule K3). */
#include "kernels/float_body.h"
#include "kernels/impl.h"

static float load_F32(const uint8_t *p)  { float f; memcpy(&f, p, sizeof f); return f; }
static float load_F16(const uint8_t *p)  { return ebb_f16_load(p); }
static float load_BF16(const uint8_t *p) { return ebb_bf16_load(p); }

typedef float load_fn(const uint8_t *p);

static float row_dot(const uint8_t *w, size_t bytes, load_fn *load, const float *x, size_t n_k)
{
    float s[LANES] = { 0 };

    for (size_t k = 0; k < n_k; k += LANES)
        for (size_t i = k; i < k + LANES; i++)
            s[i - k] = i < n_k ? fmaf(load(w + i * bytes), x[i], s[i - k]) : s[i - k] + 0.0f;
    return lanes_sum(s);
}

static void matmul(const ebb_matmul *a, size_t bytes, load_fn *load)
{
    for (size_t c = 0; c < a->n_cols; c++)
        for (size_t r = 0; r < a->n_rows; r++)
            a->y[c * a->y_stride + r] = row_dot((const uint8_t *)a->w + r * a->row_bytes, bytes, load,
                                                (const float *)((const char *)a->x + c * a->x_col_bytes), a->n_k);
}

static void values(const uint8_t *row, size_t bytes, load_fn *load, size_t n_k, float *out)
{
    for (size_t i = 0; i < n_k; i++)
        out[i] = load(row + i * bytes);
}

#define TYPE(T, bytes)                                                                             \
static void matmul_##T(const ebb_matmul *a) { matmul(a, bytes, load_##T); }                        \
static void values_##T(const void *row, size_t n_k, float *out) { values(row, bytes, load_##T, n_k, out); }
TYPE(F32, 4)
TYPE(F16, 2)
TYPE(BF16, 2)
#undef TYPE

void ebb_kernels_fill_scalar_float(ebb_kernels *k)
{
    k->matmul[EBB_TYPE_F32].gemm = matmul_F32;
    k->matmul[EBB_TYPE_F16].gemm = matmul_F16;
    k->matmul[EBB_TYPE_BF16].gemm = matmul_BF16;
    k->dequantize[EBB_TYPE_F32] = values_F32;
    k->dequantize[EBB_TYPE_F16] = values_F16;
    k->dequantize[EBB_TYPE_BF16] = values_BF16;
}
