/* kernels/impl.h - between the files of this directory only: each fills its
 * part of the table; a later, more special one overrides. */
#ifndef EBB_KERNELS_IMPL_H
#define EBB_KERNELS_IMPL_H
#include "kernels/kernels.h"

void ebb_kernels_fill_scalar(ebb_kernels *k);            /* everything */
void ebb_kernels_fill_scalar_quant(ebb_kernels *k);      /* matmul and dequantize of quantized
                                                            types */
void ebb_kernels_fill_scalar_float(ebb_kernels *k);      /* those of F32 F16 BF16 */
void ebb_kernels_fill_scalar_attend(ebb_kernels *k);     /* attend, kv_store */

/* attend of the table "scalar": for shapes that a faster one leaves. */
void ebb_kernels_scalar_attend(const ebb_attend *a);

#if defined(__x86_64__)
void ebb_kernels_fill_avx2(ebb_kernels *k);
void ebb_kernels_fill_avx2_attend(ebb_kernels *k);
void ebb_avx2_fill_quant(ebb_kernels *k);        /* matmul of quantized types */
/* Also the best for AVX-512; any n_cols. */
void ebb_avx2_gemv_Q8_0(const ebb_matmul *a);
void ebb_avx2_gemv_TQ1_0(const ebb_matmul *a);
void ebb_avx2_gemv_IQ1_S(const ebb_matmul *a);
void ebb_avx2_gemv_IQ1_M(const ebb_matmul *a);
void ebb_avx2_gemv_IQ3_XXS(const ebb_matmul *a);
void ebb_kernels_fill_avxvnni(ebb_kernels *k);
void ebb_avxvnni_fill_quant(ebb_kernels *k);
void ebb_kernels_fill_avx512(ebb_kernels *k);
void ebb_kernels_fill_avx512_gemm256(ebb_kernels *k);
void ebb_kernels_fill_avx512_gemm32(ebb_kernels *k);
void ebb_kernels_fill_avx512_attend(ebb_kernels *k);
void ebb_kernels_fill_amx(ebb_kernels *k);
void ebb_kernels_fill_amx_gemm256(ebb_kernels *k);
#elif defined(__aarch64__)
void ebb_kernels_fill_neon(ebb_kernels *k);
void ebb_kernels_fill_neon_attend(ebb_kernels *k);
void ebb_kernels_fill_neon_quant(ebb_kernels *k);
#endif

#endif
