/* The table for AArch64 with the dot product extension, and its float kernels. */
#include "kernels/float_body.h"
#include "kernels/impl.h"
#include "kernels/arm/v16_neon.h"

#define V16_MORE_COLS 0
#include "kernels/float_gemm_body.h"

void ebb_kernels_fill_neon(ebb_kernels *k)
{
    k->name = "neon";
    float_body_fill(k);
    float_gemm_fill(k);
    ebb_kernels_fill_neon_attend(k);
    ebb_kernels_fill_neon_quant(k);
}
