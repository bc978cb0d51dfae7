/* Text to ids and ids to text, whatever the family (tokenizer.h). */
#include "tokenizer/tokenizer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/bpe.h"
#include "tokenizer/roles.h"
#include "tokenizer/special.h"
#include "tokenizer/spm.h"

#define MAX_TEXT (512u << 20)    /* spelt out it still fits 31 bits */

struct ebb_tokenizer {
    bool            is_spm;
    ebb_tok_table   table;
    ebb_tok_roles   roles;
    ebb_tok_special special;
    ebb_bpe         bpe;         /* one of these two */
    ebb_spm         spm;
};

static ebb_status init_tokenizer(ebb_tokenizer *t, const ebb_vocab *v, ebb_error *err)
{
    const char *model = v->model ? v->model : "(none)";
    ebb_status st;
    bool add_bos = true;

    t->is_spm = strcmp(model, "llama") == 0;
    if (!t->is_spm && strcmp(model, "gpt2") != 0 && strcmp(model, "gemma4") != 0)
        return EBB_FAIL(err, EBB_UNSUPPORTED, "tokenizer '%.60s' (tokenizer.ggml.model) is not supported; "
                        "llama, gpt2 and gemma4 are", model);
    st = ebb_tok_table_init(&t->table, v, err);
    if (st == EBB_OK && !t->is_spm) {
        st = ebb_bpe_init(&t->bpe, &t->table, v, err);
        add_bos = st == EBB_OK && (t->bpe.is_chars || ebb_pretok_adds_bos(t->bpe.pretok));
    }
    if (st != EBB_OK)
        return st;
    ebb_tok_roles_init(&t->roles, &t->table, v, t->is_spm, add_bos);
    if (t->bpe.is_chars)                         /* whatever the file says: models get BOS by what reads these files */
        t->roles.add_bos = true;
    if (t->is_spm)
        st = ebb_spm_init(&t->spm, &t->table, v, t->roles.unk, err);
    return st == EBB_OK ? ebb_tok_special_init(&t->special, &t->table, err) : st;
}

ebb_status ebb_tokenizer_new(const ebb_vocab *v, ebb_tokenizer **out, ebb_error *err)
{
    ebb_tokenizer *t = calloc(1, sizeof *t);
    ebb_status st;

    *out = NULL;
    if (!t)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a tokenizer");
    st = init_tokenizer(t, v, err);
    if (st == EBB_OK)
        *out = t;
    else
        ebb_tokenizer_free(t);
    return st;
}

void ebb_tokenizer_free(ebb_tokenizer *t)
{
    if (!t)
        return;
    ebb_tok_special_fini(&t->special);
    ebb_bpe_fini(&t->bpe);
    ebb_spm_fini(&t->spm);
    ebb_tok_table_fini(&t->table);
    free(t);
}

size_t ebb_tokenizer_bytes(const ebb_tokenizer *t)
{
    return sizeof *t + ebb_tok_table_bytes(&t->table) + t->special.n * sizeof *t->special.ids +
           (t->is_spm ? ebb_spm_bytes(&t->spm) : ebb_bpe_bytes(&t->bpe));
}

/* -- Two of them ----------------------------------------------------------------- */

/* Rows that only fill up the matrix. */
static bool is_padding(const ebb_tok_entry *e)
{
    static const char pad[] = "[PAD";

    return (e->attr & EBB_TOK_IS_UNUSED) || (e->len >= sizeof pad - 1 && memcmp(e->ptr, pad, sizeof pad - 1) == 0);
}

static bool is_same_entry(const ebb_tok_entry *a, const ebb_tok_entry *b)
{
    /* derived: they do not affect what a text means */
    const uint16_t roles = EBB_TOK_IS_EOG | EBB_TOK_IS_RSTRIP | EBB_TOK_IS_SHOWN | EBB_TOK_IS_OPEN;

    return a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0 && ((a->attr ^ b->attr) & ~roles) == 0;
}

bool ebb_tokenizer_is_like(const ebb_tokenizer *a, const ebb_tokenizer *b, char why[160])
{
    const ebb_tok_table *longer = a->table.n > b->table.n ? &a->table : &b->table;
    size_t n = a->table.n < b->table.n ? a->table.n : b->table.n, i = 0, j = n;

    while (i < n && is_same_entry(&a->table.entries[i], &b->table.entries[i]))
        i++;
    while (j < longer->n && is_padding(&longer->entries[j]))
        j++;
    why[0] = '\0';
    if (i < n)
        snprintf(why, 160, "token %zu is '%.*s' in one and '%.*s' in the other, or of another type", i,
                 (int)(a->table.entries[i].len < 32 ? a->table.entries[i].len : 32), a->table.entries[i].ptr,
                 (int)(b->table.entries[i].len < 32 ? b->table.entries[i].len : 32), b->table.entries[i].ptr);
    else if (j < longer->n)
        snprintf(why, 160, "one has %zu tokens, the other %zu", a->table.n, b->table.n);
    else if (a->roles.bos != b->roles.bos || a->roles.eos != b->roles.eos)
        snprintf(why, 160, "BOS and EOS are tokens %d and %d in one, %d and %d in the other", (int)a->roles.bos,
                 (int)a->roles.eos, (int)b->roles.bos, (int)b->roles.eos);
    return !why[0];
}

/* -- Text to ids ---------------------------------------------------------------- */

static ebb_status encode_plain(const ebb_tokenizer *t, const char *text, size_t n, bool is_inside,
                               ebb_tok_work *w, ebb_error *err)
{
    if (n == 0)
        return EBB_OK;
    if (t->is_spm)
        return ebb_spm_encode(&t->spm, text, n, t->roles.add_space_prefix && !is_inside, w, err);
    return ebb_bpe_encode(&t->bpe, text, n, w, err);
}

/* The text was not tokenized to its end: why. */
static ebb_status fail_spent(const ebb_tok_search *q, const ebb_tok_work *w, ebb_error *err)
{
    if (q->budget.is_stopped || w->budget.is_stopped)
        return EBB_FAIL(err, EBB_CANCELED, "stopped while %zu bytes of text were tokenized", q->n);
    return EBB_FAIL(err, EBB_LIMIT, "%zu bytes of text take this vocabulary beyond all measure to tokenize, by long "
                    "tokens that are almost in it: shorten the text, or take another model", q->n);
}

/* Plain text stands at the beginning or behind a special token: the space prefix, if any, is put before each. */
static ebb_status encode_text(const ebb_tokenizer *t, ebb_tok_search *q, bool is_inside, ebb_tok_work *w,
                              ebb_error *err)
{
    while (q->at < q->n && q->budget.left > 0 && w->budget.left > 0) {
        ebb_token id;
        size_t plain = ebb_tok_special_next(&t->special, q, &id);
        ebb_status st = encode_plain(t, q->text + q->at, plain, is_inside, w, err);

        if (st != EBB_OK)
            return st;
        q->at += plain;
        if (id < 0)
            continue;
        ebb_tok_emit(w, id);
        q->at += t->table.entries[id].len;
        if (t->table.entries[id].attr & EBB_TOK_IS_RSTRIP)
            while (q->at < q->n && isspace((unsigned char)q->text[q->at]))
                q->at++;
    }
    return q->budget.left > 0 && w->budget.left > 0 ? EBB_OK : fail_spent(q, w, err);
}

ebb_status ebb_tokenizer_encode(const ebb_tokenizer *t, const char *text, size_t n_bytes, const ebb_tokenize_opts *o,
                                ebb_token *out, size_t cap, size_t *n_out, ebb_error *err)
{
    const ebb_tok_budget budget = ebb_tok_budget_of(n_bytes, o->stop, o->stop_arg);
    ebb_tok_search q = { .text = text, .n = n_bytes, .control = o->flags & EBB_TOK_SPECIAL,
                         .quoted = o->quoted, .n_quoted = o->n_quoted, .budget = budget };
    ebb_tok_work w = { .out = out, .cap = cap, .budget = budget };
    ebb_status st;

    *n_out = 0;
    if (n_bytes > MAX_TEXT)
        return EBB_FAIL(err, EBB_LIMIT, "%zu bytes of text at once; at most %u are accepted", n_bytes, MAX_TEXT);
    if ((o->flags & EBB_TOK_BOS) && t->roles.add_bos && t->roles.bos >= 0)
        ebb_tok_emit(&w, t->roles.bos);
    st = encode_text(t, &q, o->flags & EBB_TOK_INSIDE, &w, err);
    if ((o->flags & EBB_TOK_BOS) && t->roles.add_eos && t->roles.eos >= 0)
        ebb_tok_emit(&w, t->roles.eos);
    if (st == EBB_OK)
        *n_out = w.n;
    ebb_tok_work_fini(&w);
    return st;
}

/* -- Facts of tokens --------------------------------------------------------------- */

ebb_token ebb_tokenizer_bos(const ebb_tokenizer *t)
{
    return t->roles.bos;
}

ebb_token ebb_tokenizer_eos(const ebb_tokenizer *t)
{
    return t->roles.eos;
}

ebb_token ebb_tokenizer_eot(const ebb_tokenizer *t)
{
    return t->roles.eot;
}

static uint16_t attr_of(const ebb_tokenizer *t, ebb_token id)
{
    return id >= 0 && (size_t)id < t->table.n ? t->table.entries[id].attr : 0;
}

bool ebb_tokenizer_is_eog(const ebb_tokenizer *t, ebb_token id)
{
    return attr_of(t, id) & EBB_TOK_IS_EOG;
}

bool ebb_tokenizer_is_control(const ebb_tokenizer *t, ebb_token id)
{
    return attr_of(t, id) & EBB_TOK_IS_CONTROL;
}

ebb_token ebb_tokenizer_find(const ebb_tokenizer *t, const char *text)
{
    return ebb_tok_table_find(&t->table, text, strlen(text));
}

static size_t copy_piece(const char *s, size_t n, char *out, size_t cap)
{
    if (n > 0 && cap > 0)
        memcpy(out, s, n < cap ? n : cap);
    return n;
}

/* The vocabulary is of characters, with a space spelt as one. */
static bool spells_spaces(const ebb_tokenizer *t)
{
    return t->is_spm || t->bpe.is_chars;
}

size_t ebb_tokenizer_longest_piece(const ebb_tokenizer *t)
{
    return t->table.max_len;
}

size_t ebb_tokenizer_piece(const ebb_tokenizer *t, ebb_token id, bool special, char *out, size_t cap)
{
    const uint16_t attr = attr_of(t, id), unread = EBB_TOK_IS_CONTROL | EBB_TOK_IS_UNKNOWN;
    const ebb_tok_entry *e;

    if (attr == 0 || (!special && (attr & unread) && !(attr & EBB_TOK_IS_SHOWN)))
        return 0;
    e = &t->table.entries[id];
    if (attr & (unread | EBB_TOK_IS_USER))
        return copy_piece(e->ptr, e->len, out, cap);
    if (attr & EBB_TOK_IS_BYTE) {
        int byte = ebb_tok_byte_value(e->ptr, e->len);
        char c = (char)byte;
        return copy_piece(&c, byte >= 0, out, cap);
    }
    if (attr & EBB_TOK_IS_NORMAL)
        return spells_spaces(t) ? ebb_spm_decode(e->ptr, e->len, out, cap) : ebb_bpe_decode(e->ptr, e->len, out, cap);
    return 0;
}
