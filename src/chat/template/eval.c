/* Statements: the tree is walked, text goes to vm->out. */
#include <string.h>

#include "template/interp.h"
#include "template/strings.h"

/* -- Scopes ------------------------------------------------------------------------------ */

void ebb_tpl_scope_push(tpl_vm *vm, tpl_scope *scope, tpl_scope *up)
{
    *scope = (tpl_scope){ .up = up };
    vm->scope = scope;
}

static tpl_scope *scope_new(tpl_vm *vm)
{
    tpl_scope *s = ebb_tpl_alloc(vm, sizeof *s);

    ebb_tpl_scope_push(vm, s, vm->scope);
    return s;
}

void ebb_tpl_scope_set(tpl_vm *vm, const tpl_str *name, tpl_val v)
{
    tpl_scope *s = vm->scope;

    ebb_tpl_step(vm, s->n / 8);
    for (size_t i = 0; i < s->n; i++)
        if (ebb_tpl_str_eq(s->vars[i].name, name)) {
            s->vars[i].val = v;
            return;
        }
    s->vars = ebb_tpl_grow(vm, s->vars, s->n, &s->cap, sizeof *s->vars);
    s->vars[s->n++] = (tpl_var){ .name = name, .val = v };
}

/* -- Assignment ---------------------------------------------------------------------------- */

static void assign_target(tpl_vm *vm, const tpl_node *target, tpl_val v)
{
    tpl_list *items;

    if (target->type == TPL_N_NAME) {
        ebb_tpl_scope_set(vm, target->name, v);
        return;
    }
    if (target->type == TPL_N_NSREF) {
        tpl_val ns = ebb_tpl_lookup(vm, target->name);
        if (ns.kind != TPL_NS)
            ebb_tpl_fail(vm, EBB_FORMAT, "'%.*s' is not a namespace: its attributes cannot be set",
                         (int)(target->name->n < 60 ? target->name->n : 60), target->name->p);
        ebb_tpl_dict_set(vm, ns.dict, target->val, v);
        return;
    }
    items = ebb_tpl_items(vm, v);
    if (items->n != target->n_kids)
        ebb_tpl_fail(vm, EBB_FORMAT, "%zu values cannot be unpacked into %zu names", items->n, target->n_kids);
    for (size_t i = 0; i < items->n; i++)
        assign_target(vm, target->kids[i], items->v[i]);
}

/* -- Blocks ------------------------------------------------------------------------------------ */

static tpl_flow exec_block(tpl_vm *vm, const tpl_node *n)
{
    tpl_flow flow = TPL_GO;

    ebb_tpl_enter(vm);
    for (size_t i = 0; flow == TPL_GO && i < n->n_kids; i++)
        flow = ebb_tpl_exec(vm, n->kids[i]);
    ebb_tpl_leave(vm);
    return flow;
}

tpl_str *ebb_tpl_capture(tpl_vm *vm, const tpl_node *block)
{
    tpl_sb sb, *outer = vm->out;

    ebb_tpl_sb_init(&sb, vm);
    vm->out = &sb;
    exec_block(vm, block);
    vm->out = outer;
    return ebb_tpl_sb_finish(&sb);
}

static tpl_flow exec_if(tpl_vm *vm, const tpl_node *n)
{
    while (!ebb_tpl_truth(ebb_tpl_eval(vm, n->a))) {
        n = n->c;
        if (!n)
            return TPL_GO;
        if (n->type == TPL_N_BLOCK)
            return exec_block(vm, n);
        vm->line = n->line;
        ebb_tpl_step(vm, 1);
    }
    return exec_block(vm, n->b);
}

/* -- Loops --------------------------------------------------------------------------------------- */

/* Those items for which the condition behind the loop holds. */
static tpl_list *filtered(tpl_vm *vm, const tpl_node *n, tpl_list *items)
{
    tpl_list *kept;
    tpl_scope scope, *outer = vm->scope;

    if (!n->c)
        return items;
    kept = ebb_tpl_list_new(vm, 0);
    ebb_tpl_scope_push(vm, &scope, outer);
    for (size_t i = 0; i < items->n; i++) {
        ebb_tpl_step(vm, 1);
        assign_target(vm, n->a, items->v[i]);
        if (ebb_tpl_truth(ebb_tpl_eval(vm, n->c)))
            ebb_tpl_list_add(vm, kept, items->v[i]);
    }
    vm->scope = outer;
    return kept;
}

static tpl_flow run_loop(tpl_vm *vm, const tpl_node *n, tpl_list *items, size_t depth)
{
    static const tpl_str name = { .p = "loop", .n = 4, .n_cp = 4 };
    tpl_scope *outer = vm->scope, *scope;
    tpl_loop *loop = ebb_tpl_alloc(vm, sizeof *loop);

    *loop = (tpl_loop){ .node = n, .scope = outer, .items = filtered(vm, n, items), .depth = depth };
    if (loop->items->n == 0)
        return n->e ? exec_block(vm, n->e) : TPL_GO;
    scope = scope_new(vm);
    for (; loop->at < loop->items->n; loop->at++) {
        scope->n = 0;                            /* what an iteration sets ends with it */
        vm->line = n->line;
        ebb_tpl_step(vm, 1);
        ebb_tpl_scope_set(vm, &name, (tpl_val){ .kind = TPL_LOOP, .loop = loop });
        assign_target(vm, n->a, loop->items->v[loop->at]);
        if (exec_block(vm, n->d) == TPL_STOP)
            break;
    }
    vm->scope = outer;
    return TPL_GO;
}

tpl_str *ebb_tpl_loop_again(tpl_vm *vm, const tpl_loop *loop, tpl_val items)
{
    tpl_sb sb, *outer = vm->out;
    tpl_scope *scope = vm->scope;

    if (!loop->node->op)
        ebb_tpl_fail(vm, EBB_FORMAT, "loop() needs a loop marked `recursive`");
    ebb_tpl_enter(vm);
    ebb_tpl_sb_init(&sb, vm);
    vm->out = &sb;
    vm->scope = loop->scope;
    run_loop(vm, loop->node, ebb_tpl_items(vm, items), loop->depth + 1);
    vm->scope = scope;
    vm->out = outer;
    ebb_tpl_leave(vm);
    return ebb_tpl_sb_finish(&sb);
}

/* -- Tags with a body ----------------------------------------------------------------------------- */

/* The scope is in the heap, as macros defined in the body keep it. */
static tpl_flow exec_scoped(tpl_vm *vm, const tpl_node *body)
{
    tpl_scope *outer = vm->scope;
    tpl_flow flow;

    scope_new(vm);
    flow = exec_block(vm, body);
    vm->scope = outer;
    return flow;
}

static tpl_str *capture_scoped(tpl_vm *vm, const tpl_node *body)
{
    tpl_scope *outer = vm->scope;
    tpl_str *text;

    scope_new(vm);
    text = ebb_tpl_capture(vm, body);
    vm->scope = outer;
    return text;
}

static tpl_flow exec_with(tpl_vm *vm, const tpl_node *n)
{
    tpl_scope *outer = vm->scope, *inner = scope_new(vm);
    tpl_flow flow;

    for (size_t i = 0; i < n->n_kids; i += 2) {
        vm->scope = outer;
        tpl_val v = ebb_tpl_eval(vm, n->kids[i + 1]);
        vm->scope = inner;
        assign_target(vm, n->kids[i], v);
    }
    vm->scope = inner;
    flow = exec_block(vm, n->a);
    vm->scope = outer;
    return flow;
}

static tpl_val macro_of(tpl_vm *vm, const tpl_node *n)
{
    tpl_macro *m = ebb_tpl_alloc(vm, sizeof *m);

    *m = (tpl_macro){ .node = n, .scope = vm->scope };
    return (tpl_val){ .kind = TPL_MACRO, .macro = m };
}

static void exec_call_block(tpl_vm *vm, const tpl_node *n)
{
    tpl_call call;
    tpl_val callee = ebb_tpl_eval(vm, n->b->a), *named;
    tpl_str **names;

    ebb_tpl_eval_args(vm, n->b->args, &call);
    named = ebb_tpl_alloc_array(vm, call.n_named + 1, sizeof *named);
    names = ebb_tpl_alloc_array(vm, call.n_named + 1, sizeof *names);
    for (size_t i = 0; i < call.n_named; i++) {
        named[i] = call.named[i];
        names[i] = call.names[i];
    }
    named[call.n_named] = macro_of(vm, n->a);
    names[call.n_named++] = n->a->name;
    call.named = named;
    call.names = names;
    ebb_tpl_sb_str(vm->out, ebb_tpl_call(vm, callee, &call));
}

static void exec_set_block(tpl_vm *vm, const tpl_node *n)
{
    tpl_val v = ebb_tpl_str(capture_scoped(vm, n->c));

    assign_target(vm, n->a, n->b ? ebb_tpl_filter_chain(vm, n->b, v) : v);
}

static void exec_filter_block(tpl_vm *vm, const tpl_node *n)
{
    tpl_str *body = capture_scoped(vm, n->a);

    ebb_tpl_sb_str(vm->out, ebb_tpl_filter_chain(vm, n->b, ebb_tpl_str(body)));
}

tpl_flow ebb_tpl_exec(tpl_vm *vm, const tpl_node *n)
{
    vm->line = n->line;
    ebb_tpl_step(vm, 1);
    switch (n->type) {
    case TPL_N_TEXT:         ebb_tpl_sb_add(vm->out, n->val.s); break;
    case TPL_N_PRINT:        ebb_tpl_sb_str(vm->out, ebb_tpl_eval(vm, n->a)); break;
    case TPL_N_IF:           return exec_if(vm, n);
    case TPL_N_FOR:          return run_loop(vm, n, ebb_tpl_items(vm, ebb_tpl_eval(vm, n->b)), 0);
    case TPL_N_SET:          assign_target(vm, n->a, ebb_tpl_eval(vm, n->b)); break;
    case TPL_N_SET_BLOCK:    exec_set_block(vm, n); break;
    case TPL_N_MACRO:        ebb_tpl_scope_set(vm, n->name, macro_of(vm, n)); break;
    case TPL_N_CALL_BLOCK:   exec_call_block(vm, n); break;
    case TPL_N_FILTER_BLOCK: exec_filter_block(vm, n); break;
    case TPL_N_WITH:         return exec_with(vm, n);
    case TPL_N_SCOPE:        return exec_scoped(vm, n->a);
    case TPL_N_BREAK:        return TPL_STOP;
    case TPL_N_CONTINUE:     return TPL_NEXT;
    default:                 return exec_block(vm, n);
    }
    return TPL_GO;
}
