/* base/closest.h - what a slip of the finger meant. */
#ifndef EBB_BASE_CLOSEST_H
#define EBB_BASE_CLOSEST_H
#include <stddef.h>

/* The candidate that a word was nearly: the one with the fewest letters added, missing, wrong or
 * swapped with their neighbour. */
typedef struct ebb_closest {
    const char *word, *best;     /* best NULL: none is near */
    size_t      n_word;
    unsigned    n_slips;         /* that lead from word to best */
} ebb_closest;

ebb_closest ebb_closest_begin(const char *word, size_t n); /* word[0..n), which must outlive it */
void ebb_closest_try(ebb_closest *c, const char *candidate);     /* which must outlive it, too */

#endif
