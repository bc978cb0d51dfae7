/* Filters that apply others: map, select, reject and their kin. */
#include "template/builtins.h"
#include "template/interp.h"
#include "template/strings.h"

#define FILTER(name) static tpl_val name(tpl_vm *vm, tpl_val self, const tpl_val *a, const tpl_call *call)

static tpl_val pick_generator(tpl_vm *vm, tpl_list *items)
{
    return ebb_tpl_of_iter(vm, items, true, "generator");
}

/* As in Jinja, whatever is false has no items here: none, 0 and undefined too. */
static tpl_list *items_of(tpl_vm *vm, tpl_val v)
{
    return ebb_tpl_truth(v) ? ebb_tpl_items(vm, v) : ebb_tpl_list_new(vm, 0);
}

static tpl_val named(const tpl_call *call, const char *name)
{
    for (size_t i = 0; i < call->n_named; i++)
        if (ebb_tpl_str_is(call->names[i], name))
            return call->named[i];
    return (tpl_val){ .kind = TPL_ABSENT };
}

FILTER(map_attribute)
{
    tpl_list *l = items_of(vm, self), *out = ebb_tpl_list_new(vm, l->n);
    tpl_val fallback = named(call, "default");

    for (size_t i = 0; i < l->n; i++) {
        ebb_tpl_step(vm, 1);
        out->v[out->n++] = ebb_tpl_path(vm, l->v[i], a[0], fallback);
    }
    return pick_generator(vm, out);
}

/* The filter or test named by the first positional argument. */
static const tpl_builtin *want_function(tpl_vm *vm, tpl_val name, bool test)
{
    tpl_str *s = ebb_tpl_want_str(vm, name);
    const tpl_builtin *fn = test ? ebb_tpl_test_find(s) : ebb_tpl_filter_find(s);

    if (!fn)
        ebb_tpl_fail(vm, EBB_FORMAT, "there is no %s '%.*s'", test ? "test" : "filter",
                     (int)(s->n < 60 ? s->n : 60), s->p);
    return fn;
}

FILTER(map)
{
    tpl_val attribute = named(call, "attribute");
    tpl_call rest = *call;
    const tpl_builtin *fn;
    tpl_list *l, *out;

    (void)a;
    if (call->n_pos == 0 && attribute.kind != TPL_ABSENT)
        return map_attribute(vm, self, &attribute, call);
    if (call->n_pos == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "map wants the name of a filter, or attribute=");
    fn = want_function(vm, call->pos[0], false);
    rest.pos++;
    rest.n_pos--;
    l = items_of(vm, self);
    out = ebb_tpl_list_new(vm, l->n);
    ebb_tpl_enter(vm);
    for (size_t i = 0; i < l->n; i++)
        out->v[out->n++] = ebb_tpl_call_builtin(vm, fn, l->v[i], &rest);
    ebb_tpl_leave(vm);
    return pick_generator(vm, out);
}

/* Items for which a test holds (or not); the first argument is a path if `by_path`. */
static tpl_val pick(tpl_vm *vm, tpl_val self, const tpl_call *call, bool by_path, bool wanted)
{
    tpl_call rest = *call;
    tpl_val path = { .kind = TPL_ABSENT }, none = path;
    const tpl_builtin *fn = NULL;
    tpl_list *l, *out = ebb_tpl_list_new(vm, 0);

    if (by_path && rest.n_pos == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "the name of an attribute is wanted");
    if (by_path) {
        path = *rest.pos++;
        rest.n_pos--;
    }
    if (rest.n_pos > 0) {
        fn = want_function(vm, *rest.pos++, true);
        rest.n_pos--;
    }
    l = items_of(vm, self);
    for (size_t i = 0; i < l->n; i++) {
        tpl_val v = by_path ? ebb_tpl_path(vm, l->v[i], path, none) : l->v[i];
        ebb_tpl_step(vm, 1);
        if (ebb_tpl_truth(fn ? ebb_tpl_call_builtin(vm, fn, v, &rest) : v) == wanted)
            ebb_tpl_list_add(vm, out, l->v[i]);
    }
    return pick_generator(vm, out);
}

FILTER(select_items) { (void)a; return pick(vm, self, call, false, true); }
FILTER(reject)       { (void)a; return pick(vm, self, call, false, false); }
FILTER(selectattr)   { (void)a; return pick(vm, self, call, true, true); }
FILTER(rejectattr)   { (void)a; return pick(vm, self, call, true, false); }

FILTER(attr)
{
    tpl_val v = ebb_tpl_attr(vm, self, ebb_tpl_want_str(vm, a[0]));

    (void)call;
    return self.kind == TPL_DICT && v.kind != TPL_METHOD ? ebb_tpl_undef(a[0].s) : v;
}

const tpl_builtin ebb_tpl_filters_pick[] = {
    { "map", "*", map }, { "select", "*", select_items }, { "reject", "*", reject },
    { "selectattr", "*", selectattr }, { "rejectattr", "*", rejectattr }, { "attr", "name!", attr },
    { NULL, NULL, NULL },
};
