#include "template/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "template/strings.h"

/* -- The machine ---------------------------------------------------------------- */

void ebb_tpl_fail(tpl_vm *vm, ebb_status code, const char *fmt, ...)
{
    char text[200];
    size_t n;
    va_list ap;
    tpl_str *m;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    n = strlen(text);
    vm->code = code;
    vm->message = NULL;
    vm->heap.max_bytes = 0;                      /* nothing follows but the message, which has its place beyond it */
    m = ebb_tpl_heap_take(&vm->heap, sizeof *m + n);
    if (m) {
        char *p = memcpy(m + 1, text, n);
        *m = (tpl_str){ .p = p, .n = n, .n_cp = SIZE_MAX };
        vm->message = m;
    }
    longjmp(vm->jump, 1);
}

void ebb_tpl_raise(tpl_vm *vm, tpl_str *message)
{
    vm->code = EBB_UNSUPPORTED;
    vm->raised = true;
    vm->message = message;
    longjmp(vm->jump, 1);
}

void *ebb_tpl_alloc(tpl_vm *vm, size_t n)
{
    void *p = ebb_tpl_heap_take(&vm->heap, n);

    if (!p && vm->heap.beyond)
        ebb_tpl_fail(vm, EBB_LIMIT, "more than %zu MiB of memory are needed", vm->heap.max_bytes >> 20);
    if (!p)
        ebb_tpl_fail(vm, EBB_NOMEM, "out of memory");
    return p;
}

void *ebb_tpl_alloc_array(tpl_vm *vm, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes))
        bytes = SIZE_MAX;
    return ebb_tpl_alloc(vm, bytes);
}

void *ebb_tpl_grow(tpl_vm *vm, void *list, size_t n, size_t *cap, size_t size)
{
    size_t more = *cap ? 2 * *cap : 8;
    void *grown;

    if (n < *cap)
        return list;
    grown = ebb_tpl_alloc_array(vm, more, size);
    if (n)
        memcpy(grown, list, n * size);
    *cap = more;
    return grown;
}

void ebb_tpl_step(tpl_vm *vm, uint64_t n)
{
    vm->steps += n;
    if (vm->steps > vm->max_steps)
        ebb_tpl_fail(vm, EBB_LIMIT, "more than %llu steps", (unsigned long long)vm->max_steps);
    if (vm->until_ns && vm->steps >= vm->next_look) {
        vm->next_look = vm->steps + TPL_STEPS_PER_LOOK;
        if (vm->stop && vm->stop(vm->stop_arg))
            ebb_tpl_fail(vm, EBB_CANCELED, "stopped");
        if (ebb_clock_thread_ns() > vm->until_ns)
            ebb_tpl_fail(vm, EBB_LIMIT, "it computes for too long");
    }
}

void ebb_tpl_enter(tpl_vm *vm)
{
    if (++vm->depth > TPL_MAX_DEPTH)
        ebb_tpl_fail(vm, EBB_LIMIT, "nested deeper than %d levels", TPL_MAX_DEPTH);
}

void ebb_tpl_leave(tpl_vm *vm)
{
    vm->depth--;
}

/* -- Making values ---------------------------------------------------------------- */

tpl_val ebb_tpl_undef(tpl_str *name) { return (tpl_val){ .kind = TPL_UNDEF, .s = name }; }
tpl_val ebb_tpl_none(void)           { return (tpl_val){ .kind = TPL_NONE }; }
tpl_val ebb_tpl_bool(bool b)         { return (tpl_val){ .kind = TPL_BOOL, .b = b }; }
tpl_val ebb_tpl_int(int64_t i)       { return (tpl_val){ .kind = TPL_INT, .i = i }; }
tpl_val ebb_tpl_float(double f)      { return (tpl_val){ .kind = TPL_FLOAT, .f = f }; }
tpl_val ebb_tpl_str(tpl_str *s)      { return (tpl_val){ .kind = TPL_STR, .s = s }; }
tpl_val ebb_tpl_of_dict(tpl_dict *d) { return (tpl_val){ .kind = TPL_DICT, .dict = d }; }

tpl_val ebb_tpl_text(tpl_vm *vm, const char *text)
{
    return ebb_tpl_str(ebb_tpl_str_new(vm, text, strlen(text), 0));
}

tpl_val ebb_tpl_of_list(tpl_kind kind, tpl_list *list)
{
    return (tpl_val){ .kind = kind, .list = list };
}

tpl_val ebb_tpl_of_iter(tpl_vm *vm, tpl_list *items, bool once, const char *type)
{
    tpl_iter *it = ebb_tpl_alloc(vm, sizeof *it);

    *it = (tpl_iter){ .items = items, .once = once, .type = type };
    return (tpl_val){ .kind = TPL_ITER, .iter = it };
}

tpl_list *ebb_tpl_list_new(tpl_vm *vm, size_t cap)
{
    tpl_list *l = ebb_tpl_alloc(vm, sizeof *l);

    *l = (tpl_list){ .cap = cap, .v = cap ? ebb_tpl_alloc_array(vm, cap, sizeof *l->v) : NULL };
    return l;
}

void ebb_tpl_list_add(tpl_vm *vm, tpl_list *l, tpl_val v)
{
    l->v = ebb_tpl_grow(vm, l->v, l->n, &l->cap, sizeof *l->v);
    l->v[l->n++] = v;
}

tpl_dict *ebb_tpl_dict_new(tpl_vm *vm, size_t cap)
{
    tpl_dict *d = ebb_tpl_alloc(vm, sizeof *d);

    *d = (tpl_dict){ .cap = cap };
    if (cap) {
        d->key = ebb_tpl_alloc_array(vm, cap, sizeof *d->key);
        d->val = ebb_tpl_alloc_array(vm, cap, sizeof *d->val);
    }
    return d;
}

static void dict_grow(tpl_vm *vm, tpl_dict *d)
{
    size_t cap = d->cap ? 2 * d->cap : 8;
    tpl_val *key = ebb_tpl_alloc_array(vm, cap, sizeof *key), *val = ebb_tpl_alloc_array(vm, cap, sizeof *val);

    if (d->n) {
        memcpy(key, d->key, d->n * sizeof *key);
        memcpy(val, d->val, d->n * sizeof *val);
    }
    d->key = key;
    d->val = val;
    d->cap = cap;
}

static bool is_hashable(tpl_vm *vm, tpl_val v)
{
    ebb_tpl_step(vm, 1);
    if (v.kind == TPL_TUPLE) {
        for (size_t i = 0; i < v.list->n; i++)
            if (v.list->v[i].kind == TPL_TUPLE || !is_hashable(vm, v.list->v[i]))
                return false;
        return true;
    }
    return v.kind != TPL_LIST && v.kind != TPL_DICT;
}

void ebb_tpl_dict_set(tpl_vm *vm, tpl_dict *d, tpl_val key, tpl_val val)
{
    tpl_val *at;

    if (!is_hashable(vm, key))
        ebb_tpl_fail(vm, EBB_FORMAT, "a %s cannot be the key of a dict", ebb_tpl_type_name(key));
    at = ebb_tpl_dict_find(vm, d, key);
    if (at) {
        *at = val;
        return;
    }
    if (d->n == d->cap)
        dict_grow(vm, d);
    d->key[d->n] = key;
    d->val[d->n++] = val;
}

tpl_val *ebb_tpl_dict_find(tpl_vm *vm, const tpl_dict *d, tpl_val key)
{
    ebb_tpl_step(vm, d->n / 8);
    for (size_t i = 0; i < d->n; i++)
        if (ebb_tpl_eq(vm, d->key[i], key))
            return &d->val[i];
    return NULL;
}

tpl_val *ebb_tpl_dict_get(tpl_vm *vm, const tpl_dict *d, const char *key)
{
    ebb_tpl_step(vm, d->n / 8);
    for (size_t i = 0; i < d->n; i++)
        if (d->key[i].kind == TPL_STR && ebb_tpl_str_is(d->key[i].s, key))
            return &d->val[i];
    return NULL;
}

/* -- What Python asks of values ------------------------------------------------------ */

const char *ebb_tpl_type_name(tpl_val v)
{
    static const char *const names[] = {
        [TPL_ABSENT] = "Undefined", [TPL_UNDEF] = "Undefined", [TPL_NONE] = "NoneType", [TPL_BOOL] = "bool",
        [TPL_INT] = "int", [TPL_FLOAT] = "float", [TPL_STR] = "str", [TPL_LIST] = "list", [TPL_TUPLE] = "tuple",
        [TPL_DICT] = "dict", [TPL_RANGE] = "range", [TPL_NS] = "Namespace", [TPL_LOOP] = "LoopContext",
        [TPL_MACRO] = "Macro", [TPL_BUILTIN] = "function", [TPL_METHOD] = "builtin_function_or_method",
        [TPL_CYCLER] = "Cycler", [TPL_JOINER] = "Joiner",
    };

    return v.kind == TPL_ITER ? v.iter->type : names[v.kind];
}

static size_t range_len(const tpl_range *r)
{
    uint64_t span, step;

    if (r->step > 0 ? r->start >= r->stop : r->start <= r->stop)
        return 0;
    span = r->step > 0 ? (uint64_t)r->stop - (uint64_t)r->start : (uint64_t)r->start - (uint64_t)r->stop;
    step = r->step > 0 ? (uint64_t)r->step : -(uint64_t)r->step;
    return (size_t)((span - 1) / step + 1);
}

/* The product alone may be beyond 64 bits where the sum is not. */
int64_t ebb_tpl_range_item(const tpl_range *r, size_t i)
{
    return (int64_t)((uint64_t)r->start + (uint64_t)i * (uint64_t)r->step);
}

bool ebb_tpl_truth(tpl_val v)
{
    switch (v.kind) {
    case TPL_ABSENT: case TPL_UNDEF: case TPL_NONE: return false;
    case TPL_BOOL:  return v.b;
    case TPL_INT:   return v.i != 0;
    case TPL_FLOAT: return v.f != 0;
    case TPL_STR:   return v.s->n > 0;
    case TPL_LIST: case TPL_TUPLE: return v.list->n > 0;
    case TPL_DICT:  return v.dict->n > 0;
    case TPL_RANGE: return range_len(v.range) > 0;
    case TPL_ITER:  return v.iter->once || v.iter->items->n > 0;
    default:        return true;
    }
}

bool ebb_tpl_is_number(tpl_val v)
{
    return v.kind == TPL_BOOL || v.kind == TPL_INT || v.kind == TPL_FLOAT;
}

static int64_t int_of(tpl_val v)
{
    return v.kind == TPL_BOOL ? v.b : v.i;
}

double ebb_tpl_as_float(tpl_val v)
{
    return v.kind == TPL_FLOAT ? v.f : (double)int_of(v);
}

static bool lists_eq(tpl_vm *vm, const tpl_list *a, const tpl_list *b)
{
    bool same = a->n == b->n;

    ebb_tpl_enter(vm);
    for (size_t i = 0; same && i < a->n; i++) {
        ebb_tpl_step(vm, 1);
        same = ebb_tpl_eq(vm, a->v[i], b->v[i]);
    }
    ebb_tpl_leave(vm);
    return same;
}

static bool dicts_eq(tpl_vm *vm, const tpl_dict *a, const tpl_dict *b)
{
    bool same = a->n == b->n;

    ebb_tpl_enter(vm);
    for (size_t i = 0; same && i < a->n; i++) {
        ebb_tpl_step(vm, 1);
        const tpl_val *other = ebb_tpl_dict_find(vm, b, a->key[i]);
        same = other && ebb_tpl_eq(vm, a->val[i], *other);
    }
    ebb_tpl_leave(vm);
    return same;
}

bool ebb_tpl_eq(tpl_vm *vm, tpl_val a, tpl_val b)
{
    if (ebb_tpl_is_number(a) && ebb_tpl_is_number(b)) {
        if (a.kind == TPL_FLOAT || b.kind == TPL_FLOAT)
            return ebb_tpl_as_float(a) == ebb_tpl_as_float(b);
        return int_of(a) == int_of(b);
    }
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case TPL_ABSENT: case TPL_UNDEF: case TPL_NONE: return true;
    case TPL_STR:
        ebb_tpl_step(vm, a.s->n == b.s->n ? a.s->n / 64 : 0);
        return ebb_tpl_str_eq(a.s, b.s);
    case TPL_LIST: case TPL_TUPLE:
        ebb_tpl_step(vm, 1);
        return a.list == b.list || lists_eq(vm, a.list, b.list);
    case TPL_DICT:
        ebb_tpl_step(vm, 1);
        return a.dict == b.dict || dicts_eq(vm, a.dict, b.dict);
    case TPL_RANGE: return memcmp(a.range, b.range, sizeof *a.range) == 0;
    case TPL_METHOD: return a.bound->fn == b.bound->fn && ebb_tpl_eq(vm, a.bound->self, b.bound->self);
    default: return a.dict == b.dict;            /* the same object */
    }
}

static int lists_cmp(tpl_vm *vm, const tpl_list *a, const tpl_list *b)
{
    int c = 0;

    ebb_tpl_enter(vm);
    for (size_t i = 0; c == 0 && i < a->n && i < b->n; i++) {
        ebb_tpl_step(vm, 1);
        if (!ebb_tpl_eq(vm, a->v[i], b->v[i]))
            c = ebb_tpl_cmp(vm, a->v[i], b->v[i]);
    }
    ebb_tpl_leave(vm);
    return c ? c : (a->n > b->n) - (a->n < b->n);
}

int ebb_tpl_cmp(tpl_vm *vm, tpl_val a, tpl_val b)
{
    ebb_tpl_step(vm, 1);
    if (ebb_tpl_is_number(a) && ebb_tpl_is_number(b)) {
        if (a.kind != TPL_FLOAT && b.kind != TPL_FLOAT)
            return (int_of(a) > int_of(b)) - (int_of(a) < int_of(b));
        double x = ebb_tpl_as_float(a), y = ebb_tpl_as_float(b);
        return (x > y) - (x < y);
    }
    if (a.kind == TPL_UNDEF || b.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, a.kind == TPL_UNDEF ? a : b);
    if (a.kind == TPL_STR && b.kind == TPL_STR) {
        ebb_tpl_step(vm, (a.s->n < b.s->n ? a.s->n : b.s->n) / 64);
        return ebb_tpl_str_cmp(a.s, b.s);
    }
    if (a.kind == b.kind && (a.kind == TPL_LIST || a.kind == TPL_TUPLE))
        return lists_cmp(vm, a.list, b.list);
    ebb_tpl_fail(vm, EBB_FORMAT, "a %s and a %s have no order", ebb_tpl_type_name(a), ebb_tpl_type_name(b));
}

void ebb_tpl_fail_undef(tpl_vm *vm, tpl_val v)
{
    if (v.kind == TPL_UNDEF && v.s)
        ebb_tpl_fail(vm, EBB_FORMAT, "'%.*s' is undefined", (int)(v.s->n < 100 ? v.s->n : 100), v.s->p);
    ebb_tpl_fail(vm, EBB_FORMAT, "an undefined value is used");
}

size_t ebb_tpl_len(tpl_vm *vm, tpl_val v)
{
    switch (v.kind) {
    case TPL_UNDEF: return 0;
    case TPL_STR: return ebb_tpl_str_cps(vm, v.s);
    case TPL_LIST: case TPL_TUPLE: return v.list->n;
    case TPL_DICT: return v.dict->n;
    case TPL_RANGE: return range_len(v.range);
    case TPL_ITER:
        if (!v.iter->once)
            return v.iter->items->n;
        break;
    default:
        break;
    }
    ebb_tpl_fail(vm, EBB_FORMAT, "a %s has no length", ebb_tpl_type_name(v));
}

bool ebb_tpl_is_iterable(tpl_val v)
{
    return v.kind == TPL_UNDEF || v.kind == TPL_STR || v.kind == TPL_LIST || v.kind == TPL_TUPLE ||
           v.kind == TPL_DICT || v.kind == TPL_RANGE || v.kind == TPL_ITER || v.kind == TPL_LOOP;
}

static tpl_list *chars_of(tpl_vm *vm, tpl_str *s)
{
    size_t n = ebb_tpl_str_cps(vm, s), len;
    tpl_list *l = ebb_tpl_list_new(vm, n);

    ebb_tpl_step(vm, n);
    for (size_t at = 0; at < s->n; at += len) {
        ebb_tpl_str_cp(s, at, &len);
        l->v[l->n++] = ebb_tpl_str(ebb_tpl_str_cut(vm, s, at, at + len));    /* NOLINT: there are n of them */
    }
    return l;
}

static tpl_list *rest_of(tpl_vm *vm, tpl_iter *it)
{
    tpl_list *l;

    if (it->at == 0) {
        it->at = it->once ? it->items->n : 0;
        return it->once && it->at == 0 ? ebb_tpl_list_new(vm, 0) : it->items;
    }
    l = ebb_tpl_list_new(vm, 0);
    *l = (tpl_list){ .n = it->items->n - it->at, .v = it->items->v + it->at };
    l->cap = l->n;
    it->at = it->items->n;
    return l;
}

tpl_list *ebb_tpl_items(tpl_vm *vm, tpl_val v)
{
    tpl_list *l;
    size_t n;

    switch (v.kind) {
    case TPL_UNDEF: return ebb_tpl_list_new(vm, 0);
    case TPL_STR:   return chars_of(vm, v.s);
    case TPL_LIST: case TPL_TUPLE: return v.list;
    case TPL_ITER:  return rest_of(vm, v.iter);
    case TPL_DICT:
        l = ebb_tpl_list_new(vm, v.dict->n);
        for (size_t i = 0; i < v.dict->n; i++)
            l->v[l->n++] = v.dict->key[i];
        ebb_tpl_step(vm, l->n / 8);
        return l;
    case TPL_RANGE:
        n = range_len(v.range);
        l = ebb_tpl_list_new(vm, n);
        for (; l->n < n; l->n++)
            l->v[l->n] = ebb_tpl_int(ebb_tpl_range_item(v.range, l->n));
        ebb_tpl_step(vm, l->n / 8);
        return l;
    default:
        ebb_tpl_fail(vm, EBB_FORMAT, "a %s cannot be iterated", ebb_tpl_type_name(v));
    }
}

bool ebb_tpl_contains(tpl_vm *vm, tpl_val where, tpl_val what)
{
    tpl_list *l;

    if (where.kind == TPL_STR) {
        if (what.kind != TPL_STR)
            ebb_tpl_fail(vm, EBB_FORMAT, "`in` a string looks for a string, not a %s", ebb_tpl_type_name(what));
        return ebb_tpl_str_find(vm, where.s, what.s, 0, where.s->n) != SIZE_MAX;
    }
    if (where.kind == TPL_DICT)
        return ebb_tpl_dict_find(vm, where.dict, what) != NULL;
    l = ebb_tpl_items(vm, where);
    ebb_tpl_step(vm, l->n / 8);
    for (size_t i = 0; i < l->n; i++)
        if (ebb_tpl_eq(vm, l->v[i], what))
            return true;
    return false;
}

/* -- Arguments --------------------------------------------------------------------------- */

bool ebb_tpl_given(tpl_val v)
{
    return v.kind != TPL_ABSENT && v.kind != TPL_NONE;
}

int64_t ebb_tpl_want_int(tpl_vm *vm, tpl_val v, int64_t absent)
{
    if (v.kind == TPL_ABSENT)
        return absent;
    if (v.kind == TPL_BOOL || v.kind == TPL_INT)
        return int_of(v);
    ebb_tpl_fail(vm, EBB_FORMAT, "a whole number is wanted, not a %s", ebb_tpl_type_name(v));
}

tpl_str *ebb_tpl_want_str(tpl_vm *vm, tpl_val v)
{
    if (v.kind == TPL_STR)
        return v.s;
    if (v.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, v);
    ebb_tpl_fail(vm, EBB_FORMAT, "a string is wanted, not a %s", ebb_tpl_type_name(v));
}

bool ebb_tpl_want_bool(tpl_val v, bool absent)
{
    return v.kind == TPL_ABSENT ? absent : ebb_tpl_truth(v);
}
