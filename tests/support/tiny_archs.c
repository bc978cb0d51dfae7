/* What is special about each architecture (tiny_writer.h). */
#include "support/tiny_writer.h"

#include <string.h>

#include "ebb_test.h"

static const struct traits { const char *arch; uint64_t has;
} traits[] = {
    { "llama", 0 },
    { "smollm3", 0 },
    { "granite", MULTIPLIERS },
    { "granitemoe", MULTIPLIERS | EXPERTS },
    { "qwen2", QKV_BIAS },
    { "qwen2moe", QKV_BIAS | EXPERTS | SHARED },
    { "qwen3", QK_NORM },
    { "qwen3moe", QK_NORM | EXPERTS },
    { "qwen35", QK_NORM | HYBRID | PARTIAL | POST_IS_FFN },
    { "qwen35moe", QK_NORM | HYBRID | PARTIAL | POST_IS_FFN | EXPERTS | SHARED },
    { "qwen3next", QK_NORM | HYBRID | PARTIAL | POST_IS_FFN | EXPERTS | SHARED | GROUPED },
    { "gemma", 0 },
    { "gemma2", POST_NORMS | WINDOW | SOFTCAPS },
    { "gemma3", POST_NORMS | QK_NORM | WINDOW | LINEAR },
    { "gemma4", GEMMA4 | EXPERTS | WINDOW | SOFTCAPS },
    { "gemma3n", GEMMA3N | POST_NORMS | QK_NORM | WINDOW | SOFTCAPS },
    { "phi2", LAYER_NORM | NORM_BIAS | QKV_BIAS | BIAS | PLAIN_FFN | PARALLEL | PARTIAL | OUTPUT_BIAS },
    { "phi3", FUSED_QKV | FUSED_FFN | PARTIAL | LONGROPE },
    { "phimoe", NORM_BIAS | QKV_BIAS | BIAS | EXPERTS | LONGROPE | OUTPUT_BIAS },
    { "gpt-oss", QKV_BIAS | BIAS | SINKS | EXPERTS | WINDOW | YARN | POST_IS_FFN },
    { "stablelm", LAYER_NORM | NORM_BIAS | PARTIAL },
    { "command-r", LAYER_NORM | PARALLEL | MULTIPLIERS },
    { "cohere2", LAYER_NORM | PARALLEL | MULTIPLIERS | WINDOW },
    { "olmo2", NO_PRE_NORMS | QK_WHOLE | POST_NORMS | WINDOW | YARN | FOUR },
    { "olmoe", QK_WHOLE | EXPERTS },
    { "exaone4", NO_PRE_NORMS | QK_NORM | POST_NORMS },
    { "qwen2vl", QKV_BIAS | IMAGES },
    { "qwen3vl", QK_NORM | IMAGES },
    { "qwen3vlmoe", QK_NORM | IMAGES | EXPERTS },
    { "mistral3", YARN | TEMPERATURE },
    { "llama4", EXPERTS | ONE_FOR_ALL | FOUR },
    { "ernie4_5", 0 },
    { "ernie4_5-moe", EXPERTS | ONE_FOR_ALL | SOFT_BIAS },
    { "arcee", PLAIN_FFN },
    { "apertus", QK_NORM | PLAIN_FFN | XIELU },
    { "smallthinker", EXPERTS | WINDOW | FOUR },
    { "hunyuan-dense", QK_NORM },
    { "hunyuan-moe", QK_NORM | EXPERTS | SHARED },
    { "seed_oss", QKV_BIAS | POST_IS_FFN },
    { "minimax-m2", QK_WHOLE | PARTIAL | EXPERTS | SOFT_BIAS },
    { "bailingmoe2", FUSED_QKV | QK_NORM | EXPERTS | ONE_FOR_ALL | CHOICE_BIAS },
    { "muse-glimmer", QK_NORM | HEAD_GATE | POST_NORMS | WINDOW | MULTIPLIERS | FOUR },
    { "plamo3", FUSED_QKV | QK_NORM | POST_NORMS | BARE | FUSED_FFN | WINDOW },
    { "starcoder2", LAYER_NORM | NORM_BIAS | QKV_BIAS | BIAS | PLAIN_FFN },
    { "gpt2", LAYER_NORM | NORM_BIAS | QKV_BIAS | BIAS | PLAIN_FFN | FUSED_QKV | POSITIONS },
    { "falcon", LAYER_NORM | NORM_BIAS | FUSED_QKV | PLAIN_FFN | PARALLEL },
    { "chatglm", FUSED_QKV | QKV_BIAS | FUSED_FFN | PARTIAL },
    { "glm4", QKV_BIAS | FUSED_FFN | POST_NORMS | PARTIAL },
    { "glm4moe", QKV_BIAS | EXPERTS | ONE_FOR_ALL | CHOICE_BIAS | POST_IS_FFN | PARTIAL },
    { "lfm2", QK_NORM },
    { "lfm2moe", QK_NORM | EXPERTS | CHOICE_BIAS },
    { "nemotron_h", 0 },
    { "nemotron_h_moe", EXPERTS },
    { "granitehybrid", MULTIPLIERS | EXPERTS | UNTURNED },
    { "falcon-h1", 0 },
    { "mamba2", 0 },
    { "mamba", 0 },
    { "jamba", EXPERTS },
    { "deepseek", EXPERTS | ONE_FOR_ALL },
    { "deepseek2", EXPERTS | ONE_FOR_ALL | CHOICE_BIAS | LATENT | YARN },
};
#define N_ARCHS (sizeof traits / sizeof *traits)

/* What stands in for attention, in turn: c short convolution, 2 Mamba 2, 1 Mamba, a attention, b attention beside Mamba
 * 2; where there is F, a feed-forward, a layer is one of these and nothing else (A: attention); so it is where all are
 * the same. */
static const struct { const char *arch, *layers;
} recurrent[] = {
    { "lfm2", "cca" },           { "lfm2moe", "cca" },      { "nemotron_h", "2FAF" },
    { "nemotron_h_moe", "2FA" }, { "granitehybrid", "2a" }, { "falcon-h1", "b" },
    { "mamba2", "2" },           { "mamba", "1" },          { "jamba", "1a" },
};

const char *const ebb_tiny_archs[] = {
    "llama",         "smollm3",     "granite",    "granitemoe",     "qwen2",         "qwen2moe",     "qwen3",
    "qwen3moe",      "qwen35",      "qwen35moe",  "qwen3next",      "gemma",         "gemma2",       "gemma3",
    "gemma4",        "phi2",        "phi3",       "gpt-oss",        "stablelm",      "command-r",    "cohere2",
    "olmo2",         "starcoder2",  "gpt2",       "falcon",         "chatglm",       "glm4",         "glm4moe",
    "deepseek",      "deepseek2",   "olmoe",      "exaone4",        "qwen2vl",       "qwen3vl",      "qwen3vlmoe",
    "mistral3",      "llama4",      "ernie4_5",   "ernie4_5-moe",   "arcee",         "apertus",      "smallthinker",
    "hunyuan-dense", "hunyuan-moe", "seed_oss",   "minimax-m2",     "bailingmoe2",   "muse-glimmer", "plamo3",
    "lfm2",          "lfm2moe",     "nemotron_h", "nemotron_h_moe", "granitehybrid", "falcon-h1",    "mamba2",
    "mamba",         "jamba",       "gemma3n",    "phimoe",         NULL,
};

bool tiny_has(const ebb_tiny_opts *o, uint64_t trait)
{
    for (size_t i = 0; i < N_ARCHS; i++)
        if (strcmp(traits[i].arch, o->arch) == 0)
            return (traits[i].has & trait) != 0;
    fail_msg("no tiny model of architecture %s", o->arch);
    return false;
}

/* Gemma 4 is everything at once.  Every second layer is global, with heads twice as wide, half the KV heads and no V;
 * the last half of at least four layers uses the K and V of those before and has a wider feed-forward. */
uint32_t tiny_gemma4_shared(const ebb_tiny_opts *o)
{
    return o->n_layers >= 4 ? o->n_layers / 2 : 0;
}

bool tiny_gemma4_is_shared(const ebb_tiny_opts *o, uint32_t i)
{
    return i >= o->n_layers - tiny_gemma4_shared(o);
}

uint32_t tiny_gemma4_n_kv(const ebb_tiny_opts *o, uint32_t i)
{
    return i % 2 && o->n_head_kv > 1 ? o->n_head_kv / 2 : o->n_head_kv;
}

/* Of Gemma 3n every fifth layer is global, the last five use the K and V of those before; gates are cut off in up to
 * ten of the first half of the layers. */
uint32_t tiny_gemma3n_shared(const ebb_tiny_opts *o)
{
    return o->n_layers > GEMMA3N_SHARED ? GEMMA3N_SHARED : 0;
}

const char *tiny_layers_of(const ebb_tiny_opts *o)
{
    for (size_t i = 0; i < sizeof recurrent / sizeof *recurrent; i++)
        if (strcmp(recurrent[i].arch, o->arch) == 0)
            return recurrent[i].layers;
    return NULL;
}

bool tiny_is_recurrent(const ebb_tiny_opts *o)
{
    return tiny_layers_of(o) != NULL;
}

char tiny_kind_of(const ebb_tiny_opts *o, uint32_t i)
{
    const char *layers = tiny_layers_of(o);

    return layers[i % strlen(layers)];
}

/* No layer has heads or a feed-forward. */
bool tiny_is_bare(const ebb_tiny_opts *o)
{
    return tiny_is_recurrent(o) && strlen(tiny_layers_of(o)) == 1 && tiny_kind_of(o, 0) != 'b';
}

/* A layer is one thing: '2' stands for Mamba 2 alone where others are capitals. */
bool tiny_is_single(const ebb_tiny_opts *o)
{
    return tiny_is_bare(o) || (tiny_is_recurrent(o) && strchr(tiny_layers_of(o), 'F'));
}

bool tiny_has_heads(const ebb_tiny_opts *o, uint32_t i)
{
    return strchr("aAb", tiny_kind_of(o, i)) != NULL;
}

uint32_t tiny_n_rot(const ebb_tiny_opts *o)
{
    return tiny_has(o, GEMMA4)  ? 2 * o->head_dim
         : tiny_has(o, LATENT)  ? DIM_TURNED
         : tiny_has(o, PARTIAL) ? o->head_dim / 2
                                : o->head_dim;
}
