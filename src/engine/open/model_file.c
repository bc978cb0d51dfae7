/* A model as a file (ebb/model.h): open, facts, metadata as text, tensors. */
#include "open/model_file.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/size.h"
#include "base/utf8.h"
#include "ebb/experimental/inspect.h"
#include "os/map.h"

#define MAX_LAYERS 16384u        /* beyond it a file is damaged, not large */
#define MAX_WIDTH  (1u << 24)    /* rows, tokens: likewise */
#define MAX_HEADS  (1u << 16)
#define NAME_BYTES 200u          /* shown of a name */
#define ARCH_BYTES 64u           /* shown of an architecture */

struct ebb_model {
    ebb_gguf      *gguf;
    ebb_model_info info;
    char          *path;         /* FILE@MEMBER, if a member of a llamafile was named */
    char          *base_name;    /* of the file */
    char          *name;         /* general.name or base_name, as a line of text */
    char          *arch;         /* general.architecture, likewise; NULL: it has none */
    ebb_tokenizer *tokenizer;    /* NULL: no_tokenizer says why */
    ebb_error      no_tokenizer;
    _Atomic(ebb_token_trie *) trie;      /* NULL: nobody has asked for it */
};

/* -- Facts ------------------------------------------------------------------------- */
/* general.file_type, by its number */
static const char *const file_types[] = {
    [0] = "F32",      [1] = "F16",      [2] = "Q4_0",    [3] = "Q4_1",     [7] = "Q8_0",    [8] = "Q5_0",
    [9] = "Q5_1",     [10] = "Q2_K",    [11] = "Q3_K_S", [12] = "Q3_K_M",  [13] = "Q3_K_L", [14] = "Q4_K_S",
    [15] = "Q4_K_M",  [16] = "Q5_K_S",  [17] = "Q5_K_M", [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS",
    [21] = "Q2_K_S",  [22] = "IQ3_XS",  [23] = "IQ3_XXS", [24] = "IQ1_S",  [25] = "IQ4_NL", [26] = "IQ3_S",
    [27] = "IQ3_M",   [28] = "IQ2_S",   [29] = "IQ2_M",  [30] = "IQ4_XS",  [31] = "IQ1_M",  [32] = "BF16",
    [36] = "TQ1_0",   [37] = "TQ2_0",   [38] = "MXFP4",   [39] = "NVFP4",   [40] = "Q1_0",    [41] = "Q2_0",
};

/* *out = the number at `key`, or the largest if it is one for each layer; 0 if there is none. */
static ebb_status read_fact(const ebb_gguf *g, const char *key, uint64_t max, uint32_t *out, ebb_error *err)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, key);
    uint64_t v = 0;

    *out = 0;
    for (uint64_t i = 0; kv && i < kv->n; i++) {
        if (!ebb_gguf_item_u64(kv, i, &v) || v > max)
            return EBB_FAIL(err, EBB_FORMAT, "damaged: metadata key %.80s is not a number up to %" PRIu64, kv->key,
                            max);
        *out = v > *out ? (uint32_t)v : *out;
    }
    return EBB_OK;
}

/* Whether layer i keeps keys and values: hybrids have full attention in every nth layer only. */
static bool layer_has_kv(const ebb_gguf *g, uint32_t i)
{
    uint64_t every = 1;

    return !ebb_gguf_get_u64(g, ".full_attention_interval", &every) || every == 0 || (i + 1) % every == 0;
}

static uint64_t kv_bytes_per_tok(const ebb_gguf *g, const ebb_model_info *info)
{
    uint64_t k = info->head_dim, v = info->head_dim, heads = 0;

    ebb_gguf_get_u64(g, ".attention.key_length", &k);
    ebb_gguf_get_u64(g, ".attention.value_length", &v);
    if (k > MAX_WIDTH || v > MAX_WIDTH)
        return 0;
    for (uint32_t i = 0; i < info->n_layers; i++) {
        uint64_t n = info->n_head_kv;
        ebb_gguf_get_u64_at(g, ".attention.head_count_kv", i, &n);
        if (layer_has_kv(g, i))
            heads += n;
    }
    return heads * (k + v) * 2;
}

static uint32_t count_vocab(const ebb_gguf *g)
{
    const ebb_gguf_tensor *embd = ebb_gguf_find_tensor(g, "token_embd.weight");
    const ebb_gguf_kv *tokens = ebb_gguf_find(g, "tokenizer.ggml.tokens");
    uint64_t n = 0;

    if (embd)                                    /* what the logits have: may be padded */
        n = embd->dims[1];
    else if (tokens)
        n = tokens->n;
    else
        ebb_gguf_get_u64(g, ".vocab_size", &n);
    return n <= MAX_WIDTH ? (uint32_t)n : 0;
}

static const char *quantization_name(const ebb_gguf *g)
{
    uint64_t file_type = UINT64_MAX, bytes[EBB_TYPE_LIMIT] = { 0 };
    uint32_t most = 0;

    ebb_gguf_get_u64(g, "general.file_type", &file_type);
    if (file_type < sizeof file_types / sizeof file_types[0] && file_types[file_type])
        return file_types[file_type];
    for (size_t i = 0; i < ebb_gguf_n_tensors(g); i++) {
        const ebb_gguf_tensor *t = ebb_gguf_get_tensor(g, i);
        if (t->type < EBB_TYPE_LIMIT)
            bytes[t->type] += t->n_bytes;
    }
    for (uint32_t t = 0; t < EBB_TYPE_LIMIT; t++)
        most = bytes[t] > bytes[most] ? t : most;
    return bytes[most] > 0 ? ebb_type_get(most)->name : "";
}

static ebb_status read_hparams(const ebb_gguf *g, ebb_model_info *info, ebb_error *err)
{
    const struct { const char *key; uint64_t max; uint32_t *out; } facts[] = {
        { ".block_count", MAX_LAYERS, &info->n_layers },
        { ".embedding_length", MAX_WIDTH, &info->n_embd },
        { ".attention.head_count", MAX_HEADS, &info->n_head },
        { ".attention.head_count_kv", MAX_HEADS, &info->n_head_kv },
        { ".attention.key_length", MAX_WIDTH, &info->head_dim },
        { ".feed_forward_length", MAX_WIDTH, &info->n_ff },
        { ".context_length", UINT32_MAX, &info->n_ctx_train },
    };
    ebb_status st = EBB_OK;

    for (size_t i = 0; i < sizeof facts / sizeof facts[0] && st == EBB_OK; i++)
        st = read_fact(g, facts[i].key, facts[i].max, facts[i].out, err);
    if (!ebb_gguf_find(g, ".attention.head_count_kv"))
        info->n_head_kv = info->n_head;
    if (info->head_dim == 0 && info->n_head > 0)
        info->head_dim = info->n_embd / info->n_head;
    return st;
}

/* Text that stands in lines of lists and notices, so it can be none of its own, nor fill a screen.  NULL: no memory. */
static char *line_of(const char *text, size_t max_bytes)
{
    ebb_buf line = { 0 };

    if (ebb_utf8_add_line(&line, text, ebb_utf8_cut(text, strlen(text), max_bytes), false))
        return ebb_buf_take(&line);
    ebb_buf_fini(&line);
    return NULL;
}

/* What is shown of a model. */
static ebb_status read_names(ebb_model *m, ebb_error *err)
{
    const char *name = ebb_gguf_get_string(m->gguf, "general.name");
    const char *arch = ebb_gguf_get_string(m->gguf, "general.architecture");

    m->name = line_of(name && name[0] ? name : m->base_name, NAME_BYTES);
    if (arch && arch[0])
        m->arch = line_of(arch, ARCH_BYTES);
    if (!m->name || (arch && arch[0] && !m->arch))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for its name");
    m->info.name = m->name;
    m->info.arch = m->arch ? m->arch : "";
    return EBB_OK;
}

static ebb_status read_info(ebb_model *m, ebb_error *err)
{
    const ebb_gguf *g = m->gguf;
    ebb_model_info *info = &m->info;
    ebb_status st;

    info->path = m->path ? m->path : ebb_gguf_get_part(g, 0)->path;
    st = read_names(m, err);
    if (st != EBB_OK)
        return st;
    info->quantization = quantization_name(g);
    st = read_hparams(g, info, err);
    if (st != EBB_OK)
        return st;
    info->n_vocab = count_vocab(g);
    info->kv_bytes_per_tok_f16 = kv_bytes_per_tok(g, info);
    for (size_t i = 0; i < ebb_gguf_n_tensors(g); i++) {
        info->n_params = ebb_size_plus(info->n_params, ebb_gguf_get_tensor(g, i)->n_elems);
        info->weight_bytes += ebb_gguf_get_tensor(g, i)->n_bytes;
    }
    memcpy(info->fingerprint, ebb_gguf_digest(g), sizeof info->fingerprint);
    return EBB_OK;
}

/* -- Opening ----------------------------------------------------------------------- */
/* "Qwen3-8B-Q4_K_M" of "models/Qwen3-8B-Q4_K_M.gguf" */
static char *make_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path), *dot = name ? strrchr(name, '.') : NULL;

    if (dot && dot > name && strcmp(dot, ".gguf") == 0)
        *dot = '\0';
    return name;
}

/* An unknown tokenizer is no failure yet: the file can still be inspected. */
static ebb_status make_tokenizer(ebb_model *m, ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st = ebb_model_make_tokenizer(m->gguf, &m->tokenizer, &why);

    if (st == EBB_UNSUPPORTED)
        EBB_FAIL(&m->no_tokenizer, st, "%.60s: %.170s", m->base_name, why.msg);
    else if (st != EBB_OK && err)
        *err = why;
    return st == EBB_UNSUPPORTED ? EBB_OK : st;
}

/* Make *out of an open GGUF, which it owns from now on, also on failure. */
static ebb_status model_from_gguf(ebb_gguf *g, ebb_model **out, ebb_error *err)
{
    const char *path = ebb_gguf_get_part(g, 0)->path;
    ebb_model *m = calloc(1, sizeof *m);
    ebb_error why = { 0 };
    ebb_status st;

    if (!m) {
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for a model", path);
        ebb_gguf_close(g);
        return st;
    }
    m->gguf = g;
    m->base_name = make_base_name(path);
    if (ebb_gguf_get_part(g, 0)->member && asprintf(&m->path, "%s@%s", path, ebb_gguf_get_part(g, 0)->member) < 0)
        m->path = NULL;
    st = m->base_name && (m->path || !ebb_gguf_get_part(g, 0)->member)
           ? read_info(m, &why)
           : EBB_FAIL(&why, EBB_NOMEM, "no memory for its name");
    if (st == EBB_OK)
        st = make_tokenizer(m, &why);
    if (st == EBB_OK) {
        *out = m;
        return EBB_OK;
    }
    st = EBB_FAIL(err, st, "%s: %.150s", m->base_name ? m->base_name : "model", why.msg);
    ebb_model_close(m);
    return st;
}

ebb_status ebb_model_open(const char *path, ebb_model **out, ebb_error *err)
{
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open(path, &g, err);

    *out = NULL;
    return st == EBB_OK ? model_from_gguf(g, out, err) : st;
}

ebb_status ebb_model_open_memory(const void *data, size_t n_bytes, const char *name, ebb_model **out, ebb_error *err)
{
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open_memory(data, n_bytes, name, &g, err);

    *out = NULL;
    return st == EBB_OK ? model_from_gguf(g, out, err) : st;
}

ebb_status ebb_model_open_partial(const ebb_partial_file *files, size_t n, size_t *i_busy, ebb_model **out,
                                  ebb_error *err)
{
    ebb_gguf *g;
    ebb_status st = ebb_gguf_open_partial(files, n, i_busy, &g, err);

    *out = NULL;
    return st == EBB_OK ? model_from_gguf(g, out, err) : st;
}

void ebb_model_close(ebb_model *m)
{
    if (!m)
        return;
    ebb_token_trie_free(m->trie);
    ebb_tokenizer_free(m->tokenizer);
    ebb_gguf_close(m->gguf);
    free(m->base_name);
    free(m->name);
    free(m->arch);
    free(m->path);
    free(m);
}

const ebb_gguf *ebb_model_gguf(const ebb_model *m) { return m->gguf; }
bool ebb_model_is_in_memory(const ebb_model *m) { return ebb_gguf_get_part(m->gguf, 0)->fd < 0; }
const ebb_tokenizer *ebb_model_tokenizer(const ebb_model *m) { return m->tokenizer; }
const ebb_model_info *ebb_model_get_info(const ebb_model *m) { return &m->info; }

double ebb_model_page_cache_share(const ebb_model *m)
{
    const ebb_gguf_part *first = ebb_gguf_get_part(m->gguf, 0);

    return ebb_model_is_in_memory(m) ? 1 : ebb_file_cached_share(first->fd, first->n_bytes);
}

ebb_status ebb_model_check_tokenizer(const ebb_model *m, ebb_error *err)
{
    if (!m->tokenizer && err)
        *err = m->no_tokenizer;
    return m->tokenizer ? EBB_OK : m->no_tokenizer.code;
}

/* Of two threads that make it at once, the later one throws its own away. */
ebb_token_trie *ebb_model_token_trie(const ebb_model *m)
{
    _Atomic(ebb_token_trie *) *slot = (_Atomic(ebb_token_trie *) *)(uintptr_t)&m->trie;
    ebb_token_trie *there = atomic_load(slot), *made;

    if (there || !(made = ebb_token_trie_new(m)))
        return there;
    if (atomic_compare_exchange_strong(slot, &there, made))
        return made;
    ebb_token_trie_free(made);
    return there;
}

size_t ebb_model_bytes(const ebb_model *m)
{
    return sizeof *m + ebb_gguf_header_bytes(m->gguf) + (m->tokenizer ? ebb_tokenizer_bytes(m->tokenizer) : 0);
}

/* -- The file as text ----------------------------------------------------------------- */
static void add_meta_item(ebb_buf *b, const ebb_gguf_kv *kv, uint64_t i)
{
    uint64_t u;
    int64_t s;
    double f;

    if (kv->item_type == EBB_GGUF_BOOL && ebb_gguf_item_u64(kv, i, &u))
        ebb_buf_adds(b, u ? "true" : "false");
    else if (kv->item_type == EBB_GGUF_F32 && ebb_gguf_item_f64(kv, i, &f))
        ebb_buf_addf(b, "%.7g", f);
    else if (kv->item_type == EBB_GGUF_F64 && ebb_gguf_item_f64(kv, i, &f))
        ebb_buf_addf(b, "%.15g", f);
    else if (ebb_gguf_item_u64(kv, i, &u))
        ebb_buf_addf(b, "%" PRIu64, u);
    else if (ebb_gguf_item_i64(kv, i, &s))
        ebb_buf_addf(b, "%" PRId64, s);
}

/* Up to 64 numbers one by one (a value for each layer), few strings (of each at most `cap` bytes), else a count. */
static void add_meta_array(ebb_buf *b, const ebb_gguf_kv *kv, size_t cap)
{
    bool strings = kv->item_type == EBB_GGUF_STRING;
    ebb_gguf_strings s = ebb_gguf_strings_of(kv);
    const char *text;
    size_t n;

    if (kv->n > (strings ? 8 : 64)) {
        ebb_buf_addf(b, "[%" PRIu64 " %s%s]", kv->n, ebb_gguf_type_name(kv->item_type), strings ? "s" : "");
        return;
    }
    ebb_buf_addc(b, '[');
    for (uint64_t i = 0; i < kv->n; i++) {
        if (i > 0)
            ebb_buf_adds(b, ", ");
        if (!strings)
            add_meta_item(b, kv, i);
        else if (ebb_gguf_strings_next(&s, &text, &n)) {
            ebb_buf_addc(b, '"');
            ebb_buf_add(b, text, n < cap ? n : cap);
            ebb_buf_addc(b, '"');
        }
    }
    ebb_buf_addc(b, ']');
}

size_t ebb_model_n_meta(const ebb_model *m)
{
    return ebb_gguf_n_keys(m->gguf);
}

const char *ebb_model_meta(const ebb_model *m, size_t i, char *buf, size_t cap)
{
    const ebb_gguf_kv *kv = ebb_gguf_get_key(m->gguf, i);
    ebb_buf b = { 0 };
    const char *text;
    size_t n;

    if (cap == 0)
        return kv->key;
    if (kv->type == EBB_GGUF_ARRAY)
        add_meta_array(&b, kv, cap);
    else if (kv->type != EBB_GGUF_STRING)
        add_meta_item(&b, kv, 0);
    text = kv->type == EBB_GGUF_STRING ? kv->data : ebb_buf_text(&b);
    n = ebb_utf8_cut(text, kv->type == EBB_GGUF_STRING ? (size_t)kv->n_bytes : b.len, cap - 1);
    memcpy(buf, text, n);
    buf[n] = '\0';
    ebb_buf_fini(&b);
    return kv->key;
}

const char *ebb_model_meta_string(const ebb_model *m, const char *key)
{
    return ebb_gguf_get_string(m->gguf, key);
}

bool ebb_model_meta_number(const ebb_model *m, const char *key, double *out)
{
    uint64_t u;
    int64_t i;

    if (ebb_gguf_get_f64(m->gguf, key, out))
        return true;
    if (ebb_gguf_get_u64(m->gguf, key, &u))
        *out = (double)u;
    else if (ebb_gguf_get_i64(m->gguf, key, &i))
        *out = (double)i;
    else
        return false;
    return true;
}

size_t ebb_model_n_tensors(const ebb_model *m)
{
    return ebb_gguf_n_tensors(m->gguf);
}

void ebb_model_tensor(const ebb_model *m, size_t i, ebb_tensor_info *out)
{
    const ebb_gguf_tensor *t = ebb_gguf_get_tensor(m->gguf, i);

    *out = (ebb_tensor_info){ .name = t->name, .type = (ebb_type)t->type, .n_dims = t->n_dims,
                              .dims = { t->dims[0], t->dims[1], t->dims[2], t->dims[3] },
                              .n_bytes = t->n_bytes, .part = t->part, .offset = t->offset };
}

const char *ebb_model_template(const ebb_model *m, const char *variant)
{
    static const char key[] = "tokenizer.chat_template";
    char full[256];
    int n = variant ? snprintf(full, sizeof full, "%s.%s", key, variant) : 0;

    if (n < 0 || (size_t)n >= sizeof full)
        return NULL;
    return ebb_gguf_get_string(m->gguf, variant ? full : key);
}
