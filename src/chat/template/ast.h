/* template/ast.h - tokens and the syntax tree. */
#ifndef EBB_TEMPLATE_AST_H
#define EBB_TEMPLATE_AST_H
#include "template/value.h"

/* -- Tokens ---------------------------------------------------------------------- */
typedef enum tpl_token_type {
    TPL_T_DATA,                  /* text between tags, white space control applied */
    TPL_T_PRINT, TPL_T_PRINT_END, TPL_T_TAG, TPL_T_TAG_END,       /* {{ }} {% %} */
    TPL_T_NAME, TPL_T_STRING, TPL_T_INT, TPL_T_FLOAT,
    TPL_T_OP,
    TPL_T_END,
} tpl_token_type;

/* One or two characters of an operator as a number. */
#define TPL_OP(a, b) ((unsigned)(a) | (unsigned)(b) << 8)

typedef struct tpl_token {
    tpl_token_type type;
    unsigned       op;           /* TPL_T_OP */
    uint32_t       line;
    const char    *p;            /* the source text; a string without its quotes, escapes as they
                                  * stand */
    size_t         n;
} tpl_token;

typedef struct tpl_tokens { tpl_token *v; size_t n, cap; } tpl_tokens;

/* All tokens of a source whose line ends are LF.  The tokens point into it. */
void ebb_tpl_lex(tpl_vm *vm, const char *src, size_t n, tpl_tokens *out);

/* -- The tree ----------------------------------------------------------------------
 * Which fields a node uses:                                                       */
typedef enum tpl_node_type {
    /* expressions */
    TPL_N_CONST,                 /* val */
    TPL_N_NAME,                  /* name */
    TPL_N_LIST, TPL_N_TUPLE,     /* kids */
    TPL_N_DICT,                  /* kids: key, value, key, value ... */
    TPL_N_CONCAT,                /* kids joined by ~ */
    TPL_N_BINARY,                /* op, a, b */
    TPL_N_NEG, TPL_N_POS, TPL_N_NOT,      /* a */
    TPL_N_AND, TPL_N_OR,         /* a, b */
    TPL_N_COMPARE,               /* a; kids with their op */
    TPL_N_OPERAND,               /* op, a: a kid of COMPARE; ops: < <= == != > >= and 'i' in, 'n'
                                  * not in */
    TPL_N_COND,                  /* a if b else c; c may be NULL */
    TPL_N_ATTR,                  /* a.name */
    TPL_N_ITEM,                  /* a[b] */
    TPL_N_SLICE,                 /* a[b:c:d], any of them NULL */
    TPL_N_CALL,                  /* a(args) */
    TPL_N_FILTER,                /* a | name(args); a NULL: the body of a block; fn NULL: unknown */
    TPL_N_TEST,                  /* a is name(args); fn NULL: unknown */
    /* statements */
    TPL_N_BLOCK,                 /* kids */
    TPL_N_TEXT,                  /* val: a string printed as it is */
    TPL_N_PRINT,                 /* a */
    TPL_N_IF,                    /* if a: b; else c (a BLOCK or, for elif, an IF), c may be NULL */
    TPL_N_FOR,                   /* for a in b if c: d; else e; c, e may be NULL; op 1: recursive */
    TPL_N_SET,                   /* a = b */
    TPL_N_SET_BLOCK,             /* a = body c through the filters b (NULL: none) */
    TPL_N_NSREF,                 /* target name.val */
    TPL_N_MACRO,                 /* name, params in args (names, defaults in named), body a */
    TPL_N_CALL_BLOCK,            /* call b with the macro a as caller */
    TPL_N_FILTER_BLOCK,          /* filters b over body a */
    TPL_N_WITH,                  /* kids: target, value ...; body a */
    TPL_N_SCOPE,                 /* body a in a scope of its own */
    TPL_N_BREAK, TPL_N_CONTINUE,
} tpl_node_type;

typedef struct tpl_node tpl_node;

typedef struct tpl_args {
    tpl_node **pos;
    tpl_str  **names;
    tpl_node **named;
    size_t     n_pos, n_named;
    tpl_node  *star, *star_star; /* *x, **x; may be NULL */
} tpl_args;

struct tpl_node {
    tpl_node_type type;
    unsigned      op;
    uint32_t      line;
    bool          takes_more, takes_named;       /* a macro that reads varargs, kwargs */
    tpl_node     *a, *b, *c, *d, *e;
    tpl_node    **kids;
    size_t        n_kids;
    tpl_str      *name;
    tpl_val       val;
    tpl_args     *args;
    const tpl_builtin *fn;
};

/* The tree of a source, in the machine's heap.  Fails as everything in the machine. */
tpl_node *ebb_tpl_parse(tpl_vm *vm, const char *src, size_t n);

#endif
