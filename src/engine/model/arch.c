/* The list of architectures, and what none of them reads (arch.h). */
#include "model/arch.h"

const char *const ebb_harmless_keys[] = {
    ".vocab_size",                       /* token_embd has as many rows */
    ".attention.layer_norm_epsilon", ".attention.layer_norm_rms_epsilon",        /* of the kind of norm that it has not */
    ".rope.scaling.finetuned",           /* how it was trained; Granite, where it means more, reads it */
    ".pooling_type",                     /* of embeddings */
    ".tensor_data_layout",               /* of the checkpoint that was converted */
    ".vision.", ".audio.", ".mm.",       /* images and sounds, as their tensors are */
    "general.tensor_extra.name", "general.tensor_extra.prec_a4",         /* which products may round inputs to 4 bits; none here do */
    NULL,
};

const ebb_arch *const ebb_archs[] = {
    &ebb_arch_llama,
    &ebb_arch_granite,
    &ebb_arch_granitemoe,
    &ebb_arch_granitehybrid,
    &ebb_arch_smollm3,
    &ebb_arch_mistral3,
    &ebb_arch_llama4,
    &ebb_arch_ernie4_5,
    &ebb_arch_ernie4_5_moe,
    &ebb_arch_arcee,
    &ebb_arch_apertus,
    &ebb_arch_smallthinker,
    &ebb_arch_hunyuan_dense,
    &ebb_arch_hunyuan_moe,
    &ebb_arch_seed_oss,
    &ebb_arch_minimax_m2,
    &ebb_arch_bailingmoe2,
    &ebb_arch_muse_glimmer,
    &ebb_arch_plamo3,
    &ebb_arch_qwen2,
    &ebb_arch_qwen2vl,
    &ebb_arch_qwen2moe,
    &ebb_arch_qwen3,
    &ebb_arch_qwen3moe,
    &ebb_arch_qwen3vl,
    &ebb_arch_qwen3vlmoe,
    &ebb_arch_qwen35,
    &ebb_arch_qwen35moe,
    &ebb_arch_qwen3next,
    &ebb_arch_lfm2,
    &ebb_arch_lfm2moe,
    &ebb_arch_nemotron_h,
    &ebb_arch_nemotron_h_moe,
    &ebb_arch_falcon_h1,
    &ebb_arch_mamba2,
    &ebb_arch_mamba,
    &ebb_arch_jamba,
    &ebb_arch_gemma,
    &ebb_arch_gemma2,
    &ebb_arch_gemma3,
    &ebb_arch_gemma4,
    &ebb_arch_phi2,
    &ebb_arch_phi3,
    &ebb_arch_gpt_oss,
    &ebb_arch_stablelm,
    &ebb_arch_command_r,
    &ebb_arch_cohere2,
    &ebb_arch_olmo2,
    &ebb_arch_olmoe,
    &ebb_arch_exaone4,
    &ebb_arch_starcoder2,
    &ebb_arch_gpt2,
    &ebb_arch_falcon,
    &ebb_arch_chatglm,
    &ebb_arch_glm4,
    &ebb_arch_glm4moe,
    &ebb_arch_deepseek,
    &ebb_arch_deepseek2,
    NULL,
};
