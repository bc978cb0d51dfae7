/* A GGUF file by hand (tiny_model.h). */
#include "support/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#include "ebb_test.h"

enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STR = 8, ARR = 9 };

#define ALIGN 32u
#define MAX_TENSORS 1024

typedef struct tensor {
    char     name[64];
    ebb_type type;
    uint32_t dims[3], n_dims;
    float    mean, dev;
    bool     is_unit;            /* of floats: ones in the diagonal */
} tensor;

typedef struct writer {
    ebb_buf  keys, infos, data;
    uint32_t n_keys, n_tensors;
    float    added;              /* times what layers add to x */
    tensor   tensors[MAX_TENSORS];
    uint64_t random;
} writer;

/* -- Architectures --------------------------------------------------------------- */

enum {
    QKV_BIAS = 1,
    QK_NORM = 2,
    QK_WHOLE = 4,
    POST_NORMS = 8,
    FUSED_QKV = 16,
    FUSED_FFN = 32,
    PLAIN_FFN = 64,
    LAYER_NORM = 128,
    NORM_BIAS = 256,
    BIAS = 512,
    SINKS = 1024,
    HYBRID = 2048,
    EXPERTS = 4096,
    SHARED = 8192,
    NO_PRE_NORMS = 1 << 14,
    PARALLEL = 1 << 15,
    POSITIONS = 1 << 16,
    WINDOW = 1 << 17,
    PARTIAL = 1 << 18,
    MULTIPLIERS = 1 << 19,
    LONGROPE = 1 << 20,
    YARN = 1 << 21,
    LINEAR = 1 << 22,
    SOFTCAPS = 1 << 23,
    OUTPUT_BIAS = 1 << 24,
    ONE_FOR_ALL = 1 << 25,
    CHOICE_BIAS = 1 << 26,
    LATENT = 1 << 27,
    POST_IS_FFN = 1 << 28,
    GROUPED = 1 << 29,
    GEMMA4 = 1 << 30,
};

enum { DIM_LATENT = 32, DIM_LATENT_Q = 64, DIM_NOPE = 32, DIM_TURNED = 16, DIM_HEAD_V = 32 };
enum { DELTA_K = 2, DELTA_V = 4, DELTA_DIM = 32, DELTA_CONV = 4 };

enum {
    MAMBA_INNER = 128,
    MAMBA_HEADS = 4,
    MAMBA_GROUPS = 2,
    MAMBA_STATE = 16,
    MAMBA_RANK = 32,
    MAMBA_CONV = 4,
    SHORT_CONV = 3
};

#define TRAIT(n) ((uint64_t)1 << (n))
#define HEAD_GATE   TRAIT(31)
#define BARE        TRAIT(32)    /* norms behind are named without ".weight" */
#define XIELU       TRAIT(33)
#define TEMPERATURE TRAIT(34)
#define IMAGES      TRAIT(35)    /* rope.dimension_sections */
#define SOFT_BIAS   TRAIT(36)    /* exp_probs_b without groups and scales */
#define FOUR        TRAIT(37)    /* layers of several kinds: four are needed to see them */
#define GEMMA3N     TRAIT(38)

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
    { "granitehybrid", MULTIPLIERS | EXPERTS },
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

static bool has(const ebb_tiny_opts *o, uint64_t trait)
{
    for (size_t i = 0; i < N_ARCHS; i++)
        if (strcmp(traits[i].arch, o->arch) == 0)
            return (traits[i].has & trait) != 0;
    fail_msg("no tiny model of architecture %s", o->arch);
    return false;
}

/* -- Numbers --------------------------------------------------------------------- */

static uint64_t next_tiny_random(writer *w)
{
    uint64_t z = w->random += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Sum of four uniforms: near enough to normal, deviation 1. */
static float next_normal(writer *w)
{
    uint64_t r = next_tiny_random(w);
    double sum = (double)(r & 0xFFFF) + (double)(r >> 16 & 0xFFFF) + (double)(r >> 32 & 0xFFFF) + (double)(r >> 48);

    return (float)((sum - 131070) / 37837);
}

/* Halves of ordinary size only. */
static uint16_t to_f16(float x)
{
    uint32_t u;

    memcpy(&u, &x, 4);
    if ((u & 0x7FFFFFFF) < 0x38800000)           /* would be subnormal */
        return (uint16_t)(u >> 16 & 0x8000);
    u += 0x1000;
    return (uint16_t)((u >> 16 & 0x8000) | ((((u & 0x7FFFFFFF) - 0x38000000) >> 13) & 0x7FFF));
}

/* -- Keys ------------------------------------------------------------------------ */

static void add_u32(ebb_buf *b, uint32_t v)
{
    ebb_buf_add(b, &v, 4);
}

static void add_u64(ebb_buf *b, uint64_t v)
{
    ebb_buf_add(b, &v, 8);
}

static void add_string(ebb_buf *b, const char *s, size_t n)
{
    add_u64(b, n);
    ebb_buf_add(b, s, n);
}

static void key(writer *w, const char *name, uint32_t type)
{
    add_string(&w->keys, name, strlen(name));
    add_u32(&w->keys, type);
    w->n_keys++;
}

static void key_string(writer *w, const char *name, const char *value)
{
    key(w, name, STR);
    add_string(&w->keys, value, strlen(value));
}

static void key_u32(writer *w, const char *arch, const char *name, uint32_t value)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", arch, name);
    key(w, full, U32);
    add_u32(&w->keys, value);
}

static void key_f32(writer *w, const char *arch, const char *name, float value)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", arch, name);
    key(w, full, F32);
    ebb_buf_add(&w->keys, &value, 4);
}

static void key_bool(writer *w, const char *arch, const char *name, bool value)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", arch, name);
    key(w, full, BOOL);
    ebb_buf_addc(&w->keys, value);
}

/* The letter by which byte-level BPE writes a byte. */
static uint32_t letter_of(unsigned byte)
{
    uint32_t next = 256;

    for (unsigned b = 0; b < 256; b++) {
        bool is_plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;

        if (b == byte)
            return is_plain ? b : next;
        next += !is_plain;
    }
    return 0;
}

static void vocabulary(writer *w)
{
    static const char *const rest[] = {
        "th", "the", "in", "\xC4\xA0t", "<|endoftext|>", "<|im_start|>", "<|im_end|>",
    };
    static const char *const merges[] = { "t h", "th e", "i n", "\xC4\xA0 t" };

    key_string(w, "tokenizer.ggml.model", "gpt2");
    key_string(w, "tokenizer.ggml.pre", "gpt-2");
    key(w, "tokenizer.ggml.tokens", ARR);
    add_u32(&w->keys, STR);
    add_u64(&w->keys, EBB_TINY_VOCAB);
    for (unsigned b = 0; b < 256; b++) {
        char text[4];

        add_string(&w->keys, text, ebb_utf8_encode(letter_of(b), text));
    }
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        add_string(&w->keys, rest[i], strlen(rest[i]));
    key(w, "tokenizer.ggml.token_type", ARR);
    add_u32(&w->keys, I32);
    add_u64(&w->keys, EBB_TINY_VOCAB);
    for (uint32_t i = 0; i < EBB_TINY_VOCAB; i++)
        add_u32(&w->keys, i < EBB_TINY_VOCAB - 3 ? 1 : 3);
    key(w, "tokenizer.ggml.merges", ARR);
    add_u32(&w->keys, STR);
    add_u64(&w->keys, sizeof merges / sizeof *merges);
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
        add_string(&w->keys, merges[i], strlen(merges[i]));
    key_u32(w, "tokenizer.ggml", ".bos_token_id", EBB_TINY_VOCAB - 3);
    key_u32(w, "tokenizer.ggml", ".eos_token_id", EBB_TINY_VOCAB - 3);
    key_u32(w, "tokenizer.ggml", ".eot_token_id", EBB_TINY_VOCAB - 1);
    key_string(w, "tokenizer.chat_template",
               "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
               "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

/* -- Tensors --------------------------------------------------------------------- */

static void add_tensor(writer *w, const char *name, ebb_type type, uint32_t n_k, uint32_t n_rows, float mean, float dev)
{
    tensor *t = &w->tensors[w->n_tensors++];

    assert_true(w->n_tensors <= MAX_TENSORS);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->type = type;
    t->dims[0] = n_k;
    t->dims[1] = n_rows;
    t->dims[2] = 1;
    t->n_dims = n_rows ? 2 : 1;
    t->mean = mean;
    t->dev = dev;
}

static void matrix(writer *w, uint32_t layer, const char *what, ebb_type type, uint32_t n_k, uint32_t n_rows)
{
    char name[64];

    snprintf(name, sizeof name, "blk.%u.%.40s.weight", layer, what);
    add_tensor(w, name, type, n_k, n_rows, 0, 1 / sqrtf((float)n_k));
    if (strstr(what, "attn_output") || strstr(what, "ffn_down") || strcmp(what, "ssm_out") == 0)
        w->tensors[w->n_tensors - 1].dev *= w->added;
}

static void vector(writer *w, uint32_t layer, const char *what, uint32_t n, float mean)
{
    char name[64];

    snprintf(name, sizeof name, "blk.%u.%.40s", layer, what);
    add_tensor(w, name, EBB_TYPE_F32, n, 0, mean, mean != 0 ? 0.1f : 0.3f);
}

static void norm(writer *w, const ebb_tiny_opts *o, uint32_t layer, const char *what)
{
    char name[64];

    snprintf(name, sizeof name, "%s.weight", what);
    vector(w, layer, name, o->n_embd, 1);
    if (has(o, NORM_BIAS)) {
        snprintf(name, sizeof name, "%s.bias", what);
        vector(w, layer, name, o->n_embd, 0);
    }
}

/* A matrix, and its bias if it has one. */
static void linear(writer *w, const ebb_tiny_opts *o, uint32_t layer, const char *what, uint32_t n_k, uint32_t n_rows,
                   bool has_bias)
{
    char name[64];

    matrix(w, layer, what, o->type, n_k, n_rows);
    snprintf(name, sizeof name, "%s.bias", what);
    if (has_bias)
        vector(w, layer, name, n_rows, 0);
}

static void attention_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t q = o->n_head * o->head_dim, kv = o->n_head_kv * o->head_dim;

    if (has(o, FUSED_QKV)) {
        linear(w, o, i, "attn_qkv", o->n_embd, q + 2 * kv, has(o, QKV_BIAS));
    } else {
        linear(w, o, i, "attn_q", o->n_embd, has(o, HYBRID) ? 2 * q : q, has(o, QKV_BIAS));
        linear(w, o, i, "attn_k", o->n_embd, kv, has(o, QKV_BIAS));
        linear(w, o, i, "attn_v", o->n_embd, kv, has(o, QKV_BIAS));
    }
    if (has(o, QK_NORM) || has(o, QK_WHOLE)) {
        vector(w, i, "attn_q_norm.weight", has(o, QK_WHOLE) ? q : o->head_dim, 2);
        vector(w, i, "attn_k_norm.weight", has(o, QK_WHOLE) ? kv : o->head_dim, 1);
    }
    if (has(o, SINKS))
        vector(w, i, "attn_sinks.weight", o->n_head, 0);
    if (has(o, HEAD_GATE))
        matrix(w, i, "attn_gate", o->type, o->n_embd, q);
    linear(w, o, i, "attn_output", q, o->n_embd, has(o, BIAS));
}

/* The matrices of all heads, one behind the other in a tensor of three dimensions. */
static void head_matrix(writer *w, const ebb_tiny_opts *o, uint32_t i, const char *what, uint32_t n_k, uint32_t n_rows)
{
    matrix(w, i, what, o->type, n_k, n_rows);
    w->tensors[w->n_tensors - 1].dims[2] = o->n_head;
    w->tensors[w->n_tensors - 1].n_dims = 3;
}

static void latent_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t q = o->n_head * (DIM_NOPE + DIM_TURNED);

    if (o->is_split) {
        matrix(w, i, "attn_q", o->type, o->n_embd, q);
    } else {
        matrix(w, i, "attn_q_a", o->type, o->n_embd, DIM_LATENT_Q);
        vector(w, i, "attn_q_a_norm.weight", DIM_LATENT_Q, 1);
        matrix(w, i, "attn_q_b", o->type, DIM_LATENT_Q, q);
    }
    matrix(w, i, "attn_kv_a_mqa", o->type, o->n_embd, DIM_LATENT + DIM_TURNED);
    vector(w, i, "attn_kv_a_norm.weight", DIM_LATENT, 1);
    if (o->is_split) {
        matrix(w, i, "attn_kv_b", o->type, DIM_LATENT, o->n_head * (DIM_NOPE + DIM_HEAD_V));
    } else {
        head_matrix(w, o, i, "attn_k_b", DIM_NOPE, DIM_LATENT);
        head_matrix(w, o, i, "attn_v_b", DIM_LATENT, DIM_HEAD_V);
    }
    matrix(w, i, "attn_output", o->type, o->n_head * DIM_HEAD_V, o->n_embd);
}

static void delta_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t inner = DELTA_V * DELTA_DIM, channels = 2 * DELTA_K * DELTA_DIM + inner;

    matrix(w, i, "attn_qkv", o->type, o->n_embd, channels);
    matrix(w, i, "attn_gate", o->type, o->n_embd, inner);
    matrix(w, i, "ssm_conv1d", EBB_TYPE_F32, DELTA_CONV, channels);
    vector(w, i, "ssm_dt.bias", DELTA_V, -3);
    vector(w, i, "ssm_a", DELTA_V, -5);
    if (has(o, GROUPED)) {
        matrix(w, i, "ssm_ba", o->type, o->n_embd, 2 * DELTA_V);
    } else {
        matrix(w, i, "ssm_alpha", o->type, o->n_embd, DELTA_V);
        matrix(w, i, "ssm_beta", o->type, o->n_embd, DELTA_V);
    }
    vector(w, i, "ssm_norm.weight", DELTA_DIM, 1);
    matrix(w, i, "ssm_out", o->type, inner, o->n_embd);
}

/* The experts' matrices of one kind: one tensor, or as old files have them. */
static void single_expert(writer *w, const ebb_tiny_opts *o, uint32_t i, const char *what, uint32_t e, uint32_t n_k,
                          uint32_t n_rows)
{
    char name[64];

    snprintf(name, sizeof name, "%s.%u", what, e);
    matrix(w, i, name, o->is_mixed && e % 2 ? EBB_TYPE_F16 : o->type, n_k, n_rows);
}

static void expert_matrix(writer *w, const ebb_tiny_opts *o, uint32_t i, const char *what, uint32_t n_k,
                          uint32_t n_rows)
{
    char name[64];

    if (o->is_split && !has(o, LATENT)) {
        for (uint32_t e = 0; e < o->n_expert; e++)
            single_expert(w, o, i, what, e, n_k, n_rows);
        return;
    }
    snprintf(name, sizeof name, "%s_exps", what);
    matrix(w, i, name, o->type, n_k, n_rows);
    w->tensors[w->n_tensors - 1].dims[2] = o->n_expert;
    w->tensors[w->n_tensors - 1].n_dims = 3;
    snprintf(name, sizeof name, "blk.%u.%.40s_exps.bias", i, what);
    if (has(o, SINKS))
        add_tensor(w, name, EBB_TYPE_F32, n_rows, o->n_expert, 0, 0.3f);
}

static void gates_and_ups(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    if (o->is_joined && !o->is_split) {
        expert_matrix(w, o, i, "ffn_gate_up", o->n_embd, 2 * o->n_ff);
        return;
    }
    for (uint32_t e = 0; o->is_joined && e < o->n_expert; e++) {
        single_expert(w, o, i, "ffn_gate", e, o->n_embd, o->n_ff);
        single_expert(w, o, i, "ffn_up", e, o->n_embd, o->n_ff);
    }
    if (!o->is_joined) {
        expert_matrix(w, o, i, "ffn_gate", o->n_embd, o->n_ff);
        expert_matrix(w, o, i, "ffn_up", o->n_embd, o->n_ff);
    }
}

static void ffn_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    bool is_mixture = o->n_expert && !(has(o, ONE_FOR_ALL) && i == 0);

    if (is_mixture) {
        matrix(w, i, "ffn_gate_inp", EBB_TYPE_F32, o->n_embd, o->n_expert);
        if (has(o, SINKS))
            vector(w, i, "ffn_gate_inp.bias", o->n_expert, 0);
        gates_and_ups(w, o, i);
        expert_matrix(w, o, i, "ffn_down", o->n_ff, o->n_embd);
    }
    if (has(o, SHARED))
        vector(w, i, "ffn_gate_inp_shexp.weight", o->n_embd, 0);
    if (is_mixture && has(o, CHOICE_BIAS | SOFT_BIAS))
        vector(w, i, "exp_probs_b.bias", o->n_expert, 0);
    if (is_mixture && has(o, SHARED | ONE_FOR_ALL)) {
        matrix(w, i, "ffn_gate_shexp", o->type, o->n_embd, o->n_ff);
        matrix(w, i, "ffn_up_shexp", o->type, o->n_embd, o->n_ff);
        matrix(w, i, "ffn_down_shexp", o->type, o->n_ff, o->n_embd);
    }
    if (is_mixture)
        return;
    if (!has(o, FUSED_FFN) && !has(o, PLAIN_FFN))
        matrix(w, i, "ffn_gate", o->type, o->n_embd, o->n_ff);
    linear(w, o, i, "ffn_up", o->n_embd, has(o, FUSED_FFN) ? 2 * o->n_ff : o->n_ff, has(o, BIAS));
    linear(w, o, i, "ffn_down", o->n_ff, o->n_embd, has(o, BIAS));
}

/* -- Gemma 4: everything at once.  Every second layer is global, with heads twice as wide, half the KV heads and no V;
 * the last
 *    half of at least four layers uses the K and V of those before and has a wider feed-forward. */

static uint32_t gemma4_shared(const ebb_tiny_opts *o)
{
    return o->n_layers >= 4 ? o->n_layers / 2 : 0;
}

static bool gemma4_is_shared(const ebb_tiny_opts *o, uint32_t i)
{
    return i >= o->n_layers - gemma4_shared(o);
}

static uint32_t gemma4_n_kv(const ebb_tiny_opts *o, uint32_t i)
{
    return i % 2 && o->n_head_kv > 1 ? o->n_head_kv / 2 : o->n_head_kv;
}

static void gemma4_attention(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t dim = i % 2 ? 2 * o->head_dim : o->head_dim, kv = gemma4_n_kv(o, i) * dim;

    matrix(w, i, "attn_q", o->type, o->n_embd, o->n_head * dim);
    vector(w, i, "attn_q_norm.weight", dim, 0.5f);
    if (!gemma4_is_shared(o, i)) {
        matrix(w, i, "attn_k", o->type, o->n_embd, kv);
        vector(w, i, "attn_k_norm.weight", dim, 1);
        if (i % 2 == 0)
            matrix(w, i, "attn_v", o->type, o->n_embd, kv);
    }
    matrix(w, i, "attn_output", o->type, o->n_head * dim, o->n_embd);
}

static void gemma4_ffn(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    static const char *const norms[] = { "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2" };
    uint32_t n_ff = gemma4_is_shared(o, i) ? 2 * o->n_ff : o->n_ff;

    matrix(w, i, "ffn_gate", o->type, o->n_embd, n_ff);
    matrix(w, i, "ffn_up", o->type, o->n_embd, n_ff);
    matrix(w, i, "ffn_down", o->type, n_ff, o->n_embd);
    matrix(w, i, "ffn_gate_inp", EBB_TYPE_F32, o->n_embd, o->n_expert);
    w->tensors[w->n_tensors - 1].dev = 2;        /* what it sees is divided by sqrt(E) */
    vector(w, i, "ffn_gate_inp.scale", o->n_embd, 1);
    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
        norm(w, o, i, norms[k]);
    gates_and_ups(w, o, i);
    expert_matrix(w, o, i, "ffn_down", o->n_ff, o->n_embd);
    vector(w, i, "ffn_down_exps.scale", o->n_expert, 1);
}

static void gemma4_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    static const char *const norms[] = { "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm" };

    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
        norm(w, o, i, norms[k]);
    gemma4_attention(w, o, i);
    gemma4_ffn(w, o, i);
    matrix(w, i, "inp_gate", o->type, o->n_embd, o->n_embd);
    matrix(w, i, "proj", o->type, o->n_embd, o->n_embd);
    vector(w, i, "layer_output_scale.weight", 1, 0.8f);
}

static void gemma4_ends(writer *w, const ebb_tiny_opts *o)
{
    uint32_t width = o->n_embd * o->n_layers;

    add_tensor(w, "rope_freqs.weight", EBB_TYPE_F32, o->head_dim, 0, 2, 0.3f);
    add_tensor(w, "per_layer_token_embd.weight", o->type, width, EBB_TINY_VOCAB, 0, 1 / sqrtf((float)o->n_embd));
    add_tensor(w, "per_layer_model_proj.weight", EBB_TYPE_BF16, o->n_embd, width, 0, 1);
    add_tensor(w, "per_layer_proj_norm.weight", EBB_TYPE_F32, o->n_embd, 0, 1, 0.1f);
}

/* -- Gemma 3n: every fifth layer is global, the last five use the K and V of those before; gates are cut off in up to
 *    ten of the first half of the layers. */

enum { N_STREAMS = 4, LAUREL_RANK = 64, DIM_LAYER_INPUT = 256, GEMMA3N_SHARED = 5 };

static uint32_t gemma3n_shared(const ebb_tiny_opts *o)
{
    return o->n_layers > GEMMA3N_SHARED ? GEMMA3N_SHARED : 0;
}

static void gemma3n_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    static const char *const norms[] = {
        "altup_router_norm", "laurel_post_norm", "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm",
        "post_norm", "altup_correct_scale",
    };

    for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
        norm(w, o, i, norms[k]);
    matrix(w, i, "altup_router", EBB_TYPE_F32, o->n_embd, N_STREAMS);
    w->tensors[w->n_tensors - 1].dev = 4;        /* what it gives is divided by E */
    matrix(w, i, "altup_predict_coef", EBB_TYPE_F32, N_STREAMS, N_STREAMS * N_STREAMS);
    matrix(w, i, "altup_correct_coef", EBB_TYPE_F32, N_STREAMS, N_STREAMS);
    matrix(w, i, "laurel_l", o->type, o->n_embd, LAUREL_RANK);
    matrix(w, i, "laurel_r", o->type, LAUREL_RANK, o->n_embd);
    matrix(w, i, "attn_q", o->type, o->n_embd, o->n_head * o->head_dim);
    vector(w, i, "attn_q_norm.weight", o->head_dim, 0.5f);
    /* in all layers, as converters write them */
    matrix(w, i, "attn_k", o->type, o->n_embd, o->n_head_kv * o->head_dim);
    vector(w, i, "attn_k_norm.weight", o->head_dim, 1);
    matrix(w, i, "attn_v", o->type, o->n_embd, o->n_head_kv * o->head_dim);
    matrix(w, i, "attn_output", o->type, o->n_head * o->head_dim, o->n_embd);
    matrix(w, i, "ffn_gate", o->type, o->n_embd, o->n_ff);
    matrix(w, i, "ffn_up", o->type, o->n_embd, o->n_ff);
    matrix(w, i, "ffn_down", o->type, o->n_ff, o->n_embd);
    matrix(w, i, "inp_gate", o->type, o->n_embd, DIM_LAYER_INPUT);
    matrix(w, i, "proj", o->type, DIM_LAYER_INPUT, o->n_embd);
}

static void gemma3n_ends(writer *w, const ebb_tiny_opts *o)
{
    static const char *const both[] = { "altup_proj.weight", "altup_unembd_proj.weight" };
    uint32_t width = DIM_LAYER_INPUT * o->n_layers;

    add_tensor(w, "per_layer_token_embd.weight", o->type, width, EBB_TINY_VOCAB, 0, 1 / sqrtf(DIM_LAYER_INPUT));
    add_tensor(w, "per_layer_model_proj.weight", o->type, o->n_embd, width, 0, 1);
    add_tensor(w, "per_layer_proj_norm.weight", EBB_TYPE_F32, DIM_LAYER_INPUT, 0, 1, 0.1f);
    for (size_t k = 0; k < 2; k++) {
        add_tensor(w, both[k], o->type, o->n_embd, o->n_embd, 0, 1 / sqrtf((float)o->n_embd));
        w->tensors[w->n_tensors - 1].dims[2] = N_STREAMS - 1;
        w->tensors[w->n_tensors - 1].n_dims = 3;
    }
}

/* -- Recurrent layers ---------------------------------------------- */

/* NULL: the architecture has none. */
static const char *layers_of(const ebb_tiny_opts *o)
{
    for (size_t i = 0; i < sizeof recurrent / sizeof *recurrent; i++)
        if (strcmp(recurrent[i].arch, o->arch) == 0)
            return recurrent[i].layers;
    return NULL;
}

static bool is_recurrent(const ebb_tiny_opts *o)
{
    return layers_of(o) != NULL;
}

static char kind_of(const ebb_tiny_opts *o, uint32_t i)
{
    const char *layers = layers_of(o);

    return layers[i % strlen(layers)];
}

/* No layer has heads or a feed-forward. */
static bool is_bare(const ebb_tiny_opts *o)
{
    return is_recurrent(o) && strlen(layers_of(o)) == 1 && kind_of(o, 0) != 'b';
}

/* A layer is one thing: '2' stands for Mamba 2 alone where others are capitals. */
static bool is_single(const ebb_tiny_opts *o)
{
    return is_bare(o) || (is_recurrent(o) && strchr(layers_of(o), 'F'));
}

static bool has_heads(const ebb_tiny_opts *o, uint32_t i)
{
    return strchr("aAb", kind_of(o, i)) != NULL;
}

static void short_conv_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    matrix(w, i, "shortconv.in_proj", o->type, o->n_embd, 3 * o->n_embd);
    matrix(w, i, "shortconv.conv", EBB_TYPE_F32, SHORT_CONV, o->n_embd);
    matrix(w, i, "shortconv.out_proj", o->type, o->n_embd, o->n_embd);
}

/* A vector that the file has as a matrix of one column; [n_groups][n / n_groups]. */
static void column(writer *w, uint32_t i, const char *what, uint32_t n, uint32_t n_groups, float mean)
{
    vector(w, i, what, n / n_groups, mean);
    w->tensors[w->n_tensors - 1].dims[1] = n_groups;
    w->tensors[w->n_tensors - 1].n_dims = 2;
}

static void mamba2_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    uint32_t channels = MAMBA_INNER + 2 * MAMBA_GROUPS * MAMBA_STATE;

    matrix(w, i, "ssm_in", o->type, o->n_embd, MAMBA_INNER + channels + MAMBA_HEADS);
    matrix(w, i, "ssm_conv1d", EBB_TYPE_F32, MAMBA_CONV, channels);
    vector(w, i, "ssm_conv1d.bias", channels, 0);
    vector(w, i, "ssm_dt.bias", MAMBA_HEADS, -1);
    column(w, i, "ssm_a", MAMBA_HEADS, MAMBA_HEADS, -1);
    column(w, i, "ssm_d", MAMBA_HEADS, MAMBA_HEADS, 1);
    if (strcmp(o->arch, "falcon-h1") != 0)       /* it need not be there */
        column(w, i, "ssm_norm.weight", MAMBA_INNER, MAMBA_GROUPS, 1);
    matrix(w, i, "ssm_out", o->type, MAMBA_INNER, o->n_embd);
}

static void mamba_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    matrix(w, i, "ssm_in", o->type, o->n_embd, 2 * MAMBA_INNER);
    matrix(w, i, "ssm_conv1d", EBB_TYPE_F32, MAMBA_CONV, MAMBA_INNER);
    vector(w, i, "ssm_conv1d.bias", MAMBA_INNER, 0);
    matrix(w, i, "ssm_x", o->type, MAMBA_INNER, MAMBA_RANK + 2 * MAMBA_STATE);
    if (!is_bare(o)) {
        vector(w, i, "ssm_dt_norm.weight", MAMBA_RANK, 1);
        vector(w, i, "ssm_b_norm.weight", MAMBA_STATE, 1);
        vector(w, i, "ssm_c_norm.weight", MAMBA_STATE, 1);
    }
    matrix(w, i, "ssm_dt", o->type, MAMBA_RANK, MAMBA_INNER);
    vector(w, i, "ssm_dt.bias", MAMBA_INNER, -1);
    column(w, i, "ssm_a", MAMBA_INNER * MAMBA_STATE, MAMBA_INNER, -1);
    vector(w, i, "ssm_d", MAMBA_INNER, 1);
    matrix(w, i, "ssm_out", o->type, MAMBA_INNER, o->n_embd);
}

/* Relu^2, experts in a space of 32, and one for all tokens. */
static void nemotron_ffn(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    if (o->n_expert) {
        matrix(w, i, "ffn_gate_inp", EBB_TYPE_F32, o->n_embd, o->n_expert);
        vector(w, i, "exp_probs_b.bias", o->n_expert, 0);
        matrix(w, i, "ffn_latent_down", o->type, o->n_embd, 32);
        expert_matrix(w, o, i, "ffn_up", 32, o->n_ff);
        expert_matrix(w, o, i, "ffn_down", o->n_ff, 32);
        matrix(w, i, "ffn_latent_up", o->type, 32, o->n_embd);
    }
    matrix(w, i, o->n_expert ? "ffn_up_shexp" : "ffn_up", o->type, o->n_embd, o->n_ff);
    matrix(w, i, o->n_expert ? "ffn_down_shexp" : "ffn_down", o->type, o->n_ff, o->n_embd);
}

static void recurrent_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    char kind = kind_of(o, i);

    norm(w, o, i, "attn_norm");
    if (kind == 'c')
        short_conv_tensors(w, o, i);
    if (kind == '2' || kind == 'b')
        mamba2_tensors(w, o, i);
    if (kind == '1')
        mamba_tensors(w, o, i);
    if (has_heads(o, i))
        attention_tensors(w, o, i);
    if (kind == 'F')
        nemotron_ffn(w, o, i);
    if (is_single(o))
        return;
    if (kind == 'b')                             /* without ".weight" */
        vector(w, i, "ffn_norm", o->n_embd, 1);
    else
        norm(w, o, i, "ffn_norm");
    ffn_tensors(w, o, i);
}

/* A key of one value for each layer. */
static void key_layers(writer *w, const ebb_tiny_opts *o, const char *name, uint32_t type)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", o->arch, name);
    key(w, full, ARR);
    add_u32(&w->keys, type);
    add_u64(&w->keys, o->n_layers);
}

static void recurrent_keys(writer *w, const ebb_tiny_opts *o)
{
    const char *layers = layers_of(o);

    if (is_bare(o)) {
        key_u32(w, o->arch, ".attention.head_count", 0);
        key_u32(w, o->arch, ".feed_forward_length", 0);
    } else {
        key_layers(w, o, ".attention.head_count_kv", U32);
        for (uint32_t i = 0; i < o->n_layers; i++)
            add_u32(&w->keys, has_heads(o, i) ? o->n_head_kv : 0);
        key_layers(w, o, ".feed_forward_length", U32);
        for (uint32_t i = 0; i < o->n_layers; i++)
            add_u32(&w->keys, !is_single(o) || kind_of(o, i) == 'F' ? o->n_ff : 0);
    }
    if (strchr(layers, 'c')) {
        key_u32(w, o->arch, ".shortconv.l_cache", SHORT_CONV);
        return;
    }
    key_u32(w, o->arch, ".ssm.conv_kernel", MAMBA_CONV);
    key_u32(w, o->arch, ".ssm.inner_size", MAMBA_INNER);
    key_u32(w, o->arch, ".ssm.state_size", MAMBA_STATE);
    key_u32(w, o->arch, ".ssm.time_step_rank", strchr(layers, '1') ? MAMBA_RANK : MAMBA_HEADS);
    if (!strchr(layers, '1'))
        key_u32(w, o->arch, ".ssm.group_count", MAMBA_GROUPS);
    if (strchr(layers, 'F') && o->n_expert) {
        key_u32(w, o->arch, ".moe_latent_size", 32);
        key_u32(w, o->arch, ".expert_shared_feed_forward_length", o->n_ff);
    }
}

static void gemma4_keys(writer *w, const ebb_tiny_opts *o)
{
    key_layers(w, o, ".attention.sliding_window_pattern", BOOL);
    for (uint32_t i = 0; i < o->n_layers; i++)
        ebb_buf_addc(&w->keys, i % 2 == 0);
    key_layers(w, o, ".attention.head_count_kv", U32);
    for (uint32_t i = 0; i < o->n_layers; i++)
        add_u32(&w->keys, gemma4_n_kv(o, i));
    key_layers(w, o, ".feed_forward_length", U32);
    for (uint32_t i = 0; i < o->n_layers; i++)
        add_u32(&w->keys, gemma4_is_shared(o, i) ? 2 * o->n_ff : o->n_ff);
    key_u32(w, o->arch, ".attention.key_length_swa", o->head_dim);
    key_u32(w, o->arch, ".attention.value_length_swa", o->head_dim);
    key_u32(w, o->arch, ".rope.dimension_count_swa", o->head_dim);
    key_f32(w, o->arch, ".rope.freq_base_swa", 10000);
    key_u32(w, o->arch, ".attention.shared_kv_layers", gemma4_shared(o));
    key_u32(w, o->arch, ".embedding_length_per_layer_input", o->n_embd);
}

static void gemma3n_keys(writer *w, const ebb_tiny_opts *o)
{
    key_layers(w, o, ".attention.sliding_window_pattern", BOOL);
    for (uint32_t i = 0; i < o->n_layers; i++)
        ebb_buf_addc(&w->keys, (i + 1) % 5 != 0);
    key_layers(w, o, ".activation_sparsity_scale", F32);
    for (uint32_t i = 0; i < o->n_layers; i++) {
        float cutoff = i < 10 && i < o->n_layers / 2 ? 1.6448533f : -INFINITY;

        ebb_buf_add(&w->keys, &cutoff, 4);
    }
    key_f32(w, o->arch, ".rope.freq_base_swa", 1000);
    key_u32(w, o->arch, ".attention.shared_kv_layers", gemma3n_shared(o));
    key_u32(w, o->arch, ".embedding_length_per_layer_input", DIM_LAYER_INPUT);
    key_u32(w, o->arch, ".altup.active_idx", 0);
    key_u32(w, o->arch, ".altup.num_inputs", N_STREAMS);
}

static void layer_tensors(writer *w, const ebb_tiny_opts *o, uint32_t i)
{
    if (has(o, GEMMA3N)) {
        gemma3n_tensors(w, o, i);
        return;
    }
    if (is_recurrent(o)) {
        recurrent_tensors(w, o, i);
        return;
    }
    if (has(o, GEMMA4)) {
        gemma4_tensors(w, o, i);
        return;
    }
    if (!has(o, NO_PRE_NORMS))
        norm(w, o, i, "attn_norm");
    if (has(o, LATENT))
        latent_tensors(w, o, i);
    else if (has(o, HYBRID) && (i + 1) % 4 && i < o->n_layers)
        delta_tensors(w, o, i);
    else
        attention_tensors(w, o, i);
    if (has(o, BARE)) {
        vector(w, i, "post_attention_norm", o->n_embd, 1);
        vector(w, i, "post_ffw_norm", o->n_embd, 1);
    } else if (has(o, POST_NORMS)) {
        norm(w, o, i, "post_attention_norm");
        norm(w, o, i, "post_ffw_norm");
    }
    if (!has(o, NO_PRE_NORMS) && !has(o, PARALLEL))
        norm(w, o, i, has(o, POST_IS_FFN) ? "post_attention_norm" : "ffn_norm");
    ffn_tensors(w, o, i);
}

/* Random bytes are valid blocks; their scales are set so that weights have the deviation. */
static void add_blocks(writer *w, const tensor *t, uint64_t n)
{
    static const struct { ebb_type type; uint32_t d, dmin; float unit, middle;
    } shapes[] = {
        { EBB_TYPE_Q4_0, 0, 0, 4.64f, 0 },
        { EBB_TYPE_Q4_1, 0, 2, 4.69f, -7.5f },
        { EBB_TYPE_Q5_0, 0, 0, 9.25f, 0 },
        { EBB_TYPE_Q5_1, 0, 2, 9.39f, -15 },
        { EBB_TYPE_Q8_0, 0, 0, 73.3f, 0 },
        { EBB_TYPE_Q4_K, 0, 2, 242.5f, 7.5f },
        { EBB_TYPE_Q5_K, 0, 2, 491.5f, 15 },
        { EBB_TYPE_Q6_K, 208, 0, 1366, 0 },
        /* these within a factor of two */
        { EBB_TYPE_Q2_K, 80, 82, 14, 1.5f },
        { EBB_TYPE_Q3_K, 108, 0, 43, 0 },
        { EBB_TYPE_TQ1_0, 52, 0, 0.8f, 0 },
        { EBB_TYPE_TQ2_0, 64, 0, 1.2f, 0 },
        { EBB_TYPE_IQ4_NL, 0, 0, 68, 0 },
        { EBB_TYPE_IQ4_XS, 0, 0, 1258, 0 },
        { EBB_TYPE_IQ2_XXS, 0, 0, 45, 0 },
        { EBB_TYPE_IQ2_XS, 0, 0, 45, 0 },
        { EBB_TYPE_IQ2_S, 0, 0, 45, 0 },
        { EBB_TYPE_IQ3_XXS, 0, 0, 135, 0 },
        { EBB_TYPE_IQ3_S, 0, 0, 160, 0 },
        { EBB_TYPE_IQ1_S, 0, 0, 8, 0 },
        { EBB_TYPE_IQ1_M, 0, 0, 8, 0 },
        { EBB_TYPE_MXFP4, 0, 0, 6, 0 },
        { EBB_TYPE_NVFP4, 0, 0, 2.9f, 0 },
        { EBB_TYPE_Q1_0, 0, 0, 1, 0 },
        { EBB_TYPE_Q2_0, 0, 0, 1.2f, 0 },
    };
    const ebb_type_info *info = ebb_type_get(t->type);
    size_t i = 0;

    while (i < sizeof shapes / sizeof *shapes && shapes[i].type != t->type)
        i++;
    assert_true(i < sizeof shapes / sizeof *shapes);
    for (uint64_t b = 0; b < n / info->block_len; b++) {
        char block[256];
        float d = t->dev / shapes[i].unit * (0.5f + (float)(next_tiny_random(w) % 1000) / 1000);
        uint16_t half = to_f16(d);

        for (uint32_t j = 0; j < info->block_bytes; j++)
            block[j] = (char)next_tiny_random(w);
        if (t->type == EBB_TYPE_MXFP4)           /* an exponent */
            block[0] = (char)(126 + (int)floorf(log2f(d)));
        else if (t->type == EBB_TYPE_NVFP4)      /* four of 4 bits, of fractions that are random */
            for (int j = 0; j < 4; j++)
                block[j] = (char)((block[j] & 7) | (int)fmaxf(0, 7 + floorf(log2f(d))) << 3);
        else if (t->type == EBB_TYPE_IQ1_M)      /* a half in four parts */
            for (int j = 0; j < 4; j++)
                block[49 + 2 * j] = (char)((block[49 + 2 * j] & 15) | (half >> 4 * j & 15) << 4);
        else
            memcpy(block + shapes[i].d, &half, 2);
        half = to_f16(d * shapes[i].middle);
        if (shapes[i].middle != 0)
            memcpy(block + shapes[i].dmin, &half, 2);
        ebb_buf_add(&w->data, block, info->block_bytes);
    }
}

static void add_weights(writer *w, const tensor *t)
{
    uint64_t n = (uint64_t)t->dims[0] * (t->n_dims > 1 ? t->dims[1] : 1) * t->dims[2];

    if (ebb_type_get(t->type)->block_len > 1) {
        add_blocks(w, t, n);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        float x = t->is_unit ? i % t->dims[0] == i / t->dims[0] : t->mean + t->dev * next_normal(w);
        uint16_t half = to_f16(x);
        uint32_t u;

        memcpy(&u, &x, 4);
        if (t->type == EBB_TYPE_F32)
            ebb_buf_add(&w->data, &x, 4);
        else if (t->type == EBB_TYPE_F16)
            ebb_buf_add(&w->data, &half, 2);
        else
            ebb_buf_add(&w->data, (char *)&u + 2, 2);    /* BF16, cut */
    }
}

static void pad(ebb_buf *b)
{
    while (b->len % ALIGN)
        ebb_buf_addc(b, 0);
}

static void write_tensors(writer *w)
{
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        const tensor *t = &w->tensors[i];

        add_string(&w->infos, t->name, strlen(t->name));
        add_u32(&w->infos, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++)
            add_u64(&w->infos, t->dims[d]);
        add_u32(&w->infos, t->type);
        add_u64(&w->infos, w->data.len);
        add_weights(w, t);
        pad(&w->data);
    }
}

/* -- The file -------------------------------------------------------------------- */

static uint32_t or_default(uint32_t v, uint32_t otherwise)
{
    return v ? v : otherwise;
}

static ebb_tiny_opts with_defaults(const ebb_tiny_opts *given)
{
    ebb_tiny_opts o = *given;

    o.arch = o.arch ? o.arch : "llama";
    o.n_layers = or_default(o.n_layers, has(&o, GEMMA3N)                ? 10
                                        : has(&o, HYBRID | GEMMA4 | FOUR) ? 4
                                        : is_recurrent(&o)                ? 3
                                                                          : 2);
    o.n_expert = or_default(o.n_expert, has(&o, EXPERTS) ? 6 : 0);
    o.n_embd = or_default(o.n_embd, 256);
    o.n_head = or_default(o.n_head, 4);
    o.n_head_kv = or_default(o.n_head_kv, 2);
    o.head_dim = or_default(o.head_dim, 64);
    o.n_ff = or_default(o.n_ff, 256);
    o.n_ctx = or_default(o.n_ctx, 1024);
    return o;
}

static uint32_t n_rot(const ebb_tiny_opts *o)
{
    return has(o, GEMMA4)  ? 2 * o->head_dim
         : has(o, LATENT)  ? DIM_TURNED
         : has(o, PARTIAL) ? o->head_dim / 2
                           : o->head_dim;
}

static void multiplier_keys(writer *w, const ebb_tiny_opts *o)
{
    bool is_factor = has(o, PARALLEL | HEAD_GATE);

    key_f32(w, o->arch, ".logit_scale", is_factor ? 0.5f : 2);
    if (is_factor)
        return;
    key_f32(w, o->arch, ".embedding_scale", 1.5f);
    key_f32(w, o->arch, ".residual_scale", 0.7f);
    key_f32(w, o->arch, ".attention.scale", 0.2f);
}

static void scaling_keys(writer *w, const ebb_tiny_opts *o)
{
    if (has(o, LINEAR | YARN)) {
        char key_name[64];

        snprintf(key_name, sizeof key_name, "%s.rope.scaling.type", o->arch);
        key_string(w, key_name, has(o, YARN) ? "yarn" : "linear");
        key_f32(w, o->arch, ".rope.scaling.factor", 8);
    }
    if (has(o, YARN | LONGROPE))
        key_u32(w, o->arch, ".rope.scaling.original_context_length", 64);
    if (has(o, LONGROPE))
        key_f32(w, o->arch, ".rope.scaling.attn_factor", 1.2f);
}

static void latent_keys(writer *w, const ebb_tiny_opts *o)
{
    key_u32(w, o->arch, ".attention.key_length", (o->is_split ? DIM_NOPE : DIM_LATENT) + DIM_TURNED);
    key_u32(w, o->arch, ".attention.value_length", o->is_split ? DIM_HEAD_V : DIM_LATENT);
    key_u32(w, o->arch, ".attention.kv_lora_rank", DIM_LATENT);
    if (!o->is_split) {
        key_u32(w, o->arch, ".attention.key_length_mla", DIM_NOPE + DIM_TURNED);
        key_u32(w, o->arch, ".attention.value_length_mla", DIM_HEAD_V);
        key_u32(w, o->arch, ".attention.q_lora_rank", DIM_LATENT_Q);
    }
    key_f32(w, o->arch, ".rope.scaling.yarn_log_multiplier", 0.0707f);
}

/* All have the same position. */
static void section_keys(writer *w, const ebb_tiny_opts *o)
{
    static const uint32_t sections[] = { 3, 3, 2, 0 };
    char name[64];

    snprintf(name, sizeof name, "%s.rope.dimension_sections", o->arch);
    key(w, name, ARR);
    add_u32(&w->keys, I32);
    add_u64(&w->keys, 4);
    ebb_buf_add(&w->keys, sections, sizeof sections);
}

static void trait_keys(writer *w, const ebb_tiny_opts *o)
{
    scaling_keys(w, o);
    if (has(o, MULTIPLIERS))
        multiplier_keys(w, o);
    if (has(o, WINDOW | LONGROPE))
        key_u32(w, o->arch, ".attention.sliding_window", EBB_TINY_WINDOW);
    if (has(o, SOFTCAPS)) {
        if (!has(o, GEMMA4 | GEMMA3N))
            key_f32(w, o->arch, ".attn_logit_softcapping", 5);
        key_f32(w, o->arch, ".final_logit_softcapping", has(o, GEMMA3N) ? 30 : 4);
    }
    if (has(o, TEMPERATURE))
        key_f32(w, o->arch, ".attention.temperature_scale", 0.1f);
    if (has(o, IMAGES))
        section_keys(w, o);
    if (has(o, XIELU)) {
        key_f32(w, "xielu", ".alpha_n", 0.8f);
        key_f32(w, "xielu", ".alpha_p", 0.5f);
        key_f32(w, "xielu", ".beta", 0.5f);
        key_f32(w, "xielu", ".eps", -1e-6f);
    }
    if (o->n_expert) {
        key_u32(w, o->arch, ".expert_count", o->n_expert);
        key_u32(w, o->arch, ".expert_used_count", 2);
        key_u32(w, o->arch, ".expert_feed_forward_length", o->n_ff);
    }
    if (has(o, LATENT))
        latent_keys(w, o);
    if (has(o, ONE_FOR_ALL)) {
        key_u32(w, o->arch, ".leading_dense_block_count", 1);
        key_u32(w, o->arch, ".expert_shared_count", 1);
        key_f32(w, o->arch, ".expert_weights_scale", has(o, CHOICE_BIAS) ? 2.5f : 1);
    }
    if (has(o, CHOICE_BIAS)) {
        key_u32(w, o->arch, ".expert_gating_func", 2);
        key_bool(w, o->arch, ".expert_weights_norm", true);
        key_u32(w, o->arch, ".expert_group_count", 2);
        key_u32(w, o->arch, ".expert_group_used_count", 1);
    }
    if (has(o, SHARED))
        key_u32(w, o->arch, ".expert_shared_feed_forward_length", o->n_ff);
    if (has(o, HYBRID)) {
        section_keys(w, o);
        key_u32(w, o->arch, ".ssm.conv_kernel", DELTA_CONV);
        key_u32(w, o->arch, ".ssm.state_size", DELTA_DIM);
        key_u32(w, o->arch, ".ssm.group_count", DELTA_K);
        key_u32(w, o->arch, ".ssm.time_step_rank", DELTA_V);
        key_u32(w, o->arch, ".ssm.inner_size", DELTA_V * DELTA_DIM);
    }
}

static void write_keys(writer *w, const ebb_tiny_opts *o)
{
    key_string(w, "general.architecture", o->arch);
    key_string(w, "general.name", "tiny");
    key_u32(w, o->arch, ".context_length", o->n_ctx);
    key_u32(w, o->arch, ".embedding_length", o->n_embd);
    key_u32(w, o->arch, ".block_count", o->n_layers + o->has_draft_head);
    if (o->has_draft_head)
        key_u32(w, o->arch, ".nextn_predict_layers", 1);
    if (!is_bare(o))
        key_u32(w, o->arch, ".attention.head_count", o->n_head);
    if (has(o, GEMMA3N))
        gemma3n_keys(w, o);
    if (has(o, GEMMA4)) {
        gemma4_keys(w, o);
    } else if (is_recurrent(o)) {
        recurrent_keys(w, o);
    } else {
        key_u32(w, o->arch, ".feed_forward_length", o->n_ff);
        key_u32(w, o->arch, ".attention.head_count_kv", has(o, LATENT) ? (o->is_split ? o->n_head : 1) : o->n_head_kv);
    }
    if (!has(o, LATENT) && !is_bare(o)) {
        key_u32(w, o->arch, ".attention.key_length", has(o, GEMMA4) ? 2 * o->head_dim : o->head_dim);
        key_u32(w, o->arch, ".attention.value_length", has(o, GEMMA4) ? 2 * o->head_dim : o->head_dim);
    }
    if (!is_bare(o)) {
        key_u32(w, o->arch, ".rope.dimension_count", n_rot(o));
        key_f32(w, o->arch, ".rope.freq_base", 10000);
    }
    key_f32(w, o->arch, has(o, LAYER_NORM) ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon",
            1e-5f);
    trait_keys(w, o);
    vocabulary(w);
    if (o->n_suppressed) {
        key(w, "tokenizer.ggml.suppress_tokens", ARR);
        add_u32(&w->keys, I32);
        add_u64(&w->keys, o->n_suppressed);
        for (uint32_t i = 0; i < o->n_suppressed; i++)
            add_u32(&w->keys, i);
    }
}

static void end_tensors(writer *w, const ebb_tiny_opts *o)
{
    if (has(o, GEMMA4))
        gemma4_ends(w, o);
    if (has(o, GEMMA3N))
        gemma3n_ends(w, o);
    if (has(o, POSITIONS))
        add_tensor(w, "position_embd.weight", EBB_TYPE_F32, o->n_embd, o->n_ctx, 0, 0.5f);
    if (has(o, LONGROPE)) {
        add_tensor(w, "rope_factors_long.weight", EBB_TYPE_F32, n_rot(o) / 2, 0, 8, 1);
        add_tensor(w, "rope_factors_short.weight", EBB_TYPE_F32, n_rot(o) / 2, 0, 2, 0.3f);
    }
    add_tensor(w, is_recurrent(o) && kind_of(o, 0) == 'c' ? "token_embd_norm.weight" : "output_norm.weight",
               EBB_TYPE_F32, o->n_embd, 0, 1, 0.1f);
    if (has(o, NORM_BIAS))
        add_tensor(w, "output_norm.bias", EBB_TYPE_F32, o->n_embd, 0, 0, 0.3f);
    if (!o->is_tied)
        add_tensor(w, "output.weight", o->type, o->n_embd, EBB_TINY_VOCAB, 0, 1 / sqrtf((float)o->n_embd));
    if (has(o, OUTPUT_BIAS))
        add_tensor(w, "output.bias", EBB_TYPE_F32, EBB_TINY_VOCAB, 0, 0, 0.3f);
}

static void draft_head_tensors(writer *w, const ebb_tiny_opts *o)
{
    norm(w, o, o->n_layers, "nextn.enorm");
    norm(w, o, o->n_layers, "nextn.hnorm");
    norm(w, o, o->n_layers, "nextn.shared_head_norm");
    matrix(w, o->n_layers, "nextn.eh_proj", o->type, 2 * o->n_embd, o->n_embd);
    w->tensors[w->n_tensors - 1].is_unit = true;
    layer_tensors(w, o, o->n_layers);
}

char *ebb_tiny_bytes(const ebb_tiny_opts *given, size_t *n_bytes)
{
    ebb_tiny_opts o = with_defaults(given);
    writer *w = calloc(1, sizeof *w);
    ebb_buf file = { 0 };

    assert_non_null(w);
    w->random = o.seed;
    w->added = o.has_draft_head ? 0.2f : 1;
    write_keys(w, &o);
    add_tensor(w, "token_embd.weight", o.type, o.n_embd, EBB_TINY_VOCAB, 0, 1);
    end_tensors(w, &o);
    for (uint32_t i = 0; i < o.n_layers; i++)
        layer_tensors(w, &o, i);
    if (o.has_draft_head)
        draft_head_tensors(w, &o);
    write_tensors(w);
    ebb_buf_add(&file, "GGUF", 4);
    add_u32(&file, 3);
    add_u64(&file, w->n_tensors);
    add_u64(&file, w->n_keys);
    ebb_buf_add(&file, w->keys.data, w->keys.len);
    ebb_buf_add(&file, w->infos.data, w->infos.len);
    pad(&file);
    ebb_buf_add(&file, w->data.data, w->data.len);
    ebb_buf_fini(&w->keys);
    ebb_buf_fini(&w->infos);
    ebb_buf_fini(&w->data);
    free(w);
    *n_bytes = file.len;
    return ebb_buf_take(&file);
}

ebb_model *ebb_tiny_open(const ebb_tiny_opts *o, char **bytes)
{
    ebb_error err = { 0 };
    ebb_model *m = NULL;
    size_t n;

    *bytes = ebb_tiny_bytes(o, &n);
    assert_non_null(*bytes);
    if (ebb_model_open_memory(*bytes, n, "tiny", &m, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    return m;
}

bool ebb_tiny_write(const ebb_tiny_opts *o, const char *path)
{
    size_t n;
    char *bytes = ebb_tiny_bytes(o, &n);
    FILE *f = bytes ? fopen(path, "wb") : NULL;
    bool ok = f && fwrite(bytes, 1, n, f) == n;

    ok = f && fclose(f) == 0 && ok;
    free(bytes);
    return ok;
}
