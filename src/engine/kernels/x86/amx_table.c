/* The table for AMX with bytes (Intel since 2023): products with many columns; the rest is AVX-512's. */
#include "kernels/impl.h"

void ebb_kernels_fill_amx(ebb_kernels *k)
{
    k->name = "amx";
    ebb_kernels_fill_amx_gemm256(k);
}
