/* Growing a tree of draft tokens (draft_grow.h). */
#include "speculate/draft_grow.h"

#include <assert.h>

#include "ebb/model.h"

/* The growing of one tree. */
typedef struct growth {
    const ebb_drafter *d;
    ebb_token      *ids;         /* the path under way, behind the n ids that it continues */
    uint32_t        n;
    ebb_draft_tree *tree;
    double          accept_chance[EBB_DRAFT_MAX_MODEL];  /* of each token of the trunk, if those before it were */
} growth;

/* Where a branch may leave the trunk, and the chance that the sampler comes that way. */
typedef struct candidate { uint32_t from, rank; double chance; } candidate;
#define MAX_CANDIDATES (EBB_DRAFT_MAX_MODEL * (EBB_DRAFT_RANKS - 1))

static bool ends_answer(const growth *g, ebb_token id)
{
    return ebb_model_is_eog(g->d->model, id);    /* nothing is asked of an answer behind its end */
}

/* The choices behind `depth` draft tokens; *chance becomes that of the first of them.  false: it is not worth a place
 * in the pass. */
static bool choose_next(growth *g, uint32_t depth, ebb_draft_place *place, double *chance)
{
    ebb_choice choices[EBB_DRAFT_RANKS];

    place->n_choices = g->d->choose(g->d->arg, g->ids, g->n + depth, depth, choices);
    g->tree->n_steps++;
    if (place->n_choices == 0)
        return false;
    for (uint32_t i = 0; i < place->n_choices; i++)
        place->choices[i] = choices[i].id;
    place->probability = choices->probability;
    *chance *= ebb_draft_length_accept_chance(g->d->length, place->probability);
    return !ends_answer(g, *place->choices) && ebb_draft_length_is_token_worth(g->d->length, *chance);
}

static void push_token(growth *g, uint32_t depth, ebb_token id)
{
    g->ids[g->n + depth] = id;
    g->tree->ids[++g->tree->n] = id;
}

static void grow_trunk(growth *g)
{
    ebb_draft_tree *t = g->tree;
    const ebb_drafter *d = g->d;
    double chance = 1;

    while (t->n_trunk < d->most_trunk && (t->n_trunk == 0 || ebb_draft_length_is_next_worth(d->length, chance))) {
        ebb_draft_place *place = &t->places[t->n_trunk];
        double before = chance;

        if (!choose_next(g, t->n_trunk, place, &chance))
            return;
        g->accept_chance[t->n_trunk] = chance / before;
        push_token(g, t->n_trunk++, *place->choices);
        if (!ebb_sampler_follow(d->sampler, *place->choices))
            return;
    }
}

/* -- Branches ----------------------------------------------------------------------- */

static void insert_candidate(candidate *list, uint32_t n, candidate c)
{
    for (; n > 0 && list[n - 1].chance < c.chance; n--)
        list[n] = list[n - 1];
    list[n] = c;
}

/* All of them, the likeliest first. */
static uint32_t list_candidates(const growth *g, candidate *list)
{
    double reach = 1;
    uint32_t n = 0;

    for (uint32_t from = 0; from < g->tree->n_trunk; from++) {
        const ebb_draft_place *place = &g->tree->places[from];

        for (uint32_t rank = 1; rank < place->n_choices; rank++) {
            double chance = reach * (1 - g->accept_chance[from]) * ebb_draft_length_rank_chance(g->d->length, rank);

            if (!ends_answer(g, place->choices[rank]))
                insert_candidate(list, n++, (candidate){ from, rank, chance });
        }
        reach *= g->accept_chance[from];
    }
    return n;
}

static double trunk_chance(const growth *g)
{
    double chance = 1;

    for (uint32_t i = 0; i < g->tree->n_trunk; i++)
        chance *= g->accept_chance[i];
    return chance;
}

/* A candidate that is likelier than the end of the trunk takes its place, if none leaves there. */
static bool make_room(growth *g, const candidate *list, uint32_t n)
{
    ebb_draft_tree *t = g->tree;

    if (t->n_trunk + n < g->d->most)
        return true;
    for (uint32_t i = 0; i <= n; i++)
        if (list[i].from + 1 >= t->n_trunk)
            return false;
    if (trunk_chance(g) >= list[n].chance)
        return false;
    t->n = --t->n_trunk;
    return true;
}

/* Those that are computed, in front of the others. */
static uint32_t select_candidates(growth *g, const candidate *list, uint32_t n)
{
    uint32_t n_selected = 0;

    while (n_selected < n && n_selected < EBB_DRAFT_BRANCHES &&
           ebb_draft_length_is_branch_worth(g->d->length, list[n_selected].chance, n_selected) &&
           make_room(g, list, n_selected))
        n_selected++;
    return n_selected;
}

/* The candidate's token, and behind it what is worth it, at most `most` tokens. */
static void grow_branch(growth *g, const candidate *c, uint32_t most)
{
    ebb_draft_tree *t = g->tree;
    ebb_draft_branch *b = &t->branches[t->n_branches++];
    double chance = c->chance;

    *b = (ebb_draft_branch){ .from = c->from, .rank = c->rank, .first = t->n + 1, .n = 1 };
    push_token(g, c->from, t->places[c->from].choices[c->rank]);
    while (b->n < most && c->from + b->n < g->d->most_trunk && ebb_draft_length_is_next_worth(g->d->length, chance)) {
        ebb_draft_place place;

        if (!choose_next(g, c->from + b->n, &place, &chance))
            return;
        push_token(g, c->from + b->n++, *place.choices);
    }
}

/* Those that leave the trunk last come first: what stands before a branch is still the trunk. */
static void grow_branches(growth *g)
{
    candidate list[MAX_CANDIDATES];
    uint32_t n_listed = list_candidates(g, list), n = select_candidates(g, list, n_listed);

    assert(n <= n_listed);
    for (uint32_t from = g->tree->n_trunk; from-- > 0;)
        for (uint32_t i = 0; i < n; i++)
            if (list[i].from == from)
                grow_branch(g, &list[i], g->d->most - g->tree->n - (n - 1 - g->tree->n_branches));
}

void ebb_draft_grow(const ebb_drafter *d, ebb_token *ids, uint32_t n, ebb_draft_tree *tree)
{
    growth g = { .d = d, .ids = ids, .n = n, .tree = tree };

    tree->n = tree->n_trunk = tree->n_branches = tree->n_steps = 0;
    grow_trunk(&g);
    if (tree->n_trunk == 0 && tree->n_steps > 0)
        ebb_draft_length_learn_waste(d->length);
    if (d->most > 0)
        grow_branches(&g);
}
