/* What the Ollama-style estimate reads of a model: tensor groups (ebb/experimental/ollama.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ebb/experimental/inspect.h"
#include "ebb/experimental/ollama.h"
#include "open/model_file.h"

#define MAX_LAYERS 100000u       /* a hostile block_count must not become an allocation */

ebb_status ebb_ollama_model_init(ebb_ollama_model *o, const char *arch, uint64_t n_layers, ebb_error *err)
{
    memset(o, 0, sizeof *o);
    if (n_layers > MAX_LAYERS)
        return EBB_FAIL(err, EBB_FORMAT, "block_count %llu is not plausible", (unsigned long long)n_layers);
    arch = arch ? arch : "unknown";
    snprintf(o->arch, sizeof o->arch, "%.*s", (int)ebb_utf8_cut(arch, strlen(arch), sizeof o->arch - 1), arch);
    o->n_layers = n_layers;
    o->layer_bytes = calloc(n_layers + 1, sizeof *o->layer_bytes);
    o->has_layer = calloc(n_layers + 1, sizeof *o->has_layer);
    if (!o->layer_bytes || !o->has_layer) {
        ebb_ollama_model_fini(o);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu layers", (unsigned long long)n_layers);
    }
    return EBB_OK;
}

void ebb_ollama_model_fini(ebb_ollama_model *o)
{
    free(o->layer_bytes);
    free(o->has_layer);
    free(o->heads.values);
    free(o->kv_heads.values);
    free(o->cross_layers.values);
    memset(o, 0, sizeof *o);
}

/* The group of a tensor: its name up to and including the part behind the first
 * "blk" or "mm" if something follows, else its first part.  Returns the length. */
static size_t ollama_group(const char *name)
{
    const char *part = name;

    for (;;) {
        const char *dot = strchr(part, '.');
        if (!dot)
            break;
        size_t n = (size_t)(dot - part);
        const char *second = strchr(dot + 1, '.');
        if (((n == 3 && memcmp(part, "blk", 3) == 0) || (n == 2 && memcmp(part, "mm", 2) == 0))) {
            if (second)
                return (size_t)(second - name);
            break;
        }
        part = dot + 1;
    }
    return strcspn(name, ".");
}

static bool is(const char *name, size_t n, const char *group)
{
    return strlen(group) == n && memcmp(name, group, n) == 0;
}

/* The layer of a group "blk.7"; false for any other. */
static bool tensor_layer(const char *name, size_t n, uint64_t *layer)
{
    char *end;

    if (n < 5 || memcmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
        return false;
    *layer = strtoull(name + 4, &end, 10);
    return end == name + n;
}

void ebb_ollama_model_add_tensor(ebb_ollama_model *o, const ebb_tensor_info *t)
{
    size_t n = ollama_group(t->name);
    uint64_t layer, elements = 1;

    for (uint32_t d = 0; d < t->n_dims; d++)
        elements *= t->dims[d];
    if (tensor_layer(t->name, n, &layer)) {
        if (layer < o->n_layers) {
            o->layer_bytes[layer] += t->n_bytes;
            o->has_layer[layer] = true;
        }
    } else if (is(t->name, n, "output_norm"))
        o->output_norm_bytes += t->n_bytes;
    else if (is(t->name, n, "output")) {
        o->output_bytes += t->n_bytes;
        o->has_output = true;
    } else if (is(t->name, n, "token_embd"))
        o->token_embd_bytes += t->n_bytes;
    if (strcmp(t->name, "blk.0.ffn_gate_exps.weight") == 0)
        o->gate_exps_bytes = t->n_bytes;
    else if (strcmp(t->name, "blk.0.ffn_gate.0.weight") == 0)
        o->gate_expert_width = t->n_dims > 1 ? t->dims[1] : 0;
    else if (strcmp(t->name, "blk.0.attn_qkv.bias") == 0)
        o->qkv_bias_dim = t->dims[0];
    else if (strcmp(t->name, "rope_freqs.weights") == 0)
        o->rope_freqs_elements = elements;
}

static ebb_status read_heads(const ebb_gguf *g, const char *key, ebb_ollama_heads *out, ebb_error *err)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, key);

    if (!kv || kv->n == 0 || kv->n > MAX_LAYERS)
        return EBB_OK;
    out->values = calloc(kv->n, sizeof *out->values);
    if (!out->values)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu layers", (unsigned long long)kv->n);
    out->n = kv->n;
    for (uint64_t i = 0; i < kv->n; i++)
        ebb_gguf_item_u64(kv, i, &out->values[i]);
    return EBB_OK;
}

/* A scalar; an array counts as absent. */
static bool scalar(const ebb_gguf *g, const char *key, uint64_t *out)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, key);

    return kv && kv->type != EBB_GGUF_ARRAY && ebb_gguf_get_u64(g, key, out);
}

static void read_scalars(ebb_ollama_model *o, const ebb_gguf *g)
{
    const ebb_gguf_kv *tokens = ebb_gguf_find(g, "tokenizer.ggml.tokens");

    scalar(g, ".embedding_length", &o->n_embd);
    scalar(g, ".feed_forward_length", &o->n_ff);
    scalar(g, ".context_length", &o->n_ctx_train);
    scalar(g, ".attention.sliding_window", &o->window);
    o->has_dim_k = scalar(g, ".attention.key_length", &o->dim_k);
    o->has_dim_v = scalar(g, ".attention.value_length", &o->dim_v);
    o->is_embedding = ebb_gguf_find(g, ".pooling_type") != NULL;
    scalar(g, ".ssm.conv_kernel", &o->ssm_conv);
    scalar(g, ".ssm.inner_size", &o->ssm_inner);
    scalar(g, ".ssm.state_size", &o->ssm_state);
    scalar(g, ".ssm.group_count", &o->ssm_groups);
    o->n_vocab = tokens ? tokens->n : 0;
}

ebb_status ebb_ollama_model_read(ebb_ollama_model *o, const ebb_model *m, ebb_error *err)
{
    const ebb_gguf *g = ebb_model_gguf(m);
    const char *arch = ebb_model_get_info(m)->arch;
    uint64_t n_layers = 0;
    ebb_status st;

    scalar(g, ".block_count", &n_layers);
    st = ebb_ollama_model_init(o, arch[0] ? arch : NULL, n_layers, err);
    if (st != EBB_OK)
        return st;
    read_scalars(o, g);
    for (size_t i = 0; i < ebb_model_n_tensors(m); i++) {
        ebb_tensor_info t;
        ebb_model_tensor(m, i, &t);
        ebb_ollama_model_add_tensor(o, &t);
    }
    st = read_heads(g, ".attention.head_count", &o->heads, err);
    if (st == EBB_OK)
        st = read_heads(g, ".attention.head_count_kv", &o->kv_heads, err);
    if (st == EBB_OK)
        st = read_heads(g, ".attention.cross_attention_layers", &o->cross_layers, err);
    if (st != EBB_OK)
        ebb_ollama_model_fini(o);
    return st;
}
