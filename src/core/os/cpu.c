/* CPU features, by asking the CPU. */
#include "os/cpu.h"

#include <stdint.h>
#include <string.h>

#define LINE_BYTES 64u           /* the shortest cache line of those that matter */

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Which register state the system saves: XCR0.  Only after OSXSAVE was seen. */
static uint64_t xcr0(void)
{
    uint32_t low, high;

    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_bits(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

ebb_cpu_features ebb_cpu_detect(void)
{
    const uint32_t ymm_state = 0x06, zmm_state = 0xe6;   /* SSE AVX; and opmask, ZMM_Hi256, Hi16_ZMM */
    const uint32_t tile_state = 0x60000;         /* TILECFG, TILEDATA */
    const uint32_t avx_vnni = 1u << 4;           /* of leaf 7, subleaf 1 */
    const uint32_t amx_tile = 1u << 24, amx_int8 = 1u << 25;
    ebb_cpu_features f = { 0 };
    uint32_t a, b, c, d, b7, c7, d7;

    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) || !__get_cpuid(1, &a, &b, &c, &d) || !has_bits(c, bit_OSXSAVE))
        return f;
    uint64_t state = xcr0();
    f.avx2 = (state & ymm_state) == ymm_state && has_bits(c, bit_AVX | bit_FMA | bit_F16C) &&
             has_bits(b7, bit_AVX2 | bit_BMI2);
    f.avxvnni = f.avx2 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && has_bits(a, avx_vnni);
    f.avx512 = f.avx2 && (state & zmm_state) == zmm_state && has_bits(c7, bit_AVX512VNNI) &&
               has_bits(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ);
    f.amx = f.avx512 && (state & tile_state) == tile_state && has_bits(d7, amx_tile | amx_int8);
    return f;
}

bool ebb_cpu_allow_amx(void)
{
#if defined(__linux__)
    const unsigned long request = 0x1023, tile_data = 18;        /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */

    return syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
    return false;
#endif
}

void ebb_cpu_name(char out[64])
{
    uint32_t regs[12];

    out[0] = '\0';
    for (uint32_t i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2], &regs[4 * i + 3]))
            return;
    memcpy(out, regs, sizeof regs);
    out[sizeof regs] = '\0';
}

bool ebb_cpu_flush(const void *p, size_t n)
{
    const uint32_t has_clflushopt = 1u << 23;
    uint32_t a, b, c, d;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_bits(b, has_clflushopt))
        return false;
    for (size_t i = 0; i < n; i += LINE_BYTES)   /* clflushopt, for assemblers that do not know it */
        __asm__ volatile(".byte 0x66; clflush %0" : : "m"(((const char *)p)[i]) : "memory");
    __asm__ volatile("mfence" : : : "memory");
    return true;
}

#else
bool ebb_cpu_allow_amx(void)
{
    return false;
}
#endif

#if defined(__aarch64__)
#include <stdio.h>
#include <sys/auxv.h>

/* Implementer and part of the main ID register, that of the first CPU: there are machines with CPUs of several
 * kinds. */
static uint32_t first_cpu_id(void)
{
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "re");
    unsigned long long midr = 0;

    if (f && fscanf(f, "%llx", &midr) != 1)
        midr = 0;
    if (f)
        fclose(f);
    return (uint32_t)(midr >> 12 & 0xff000) | (uint32_t)(midr >> 4 & 0xfff);
}

void ebb_cpu_name(char out[64])
{
    static const struct { uint32_t id; const char *name; } known[] = {
        { 0x41d08, "Cortex-A72" }, { 0x41d0b, "Cortex-A76" }, { 0x41d0c, "Neoverse N1" }, { 0x41d40, "Neoverse V1" },
        { 0x41d49, "Neoverse N2" }, { 0x41d4f, "Neoverse V2" }, { 0xc0ac3, "Ampere-1" },
    };
    uint32_t id = first_cpu_id();

    memcpy(out, "ARM", 4);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id == id) {
            snprintf(out, 64, "ARM %s", known[i].name);
            return;
        }
    if (id)
        snprintf(out, 64, "ARM %05x", id);
}

bool ebb_cpu_flush(const void *p, size_t n)
{
    for (size_t i = 0; i < n; i += LINE_BYTES)
        __asm__ volatile("dc civac, %0" : : "r"((const char *)p + i) : "memory");
    __asm__ volatile("dsb sy" : : : "memory");
    return true;
}

ebb_cpu_features ebb_cpu_detect(void)
{
    const unsigned long hwcap_asimddp = 1ul << 20;

    return (ebb_cpu_features){ .neon = true, .dotprod = getauxval(AT_HWCAP) & hwcap_asimddp };
}

#elif !defined(__x86_64__)
ebb_cpu_features ebb_cpu_detect(void)
{
    return (ebb_cpu_features){ 0 };
}

void ebb_cpu_name(char out[64])
{
    out[0] = '\0';
}

bool ebb_cpu_flush(const void *p, size_t n)
{
    (void)p;
    (void)n;
    return false;
}
#endif
