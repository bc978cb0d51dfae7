/* model/arch.h - the architectures: one row each in arch.c.  One of llama's kind is a row of
 * traits; others have a function. */
#ifndef EBB_ARCH_H
#define EBB_ARCH_H
#include "model/bind.h"

/* Where a layer's norms are: before attention and feed-forward; behind them; both. */
typedef enum ebb_norm_order { EBB_NORMS_BEFORE, EBB_NORMS_BEHIND, EBB_NORMS_BOTH } ebb_norm_order;

/* What a network of llama's kind has of its own; zero is llama. */
typedef struct ebb_traits {
    bool           rope_is_halves;       /* pairs are half a head apart, else side by side */
    uint32_t       no_rope_period;       /* every so many-th layer has no RoPE; 0: all have */
    bool           has_yarn_betas;       /* the file's count */
    bool           has_qk_norm, qk_norm_is_late;
    ebb_qk_norm    qk_norm;
    bool           has_head_gate;
    ebb_norm_order norms;
    bool           norms_have_bias;      /* RMSNorm(x) * w + b */
    bool           post_norms_are_bare;  /* those behind are named without ".weight" */
    float          post_norm_eps;        /* of those behind; 0: as all norms */
    const char    *ffn_norm;             /* the norm before the feed-forward; NULL: "ffn_norm" */
    ebb_gate       act;
    bool           ffn_is_plain;         /* no gate */
    ebb_routing    routing;
    bool           has_multipliers;      /* Granite's */
    void         (*more)(ebb_binder *b); /* behind the shapes, before the layers; NULL: nothing
                                            more */
} ebb_traits;

typedef struct ebb_arch {
    const char *name;            /* general.architecture */
    void (*bind)(ebb_binder *b); /* hyper-parameters and tensors, in the order in which a layer uses
                                    them */
    const ebb_traits *traits;    /* for ebb_bind_traits */
    bool        has_mtp;         /* nextn_predict_layers of the last blocks are for multi-token
                                    prediction */
    /* Keys that files of it have and that say nothing about what is computed, or NULL:
     * ".vocab_size"; what ends in a point stands for all that begins so.  The list ends with NULL.
     * Any other key that nobody reads is refused. */
    const char *const *harmless;
} ebb_arch;

extern const ebb_arch *const ebb_archs[];        /* ends with NULL */
extern const ebb_arch ebb_arch_llama, ebb_arch_granite, ebb_arch_granitemoe, ebb_arch_smollm3,
    ebb_arch_qwen2, ebb_arch_qwen2moe, ebb_arch_qwen3, ebb_arch_qwen3moe, ebb_arch_qwen35,
    ebb_arch_gemma, ebb_arch_gemma2, ebb_arch_gemma3, ebb_arch_phi2, ebb_arch_phi3,
    ebb_arch_gpt_oss, ebb_arch_stablelm, ebb_arch_command_r, ebb_arch_cohere2, ebb_arch_olmo2,
    ebb_arch_starcoder2, ebb_arch_gpt2, ebb_arch_falcon, ebb_arch_chatglm, ebb_arch_glm4,
    ebb_arch_glm4moe, ebb_arch_deepseek, ebb_arch_deepseek2, ebb_arch_qwen35moe, ebb_arch_qwen3next,
    ebb_arch_gemma3n, ebb_arch_gemma4, ebb_arch_phimoe,
    ebb_arch_qwen2vl, ebb_arch_qwen3vl, ebb_arch_qwen3vlmoe, ebb_arch_mistral3,
    ebb_arch_muse_glimmer, ebb_arch_ernie4_5, ebb_arch_ernie4_5_moe, ebb_arch_hunyuan_dense,
    ebb_arch_hunyuan_moe, ebb_arch_seed_oss, ebb_arch_exaone4, ebb_arch_olmoe, ebb_arch_bailingmoe2,
    ebb_arch_smallthinker, ebb_arch_apertus, ebb_arch_arcee, ebb_arch_llama4, ebb_arch_minimax_m2,
    ebb_arch_plamo3, ebb_arch_lfm2, ebb_arch_lfm2moe, ebb_arch_mamba, ebb_arch_mamba2,
    ebb_arch_jamba, ebb_arch_nemotron_h, ebb_arch_nemotron_h_moe, ebb_arch_granitehybrid,
    ebb_arch_falcon_h1;

#endif
