/* The table for AVX-512 F BW VL DQ VNNI, and its float kernels. */
#include "kernels/float_body.h"
#include "kernels/impl.h"
#include "kernels/x86/v16_avx512.h"

#define V16_MORE_COLS 1
#include "kernels/float_gemm_body.h"

void ebb_kernels_fill_avx512(ebb_kernels *k)
{
    k->name = "avx512";
    float_body_fill(k);
    float_gemm_fill(k);
    ebb_kernels_fill_avx512_gemm256(k);
    ebb_kernels_fill_avx512_gemm32(k);
    ebb_kernels_fill_avx512_attend(k);
}
