/* A syntax tree as steps: each part is built in front of what follows it (gbnf.h). */
#include "grammar/gbnf.h"

#include <stdlib.h>

/* Parts that are built, of which repetitions make many: an empty one costs time, too. */
enum { MOST_PARTS = 1 << 22 };

typedef struct builder {
    const ebb_gbnf *t;
    ebb_grammar    *g;
    size_t          n_parts;
} builder;

static uint32_t build_part(builder *b, uint32_t node, uint32_t to);

static uint32_t build_text(builder *b, const ebb_gbnf_node *n, uint32_t to)
{
    for (uint32_t i = n->n; i-- > 0 && to != EBB_GRAMMAR_NONE;)
        to = ebb_grammar_add_byte(b->g, (uint8_t)b->t->text[n->first + i], to);
    return to;
}

/* The children are in order and are built from the last one on; their number is that of the text's words at most. */
static uint32_t build_sequence(builder *b, const ebb_gbnf_node *n, uint32_t to)
{
    size_t n_children = 0, i = 0;
    uint32_t *children;

    for (uint32_t c = n->first; c != EBB_GRAMMAR_NONE; c = b->t->nodes[c].next)
        n_children++;
    children = malloc((n_children + 1) * sizeof *children);
    if (!children)
        return EBB_GRAMMAR_NONE;
    for (uint32_t c = n->first; c != EBB_GRAMMAR_NONE; c = b->t->nodes[c].next)
        children[i++] = c;
    while (i-- > 0 && to != EBB_GRAMMAR_NONE)
        to = build_part(b, children[i], to);
    free(children);
    return to;
}

static uint32_t build_choice(builder *b, const ebb_gbnf_node *n, uint32_t to)
{
    uint32_t way = EBB_GRAMMAR_NONE;

    for (uint32_t c = n->first; c != EBB_GRAMMAR_NONE; c = b->t->nodes[c].next) {
        uint32_t entry = build_part(b, c, to);
        if (entry == EBB_GRAMMAR_NONE)
            return entry;
        way = way == EBB_GRAMMAR_NONE ? entry : ebb_grammar_add_step(b->g, EBB_STEP_FORK, entry, way);
        if (way == EBB_GRAMMAR_NONE)
            return way;
    }
    return way;
}

/* Any number of times: back to a fork that goes on or in again. */
static uint32_t build_loop(builder *b, uint32_t child, uint32_t to)
{
    uint32_t fork = ebb_grammar_add_step(b->g, EBB_STEP_FORK, EBB_GRAMMAR_NONE, to), entry;

    if (fork == EBB_GRAMMAR_NONE)
        return fork;
    entry = build_part(b, child, fork);
    if (entry == EBB_GRAMMAR_NONE)
        return entry;
    if (entry == fork)                           /* nothing, any number of times */
        return to;
    b->g->steps[fork].a = entry;
    return fork;
}

static uint32_t build_repeat(builder *b, const ebb_gbnf_node *n, uint32_t to)
{
    uint32_t end = to;

    if (n->most == EBB_GRAMMAR_NONE)
        to = build_loop(b, n->first, to);
    for (uint32_t i = n->n; n->most != EBB_GRAMMAR_NONE && i < n->most && to != EBB_GRAMMAR_NONE; i++) {
        uint32_t entry = build_part(b, n->first, to);
        if (entry == to || entry == EBB_GRAMMAR_NONE)
            return entry;
        to = ebb_grammar_add_step(b->g, EBB_STEP_FORK, entry, end);
    }
    for (uint32_t i = 0; i < n->n && to != EBB_GRAMMAR_NONE; i++) {
        uint32_t entry = build_part(b, n->first, to);
        if (entry == to)
            break;
        to = entry;
    }
    return to;
}

/* The entry of a step chain that reads `node` and goes to `to`; NONE: too much.  As deep as the tree, which has a
 * limit. */
static uint32_t build_part(builder *b, uint32_t node, uint32_t to)
{
    const ebb_gbnf_node *n = &b->t->nodes[node];

    if (++b->n_parts > MOST_PARTS)
        return EBB_GRAMMAR_NONE;
    switch ((ebb_gbnf_kind)n->kind) {
    case EBB_GBNF_CHARS: return ebb_grammar_add_chars(b->g, b->t->ranges + 2 * (size_t)n->first, n->n, to);
    case EBB_GBNF_TEXT: return build_text(b, n, to);
    case EBB_GBNF_CALL: return ebb_grammar_add_step(b->g, EBB_STEP_CALL, n->first, to);
    case EBB_GBNF_REPEAT: return build_repeat(b, n, to);
    case EBB_GBNF_SEQUENCE: return build_sequence(b, n, to);
    case EBB_GBNF_CHOICE: break;
    }
    return build_choice(b, n, to);
}

ebb_status ebb_gbnf_build(const ebb_gbnf *t, ebb_grammar *g, ebb_error *err)
{
    builder b = { .t = t, .g = g };

    for (size_t i = 0; i < g->n_rules; i++) {
        uint32_t end = ebb_grammar_add_step(g, EBB_STEP_END, EBB_GRAMMAR_NONE, EBB_GRAMMAR_NONE), start;

        start = end == EBB_GRAMMAR_NONE ? end : build_part(&b, t->bodies[i], end);
        if (start == EBB_GRAMMAR_NONE && (ebb_grammar_is_full(g) || b.n_parts > MOST_PARTS))
            return EBB_FAIL(err, EBB_LIMIT, "the grammar is too large at its rule %s (line %u): nested repetitions "
                            "like {1000} are written out", g->rules[i].name, g->rules[i].line);
        if (start == EBB_GRAMMAR_NONE)
            return EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
        g->rules[i].start = start;
    }
    return EBB_OK;
}
