/* SentencePiece-style encoding (spm.h). */
#include "tokenizer/spm.h"

#include <stdlib.h>
#include <string.h>

#define SPACE     "\xE2\x96\x81"           /* U+2581 */
#define SPACE_LEN 3

static bool is_space_at(const char *s, size_t n, size_t at)
{
    return n - at >= SPACE_LEN && memcmp(s + at, SPACE, SPACE_LEN) == 0;
}

size_t ebb_spm_decode(const char *s, size_t n, char *out, size_t cap)
{
    size_t n_out = 0;

    for (size_t i = 0; i < n; n_out++) {
        bool space = is_space_at(s, n, i);
        if (n_out < cap)
            out[n_out] = space ? ' ' : s[i];
        i += space ? SPACE_LEN : 1;
    }
    return n_out;
}

/* Does a token join something that is no space with a space behind it? */
static bool spans_words(const ebb_tok_entry *e)
{
    for (size_t i = 1; i < e->len; i++)
        if (is_space_at(e->ptr, e->len, i) && !(i >= SPACE_LEN && is_space_at(e->ptr, e->len, i - SPACE_LEN)))
            return true;
    return false;
}

ebb_status ebb_spm_init(ebb_spm *s, const ebb_tok_table *table, const ebb_vocab *v, ebb_token unk, ebb_error *err)
{
    memset(s, 0, sizeof *s);
    memset(s->byte_id, 0xFF, sizeof s->byte_id);
    s->table = table;
    s->unk = unk;
    s->cuts_at_spaces = true;
    if (v->scores) {
        s->scores = malloc(table->n * sizeof *s->scores);
        if (!s->scores)
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the scores of %zu tokens", table->n);
        memcpy(s->scores, v->scores, table->n * sizeof *s->scores);
    }
    for (size_t i = 0; i < table->n; i++) {
        const ebb_tok_entry *e = &table->entries[i];
        int byte = ebb_tok_byte_value(e->ptr, e->len);
        if (byte >= 0 && s->byte_id[byte] < 0)
            s->byte_id[byte] = (ebb_token)i;
        if (spans_words(e))
            s->cuts_at_spaces = false;
    }
    return EBB_OK;
}

void ebb_spm_fini(ebb_spm *s)
{
    free(s->scores);
    memset(s, 0, sizeof *s);
}

size_t ebb_spm_bytes(const ebb_spm *s)
{
    return s->scores ? s->table->n * sizeof *s->scores : 0;
}

/* A score as 32 bits that sort the best one first. */
static uint32_t order_of(const ebb_spm *s, ebb_token id)
{
    float score = s->scores ? s->scores[id] : 0.0f;
    uint32_t bits;

    score += 0.0f;               /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~bits & 0x7FFFFFFFu;
}

static void offer_pair(const ebb_spm *s, ebb_tok_work *w, size_t left)
{
    size_t right = ebb_tok_symbol_next(w, left), len;
    ebb_token id;

    if (right == w->n_bytes)
        return;
    len = ebb_tok_symbol_next(w, right) - left;
    if (len > s->table->max_len || !ebb_tok_spend(&w->budget, 1 + len / 8))
        return;
    id = ebb_tok_table_find(s->table, w->text.data + left, len);
    if (id >= 0)
        ebb_tok_heap_push(w, (ebb_tok_join){ .key = (uint64_t)order_of(s, id) << 32 | left, .len = (uint32_t)len });
}

static void merge_pairs(const ebb_spm *s, ebb_tok_work *w)
{
    ebb_tok_join join;

    do {
        for (size_t at = 0; at < w->n_bytes && w->budget.left > 0; at = ebb_tok_symbol_next(w, at))
            offer_pair(s, w, at);
        while (ebb_tok_heap_pop(w, &join)) {
            size_t left = (uint32_t)join.key;
            ebb_tok_symbol_join(w, left);
            if (left > 0)
                offer_pair(s, w, ebb_tok_symbol_before(w, left));
            offer_pair(s, w, left);
        }
    } while (ebb_tok_heap_lacks(w));
}

/* A character that is no token: its bytes, or the unknown token once. */
static void emit_bytes(const ebb_spm *s, ebb_tok_work *w, const char *p, size_t n)
{
    bool has_unk = false;

    for (size_t i = 0; i < n; i++) {
        ebb_token id = s->byte_id[(unsigned char)p[i]];
        if (id >= 0)
            ebb_tok_emit(w, id);
        else if (s->unk >= 0 && !has_unk) {
            ebb_tok_emit(w, s->unk);
            has_unk = true;
        }
    }
}

/* w->text holds a spelt segment. */
static bool encode_segment(const ebb_spm *s, ebb_tok_work *w)
{
    const char *text = w->text.data;

    if (!ebb_tok_work_begin_chars(w, NULL))
        return false;
    merge_pairs(s, w);
    for (size_t at = 0, next; at < w->text.len && ebb_tok_spend(&w->budget, 1); at = next) {
        next = ebb_tok_symbol_next(w, at);
        ebb_token id = ebb_tok_table_find(s->table, text + at, next - at);
        if (id >= 0)
            ebb_tok_emit(w, id);
        else
            emit_bytes(s, w, text + at, next - at);
    }
    return !w->failed;
}

/* Bytes of text[0..n) up to the next space that begins a word of its own. */
static size_t segment_len(const ebb_spm *s, const char *text, size_t n)
{
    if (!s->cuts_at_spaces)
        return n;
    for (size_t i = 1; i < n; i++)
        if (text[i] == ' ' && text[i - 1] != ' ' && !(i >= SPACE_LEN && is_space_at(text, n, i - SPACE_LEN)))
            return i;
    return n;
}

bool ebb_spm_spell(ebb_buf *out, const char *text, size_t n)
{
    char *to;

    if (!ebb_buf_reserve(out, n * SPACE_LEN))
        return false;
    to = out->data + out->len;
    for (size_t i = 0; i < n; i++)
        if (text[i] == ' ') {
            memcpy(to, SPACE, SPACE_LEN);
            to += SPACE_LEN;
        } else
            *to++ = text[i];
    *to = '\0';
    out->len = (size_t)(to - out->data);
    return true;
}

ebb_status ebb_spm_encode(const ebb_spm *s, const char *text, size_t n, bool prefix,
                          ebb_tok_work *w, ebb_error *err)
{
    ebb_buf_clear(&w->text);
    if (prefix)
        ebb_buf_adds(&w->text, SPACE);
    while (n > 0 && w->budget.left > 0) {
        size_t len = segment_len(s, text, n);

        if (!ebb_spm_spell(&w->text, text, len) || !encode_segment(s, w))
            return EBB_FAIL(err, EBB_NOMEM, "no memory to tokenize %zu bytes of text", n);
        ebb_buf_clear(&w->text);
        text += len;
        n -= len;
    }
    return EBB_OK;
}
