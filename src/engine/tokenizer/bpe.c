/* The merges of BPE, and byte-level encoding (bpe.h). */
#include "tokenizer/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

/* -- Bytes as printable characters: those of Latin-1 that are visible stand for
 *    themselves, the others follow from U+0100 on, in order. ---------------- */

static bool is_visible(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

static uint32_t char_of_byte(unsigned byte)
{
    uint32_t cp = 0x100;

    if (is_visible(byte))
        return byte;
    for (unsigned b = 0; b < byte; b++)
        cp += !is_visible(b);
    return cp;
}

/* The byte that cp spells, -1 if it spells none.  U+0100.. spell the 68 bytes
 * 00-20, 7F-A0, AD. */
static int byte_of_char(uint32_t cp)
{
    if (cp < 0x100)
        return is_visible(cp) ? (int)cp : -1;
    if (cp <= 0x120)
        return (int)(cp - 0x100);
    if (cp <= 0x142)
        return (int)(cp - 0x121 + 0x7F);
    return cp == 0x143 ? 0xAD : -1;
}

size_t ebb_bpe_decode(const char *s, size_t n, char *out, size_t cap)
{
    size_t n_out = 0;

    while (n > 0) {
        uint32_t cp;
        size_t used = ebb_utf8_decode(s, n, &cp);
        int byte = used ? byte_of_char(cp) : -1;

        if (used == 0)
            used = n;
        for (size_t i = 0; i < (byte >= 0 ? 1 : used); i++, n_out++)
            if (n_out < cap)
                out[n_out] = byte >= 0 ? (char)byte : s[i];
        s += used;
        n -= used;
    }
    return n_out;
}

/* -- Merges ------------------------------------------------------------------- */

static uint64_t pair_hash(ebb_token left, ebb_token right)
{
    const ebb_token pair[2] = { left, right };

    return ebb_hash_table(pair, sizeof pair);
}

/* The slot of a pair, or the free one where it belongs. */
static uint64_t *merge_slot(const ebb_bpe *b, ebb_token left, ebb_token right)
{
    uint64_t h = pair_hash(left, right);

    for (size_t i = (h >> 8) & b->mask;; i = (i + 1) & b->mask) {
        uint64_t slot = b->slots[i];
        const ebb_bpe_merge *m;
        if (slot == 0)
            return &b->slots[i];
        if (slot >> 32 != h >> 32)
            continue;
        m = &b->merges[(uint32_t)slot - 1];
        if (m->left == left && m->right == right)
            return &b->slots[i];
    }
}

/* "left right" as ids; false if one of the three texts is no token. */
static bool read_merge(const ebb_bpe *b, ebb_vocab_str s, ebb_buf *joined, ebb_bpe_merge *m)
{
    const char *space = s.len > 1 ? memchr(s.ptr + 1, ' ', s.len - 1) : NULL;
    size_t n_left, n_right;

    if (!space || s.len - 1 > b->table->max_len)
        return false;
    n_left = (size_t)(space - s.ptr);
    n_right = s.len - n_left - 1;
    m->left = ebb_tok_table_find(b->table, s.ptr, n_left);
    m->right = ebb_tok_table_find(b->table, space + 1, n_right);
    if (m->left < 0 || m->right < 0)
        return false;
    ebb_buf_clear(joined);
    ebb_buf_add(joined, s.ptr, n_left);
    if (!ebb_buf_add(joined, space + 1, n_right))
        return false;
    m->result = ebb_tok_table_find(b->table, joined->data, joined->len);
    return m->result >= 0;
}

static ebb_status init_merges(ebb_bpe *b, const ebb_vocab *v, ebb_error *err)
{
    ebb_buf joined = { 0 };
    size_t n_slots = 16;
    bool failed = false;

    while (n_slots < v->n_merges + v->n_merges / 2)
        n_slots *= 2;
    b->mask = n_slots - 1;
    b->merges = calloc(v->n_merges, sizeof *b->merges);
    b->slots = calloc(n_slots, sizeof *b->slots);
    if (!b->merges || !b->slots)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a table of %zu merges", v->n_merges);
    for (b->n_merges = 0; b->n_merges < v->n_merges && !failed; b->n_merges++) {
        ebb_bpe_merge *m = &b->merges[b->n_merges];
        uint64_t *slot;
        if (!read_merge(b, v->merges[b->n_merges], &joined, m)) {
            *m = (ebb_bpe_merge){ -1, -1, -1 };
            failed = joined.failed;
            continue;
        }
        slot = merge_slot(b, m->left, m->right);
        if (*slot == 0)
            *slot = (pair_hash(m->left, m->right) & 0xFFFFFFFF00000000u) | (b->n_merges + 1);
    }
    ebb_buf_fini(&joined);
    return failed ? EBB_FAIL(err, EBB_NOMEM, "no memory to read merges") : EBB_OK;
}

ebb_status ebb_bpe_init(ebb_bpe *b, const ebb_tok_table *table, const ebb_vocab *v, ebb_error *err)
{
    ebb_status st;

    memset(b, 0, sizeof *b);
    b->table = table;
    if (v->n_merges == 0 || v->n_merges > 1u << 24 || !v->merges)
        return EBB_FAIL(err, EBB_FORMAT, "a %s vocabulary cannot have %zu merges", v->model, v->n_merges);
    b->is_chars = strcmp(v->model, "gemma4") == 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        char spelt[8];
        size_t n = b->is_chars ? (size_t)snprintf(spelt, sizeof spelt, "<0x%02X>", byte)
                               : ebb_utf8_encode(char_of_byte(byte), spelt);
        b->byte_id[byte] = ebb_tok_table_find(table, spelt, n);
    }
    st = b->is_chars ? EBB_OK : ebb_pretok_new(v->pre, true, &b->pretok, err);
    return st == EBB_OK ? init_merges(b, v, err) : st;
}

void ebb_bpe_fini(ebb_bpe *b)
{
    ebb_pretok_free(b->pretok);
    free(b->merges);
    free(b->slots);
    memset(b, 0, sizeof *b);
}

size_t ebb_bpe_bytes(const ebb_bpe *b)
{
    return b->n_merges * sizeof *b->merges + (b->mask + 1) * sizeof *b->slots +
           (b->pretok ? ebb_pretok_bytes(b->pretok) : 0);
}

/* -- Encoding ------------------------------------------------------------------ */

/* Offer the join of symbol `left` with its next one. */
static void offer_merge(const ebb_bpe *b, ebb_tok_work *w, size_t left)
{
    size_t right = ebb_tok_symbol_next(w, left);
    uint64_t slot = right < w->n_bytes ? *merge_slot(b, w->ids[left], w->ids[right]) : 0;

    if (slot != 0) {
        uint32_t rank = (uint32_t)slot - 1;
        ebb_tok_heap_push(w, (ebb_tok_join){ (uint64_t)rank << 32 | left, rank,
                                             (uint32_t)(ebb_tok_symbol_next(w, right) - left) });
    }
}

void ebb_bpe_join_all(const ebb_bpe *b, ebb_tok_work *w)
{
    ebb_tok_join join;

    do {
        for (size_t at = 0; at < w->n_bytes && ebb_tok_spend(&w->budget, 1); at = ebb_tok_symbol_next(w, at))
            offer_merge(b, w, at);
        while (ebb_tok_heap_pop(w, &join)) {
            size_t left = (uint32_t)join.key;
            w->ids[left] = b->merges[join.id].result;
            ebb_tok_symbol_join(w, left);
            if (left > 0)
                offer_merge(b, w, ebb_tok_symbol_before(w, left));
            offer_merge(b, w, left);
        }
    } while (ebb_tok_heap_lacks(w));
}

/* The id of a whole word, -1 if it is no token. */
static ebb_token find_word(const ebb_bpe *b, ebb_tok_work *w, const char *word, size_t n)
{
    if (n > b->table->max_len)
        return -1;
    ebb_buf_clear(&w->text);
    for (size_t i = 0; i < n; i++) {
        char spelt[4];
        ebb_buf_add(&w->text, spelt, ebb_utf8_encode(char_of_byte((unsigned char)word[i]), spelt));
    }
    if (w->text.failed)
        w->failed = true;
    return w->failed ? -1 : ebb_tok_table_find(b->table, w->text.data, w->text.len);
}

typedef struct encoding {
    const ebb_bpe *bpe;
    ebb_tok_work  *work;
} encoding;

static bool encode_word(void *arg, const char *word, size_t n)
{
    const ebb_bpe *b = ((encoding *)arg)->bpe;
    ebb_tok_work *w = ((encoding *)arg)->work;

    if (!ebb_tok_spend(&w->budget, 1))
        return false;
    if (ebb_pretok_ignores_merges(b->pretok)) {
        ebb_token id = find_word(b, w, word, n);
        if (id >= 0) {
            ebb_tok_emit(w, id);
            return true;
        }
    }
    if (w->failed || !ebb_tok_work_begin(w, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        w->ids[i] = b->byte_id[(unsigned char)word[i]];
        ebb_tok_symbol_add(w, i);
    }
    ebb_bpe_join_all(b, w);
    for (size_t at = 0; at < n && w->budget.left > 0; at = ebb_tok_symbol_next(w, at))
        if (w->ids[at] >= 0)
            ebb_tok_emit(w, w->ids[at]);
    return !w->failed && w->budget.left > 0;
}

ebb_status ebb_bpe_encode(const ebb_bpe *b, const char *text, size_t n, ebb_tok_work *w, ebb_error *err)
{
    encoding e = { b, w };
    ebb_status st;

    if (b->is_chars)
        return ebb_bpe_encode_chars(b, text, n, w, err);
    st = ebb_pretok_split(b->pretok, text, n, encode_word, &e, err);
    return w->budget.left > 0 ? st : EBB_OK;     /* a spent budget is no lack of memory: the caller looks */
}
