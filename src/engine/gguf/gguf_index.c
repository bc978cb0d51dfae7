/* Keys and tensors by their names (gguf.h, gguf_impl.h). */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/gguf_impl.h"

enum { ARCH_BYTES = 64 };                        /* no architecture has a longer name, nor keys that begin with one */

/* Keys and names both begin their struct, so one comparison serves both. */
_Static_assert(offsetof(ebb_gguf_kv, key) == 0 && offsetof(ebb_gguf_tensor, name) == 0, "name comes first");

typedef struct index_base {
    const char *items;
    size_t      item_bytes;
} index_base;

static const char *name_at(const index_base *b, uint32_t i)
{
    const char *name;

    memcpy(&name, b->items + i * b->item_bytes, sizeof name);
    return name;
}

static int compare_names(const void *a, const void *b, void *arg)
{
    return strcmp(name_at(arg, *(const uint32_t *)a), name_at(arg, *(const uint32_t *)b));
}

/* *out = indices of n items sorted by name; FORMAT names one that is there twice. */
static ebb_status make_order(index_base b, size_t n, const char *what, uint32_t **out, ebb_error *err)
{
    uint32_t *order = malloc((n + 1) * sizeof *order);

    *out = order;
    if (!order)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the index of %zu %ss", n, what);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof *order, compare_names, &b);
    for (size_t i = 1; i < n; i++)
        if (strcmp(name_at(&b, order[i - 1]), name_at(&b, order[i])) == 0)
            return EBB_FAIL(err, EBB_FORMAT, "%s %.80s occurs twice", what, name_at(&b, order[i]));
    return EBB_OK;
}

static size_t find_name(index_base b, const uint32_t *order, size_t n, const char *name)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, name_at(&b, order[mid]));
        if (c == 0)
            return order[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return SIZE_MAX;
}

static index_base kv_base(const ebb_gguf *g)
{
    return (index_base){ (const char *)g->kvs, sizeof *g->kvs };
}

static index_base tensor_base(const ebb_gguf *g)
{
    return (index_base){ (const char *)g->tensors, sizeof *g->tensors };
}

ebb_status ebb_gguf_index(ebb_gguf *g, ebb_error *err)
{
    ebb_status st = make_order(kv_base(g), g->n_kvs, "metadata key", &g->kv_order, err);

    return st == EBB_OK ? make_order(tensor_base(g), g->n_tensors, "tensor", &g->tensor_order, err) : st;
}

const ebb_gguf_kv *ebb_gguf_find(const ebb_gguf *g, const char *key)
{
    char full[256];
    size_t i;

    if (key[0] == '.') {
        const char *arch = ebb_gguf_get_string(g, "general.architecture");
        if (arch && strnlen(arch, ARCH_BYTES + 1) > ARCH_BYTES)
            return NULL;                         /* one may be as long as the file, and is looked up often */
        int n = snprintf(full, sizeof full, "%s%s", arch ? arch : "", key);
        if (n < 0 || (size_t)n >= sizeof full)
            return NULL;
        key = full;
    }
    i = find_name(kv_base(g), g->kv_order, g->n_kvs, key);
    return i == SIZE_MAX ? NULL : &g->kvs[i];
}

const ebb_gguf_tensor *ebb_gguf_find_tensor(const ebb_gguf *g, const char *name)
{
    size_t i = find_name(tensor_base(g), g->tensor_order, g->n_tensors, name);

    return i == SIZE_MAX ? NULL : &g->tensors[i];
}
