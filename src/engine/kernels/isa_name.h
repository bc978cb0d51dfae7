/* kernels/isa_name.h - names of static kernels that are compiled for several instruction sets, so
 * that a backtrace and a profile tell them apart: ISA_NAME(dot) is avx2_dot, avx512_dot, ... */
#ifndef EBB_KERNELS_ISA_NAME_H
#define EBB_KERNELS_ISA_NAME_H

#if defined(__AVX512F__)
#define ISA_NAME(name) avx512_##name
#elif defined(__AVX2__)
#define ISA_NAME(name) avx2_##name
#elif defined(__ARM_FEATURE_DOTPROD)
#define ISA_NAME(name) neon_##name
#else
#define ISA_NAME(name) scalar_##name
#endif

#endif
