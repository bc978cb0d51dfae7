/* tokenizer/special.h - finding the texts of special tokens in a text.
 *
 * Control, unknown and user-defined tokens are matched before anything else,
 * the leftmost first and of those that begin there the longest.  The index is
 * one sorted array of ids; a position whose first byte begins none costs one load. */
#ifndef EBB_TOKENIZER_SPECIAL_H
#define EBB_TOKENIZER_SPECIAL_H
#include "tokenizer/table.h"

typedef struct ebb_tok_special {
    const ebb_tok_table *table;
    ebb_token *ids;              /* sorted by text */
    size_t     n;
    bool       begins[256];      /* does any text begin with this byte? */
} ebb_tok_special;

/* `table` with its final attributes; it must outlive the index. */
EBB_MUST_CHECK
ebb_status ebb_tok_special_init(ebb_tok_special *s, const ebb_tok_table *table, ebb_error *err);
void ebb_tok_special_fini(ebb_tok_special *s);

/* Bytes before the first special text in text[0..n); *id is its token, -1 if
 * there is none.  Without `control` only user-defined tokens count. */
size_t ebb_tok_special_next(const ebb_tok_special *s, const char *text, size_t n, bool control, ebb_token *id);

#endif
