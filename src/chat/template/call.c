/* Calls: evaluating and binding arguments, macros. */
#include <string.h>

#include "template/interp.h"
#include "template/strings.h"

/* -- Arguments -------------------------------------------------------------------------- */

static void add_star(tpl_vm *vm, const tpl_node *star, tpl_call *call)
{
    tpl_list *more = ebb_tpl_items(vm, ebb_tpl_eval(vm, star));
    tpl_val *pos = ebb_tpl_alloc_array(vm, call->n_pos + more->n, sizeof *pos);

    memcpy(pos, call->pos, call->n_pos * sizeof *pos);
    if (more->n)
        memcpy(pos + call->n_pos, more->v, more->n * sizeof *pos);
    call->pos = pos;
    call->n_pos += more->n;
}

static void add_star_star(tpl_vm *vm, const tpl_node *star, tpl_call *call)
{
    tpl_val v = ebb_tpl_eval(vm, star), *named;
    tpl_str **names;

    if (v.kind != TPL_DICT)
        ebb_tpl_fail(vm, EBB_FORMAT, "** wants a dict, not a %s", ebb_tpl_type_name(v));
    named = ebb_tpl_alloc_array(vm, call->n_named + v.dict->n, sizeof *named);
    names = ebb_tpl_alloc_array(vm, call->n_named + v.dict->n, sizeof *names);
    for (size_t i = 0; i < call->n_named; i++) {
        named[i] = call->named[i];
        names[i] = call->names[i];
    }
    for (size_t i = 0; i < v.dict->n; i++) {
        names[call->n_named] = ebb_tpl_want_str(vm, v.dict->key[i]);
        named[call->n_named++] = v.dict->val[i];
    }
    call->named = named;
    call->names = names;
}

void ebb_tpl_eval_args(tpl_vm *vm, const tpl_args *args, tpl_call *out)
{
    *out = (tpl_call){ 0 };
    if (!args)
        return;
    out->pos = ebb_tpl_alloc_array(vm, args->n_pos, sizeof *out->pos);
    out->named = ebb_tpl_alloc_array(vm, args->n_named, sizeof *out->named);
    out->names = args->names;
    for (size_t i = 0; i < args->n_pos; i++)
        out->pos[out->n_pos++] = ebb_tpl_eval(vm, args->pos[i]);
    for (size_t i = 0; i < args->n_named; i++)
        out->named[out->n_named++] = ebb_tpl_eval(vm, args->named[i]);
    if (args->star)
        add_star(vm, args->star, out);
    if (args->star_star)
        add_star_star(vm, args->star_star, out);
}

/* -- Filters, tests, methods, functions ------------------------------------------------------ */

static tpl_val named_arg(tpl_vm *vm, const tpl_call *call, const char *name, size_t n, size_t *used)
{
    ebb_tpl_step(vm, call->n_named / 8);
    for (size_t i = 0; i < call->n_named; i++)
        if (call->names[i]->n == n && memcmp(call->names[i]->p, name, n) == 0) {
            ++*used;
            return call->named[i];
        }
    return (tpl_val){ .kind = TPL_ABSENT };
}

tpl_val ebb_tpl_call_builtin(tpl_vm *vm, const tpl_builtin *fn, tpl_val self, const tpl_call *call)
{
    tpl_val a[TPL_MAX_PARAMS] = { { .kind = TPL_ABSENT } };
    size_t n = 0, n_used = 0;
    bool rest = false;

    ebb_tpl_step(vm, 1);
    for (const char *p = fn->params; *p && !rest; n++) {
        size_t len = strcspn(p, " !");
        rest = *p == '*';
        if (rest)
            break;
        a[n] = n < call->n_pos ? call->pos[n] : named_arg(vm, call, p, len, &n_used);
        if (p[len] == '!' && a[n].kind == TPL_ABSENT)
            ebb_tpl_fail(vm, EBB_FORMAT, "%s wants the argument '%.*s'", fn->name, (int)len, p);
        p += len + (p[len] == '!');
        p += strspn(p, " ");
    }
    if (!rest && call->n_pos > n)
        ebb_tpl_fail(vm, EBB_FORMAT, "%s takes %zu arguments, not %zu", fn->name, n, call->n_pos);
    if (!rest && n_used < call->n_named)
        ebb_tpl_fail(vm, EBB_FORMAT, "%s does not know an argument by this name", fn->name);
    return fn->fn(vm, self, a, call);
}

/* -- Macros ------------------------------------------------------------------------------------ */

static tpl_str *name_of(tpl_vm *vm, const char *text)
{
    return ebb_tpl_str_new(vm, text, strlen(text), 0);
}

static void bind_more(tpl_vm *vm, const tpl_node *n, const tpl_call *call)
{
    size_t n_params = n->args->n_named, extra = call->n_pos > n_params ? call->n_pos - n_params : 0;
    tpl_list *more;

    if (extra && !n->takes_more)
        ebb_tpl_fail(vm, EBB_FORMAT, "macro '%.*s' takes %zu arguments, not %zu",
                     (int)(n->name->n < 60 ? n->name->n : 60), n->name->p, n_params, call->n_pos);
    if (!n->takes_more)
        return;
    more = ebb_tpl_list_new(vm, extra);
    for (size_t i = 0; i < extra; i++)
        more->v[more->n++] = call->pos[n_params + i];
    ebb_tpl_scope_set(vm, name_of(vm, "varargs"), ebb_tpl_of_list(TPL_TUPLE, more));
}

/* Named arguments that are no parameters: the caller of a call block, or kwargs. */
static void bind_named(tpl_vm *vm, const tpl_node *n, const tpl_call *call)
{
    tpl_dict *rest = ebb_tpl_dict_new(vm, 0);

    for (size_t i = 0; i < call->n_named; i++) {
        bool is_param = false;
        ebb_tpl_step(vm, n->args->n_named / 8);
        for (size_t k = 0; k < n->args->n_named; k++)
            is_param |= ebb_tpl_str_eq(call->names[i], n->args->names[k]);
        if (is_param)
            continue;
        if (ebb_tpl_str_is(call->names[i], "caller"))
            ebb_tpl_scope_set(vm, call->names[i], call->named[i]);
        else if (n->takes_named)
            ebb_tpl_dict_set(vm, rest, ebb_tpl_str(call->names[i]), call->named[i]);
        else
            ebb_tpl_fail(vm, EBB_FORMAT, "macro '%.*s' does not know an argument by this name",
                         (int)(n->name->n < 60 ? n->name->n : 60), n->name->p);
    }
    if (n->takes_named)
        ebb_tpl_scope_set(vm, name_of(vm, "kwargs"), ebb_tpl_of_dict(rest));
}

static void bind_params(tpl_vm *vm, const tpl_node *n, const tpl_call *call)
{
    const tpl_args *params = n->args;

    for (size_t i = 0; i < params->n_named; i++) {
        tpl_str *name = params->names[i];
        size_t used = 0;
        tpl_val v = i < call->n_pos ? call->pos[i] : named_arg(vm, call, name->p, name->n, &used);
        if (v.kind == TPL_ABSENT)
            v = params->named[i] ? ebb_tpl_eval(vm, params->named[i]) : ebb_tpl_undef(name);
        ebb_tpl_scope_set(vm, name, v);
    }
}

static tpl_val call_macro(tpl_vm *vm, const tpl_macro *m, const tpl_call *call)
{
    tpl_scope *outer = vm->scope, *scope = ebb_tpl_alloc(vm, sizeof *scope);
    tpl_str *text;

    ebb_tpl_scope_push(vm, scope, m->scope);
    bind_params(vm, m->node, call);
    bind_more(vm, m->node, call);
    bind_named(vm, m->node, call);
    text = ebb_tpl_capture(vm, m->node->a);
    vm->scope = outer;
    return ebb_tpl_str(text);
}

/* -- Whatever can be called ------------------------------------------------------------------------ */

static tpl_val call_loop(tpl_vm *vm, const tpl_loop *loop, const tpl_call *call)
{
    if (call->n_pos != 1 || call->n_named)
        ebb_tpl_fail(vm, EBB_FORMAT, "loop() takes one argument");
    return ebb_tpl_str(ebb_tpl_loop_again(vm, loop, call->pos[0]));
}

/* A joiner is silent the first time. */
static tpl_val call_joiner(tpl_vm *vm, tpl_cycle *joiner)
{
    bool first = joiner->at++ == 0;

    return first ? ebb_tpl_text(vm, "") : ebb_tpl_str(joiner->sep);
}

tpl_val ebb_tpl_call(tpl_vm *vm, tpl_val callee, const tpl_call *call)
{
    switch (callee.kind) {
    case TPL_MACRO:   return call_macro(vm, callee.macro, call);
    case TPL_BUILTIN: return ebb_tpl_call_builtin(vm, callee.fn, ebb_tpl_none(), call);
    case TPL_METHOD:  return ebb_tpl_call_builtin(vm, callee.bound->fn, callee.bound->self, call);
    case TPL_LOOP:    return call_loop(vm, callee.loop, call);
    case TPL_JOINER:  return call_joiner(vm, callee.cycle);
    case TPL_UNDEF:   ebb_tpl_fail_undef(vm, callee);
    default:
        ebb_tpl_fail(vm, EBB_FORMAT, "a %s cannot be called", ebb_tpl_type_name(callee));
    }
}
