#include "base/arena.h"

#include <assert.h>
#include <stdint.h>

#include "base/size.h"

void *ebb_arena_take(ebb_arena *a, size_t bytes, size_t align)
{
    size_t at = a->used > SIZE_MAX - align ? SIZE_MAX : (a->used + align - 1) & ~(align - 1);

    a->used = (size_t)ebb_size_plus(at, bytes);
    if (!a->base)
        return NULL;
    assert(a->used <= a->cap);
    return a->base + at;
}

void *ebb_arena_take_rows(ebb_arena *a, size_t n_rows, size_t n, size_t size, size_t align)
{
    return ebb_arena_take(a, (size_t)ebb_size_times(ebb_size_times(n_rows, n), size), align);
}
