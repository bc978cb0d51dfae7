/* grammar/automaton.h - a grammar compiled: a pushdown automaton over the bytes of UTF-8.
 *
 * Every rule is a graph of steps from its start to END; CALL goes through another rule and comes
 * back to a step.  So what an automaton remembers is a step and the stack of steps that calls come
 * back to (matcher.h).  Built from the syntax tree backwards, each part knowing what follows. */
#ifndef EBB_GRAMMAR_AUTOMATON_H
#define EBB_GRAMMAR_AUTOMATON_H
#include <stdatomic.h>
#include <stdint.h>

#include "ebb/grammar.h"

#define EBB_GRAMMAR_NONE UINT32_MAX

typedef enum ebb_step_kind {
    EBB_STEP_END,                /* of the rule */
    EBB_STEP_FORK,               /* to a and to b, which may be NONE; reads nothing */
    EBB_STEP_BYTES,              /* by one of the b ranges from `a` on */
    EBB_STEP_CALL,               /* through rule a, then to b */
} ebb_step_kind;

typedef struct ebb_step {
    uint8_t  kind;
    bool     is_live;            /* the end of the rule can be reached from here */
    bool     is_tail;            /* END, or leads there and nowhere else without reading */
    uint32_t a, b;
} ebb_step;

typedef struct ebb_byte_range {
    uint8_t  first, last;
    uint32_t to;
} ebb_byte_range;

typedef struct ebb_rule {
    char     name[64];           /* cut off if longer: for messages */
    uint32_t line;               /* where it is defined; 0: it is not */
    uint32_t start;
    uint32_t used_line, used_column; /* where it is first called */
} ebb_rule;

struct ebb_grammar {
    atomic_uint     n_owners;
    ebb_step       *steps;
    size_t          n_steps, cap_steps;
    ebb_byte_range *ranges;
    size_t          n_ranges, cap_ranges;
    ebb_rule       *rules;
    size_t          n_rules, cap_rules;
    uint32_t        root;        /* a rule */
    uint8_t         class_of[256];       /* bytes that no range tells apart are of one class */
    uint32_t        n_classes;
};

ebb_grammar *ebb_grammar_share(const ebb_grammar *g);    /* another owner, for ebb_grammar_free */

/* A new step or range.  NONE: the grammar is too large, or there is no memory (ebb_grammar_is_full
 * tells). */
uint32_t ebb_grammar_add_step(ebb_grammar *g, ebb_step_kind kind, uint32_t a, uint32_t b);
bool ebb_grammar_is_full(const ebb_grammar *g);

/* A step that reads one character of the n ranges [2i] .. [2i + 1] of code points, ascending and
 * apart, and goes to `to`.  NONE as above. */
uint32_t ebb_grammar_add_chars(ebb_grammar *g, const uint32_t *ranges, size_t n, uint32_t to);
/* The same for one byte. */
uint32_t ebb_grammar_add_byte(ebb_grammar *g, uint8_t byte, uint32_t to);

/* It grows no more: give back what memory it has beyond that. */
void ebb_grammar_shrink(ebb_grammar *g);

/* All rules are built: find what can never end, refuse what begins with itself, and sort bytes
 * into classes.  Errors: FORMAT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_grammar_finish(ebb_grammar *g, ebb_error *err);

#endif
