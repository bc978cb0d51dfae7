/* Text and tokens of a model (ebb/model.h): the vocabulary out of the metadata,
 * and the tokenizer's functions under the model's name. */
#include "open/model_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sample/sampler.h"

/* The largest known vocabularies have 262,144 and 514,906. */
#define MAX_TOKENS ((uint64_t)1 << 19)
#define MAX_MERGES ((uint64_t)3 << 18)

/* -- The vocabulary ------------------------------------------------------------------ */
/* What ebb_vocab points to while the tokenizer is made. */
typedef struct vocab_lists {
    ebb_vocab_str *tokens, *merges;
    float         *scores;
    int32_t       *types;
    ebb_token     *eos_ids;
} vocab_lists;

static void vocab_lists_fini(vocab_lists *l)
{
    free(l->tokens);
    free(l->merges);
    free(l->scores);
    free(l->types);
    free(l->eos_ids);
}

/* *out = room for the n items of array kv; NULL and n == 0 if it is absent. */
static ebb_status new_vocab_list(const ebb_gguf_kv *kv, uint64_t max, size_t item_bytes, void **out, size_t *n,
                                 ebb_error *err)
{
    *n = 0;
    *out = NULL;
    if (!kv)
        return EBB_OK;
    if (kv->n > max)
        return EBB_FAIL(err, EBB_LIMIT, "%.80s has %llu items; at most %llu are accepted", kv->key,
                        (unsigned long long)kv->n, (unsigned long long)max);
    *n = (size_t)kv->n;
    *out = calloc(*n + 1, item_bytes);
    return *out ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the %zu items of %.80s", *n, kv->key);
}

static ebb_status read_strings(const ebb_gguf *g, const char *key, uint64_t max, ebb_vocab_str **out, size_t *n,
                               ebb_error *err)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, key);
    ebb_gguf_strings s = ebb_gguf_strings_of(kv);
    void *room;
    ebb_status st;

    if (kv && (kv->type != EBB_GGUF_ARRAY || kv->item_type != EBB_GGUF_STRING))
        return EBB_FAIL(err, EBB_FORMAT, "damaged: %s is not a list of strings", key);
    st = new_vocab_list(kv, max, sizeof **out, &room, n, err);
    *out = room;
    for (size_t i = 0; st == EBB_OK && i < *n && ebb_gguf_strings_next(&s, &(*out)[i].ptr, &(*out)[i].len); i++)
        ;
    return st;
}

/* A list of one number for each of n_tokens must be just that, or absent. */
static ebb_status check_vocab_list(const ebb_gguf_kv *kv, size_t n_tokens, ebb_error *err)
{
    double v;

    if (!kv || (kv->type == EBB_GGUF_ARRAY && kv->n == n_tokens && (n_tokens == 0 || ebb_gguf_item_f64(kv, 0, &v))))
        return EBB_OK;
    return EBB_FAIL(err, EBB_FORMAT, "damaged: %.80s has %llu numbers for %zu tokens", kv->key,
                    (unsigned long long)kv->n, n_tokens);
}

static ebb_status read_scores(const ebb_gguf *g, size_t n_tokens, float **out, ebb_error *err)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, "tokenizer.ggml.scores");
    void *room = NULL;
    size_t n;
    double v = 0;
    ebb_status st = check_vocab_list(kv, n_tokens, err);

    if (st == EBB_OK)
        st = new_vocab_list(kv, MAX_TOKENS, sizeof **out, &room, &n, err);
    *out = room;
    for (size_t i = 0; room && i < n; i++)
        (*out)[i] = ebb_gguf_item_f64(kv, i, &v) ? (float)v : 0;
    return st;
}

static ebb_status read_types(const ebb_gguf *g, size_t n_tokens, int32_t **out, ebb_error *err)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, "tokenizer.ggml.token_type");
    void *room = NULL;
    size_t n;
    int64_t v;
    ebb_status st = check_vocab_list(kv, n_tokens, err);

    if (st == EBB_OK)
        st = new_vocab_list(kv, MAX_TOKENS, sizeof **out, &room, &n, err);
    *out = room;
    for (size_t i = 0; room && i < n; i++)
        (*out)[i] = ebb_gguf_item_i64(kv, i, &v) && v >= 0 && v <= INT32_MAX ? (int32_t)v : EBB_VOCAB_NORMAL;
    return st;
}

static ebb_token item_id(const ebb_gguf_kv *kv, uint64_t i)
{
    uint64_t v;

    return ebb_gguf_item_u64(kv, i, &v) && v <= INT32_MAX ? (ebb_token)v : -1;
}

static ebb_token read_id(const ebb_gguf *g, const char *key)
{
    return item_id(ebb_gguf_find(g, key), 0);
}

static ebb_status read_eos_ids(const ebb_gguf *g, ebb_token **out, size_t *n, ebb_error *err)
{
    const ebb_gguf_kv *kv = ebb_gguf_find(g, "tokenizer.ggml.eos_token_ids");
    void *room;
    ebb_status st = new_vocab_list(kv, MAX_TOKENS, sizeof **out, &room, n, err);

    *out = room;
    for (size_t i = 0; room && i < *n; i++)
        (*out)[i] = item_id(kv, i);
    return st;
}

static int8_t read_flag(const ebb_gguf *g, const char *key)
{
    bool v;

    return ebb_gguf_get_bool(g, key, &v) ? v : -1;
}

static ebb_status read_vocab(const ebb_gguf *g, ebb_vocab *v, vocab_lists *l, ebb_error *err)
{
    ebb_status st = read_strings(g, "tokenizer.ggml.tokens", MAX_TOKENS, &l->tokens, &v->n_tokens, err);

    if (st == EBB_OK)
        st = read_strings(g, "tokenizer.ggml.merges", MAX_MERGES, &l->merges, &v->n_merges, err);
    if (st == EBB_OK)
        st = read_scores(g, v->n_tokens, &l->scores, err);
    if (st == EBB_OK)
        st = read_types(g, v->n_tokens, &l->types, err);
    if (st == EBB_OK)
        st = read_eos_ids(g, &l->eos_ids, &v->n_eos_ids, err);
    v->tokens = l->tokens;
    v->merges = l->merges;
    v->scores = l->scores;
    v->types = l->types;
    v->eos_ids = l->eos_ids;
    v->pre = ebb_gguf_get_string(g, "tokenizer.ggml.pre");
    v->name = ebb_gguf_get_string(g, "general.name");
    v->bos = read_id(g, "tokenizer.ggml.bos_token_id");
    v->eos = read_id(g, "tokenizer.ggml.eos_token_id");
    v->eot = read_id(g, "tokenizer.ggml.eot_token_id");
    v->eom = read_id(g, "tokenizer.ggml.eom_token_id");
    v->unk = read_id(g, "tokenizer.ggml.unknown_token_id");
    v->add_bos = read_flag(g, "tokenizer.ggml.add_bos_token");
    v->add_eos = read_flag(g, "tokenizer.ggml.add_eos_token");
    v->add_space_prefix = read_flag(g, "tokenizer.ggml.add_space_prefix");
    return st;
}

ebb_status ebb_model_make_tokenizer(const ebb_gguf *g, ebb_tokenizer **out, ebb_error *err)
{
    ebb_vocab v = EBB_VOCAB_EMPTY;
    vocab_lists l = { 0 };
    ebb_status st;

    *out = NULL;
    v.model = ebb_gguf_get_string(g, "tokenizer.ggml.model");
    if (!v.model)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "has no tokenizer (tokenizer.ggml.model is missing)");
    st = read_vocab(g, &v, &l, err);
    if (st == EBB_OK)
        st = ebb_tokenizer_new(&v, out, err);
    vocab_lists_fini(&l);
    return st;
}

static const char *file_name(const ebb_model *m)
{
    return ebb_text_file_name(ebb_model_get_info(m)->path);
}

ebb_status ebb_model_check_draft(const ebb_model *m, const ebb_model *draft, ebb_error *err)
{
    char why[160];
    ebb_status st = ebb_model_check_tokenizer(m, err);

    if (st == EBB_OK)
        st = ebb_model_check_tokenizer(draft, err);
    if (st != EBB_OK || ebb_tokenizer_is_like(ebb_model_tokenizer(m), ebb_model_tokenizer(draft), why))
        return st;
    return EBB_FAIL(err, EBB_USAGE, "%.80s cannot draft for %.80s: %s", file_name(draft), file_name(m), why);
}

/* -- Constrained sampling --------------------------------------------------------------- */

ebb_status ebb_sampler_constrain(ebb_sampler *s, const ebb_grammar *g, const ebb_model *m, ebb_error *err)
{
    ebb_token_trie *trie;
    ebb_constraint *c = NULL;
    ebb_status st = g ? ebb_model_check_tokenizer(m, err) : EBB_OK;

    if (g && st == EBB_OK) {
        trie = ebb_model_token_trie(m);
        st = trie ? ebb_constraint_new(g, trie, &c, err)
                  : EBB_FAIL(err, EBB_NOMEM, "no memory for the texts of the model's tokens");
    }
    if (st == EBB_OK)
        ebb_sampler_set_constraint(s, c);
    ebb_constraint_free(c);
    return st;
}

/* -- The tokenizer's functions --------------------------------------------------------- */
ebb_status ebb_model_tokenize(const ebb_model *m, const char *text, size_t n_bytes, unsigned flags,
                              ebb_token *out, size_t cap, size_t *n_out, ebb_error *err)
{
    return ebb_model_tokenize_with(m, text, n_bytes, &(ebb_tokenize_opts){ .flags = flags }, out, cap, n_out, err);
}

ebb_status ebb_model_tokenize_with(const ebb_model *m, const char *text, size_t n_bytes, const ebb_tokenize_opts *o,
                                   ebb_token *out, size_t cap, size_t *n_out, ebb_error *err)
{
    ebb_status st = ebb_model_check_tokenizer(m, err);

    *n_out = 0;
    return st == EBB_OK ? ebb_tokenizer_encode(ebb_model_tokenizer(m), text, n_bytes, o, out, cap, n_out, err) : st;
}

ebb_token ebb_model_bos(const ebb_model *m)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t ? ebb_tokenizer_bos(t) : -1;
}

ebb_token ebb_model_eos(const ebb_model *m)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t ? ebb_tokenizer_eos(t) : -1;
}

ebb_token ebb_model_eot(const ebb_model *m)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t ? ebb_tokenizer_eot(t) : -1;
}

bool ebb_model_is_eog(const ebb_model *m, ebb_token id)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t && ebb_tokenizer_is_eog(t, id);
}

bool ebb_model_is_control(const ebb_model *m, ebb_token id)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t && ebb_tokenizer_is_control(t, id);
}

ebb_token ebb_model_find_token(const ebb_model *m, const char *text)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t ? ebb_tokenizer_find(t, text) : -1;
}

size_t ebb_model_piece(const ebb_model *m, ebb_token id, bool special, char *out, size_t cap)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t ? ebb_tokenizer_piece(t, id, special, out, cap) : 0;
}

ebb_detok *ebb_detok_new(const ebb_model *m, bool special)
{
    const ebb_tokenizer *t = ebb_model_tokenizer(m);

    return t ? ebb_tokenizer_detok(t, special) : NULL;
}
