/* Symbols and the heap of one encoding (work.h). */
#include "tokenizer/work.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void ebb_tok_work_fini(ebb_tok_work *w)
{
    free(w->symbols);
    free(w->heap);
    ebb_buf_fini(&w->text);
    memset(w, 0, sizeof *w);
}

bool ebb_tok_work_begin(ebb_tok_work *w, size_t n)
{
    size_t cap = n < 256 ? 256 : n;

    w->n_symbols = w->n_heap = 0;
    if (n <= w->cap_symbols)
        return !w->failed;
    free(w->symbols);
    w->symbols = malloc(cap * sizeof *w->symbols);
    w->cap_symbols = w->symbols ? cap : 0;
    if (!w->symbols)
        w->failed = true;
    return !w->failed;
}

static bool grow_heap(ebb_tok_work *w)
{
    size_t cap = w->n_symbols > w->cap_heap ? w->n_symbols : w->cap_heap + w->cap_heap / 2 + 64;
    ebb_tok_join *heap = realloc(w->heap, cap * sizeof *heap);

    if (!heap) {
        w->failed = true;
        return false;
    }
    w->heap = heap;
    w->cap_heap = cap;
    return true;
}

void ebb_tok_symbol_add(ebb_tok_work *w, size_t at, size_t len, ebb_token id)
{
    int32_t i = (int32_t)w->n_symbols++;

    assert(w->n_symbols <= w->cap_symbols);
    w->symbols[i] = (ebb_tok_symbol){ (uint32_t)at, (uint32_t)len, i - 1, -1, id };
    if (i > 0)
        w->symbols[i - 1].next = i;
}

bool ebb_tok_work_begin_chars(ebb_tok_work *w, const ebb_tok_table *table)
{
    const char *text = w->text.data;
    size_t n = w->text.len;

    if (!ebb_tok_work_begin(w, n))
        return false;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = ebb_utf8_decode(text + i, n - i, &cp);

        if (used == 0)
            used = n - i;
        ebb_tok_symbol_add(w, i, used, table ? ebb_tok_table_find(table, text + i, used) : -1);
        i += used;
    }
    return true;
}

void ebb_tok_symbol_join(ebb_tok_work *w, int32_t left, ebb_token id)
{
    ebb_tok_symbol *l = &w->symbols[left], *r = &w->symbols[l->next];

    l->len += r->len;
    l->id = id;
    r->len = 0;
    l->next = r->next;
    if (r->next >= 0)
        w->symbols[r->next].prev = left;
}

void ebb_tok_heap_push(ebb_tok_work *w, ebb_tok_join join)
{
    size_t i = w->n_heap;

    if (i == w->cap_heap && !grow_heap(w))
        return;
    w->n_heap++;
    for (; i > 0 && join.key < w->heap[(i - 1) / 2].key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = join;
}

bool ebb_tok_heap_pop(ebb_tok_work *w, ebb_tok_join *join)
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
