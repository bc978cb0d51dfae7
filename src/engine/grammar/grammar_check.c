/* What must hold of a grammar before it is followed: it can end, and no rule begins with itself (automaton.h). */
#include <stdlib.h>
#include <string.h>

#include "grammar/automaton.h"

/* -- Steps from which something follows -------------------------------------------------- */

/* For each step, its predecessors: pred[first[i]] .. pred[first[i + 1]].  A start has the calls of its rule. */
typedef struct led_by {
    uint32_t *first, *pred;
} led_by;

/* Where a step leads, calls to the rule's start and to what is behind it. */
static size_t n_ways(const ebb_step *s)
{
    return s->kind == EBB_STEP_BYTES ? s->b : s->kind == EBB_STEP_END ? 0 : 2;
}

static uint32_t way(const ebb_grammar *g, const ebb_step *s, size_t i)
{
    if (s->kind == EBB_STEP_BYTES)
        return g->ranges[s->a + i].to;
    if (s->kind == EBB_STEP_CALL && i == 0)
        return g->rules[s->a].start;
    return i == 0 ? s->a : s->b;
}

static bool list_leaders(const ebb_grammar *g, led_by *l)
{
    size_t n = 0;
    uint32_t *fill = calloc(g->n_steps + 2, sizeof *fill);

    for (size_t s = 0; fill && s < g->n_steps; s++)
        for (size_t i = 0; i < n_ways(&g->steps[s]); i++)
            if (way(g, &g->steps[s], i) != EBB_GRAMMAR_NONE) {
                fill[way(g, &g->steps[s], i) + 2]++;
                n++;
            }
    *l = (led_by){ .first = fill, .pred = malloc((n + 1) * sizeof *l->pred) };
    if (!fill || !l->pred)
        return false;
    for (size_t s = 2; s < g->n_steps + 2; s++)
        fill[s] += fill[s - 1];
    for (size_t s = 0; s < g->n_steps; s++)
        for (size_t i = 0; i < n_ways(&g->steps[s]); i++)
            if (way(g, &g->steps[s], i) != EBB_GRAMMAR_NONE)
                l->pred[fill[way(g, &g->steps[s], i) + 1]++] = (uint32_t)s;
    return true;
}

static bool holds(const ebb_grammar *g, const bool *is_true, const ebb_step *s, bool through_bytes)
{
    bool any = false, all = true;

    if (s->kind == EBB_STEP_END)
        return true;
    if (s->kind == EBB_STEP_BYTES && !through_bytes)
        return false;
    for (size_t i = 0; i < n_ways(s); i++) {
        uint32_t to = way(g, s, i);
        bool is = to != EBB_GRAMMAR_NONE && is_true[to];
        any = any || is;
        all = all && is;
    }
    return s->kind == EBB_STEP_CALL ? all : any;
}

/* The steps from which the end of their rule can be reached, reading bytes or not; NULL: no memory. */
static bool *reach_end(const ebb_grammar *g, const led_by *l, bool through_bytes)
{
    bool *is_true = calloc(g->n_steps + 1, sizeof *is_true);
    uint32_t *todo = malloc((g->n_steps + 1) * sizeof *todo);
    size_t n = 0;

    if (!is_true || !todo) {
        free(is_true);
        free(todo);
        return NULL;
    }
    for (size_t s = 0; s < g->n_steps; s++)
        if (g->steps[s].kind == EBB_STEP_END) {
            is_true[s] = true;
            todo[n++] = (uint32_t)s;
        }
    while (n > 0) {
        uint32_t at = todo[--n];
        for (uint32_t i = l->first[at]; i < l->first[at + 1]; i++) {
            uint32_t s = l->pred[i];
            if (!is_true[s] && holds(g, is_true, &g->steps[s], through_bytes)) {
                is_true[s] = true;
                todo[n++] = s;
            }
        }
    }
    free(todo);
    return is_true;
}

/* -- Rules that begin with themselves ------------------------------------------------------ */

typedef struct beginning {
    const ebb_grammar *g;
    const bool *is_empty;        /* steps from which the end is reached without reading */
    uint32_t   *seen_by;         /* steps: the rule (+ 1) that was looked at when this was reached */
    uint32_t   *todo;            /* steps */
    uint8_t    *state;           /* rules: 0 not seen, 1 begun, 2 done */
    uint32_t   *path, *at;       /* rules under way, and how many of their first calls were followed */
    uint32_t   *calls, *first_call; /* rules that begin a rule: calls[first_call[r]] .. [r + 1] */
    size_t      n_calls;
} beginning;

static void reach(beginning *b, uint32_t rule, uint32_t step, size_t *n)
{
    if (step != EBB_GRAMMAR_NONE && b->seen_by[step] != rule + 1) {
        b->seen_by[step] = rule + 1;
        b->todo[(*n)++] = step;
    }
}

/* The rules that can be called before a byte of this one was read.  Every step is of one rule, so all take linear
 * time, and there are no more calls than steps. */
static void list_first_calls(beginning *b, uint32_t rule)
{
    const ebb_grammar *g = b->g;
    size_t n = 0;

    b->first_call[rule] = (uint32_t)b->n_calls;
    reach(b, rule, g->rules[rule].start, &n);
    while (n > 0) {
        const ebb_step *s = &g->steps[b->todo[--n]];
        if (s->kind == EBB_STEP_FORK) {
            reach(b, rule, s->a, &n);
            reach(b, rule, s->b, &n);
        } else if (s->kind == EBB_STEP_CALL) {
            b->calls[b->n_calls++] = s->a;
            if (b->is_empty[g->rules[s->a].start])
                reach(b, rule, s->b, &n);
        }
    }
    b->first_call[rule + 1] = (uint32_t)b->n_calls;
}

/* The rule at which a cycle closes (left recursion); NONE: there is none. */
static uint32_t find_circle(beginning *b)
{
    for (uint32_t r = 0; r < b->g->n_rules; r++) {
        size_t depth = 0;

        if (b->state[r])
            continue;
        b->path[depth] = r;
        b->at[depth++] = b->first_call[r];
        b->state[r] = 1;
        while (depth > 0) {
            uint32_t rule = b->path[depth - 1], next;
            if (b->at[depth - 1] == b->first_call[rule + 1]) {
                b->state[rule] = 2;
                depth--;
                continue;
            }
            next = b->calls[b->at[depth - 1]++];
            if (b->state[next] == 1)
                return next;
            if (b->state[next] == 0) {
                b->state[next] = 1;
                b->path[depth] = next;
                b->at[depth++] = b->first_call[next];
            }
        }
    }
    return EBB_GRAMMAR_NONE;
}

static ebb_status check_beginnings(const ebb_grammar *g, const bool *is_empty, ebb_error *err)
{
    beginning b = {
        .g = g, .is_empty = is_empty, .seen_by = calloc(g->n_steps + 1, sizeof *b.seen_by),
        .todo = malloc((g->n_steps + 1) * sizeof *b.todo), .state = calloc(g->n_rules + 1, sizeof *b.state),
        .path = malloc((g->n_rules + 1) * sizeof *b.path), .at = malloc((g->n_rules + 1) * sizeof *b.at),
        .calls = malloc((g->n_steps + 1) * sizeof *b.calls), .first_call = calloc(g->n_rules + 1, sizeof *b.first_call),
    };
    ebb_status st = EBB_OK;

    if (!b.seen_by || !b.todo || !b.state || !b.path || !b.at || !b.calls || !b.first_call) {
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    } else {
        uint32_t at;
        for (uint32_t r = 0; r < g->n_rules; r++)
            list_first_calls(&b, r);
        at = find_circle(&b);
        if (at != EBB_GRAMMAR_NONE)
            st = EBB_FAIL(err, EBB_FORMAT, "the grammar's rule %s (line %u) begins with itself, which would never "
                          "end: let it read something before it repeats, or use *",
                          g->rules[at].name, g->rules[at].line);
    }
    free(b.seen_by);
    free(b.todo);
    free(b.state);
    free(b.path);
    free(b.at);
    free(b.calls);
    free(b.first_call);
    return st;
}

/* -- Marks and classes ------------------------------------------------------------------- */

/* A fork leads nowhere but to the end if it has one way, or only one that is live. */
static bool is_tail_step(const ebb_grammar *g, uint32_t at)
{
    const ebb_step *s = &g->steps[at];

    while (s->kind == EBB_STEP_FORK && (s->b == EBB_GRAMMAR_NONE || s->a == EBB_GRAMMAR_NONE))
        s = &g->steps[s->a == EBB_GRAMMAR_NONE ? s->b : s->a];
    return s->kind == EBB_STEP_END;
}

/* Two bytes differ if a range begins or ends between them. */
static void sort_bytes(ebb_grammar *g)
{
    bool begins[257] = { true };
    uint32_t class = 0;

    for (size_t i = 0; i < g->n_ranges; i++)
        begins[g->ranges[i].first] = begins[g->ranges[i].last + 1] = true;
    for (uint32_t b = 0; b < 256; b++) {
        if (b > 0 && begins[b])
            class++;
        g->class_of[b] = (uint8_t)class;
    }
    g->n_classes = class + 1;
}

static ebb_status check_end(const ebb_grammar *g, ebb_error *err)
{
    const ebb_rule *root = &g->rules[g->root];

    if (g->steps[root->start].is_live)
        return EBB_OK;
    return EBB_FAIL(err, EBB_FORMAT, "the grammar's rule %s (line %u) can never end: every path through it "
                    "goes on for ever", root->name, root->line);
}

ebb_status ebb_grammar_finish(ebb_grammar *g, ebb_error *err)
{
    led_by l = { 0 };
    bool *is_live = NULL, *is_empty = NULL;
    ebb_status st = EBB_OK;

    if (list_leaders(g, &l)) {
        is_live = reach_end(g, &l, true);
        is_empty = reach_end(g, &l, false);
    }
    if (!is_live || !is_empty)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    for (uint32_t i = 0; st == EBB_OK && i < g->n_steps; i++) {
        g->steps[i].is_live = is_live[i];
        g->steps[i].is_tail = is_tail_step(g, i);
    }
    if (st == EBB_OK)
        st = check_beginnings(g, is_empty, err);
    if (st == EBB_OK)
        st = check_end(g, err);
    if (st == EBB_OK)
        sort_bytes(g);
    free(is_live);
    free(is_empty);
    free(l.first);
    free(l.pred);
    return st;
}
