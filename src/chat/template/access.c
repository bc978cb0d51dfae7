/* Attributes, items and slices. */
#include "template/builtins.h"
#include "template/interp.h"
#include "template/strings.h"

static tpl_val method(tpl_vm *vm, tpl_val v, const tpl_builtin *fn)
{
    tpl_bound *b = ebb_tpl_alloc(vm, sizeof *b);

    *b = (tpl_bound){ .self = v, .fn = fn };
    return (tpl_val){ .kind = TPL_METHOD, .bound = b };
}

/* -- loop.x ------------------------------------------------------------------------------ */

static tpl_val loop_neighbour(const tpl_loop *l, tpl_str *name, bool next)
{
    if (next ? l->at + 1 >= l->items->n : l->at == 0)
        return ebb_tpl_undef(name);
    return l->items->v[next ? l->at + 1 : l->at - 1];
}

static tpl_val loop_attr(tpl_vm *vm, tpl_val v, tpl_str *name)
{
    const tpl_loop *l = v.loop;
    int64_t at = (int64_t)l->at, n = (int64_t)l->items->n, depth = (int64_t)l->depth;
    const struct { const char *name; int64_t value; } numbers[] = {
        { "index0", at }, { "index", at + 1 }, { "length", n }, { "revindex", n - at }, { "revindex0", n - at - 1 },
        { "depth", depth + 1 }, { "depth0", depth },
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (ebb_tpl_str_is(name, numbers[i].name))
            return ebb_tpl_int(numbers[i].value);
    if (ebb_tpl_str_is(name, "first"))
        return ebb_tpl_bool(at == 0);
    if (ebb_tpl_str_is(name, "last"))
        return ebb_tpl_bool(at + 1 == n);
    if (ebb_tpl_str_is(name, "previtem") || ebb_tpl_str_is(name, "nextitem"))
        return loop_neighbour(l, name, name->p[0] == 'n');
    const tpl_builtin *fn = ebb_tpl_method_find(TPL_LOOP, name);
    return fn ? method(vm, v, fn) : ebb_tpl_undef(name);
}

/* -- v.name, v[key] -------------------------------------------------------------------------- */

/* What a value has by itself, apart from the keys of a dict. */
static tpl_val own_attr(tpl_vm *vm, tpl_val v, tpl_str *name)
{
    const tpl_builtin *fn;

    if (v.kind == TPL_LOOP)
        return loop_attr(vm, v, name);
    if (v.kind == TPL_NS) {
        const tpl_val *at = ebb_tpl_dict_find(vm, v.dict, ebb_tpl_str(name));
        return at ? *at : ebb_tpl_undef(name);
    }
    if (v.kind == TPL_TUPLE && v.list->n == 2) {         /* what groupby makes */
        if (ebb_tpl_str_is(name, "grouper") || ebb_tpl_str_is(name, "list"))
            return v.list->v[name->p[0] == 'l'];
    }
    if (v.kind == TPL_MACRO && ebb_tpl_str_is(name, "name"))
        return ebb_tpl_str(v.macro->node->name);
    if (v.kind == TPL_CYCLER && ebb_tpl_str_is(name, "current"))
        return v.cycle->items->v[v.cycle->at];
    fn = ebb_tpl_method_find(v.kind, name);
    return fn ? method(vm, v, fn) : ebb_tpl_undef(name);
}

static const tpl_val *dict_item(tpl_vm *vm, tpl_val v, tpl_val key)
{
    return v.kind == TPL_DICT ? ebb_tpl_dict_find(vm, v.dict, key) : NULL;
}

tpl_val ebb_tpl_attr(tpl_vm *vm, tpl_val v, tpl_str *name)
{
    tpl_val own;
    const tpl_val *item;

    if (v.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, v);
    own = own_attr(vm, v, name);
    if (own.kind != TPL_UNDEF)
        return own;
    item = dict_item(vm, v, ebb_tpl_str(name));
    return item ? *item : own;
}

static bool at_index(int64_t i, size_t n, size_t *at)
{
    if (i < 0)
        i += (int64_t)n;
    *at = (size_t)i;
    return i >= 0 && (uint64_t)i < n;
}

static tpl_val item_at(tpl_vm *vm, tpl_val v, int64_t i)
{
    size_t at, from;

    if (v.kind == TPL_STR) {
        if (!at_index(i, ebb_tpl_len(vm, v), &at))
            return ebb_tpl_undef(NULL);
        from = ebb_tpl_str_at(vm, v.s, at);
        return ebb_tpl_str(ebb_tpl_str_cut(vm, v.s, from, ebb_tpl_str_at(vm, v.s, at + 1)));
    }
    if (v.kind == TPL_LIST || v.kind == TPL_TUPLE)
        return at_index(i, v.list->n, &at) ? v.list->v[at] : ebb_tpl_undef(NULL);
    if (v.kind == TPL_RANGE && at_index(i, ebb_tpl_len(vm, v), &at))
        return ebb_tpl_int(ebb_tpl_range_item(v.range, (size_t)at));
    return ebb_tpl_undef(NULL);
}

tpl_val ebb_tpl_item(tpl_vm *vm, tpl_val v, tpl_val key)
{
    const tpl_val *item;

    if (v.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, v);
    item = dict_item(vm, v, key);
    if (item)
        return *item;
    if (key.kind == TPL_STR)
        return own_attr(vm, v, key.s);
    if (key.kind == TPL_INT || key.kind == TPL_BOOL)
        return item_at(vm, v, ebb_tpl_want_int(vm, key, 0));
    return ebb_tpl_undef(NULL);
}

/* A part of a path: all digits are an index. */
static tpl_val path_key(tpl_str *part)
{
    int64_t i = 0;

    for (size_t k = 0; k < part->n; k++) {
        if (part->p[k] < '0' || part->p[k] > '9' || part->n > 9)
            return ebb_tpl_str(part);
        i = i * 10 + (part->p[k] - '0');
    }
    return part->n ? ebb_tpl_int(i) : ebb_tpl_str(part);
}

tpl_val ebb_tpl_path(tpl_vm *vm, tpl_val v, tpl_val path, tpl_val fallback)
{
    tpl_str dot = { .p = ".", .n = 1 };
    tpl_list *parts;

    if (path.kind == TPL_STR) {
        parts = ebb_tpl_str_split(vm, path.s, &dot, -1, false);
    } else {
        parts = ebb_tpl_list_new(vm, 1);
        parts->v[parts->n++] = path;
    }
    for (size_t i = 0; i < parts->n; i++) {
        v = ebb_tpl_item(vm, v, path.kind == TPL_STR ? path_key(parts->v[i].s) : path);
        if (v.kind == TPL_UNDEF && ebb_tpl_given(fallback))
            v = fallback;
    }
    return v;
}

/* -- v[a:b:c] -------------------------------------------------------------------------------------- */

static int64_t bound(tpl_vm *vm, tpl_val v, int64_t n, int64_t low, int64_t high, int64_t absent)
{
    int64_t i;

    if (v.kind == TPL_NONE)
        return absent;
    i = ebb_tpl_want_int(vm, v, 0);
    if (i < 0)
        i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

static tpl_val slice_str(tpl_vm *vm, tpl_str *s, int64_t from, int64_t to, int64_t step)
{
    tpl_sb sb;
    tpl_list *chars;

    if (step == 1) {
        size_t a = ebb_tpl_str_at(vm, s, (size_t)from), b = from < to ? ebb_tpl_str_at(vm, s, (size_t)to) : a;
        return ebb_tpl_str(ebb_tpl_str_cut(vm, s, a, b));
    }
    chars = ebb_tpl_items(vm, ebb_tpl_str(s));
    ebb_tpl_sb_init(&sb, vm);
    for (; step > 0 ? from < to : from > to; from += step)
        ebb_tpl_sb_add(&sb, chars->v[from].s);
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

static tpl_val slice_list(tpl_vm *vm, tpl_val v, int64_t from, int64_t to, int64_t step)
{
    tpl_list *all = ebb_tpl_items(vm, v), *l = ebb_tpl_list_new(vm, 0);

    if (step == 1) {                             /* lists do not change: share */
        l->v = all->v ? all->v + from : NULL;
        l->n = l->cap = from < to ? (size_t)(to - from) : 0;
    }
    for (; step != 1 && (step > 0 ? from < to : from > to); from += step) {
        ebb_tpl_step(vm, 1);
        ebb_tpl_list_add(vm, l, all->v[from]);
    }
    return ebb_tpl_of_list(v.kind == TPL_TUPLE ? TPL_TUPLE : TPL_LIST, l);
}

tpl_val ebb_tpl_slice(tpl_vm *vm, tpl_val v, const tpl_val bounds[3])
{
    int64_t n, from, to, step = bounds[2].kind == TPL_NONE ? 1 : ebb_tpl_want_int(vm, bounds[2], 1);

    if (v.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, v);
    if (v.kind != TPL_STR && v.kind != TPL_LIST && v.kind != TPL_TUPLE && v.kind != TPL_RANGE)
        return ebb_tpl_undef(NULL);
    if (step == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "a slice with step 0");
    n = (int64_t)ebb_tpl_len(vm, v);
    from = step > 0 ? bound(vm, bounds[0], n, 0, n, 0) : bound(vm, bounds[0], n, -1, n - 1, n - 1);
    to = step > 0 ? bound(vm, bounds[1], n, 0, n, n) : bound(vm, bounds[1], n, -1, n - 1, -1);
    if (step > n)
        step = n + 1;
    if (step < -n)
        step = -n - 1;
    return v.kind == TPL_STR ? slice_str(vm, v.s, from, to, step) : slice_list(vm, v, from, to, step);
}
