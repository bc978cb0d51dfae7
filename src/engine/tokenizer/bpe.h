/* tokenizer/bpe.h - byte-level byte pair encoding (GPT-2 and what came after).
 *
 * The vocabulary spells each byte as one printable character (0x20 is "Ġ").
 * A word begins as its bytes; of all neighbours that a merge names, those with
 * the lowest rank are joined first, the leftmost of equals. */
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
    ebb_pretok    *pretok;
    ebb_bpe_merge *merges;       /* by rank; left is -1 for one that names no token */
    size_t         n_merges;
    uint64_t      *slots;        /* hash of the pair beside rank + 1 */
    size_t         mask;
    ebb_token      byte_id[256]; /* -1: the vocabulary cannot spell this byte */
} ebb_bpe;

/* `table` must outlive it. */
EBB_MUST_CHECK
ebb_status ebb_bpe_init(ebb_bpe *b, const ebb_tok_table *table, const ebb_vocab *v, ebb_error *err);
void ebb_bpe_fini(ebb_bpe *b);
size_t ebb_bpe_bytes(const ebb_bpe *b);

/* Append the ids of plain text to w. */
EBB_MUST_CHECK
ebb_status ebb_bpe_encode(const ebb_bpe *b, const char *text, size_t n, ebb_tok_work *w, ebb_error *err);

/* Undo the spelling: the bytes that token text s[0..n) stands for, at most cap of
 * them to out; returns how many there are (never more than n).  A character that spells no byte stands for itself. */
size_t ebb_bpe_decode(const char *s, size_t n, char *out, size_t cap);

#endif
