/* What a slip of the finger meant (closest.h). */
#include "base/closest.h"

#include <string.h>

enum { LONGEST = 40 };

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Damerau's distance: rows[2] is the current row, rows[1] and rows[0] those before. */
static unsigned edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    unsigned rows[3][LONGEST + 1];

    for (size_t j = 0; j <= n_b; j++)
        rows[2][j] = (unsigned)j;
    for (size_t i = 1; i <= n_a; i++) {
        memcpy(rows[0], rows[1], sizeof rows[0]);
        memcpy(rows[1], rows[2], sizeof rows[1]);
        rows[2][0] = (unsigned)i;
        for (size_t j = 1; j <= n_b; j++) {
            unsigned same = a[i - 1] == b[j - 1] ? 0 : 1;
            rows[2][j] = min_of(min_of(rows[1][j] + 1, rows[2][j - 1] + 1), rows[1][j - 1] + same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[2][j] = min_of(rows[2][j], rows[0][j - 2] + 1);
        }
    }
    return rows[2][n_b];
}

/* A short word is soon another one; dashes in front do not count. */
static unsigned most_slips(size_t n)
{
    return n < 3 ? 0 : n < 6 ? 1 : 2;
}

ebb_closest ebb_closest_begin(const char *word, size_t n)
{
    size_t n_dashes = strspn(word, "-") < n ? strspn(word, "-") : n;

    return (ebb_closest){ .word = word, .n_word = n, .n_slips = most_slips(n - n_dashes) + 1 };
}

void ebb_closest_try(ebb_closest *c, const char *candidate)
{
    size_t n = strlen(candidate);
    unsigned slips;

    if (n > LONGEST || c->n_word > LONGEST)
        return;
    slips = edit_distance(c->word, c->n_word, candidate, n);
    if (slips >= c->n_slips)
        return;
    c->n_slips = slips;
    c->best = candidate;
}
