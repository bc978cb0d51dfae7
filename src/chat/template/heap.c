#include "template/heap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct tpl_chunk {
    struct tpl_chunk *next;
    size_t size;
    _Alignas(16) char data[];
} tpl_chunk;

/* Under the address sanitizer every piece is a chunk of its own, exactly as long, so
 * that it sees a step over the end. */
#ifdef __SANITIZE_ADDRESS__
enum { CHUNK_MIN = 1, CHUNK_MAX = 1, ALIGN = 1 };
#else
enum { CHUNK_MIN = 16 << 10, CHUNK_MAX = 1 << 20, ALIGN = 16 };
#endif

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static bool new_chunk(tpl_heap *h, size_t n)
{
    size_t size = h->total_bytes / 2;
    tpl_chunk *c;

    size = size > CHUNK_MAX ? CHUNK_MAX : size < CHUNK_MIN ? CHUNK_MIN : size;
    size = n > size ? n : round_up(size);
    h->beyond = h->max_bytes && (size > h->max_bytes || h->total_bytes > h->max_bytes - size);
    if (h->beyond)
        return false;
    c = malloc(sizeof *c + size);
    if (!c)
        return false;
    c->next = h->chunks;
    c->size = size;
    h->chunks = c;
    h->total_bytes += size;
    h->at = c->data;
    h->end = c->data + size;
    return true;
}

void *ebb_tpl_heap_take(tpl_heap *h, size_t n)
{
    void *p;

    if (n > SIZE_MAX / 4)
        return h->beyond = true, NULL;
    n = round_up(n ? n : 1);
    if (n > (size_t)(h->end - h->at) && !new_chunk(h, n))
        return NULL;
    p = h->at;
    h->at += n;
    return p;
}

bool ebb_tpl_heap_extend(tpl_heap *h, void *p, size_t old, size_t n)
{
    char *end = (char *)p + round_up(old ? old : 1);

    if (end != h->at || n > SIZE_MAX / 4 || round_up(n) > (size_t)(h->end - (char *)p))
        return false;
    h->at = (char *)p + round_up(n);
    return true;
}

void ebb_tpl_heap_free(tpl_heap *h)
{
    for (tpl_chunk *c = h->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    memset(h, 0, sizeof *h);
}
