/* Values as text: Python's str() and repr(), and json.dumps() (value.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "template/interp.h"
#include "template/strings.h"

/* The shortest digits that read back as f, placed as Python places them: an
 * exponent below 1e-4 and from 1e16. */
static void append_float(tpl_sb *sb, double f, const char *inf, const char *nan)
{
    char text[40];
    int digits = 1, exponent;
    const char *e;

    if (isnan(f) || isinf(f)) {
        ebb_tpl_sb_puts(sb, isnan(f) ? nan : f < 0 ? "-" : "");
        if (isinf(f))
            ebb_tpl_sb_puts(sb, inf);
        return;
    }
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, f);
    while (strtod(text, NULL) != f && digits++ < 17);
    e = strchr(text, 'e');
    exponent = atoi(e + 1);
    if (exponent >= -4 && exponent < 16) {
        int after = digits - 1 - exponent;
        snprintf(text, sizeof text, "%.*f", after > 1 ? after : 1, f);
    } else {
        snprintf(text, sizeof text, "%.*e", digits - 1, f);
    }
    ebb_tpl_sb_puts(sb, text);
}

static void append_int(tpl_sb *sb, int64_t i)
{
    char text[24];

    ebb_tpl_sb_raw(sb, text, (size_t)snprintf(text, sizeof text, "%" PRId64, i), 0);
}

/* -- repr() ------------------------------------------------------------------------ */

static void append_escape(tpl_sb *sb, uint32_t cp, tpl_taint taint)
{
    char text[12];
    char letter = cp < 0x100 ? 'x' : cp < 0x10000 ? 'u' : 'U';
    int width = cp < 0x100 ? 2 : cp < 0x10000 ? 4 : 8;

    ebb_tpl_sb_raw(sb, text, (size_t)snprintf(text, sizeof text, "\\%c%0*" PRIx32, letter, width, cp), taint);
}

static void repr_str(tpl_sb *sb, const tpl_str *s)
{
    bool has_single = s->n && memchr(s->p, '\'', s->n), has_double = s->n && memchr(s->p, '"', s->n);
    char quote = has_single && !has_double ? '"' : '\'';
    size_t len;

    ebb_tpl_sb_raw(sb, &quote, 1, 0);
    for (size_t at = 0; at < s->n; at = ebb_tpl_str_next(sb->vm, at, len)) {
        uint32_t cp = ebb_tpl_str_cp(s, at, &len);
        tpl_taint taint = s->taint ? s->taint[at] : 0;
        const char *plain = cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : cp == '\t' ? "\\t" : cp == '\\' ? "\\\\" : NULL;
        if (plain)
            ebb_tpl_sb_raw(sb, plain, 2, taint);
        else if (cp == (uint32_t)quote)
            ebb_tpl_sb_raw(sb, "\\'", 2, taint);
        else if (ebb_tpl_cp_is_printable(cp))
            ebb_tpl_sb_part(sb, s, at, at + len);
        else
            append_escape(sb, cp, taint);
    }
    ebb_tpl_sb_raw(sb, &quote, 1, 0);
}

static void repr_list(tpl_sb *sb, const tpl_list *l, const char *open, const char *close)
{
    ebb_tpl_sb_puts(sb, open);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            ebb_tpl_sb_puts(sb, ", ");
        ebb_tpl_sb_repr(sb, l->v[i]);
    }
    ebb_tpl_sb_puts(sb, close);
}

static void repr_dict(tpl_sb *sb, const tpl_dict *d)
{
    ebb_tpl_sb_puts(sb, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            ebb_tpl_sb_puts(sb, ", ");
        ebb_tpl_sb_repr(sb, d->key[i]);
        ebb_tpl_sb_puts(sb, ": ");
        ebb_tpl_sb_repr(sb, d->val[i]);
    }
    ebb_tpl_sb_puts(sb, "}");
}

static void repr_range(tpl_sb *sb, const tpl_range *r)
{
    ebb_tpl_sb_puts(sb, "range(");
    append_int(sb, r->start);
    ebb_tpl_sb_puts(sb, ", ");
    append_int(sb, r->stop);
    if (r->step != 1) {
        ebb_tpl_sb_puts(sb, ", ");
        append_int(sb, r->step);
    }
    ebb_tpl_sb_puts(sb, ")");
}

static void repr_object(tpl_sb *sb, tpl_val v)
{
    if (v.kind == TPL_ITER && !v.iter->once) {
        ebb_tpl_sb_puts(sb, v.iter->type);
        repr_list(sb, v.iter->items, "([", "])");
        return;
    }
    ebb_tpl_sb_puts(sb, v.kind == TPL_NS ? "<Namespace " : v.kind == TPL_MACRO ? "<Macro " : "<");
    if (v.kind == TPL_NS)
        repr_dict(sb, v.dict);
    else if (v.kind == TPL_MACRO)
        repr_str(sb, v.macro->node->name);
    else
        ebb_tpl_sb_puts(sb, ebb_tpl_type_name(v));
    ebb_tpl_sb_puts(sb, v.kind == TPL_ITER ? " object>" : ">");
}

void ebb_tpl_sb_repr(tpl_sb *sb, tpl_val v)
{
    ebb_tpl_step(sb->vm, 1);
    ebb_tpl_enter(sb->vm);
    switch (v.kind) {
    case TPL_ABSENT: case TPL_UNDEF: ebb_tpl_sb_puts(sb, "Undefined"); break;
    case TPL_NONE:  ebb_tpl_sb_puts(sb, "None"); break;
    case TPL_BOOL:  ebb_tpl_sb_puts(sb, v.b ? "True" : "False"); break;
    case TPL_INT:   append_int(sb, v.i); break;
    case TPL_FLOAT: append_float(sb, v.f, "inf", "nan"); break;
    case TPL_STR:   repr_str(sb, v.s); break;
    case TPL_LIST:  repr_list(sb, v.list, "[", "]"); break;
    case TPL_TUPLE: repr_list(sb, v.list, "(", v.list->n == 1 ? ",)" : ")"); break;
    case TPL_DICT:  repr_dict(sb, v.dict); break;
    case TPL_RANGE: repr_range(sb, v.range); break;
    default:        repr_object(sb, v); break;
    }
    ebb_tpl_leave(sb->vm);
}

void ebb_tpl_sb_str(tpl_sb *sb, tpl_val v)
{
    if (v.kind == TPL_STR)
        ebb_tpl_sb_add(sb, v.s);
    else if (v.kind != TPL_UNDEF && v.kind != TPL_ABSENT)
        ebb_tpl_sb_repr(sb, v);
}

tpl_str *ebb_tpl_to_str(tpl_vm *vm, tpl_val v)
{
    tpl_sb sb;

    if (v.kind == TPL_STR)
        return v.s;
    ebb_tpl_sb_init(&sb, vm);
    ebb_tpl_sb_str(&sb, v);
    return ebb_tpl_sb_finish(&sb);
}

/* -- json.dumps() --------------------------------------------------------------------- */

static void json_escape(tpl_sb *sb, uint32_t cp, tpl_taint taint)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *known = cp && cp < 0x80 ? strchr(from, (int)cp) : NULL;
    char text[16];

    if (known)
        snprintf(text, sizeof text, "\\%c", to[known - from]);
    else if (cp < 0x10000)
        snprintf(text, sizeof text, "\\u%04" PRIx32, cp);
    else
        snprintf(text, sizeof text, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD7C0 + (cp >> 10), 0xDC00 | (cp & 0x3FF));
    ebb_tpl_sb_raw(sb, text, strlen(text), taint);
}

static void json_str(tpl_sb *sb, const tpl_str *s, const tpl_json_style *style)
{
    size_t len;

    ebb_tpl_sb_puts(sb, "\"");
    for (size_t at = 0; at < s->n; at = ebb_tpl_str_next(sb->vm, at, len)) {
        uint32_t cp = ebb_tpl_str_cp(s, at, &len);
        if (cp < 0x20 || cp == '"' || cp == '\\' || (cp >= 0x7F && style->ascii))
            json_escape(sb, cp, s->taint ? s->taint[at] : 0);
        else
            ebb_tpl_sb_part(sb, s, at, at + len);
    }
    ebb_tpl_sb_puts(sb, "\"");
}

static void json_value(tpl_sb *sb, tpl_val v, const tpl_json_style *style, unsigned level);

static void json_break(tpl_sb *sb, const tpl_json_style *style, unsigned level)
{
    if (!style->has_indent)
        return;
    ebb_tpl_sb_puts(sb, "\n");
    for (; level > 0; level--)
        ebb_tpl_sb_add(sb, style->indent);
}

static void json_list(tpl_sb *sb, const tpl_list *l, const tpl_json_style *style, unsigned level)
{
    ebb_tpl_sb_puts(sb, "[");
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            ebb_tpl_sb_add(sb, style->item_sep);
        json_break(sb, style, level + 1);
        json_value(sb, l->v[i], style, level + 1);
    }
    if (l->n)
        json_break(sb, style, level);
    ebb_tpl_sb_puts(sb, "]");
}

static void json_key(tpl_sb *sb, tpl_val key, const tpl_json_style *style)
{
    if (key.kind == TPL_STR) {
        json_str(sb, key.s, style);
        return;
    }
    if (key.kind != TPL_NONE && !ebb_tpl_is_number(key))
        ebb_tpl_fail(sb->vm, EBB_FORMAT, "tojson: a %s cannot be a key", ebb_tpl_type_name(key));
    ebb_tpl_sb_puts(sb, "\"");
    json_value(sb, key, style, 0);
    ebb_tpl_sb_puts(sb, "\"");
}

/* Places in `order` sorted by key: insertion, as dicts in templates are small. */
static size_t *key_order(tpl_vm *vm, const tpl_dict *d, bool sorted)
{
    size_t *order = ebb_tpl_alloc_array(vm, d->n, sizeof *order);

    for (size_t i = 0; i < d->n; i++) {
        size_t at = i;
        while (sorted && at > 0 && ebb_tpl_cmp(vm, d->key[i], d->key[order[at - 1]]) < 0) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return order;
}

static void json_dict(tpl_sb *sb, const tpl_dict *d, const tpl_json_style *style, unsigned level)
{
    size_t *order = key_order(sb->vm, d, style->sort_keys);

    ebb_tpl_sb_puts(sb, "{");
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            ebb_tpl_sb_add(sb, style->item_sep);
        json_break(sb, style, level + 1);
        json_key(sb, d->key[order[i]], style);
        ebb_tpl_sb_add(sb, style->key_sep);
        json_value(sb, d->val[order[i]], style, level + 1);
    }
    if (d->n)
        json_break(sb, style, level);
    ebb_tpl_sb_puts(sb, "}");
}

static void json_value(tpl_sb *sb, tpl_val v, const tpl_json_style *style, unsigned level)
{
    ebb_tpl_step(sb->vm, 1);
    ebb_tpl_enter(sb->vm);
    switch (v.kind) {
    case TPL_NONE:  ebb_tpl_sb_puts(sb, "null"); break;
    case TPL_BOOL:  ebb_tpl_sb_puts(sb, v.b ? "true" : "false"); break;
    case TPL_INT:   append_int(sb, v.i); break;
    case TPL_FLOAT: append_float(sb, v.f, "Infinity", "NaN"); break;
    case TPL_STR:   json_str(sb, v.s, style); break;
    case TPL_LIST: case TPL_TUPLE: json_list(sb, v.list, style, level); break;
    case TPL_DICT:  json_dict(sb, v.dict, style, level); break;
    default:
        ebb_tpl_fail(sb->vm, EBB_FORMAT, "tojson: a %s is not JSON", ebb_tpl_type_name(v));
    }
    ebb_tpl_leave(sb->vm);
}

void ebb_tpl_sb_json(tpl_sb *sb, tpl_val v, const tpl_json_style *style)
{
    json_value(sb, v, style, 0);
}
