/* A file's keys: how large the model is, and its vocabulary (tiny_writer.h). */
#include "support/tiny_writer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void tiny_add_u32(ebb_buf *b, uint32_t v)
{
    ebb_buf_add(b, &v, 4);
}

void tiny_add_u64(ebb_buf *b, uint64_t v)
{
    ebb_buf_add(b, &v, 8);
}

void tiny_add_string(ebb_buf *b, const char *s, size_t n)
{
    tiny_add_u64(b, n);
    ebb_buf_add(b, s, n);
}

static void key(tiny_writer *w, const char *name, uint32_t type)
{
    tiny_add_string(&w->keys, name, strlen(name));
    tiny_add_u32(&w->keys, type);
    w->n_keys++;
}

static void key_string(tiny_writer *w, const char *name, const char *value)
{
    key(w, name, STR);
    tiny_add_string(&w->keys, value, strlen(value));
}

static void key_u32(tiny_writer *w, const char *arch, const char *name, uint32_t value)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", arch, name);
    key(w, full, U32);
    tiny_add_u32(&w->keys, value);
}

static void key_f32(tiny_writer *w, const char *arch, const char *name, float value)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", arch, name);
    key(w, full, F32);
    ebb_buf_add(&w->keys, &value, 4);
}

static void key_bool(tiny_writer *w, const char *arch, const char *name, bool value)
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

static void vocabulary(tiny_writer *w)
{
    static const char *const rest[] = {
        "th", "the", "in", "\xC4\xA0t", "<|endoftext|>", "<|im_start|>", "<|im_end|>",
    };
    static const char *const merges[] = { "t h", "th e", "i n", "\xC4\xA0 t" };

    key_string(w, "tokenizer.ggml.model", "gpt2");
    key_string(w, "tokenizer.ggml.pre", "gpt-2");
    key(w, "tokenizer.ggml.tokens", ARR);
    tiny_add_u32(&w->keys, STR);
    tiny_add_u64(&w->keys, EBB_TINY_VOCAB);
    for (unsigned b = 0; b < 256; b++) {
        char text[4];

        tiny_add_string(&w->keys, text, ebb_utf8_encode(letter_of(b), text));
    }
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        tiny_add_string(&w->keys, rest[i], strlen(rest[i]));
    key(w, "tokenizer.ggml.token_type", ARR);
    tiny_add_u32(&w->keys, I32);
    tiny_add_u64(&w->keys, EBB_TINY_VOCAB);
    for (uint32_t i = 0; i < EBB_TINY_VOCAB; i++)
        tiny_add_u32(&w->keys, i < EBB_TINY_VOCAB - 3 ? 1 : 3);
    key(w, "tokenizer.ggml.merges", ARR);
    tiny_add_u32(&w->keys, STR);
    tiny_add_u64(&w->keys, sizeof merges / sizeof *merges);
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
        tiny_add_string(&w->keys, merges[i], strlen(merges[i]));
    key_u32(w, "tokenizer.ggml", ".bos_token_id", EBB_TINY_VOCAB - 3);
    key_u32(w, "tokenizer.ggml", ".eos_token_id", EBB_TINY_VOCAB - 3);
    key_u32(w, "tokenizer.ggml", ".eot_token_id", EBB_TINY_VOCAB - 1);
    key_string(w, "tokenizer.chat_template",
               "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
               "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

/* A key of one value for each layer. */
static void key_layers(tiny_writer *w, const ebb_tiny_opts *o, const char *name, uint32_t type)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", o->arch, name);
    key(w, full, ARR);
    tiny_add_u32(&w->keys, type);
    tiny_add_u64(&w->keys, o->n_layers);
}

static void recurrent_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    const char *layers = tiny_layers_of(o);

    if (tiny_is_bare(o)) {
        key_u32(w, o->arch, ".attention.head_count", 0);
        key_u32(w, o->arch, ".feed_forward_length", 0);
    } else {
        key_layers(w, o, ".attention.head_count_kv", U32);
        for (uint32_t i = 0; i < o->n_layers; i++)
            tiny_add_u32(&w->keys, tiny_has_heads(o, i) ? o->n_head_kv : 0);
        key_layers(w, o, ".feed_forward_length", U32);
        for (uint32_t i = 0; i < o->n_layers; i++)
            tiny_add_u32(&w->keys, !tiny_is_single(o) || tiny_kind_of(o, i) == 'F' ? o->n_ff : 0);
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

static void gemma4_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    key_layers(w, o, ".attention.sliding_window_pattern", BOOL);
    for (uint32_t i = 0; i < o->n_layers; i++)
        ebb_buf_addc(&w->keys, i % 2 == 0);
    key_layers(w, o, ".attention.head_count_kv", U32);
    for (uint32_t i = 0; i < o->n_layers; i++)
        tiny_add_u32(&w->keys, tiny_gemma4_n_kv(o, i));
    key_layers(w, o, ".feed_forward_length", U32);
    for (uint32_t i = 0; i < o->n_layers; i++)
        tiny_add_u32(&w->keys, tiny_gemma4_is_shared(o, i) ? 2 * o->n_ff : o->n_ff);
    key_u32(w, o->arch, ".attention.key_length_swa", o->head_dim);
    key_u32(w, o->arch, ".attention.value_length_swa", o->head_dim);
    key_u32(w, o->arch, ".rope.dimension_count_swa", o->head_dim);
    key_f32(w, o->arch, ".rope.freq_base_swa", 10000);
    key_u32(w, o->arch, ".attention.shared_kv_layers", tiny_gemma4_shared(o));
    key_u32(w, o->arch, ".embedding_length_per_layer_input", o->n_embd);
}

static void gemma3n_keys(tiny_writer *w, const ebb_tiny_opts *o)
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
    key_u32(w, o->arch, ".attention.shared_kv_layers", tiny_gemma3n_shared(o));
    key_u32(w, o->arch, ".embedding_length_per_layer_input", DIM_LAYER_INPUT);
    key_u32(w, o->arch, ".altup.active_idx", 0);
    key_u32(w, o->arch, ".altup.num_inputs", N_STREAMS);
}

static void multiplier_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    bool is_factor = tiny_has(o, PARALLEL | HEAD_GATE);

    key_f32(w, o->arch, ".logit_scale", is_factor ? 0.5f : 2);
    if (is_factor)
        return;
    key_f32(w, o->arch, ".embedding_scale", 1.5f);
    key_f32(w, o->arch, ".residual_scale", 0.7f);
    key_f32(w, o->arch, ".attention.scale", 0.2f);
}

static void scaling_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    if (tiny_has(o, LINEAR | YARN)) {
        char key_name[64];

        snprintf(key_name, sizeof key_name, "%s.rope.scaling.type", o->arch);
        key_string(w, key_name, tiny_has(o, YARN) ? "yarn" : "linear");
        key_f32(w, o->arch, ".rope.scaling.factor", 8);
    }
    if (tiny_has(o, YARN | LONGROPE))
        key_u32(w, o->arch, ".rope.scaling.original_context_length", 64);
    if (tiny_has(o, LONGROPE))
        key_f32(w, o->arch, ".rope.scaling.attn_factor", 1.2f);
}

static void latent_keys(tiny_writer *w, const ebb_tiny_opts *o)
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
static void section_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    static const uint32_t sections[] = { 3, 3, 2, 0 };
    char name[64];

    snprintf(name, sizeof name, "%s.rope.dimension_sections", o->arch);
    key(w, name, ARR);
    tiny_add_u32(&w->keys, I32);
    tiny_add_u64(&w->keys, 4);
    ebb_buf_add(&w->keys, sections, sizeof sections);
}

static void trait_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    scaling_keys(w, o);
    if (tiny_has(o, MULTIPLIERS))
        multiplier_keys(w, o);
    if (tiny_has(o, WINDOW | LONGROPE))
        key_u32(w, o->arch, ".attention.sliding_window", EBB_TINY_WINDOW);
    if (tiny_has(o, SOFTCAPS)) {
        if (!tiny_has(o, GEMMA4 | GEMMA3N))
            key_f32(w, o->arch, ".attn_logit_softcapping", 5);
        key_f32(w, o->arch, ".final_logit_softcapping", tiny_has(o, GEMMA3N) ? 30 : 4);
    }
    if (tiny_has(o, TEMPERATURE))
        key_f32(w, o->arch, ".attention.temperature_scale", 0.1f);
    if (tiny_has(o, IMAGES))
        section_keys(w, o);
    if (tiny_has(o, UNTURNED))
        key_bool(w, o->arch, ".rope.scaling.finetuned", false);
    if (tiny_has(o, XIELU)) {
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
    if (tiny_has(o, LATENT))
        latent_keys(w, o);
    if (tiny_has(o, ONE_FOR_ALL)) {
        key_u32(w, o->arch, ".leading_dense_block_count", 1);
        key_u32(w, o->arch, ".expert_shared_count", 1);
        key_f32(w, o->arch, ".expert_weights_scale", tiny_has(o, CHOICE_BIAS) ? 2.5f : 1);
    }
    if (tiny_has(o, CHOICE_BIAS)) {
        key_u32(w, o->arch, ".expert_gating_func", 2);
        key_bool(w, o->arch, ".expert_weights_norm", true);
        key_u32(w, o->arch, ".expert_group_count", 2);
        key_u32(w, o->arch, ".expert_group_used_count", 1);
    }
    if (tiny_has(o, SHARED))
        key_u32(w, o->arch, ".expert_shared_feed_forward_length", o->n_ff);
    if (tiny_has(o, HYBRID)) {
        section_keys(w, o);
        key_u32(w, o->arch, ".ssm.conv_kernel", DELTA_CONV);
        key_u32(w, o->arch, ".ssm.state_size", DELTA_DIM);
        key_u32(w, o->arch, ".ssm.group_count", DELTA_K);
        key_u32(w, o->arch, ".ssm.time_step_rank", DELTA_V);
        key_u32(w, o->arch, ".ssm.inner_size", DELTA_V * DELTA_DIM);
    }
}

void tiny_write_keys(tiny_writer *w, const ebb_tiny_opts *o)
{
    key_string(w, "general.architecture", o->arch);
    key_string(w, "general.name", "tiny");
    key_u32(w, o->arch, ".context_length", o->n_ctx);
    key_u32(w, o->arch, ".embedding_length", o->n_embd);
    key_u32(w, o->arch, ".block_count", o->n_layers + o->has_draft_head);
    if (o->has_draft_head)
        key_u32(w, o->arch, ".nextn_predict_layers", 1);
    if (!tiny_is_bare(o))
        key_u32(w, o->arch, ".attention.head_count", o->n_head);
    if (tiny_has(o, GEMMA3N))
        gemma3n_keys(w, o);
    if (tiny_has(o, GEMMA4)) {
        gemma4_keys(w, o);
    } else if (tiny_is_recurrent(o)) {
        recurrent_keys(w, o);
    } else {
        key_u32(w, o->arch, ".feed_forward_length", o->n_ff);
        key_u32(w, o->arch, ".attention.head_count_kv",
                tiny_has(o, LATENT) ? (o->is_split ? o->n_head : 1) : o->n_head_kv);
    }
    if (!tiny_has(o, LATENT) && !tiny_is_bare(o)) {
        key_u32(w, o->arch, ".attention.key_length", tiny_has(o, GEMMA4) ? 2 * o->head_dim : o->head_dim);
        key_u32(w, o->arch, ".attention.value_length", tiny_has(o, GEMMA4) ? 2 * o->head_dim : o->head_dim);
    }
    if (!tiny_is_bare(o)) {
        key_u32(w, o->arch, ".rope.dimension_count", tiny_n_rot(o));
        key_f32(w, o->arch, ".rope.freq_base", 10000);
    }
    key_f32(w, o->arch, tiny_has(o, LAYER_NORM) ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon",
            1e-5f);
    trait_keys(w, o);
    vocabulary(w);
    if (o->n_suppressed) {
        key(w, "tokenizer.ggml.suppress_tokens", ARR);
        tiny_add_u32(&w->keys, I32);
        tiny_add_u64(&w->keys, o->n_suppressed);
        for (uint32_t i = 0; i < o->n_suppressed; i++)
            tiny_add_u32(&w->keys, i);
    }
}

bool ebb_tiny_next_key(char *bytes, size_t n, const char *arch, ebb_tiny_key *k)
{
    char prefix[64], *end = memmem(bytes, n, "tokenizer.ggml.model", 20), *p = k->value ? k->value : bytes;
    size_t n_prefix = (size_t)snprintf(prefix, sizeof prefix, "%s.", arch);
    uint64_t len;

    for (; (p = memmem(p, (size_t)(end - p), prefix, n_prefix)) != NULL; p += n_prefix) {
        memcpy(&len, p - 8, 8);
        if (len >= sizeof k->name)
            continue;                            /* a value that begins like a key */
        snprintf(k->name, sizeof k->name, "%.*s", (int)(len - n_prefix + 1), p + n_prefix - 1);
        memcpy(&k->type, p + len, 4);
        k->value = p + len + 4;
        if (k->type == ARR) {
            memcpy(&k->type, k->value, 4);
            k->value += 12;
        } else if (k->type == STR) {
            k->value += 8;
        }
        return true;
    }
    return false;
}
