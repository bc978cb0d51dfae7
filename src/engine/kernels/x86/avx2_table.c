/* The table for AVX2, FMA, F16C and BMI2, and its float kernels. */
#include "kernels/float_body.h"
#include "kernels/impl.h"
#include "kernels/x86/v16_avx2.h"

#define V16_MORE_COLS 0
#include "kernels/float_gemm_body.h"

void ebb_kernels_fill_avx2(ebb_kernels *k)
{
    k->name = "avx2";
    float_body_fill(k);
    float_gemm_fill(k);
    ebb_kernels_fill_avx2_attend(k);
    ebb_avx2_fill_quant(k);
}
