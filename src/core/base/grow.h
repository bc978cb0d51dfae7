/* base/grow.h - arrays that grow as they are filled. */
#ifndef EBB_BASE_GROW_H
#define EBB_BASE_GROW_H
#include <stddef.h>

/* Room for one more element behind the n of `list`, which has room for *cap, of `size` bytes each
 * (NULL, 0, 0: none yet).  Returns the array, moved or not, with *cap as it is then; NULL without
 * memory: all is as before.  The caller owns it all along.  Doubles, so n elements cost O(n)
 * copies.
 *
 *     int *p = ebb_grow(list, n, &cap, sizeof *p);
 *     if (!p)
 *         return false;
 *     list = p; */
void *ebb_grow(void *list, size_t n, size_t *cap, size_t size);

#endif
