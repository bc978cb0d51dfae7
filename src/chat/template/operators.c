/* Arithmetic, as Python's. */
#include <math.h>

#include "template/interp.h"
#include "template/strings.h"

_Noreturn static void no_op(tpl_vm *vm, unsigned op, tpl_val a, tpl_val b)
{
    if (a.kind == TPL_UNDEF || b.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, a.kind == TPL_UNDEF ? a : b);
    ebb_tpl_fail(vm, EBB_FORMAT, "'%c%s' does not take a %s and a %s", (int)(op & 255),
                 op > 255 ? (op >> 8 == '*' ? "*" : "/") : "", ebb_tpl_type_name(a), ebb_tpl_type_name(b));
}

static tpl_list *join_lists(tpl_vm *vm, const tpl_list *a, const tpl_list *b)
{
    tpl_list *l = ebb_tpl_list_new(vm, a->n + b->n);

    ebb_tpl_step(vm, (a->n + b->n) / 8);
    for (size_t i = 0; i < a->n; i++)
        l->v[l->n++] = a->v[i];
    for (size_t i = 0; i < b->n; i++)
        l->v[l->n++] = b->v[i];
    return l;
}

static tpl_val repeat(tpl_vm *vm, tpl_val v, tpl_val times)
{
    int64_t n = ebb_tpl_want_int(vm, times, 0);
    tpl_list *l;

    if (v.kind == TPL_STR)
        return ebb_tpl_str(ebb_tpl_str_repeat(vm, v.s, n));
    l = ebb_tpl_list_new(vm, 0);
    for (; v.list->n && n > 0; n--) {
        ebb_tpl_step(vm, v.list->n);
        for (size_t i = 0; i < v.list->n; i++)
            ebb_tpl_list_add(vm, l, v.list->v[i]);
    }
    return ebb_tpl_of_list(v.kind, l);
}

_Noreturn static void too_large(tpl_vm *vm)
{
    ebb_tpl_fail(vm, EBB_FORMAT, "a whole number grows beyond 64 bits");
}

static int64_t int_pow(tpl_vm *vm, int64_t base, int64_t exp)
{
    int64_t r = 1;

    while (exp > 0) {
        if ((exp & 1) && __builtin_mul_overflow(r, base, &r))
            too_large(vm);
        exp >>= 1;
        if (exp && __builtin_mul_overflow(base, base, &base))
            too_large(vm);
    }
    return r;
}

/* Quotient rounded down; *rest has the sign of b. */
static int64_t floor_div(tpl_vm *vm, int64_t a, int64_t b, int64_t *rest)
{
    int64_t q;

    if (b == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "division by zero");
    if (b == -1) {
        *rest = 0;
        if (__builtin_sub_overflow(0, a, &q))
            too_large(vm);
        return q;
    }
    q = a / b;
    *rest = a % b;
    if (*rest && (*rest < 0) != (b < 0)) {
        q--;
        *rest += b;
    }
    return q;
}

static tpl_val ints(tpl_vm *vm, unsigned op, int64_t a, int64_t b)
{
    int64_t r = 0, q;
    bool over = false;

    switch (op) {
    case '+': over = __builtin_add_overflow(a, b, &r); break;
    case '-': over = __builtin_sub_overflow(a, b, &r); break;
    case '*': over = __builtin_mul_overflow(a, b, &r); break;
    case '%': floor_div(vm, a, b, &r); break;
    case TPL_OP('/', '/'): r = floor_div(vm, a, b, &q); break;
    default:
        r = int_pow(vm, a, b);
        break;
    }
    if (over)
        too_large(vm);
    return ebb_tpl_int(r);
}

static tpl_val floats(tpl_vm *vm, unsigned op, double a, double b)
{
    double r;

    if ((op == '/' || op == '%' || op == TPL_OP('/', '/')) && b == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "division by zero");
    switch (op) {
    case '+': return ebb_tpl_float(a + b);
    case '-': return ebb_tpl_float(a - b);
    case '*': return ebb_tpl_float(a * b);
    case '/': return ebb_tpl_float(a / b);
    case TPL_OP('/', '/'): return ebb_tpl_float(floor(a / b));
    case '%':
        r = fmod(a, b);
        return ebb_tpl_float(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    default:
        r = pow(a, b);
        if (isnan(r) || (isinf(r) && !isinf(a) && !isinf(b)))
            ebb_tpl_fail(vm, EBB_FORMAT, "a power has no result");
        return ebb_tpl_float(r);
    }
}

static tpl_val numbers(tpl_vm *vm, unsigned op, tpl_val a, tpl_val b)
{
    int64_t x, y;

    if (a.kind == TPL_FLOAT || b.kind == TPL_FLOAT || op == '/')
        return floats(vm, op, ebb_tpl_as_float(a), ebb_tpl_as_float(b));
    x = ebb_tpl_want_int(vm, a, 0);
    y = ebb_tpl_want_int(vm, b, 0);
    if (op == TPL_OP('*', '*') && y < 0)
        return floats(vm, op, (double)x, (double)y);
    return ints(vm, op, x, y);
}

static bool is_whole(tpl_val v)
{
    return v.kind == TPL_INT || v.kind == TPL_BOOL;
}

static bool repeats(tpl_val v)
{
    return v.kind == TPL_STR || v.kind == TPL_LIST || v.kind == TPL_TUPLE;
}

tpl_val ebb_tpl_binary(tpl_vm *vm, unsigned op, tpl_val a, tpl_val b)
{
    if (ebb_tpl_is_number(a) && ebb_tpl_is_number(b))
        return numbers(vm, op, a, b);
    if (op == '+' && a.kind == TPL_STR && b.kind == TPL_STR)
        return ebb_tpl_str(ebb_tpl_concat(vm, a.s, b.s));
    if (op == '+' && a.kind == b.kind && (a.kind == TPL_LIST || a.kind == TPL_TUPLE))
        return ebb_tpl_of_list(a.kind, join_lists(vm, a.list, b.list));
    if (op == '*' && repeats(a) && is_whole(b))
        return repeat(vm, a, b);
    if (op == '*' && repeats(b) && is_whole(a))
        return repeat(vm, b, a);
    if (op == '%' && a.kind == TPL_STR)
        return ebb_tpl_str(ebb_tpl_percent(vm, a.s, b));
    no_op(vm, op, a, b);
}

tpl_val ebb_tpl_negate(tpl_vm *vm, tpl_val v)
{
    if (v.kind == TPL_FLOAT)
        return ebb_tpl_float(-v.f);
    if (!is_whole(v))
        no_op(vm, '-', ebb_tpl_int(0), v);
    return ints(vm, '-', 0, ebb_tpl_want_int(vm, v, 0));
}
