/* tokenizer/work.h - what one encoding needs: output, symbols, and a heap of
 * joins that are possible.  Owned by the call, so tokenizers can be shared. */
#ifndef EBB_TOKENIZER_WORK_H
#define EBB_TOKENIZER_WORK_H
#include "base/buf.h"
#include "tokenizer/table.h"
#include "tokenizer/tokenizer.h"

/* A run of text between its neighbours; joined ones have len 0. */
typedef struct ebb_tok_symbol {
    uint32_t  at, len;
    int32_t   prev, next;        /* -1: none */
    ebb_token id;                /* -1: the run is no token */
} ebb_tok_symbol;

/* Join symbol `left` with its next one; the smallest key comes first. */
typedef struct ebb_tok_join {
    uint64_t key;                /* order << 32 | left */
    uint32_t id;                 /* token (SPM) or merge (BPE) that comes of it */
    uint32_t len;                /* bytes of both; if they differ by now, the join is void */
} ebb_tok_join;

typedef struct ebb_tok_work {
    ebb_token *out;
    size_t     cap, n;           /* n counts beyond cap */
    bool       failed;           /* out of memory */

    ebb_tok_symbol *symbols;
    ebb_tok_join   *heap;
    size_t          cap_symbols, n_symbols, cap_heap, n_heap;
    ebb_buf         text;        /* escaped text (SPM) or an encoded word (BPE) */
} ebb_tok_work;

void ebb_tok_work_fini(ebb_tok_work *w);         /* a zeroed one is ready; `out` is the caller's */
/* Make room for n symbols and forget the old ones.  false: no memory. */
bool ebb_tok_work_begin(ebb_tok_work *w, size_t n);

/* Begin with a symbol for each character of w->text; from bytes that are none on, the rest is one.
 * With `table` each has the id of its token, or -1; NULL: all have -1.  false: no memory. */
bool ebb_tok_work_begin_chars(ebb_tok_work *w, const ebb_tok_table *table);

static inline void ebb_tok_emit(ebb_tok_work *w, ebb_token id)
{
    if (w->n < w->cap)
        w->out[w->n] = id;
    w->n++;
}

/* Append a symbol behind the last one. */
void ebb_tok_symbol_add(ebb_tok_work *w, size_t at, size_t len, ebb_token id);
/* Unlink the symbol after `left`, whose bytes `left` takes. */
void ebb_tok_symbol_join(ebb_tok_work *w, int32_t left, ebb_token id);

/* Without memory the join is lost and w->failed set. */
void ebb_tok_heap_push(ebb_tok_work *w, ebb_tok_join join);
bool ebb_tok_heap_pop(ebb_tok_work *w, ebb_tok_join *join);

#endif
