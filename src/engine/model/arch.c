#include "model/arch.h"

const ebb_arch *const ebb_archs[] = {
    &ebb_arch_llama,
    &ebb_arch_qwen2,
    &ebb_arch_qwen3,
    &ebb_arch_gemma2,
    &ebb_arch_gemma3,
    &ebb_arch_phi3,
    NULL,
};
