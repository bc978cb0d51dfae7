/* Masks over a vocabulary (constraint.h). */
#include "grammar/constraint.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "grammar/matcher.h"

enum {
    MASK_BYTES = 8 << 20,        /* of the masks that are kept, */
    LEAST_MASKS = 8, MOST_MASKS = 1024,          /* and their number */
    FORGET_BYTES = 24 << 20,     /* states take so much memory: older ones are forgotten */
    MOST_WORK = 4 << 20,         /* of a choice (ebb_matcher_limit); it cannot fill the matcher's memory */
    TOKEN_WORK = 8192,           /* of each token of a text that is there */
};

#define NO_MASK UINT32_MAX
#define SEEN    (UINT32_MAX - 1) /* no mask, but somebody has asked */
#define COSTLY  (UINT32_MAX - 2) /* its mask is more than the work of a choice */

/* The text has ended: a token that ends a turn was chosen.  No state has this number. */
#define ENDED UINT32_MAX

struct ebb_constraint {
    atomic_uint  n_owners;
    ebb_matcher *m;
    ebb_token_trie *trie;
    uint32_t     start, epoch;
    uint32_t    *path;           /* [depth + 1] states along a path of the trie */
    size_t       n_words;        /* of a mask */
    uint64_t    *masks;          /* [n_masks][n_words] */
    uint32_t    *mask_states;    /* [n_masks] whose they are; 0: of none */
    uint32_t     n_masks, next_mask;
    uint32_t    *mask_of;        /* [states] NO_MASK, SEEN, COSTLY, or which */
    size_t       n_known, cap_known;
    bool         met_costly;     /* in this choice */
    ebb_status   failed;         /* beside the matcher */
};

/* -- Coming and going ---------------------------------------------------------------- */

static bool alloc_masks(ebb_constraint *c)
{
    size_t n;

    c->n_words = (c->trie->n_vocab + 63) / 64;
    n = MASK_BYTES / (c->n_words * sizeof *c->masks + 1);
    c->n_masks = (uint32_t)(n < LEAST_MASKS ? LEAST_MASKS : n > MOST_MASKS ? MOST_MASKS : n);
    c->masks = malloc(c->n_masks * c->n_words * sizeof *c->masks + 1);
    c->mask_states = calloc(c->n_masks, sizeof *c->mask_states);
    c->path = calloc(c->trie->depth + 1, sizeof *c->path);
    return c->masks && c->mask_states && c->path;
}

ebb_status ebb_constraint_new(const ebb_grammar *g, ebb_token_trie *trie, ebb_constraint **out, ebb_error *err)
{
    ebb_constraint *c = calloc(1, sizeof *c);
    ebb_status st;

    *out = NULL;
    if (!c)
        return EBB_FAIL(err, EBB_NOMEM, "no memory to follow the grammar");
    c->n_owners = 1;
    c->trie = ebb_token_trie_share(trie);
    c->m = ebb_matcher_new(g);
    if (!c->m || !alloc_masks(c)) {
        ebb_constraint_free(c);
        return EBB_FAIL(err, EBB_NOMEM, "no memory to follow the grammar");
    }
    c->start = ebb_matcher_start(c->m);
    st = ebb_matcher_check(c->m, err);
    if (st == EBB_OK)
        *out = c;
    else
        ebb_constraint_free(c);
    return st;
}

ebb_constraint *ebb_constraint_share(ebb_constraint *c)
{
    if (c)
        atomic_fetch_add(&c->n_owners, 1);
    return c;
}

void ebb_constraint_free(ebb_constraint *c)
{
    if (!c || atomic_fetch_sub(&c->n_owners, 1) > 1)
        return;
    ebb_matcher_free(c->m);
    ebb_token_trie_free(c->trie);
    free(c->path);
    free(c->masks);
    free(c->mask_states);
    free(c->mask_of);
    free(c);
}

void ebb_constraint_begin_choice(ebb_constraint *c)
{
    ebb_matcher_limit(c->m, MOST_WORK);
    c->met_costly = false;
}

void ebb_constraint_begin_text(ebb_constraint *c, size_t n)
{
    ebb_constraint_begin_choice(c);
    ebb_matcher_limit(c->m, 4 * MOST_WORK + (uint64_t)n * TOKEN_WORK);
}

ebb_constraint_state ebb_constraint_begin(const ebb_constraint *c)
{
    return (ebb_constraint_state){ .state = c->start, .epoch = c->epoch };
}

/* -- Masks ------------------------------------------------------------------------------ */

static void allow(uint64_t *mask, ebb_token id)
{
    mask[id / 64] |= (uint64_t)1 << (id % 64);
}

/* Depth first through the trie, as far as the grammar accepts the bytes. */
static void fill_mask(ebb_constraint *c, uint32_t state, uint64_t *mask)
{
    const ebb_token_trie *t = c->trie;

    memset(mask, 0, c->n_words * sizeof *mask);
    c->path[0] = state;
    for (uint32_t i = 0; i < t->n_nodes;) {
        const ebb_trie_node *n = &t->nodes[i];
        uint32_t to = ebb_matcher_next(c->m, c->path[n->depth - 1], n->byte);

        if (to == EBB_STATE_NONE) {
            i = n->end;
            continue;
        }
        c->path[n->depth] = to;
        for (uint32_t k = n->first; k < n[1].first; k++)
            allow(mask, t->tokens[k]);
        i++;
    }
    if (ebb_matcher_may_end(c->m, state))
        for (uint32_t k = 0; k < t->n_ends; k++)
            allow(mask, t->ends[k]);
}

/* mask_of[] has an entry for every state. */
static bool know_states(ebb_constraint *c)
{
    while (c->n_known < ebb_matcher_n_states(c->m)) {
        uint32_t *p = ebb_grow(c->mask_of, c->n_known, &c->cap_known, sizeof *p);

        if (!p) {
            c->failed = EBB_NOMEM;
            return false;
        }
        c->mask_of = p;
        p[c->n_known++] = NO_MASK;
    }
    return true;
}

/* The oldest mask is replaced. */
static uint32_t take_mask(ebb_constraint *c, uint32_t state)
{
    uint32_t i = c->next_mask;

    c->next_mask = (i + 1) % c->n_masks;
    if (c->mask_states[i])
        c->mask_of[c->mask_states[i]] = NO_MASK;
    c->mask_states[i] = state;
    c->mask_of[state] = i;
    return i;
}

static void drop_mask(ebb_constraint *c, uint32_t state)
{
    c->mask_states[c->mask_of[state]] = 0;
    c->mask_of[state] = COSTLY;
}

static bool is_known_state(const ebb_constraint *c, ebb_constraint_state at)
{
    return at.epoch == c->epoch && at.state != ENDED && at.state < ebb_matcher_n_states(c->m);
}

const uint64_t *ebb_constraint_mask(ebb_constraint *c, ebb_constraint_state at, size_t *n_tokens)
{
    uint64_t *mask;

    *n_tokens = c->trie->n_vocab;
    if (!is_known_state(c, at) || at.state == EBB_STATE_NONE || c->failed != EBB_OK || !know_states(c))
        return NULL;
    if (c->mask_of[at.state] < COSTLY)
        return c->masks + c->mask_of[at.state] * c->n_words;
    c->met_costly = c->mask_of[at.state] == COSTLY;
    if (c->met_costly)
        return NULL;
    mask = c->masks + take_mask(c, at.state) * c->n_words;
    fill_mask(c, at.state, mask);
    if (ebb_matcher_check(c->m, NULL) == EBB_OK)
        return mask;
    drop_mask(c, at.state);
    return NULL;
}

bool ebb_constraint_wants_mask(ebb_constraint *c, ebb_constraint_state at)
{
    uint32_t was;

    if (!is_known_state(c, at) || !know_states(c))
        return true;                             /* and gets none */
    was = c->mask_of[at.state];
    if (was == NO_MASK)
        c->mask_of[at.state] = SEEN;
    return was != NO_MASK && was != COSTLY;
}

/* -- Going on ----------------------------------------------------------------------------- */

static bool ends_turn(const ebb_token_trie *t, ebb_token id)
{
    for (uint32_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id)
            return true;
    return false;
}

bool ebb_constraint_accept(ebb_constraint *c, ebb_constraint_state *at, ebb_token id)
{
    const ebb_token_trie *t = c->trie;
    uint32_t state = at->state;

    if (!is_known_state(c, *at) || id < 0 || (uint32_t)id >= t->n_vocab)
        return false;
    if (ends_turn(t, id)) {
        if (!ebb_matcher_may_end(c->m, state))
            return false;
        at->state = ENDED;
        return true;
    }
    if (t->at[id] == t->at[id + 1])
        return false;
    for (uint32_t i = t->at[id]; i < t->at[id + 1]; i++)
        state = ebb_matcher_next(c->m, state, (uint8_t)t->text[i]);
    if (state == EBB_STATE_NONE)
        return false;
    at->state = state;
    return true;
}

bool ebb_constraint_allows(ebb_constraint *c, ebb_constraint_state at, ebb_token id)
{
    return ebb_constraint_accept(c, &at, id);
}

void ebb_constraint_settle(ebb_constraint *c, ebb_constraint_state *at)
{
    if (!is_known_state(c, *at) || ebb_matcher_bytes(c->m) < FORGET_BYTES)
        return;
    ebb_matcher_limit(c->m, UINT64_MAX);
    at->state = ebb_matcher_forget(c->m, at->state);
    at->epoch = ++c->epoch;
    memset(c->mask_states, 0, c->n_masks * sizeof *c->mask_states);
    c->n_known = 0;
    c->start = ebb_matcher_start(c->m);
}

ebb_status ebb_constraint_check(const ebb_constraint *c, ebb_constraint_state at, ebb_error *err)
{
    ebb_status st = ebb_matcher_check(c->m, err);

    if (st != EBB_OK)
        return st;
    if (c->met_costly)
        return EBB_FAIL(err, EBB_LIMIT, "the grammar is too ambiguous: it takes too long to find what can follow; "
                        "write what its alternatives have in common once");
    if (c->failed != EBB_OK)
        return EBB_FAIL(err, c->failed, "no memory to follow the grammar");
    if (at.state == ENDED || (is_known_state(c, at) && ebb_matcher_may_end(c->m, at.state)))
        return EBB_OK;
    return EBB_FAIL(err, EBB_UNSUPPORTED, "the grammar requires more text, but no token of the model fits it");
}
