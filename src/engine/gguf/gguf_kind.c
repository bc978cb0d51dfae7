/* What a model file is for (ebb/experimental/inspect.h). */
#include <stdlib.h>
#include <string.h>

#include "ebb/experimental/inspect.h"
#include "gguf/gguf_zip.h"
#include "os/file.h"

#define PEEK_BYTES ((uint64_t)256 << 10)         /* general.* and the architecture's keys come before the vocabulary */

static const char *const kind_names[] = {
    [EBB_KIND_CHAT] = "model",     [EBB_KIND_PROJECTOR] = "projector", [EBB_KIND_EMBEDDER] = "embedder",
    [EBB_KIND_DRAFTER] = "drafter", [EBB_KIND_ADAPTER] = "adapter",    [EBB_KIND_IMATRIX] = "importance matrix",
    [EBB_KIND_VOCABULARY] = "vocabulary", [EBB_KIND_SOUND] = "sound decoder",
};

/* Values of general.architecture and general.type that say what kind of model it is. */
static const struct { const char *name; ebb_model_kind kind;
} named_kinds[] = {
    { "clip", EBB_KIND_PROJECTOR },         { "mmproj", EBB_KIND_PROJECTOR },
    { "adapter", EBB_KIND_ADAPTER },        { "controlvector", EBB_KIND_ADAPTER },
    { "imatrix", EBB_KIND_IMATRIX },
    { "vocab", EBB_KIND_VOCABULARY },       { "bert", EBB_KIND_EMBEDDER },
    { "nomic-bert", EBB_KIND_EMBEDDER },    { "nomic-bert-moe", EBB_KIND_EMBEDDER },
    { "neo-bert", EBB_KIND_EMBEDDER },      { "jina-bert-v2", EBB_KIND_EMBEDDER },
    { "jina-bert-v3", EBB_KIND_EMBEDDER },  { "modern-bert", EBB_KIND_EMBEDDER },
    { "eurobert", EBB_KIND_EMBEDDER },      { "gemma-embedding", EBB_KIND_EMBEDDER },
    { "llama-embed", EBB_KIND_EMBEDDER },   { "t5encoder", EBB_KIND_EMBEDDER },
    { "wavtokenizer-dec", EBB_KIND_SOUND }, { "eagle3", EBB_KIND_DRAFTER },
    { "dflash", EBB_KIND_DRAFTER },         { "gemma4-assistant", EBB_KIND_DRAFTER },
    { "gemma4_assistant", EBB_KIND_DRAFTER }, { "gemma4_mtp", EBB_KIND_DRAFTER },
};

const char *ebb_model_kind_name(ebb_model_kind kind)
{
    return kind_names[kind];
}

static bool text_is(const char *text, uint64_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

/* Is it the architecture's key of that name? */
static bool key_ends_in(const ebb_gguf_kv *kv, const char *ending)
{
    size_t n = strlen(ending);

    return kv->key_bytes > n && memcmp(kv->key + kv->key_bytes - n, ending, n) == 0;
}

static ebb_model_kind kind_named(const char *name, uint64_t n)
{
    for (size_t i = 0; i < sizeof named_kinds / sizeof *named_kinds; i++)
        if (text_is(name, n, named_kinds[i].name))
            return named_kinds[i].kind;
    return EBB_KIND_CHAT;
}

ebb_model_kind ebb_gguf_kind_of_arch(const char *name)
{
    return kind_named(name, strlen(name));
}

/* Layers that a file has, and those of them that only draft. */
typedef struct layer_counts {
    uint64_t n_layers, n_draft_layers;
} layer_counts;

/* The kind by one key; CHAT: it says nothing against that. */
static ebb_model_kind kind_by_key(const ebb_gguf_kv *kv, layer_counts *n)
{
    uint64_t value = 0;

    if (kv->type == EBB_GGUF_STRING &&
        (text_is(kv->key, kv->key_bytes, "general.architecture") || text_is(kv->key, kv->key_bytes, "general.type")))
        return kind_named(kv->data, kv->n_bytes);
    if (kv->type == EBB_GGUF_STRING && text_is(kv->key, kv->key_bytes, "adapter.type"))
        return EBB_KIND_ADAPTER;
    if (kv->type == EBB_GGUF_ARRAY || kv->type == EBB_GGUF_STRING || !ebb_gguf_item_u64(kv, 0, &value))
        return EBB_KIND_CHAT;
    if (key_ends_in(kv, ".pooling_type") && value != 0)      /* 0: none; a model that chats has no other */
        return EBB_KIND_EMBEDDER;
    if (key_ends_in(kv, ".block_count"))
        n->n_layers = value;
    if (key_ends_in(kv, ".nextn_predict_layers"))
        n->n_draft_layers = value;
    return EBB_KIND_CHAT;
}

static ebb_model_kind kind_by_keys(const ebb_gguf_kv *kvs, size_t n_kvs, uint64_t n_tensors)
{
    layer_counts n = { 0 };

    for (size_t i = 0; i < n_kvs; i++) {
        ebb_model_kind kind = kind_by_key(&kvs[i], &n);

        if (kind != EBB_KIND_CHAT)
            return kind;
    }
    if (n.n_draft_layers > 0 && n.n_draft_layers == n.n_layers)
        return EBB_KIND_DRAFTER;
    return n_tensors == 0 ? EBB_KIND_VOCABULARY : EBB_KIND_CHAT;
}

ebb_model_kind ebb_gguf_kind(const ebb_gguf *g)
{
    return kind_by_keys(ebb_gguf_get_key(g, 0), ebb_gguf_n_keys(g), ebb_gguf_n_tensors(g));
}

ebb_status ebb_gguf_read_kind(int fd, const char *path, ebb_gguf_span at, ebb_model_kind *out, ebb_error *err)
{
    ebb_gguf_header h = { 0 };
    uint64_t n_tensors = 0, have = at.n_bytes < PEEK_BYTES ? at.n_bytes : PEEK_BYTES;
    char *bytes = malloc((size_t)have + 1);
    ebb_status st = bytes ? ebb_file_read_at(fd, path, bytes, (size_t)have, at.begin, err)
                          : EBB_FAIL(err, EBB_NOMEM, "%s: no memory to look into it", path);

    *out = EBB_KIND_CHAT;
    if (st == EBB_OK)
        st = ebb_gguf_parse_keys(bytes, have, at.n_bytes, path, &h, &n_tensors, err);
    if (st == EBB_OK)
        *out = kind_by_keys(h.kvs, h.n_kvs, n_tensors);
    ebb_gguf_header_fini(&h);
    free(bytes);
    return st;
}

ebb_status ebb_model_read_kind(const char *path, ebb_model_kind *out, ebb_error *err)
{
    ebb_gguf_span at = { 0 };
    uint64_t size = 0;
    int fd = -1;
    ebb_status st = ebb_file_open(path, EBB_FILE_READ, &fd, err);

    *out = EBB_KIND_CHAT;
    if (st == EBB_OK)
        st = ebb_file_size(fd, path, &size, err);
    if (st == EBB_OK)
        st = ebb_gguf_find_span(fd, path, NULL, size, &at, err);
    if (st == EBB_OK)
        st = ebb_gguf_read_kind(fd, path, at, out, err);
    ebb_file_close(fd);
    return st;
}
