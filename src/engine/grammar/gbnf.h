/* grammar/gbnf.h - GBNF text as a syntax tree (gbnf.c, gbnf_chars.c), and the tree as steps
 * (gbnf_build.c).
 *
 * The notation, as llama.cpp has it:
 *
 *     name ::= alternatives        a rule; names: letters, digits and dashes; # begins a comment
 *     a b | c                      one behind the other; or
 *     "text"  [a-z]  [^"\\]  .     characters; \n \r \t \\ \" \[ \] \x41 \u0041 \U00000041
 *     name  ( ... )                another rule; a group, in which lines may end
 *     x*  x+  x?  x{3}  x{3,}  x{3,5}
 */
#ifndef EBB_GRAMMAR_GBNF_H
#define EBB_GRAMMAR_GBNF_H
#include "grammar/automaton.h"

typedef enum ebb_gbnf_kind {
    EBB_GBNF_CHARS,              /* one of ranges[first] .., n of them */
    EBB_GBNF_TEXT,               /* text[first] .., n bytes */
    EBB_GBNF_CALL,               /* rule `first` */
    EBB_GBNF_REPEAT,             /* the child `first`, n .. most times */
    EBB_GBNF_SEQUENCE,           /* children from `first` on, by next */
    EBB_GBNF_CHOICE,
} ebb_gbnf_kind;

typedef struct ebb_gbnf_node {
    uint8_t  kind;
    uint16_t depth;              /* of what is below it */
    uint32_t first, n, most;     /* most: NONE without a limit */
    uint32_t next;               /* in its parent; NONE: it is the last */
} ebb_gbnf_node;

typedef struct ebb_gbnf {
    ebb_gbnf_node *nodes;
    size_t         n_nodes, cap_nodes;
    uint32_t      *ranges;       /* pairs of code points, of a node ascending and apart */
    size_t         n_ranges, cap_ranges;
    char          *text;
    size_t         n_text, cap_text;
    uint32_t      *bodies;       /* [rules of the grammar]: nodes */
    size_t         n_bodies, cap_bodies;
} ebb_gbnf;

/* Every rule as steps of g.  Errors: LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_gbnf_build(const ebb_gbnf *t, ebb_grammar *g, ebb_error *err);

#endif
