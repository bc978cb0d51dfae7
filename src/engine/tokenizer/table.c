/* The tokens of a vocabulary and their index by text (table.h). */
#include "tokenizer/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

#define MAX_TOKENS    (1u << 24)
#define MAX_TOKEN_LEN (64u << 10)

/* The slot that holds s, or the free one where it belongs. */
static uint64_t *slot_of(const ebb_tok_table *t, const char *s, size_t n)
{
    uint64_t h = ebb_hash_table(s, n);
    uint32_t tag = (uint32_t)(h >> 32);

    for (size_t i = h & t->mask;; i = (i + 1) & t->mask) {
        uint64_t slot = t->slots[i];
        const ebb_tok_entry *e;
        if (slot == 0)
            return &t->slots[i];
        if ((uint32_t)(slot >> 32) != tag)
            continue;
        e = &t->entries[(uint32_t)slot - 1];
        if (e->len == n && memcmp(e->ptr, s, n) == 0)
            return &t->slots[i];
    }
}

ebb_token ebb_tok_table_find(const ebb_tok_table *t, const char *s, size_t n)
{
    if (n == 0 || n > t->max_len)
        return -1;
    return (ebb_token)(uint32_t)*slot_of(t, s, n) - 1;
}

static uint16_t attr_of_type(int32_t type)
{
    switch (type) {
    case EBB_VOCAB_UNKNOWN: return EBB_TOK_IS_UNKNOWN;
    case EBB_VOCAB_CONTROL: return EBB_TOK_IS_CONTROL;
    case EBB_VOCAB_USER:    return EBB_TOK_IS_USER;
    case EBB_VOCAB_UNUSED:  return EBB_TOK_IS_UNUSED;
    case EBB_VOCAB_BYTE:    return EBB_TOK_IS_BYTE;
    default:                return EBB_TOK_IS_NORMAL;
    }
}

static ebb_status fill_table(ebb_tok_table *t, const ebb_vocab *v, ebb_error *err)
{
    for (size_t i = 0; i < v->n_tokens; i++) {
        ebb_tok_entry *e = &t->entries[i];
        uint64_t *slot;

        if (v->tokens[i].len > MAX_TOKEN_LEN)
            return EBB_FAIL(err, EBB_FORMAT, "token %zu has %zu bytes; at most %u are accepted",
                            i, v->tokens[i].len, MAX_TOKEN_LEN);
        e->ptr = v->tokens[i].ptr;
        e->len = (uint32_t)v->tokens[i].len;
        e->attr = attr_of_type(v->types ? v->types[i] : EBB_VOCAB_NORMAL);
        if (e->len > t->max_len)
            t->max_len = e->len;
        if (e->len == 0)
            continue;
        slot = slot_of(t, e->ptr, e->len);
        if (*slot == 0)
            *slot = (ebb_hash_table(e->ptr, e->len) & 0xFFFFFFFF00000000u) | (i + 1);
    }
    return EBB_OK;
}

ebb_status ebb_tok_table_init(ebb_tok_table *t, const ebb_vocab *v, ebb_error *err)
{
    size_t n_slots = 16;

    memset(t, 0, sizeof *t);
    if (v->n_tokens == 0 || !v->tokens)
        return EBB_FAIL(err, EBB_FORMAT, "the vocabulary has no tokens");
    if (v->n_tokens > MAX_TOKENS)
        return EBB_FAIL(err, EBB_FORMAT, "the vocabulary has %zu tokens; at most %u are accepted", v->n_tokens,
                        MAX_TOKENS);
    while (n_slots < v->n_tokens + v->n_tokens / 2)
        n_slots *= 2;
    t->n = v->n_tokens;
    t->mask = n_slots - 1;
    t->entries = calloc(t->n, sizeof *t->entries);
    t->slots = calloc(n_slots, sizeof *t->slots);
    if (!t->entries || !t->slots)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for an index of %zu tokens", t->n);
    return fill_table(t, v, err);
}

void ebb_tok_table_fini(ebb_tok_table *t)
{
    free(t->entries);
    free(t->slots);
    memset(t, 0, sizeof *t);
}

size_t ebb_tok_table_bytes(const ebb_tok_table *t)
{
    return t->n * sizeof *t->entries + (t->mask + 1) * sizeof *t->slots;
}

int ebb_tok_byte_value(const char *s, size_t n)
{
    if (n != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>' || ebb_hex_digit(s[3]) < 0 || ebb_hex_digit(s[4]) < 0)
        return -1;
    return ebb_hex_digit(s[3]) * 16 + ebb_hex_digit(s[4]);
}
