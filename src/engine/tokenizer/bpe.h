/* tokenizer/bpe.h - byte pair encoding: of all neighbours that a merge names, those with
 * the lowest rank are joined first, the leftmost of equals.
 *
 * Byte-level (GPT-2 and what came after): the vocabulary spells each byte as one printable
 * character (0x20 is "Ġ"), and a word begins as its bytes.
 * Of characters (Gemma 4): a space is spelt U+2581, a line begins as its characters, and what is
 * no token in the end becomes byte tokens, as with SentencePiece (bpe_chars.c). */
#ifndef EBB_TOKENIZER_BPE_H
#define EBB_TOKENIZER_BPE_H
#include "tokenizer/pretok.h"
#include "tokenizer/table.h"
#include "tokenizer/work.h"

typedef struct ebb_bpe_merge {
    ebb_token left, right, result;
} ebb_bpe_merge;

typedef struct ebb_bpe {
    const ebb_tok_table *table;
    bool           is_chars;     /* of characters; then no pretok */
    ebb_pretok    *pretok;
    ebb_bpe_merge *merges;       /* by rank; left is -1 for one that names no token */
    size_t         n_merges;
    uint64_t      *slots;        /* hash of the pair beside rank + 1 */
    size_t         mask;
    ebb_token      byte_id[256]; /* of characters "<0x0A>"; -1: the vocabulary cannot spell this
                                    byte */
} ebb_bpe;

/* `table` must outlive it. */
EBB_MUST_CHECK
ebb_status ebb_bpe_init(ebb_bpe *b, const ebb_tok_table *table, const ebb_vocab *v, ebb_error *err);
void ebb_bpe_fini(ebb_bpe *b);
size_t ebb_bpe_bytes(const ebb_bpe *b);

/* Append the ids of plain text to w, or of a part of it if w->budget is spent. */
EBB_MUST_CHECK
ebb_status ebb_bpe_encode(const ebb_bpe *b, const char *text, size_t n, ebb_tok_work *w,
                          ebb_error *err);

/* For bpe_chars.c: join the symbols of w as far as merges go; encode text of characters. */
void ebb_bpe_join_all(const ebb_bpe *b, ebb_tok_work *w);
EBB_MUST_CHECK
ebb_status ebb_bpe_encode_chars(const ebb_bpe *b, const char *text, size_t n, ebb_tok_work *w,
                                ebb_error *err);

/* Undo the spelling of bytes: the bytes that token text s[0..n) stands for, at most cap of
 * them to out; returns how many there are (never more than n).  A character that spells no byte
 * stands for itself. */
size_t ebb_bpe_decode(const char *s, size_t n, char *out, size_t cap);

#endif
