/* Filters on text and numbers. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/builtins.h"
#include "template/strings.h"

#define FILTER(name) static tpl_val name(tpl_vm *vm, tpl_val self, const tpl_val *a, const tpl_call *call)
#define UNUSED (void)vm, (void)self, (void)a, (void)call

FILTER(upper)      { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, ebb_tpl_to_str(vm, self), TPL_UPPER)); }
FILTER(lower)      { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, ebb_tpl_to_str(vm, self), TPL_LOWER)); }
FILTER(capitalize) { UNUSED; return ebb_tpl_str(ebb_tpl_str_case(vm, ebb_tpl_to_str(vm, self), TPL_CAPITALIZE)); }
FILTER(string)     { UNUSED; return ebb_tpl_str(ebb_tpl_to_str(vm, self)); }
FILTER(escape)     { UNUSED; return ebb_tpl_str(ebb_tpl_str_escape(vm, ebb_tpl_to_str(vm, self))); }

FILTER(trim)
{
    tpl_str *chars = ebb_tpl_given(a[0]) ? ebb_tpl_want_str(vm, a[0]) : NULL;

    (void)call;
    return ebb_tpl_str(ebb_tpl_str_strip(vm, ebb_tpl_to_str(vm, self), chars, TPL_LEFT | TPL_RIGHT));
}

FILTER(replace)
{
    int64_t max = ebb_tpl_given(a[2]) ? ebb_tpl_want_int(vm, a[2], -1) : -1;

    (void)call;
    return ebb_tpl_str(ebb_tpl_str_replace(vm, ebb_tpl_to_str(vm, self), ebb_tpl_to_str(vm, a[0]),
                                           ebb_tpl_to_str(vm, a[1]), max));
}

FILTER(fallback)
{
    UNUSED;
    if (self.kind == TPL_UNDEF || (ebb_tpl_want_bool(a[1], false) && !ebb_tpl_truth(self)))
        return a[0].kind == TPL_ABSENT ? ebb_tpl_text(vm, "") : a[0];
    return self;
}

/* The first character of a word and what separates words: white space and -({[< . */
static bool separates(uint32_t cp)
{
    return ebb_tpl_cp_is_space(cp) || (cp < 128 && cp && strchr("-({[<", (int)cp));
}

FILTER(title)
{
    tpl_str *s = ebb_tpl_to_str(vm, self);
    tpl_sb sb;
    size_t len;

    UNUSED;
    ebb_tpl_sb_init(&sb, vm);
    for (size_t at = 0; at < s->n;) {
        size_t from = at, first;
        ebb_tpl_str_cp(s, at, &first);
        while (at < s->n && separates(ebb_tpl_str_cp(s, at, &len)))
            at = ebb_tpl_str_next(vm, at, len);
        ebb_tpl_sb_part(&sb, s, from, at);
        from = at;
        while (at < s->n && !separates(ebb_tpl_str_cp(s, at, &len)))
            at = ebb_tpl_str_next(vm, at, len);
        if (at == from)
            continue;
        ebb_tpl_str_cp(s, from, &first);
        ebb_tpl_sb_add(&sb, ebb_tpl_str_case(vm, ebb_tpl_str_cut(vm, s, from, from + first), TPL_UPPER));
        ebb_tpl_sb_add(&sb, ebb_tpl_str_case(vm, ebb_tpl_str_cut(vm, s, from + first, at), TPL_LOWER));
    }
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

FILTER(center)
{
    (void)call;
    return ebb_tpl_str(ebb_tpl_str_justify(vm, ebb_tpl_to_str(vm, self), ebb_tpl_want_int(vm, a[0], 80), NULL,
                                           TPL_LEFT | TPL_RIGHT));
}

static tpl_str *indention(tpl_vm *vm, tpl_val width)
{
    tpl_str blank = { .p = " ", .n = 1 };

    return width.kind == TPL_STR ? width.s : ebb_tpl_str_repeat(vm, &blank, ebb_tpl_want_int(vm, width, 4));
}

FILTER(indent)
{
    tpl_str newline = { .p = "\n", .n = 1 }, *by = indention(vm, a[0]);
    tpl_list *lines = ebb_tpl_str_lines(vm, ebb_tpl_concat(vm, ebb_tpl_to_str(vm, self), &newline), false);
    bool first = ebb_tpl_want_bool(a[1], false), blank = ebb_tpl_want_bool(a[2], false);
    tpl_sb sb;

    (void)call;
    ebb_tpl_sb_init(&sb, vm);
    for (size_t i = 0; i < lines->n; i++) {
        if (i > 0)
            ebb_tpl_sb_puts(&sb, "\n");
        if (i == 0 ? first : blank || lines->v[i].s->n > 0)
            ebb_tpl_sb_add(&sb, by);
        ebb_tpl_sb_add(&sb, lines->v[i].s);
    }
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

FILTER(truncate_text)
{
    tpl_str *s = ebb_tpl_to_str(vm, self), blank = { .p = " ", .n = 1 };
    tpl_str *end = a[2].kind == TPL_ABSENT ? ebb_tpl_text(vm, "...").s : ebb_tpl_want_str(vm, a[2]);
    int64_t length = ebb_tpl_want_int(vm, a[0], 255), leeway = ebb_tpl_given(a[3]) ? ebb_tpl_want_int(vm, a[3], 5) : 5;
    int64_t n = (int64_t)ebb_tpl_str_cps(vm, s), n_end = (int64_t)ebb_tpl_str_cps(vm, end);
    size_t cut;

    (void)call;
    if (length < n_end || leeway < 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "truncate: the length must hold the end text");
    if (n <= length || n - length <= leeway)
        return ebb_tpl_str(s);
    s = ebb_tpl_str_cut(vm, s, 0, ebb_tpl_str_at(vm, s, (size_t)(length - n_end)));
    cut = ebb_tpl_want_bool(a[1], false) ? SIZE_MAX : ebb_tpl_str_rfind(vm, s, &blank, 0, s->n);
    if (cut != SIZE_MAX)
        s = ebb_tpl_str_cut(vm, s, 0, cut);
    return ebb_tpl_str(ebb_tpl_concat(vm, s, end));
}

FILTER(wordcount)
{
    tpl_str *s = ebb_tpl_to_str(vm, self);
    int64_t n = 0;
    bool inside = false;
    size_t len;

    UNUSED;
    for (size_t at = 0; at < s->n; at = ebb_tpl_str_next(vm, at, len)) {
        bool word = ebb_tpl_cp_is_word(ebb_tpl_str_cp(s, at, &len));
        n += word && !inside;
        inside = word;
    }
    return ebb_tpl_int(n);
}

static void quote(tpl_sb *sb, const tpl_str *s, bool query)
{
    char hex[4];

    for (size_t i = 0; i < s->n; i = ebb_tpl_str_next(sb->vm, i, 1)) {
        unsigned char c = (unsigned char)s->p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c && strchr("_.-~", c)) || (c == '/' && !query);
        if (plain)
            ebb_tpl_sb_part(sb, s, i, i + 1);
        else if (c == ' ' && query)
            ebb_tpl_sb_raw(sb, "+", 1, s->taint ? s->taint[i] : 0);
        else
            ebb_tpl_sb_raw(sb, hex, (size_t)snprintf(hex, sizeof hex, "%%%02X", c), s->taint ? s->taint[i] : 0);
    }
}

static void quote_pair(tpl_sb *sb, tpl_val key, tpl_val value)
{
    ebb_tpl_step(sb->vm, 1);
    if (sb->n)
        ebb_tpl_sb_puts(sb, "&");
    quote(sb, ebb_tpl_to_str(sb->vm, key), true);
    ebb_tpl_sb_puts(sb, "=");
    quote(sb, ebb_tpl_to_str(sb->vm, value), true);
}

FILTER(urlencode)
{
    tpl_sb sb;

    UNUSED;
    ebb_tpl_sb_init(&sb, vm);
    if (self.kind == TPL_DICT) {
        for (size_t i = 0; i < self.dict->n; i++)
            quote_pair(&sb, self.dict->key[i], self.dict->val[i]);
    } else if (self.kind != TPL_STR && ebb_tpl_is_iterable(self)) {
        tpl_list *pairs = ebb_tpl_items(vm, self);
        for (size_t i = 0; i < pairs->n; i++) {
            tpl_list *pair = ebb_tpl_items(vm, pairs->v[i]);
            if (pair->n != 2)
                ebb_tpl_fail(vm, EBB_FORMAT, "urlencode wants pairs");
            quote_pair(&sb, pair->v[0], pair->v[1]);
        }
    } else {
        quote(&sb, ebb_tpl_to_str(vm, self), false);
    }
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

FILTER(format)
{
    tpl_val args;

    (void)a;
    if (call->n_named) {
        args = ebb_tpl_of_dict(ebb_tpl_dict_new(vm, call->n_named));
        for (size_t i = 0; i < call->n_named; i++)
            ebb_tpl_dict_set(vm, args.dict, ebb_tpl_str(call->names[i]), call->named[i]);
    } else {
        args = ebb_tpl_of_list(TPL_TUPLE, ebb_tpl_list_new(vm, call->n_pos));
        for (size_t i = 0; i < call->n_pos; i++)
            ebb_tpl_list_add(vm, args.list, call->pos[i]);
    }
    return ebb_tpl_str(ebb_tpl_percent(vm, ebb_tpl_to_str(vm, self), args));
}

static void json_separators(tpl_vm *vm, tpl_val v, tpl_json_style *style)
{
    tpl_list *l;

    style->item_sep = ebb_tpl_text(vm, style->has_indent ? "," : ", ").s;
    style->key_sep = ebb_tpl_text(vm, ": ").s;
    if (!ebb_tpl_given(v))
        return;
    l = ebb_tpl_items(vm, v);
    if (l->n != 2)
        ebb_tpl_fail(vm, EBB_FORMAT, "tojson: separators are two strings");
    style->item_sep = ebb_tpl_want_str(vm, l->v[0]);
    style->key_sep = ebb_tpl_want_str(vm, l->v[1]);
}

FILTER(tojson)
{
    tpl_json_style style = {
        .ascii = ebb_tpl_want_bool(a[0], false), .sort_keys = ebb_tpl_want_bool(a[3], false),
        .has_indent = ebb_tpl_given(a[1]),
    };
    tpl_sb sb;

    (void)call;
    if (style.has_indent)
        style.indent = indention(vm, a[1]);
    json_separators(vm, a[2], &style);
    ebb_tpl_sb_init(&sb, vm);
    ebb_tpl_sb_json(&sb, self, &style);
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

const tpl_builtin ebb_tpl_filters_text[] = {
    { "trim", "chars", trim }, { "tojson", "ensure_ascii indent separators sort_keys", tojson },
    { "upper", "", upper }, { "lower", "", lower }, { "capitalize", "", capitalize }, { "title", "", title },
    { "string", "", string }, { "safe", "", string }, { "escape", "", escape }, { "e", "", escape },
    { "forceescape", "", escape }, { "replace", "old! new! count", replace },
    { "default", "default_value boolean", fallback }, { "d", "default_value boolean", fallback },
    { "indent", "width first blank", indent }, { "center", "width", center },
    { "truncate", "length killwords end leeway", truncate_text }, { "wordcount", "", wordcount },
    { "urlencode", "", urlencode }, { "format", "*", format },
    { NULL, NULL, NULL },
};

/* -- Numbers ---------------------------------------------------------------------------- */

FILTER(absolute)
{
    UNUSED;
    if (self.kind == TPL_FLOAT)
        return ebb_tpl_float(fabs(self.f));
    int64_t i = ebb_tpl_want_int(vm, self, 0);
    if (i == INT64_MIN)
        ebb_tpl_fail(vm, EBB_FORMAT, "a whole number grows beyond 64 bits");
    return ebb_tpl_int(i < 0 ? -i : i);
}

/* The trimmed text of a number without "_" between digits; false: too long for one. */
static bool number_text(tpl_vm *vm, tpl_str *s, char out[64])
{
    size_t n = 0;

    s = ebb_tpl_str_strip(vm, s, NULL, TPL_LEFT | TPL_RIGHT);
    if (s->n == 0 || s->n >= 64)
        return false;
    for (size_t i = 0; i < s->n; i++) {
        bool between = s->p[i] == '_' && i > 0 && s->p[i - 1] != '_' && i + 1 < s->n;
        if (!between)
            out[n++] = s->p[i];
    }
    out[n] = '\0';
    return memchr(out, '\0', n) == NULL;
}

static bool read_int(tpl_vm *vm, tpl_str *s, int base, tpl_val *out)
{
    char text[64], *end;
    const char *p = text;
    bool minus;

    if (!number_text(vm, s, text))
        return false;
    minus = *p == '-';
    p += *p == '-' || *p == '+';
    if (p[0] == '0' && ((base == 8 && (p[1] | 0x20) == 'o') || (base == 2 && (p[1] | 0x20) == 'b')))
        p += 2;
    if (*p == '-' || *p == '+' || ebb_tpl_cp_is_space((unsigned char)*p))
        return false;
    errno = 0;
    long long i = strtoll(p, &end, base);
    if (*end || end == p)
        return false;
    if (errno)
        ebb_tpl_fail(vm, EBB_FORMAT, "a whole number grows beyond 64 bits");
    *out = ebb_tpl_int(minus ? -i : i);
    return true;
}

static bool read_float(tpl_vm *vm, tpl_val v, double *out)
{
    char text[64], *end;

    if (ebb_tpl_is_number(v)) {
        *out = ebb_tpl_as_float(v);
        return true;
    }
    if (v.kind == TPL_UNDEF)
        ebb_tpl_fail_undef(vm, v);
    if (v.kind != TPL_STR || !number_text(vm, v.s, text) || strpbrk(text, "xX(pP"))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && end != text;
}

FILTER(to_int)
{
    int64_t base = ebb_tpl_want_int(vm, a[1], 10);
    tpl_val v;
    double f;

    (void)call;
    if (base != 0 && (base < 2 || base > 36))
        ebb_tpl_fail(vm, EBB_FORMAT, "int: base %lld", (long long)base);
    if (self.kind == TPL_STR && read_int(vm, self.s, (int)base, &v))
        return v;
    if (self.kind == TPL_BOOL || self.kind == TPL_INT)
        return ebb_tpl_int(ebb_tpl_want_int(vm, self, 0));
    if (read_float(vm, self, &f) && fabs(f) < 9.2e18)
        return ebb_tpl_int((int64_t)f);
    return a[0].kind == TPL_ABSENT ? ebb_tpl_int(0) : a[0];
}

FILTER(to_float)
{
    double f;

    (void)call;
    if (read_float(vm, self, &f))
        return ebb_tpl_float(f);
    return a[0].kind == TPL_ABSENT ? ebb_tpl_float(0) : a[0];
}

FILTER(rounded)
{
    int64_t precision = ebb_tpl_want_int(vm, a[0], 0);
    tpl_str *how = a[1].kind == TPL_ABSENT ? NULL : ebb_tpl_want_str(vm, a[1]);
    char text[400];

    (void)call;
    if (!ebb_tpl_is_number(self))
        ebb_tpl_fail(vm, EBB_FORMAT, "round wants a number, not a %s", ebb_tpl_type_name(self));
    if (precision > 30 || precision < -30)
        ebb_tpl_fail(vm, EBB_LIMIT, "round: more than 30 digits");
    if (!how || ebb_tpl_str_is(how, "common")) {
        if (self.kind != TPL_FLOAT && precision >= 0)
            return self;
        if (precision >= 0 && isfinite(self.f)) {
            snprintf(text, sizeof text, "%.*f", (int)precision, self.f);
            return ebb_tpl_float(strtod(text, NULL));
        }
    }
    double scale = pow(10, (double)precision), f = ebb_tpl_as_float(self) * scale;
    f = how && ebb_tpl_str_is(how, "ceil") ? ceil(f) : how && ebb_tpl_str_is(how, "floor") ? floor(f) : rint(f);
    f /= scale;
    return self.kind != TPL_FLOAT && !how && fabs(f) < 9e18 ? ebb_tpl_int((int64_t)f) : ebb_tpl_float(f);
}

const tpl_builtin ebb_tpl_filters_number[] = {
    { "abs", "", absolute }, { "int", "default base", to_int }, { "float", "default", to_float },
    { "round", "precision method", rounded },
    { NULL, NULL, NULL },
};
