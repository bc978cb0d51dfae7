/* Tensors and keys that nothing has asked for (bind.h). */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "model/arch.h"
#include "model/bind.h"

static bool starts_with(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* The layer of "blk.3.attn_q.weight"; UINT32_MAX: it is outside of them. */
static uint32_t layer_of(const char *name)
{
    unsigned layer;

    return sscanf(name, "blk.%u.", &layer) == 1 ? layer : UINT32_MAX;
}

/* NULL, or what the tensor is for that this engine does without. */
static const char *purpose_of_unused(const ebb_net *net, const char *name)
{
    static const char *const senses[] = { "v.", "mm.", "a.", "vision", "audio", "resampler", "model.image", NULL };

    for (size_t i = 0; senses[i]; i++)
        if (starts_with(name, senses[i]))
            return "images and audio";
    if (strstr(name, ".input_scale"))
        return "products of inputs rounded to 4 bits";
    if (layer_of(name) >= net->n_layers && layer_of(name) < net->n_layers + net->n_mtp_layers)
        return "multi-token prediction";
    if (strstr(name, "rot_embd") || strstr(name, "inv_freq"))
        return "what the metadata says already";
    return NULL;
}

static void check_tensors(ebb_binder *b)
{
    size_t n = ebb_gguf_n_tensors(b->g), n_left = 0;
    const char *why = NULL, *name = NULL;

    for (size_t i = 0; i < n && b->st == EBB_OK; i++) {
        const ebb_gguf_tensor *t = ebb_gguf_get_tensor(b->g, i);
        const char *use = b->is_used[i] ? NULL : purpose_of_unused(b->net, t->name);
        char what[160], nothing[80];

        if (b->is_used[i])
            continue;
        if (!use) {
            snprintf(what, sizeof what, "tensor %.120s", t->name);
            snprintf(nothing, sizeof nothing, "%s has no use for it", b->net->arch->name);
            ebb_bind_leave_out(b, EBB_FORMAT, what, nothing);
            continue;
        }
        name = t->name;
        why = use;
        n_left++;
    }
    if (b->st == EBB_OK && n_left > 0)
        ebb_log("model", "%zu tensors are left out, the last one %s: %s", n_left, name, why);
}

/* What no architecture reads: as ebb_arch.harmless. */
static const char *const harmless_keys[] = {
    ".vocab_size", /* token_embd has as many rows */
    ".attention.layer_norm_epsilon",
    ".attention.layer_norm_rms_epsilon", /* of the kind of norm that it has not */
    ".rope.scaling.finetuned", /* how it was trained; Granite, where it means more, reads it */
    ".pooling_type", /* of embeddings */
    ".tensor_data_layout", /* of the checkpoint that was converted */
    ".vision.",
    ".audio.",
    ".mm.", /* images and sounds, as their tensors are */
    "general.tensor_extra.name",
    "general.tensor_extra.prec_a4", /* which products may round inputs
                                                                            to 4 bits; none here do */
    NULL,
};

/* NULL: a key that says nothing about what this architecture computes; else as lists have it. */
static const char *asking_part(const ebb_binder *b, const ebb_gguf_kv *kv)
{
    const char *name = b->net->arch->name;
    size_t n = strlen(name);

    if (starts_with(kv->key, "general.tensor_extra."))
        return kv->key;
    return strncmp(kv->key, name, n) == 0 && kv->key[n] == '.' ? kv->key + n : NULL;
}

static void check_keys(ebb_binder *b)
{
    for (size_t i = 0; i < ebb_gguf_n_keys(b->g) && b->st == EBB_OK; i++) {
        const ebb_gguf_kv *kv = ebb_gguf_get_key(b->g, i);
        const char *key = asking_part(b, kv);
        char what[160];

        if (b->is_read[i] || !key || ebb_bind_is_listed(harmless_keys, key) ||
            ebb_bind_is_listed(b->net->arch->harmless, key))
            continue;
        snprintf(what, sizeof what, "metadata %.*s", (int)(kv->key_bytes < 120 ? kv->key_bytes : 120), kv->key);
        ebb_bind_leave_out(b, EBB_UNSUPPORTED, what, "not understood");
    }
}

void ebb_bind_check_unused(ebb_binder *b)
{
    check_tensors(b);
    check_keys(b);
}
