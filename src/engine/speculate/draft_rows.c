/* Rows of the output matrix for drafting (draft_rows.h). */
#include "speculate/draft_rows.h"

#include <stdlib.h>

#include "model/forward.h"

#define SHARE   4u               /* of the groups, one in so many */
#define UNSEEN  0.9f             /* uses of the first group before anything was seen: any token that was counts for
                                    more */
#define REFRESH 256u             /* tokens until it is worth a sort */

/* The most used first, of equals the first. */
static int compare_ranked(const void *a, const void *b)
{
    const ebb_group_rank *x = a, *y = b;

    return x->uses != y->uses ? (x->uses < y->uses) - (x->uses > y->uses)
                              : (x->group > y->group) - (x->group < y->group);
}

static int compare_groups(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void choose_groups(ebb_draft_rows *d)
{
    for (uint32_t i = 0; i < d->n_groups; i++)
        d->ranks[i] = (ebb_group_rank){ d->uses[i], i };
    qsort(d->ranks, d->n_groups, sizeof *d->ranks, compare_ranked);
    for (uint32_t i = 0; i < d->n_chosen; i++)
        d->chosen[i] = d->ranks[i].group;
    qsort(d->chosen, d->n_chosen, sizeof *d->chosen, compare_groups);       /* in the order of memory */
    d->n_new = 0;
}

bool ebb_draft_rows_init(ebb_draft_rows *d, uint32_t n_vocab)
{
    uint32_t n = (n_vocab + EBB_ROW_GROUP - 1) / EBB_ROW_GROUP;

    *d = (ebb_draft_rows){
        .n_groups = n, .n_chosen = n_vocab > EBB_DRAFT_ROWS_ALL ? n / SHARE : n,
        .chosen = calloc(n + 1, sizeof *d->chosen),
        .uses = calloc(n + 1, sizeof *d->uses), .ranks = calloc(n + 1, sizeof *d->ranks),
    };
    if (!d->chosen || !d->uses || !d->ranks)
        return false;
    for (uint32_t i = 0; i < n; i++)
        d->uses[i] = UNSEEN * (float)(n - i) / (float)n;
    choose_groups(d);
    return true;
}

void ebb_draft_rows_fini(ebb_draft_rows *d)
{
    free(d->chosen);
    free(d->uses);
    free(d->ranks);
}

void ebb_draft_rows_learn(ebb_draft_rows *d, const ebb_token *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        d->uses[(uint32_t)ids[i] / EBB_ROW_GROUP] += 1;
    d->n_new += n;
}

void ebb_draft_rows_update(ebb_draft_rows *d)
{
    if (d->n_chosen < d->n_groups && d->n_new >= REFRESH)
        choose_groups(d);
}
