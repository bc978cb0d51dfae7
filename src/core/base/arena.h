/* base/arena.h - counting and placing buffers with one layout function.
 *
 * The plan runs the layout with base == NULL and reads `used`; the engine
 * allocates that many bytes and runs the same layout again to place:
 *
 *     static void layout(ebb_arena *a, struct buffers *b) {
 *         b->x = ebb_arena_take(a, n_tokens * n_embd * sizeof(float), 64);
 *     }
 *
 * so what is planned and what is allocated cannot differ.  What has more bytes than size_t holds
 * counts as SIZE_MAX from then on: it fits nowhere, and is never placed. */
#ifndef EBB_BASE_ARENA_H
#define EBB_BASE_ARENA_H
#include <stddef.h>

typedef struct ebb_arena {
    char  *base;                 /* NULL: count only */
    size_t used, cap;
} ebb_arena;

/* `bytes` at a multiple of `align` (a power of two); NULL while counting.
 * Placing beyond cap is a bug in the layout and asserts. */
void *ebb_arena_take(ebb_arena *a, size_t bytes, size_t align);
/* [n_rows][n] elements of `size` bytes. */
void *ebb_arena_take_rows(ebb_arena *a, size_t n_rows, size_t n, size_t size, size_t align);

#endif
