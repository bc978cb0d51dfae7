/* The table for AVX-VNNI: products with quantized weights, the files of AVX2 compiled for it (avx2_dot.h). */
#include "kernels/impl.h"

void ebb_kernels_fill_avxvnni(ebb_kernels *k)
{
    k->name = "avxvnni";
    ebb_avxvnni_fill_quant(k);
}
