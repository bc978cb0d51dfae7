/* What the Ollama-style estimate reads of a model: tensor groups (ebb/ollama.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ebb/ollama.h"

#define MAX_LAYERS 100000u       /* a hostile block_count must not become an allocation */

ebb_status ebb_ollama_model_init(ebb_ollama_model *o, const char *arch, uint64_t n_layers, ebb_error *err)
{
    memset(o, 0, sizeof *o);
    if (n_layers > MAX_LAYERS)
        return EBB_FAIL(err, EBB_FORMAT, "block_count %llu is not plausible", (unsigned long long)n_layers);
    snprintf(o->arch, sizeof o->arch, "%s", arch ? arch : "unknown");
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
static size_t group_of(const char *name)
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
static bool layer_of(const char *name, size_t n, uint64_t *layer)
{
    char *end;

    if (n < 5 || memcmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
        return false;
    *layer = strtoull(name + 4, &end, 10);
    return end == name + n;
}

void ebb_ollama_model_add_tensor(ebb_ollama_model *o, const ebb_tensor_info *t)
{
    size_t n = group_of(t->name);
    uint64_t layer, elements = 1;

    for (uint32_t d = 0; d < t->n_dims; d++)
        elements *= t->dims[d];
    if (layer_of(t->name, n, &layer)) {
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
