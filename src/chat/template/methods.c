/* Methods of strings, dicts and lists.  Those that would change a value are not
 * there: the sandbox of chat templates is immutable. */
#include <string.h>

#include "template/builtins.h"
#include "template/strings.h"

#define METHOD(name) static tpl_val name(tpl_vm *vm, tpl_val self, const tpl_val *a, const tpl_call *call)
#define UNUSED (void)vm, (void)self, (void)a, (void)call

/* -- Strings: whole -> whole --------------------------------------------------------------- */

METHOD(upper)      { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, self.s, TPL_UPPER)); }
METHOD(lower)      { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, self.s, TPL_LOWER)); }
METHOD(capitalize) { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, self.s, TPL_CAPITALIZE)); }
METHOD(title)      { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, self.s, TPL_TITLE)); }
METHOD(swapcase)   { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, self.s, TPL_SWAP)); }

static tpl_val strip(tpl_vm *vm, tpl_val self, tpl_val chars, unsigned sides)
{
    return ebb_tpl_str(ebb_tpl_str_strip(vm, self.s, ebb_tpl_given(chars) ? ebb_tpl_want_str(vm, chars) : NULL, sides));
}

METHOD(strip_both)  { UNUSED; return strip(vm, self, a[0], TPL_LEFT | TPL_RIGHT); }
METHOD(strip_left)  { UNUSED; return strip(vm, self, a[0], TPL_LEFT); }
METHOD(strip_right) { UNUSED; return strip(vm, self, a[0], TPL_RIGHT); }

static tpl_val justify(tpl_vm *vm, tpl_val self, const tpl_val *a, unsigned sides)
{
    tpl_str *fill = a[1].kind == TPL_ABSENT ? NULL : ebb_tpl_want_str(vm, a[1]);

    return ebb_tpl_str(ebb_tpl_str_justify(vm, self.s, ebb_tpl_want_int(vm, a[0], 0), fill, sides));
}

METHOD(center) { UNUSED; return justify(vm, self, a, TPL_LEFT | TPL_RIGHT); }
METHOD(ljust)  { UNUSED; return justify(vm, self, a, TPL_RIGHT); }
METHOD(rjust)  { UNUSED; return justify(vm, self, a, TPL_LEFT); }

METHOD(zfill)
{
    tpl_str zero = { .p = "0", .n = 1 };
    bool sign = self.s->n && (self.s->p[0] == '-' || self.s->p[0] == '+');
    tpl_str *digits = ebb_tpl_str_cut(vm, self.s, sign, self.s->n);
    int64_t width = ebb_tpl_want_int(vm, a[0], 0);

    UNUSED;
    digits = ebb_tpl_str_justify(vm, digits, width > INT64_MIN ? width - sign : width, &zero, TPL_LEFT);
    return ebb_tpl_str(sign ? ebb_tpl_concat(vm, ebb_tpl_str_cut(vm, self.s, 0, 1), digits) : digits);
}

METHOD(replace)
{
    UNUSED;
    return ebb_tpl_str(ebb_tpl_str_replace(vm, self.s, ebb_tpl_want_str(vm, a[0]), ebb_tpl_want_str(vm, a[1]),
                                           ebb_tpl_want_int(vm, a[2], -1)));
}

static bool starts(tpl_vm *vm, const tpl_str *s, const tpl_str *with)
{
    ebb_tpl_step(vm, 1 + (s->n >= with->n ? with->n / 64 : 0));
    return s->n >= with->n && memcmp(s->p, with->p, with->n) == 0;
}

static bool ends(tpl_vm *vm, const tpl_str *s, const tpl_str *with)
{
    ebb_tpl_step(vm, 1 + (s->n >= with->n ? with->n / 64 : 0));
    return s->n >= with->n && memcmp(s->p + s->n - with->n, with->p, with->n) == 0;
}

METHOD(removeprefix)
{
    tpl_str *with = ebb_tpl_want_str(vm, a[0]);

    UNUSED;
    return ebb_tpl_str(ebb_tpl_str_cut(vm, self.s, starts(vm, self.s, with) ? with->n : 0, self.s->n));
}

METHOD(removesuffix)
{
    tpl_str *with = ebb_tpl_want_str(vm, a[0]);

    UNUSED;
    return ebb_tpl_str(ebb_tpl_str_cut(vm, self.s, 0, self.s->n - (ends(vm, self.s, with) ? with->n : 0)));
}

METHOD(format) { UNUSED; return ebb_tpl_str(ebb_tpl_format(vm, self.s, call)); }

METHOD(join)
{
    tpl_list *l = ebb_tpl_items(vm, a[0]);
    tpl_sb sb;

    UNUSED;
    ebb_tpl_sb_init(&sb, vm);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            ebb_tpl_sb_add(&sb, self.s);
        ebb_tpl_step(vm, 1);
        ebb_tpl_sb_add(&sb, ebb_tpl_want_str(vm, l->v[i]));
    }
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

/* -- Strings: parts ---------------------------------------------------------------------------- */

static tpl_val split(tpl_vm *vm, tpl_val self, const tpl_val *a, bool from_right)
{
    tpl_str *sep = ebb_tpl_given(a[0]) ? ebb_tpl_want_str(vm, a[0]) : NULL;

    return ebb_tpl_of_list(TPL_LIST, ebb_tpl_str_split(vm, self.s, sep, ebb_tpl_want_int(vm, a[1], -1), from_right));
}

METHOD(split_left)  { UNUSED; return split(vm, self, a, false); }
METHOD(split_right) { UNUSED; return split(vm, self, a, true); }

METHOD(splitlines)
{
    UNUSED;
    return ebb_tpl_of_list(TPL_LIST, ebb_tpl_str_lines(vm, self.s, ebb_tpl_want_bool(a[0], false)));
}

static tpl_val partition(tpl_vm *vm, tpl_val self, tpl_val by, bool from_right)
{
    tpl_str *s = self.s, *sep = ebb_tpl_want_str(vm, by);
    size_t at, len = sep->n;
    tpl_list *l = ebb_tpl_list_new(vm, 3);

    if (len == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "partition() with an empty separator");
    at = from_right ? ebb_tpl_str_rfind(vm, s, sep, 0, s->n) : ebb_tpl_str_find(vm, s, sep, 0, s->n);
    if (at == SIZE_MAX) {
        at = from_right ? 0 : s->n;
        len = 0;
    }
    ebb_tpl_list_add(vm, l, ebb_tpl_str(ebb_tpl_str_cut(vm, s, 0, at)));
    ebb_tpl_list_add(vm, l, ebb_tpl_str(ebb_tpl_str_cut(vm, s, at, at + len)));
    ebb_tpl_list_add(vm, l, ebb_tpl_str(ebb_tpl_str_cut(vm, s, at + len, s->n)));
    return ebb_tpl_of_list(TPL_TUPLE, l);
}

METHOD(partition_left)  { UNUSED; return partition(vm, self, a[0], false); }
METHOD(partition_right) { UNUSED; return partition(vm, self, a[0], true); }

/* -- Strings: searching -------------------------------------------------------------------------- */

/* Byte range of the optional arguments start and end; false: an empty range outside of the string. */
static bool window(tpl_vm *vm, tpl_str *s, const tpl_val *a, size_t *from, size_t *to)
{
    int64_t n = (int64_t)ebb_tpl_str_cps(vm, s), part[2] = { 0, n };

    for (int i = 0; i < 2; i++) {
        if (!ebb_tpl_given(a[i]))
            continue;
        part[i] = ebb_tpl_want_int(vm, a[i], 0);
        part[i] += part[i] < 0 ? n : 0;
        part[i] = part[i] < 0 ? 0 : part[i];
    }
    if (part[0] > n)
        return false;
    *from = ebb_tpl_str_at(vm, s, (size_t)part[0]);
    *to = ebb_tpl_str_at(vm, s, (size_t)part[1]);
    return part[0] <= part[1];
}

static bool affix(tpl_vm *vm, tpl_val self, const tpl_val *a,
                  bool (*has)(tpl_vm *, const tpl_str *, const tpl_str *))
{
    size_t from, to;
    tpl_str *s;

    if (!window(vm, self.s, a + 1, &from, &to))
        return false;
    s = ebb_tpl_str_cut(vm, self.s, from, to);
    if (a[0].kind != TPL_TUPLE)
        return has(vm, s, ebb_tpl_want_str(vm, a[0]));
    for (size_t i = 0; i < a[0].list->n; i++)
        if (has(vm, s, ebb_tpl_want_str(vm, a[0].list->v[i])))
            return true;
    return false;
}

METHOD(startswith) { UNUSED; return ebb_tpl_bool(affix(vm, self, a, starts)); }
METHOD(endswith)   { UNUSED; return ebb_tpl_bool(affix(vm, self, a, ends)); }

static int64_t find_substring(tpl_vm *vm, tpl_val self, const tpl_val *a, bool last, bool must)
{
    tpl_str *what = ebb_tpl_want_str(vm, a[0]);
    size_t from, to, at = SIZE_MAX;

    if (window(vm, self.s, a + 1, &from, &to))
        at = last ? ebb_tpl_str_rfind(vm, self.s, what, from, to) : ebb_tpl_str_find(vm, self.s, what, from, to);
    if (at == SIZE_MAX && must)
        ebb_tpl_fail(vm, EBB_FORMAT, "index(): not found");
    return at == SIZE_MAX ? -1 : (int64_t)ebb_tpl_str_to_cp(vm, self.s, at);
}

METHOD(find_first)  { UNUSED; return ebb_tpl_int(find_substring(vm, self, a, false, false)); }
METHOD(find_last)   { UNUSED; return ebb_tpl_int(find_substring(vm, self, a, true, false)); }
METHOD(index_first) { UNUSED; return ebb_tpl_int(find_substring(vm, self, a, false, true)); }
METHOD(index_last)  { UNUSED; return ebb_tpl_int(find_substring(vm, self, a, true, true)); }

METHOD(count)
{
    tpl_str *what = ebb_tpl_want_str(vm, a[0]);
    size_t from, to;
    int64_t n = 0;

    UNUSED;
    if (!window(vm, self.s, a + 1, &from, &to))
        return ebb_tpl_int(0);
    if (what->n == 0)
        return ebb_tpl_int((int64_t)(ebb_tpl_str_to_cp(vm, self.s, to) - ebb_tpl_str_to_cp(vm, self.s, from)) + 1);
    for (; (from = ebb_tpl_str_find(vm, self.s, what, from, to)) != SIZE_MAX; from += what->n) {
        ebb_tpl_step(vm, 1);
        n++;
    }
    return ebb_tpl_int(n);
}

/* -- Strings: questions ------------------------------------------------------------------------------ */

static bool is_alnum(uint32_t cp)
{
    return cp != '_' && ebb_tpl_cp_is_word(cp);
}

static bool all_chars(tpl_vm *vm, const tpl_str *s, bool (*is)(uint32_t))
{
    size_t len;

    for (size_t at = 0; at < s->n; at = ebb_tpl_str_next(vm, at, len))
        if (!is(ebb_tpl_str_cp(s, at, &len)))
            return false;
    return s->n > 0;
}

METHOD(str_isdigit) { UNUSED; return ebb_tpl_bool(all_chars(vm, self.s, ebb_tpl_cp_is_digit)); }
METHOD(str_isalpha) { UNUSED; return ebb_tpl_bool(all_chars(vm, self.s, ebb_tpl_cp_is_alpha)); }
METHOD(str_isalnum) { UNUSED; return ebb_tpl_bool(all_chars(vm, self.s, is_alnum)); }
METHOD(str_isspace) { UNUSED; return ebb_tpl_bool(all_chars(vm, self.s, ebb_tpl_cp_is_space)); }

static tpl_val call_test(tpl_vm *vm, tpl_val self, const char *test)
{
    tpl_str name = { .p = test, .n = strlen(test) };

    return ebb_tpl_test_find(&name)->fn(vm, self, NULL, NULL);
}

METHOD(str_islower) { UNUSED; return call_test(vm, self, "lower"); }
METHOD(str_isupper) { UNUSED; return call_test(vm, self, "upper"); }

const tpl_builtin ebb_tpl_methods_str[] = {
    { "split", "sep maxsplit", split_left }, { "rsplit", "sep maxsplit", split_right },
    { "strip", "chars", strip_both }, { "lstrip", "chars", strip_left }, { "rstrip", "chars", strip_right },
    { "startswith", "prefix! start end", startswith }, { "endswith", "suffix! start end", endswith },
    { "replace", "old! new! count", replace }, { "join", "iterable!", join }, { "format", "*", format },
    { "upper", "", upper }, { "lower", "", lower }, { "casefold", "", lower }, { "title", "", title },
    { "capitalize", "", capitalize }, { "swapcase", "", swapcase }, { "find", "sub! start end", find_first },
    { "rfind", "sub! start end", find_last }, { "index", "sub! start end", index_first },
    { "rindex", "sub! start end", index_last }, { "count", "sub! start end", count },
    { "splitlines", "keepends", splitlines }, { "partition", "sep!", partition_left },
    { "rpartition", "sep!", partition_right }, { "removeprefix", "prefix!", removeprefix },
    { "removesuffix", "suffix!", removesuffix }, { "isdigit", "", str_isdigit }, { "isdecimal", "", str_isdigit },
    { "isnumeric", "", str_isdigit }, { "isalpha", "", str_isalpha }, { "isalnum", "", str_isalnum },
    { "isspace", "", str_isspace },
    { "islower", "", str_islower }, { "isupper", "", str_isupper }, { "center", "width! fill", center },
    { "ljust", "width! fill", ljust }, { "rjust", "width! fill", rjust }, { "zfill", "width!", zfill },
    { NULL, NULL, NULL },
};

/* -- Dicts and lists --------------------------------------------------------------------------------------- */

METHOD(dict_get)
{
    const tpl_val *at = ebb_tpl_dict_find(vm, self.dict, a[0]);

    UNUSED;
    return at ? *at : a[1].kind == TPL_ABSENT ? ebb_tpl_none() : a[1];
}

METHOD(dict_copy) { UNUSED; return self; }

METHOD(dict_keys)
{
    UNUSED;
    return ebb_tpl_of_iter(vm, ebb_tpl_items(vm, self), false, "dict_keys");
}

METHOD(dict_values)
{
    tpl_list *l = ebb_tpl_list_new(vm, self.dict->n);

    UNUSED;
    ebb_tpl_step(vm, self.dict->n / 8);
    for (size_t i = 0; i < self.dict->n; i++)
        l->v[l->n++] = self.dict->val[i];
    return ebb_tpl_of_iter(vm, l, false, "dict_values");
}

METHOD(dict_items)
{
    tpl_list *l = ebb_tpl_list_new(vm, self.dict->n);

    UNUSED;
    ebb_tpl_step(vm, self.dict->n / 8);
    for (size_t i = 0; i < self.dict->n; i++) {
        tpl_list *pair = ebb_tpl_list_new(vm, 2);
        pair->v[pair->n++] = self.dict->key[i];
        pair->v[pair->n++] = self.dict->val[i];
        l->v[l->n++] = ebb_tpl_of_list(TPL_TUPLE, pair);
    }
    return ebb_tpl_of_iter(vm, l, false, "dict_items");
}

const tpl_builtin ebb_tpl_methods_dict[] = {
    { "get", "key! default", dict_get }, { "items", "", dict_items }, { "keys", "", dict_keys },
    { "values", "", dict_values }, { "copy", "", dict_copy },
    { NULL, NULL, NULL },
};

METHOD(list_index)
{
    UNUSED;
    ebb_tpl_step(vm, self.list->n / 8);
    for (size_t i = 0; i < self.list->n; i++)
        if (ebb_tpl_eq(vm, self.list->v[i], a[0]))
            return ebb_tpl_int((int64_t)i);
    ebb_tpl_fail(vm, EBB_FORMAT, "index(): not found");
}

METHOD(list_count)
{
    int64_t n = 0;

    UNUSED;
    ebb_tpl_step(vm, self.list->n / 8);
    for (size_t i = 0; i < self.list->n; i++)
        n += ebb_tpl_eq(vm, self.list->v[i], a[0]);
    return ebb_tpl_int(n);
}

const tpl_builtin ebb_tpl_methods_list[] = {
    { "index", "value!", list_index }, { "count", "value!", list_count }, { "copy", "", dict_copy },
    { NULL, NULL, NULL },
};
