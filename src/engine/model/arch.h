/* model/arch.h - the architectures: one file each, one row each in arch.c. */
#ifndef EBB_ARCH_H
#define EBB_ARCH_H
#include "model/bind.h"

typedef struct ebb_arch {
    const char *name;            /* general.architecture */
    void (*bind)(ebb_binder *b); /* hyper-parameters and tensors, in the order in which a layer uses them */
} ebb_arch;

extern const ebb_arch *const ebb_archs[];        /* ends with NULL */
extern const ebb_arch ebb_arch_llama, ebb_arch_granite, ebb_arch_granitemoe, ebb_arch_smollm3,
    ebb_arch_qwen2, ebb_arch_qwen2moe, ebb_arch_qwen3, ebb_arch_qwen3moe, ebb_arch_qwen35, ebb_arch_gemma,
    ebb_arch_gemma2, ebb_arch_gemma3, ebb_arch_phi2, ebb_arch_phi3, ebb_arch_gpt_oss, ebb_arch_stablelm,
    ebb_arch_command_r, ebb_arch_cohere2, ebb_arch_olmo2, ebb_arch_starcoder2, ebb_arch_gpt2,
    ebb_arch_falcon, ebb_arch_chatglm, ebb_arch_glm4, ebb_arch_glm4moe, ebb_arch_deepseek,
    ebb_arch_deepseek2, ebb_arch_qwen35moe, ebb_arch_qwen3next, ebb_arch_gemma4;

#endif
