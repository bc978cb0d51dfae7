/* os/cpu.h - what this machine's CPU can do and the operating system lets us use. */
#ifndef EBB_OS_CPU_H
#define EBB_OS_CPU_H
#include <stdbool.h>
#include <stddef.h>

typedef struct ebb_cpu_features {
    bool avx2;                   /* AVX2, FMA, F16C, BMI2, and ymm state is kept */
    bool avxvnni;                /* avx2 and AVX-VNNI, which machines without AVX-512 may have */
    bool avx512;                 /* avx2 and AVX-512 F BW VL DQ VNNI, and zmm and mask state is
                                    kept */
    bool amx;                    /* avx512 and AMX with bytes, and tile state is kept for those that
                                    ask for it (ebb_cpu_allow_amx) */
    bool neon;                   /* AArch64: always, with the dot product extension apart */
    bool dotprod;
} ebb_cpu_features;

/* Cost: a few instructions; keep the answer if you need it often. */
ebb_cpu_features ebb_cpu_detect(void);
/* Asks the kernel for room for the tile registers of AMX, for all threads of this process.  false:
 * it has none, or a thread's stack for signals is too small for them.  May be called again. */
bool ebb_cpu_allow_amx(void);
/* What it calls itself: "Intel(R) Xeon(R) Processor"; "" if it does not say. */
void ebb_cpu_name(char out[64]);
/* Write [p, p + n) back and drop it from all caches, so that it comes from memory when it is read
 * next.  false: this CPU does not let a program do that.  Cost: some 10 ns for each cache line. */
bool ebb_cpu_flush(const void *p, size_t n);

#endif
