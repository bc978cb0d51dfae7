/* tokenizer/work.h - what one encoding needs: output, symbols, and a heap of joins that are
 * possible.  Owned by the call, so tokenizers can be shared.
 *
 * A symbol is a run of bytes between its neighbours, and is named by its first byte.  It takes a
 * bit for each byte of text, and four bytes where symbols have ids; their memory would else be
 * twenty times that of a long word. */
#ifndef EBB_TOKENIZER_WORK_H
#define EBB_TOKENIZER_WORK_H
#include "base/buf.h"
#include "tokenizer/budget.h"
#include "tokenizer/table.h"
#include "tokenizer/tokenizer.h"

/* Join symbol `left` with its next one; the smallest key comes first. */
typedef struct ebb_tok_join {
    uint64_t key;                /* order << 32 | left */
    uint32_t id;                 /* of BPE: the merge that it is */
    uint32_t len;                /* bytes of both; if they differ by now, the join is void */
} ebb_tok_join;

typedef struct ebb_tok_work {
    ebb_token *out;
    size_t     cap, n;           /* n counts beyond cap */
    bool       failed;           /* out of memory */
    ebb_tok_budget budget;       /* spent, no symbols are made or joined any more */

    ebb_token *ids;              /* [n_bytes]: at a symbol's first byte, -1: the run is no token;
                                    BPE's alone, whose merges are of ids */
    uint64_t  *starts;           /* a bit for each byte: a symbol begins; and one behind the last */
    size_t     n_bytes, cap_bytes;
    ebb_tok_join *heap;          /* all possible joins of keys below key_limit, and void ones */
    size_t     n_heap, cap_heap, max_heap;
    uint64_t   key_limit;        /* UINT64_MAX: none */
    ebb_buf    text;             /* escaped text (SPM) or an encoded word (BPE) */
} ebb_tok_work;

void ebb_tok_work_fini(ebb_tok_work *w);         /* a zeroed one is ready; `out` is the caller's */
/* Make room for symbols of n bytes with ids, and forget the old ones.  false: no memory. */
bool ebb_tok_work_begin(ebb_tok_work *w, size_t n);

/* Begin with a symbol for each character of w->text; from bytes that are none on, the rest is one.
 * With `table` each has the id of its token, or -1; NULL: none has an id.  false: no memory. */
bool ebb_tok_work_begin_chars(ebb_tok_work *w, const ebb_tok_table *table);

static inline void ebb_tok_emit(ebb_tok_work *w, ebb_token id)
{
    if (w->n < w->cap)
        w->out[w->n] = id;
    w->n++;
}

static inline bool ebb_tok_is_symbol(const ebb_tok_work *w, size_t at)
{
    return w->starts[at / 64] >> at % 64 & 1;
}

/* The symbol after the one at `at`; n_bytes: it is the last. */
static inline size_t ebb_tok_symbol_next(const ebb_tok_work *w, size_t at)
{
    size_t i = ++at / 64;
    uint64_t bits = w->starts[i] & UINT64_MAX << at % 64;

    while (!bits)
        bits = w->starts[++i];
    return i * 64 + (size_t)__builtin_ctzll(bits);
}

/* The symbol before the one at `at` > 0. */
static inline size_t ebb_tok_symbol_before(const ebb_tok_work *w, size_t at)
{
    size_t i = --at / 64;
    uint64_t bits = w->starts[i] & UINT64_MAX >> (63 - at % 64);

    while (!bits)
        bits = w->starts[--i];
    return i * 64 + 63 - (size_t)__builtin_clzll(bits);
}

/* A symbol begins at `at`. */
static inline void ebb_tok_symbol_add(ebb_tok_work *w, size_t at)
{
    w->starts[at / 64] |= UINT64_C(1) << at % 64;
}

/* `left` takes the bytes of the symbol after it. */
static inline void ebb_tok_symbol_join(ebb_tok_work *w, size_t left)
{
    size_t right = ebb_tok_symbol_next(w, left);

    w->starts[right / 64] &= ~(UINT64_C(1) << right % 64);
}

/* Without memory the join is lost and w->failed set. */
void ebb_tok_heap_push(ebb_tok_work *w, ebb_tok_join join);
/* The possible join of the smallest key; void ones are dropped.  false: the heap is empty, or the
 * budget spent. */
bool ebb_tok_heap_pop(ebb_tok_work *w, ebb_tok_join *join);
/* The heap was emptied, but joins were left out because it was full: those of all symbols are to be
 * offered again, and now none is left out yet. */
bool ebb_tok_heap_lacks(ebb_tok_work *w);

#endif
