/* Symbols and the heap of one encoding (work.h). */
#include "tokenizer/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Joins in the heap: of words of usual lengths all, of long ones one for so many symbols. */
enum { HEAP_LEAST = 1 << 16, HEAP_SYMBOLS_PER_JOIN = 4 };

void ebb_tok_work_fini(ebb_tok_work *w)
{
    free(w->ids);
    free(w->starts);
    free(w->heap);
    ebb_buf_fini(&w->text);
    memset(w, 0, sizeof *w);
}

/* -- Symbols ------------------------------------------------------------------------ */

/* Words of the bitmap, with the bit behind the last byte. */
static size_t bitmap_words(size_t n_bytes)
{
    return n_bytes / 64 + 1;
}

static bool make_symbols(ebb_tok_work *w, size_t n, bool have_ids)
{
    size_t cap = n < 256 ? 256 : n;

    free(w->ids);
    free(w->starts);
    w->ids = have_ids ? malloc(cap * sizeof *w->ids) : NULL;
    w->starts = malloc(bitmap_words(cap) * sizeof *w->starts);
    w->cap_bytes = w->starts && (w->ids || !have_ids) ? cap : 0;
    w->failed |= w->cap_bytes == 0;
    return !w->failed;
}

static void limit_heap(ebb_tok_work *w, size_t n_symbols)
{
    w->max_heap = n_symbols / HEAP_SYMBOLS_PER_JOIN;
    if (w->max_heap < HEAP_LEAST)
        w->max_heap = HEAP_LEAST;
}

/* An encoding's symbols all have ids, or none has. */
static bool begin_symbols(ebb_tok_work *w, size_t n, bool have_ids)
{
    w->n_heap = 0;
    w->key_limit = UINT64_MAX;
    limit_heap(w, n);
    w->n_bytes = n;
    if (w->failed || (n > w->cap_bytes && !make_symbols(w, n, have_ids)))
        return false;
    memset(w->starts, 0, bitmap_words(n) * sizeof *w->starts);
    w->starts[n / 64] |= UINT64_C(1) << n % 64;
    return true;
}

bool ebb_tok_work_begin(ebb_tok_work *w, size_t n)
{
    return begin_symbols(w, n, true);
}

bool ebb_tok_work_begin_chars(ebb_tok_work *w, const ebb_tok_table *table)
{
    const char *text = w->text.data;
    size_t n = w->text.len, n_symbols = 0;

    if (!begin_symbols(w, n, table != NULL))
        return false;
    for (size_t i = 0; i < n && ebb_tok_spend(&w->budget, 1); n_symbols++) {
        uint32_t cp;
        size_t used = ebb_utf8_decode(text + i, n - i, &cp);

        if (used == 0)
            used = n - i;
        if (table)
            w->ids[i] = ebb_tok_table_find(table, text + i, used);
        ebb_tok_symbol_add(w, i);
        i += used;
    }
    limit_heap(w, n_symbols);
    return true;
}

/* -- The heap ------------------------------------------------------------------------- */

static bool pop_smallest(ebb_tok_work *w, ebb_tok_join *join)
{
    ebb_tok_join last;
    size_t i = 0, child;

    if (w->n_heap == 0)
        return false;
    *join = w->heap[0];
    last = w->heap[--w->n_heap];
    while ((child = 2 * i + 1) < w->n_heap) {
        if (child + 1 < w->n_heap && w->heap[child + 1].key < w->heap[child].key)
            child++;
        if (last.key <= w->heap[child].key)
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    if (w->n_heap > 0)
        w->heap[i] = last;
    return true;
}

static bool is_possible(const ebb_tok_work *w, const ebb_tok_join *join)
{
    size_t left = (uint32_t)join->key, right;

    if (!ebb_tok_is_symbol(w, left))
        return false;
    right = ebb_tok_symbol_next(w, left);
    return right < w->n_bytes && ebb_tok_symbol_next(w, right) - left == join->len;
}

bool ebb_tok_heap_pop(ebb_tok_work *w, ebb_tok_join *join)
{
    while (ebb_tok_spend(&w->budget, 1) && pop_smallest(w, join))
        if (is_possible(w, join))
            return true;
    return false;
}

/* The smaller half of a full heap stays: popped to the end of the array, and in order, it is one again. */
static void drop_larger_half(ebb_tok_work *w)
{
    size_t full = w->n_heap, kept = 0;
    ebb_tok_join join;

    while (w->n_heap > full / 2 && ebb_tok_heap_pop(w, &join))
        w->heap[full - ++kept] = join;
    if (w->n_heap > 0)
        w->key_limit = w->heap[0].key;
    for (size_t i = 0; i < kept; i++)
        w->heap[i] = w->heap[full - 1 - i];
    w->n_heap = kept;
}

static bool grow_heap(ebb_tok_work *w)
{
    size_t more = w->cap_heap + w->cap_heap / 2 + 64, cap = more > w->n_bytes ? more : w->n_bytes;
    ebb_tok_join *heap;

    if (cap > w->max_heap)
        cap = w->max_heap;
    heap = realloc(w->heap, cap * sizeof *heap);
    if (!heap) {
        w->failed = true;
        return false;
    }
    w->heap = heap;
    w->cap_heap = cap;
    return true;
}

void ebb_tok_heap_push(ebb_tok_work *w, ebb_tok_join join)
{
    size_t i;

    if (w->n_heap >= w->max_heap)
        drop_larger_half(w);
    if (join.key >= w->key_limit || (w->n_heap == w->cap_heap && !grow_heap(w)))
        return;
    for (i = w->n_heap++; i > 0 && join.key < w->heap[(i - 1) / 2].key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = join;
}

bool ebb_tok_heap_lacks(ebb_tok_work *w)
{
    bool lacks = w->key_limit < UINT64_MAX;

    w->key_limit = UINT64_MAX;
    return lacks && !w->failed && w->budget.left > 0;
}
