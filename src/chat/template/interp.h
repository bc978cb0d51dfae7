/* template/interp.h - the evaluator: eval.c runs statements, expr.c computes
 * expressions, operators.c is the arithmetic, access.c finds attributes and items,
 * call.c binds arguments. */
#ifndef EBB_TEMPLATE_INTERP_H
#define EBB_TEMPLATE_INTERP_H
#include "template/ast.h"

/* The variable `loop`. */
typedef struct tpl_loop {
    const tpl_node *node;        /* the `for` */
    tpl_scope *scope;            /* around it */
    tpl_list  *items;            /* filtered */
    size_t     at, depth;        /* both from 0 */
    tpl_list  *changed;          /* what changed() saw last, or NULL */
} tpl_loop;

typedef struct tpl_macro { const tpl_node *node; tpl_scope *scope; } tpl_macro;

/* -- Statements ---------------------------------------------------------------------- */
typedef enum tpl_flow { TPL_GO, TPL_STOP, TPL_NEXT } tpl_flow;   /* STOP, NEXT: break, continue */
tpl_flow ebb_tpl_exec(tpl_vm *vm, const tpl_node *n);
/* Run a block with its output in a string. */
tpl_str *ebb_tpl_capture(tpl_vm *vm, const tpl_node *block);
/* The output of one pass of a `for` over `items`; depth from 0. */
tpl_str *ebb_tpl_loop_again(tpl_vm *vm, const tpl_loop *loop, tpl_val items);

/* Names: a scope of the caller's within `up`; set in the innermost one; looked up outwards,
 * undefined if there is none. */
void    ebb_tpl_scope_push(tpl_vm *vm, tpl_scope *scope, tpl_scope *up);
void    ebb_tpl_scope_set(tpl_vm *vm, const tpl_str *name, tpl_val v);
tpl_val ebb_tpl_lookup(tpl_vm *vm, tpl_str *name);

/* -- Expressions ---------------------------------------------------------------------- */
tpl_val ebb_tpl_eval(tpl_vm *vm, const tpl_node *n);
/* Filters of a chain whose innermost input is `v`. */
tpl_val ebb_tpl_filter_chain(tpl_vm *vm, const tpl_node *filter, tpl_val v);
tpl_val ebb_tpl_binary(tpl_vm *vm, unsigned op, tpl_val a, tpl_val b);
tpl_val ebb_tpl_negate(tpl_vm *vm, tpl_val v);
tpl_val ebb_tpl_attr(tpl_vm *vm, tpl_val v, tpl_str *name);      /* v.name */
tpl_val ebb_tpl_item(tpl_vm *vm, tpl_val v, tpl_val key);        /* v[key] */
/* v[bounds]; bounds: start, stop, step, TPL_NONE where not given. */
tpl_val ebb_tpl_slice(tpl_vm *vm, tpl_val v, const tpl_val bounds[3]);
/* "a.b.0" from v, as filters take it; `fallback`, if given, stands in for what is
 * undefined on the way. */
tpl_val ebb_tpl_path(tpl_vm *vm, tpl_val v, tpl_val path, tpl_val fallback);

/* -- Calls ------------------------------------------------------------------------------ */
/* Args may be NULL. */
void    ebb_tpl_eval_args(tpl_vm *vm, const tpl_args *args, tpl_call *out);
tpl_val ebb_tpl_call(tpl_vm *vm, tpl_val callee, const tpl_call *call);
tpl_val ebb_tpl_call_builtin(tpl_vm *vm, const tpl_builtin *fn, tpl_val self, const tpl_call *call);

#endif
