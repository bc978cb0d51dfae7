/* Expressions: nodes -> values. */
#include "template/builtins.h"
#include "template/interp.h"
#include "template/strings.h"

tpl_val ebb_tpl_lookup(tpl_vm *vm, tpl_str *name)
{
    const tpl_builtin *fn;

    for (const tpl_scope *s = vm->scope; s; s = s->up) {
        ebb_tpl_step(vm, s->n / 8);
        for (size_t i = 0; i < s->n; i++)
            if (ebb_tpl_str_eq(s->vars[i].name, name))
                return s->vars[i].val;
    }
    fn = ebb_tpl_global_find(name);
    return fn ? (tpl_val){ .kind = TPL_BUILTIN, .fn = fn } : ebb_tpl_undef(name);
}

static tpl_list *eval_list(tpl_vm *vm, const tpl_node *n)
{
    tpl_list *l = ebb_tpl_list_new(vm, n->n_kids);

    for (size_t i = 0; i < n->n_kids; i++)
        l->v[l->n++] = ebb_tpl_eval(vm, n->kids[i]);
    return l;
}

static tpl_val eval_dict(tpl_vm *vm, const tpl_node *n)
{
    tpl_dict *d = ebb_tpl_dict_new(vm, n->n_kids / 2);

    for (size_t i = 0; i < n->n_kids; i += 2) {
        tpl_val key = ebb_tpl_eval(vm, n->kids[i]);
        ebb_tpl_dict_set(vm, d, key, ebb_tpl_eval(vm, n->kids[i + 1]));
    }
    return ebb_tpl_of_dict(d);
}

static tpl_val eval_concat(tpl_vm *vm, const tpl_node *n)
{
    tpl_sb sb;

    ebb_tpl_sb_init(&sb, vm);
    ebb_tpl_step(vm, n->n_kids);
    for (size_t i = 0; i < n->n_kids; i++)
        ebb_tpl_sb_str(&sb, ebb_tpl_eval(vm, n->kids[i]));
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

static bool compare_values(tpl_vm *vm, unsigned op, tpl_val a, tpl_val b)
{
    switch (op) {
    case TPL_OP('=', '='): return ebb_tpl_eq(vm, a, b);
    case TPL_OP('!', '='): return !ebb_tpl_eq(vm, a, b);
    case 'i':              return ebb_tpl_contains(vm, b, a);
    case 'n':              return !ebb_tpl_contains(vm, b, a);
    case '<':              return ebb_tpl_cmp(vm, a, b) < 0;
    case TPL_OP('<', '='): return ebb_tpl_cmp(vm, a, b) <= 0;
    case '>':              return ebb_tpl_cmp(vm, a, b) > 0;
    default:               return ebb_tpl_cmp(vm, a, b) >= 0;
    }
}

static tpl_val eval_compare(tpl_vm *vm, const tpl_node *n)
{
    tpl_val left = ebb_tpl_eval(vm, n->a);

    for (size_t i = 0; i < n->n_kids; i++) {
        ebb_tpl_step(vm, 1);
        tpl_val right = ebb_tpl_eval(vm, n->kids[i]->a);
        if (!compare_values(vm, n->kids[i]->op, left, right))
            return ebb_tpl_bool(false);
        left = right;
    }
    return ebb_tpl_bool(true);
}

static tpl_val eval_cond(tpl_vm *vm, const tpl_node *n)
{
    if (ebb_tpl_truth(ebb_tpl_eval(vm, n->b)))
        return ebb_tpl_eval(vm, n->a);
    return n->c ? ebb_tpl_eval(vm, n->c) : ebb_tpl_undef(NULL);
}

static tpl_val eval_slice(tpl_vm *vm, const tpl_node *n)
{
    const tpl_node *part[3] = { n->b, n->c, n->d };
    tpl_val v = ebb_tpl_eval(vm, n->a), bounds[3];

    for (int i = 0; i < 3; i++)
        bounds[i] = part[i] ? ebb_tpl_eval(vm, part[i]) : ebb_tpl_none();
    return ebb_tpl_slice(vm, v, bounds);
}

static tpl_val eval_call(tpl_vm *vm, const tpl_node *n)
{
    tpl_val callee = ebb_tpl_eval(vm, n->a);
    tpl_call call;

    ebb_tpl_eval_args(vm, n->args, &call);
    vm->line = n->line;
    return ebb_tpl_call(vm, callee, &call);
}

/* A filter or a test on `v`. */
static tpl_val apply_builtin(tpl_vm *vm, const tpl_node *n, tpl_val v)
{
    tpl_call call;

    if (!n->fn)
        ebb_tpl_fail(vm, EBB_FORMAT, "there is no %s '%.*s'", n->type == TPL_N_TEST ? "test" : "filter",
                     (int)(n->name->n < 60 ? n->name->n : 60), n->name->p);
    ebb_tpl_eval_args(vm, n->args, &call);
    vm->line = n->line;
    return ebb_tpl_call_builtin(vm, n->fn, v, &call);
}

tpl_val ebb_tpl_filter_chain(tpl_vm *vm, const tpl_node *filter, tpl_val v)
{
    ebb_tpl_enter(vm);
    if (filter->a)
        v = ebb_tpl_filter_chain(vm, filter->a, v);
    v = apply_builtin(vm, filter, v);
    ebb_tpl_leave(vm);
    return v;
}

static tpl_val eval_operator(tpl_vm *vm, const tpl_node *n)
{
    tpl_val a = ebb_tpl_eval(vm, n->a);

    switch (n->type) {
    case TPL_N_NOT:  return ebb_tpl_bool(!ebb_tpl_truth(a));
    case TPL_N_AND:  return ebb_tpl_truth(a) ? ebb_tpl_eval(vm, n->b) : a;
    case TPL_N_OR:   return ebb_tpl_truth(a) ? a : ebb_tpl_eval(vm, n->b);
    case TPL_N_NEG:  return ebb_tpl_negate(vm, a);
    case TPL_N_POS:  return ebb_tpl_negate(vm, ebb_tpl_negate(vm, a));
    case TPL_N_ATTR: return ebb_tpl_attr(vm, a, n->name);
    case TPL_N_ITEM: return ebb_tpl_item(vm, a, ebb_tpl_eval(vm, n->b));
    default:         return ebb_tpl_binary(vm, n->op, a, ebb_tpl_eval(vm, n->b));
    }
}

tpl_val ebb_tpl_eval(tpl_vm *vm, const tpl_node *n)
{
    tpl_val v;

    if (n->type == TPL_N_CONST)
        return n->val;
    vm->line = n->line;
    ebb_tpl_step(vm, 1);
    ebb_tpl_enter(vm);
    switch (n->type) {
    case TPL_N_NAME:    v = ebb_tpl_lookup(vm, n->name); break;
    case TPL_N_LIST:    v = ebb_tpl_of_list(TPL_LIST, eval_list(vm, n)); break;
    case TPL_N_TUPLE:   v = ebb_tpl_of_list(TPL_TUPLE, eval_list(vm, n)); break;
    case TPL_N_DICT:    v = eval_dict(vm, n); break;
    case TPL_N_CONCAT:  v = eval_concat(vm, n); break;
    case TPL_N_COMPARE: v = eval_compare(vm, n); break;
    case TPL_N_COND:    v = eval_cond(vm, n); break;
    case TPL_N_SLICE:   v = eval_slice(vm, n); break;
    case TPL_N_CALL:    v = eval_call(vm, n); break;
    case TPL_N_FILTER: case TPL_N_TEST:
        v = apply_builtin(vm, n, ebb_tpl_eval(vm, n->a)); break;
    default:            v = eval_operator(vm, n); break;
    }
    ebb_tpl_leave(vm);
    return v;
}
