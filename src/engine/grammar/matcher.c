/* Following a grammar: states, found once (matcher.h). */
#include "grammar/matcher.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum {
    MOST_PAIRS = 4096,           /* of one state */
    MOST_VISITS = 65536,         /* steps reached by one byte */
    MOST_BYTES = 96 << 20,       /* of memory */
    BYTES_A_STEP = 16,           /* of a state, that count as a step's work */
};

#define UNKNOWN UINT32_MAX       /* where a byte leads; a stack that could not be made */

/* A step that reads bytes or is returned to, and the stack below it: 0, or an index of stacks. */
typedef struct pair { uint32_t step, stack; } pair;

typedef struct state_row {
    uint32_t first, n;           /* of pairs, ascending */
    bool     may_end;
} state_row;

/* Numbers by content: an open hash table whose entries are n + 1. */
typedef struct number_table {
    uint32_t *at;
    size_t    n, cap;            /* cap: a power of two, or 0 */
} number_table;

struct ebb_matcher {
    ebb_grammar *g;
    pair        *stacks;         /* [0] is the empty one; the stack below has a lower number */
    size_t       n_stacks, cap_stacks;
    number_table stack_index;
    pair        *pairs;          /* of all states */
    size_t       n_pairs, cap_pairs;
    state_row   *states;         /* [0] is NONE */
    size_t       n_states, cap_states;
    number_table state_index;
    uint32_t    *next;           /* [n_states][n_classes] */
    size_t       cap_next;
    /* of the current byte */
    pair        *found, *todo;   /* [MOST_PAIRS], [MOST_VISITS] */
    size_t       n_found, n_todo, n_seen;
    bool         may_end;
    pair        *seen;           /* hash table, [2 * MOST_VISITS]; */
    uint32_t    *seen_turn;      /* its entries of this turn */
    uint32_t     turn;
    uint64_t     work, most_work;        /* so far, and before it is LIMIT */
    ebb_status   failed;
    const char  *why;            /* of LIMIT */
};

/* -- Hashes ----------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static uint64_t hash_pair(pair p)
{
    return mix(mix(0x243F6A8885A308D3u, p.step), p.stack);
}

static uint64_t hash_state(const pair *p, size_t n, bool may_end)
{
    uint64_t h = may_end;

    for (size_t i = 0; i < n; i++)
        h = mix(h, (uint64_t)p[i].step << 32 | p[i].stack);
    return mix(h, n);
}

static uint64_t hash_of(const ebb_matcher *m, const number_table *x, uint32_t number)
{
    const state_row *l = &m->states[number];

    return x == &m->stack_index ? hash_pair(m->stacks[number]) : hash_state(m->pairs + l->first, l->n, l->may_end);
}

/* Room for one more. */
static bool grow_index(ebb_matcher *m, number_table *x)
{
    size_t cap = x->cap ? 2 * x->cap : 256;
    uint32_t *at;

    if (2 * x->n < x->cap)
        return true;
    at = calloc(cap, sizeof *at);
    if (!at)
        return false;
    for (size_t i = 0; i < x->cap; i++)
        if (x->at[i]) {
            size_t k = hash_of(m, x, x->at[i] - 1) & (cap - 1);
            while (at[k])
                k = (k + 1) & (cap - 1);
            at[k] = x->at[i];
        }
    free(x->at);
    x->at = at;
    x->cap = cap;
    return true;
}

static uint32_t fail_matcher(ebb_matcher *m, ebb_status how)
{
    if (m->failed == EBB_OK)
        m->failed = how;
    return EBB_STATE_NONE;
}

static void exceed_limit(ebb_matcher *m, const char *why)
{
    if (m->failed == EBB_OK)
        m->why = why;
    fail_matcher(m, EBB_LIMIT);
}

/* So much more work. */
static void spend(ebb_matcher *m, uint64_t work)
{
    m->work += work;
    if (m->work > m->most_work)
        exceed_limit(m, "it takes too long to find what can follow");
}

/* -- Stacks and states that exist once --------------------------------------------------- */

/* The stack with `step` on top; UNKNOWN: it failed. */
static uint32_t push_stack(ebb_matcher *m, uint32_t step, uint32_t below)
{
    pair p = { step, below }, *grown;
    size_t i;

    if (!grow_index(m, &m->stack_index)) {
        fail_matcher(m, EBB_NOMEM);
        return UNKNOWN;
    }
    i = hash_pair(p) & (m->stack_index.cap - 1);
    for (; m->stack_index.at[i]; i = (i + 1) & (m->stack_index.cap - 1)) {
        const pair *known = &m->stacks[m->stack_index.at[i] - 1];
        if (known->step == step && known->stack == below)
            return m->stack_index.at[i] - 1;
    }
    grown = ebb_grow(m->stacks, m->n_stacks, &m->cap_stacks, sizeof *grown);
    if (!grown) {
        fail_matcher(m, EBB_NOMEM);
        return UNKNOWN;
    }
    m->stacks = grown;
    grown[m->n_stacks] = p;
    m->stack_index.n++;
    m->stack_index.at[i] = (uint32_t)++m->n_stacks;
    return (uint32_t)m->n_stacks - 1;
}

static bool reserve_state(ebb_matcher *m, size_t n_pairs)
{
    size_t n_next = (m->n_states + 1) * m->g->n_classes;
    state_row *states = ebb_grow(m->states, m->n_states, &m->cap_states, sizeof *states);

    m->states = states ? states : m->states;
    while (states && m->n_pairs + n_pairs > m->cap_pairs) {
        pair *pairs = ebb_grow(m->pairs, m->cap_pairs, &m->cap_pairs, sizeof *pairs);
        if (!pairs)
            return false;
        m->pairs = pairs;
    }
    while (states && n_next > m->cap_next) {
        uint32_t *next = ebb_grow(m->next, m->cap_next, &m->cap_next, sizeof *next);
        if (!next)
            return false;
        m->next = next;
    }
    return states != NULL;
}

static uint32_t add_state(ebb_matcher *m, const pair *p, size_t n, bool may_end, size_t slot)
{
    uint32_t *next;

    if (ebb_matcher_bytes(m) > MOST_BYTES) {
        exceed_limit(m, "what can follow takes too much memory");
        return EBB_STATE_NONE;
    }
    if (!reserve_state(m, n))
        return fail_matcher(m, EBB_NOMEM);
    if (n)
        memcpy(m->pairs + m->n_pairs, p, n * sizeof *p);
    m->states[m->n_states] = (state_row){ .first = (uint32_t)m->n_pairs, .n = (uint32_t)n, .may_end = may_end };
    next = m->next + m->n_states * m->g->n_classes;
    memset(next, 0xFF, m->g->n_classes * sizeof *next);
    m->n_pairs += n;
    m->state_index.n++;
    m->state_index.at[slot] = (uint32_t)++m->n_states;
    return (uint32_t)m->n_states - 1;
}

/* The state of these pairs, ascending. */
static uint32_t find_state(ebb_matcher *m, const pair *p, size_t n, bool may_end)
{
    size_t i;

    if (n == 0 && !may_end)
        return EBB_STATE_NONE;
    if (!grow_index(m, &m->state_index))
        return fail_matcher(m, EBB_NOMEM);
    i = hash_state(p, n, may_end) & (m->state_index.cap - 1);
    for (; m->state_index.at[i]; i = (i + 1) & (m->state_index.cap - 1)) {
        const state_row *l = &m->states[m->state_index.at[i] - 1];
        if (l->n == n && l->may_end == may_end && (n == 0 || memcmp(m->pairs + l->first, p, n * sizeof *p) == 0))
            return m->state_index.at[i] - 1;
    }
    return add_state(m, p, n, may_end, i);
}

/* -- What can follow ---------------------------------------------------------------------- */

static void begin_search(ebb_matcher *m)
{
    m->n_found = m->n_todo = m->n_seen = 0;
    m->may_end = false;
    if (++m->turn == 0) {
        memset(m->seen_turn, 0, 2 * MOST_VISITS * sizeof *m->seen_turn);
        m->turn = 1;
    }
}

/* This step is reached with this stack. */
static void reach(ebb_matcher *m, uint32_t step, uint32_t stack)
{
    pair p = { step, stack };
    size_t i;

    if (step == EBB_GRAMMAR_NONE || !m->g->steps[step].is_live || m->failed != EBB_OK)
        return;
    i = hash_pair(p) & (2 * MOST_VISITS - 1);
    for (; m->seen_turn[i] == m->turn; i = (i + 1) & (2 * MOST_VISITS - 1))
        if (m->seen[i].step == step && m->seen[i].stack == stack)
            return;
    if (m->n_seen == MOST_VISITS) {
        exceed_limit(m, "there are too many ways to go on");
        return;
    }
    m->n_seen++;
    m->seen[i] = p;
    m->seen_turn[i] = m->turn;
    m->todo[m->n_todo++] = p;
    spend(m, 1);
}

static void call_rule(ebb_matcher *m, const ebb_step *s, uint32_t stack)
{
    if (!m->g->steps[m->g->rules[s->a].start].is_live || !m->g->steps[s->b].is_live)
        return;
    if (!m->g->steps[s->b].is_tail)              /* the rule may be empty: its caller goes on */
        stack = push_stack(m, s->b, stack);
    if (stack != UNKNOWN)
        reach(m, m->g->rules[s->a].start, stack);
}

static void end_rule(ebb_matcher *m, uint32_t stack)
{
    if (stack == 0)
        m->may_end = true;
    else
        reach(m, m->stacks[stack].step, m->stacks[stack].stack);
}

static void follow_steps(ebb_matcher *m)
{
    while (m->n_todo > 0 && m->failed == EBB_OK) {
        pair p = m->todo[--m->n_todo];
        const ebb_step *s = &m->g->steps[p.step];

        switch ((ebb_step_kind)s->kind) {
        case EBB_STEP_END: end_rule(m, p.stack); break;
        case EBB_STEP_CALL: call_rule(m, s, p.stack); break;
        case EBB_STEP_FORK:
            reach(m, s->a, p.stack);
            reach(m, s->b, p.stack);
            break;
        case EBB_STEP_BYTES:
            if (m->n_found == MOST_PAIRS)
                exceed_limit(m, "there are too many ways to go on");
            else
                m->found[m->n_found++] = p;
            break;
        }
    }
}

static int compare_pairs(const void *a, const void *b)
{
    const pair *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* What sorting n pairs takes in time, and a state of them in memory, in steps. */
static uint64_t state_work(const ebb_matcher *m, size_t n)
{
    size_t bytes = n * sizeof *m->found + m->g->n_classes * sizeof *m->next;

    return n * (size_t)(64 - __builtin_clzll(n | 1)) / 2 + bytes / BYTES_A_STEP;
}

static uint32_t end_search(ebb_matcher *m)
{
    follow_steps(m);
    spend(m, state_work(m, m->n_found));
    if (m->failed != EBB_OK)
        return EBB_STATE_NONE;
    qsort(m->found, m->n_found, sizeof *m->found, compare_pairs);
    return find_state(m, m->found, m->n_found, m->may_end);
}

static uint32_t read_byte(ebb_matcher *m, uint32_t from, uint8_t byte)
{
    begin_search(m);
    for (uint32_t i = 0; i < m->states[from].n && m->failed == EBB_OK; i++) {
        pair p = m->pairs[m->states[from].first + i];
        const ebb_step *s = &m->g->steps[p.step];
        const ebb_byte_range *r = &m->g->ranges[s->a];

        for (uint32_t k = 0; k < s->b; k++)
            if (byte >= r[k].first && byte <= r[k].last)
                reach(m, r[k].to, p.stack);
        spend(m, s->b);
    }
    return end_search(m);
}

uint32_t ebb_matcher_next(ebb_matcher *m, uint32_t state, uint8_t byte)
{
    size_t at = state * (size_t)m->g->n_classes + m->g->class_of[byte];
    uint32_t to = m->next[at];

    if (to != UNKNOWN || m->failed != EBB_OK)
        return to != UNKNOWN ? to : EBB_STATE_NONE;
    to = read_byte(m, state, byte);
    if (m->failed == EBB_OK)
        m->next[at] = to;
    return to;
}

uint32_t ebb_matcher_start(ebb_matcher *m)
{
    begin_search(m);
    reach(m, m->g->rules[m->g->root].start, 0);
    return end_search(m);
}

bool ebb_matcher_may_end(const ebb_matcher *m, uint32_t state) { return m->states[state].may_end; }
size_t ebb_matcher_n_states(const ebb_matcher *m) { return m->n_states; }

void ebb_matcher_limit(ebb_matcher *m, uint64_t work)
{
    m->most_work = work < UINT64_MAX - m->work ? m->work + work : UINT64_MAX;
    if (m->failed == EBB_LIMIT)
        m->failed = EBB_OK;
}

size_t ebb_matcher_bytes(const ebb_matcher *m)
{
    return (m->n_stacks + m->n_pairs) * sizeof(pair) +
           m->n_states * (sizeof(state_row) + m->g->n_classes * sizeof *m->next);
}

ebb_status ebb_matcher_check(const ebb_matcher *m, ebb_error *err)
{
    if (m->failed == EBB_LIMIT)
        return EBB_FAIL(err, EBB_LIMIT, "the grammar is too ambiguous: %s; write what its alternatives have in common "
                        "once", m->why);
    if (m->failed != EBB_OK)
        return EBB_FAIL(err, m->failed, "no memory to follow the grammar");
    return EBB_OK;
}

/* -- Coming, forgetting, going -------------------------------------------------------------- */

/* The empty stack and the state where nothing follows, which are in no index. */
static bool init_states(ebb_matcher *m)
{
    m->n_stacks = m->n_states = 1;
    m->n_pairs = 0;
    m->stacks[0] = (pair){ 0, 0 };
    m->states[0] = (state_row){ 0, 0, false };
    memset(m->next, 0, m->g->n_classes * sizeof *m->next);
    m->stack_index.n = m->state_index.n = 0;
    if (m->stack_index.at)
        memset(m->stack_index.at, 0, m->stack_index.cap * sizeof *m->stack_index.at);
    if (m->state_index.at)
        memset(m->state_index.at, 0, m->state_index.cap * sizeof *m->state_index.at);
    return true;
}

ebb_matcher *ebb_matcher_new(const ebb_grammar *g)
{
    ebb_matcher *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->g = ebb_grammar_share(g);
    m->most_work = UINT64_MAX;
    m->stacks = ebb_grow(NULL, 0, &m->cap_stacks, sizeof *m->stacks);
    m->found = malloc(MOST_PAIRS * sizeof *m->found);
    m->todo = malloc(MOST_VISITS * sizeof *m->todo);
    m->seen = malloc(2 * MOST_VISITS * sizeof *m->seen);
    m->seen_turn = calloc(2 * MOST_VISITS, sizeof *m->seen_turn);
    if (!m->stacks || !m->found || !m->todo || !m->seen || !m->seen_turn || !reserve_state(m, 0) || !init_states(m)) {
        ebb_matcher_free(m);
        return NULL;
    }
    return m;
}

void ebb_matcher_free(ebb_matcher *m)
{
    if (!m)
        return;
    ebb_grammar_free(m->g);
    free(m->stacks);
    free(m->stack_index.at);
    free(m->pairs);
    free(m->states);
    free(m->state_index.at);
    free(m->next);
    free(m->found);
    free(m->todo);
    free(m->seen);
    free(m->seen_turn);
    free(m);
}

/* Which stacks the state needs; what is below a stack has a lower number.  NULL: no memory. */
static bool *mark_stacks(const ebb_matcher *m, const state_row *l)
{
    bool *is_used = calloc(m->n_stacks, sizeof *is_used);

    if (!is_used)
        return NULL;
    for (uint32_t i = 0; i < l->n; i++)
        is_used[m->pairs[l->first + i].stack] = true;
    for (size_t i = m->n_stacks; i-- > 1;)
        if (is_used[i])
            is_used[m->stacks[i].stack] = true;
    return is_used;
}

/* Push the marked ones again, with new numbers in number[]. */
static bool renumber_stacks(ebb_matcher *m, const pair *old, size_t n, const bool *is_used, uint32_t *number)
{
    number[0] = 0;
    for (size_t i = 1; i < n; i++)
        if (is_used[i] && (number[i] = push_stack(m, old[i].step, number[old[i].stack])) == UNKNOWN)
            return false;
    return true;
}

uint32_t ebb_matcher_forget(ebb_matcher *m, uint32_t state)
{
    state_row kept = m->states[state];
    size_t n_stacks = m->n_stacks;
    bool *is_used = mark_stacks(m, &kept);
    pair *pairs = malloc((kept.n + 1) * sizeof *pairs), *stacks = malloc(n_stacks * sizeof *stacks);
    uint32_t *number = calloc(n_stacks, sizeof *number), to = EBB_STATE_NONE;

    if (is_used && pairs && stacks && number) {
        if (kept.n)
            memcpy(pairs, m->pairs + kept.first, kept.n * sizeof *pairs);
        memcpy(stacks, m->stacks, n_stacks * sizeof *stacks);
        init_states(m);
        if (renumber_stacks(m, stacks, n_stacks, is_used, number)) {
            for (uint32_t i = 0; i < kept.n; i++)
                pairs[i].stack = number[pairs[i].stack];
            qsort(pairs, kept.n, sizeof *pairs, compare_pairs);
            to = find_state(m, pairs, kept.n, kept.may_end);
        }
    } else {
        fail_matcher(m, EBB_NOMEM);
    }
    free(is_used);
    free(pairs);
    free(stacks);
    free(number);
    return to;
}

ebb_status ebb_grammar_match(const ebb_grammar *g, const char *text, size_t n, ebb_match *out, ebb_error *err)
{
    ebb_matcher *m = ebb_matcher_new(g);
    uint32_t state;
    ebb_status st;

    *out = EBB_MATCH_NONE;
    if (!m)
        return EBB_FAIL(err, EBB_NOMEM, "no memory to follow the grammar");
    state = ebb_matcher_start(m);
    for (size_t i = 0; i < n && state != EBB_STATE_NONE; i++) {
        state = ebb_matcher_next(m, state, (uint8_t)text[i]);
        if (ebb_matcher_bytes(m) > MOST_BYTES / 4)
            state = ebb_matcher_forget(m, state);
    }
    if (state != EBB_STATE_NONE)
        *out = ebb_matcher_may_end(m, state) ? EBB_MATCH_WHOLE : EBB_MATCH_PREFIX;
    st = ebb_matcher_check(m, err);
    ebb_matcher_free(m);
    return st;
}
