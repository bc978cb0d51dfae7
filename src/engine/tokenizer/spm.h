/* tokenizer/spm.h - SentencePiece-style encoding, as Llama 2 and Gemma use it.
 *
 * A space is spelt U+2581.  Text begins as its characters; of all neighbours
 * whose joined text is a token, those with the best score are joined first,
 * the leftmost of equals.  What is no token in the end becomes byte tokens. */
#ifndef EBB_TOKENIZER_SPM_H
#define EBB_TOKENIZER_SPM_H
#include "tokenizer/table.h"
#include "tokenizer/work.h"

typedef struct ebb_spm {
    const ebb_tok_table *table;
    float    *scores;            /* NULL: all equal */
    bool      cuts_at_spaces;    /* no token has U+2581 behind another character: words are
                                    independent */
    ebb_token unk;               /* -1: none */
    ebb_token byte_id[256];      /* "<0x0A>"; -1: none */
} ebb_spm;

/* From the scores of `v`, which is not kept; `table` must outlive it.  fini also after failure.
 * Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_spm_init(ebb_spm *s, const ebb_tok_table *table, const ebb_vocab *v, ebb_token unk,
                        ebb_error *err);
void ebb_spm_fini(ebb_spm *s);
size_t ebb_spm_bytes(const ebb_spm *s);          /* of memory, without the table's */

/* Append the ids of plain text, with a space put before it if `prefix`, to w. */
EBB_MUST_CHECK
ebb_status ebb_spm_encode(const ebb_spm *s, const char *text, size_t n, bool prefix,
                          ebb_tok_work *w, ebb_error *err);

/* Append text[0..n) with its spaces spelt.  false: no memory. */
bool ebb_spm_spell(ebb_buf *out, const char *text, size_t n);
/* Undo the spelling of spaces; as ebb_bpe_decode. */
size_t ebb_spm_decode(const char *s, size_t n, char *out, size_t cap);

#endif
