/* Changing strings: case, stripping, replacing, splitting (strings.h). */
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "template/strings.h"

/* -- Code points ----------------------------------------------------------------------- */

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool ebb_tpl_cp_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || (cp >= 28 && cp <= 32) || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F ||
           cp == 0x3000;
}

bool ebb_tpl_cp_is_alpha(uint32_t cp)
{
    utf8proc_category_t c = category(cp);

    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool ebb_tpl_cp_is_digit(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_ND;
}

bool ebb_tpl_cp_is_word(uint32_t cp)
{
    utf8proc_category_t c = category(cp);

    return cp == '_' || ebb_tpl_cp_is_alpha(cp) || c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL ||
           c == UTF8PROC_CATEGORY_NO;
}

bool ebb_tpl_cp_is_upper(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_LU; }
bool ebb_tpl_cp_is_lower(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_LL; }

bool ebb_tpl_cp_is_printable(uint32_t cp)
{
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC: case UTF8PROC_CATEGORY_CF: case UTF8PROC_CATEGORY_CS: case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN: case UTF8PROC_CATEGORY_ZL: case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return cp == ' ';
    default:
        return true;
    }
}

/* -- Case ---------------------------------------------------------------------------------- */

static void put_case(tpl_sb *sb, uint32_t cp, tpl_taint taint, bool upper, bool is_title)
{
    if (upper && cp == 0xDF) {                   /* sharp s has no single capital */
        ebb_tpl_sb_raw(sb, is_title ? "Ss" : "SS", 2, taint);
        return;
    }
    cp = (uint32_t)(!upper ? utf8proc_tolower((utf8proc_int32_t)cp)
                    : is_title ? utf8proc_totitle((utf8proc_int32_t)cp) : utf8proc_toupper((utf8proc_int32_t)cp));
    ebb_tpl_sb_cp(sb, cp, taint);
}

/* A capital sigma that ends a word has a small form of its own. */
static bool is_final_sigma(const tpl_str *s, size_t at, size_t len, uint32_t cp, bool in_word)
{
    size_t n;

    return cp == 0x3A3 && in_word && (at + len == s->n || !ebb_tpl_cp_is_alpha(ebb_tpl_str_cp(s, at + len, &n)));
}

tpl_str *ebb_tpl_str_case(tpl_vm *vm, const tpl_str *s, tpl_case how)
{
    tpl_sb sb;
    bool in_word = false;
    size_t len;

    ebb_tpl_sb_init(&sb, vm);
    for (size_t at = 0; at < s->n; at = ebb_tpl_str_next(vm, at, len)) {
        uint32_t cp = ebb_tpl_str_cp(s, at, &len);
        bool first = how == TPL_TITLE ? !in_word : at == 0;
        bool upper = how == TPL_UPPER || (how == TPL_SWAP && ebb_tpl_cp_is_lower(cp)) ||
                     ((how == TPL_TITLE || how == TPL_CAPITALIZE) && first);
        if (!upper && is_final_sigma(s, at, len, cp, in_word))
            cp = 0x3C2;
        in_word = ebb_tpl_cp_is_alpha(cp);
        put_case(&sb, cp, s->taint ? s->taint[at] : 0, upper, how == TPL_TITLE || how == TPL_CAPITALIZE);
    }
    return ebb_tpl_sb_finish(&sb);
}

/* -- Stripping --------------------------------------------------------------------------------- */

static bool in_set(tpl_vm *vm, const tpl_str *chars, uint32_t cp)
{
    size_t len;

    if (!chars)
        return ebb_tpl_cp_is_space(cp);
    for (size_t at = 0; at < chars->n; at = ebb_tpl_str_next(vm, at, len))
        if (ebb_tpl_str_cp(chars, at, &len) == cp)
            return true;
    return false;
}

tpl_str *ebb_tpl_str_strip(tpl_vm *vm, const tpl_str *s, const tpl_str *chars, unsigned sides)
{
    size_t from = 0, to = s->n, len;

    while ((sides & TPL_LEFT) && from < to) {
        if (!in_set(vm, chars, ebb_tpl_str_cp(s, from, &len)))
            break;
        from += len;
        ebb_tpl_step(vm, 1);
    }
    while ((sides & TPL_RIGHT) && to > from) {
        size_t last = to - 1;
        while (last > from && ((unsigned char)s->p[last] & 0xC0) == 0x80)
            last--;
        if (!in_set(vm, chars, ebb_tpl_str_cp(s, last, &len)))
            break;
        to = last;
        ebb_tpl_step(vm, 1);
    }
    return ebb_tpl_str_cut(vm, s, from, to);
}

/* -- Replacing --------------------------------------------------------------------------------- */

/* An empty `old` matches before every code point and at the end. */
static tpl_str *interleave(tpl_vm *vm, const tpl_str *s, const tpl_str *by, int64_t max)
{
    tpl_sb sb;
    size_t len;

    ebb_tpl_sb_init(&sb, vm);
    for (size_t at = 0;; at += len) {
        ebb_tpl_step(vm, 1);
        if (max != 0)
            ebb_tpl_sb_add(&sb, by);
        if (max > 0)
            max--;
        if (at == s->n)
            break;
        ebb_tpl_str_cp(s, at, &len);
        ebb_tpl_sb_part(&sb, s, at, at + len);
    }
    return ebb_tpl_sb_finish(&sb);
}

tpl_str *ebb_tpl_str_replace(tpl_vm *vm, const tpl_str *s, const tpl_str *old, const tpl_str *by, int64_t max)
{
    tpl_sb sb;
    size_t at = 0, hit;

    if (old->n == 0)
        return interleave(vm, s, by, max);
    ebb_tpl_sb_init(&sb, vm);
    while (max != 0 && (hit = ebb_tpl_str_find(vm, s, old, at, s->n)) != SIZE_MAX) {
        ebb_tpl_step(vm, 1);
        ebb_tpl_sb_part(&sb, s, at, hit);
        ebb_tpl_sb_add(&sb, by);
        at = hit + old->n;
        if (max > 0)
            max--;
    }
    ebb_tpl_sb_part(&sb, s, at, s->n);
    return ebb_tpl_sb_finish(&sb);
}

/* -- Splitting ----------------------------------------------------------------------------------- */

static void add_cut(tpl_vm *vm, tpl_list *l, const tpl_str *s, size_t from, size_t to)
{
    ebb_tpl_step(vm, 1);
    ebb_tpl_list_add(vm, l, ebb_tpl_str(ebb_tpl_str_cut(vm, s, from, to)));
}

static void reverse(tpl_list *l)
{
    for (size_t i = 0, j = l->n; i + 1 < j; i++) {
        tpl_val v = l->v[i];
        l->v[i] = l->v[--j];
        l->v[j] = v;
    }
}

static tpl_list *split_spaces(tpl_vm *vm, const tpl_str *s, int64_t max)
{
    tpl_list *l = ebb_tpl_list_new(vm, 0);
    size_t at = 0, len;

    for (;;) {
        while (at < s->n && ebb_tpl_cp_is_space(ebb_tpl_str_cp(s, at, &len)))
            at = ebb_tpl_str_next(vm, at, len);
        if (at == s->n)
            return l;
        if (max >= 0 && l->n == (size_t)max)
            break;
        size_t from = at;
        while (at < s->n && !ebb_tpl_cp_is_space(ebb_tpl_str_cp(s, at, &len)))
            at = ebb_tpl_str_next(vm, at, len);
        add_cut(vm, l, s, from, at);
    }
    add_cut(vm, l, s, at, s->n);
    return l;
}

static tpl_list *rsplit_spaces(tpl_vm *vm, const tpl_str *s, int64_t max)
{
    tpl_list *l = ebb_tpl_list_new(vm, 0);
    size_t to = s->n, len;

    ebb_tpl_step(vm, s->n / 8);
    for (;;) {
        while (to > 0 && ebb_tpl_cp_is_space(ebb_tpl_str_cp(s, ebb_utf8_before(s->p, to), &len)))
            to = ebb_utf8_before(s->p, to);
        if (to == 0 || (max >= 0 && l->n == (size_t)max))
            break;
        size_t from = to;
        while (from > 0 && !ebb_tpl_cp_is_space(ebb_tpl_str_cp(s, ebb_utf8_before(s->p, from), &len)))
            from = ebb_utf8_before(s->p, from);
        add_cut(vm, l, s, from, to);
        to = from;
    }
    if (to > 0)
        add_cut(vm, l, s, 0, to);
    reverse(l);
    return l;
}

static tpl_list *rsplit(tpl_vm *vm, const tpl_str *s, const tpl_str *sep, int64_t max)
{
    tpl_list *l = ebb_tpl_list_new(vm, 0);
    size_t to = s->n, hit;

    while ((max < 0 || l->n < (size_t)max) && (hit = ebb_tpl_str_rfind(vm, s, sep, 0, to)) != SIZE_MAX) {
        add_cut(vm, l, s, hit + sep->n, to);
        to = hit;
    }
    add_cut(vm, l, s, 0, to);
    reverse(l);
    return l;
}

tpl_list *ebb_tpl_str_split(tpl_vm *vm, const tpl_str *s, const tpl_str *sep, int64_t max, bool from_right)
{
    tpl_list *l;
    size_t at = 0, hit;

    if (!sep)
        return from_right ? rsplit_spaces(vm, s, max) : split_spaces(vm, s, max);
    if (sep->n == 0)
        ebb_tpl_fail(vm, EBB_FORMAT, "split() with an empty separator");
    if (from_right)
        return rsplit(vm, s, sep, max);
    l = ebb_tpl_list_new(vm, 0);
    while ((max < 0 || l->n < (size_t)max) && (hit = ebb_tpl_str_find(vm, s, sep, at, s->n)) != SIZE_MAX) {
        add_cut(vm, l, s, at, hit);
        at = hit + sep->n;
    }
    add_cut(vm, l, s, at, s->n);
    return l;
}

static bool ends_line(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 28 && cp <= 30) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

tpl_list *ebb_tpl_str_lines(tpl_vm *vm, const tpl_str *s, bool keep_ends)
{
    tpl_list *l = ebb_tpl_list_new(vm, 0);
    size_t from = 0, len;

    for (size_t at = 0; at < s->n;) {
        size_t to = at;
        uint32_t cp = ebb_tpl_str_cp(s, at, &len);
        at = ebb_tpl_str_next(vm, at, len);
        if (!ends_line(cp))
            continue;
        if (cp == '\r' && at < s->n && s->p[at] == '\n')
            at++;
        add_cut(vm, l, s, from, keep_ends ? at : to);
        from = at;
    }
    if (from < s->n)
        add_cut(vm, l, s, from, s->n);
    return l;
}

/* -- Width ------------------------------------------------------------------------------------------- */

tpl_str *ebb_tpl_str_justify(tpl_vm *vm, tpl_str *s, int64_t width, const tpl_str *fill, unsigned pad_sides)
{
    tpl_sb sb;
    char text[8] = " ";
    size_t n = ebb_tpl_str_cps(vm, s), pad, left;

    if (width <= 0 || (uint64_t)width <= n)
        return s;
    if (fill && (fill->n > 4 || fill->n == 0))
        ebb_tpl_fail(vm, EBB_FORMAT, "the fill must be one character");
    if (fill) {
        memcpy(text, fill->p, fill->n);
        text[fill->n] = '\0';
    }
    pad = (size_t)width - n;
    left = pad_sides == (TPL_LEFT | TPL_RIGHT) ? pad / 2 + (pad & (size_t)width & 1) : pad_sides == TPL_LEFT ? pad : 0;
    ebb_tpl_sb_init(&sb, vm);
    ebb_tpl_sb_pad(&sb, left, text);
    ebb_tpl_sb_add(&sb, s);
    ebb_tpl_sb_pad(&sb, pad - left, text);
    return ebb_tpl_sb_finish(&sb);
}

tpl_str *ebb_tpl_str_repeat(tpl_vm *vm, const tpl_str *s, int64_t n)
{
    tpl_sb sb;

    ebb_tpl_sb_init(&sb, vm);
    for (; s->n && n > 0; n--) {
        ebb_tpl_step(vm, 1);
        ebb_tpl_sb_add(&sb, s);
    }
    return ebb_tpl_sb_finish(&sb);
}

tpl_str *ebb_tpl_str_escape(tpl_vm *vm, const tpl_str *s)
{
    static const struct { char c; const char *by; } map[] = {
        { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&#34;" }, { '\'', "&#39;" },
    };
    tpl_sb sb;

    ebb_tpl_sb_init(&sb, vm);
    for (size_t i = 0; i < s->n; i = ebb_tpl_str_next(vm, i, 1)) {
        const char *by = NULL;
        for (size_t k = 0; k < sizeof map / sizeof *map; k++)
            if (s->p[i] == map[k].c)
                by = map[k].by;
        if (by)
            ebb_tpl_sb_raw(&sb, by, strlen(by), s->taint ? s->taint[i] : 0);
        else
            ebb_tpl_sb_part(&sb, s, i, i + 1);
    }
    return ebb_tpl_sb_finish(&sb);
}
