/* Arrays that grow (grow.h). */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST 16                 /* elements */

void *ebb_grow(void *list, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : FIRST;
    void *grown;

    if (n < *cap)
        return list;
    if (more < *cap || more > SIZE_MAX / size)
        return NULL;
    grown = realloc(list, more * size);
    if (grown)
        *cap = more;
    return grown;
}
