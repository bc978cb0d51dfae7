/* tokenizer/table.h - the tokens of a vocabulary, and the way from a text to its id.
 *
 * Open addressing over 8-byte slots (id + 1 beside 32 bits of the hash), so that
 * a miss, which is what a merge loop mostly sees, costs one cache line. */
#ifndef EBB_TOKENIZER_TABLE_H
#define EBB_TOKENIZER_TABLE_H
#include "tokenizer/tokenizer.h"

/* What a token is.  The first six follow token_type of the file; roles.c adds to them. */
enum {
    EBB_TOK_IS_NORMAL = 1, EBB_TOK_IS_UNKNOWN = 2, EBB_TOK_IS_CONTROL = 4, EBB_TOK_IS_USER = 8,
    EBB_TOK_IS_UNUSED = 16, EBB_TOK_IS_BYTE = 32,
    EBB_TOK_IS_EOG = 64,         /* ends a generation */
    EBB_TOK_IS_RSTRIP = 128,     /* swallows white space that follows */
    EBB_TOK_IS_SHOWN = 256,      /* a control token that is part of the text that is read */
    EBB_TOK_IS_OPEN = 512,       /* a control token that is user-defined elsewhere: it is found in
                                  * any text that is not quoted */
};

typedef struct ebb_tok_entry {
    const char *ptr;             /* borrowed */
    uint32_t    len;
    uint16_t    attr;
} ebb_tok_entry;

typedef struct ebb_tok_table {
    ebb_tok_entry *entries;
    size_t         n;
    size_t         max_len;      /* bytes of the longest token */
    uint64_t      *slots;
    size_t         mask;         /* number of slots - 1 */
} ebb_tok_table;

/* Of two tokens with the same text the lower id is found; an empty text is never found. */
EBB_MUST_CHECK
ebb_status ebb_tok_table_init(ebb_tok_table *t, const ebb_vocab *v, ebb_error *err);
void ebb_tok_table_fini(ebb_tok_table *t);
size_t ebb_tok_table_bytes(const ebb_tok_table *t);

/* The id of s[0..n), -1 if there is none. */
ebb_token ebb_tok_table_find(const ebb_tok_table *t, const char *s, size_t n);

/* The value of a byte token "<0x0A>"; -1 if the text is none. */
int ebb_tok_byte_value(const char *s, size_t n);

#endif
