/* model/arch.h - the architectures: one file each, one row each in arch.c. */
#ifndef EBB_ARCH_H
#define EBB_ARCH_H
#include "model/bind.h"
#include "model/run.h"

typedef struct ebb_arch {
    const char *name;            /* general.architecture */
    /* Hyper-parameters and tensors, in the order in which `layer` uses them. */
    ebb_status (*bind)(ebb_binder *b);
    /* One layer for the columns of the run: from x to x.  Errors: those of acquire. */
    ebb_status (*layer)(ebb_run *r, uint32_t i_layer, ebb_error *err);
} ebb_arch;

extern const ebb_arch *const ebb_archs[];        /* ends with NULL */
extern const ebb_arch ebb_arch_llama, ebb_arch_qwen2, ebb_arch_qwen3, ebb_arch_gemma2, ebb_arch_gemma3, ebb_arch_phi3;

#endif
