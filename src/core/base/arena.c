#include "base/arena.h"

#include <assert.h>

void *ebb_arena_take(ebb_arena *a, size_t bytes, size_t align)
{
    size_t at = (a->used + align - 1) & ~(align - 1);

    a->used = at + bytes;
    if (!a->base)
        return NULL;
    assert(a->used <= a->cap);
    return a->base + at;
}
