/* Tests: what may follow `is`. */
#include "template/builtins.h"
#include "template/strings.h"

#define TEST(name) static tpl_val name(tpl_vm *vm, tpl_val v, const tpl_val *a, const tpl_call *call)
#define IS(name, condition) TEST(name) { (void)vm; (void)v; (void)a; (void)call; return ebb_tpl_bool(condition); }

IS(is_defined, v.kind != TPL_UNDEF)
IS(is_undefined, v.kind == TPL_UNDEF)
IS(is_none, v.kind == TPL_NONE)
IS(is_true, v.kind == TPL_BOOL && v.b)
IS(is_false, v.kind == TPL_BOOL && !v.b)
IS(is_boolean, v.kind == TPL_BOOL)
IS(is_integer, v.kind == TPL_INT)
IS(is_float, v.kind == TPL_FLOAT)
IS(is_number, ebb_tpl_is_number(v))
IS(is_string, v.kind == TPL_STR)
IS(is_mapping, v.kind == TPL_DICT)
IS(is_iterable, ebb_tpl_is_iterable(v))
IS(is_sequence, v.kind == TPL_UNDEF || v.kind == TPL_STR || v.kind == TPL_LIST || v.kind == TPL_TUPLE ||
                v.kind == TPL_DICT || v.kind == TPL_RANGE)
IS(is_callable, v.kind == TPL_MACRO || v.kind == TPL_BUILTIN || v.kind == TPL_METHOD || v.kind == TPL_LOOP ||
                v.kind == TPL_JOINER || v.kind == TPL_UNDEF)
IS(is_escaped, false)

IS(is_eq, ebb_tpl_eq(vm, v, a[0]))
IS(is_ne, !ebb_tpl_eq(vm, v, a[0]))
IS(is_lt, ebb_tpl_cmp(vm, v, a[0]) < 0)
IS(is_le, ebb_tpl_cmp(vm, v, a[0]) <= 0)
IS(is_gt, ebb_tpl_cmp(vm, v, a[0]) > 0)
IS(is_ge, ebb_tpl_cmp(vm, v, a[0]) >= 0)
IS(is_in, ebb_tpl_contains(vm, a[0], v))
IS(is_filter, ebb_tpl_filter_find(ebb_tpl_want_str(vm, v)) != NULL)
IS(is_test, ebb_tpl_test_find(ebb_tpl_want_str(vm, v)) != NULL)

static int64_t rest_by(tpl_vm *vm, tpl_val v, int64_t by)
{
    int64_t i = ebb_tpl_want_int(vm, v, 0);

    if (by == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "division by zero");
    return by == -1 ? 0 : i % by;
}

IS(is_odd, rest_by(vm, v, 2) != 0)
IS(is_even, rest_by(vm, v, 2) == 0)
IS(is_divisible, rest_by(vm, v, ebb_tpl_want_int(vm, a[0], 1)) == 0)

/* Some letter has a case, and all have this one: str.islower(), str.isupper(). */
static bool all_case(tpl_vm *vm, tpl_val v, bool upper)
{
    tpl_str *s = ebb_tpl_to_str(vm, v);
    bool some = false;
    size_t len;

    for (size_t at = 0; at < s->n; at = ebb_tpl_str_next(vm, at, len)) {
        uint32_t cp = ebb_tpl_str_cp(s, at, &len);
        if (upper ? ebb_tpl_cp_is_lower(cp) : ebb_tpl_cp_is_upper(cp))
            return false;
        some |= upper ? ebb_tpl_cp_is_upper(cp) : ebb_tpl_cp_is_lower(cp);
    }
    return some;
}

IS(is_lower, all_case(vm, v, false))
IS(is_upper, all_case(vm, v, true))

/* The same object: equal, and of one type where a value has no identity. */
static bool same(tpl_vm *vm, tpl_val x, tpl_val y)
{
    if (x.kind != y.kind)
        return false;
    switch (x.kind) {
    case TPL_LIST: case TPL_TUPLE: case TPL_DICT: case TPL_NS: case TPL_ITER:
        return x.list == y.list;
    default:
        return ebb_tpl_eq(vm, x, y);
    }
}

IS(is_same, same(vm, v, a[0]))

const tpl_builtin ebb_tpl_tests[] = {
    { "defined", "", is_defined }, { "undefined", "", is_undefined }, { "none", "", is_none }, { "true", "", is_true },
    { "false", "", is_false }, { "boolean", "", is_boolean }, { "integer", "", is_integer }, { "float", "", is_float },
    { "number", "", is_number }, { "string", "", is_string }, { "mapping", "", is_mapping },
    { "iterable", "", is_iterable }, { "sequence", "", is_sequence }, { "callable", "", is_callable },
    { "escaped", "", is_escaped }, { "odd", "", is_odd }, { "even", "", is_even },
    { "divisibleby", "num!", is_divisible },
    { "eq", "other!", is_eq }, { "equalto", "other!", is_eq }, { "==", "other!", is_eq },
    { "ne", "other!", is_ne }, { "!=", "other!", is_ne }, { "lt", "other!", is_lt }, { "lessthan", "other!", is_lt },
    { "<", "other!", is_lt }, { "le", "other!", is_le }, { "<=", "other!", is_le }, { "gt", "other!", is_gt },
    { "greaterthan", "other!", is_gt }, { ">", "other!", is_gt }, { "ge", "other!", is_ge }, { ">=", "other!", is_ge },
    { "in", "seq!", is_in }, { "sameas", "other!", is_same }, { "lower", "", is_lower }, { "upper", "", is_upper },
    { "filter", "", is_filter }, { "test", "", is_test },
    { NULL, NULL, NULL },
};
