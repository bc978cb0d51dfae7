/* template/heap.h - memory that is taken piece by piece and given back as a whole.
 * A limit on the sum turns a template bomb into an error. */
#ifndef EBB_TEMPLATE_HEAP_H
#define EBB_TEMPLATE_HEAP_H
#include <stdbool.h>
#include <stddef.h>

typedef struct tpl_heap {
    struct tpl_chunk *chunks;
    char  *at, *end;             /* free room of the newest chunk */
    size_t total_bytes;          /* of all chunks */
    size_t max_bytes;            /* 0: no limit */
    bool   beyond;               /* the last failure was the limit, not the machine */
} tpl_heap;

/* n bytes, 16-byte aligned, not zeroed; NULL beyond the limit or out of memory. */
void *ebb_tpl_heap_take(tpl_heap *h, size_t n);
/* Make `p`, of `old` bytes, `n` bytes long where it lies: only if it was taken last. */
bool ebb_tpl_heap_extend(tpl_heap *h, void *p, size_t old, size_t n);
void ebb_tpl_heap_free(tpl_heap *h);

#endif
