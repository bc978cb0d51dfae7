/* Filters on lists and dicts. */
#include <string.h>

#include "template/builtins.h"
#include "template/interp.h"
#include "template/strings.h"

#define FILTER(name) static tpl_val name(tpl_vm *vm, tpl_val self, const tpl_val *a, const tpl_call *call)
#define UNUSED (void)vm, (void)self, (void)a, (void)call

static tpl_val list_generator(tpl_vm *vm, tpl_list *items)
{
    return ebb_tpl_of_iter(vm, items, true, "generator");
}

static tpl_val path_or_self(tpl_vm *vm, tpl_val v, tpl_val path)
{
    return ebb_tpl_given(path) ? ebb_tpl_path(vm, v, path, (tpl_val){ .kind = TPL_ABSENT }) : v;
}

FILTER(length) { UNUSED; return ebb_tpl_int((int64_t)ebb_tpl_len(vm, self)); }

/* A list of its own, though lists do not change: iterators are used up. */
FILTER(list)   { UNUSED; return ebb_tpl_of_list(TPL_LIST, ebb_tpl_items(vm, self)); }

FILTER(first)
{
    UNUSED;
    if (self.kind == TPL_ITER && self.iter->once) {
        tpl_iter *it = self.iter;
        return it->at < it->items->n ? it->items->v[it->at++] : ebb_tpl_undef(NULL);
    }
    if (self.kind == TPL_STR)
        return ebb_tpl_item(vm, self, ebb_tpl_int(0));
    tpl_list *l = ebb_tpl_items(vm, self);
    return l->n ? l->v[0] : ebb_tpl_undef(NULL);
}

FILTER(last)
{
    UNUSED;
    if (self.kind == TPL_STR)
        return ebb_tpl_item(vm, self, ebb_tpl_int(-1));
    if (self.kind == TPL_ITER && self.iter->once)
        ebb_tpl_fail(vm, EBB_FORMAT, "a generator has no last item");
    tpl_list *l = ebb_tpl_items(vm, self);
    return l->n ? l->v[l->n - 1] : ebb_tpl_undef(NULL);
}

FILTER(join)
{
    tpl_list *l = ebb_tpl_items(vm, self);
    tpl_str *sep = a[0].kind == TPL_ABSENT ? NULL : ebb_tpl_to_str(vm, a[0]);
    tpl_sb sb;

    (void)call;
    ebb_tpl_sb_init(&sb, vm);
    for (size_t i = 0; i < l->n; i++) {
        if (i && sep)
            ebb_tpl_sb_add(&sb, sep);
        ebb_tpl_step(vm, 1);
        ebb_tpl_sb_str(&sb, path_or_self(vm, l->v[i], a[1]));
    }
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

FILTER(reverse)
{
    tpl_list *l, *r;

    UNUSED;
    if (self.kind == TPL_STR)
        return ebb_tpl_slice(vm, self, (tpl_val[3]){ ebb_tpl_none(), ebb_tpl_none(), ebb_tpl_int(-1) });
    l = ebb_tpl_items(vm, self);
    r = ebb_tpl_list_new(vm, l->n);
    ebb_tpl_step(vm, l->n / 8);
    for (size_t i = l->n; i > 0; i--)
        r->v[r->n++] = l->v[i - 1];
    return ebb_tpl_of_iter(vm, r, true, "list_reverseiterator");
}

static tpl_val pair(tpl_vm *vm, tpl_val x, tpl_val y)
{
    tpl_list *l = ebb_tpl_list_new(vm, 2);

    l->v[l->n++] = x;
    l->v[l->n++] = y;
    return ebb_tpl_of_list(TPL_TUPLE, l);
}

FILTER(items)
{
    tpl_list *l = ebb_tpl_list_new(vm, 0);

    UNUSED;
    if (self.kind != TPL_UNDEF && self.kind != TPL_DICT)
        ebb_tpl_fail(vm, EBB_FORMAT, "items wants a dict, not a %s", ebb_tpl_type_name(self));
    for (size_t i = 0; self.kind == TPL_DICT && i < self.dict->n; i++)
        ebb_tpl_list_add(vm, l, pair(vm, self.dict->key[i], self.dict->val[i]));
    return list_generator(vm, l);
}

/* -- Order ---------------------------------------------------------------------------- */

static tpl_val fold_value_case(tpl_vm *vm, tpl_val v, bool case_sensitive)
{
    return v.kind == TPL_STR && !case_sensitive ? ebb_tpl_str(ebb_tpl_str_case(vm, v.s, TPL_LOWER)) : v;
}

/* Keys to order or tell apart by: values at `path`, without case. */
static tpl_list *keys_of(tpl_vm *vm, const tpl_list *l, tpl_val path, bool case_sensitive)
{
    tpl_list *keys = ebb_tpl_list_new(vm, l->n);

    ebb_tpl_step(vm, l->n);
    for (size_t i = 0; i < l->n; i++)
        keys->v[keys->n++] = fold_value_case(vm, path_or_self(vm, l->v[i], path), case_sensitive);
    return keys;
}

/* "a,b" orders by a, then b: each key becomes a list. */
static tpl_list *sort_keys_of(tpl_vm *vm, const tpl_list *l, tpl_val path, bool case_sensitive)
{
    tpl_list *parts, *keys;
    tpl_str comma = { .p = ",", .n = 1 };

    if (path.kind != TPL_STR || !memchr(path.s->p, ',', path.s->n))
        return keys_of(vm, l, path, case_sensitive);
    parts = ebb_tpl_str_split(vm, path.s, &comma, -1, false);
    keys = ebb_tpl_list_new(vm, l->n);
    for (size_t i = 0; i < l->n; i++) {
        tpl_list *key = ebb_tpl_list_new(vm, parts->n);
        for (size_t k = 0; k < parts->n; k++)
            key->v[key->n++] = fold_value_case(vm, path_or_self(vm, l->v[i], parts->v[k]), case_sensitive);
        keys->v[keys->n++] = ebb_tpl_of_list(TPL_LIST, key);
    }
    return keys;
}

/* Places of keys[from..to) in stable order; `scratch` is as long as `order`. */
static void merge_sort(tpl_vm *vm, const tpl_list *keys, size_t *order, size_t *scratch, size_t from,
                       size_t to, bool down)
{
    size_t mid = from + (to - from) / 2, i = from, j = mid, k = from;

    if (to - from < 2)
        return;
    merge_sort(vm, keys, order, scratch, from, mid, down);
    merge_sort(vm, keys, order, scratch, mid, to, down);
    while (i < mid && j < to) {
        int c = ebb_tpl_cmp(vm, keys->v[order[j]], keys->v[order[i]]);
        scratch[k++] = (down ? c > 0 : c < 0) ? order[j++] : order[i++];
    }
    while (i < mid)
        scratch[k++] = order[i++];
    while (j < to)
        scratch[k++] = order[j++];
    memcpy(order + from, scratch + from, (to - from) * sizeof *order);
}

static tpl_list *sorted(tpl_vm *vm, const tpl_list *l, const tpl_list *keys, bool down)
{
    size_t *order = ebb_tpl_alloc_array(vm, l->n, sizeof *order),
        *scratch = ebb_tpl_alloc_array(vm, l->n, sizeof *scratch);
    tpl_list *out = ebb_tpl_list_new(vm, l->n);

    for (size_t i = 0; i < l->n; i++)
        order[i] = i;
    merge_sort(vm, keys, order, scratch, 0, l->n, down);
    for (size_t i = 0; i < l->n; i++)
        out->v[out->n++] = l->v[order[i]];
    return out;
}

FILTER(sort)
{
    tpl_list *l = ebb_tpl_items(vm, self);

    (void)call;
    return ebb_tpl_of_list(TPL_LIST, sorted(vm, l, sort_keys_of(vm, l, a[2], ebb_tpl_want_bool(a[1], false)),
                                            ebb_tpl_want_bool(a[0], false)));
}

FILTER(dictsort)
{
    bool case_sensitive = ebb_tpl_want_bool(a[0], false);
    bool by_value = a[1].kind == TPL_STR && ebb_tpl_str_is(a[1].s, "value");
    tpl_list *pairs = ebb_tpl_list_new(vm, 0);

    (void)call;
    if (self.kind != TPL_DICT)
        ebb_tpl_fail(vm, EBB_FORMAT, "dictsort wants a dict, not a %s", ebb_tpl_type_name(self));
    for (size_t i = 0; i < self.dict->n; i++)
        ebb_tpl_list_add(vm, pairs, pair(vm, self.dict->key[i], self.dict->val[i]));
    return ebb_tpl_of_list(TPL_LIST, sorted(vm, pairs, keys_of(vm, pairs, ebb_tpl_int(by_value), case_sensitive),
                                            ebb_tpl_want_bool(a[2], false)));
}

/* The smallest (sign -1) or largest (1) item. */
static tpl_val extreme(tpl_vm *vm, tpl_val self, const tpl_val *a, int sign)
{
    tpl_list *l = ebb_tpl_items(vm, self), *keys = keys_of(vm, l, a[1], ebb_tpl_want_bool(a[0], false));
    size_t best = 0;

    if (l->n == 0)
        return ebb_tpl_undef(NULL);
    for (size_t i = 1; i < l->n; i++)
        if (ebb_tpl_cmp(vm, keys->v[i], keys->v[best]) * sign > 0)
            best = i;
    return l->v[best];
}

FILTER(smallest) { (void)call; return extreme(vm, self, a, -1); }
FILTER(largest)  { (void)call; return extreme(vm, self, a, 1); }

FILTER(sum)
{
    tpl_list *l = ebb_tpl_items(vm, self);
    tpl_val total = a[1].kind == TPL_ABSENT ? ebb_tpl_int(0) : a[1];

    (void)call;
    for (size_t i = 0; i < l->n; i++) {
        ebb_tpl_step(vm, 1);
        total = ebb_tpl_binary(vm, '+', total, path_or_self(vm, l->v[i], a[0]));
    }
    return total;
}

FILTER(unique)
{
    tpl_list *l = ebb_tpl_items(vm, self), *keys = keys_of(vm, l, a[1], ebb_tpl_want_bool(a[0], false));
    tpl_list *seen = ebb_tpl_list_new(vm, 0), *out = ebb_tpl_list_new(vm, 0);

    (void)call;
    for (size_t i = 0; i < l->n; i++)
        if (!ebb_tpl_contains(vm, ebb_tpl_of_list(TPL_LIST, seen), keys->v[i])) {
            ebb_tpl_list_add(vm, seen, keys->v[i]);
            ebb_tpl_list_add(vm, out, l->v[i]);
        }
    return list_generator(vm, out);
}

/* -- Groups ------------------------------------------------------------------------------ */

FILTER(groupby)
{
    tpl_list *l = ebb_tpl_items(vm, self), *keys, *pairs = ebb_tpl_list_new(vm, 0), *out = ebb_tpl_list_new(vm, 0);
    bool case_sensitive = ebb_tpl_want_bool(a[2], false);

    (void)call;
    for (size_t i = 0; i < l->n; i++)            /* (value at the path, item) */
        ebb_tpl_list_add(vm, pairs, pair(vm, ebb_tpl_path(vm, l->v[i], a[0], a[1]), l->v[i]));
    pairs = sorted(vm, pairs, keys_of(vm, pairs, ebb_tpl_int(0), case_sensitive), false);
    keys = keys_of(vm, pairs, ebb_tpl_int(0), case_sensitive);
    for (size_t i = 0, from = 0; i < pairs->n; i++) {
        tpl_list *group;
        if (i + 1 < pairs->n && ebb_tpl_eq(vm, keys->v[i], keys->v[i + 1]))
            continue;
        group = ebb_tpl_list_new(vm, i + 1 - from);
        for (; from <= i; from++)
            group->v[group->n++] = pairs->v[from].list->v[1];
        ebb_tpl_list_add(vm, out, pair(vm, pairs->v[i + 1 - group->n].list->v[0], ebb_tpl_of_list(TPL_LIST, group)));
    }
    return ebb_tpl_of_list(TPL_LIST, out);
}

static int64_t want_count(tpl_vm *vm, tpl_val v, const char *filter)
{
    int64_t n = ebb_tpl_want_int(vm, v, 0);

    if (n < 1 || n > 1000000)
        ebb_tpl_fail(vm, EBB_FORMAT, "%s: a count from 1 to 1000000 is wanted", filter);
    return n;
}

FILTER(batch)
{
    size_t n = (size_t)want_count(vm, a[0], "batch");
    tpl_list *l = ebb_tpl_items(vm, self), *out = ebb_tpl_list_new(vm, 0), *row = NULL;

    (void)call;
    ebb_tpl_step(vm, l->n + n);
    for (size_t i = 0; i < l->n; i++) {
        if (i % n == 0) {
            row = ebb_tpl_list_new(vm, 0);
            ebb_tpl_list_add(vm, out, ebb_tpl_of_list(TPL_LIST, row));
        }
        ebb_tpl_list_add(vm, row, l->v[i]);
    }
    while (row && ebb_tpl_given(a[1]) && row->n < n)
        ebb_tpl_list_add(vm, row, a[1]);
    return list_generator(vm, out);
}

FILTER(slices)
{
    size_t n = (size_t)want_count(vm, a[0], "slice"), at = 0;
    tpl_list *l = ebb_tpl_items(vm, self), *out = ebb_tpl_list_new(vm, n);
    size_t each = l->n / n, longer = l->n % n;

    (void)call;
    ebb_tpl_step(vm, l->n + n);
    for (size_t i = 0; i < n; i++) {
        tpl_list *row = ebb_tpl_list_new(vm, 0);
        for (size_t to = at + each + (i < longer); at < to; at++)
            ebb_tpl_list_add(vm, row, l->v[at]);
        if (ebb_tpl_given(a[1]) && i >= longer)
            ebb_tpl_list_add(vm, row, a[1]);
        out->v[out->n++] = ebb_tpl_of_list(TPL_LIST, row);
    }
    return list_generator(vm, out);
}

const tpl_builtin ebb_tpl_filters_list[] = {
    { "length", "", length }, { "count", "", length }, { "list", "", list }, { "first", "", first },
    { "last", "", last }, { "join", "d attribute", join }, { "reverse", "", reverse }, { "items", "", items },
    { "sort", "reverse case_sensitive attribute", sort }, { "dictsort", "case_sensitive by reverse", dictsort },
    { "min", "case_sensitive attribute", smallest }, { "max", "case_sensitive attribute", largest },
    { "sum", "attribute start", sum }, { "unique", "case_sensitive attribute", unique },
    { "groupby", "attribute! default case_sensitive", groupby }, { "batch", "linecount! fill_with", batch },
    { "slice", "slices! fill_with", slices },
    { NULL, NULL, NULL },
};
