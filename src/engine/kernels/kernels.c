/* Which table of kernels this machine gets (kernels.h). */
#include "kernels/kernels.h"

#include <pthread.h>

#include "ebb/experimental/plan.h"
#include "kernels/quant_blocks.h"
#include "kernels/impl.h"
#include "os/cpu.h"

const char *const ebb_isa_names[EBB_ISA_NEON + 2] = {
    "auto", "scalar", "avx2", "avxvnni", "avx512", "amx", "neon", NULL
};

static ebb_kernels tables[EBB_ISA_NEON + 1];     /* filled once, read-only afterwards */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    ebb_grids_fill();
    ebb_kernels_fill_scalar(&tables[EBB_ISA_SCALAR]);
#if defined(__x86_64__)
    ebb_cpu_features f = ebb_cpu_detect();

    if (f.avx2) {
        tables[EBB_ISA_AVX2] = tables[EBB_ISA_SCALAR];
        ebb_kernels_fill_avx2(&tables[EBB_ISA_AVX2]);
    }
    if (f.avxvnni) {
        tables[EBB_ISA_AVXVNNI] = tables[EBB_ISA_AVX2];
        ebb_kernels_fill_avxvnni(&tables[EBB_ISA_AVXVNNI]);
    }
    if (f.avx512) {
        tables[EBB_ISA_AVX512] = tables[f.avxvnni ? EBB_ISA_AVXVNNI : EBB_ISA_AVX2];
        ebb_kernels_fill_avx512(&tables[EBB_ISA_AVX512]);
    }
    if (f.amx && ebb_cpu_allow_amx()) {
        tables[EBB_ISA_AMX] = tables[EBB_ISA_AVX512];
        ebb_kernels_fill_amx(&tables[EBB_ISA_AMX]);
    }
#elif defined(__aarch64__)
    if (ebb_cpu_detect().dotprod) {
        tables[EBB_ISA_NEON] = tables[EBB_ISA_SCALAR];
        ebb_kernels_fill_neon(&tables[EBB_ISA_NEON]);
    }
#endif
}

static ebb_isa best_cpu(void)
{
    ebb_isa best = EBB_ISA_SCALAR;

    for (ebb_isa c = EBB_ISA_SCALAR; c <= EBB_ISA_NEON; c++)
        if (tables[c].name)
            best = c;
    return best;
}

ebb_status ebb_kernels_get(ebb_isa cpu, const ebb_kernels **out, ebb_error *err)
{
    *out = NULL;
    if ((unsigned)cpu > EBB_ISA_NEON)
        return EBB_FAIL(err, EBB_USAGE, "no such kind of CPU kernels: %d", (int)cpu);
    pthread_once(&once, fill_tables);
    if (cpu == EBB_ISA_AUTO)
        cpu = best_cpu();
    if (!tables[cpu].name)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "this machine has no %s kernels; its best are %s",
                        ebb_isa_names[cpu], tables[best_cpu()].name);
    *out = &tables[cpu];
    return EBB_OK;
}

const char *ebb_isa_best(void)
{
    pthread_once(&once, fill_tables);
    return tables[best_cpu()].name;
}

bool ebb_kernel_has_type(ebb_type type)
{
    switch ((int)type) {
#define X(T, ...) case EBB_TYPE_##T:
    EBB_TYPES_32(X)
    EBB_TYPES_256(X)
    EBB_TYPES_PARTS(X)
#undef X
    case EBB_TYPE_F32: case EBB_TYPE_F16: case EBB_TYPE_BF16:
        return true;
    default:
        return false;
    }
}
