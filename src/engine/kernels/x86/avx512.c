/* The table for AVX-512 F BW VL DQ VNNI. */
#include "kernels/float_body.h"
#include "kernels/impl.h"

void ebb_kernels_fill_avx512(ebb_kernels *k)
{
    k->name = "avx512";
    float_body_fill(k);
    ebb_kernels_fill_avx512_gemm256(k);
    ebb_kernels_fill_avx512_gemm32(k);
}
