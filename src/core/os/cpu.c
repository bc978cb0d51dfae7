/* CPU features, by asking the CPU. */
#include "os/cpu.h"

#include <stdint.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Which register state the system saves: XCR0.  Only after OSXSAVE was seen. */
static uint64_t xcr0(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

ebb_cpu_features ebb_cpu_detect(void)
{
    const uint32_t ymm_state = 0x06, zmm_state = 0xe6;   /* SSE AVX; and opmask, ZMM_Hi256, Hi16_ZMM */
    ebb_cpu_features f = { 0 };
    uint32_t a, b, c, d, b7, c7;

    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d) || !__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE))
        return f;
    uint64_t state = xcr0();
    f.avx2 = (state & ymm_state) == ymm_state && has(c, bit_AVX | bit_FMA | bit_F16C) && has(b7, bit_AVX2 | bit_BMI2);
    f.avx512 = f.avx2 && (state & zmm_state) == zmm_state && has(c7, bit_AVX512VNNI) &&
               has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ);
    return f;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

ebb_cpu_features ebb_cpu_detect(void)
{
    const unsigned long hwcap_asimddp = 1ul << 20;

    return (ebb_cpu_features){ .neon = true, .dotprod = getauxval(AT_HWCAP) & hwcap_asimddp };
}

#else
ebb_cpu_features ebb_cpu_detect(void)
{
    return (ebb_cpu_features){ 0 };
}
#endif
