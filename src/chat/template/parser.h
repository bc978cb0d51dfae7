/* template/parser.h - what the two halves of the parser share: parser.c reads
 * statements, parser_expr.c expressions. */
#ifndef EBB_TEMPLATE_PARSER_H
#define EBB_TEMPLATE_PARSER_H
#include "template/ast.h"

typedef struct tpl_parser {
    tpl_vm          *vm;
    const tpl_token *t;          /* the current token; the last is TPL_T_END */
    unsigned         n_loops;    /* around the current statement: break and continue need one */
} tpl_parser;

typedef struct tpl_nodes { tpl_node **v; size_t n, cap; } tpl_nodes;

/* Fail with the line, the token found there and the one expected. */
_Noreturn void ebb_tpl_unexpected(tpl_parser *p, const char *wanted);
/* Nodes live in the machine's heap, and so do lists of them, which grow until they become the kids
 * of a node. */
tpl_node *ebb_tpl_node(tpl_parser *p, tpl_node_type type);
void      ebb_tpl_nodes_add(tpl_parser *p, tpl_nodes *list, tpl_node *node);
void      ebb_tpl_set_kids(tpl_node *node, const tpl_nodes *list);

/* The token at hand: is it this operator or name; pass over it if it is; pass over it or fail (with
 * `text`, how the operator is spelt, in the message). */
bool     ebb_tpl_at_op(const tpl_parser *p, unsigned op);
bool     ebb_tpl_at_name(const tpl_parser *p, const char *name);
bool     ebb_tpl_skip_op(tpl_parser *p, unsigned op);
bool     ebb_tpl_skip_name(tpl_parser *p, const char *name);
void     ebb_tpl_expect_op(tpl_parser *p, unsigned op, const char *text);
tpl_str *ebb_tpl_expect_name(tpl_parser *p);

tpl_node *ebb_tpl_parse_expr(tpl_parser *p,
                             bool with_cond);                   /* with_cond: "x if y else z" */
/* One expression, or a tuple without parentheses.  `in_for`: ends at `recursive`. */
tpl_node *ebb_tpl_parse_tuple(tpl_parser *p, bool with_cond, bool in_for);
/* A chain of filters; `first`: the word before is `filter` or `set`, no "|" yet.
 * The innermost has a == input (NULL: the body of a block). */
tpl_node *ebb_tpl_parse_filters(tpl_parser *p, tpl_node *input, bool first);

#endif
