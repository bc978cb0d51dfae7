/* Rows of the output matrix for drafting (draft_rows.h). */
#include "speculate/draft_rows.h"

#include <stdlib.h>
#include <string.h>

#define SHARE_FIRST 4u           /* of the rows, one in so many, before EBB_DRAFT_ROWS_SEEN tokens ... */
#define SHARE       8u           /* ... and behind them */
#define REFRESH     256u         /* tokens until it is worth choosing anew */
#define LEVELS      256u         /* of use; all above the last are as good */

static uint32_t n_wanted(uint32_t n_rows, uint64_t n_seen)
{
    if (n_rows <= EBB_DRAFT_ROWS_ALL)
        return n_rows;
    return n_rows / (n_seen < EBB_DRAFT_ROWS_SEEN ? SHARE_FIRST : SHARE);
}

uint32_t ebb_draft_rows_at_first(uint32_t n_vocab)
{
    return n_wanted(n_vocab, 0);
}

static uint32_t level_of(const ebb_draft_rows *d, uint32_t row)
{
    return d->uses[row] < LEVELS ? d->uses[row] : LEVELS - 1;
}

/* The level of use of which not all rows are chosen; all above it are, *n_left of its own. */
static uint32_t last_level(const ebb_draft_rows *d, uint32_t n, uint32_t *n_left)
{
    uint32_t count[LEVELS] = { 0 }, level = LEVELS - 1;

    for (uint32_t i = 0; i < d->n_rows; i++)
        count[level_of(d, i)]++;
    for (*n_left = n; level > 0 && count[level] <= *n_left; level--)
        *n_left -= count[level];
    return level;
}

/* n of the rows: the most used, of equals the first. */
static void choose_rows(ebb_draft_rows *d, uint32_t n)
{
    uint32_t n_left, least = last_level(d, n, &n_left);

    d->n_chosen = d->n_new = 0;
    for (uint32_t i = 0; i < d->n_rows && d->n_chosen < n; i++) {
        uint32_t level = level_of(d, i);

        if (level < least || (level == least && n_left == 0))
            continue;
        n_left -= level == least;
        d->chosen[d->n_chosen++] = i;
    }
}

bool ebb_draft_rows_init(ebb_draft_rows *d, uint32_t n_vocab)
{
    *d = (ebb_draft_rows){
        .n_rows = n_vocab, .chosen = calloc(n_vocab + 1u, sizeof *d->chosen),
        .uses = calloc(n_vocab + 1u, sizeof *d->uses),
    };
    if (!d->chosen || !d->uses)
        return false;
    choose_rows(d, n_wanted(d->n_rows, d->n_seen));
    return true;
}

void ebb_draft_rows_fini(ebb_draft_rows *d)
{
    free(d->chosen);
    free(d->uses);
}

void ebb_draft_rows_learn(ebb_draft_rows *d, const ebb_token *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= d->n_rows)
            continue;
        if (d->uses[ids[i]] < UINT16_MAX)
            d->uses[ids[i]]++;
        d->n_seen++;
        d->n_new++;
    }
}

void ebb_draft_rows_forget(ebb_draft_rows *d)
{
    memset(d->uses, 0, d->n_rows * sizeof *d->uses);
    d->n_seen = 0;
    d->n_new = REFRESH;
}

void ebb_draft_rows_update(ebb_draft_rows *d)
{
    if (d->n_new >= REFRESH && d->n_rows > EBB_DRAFT_ROWS_ALL)
        choose_rows(d, n_wanted(d->n_rows, d->n_seen));
}
