/* tokenizer/special.h - finding the texts of special tokens in a text.
 *
 * Control, unknown and user-defined tokens are matched before anything else,
 * the leftmost first and of those that begin there the longest.  The index is
 * one sorted array of ids; a position whose first byte begins none costs one load. */
#ifndef EBB_TOKENIZER_SPECIAL_H
#define EBB_TOKENIZER_SPECIAL_H
#include "tokenizer/budget.h"
#include "tokenizer/table.h"

typedef struct ebb_tok_special {
    const ebb_tok_table *table;
    ebb_token *ids;              /* sorted by text, which are different ones */
    size_t     n;
    bool       begins[256];      /* does any text begin with this byte? */
} ebb_tok_special;

/* `table` with its final attributes; it must outlive the index. */
EBB_MUST_CHECK
ebb_status ebb_tok_special_init(ebb_tok_special *s, const ebb_tok_table *table, ebb_error *err);
void ebb_tok_special_fini(ebb_tok_special *s);

/* A text that is searched from its beginning on.  quoted[0..n_quoted): ranges, in
 * order, that no control token may touch, be it user-defined. */
typedef struct ebb_tok_search {
    const char *text;
    size_t      n, at;           /* bytes; where the search goes on */
    bool        control;         /* false: only user-defined tokens count, and what
                                  * elsewhere is one (EBB_TOK_IS_OPEN) */
    const ebb_text_range *quoted;
    size_t      n_quoted;
    ebb_tok_budget budget;       /* of the search; spent, nothing is found any more */
} ebb_tok_search;

/* Bytes from q->at to the first special text there; *id is its token, -1 if
 * there is none.  Moves on over quoted ranges, not q->at. */
size_t ebb_tok_special_next(const ebb_tok_special *s, ebb_tok_search *q, ebb_token *id);

#endif
