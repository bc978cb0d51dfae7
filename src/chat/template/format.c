/* "%s" % args and "{}".format(...) (strings.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "template/interp.h"
#include "template/strings.h"

enum { FIELD_MAX = 100000, PRECISION_MAX = 100 };

/* How one value is printed: [[fill]align][sign][#][0][width][,][.precision][type]. */
typedef struct spec {
    char     fill[5];
    char     align;              /* < > ^ = or 0: by kind */
    char     sign;               /* + - or blank */
    bool     alt, comma;
    int64_t  width, precision;   /* -1: not given */
    char     type;               /* 0: none */
} spec;

static size_t read_number(tpl_vm *vm, const tpl_str *s, size_t at, int64_t *out, int64_t max)
{
    int64_t v = 0;

    for (; at < s->n && s->p[at] >= '0' && s->p[at] <= '9'; at = ebb_tpl_str_next(vm, at, 1)) {
        v = v * 10 + (s->p[at] - '0');
        if (v > max)
            ebb_tpl_fail(vm, EBB_LIMIT, "a format asks for more than %lld characters", (long long)max);
    }
    *out = v;
    return at;
}

/* -- Printing one value ----------------------------------------------------------------- */

static void pad_to(tpl_sb *out, tpl_str *text, const spec *f, char align, size_t n_sign)
{
    size_t n = ebb_tpl_str_cps(out->vm, text), pad = f->width > 0 && (uint64_t)f->width > n ? (size_t)f->width - n : 0;
    size_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    const char *fill = f->fill[0] ? f->fill : " ";

    if (align == '=') {
        ebb_tpl_sb_part(out, text, 0, n_sign);
        ebb_tpl_sb_pad(out, pad, fill);
        ebb_tpl_sb_part(out, text, n_sign, text->n);
        return;
    }
    ebb_tpl_sb_pad(out, left, fill);
    ebb_tpl_sb_add(out, text);
    ebb_tpl_sb_pad(out, pad - left, fill);
}

/* Thousands separated in digits[0..n) that may go on with a point or an exponent. */
static void put_grouped(tpl_sb *sb, const char *digits, size_t n, bool comma)
{
    size_t whole = strspn(digits, "0123456789");

    for (size_t i = 0; comma && i < whole; i++) {
        ebb_tpl_sb_raw(sb, digits + i, 1, 0);
        if ((whole - i) % 3 == 1 && i + 1 < whole)
            ebb_tpl_sb_puts(sb, ",");
    }
    if (comma)
        ebb_tpl_sb_raw(sb, digits + whole, n - whole, 0);
    else
        ebb_tpl_sb_raw(sb, digits, n, 0);
}

static void put_number(tpl_sb *out, const spec *f, bool negative, const char *prefix, const char *digits)
{
    tpl_sb sb;
    tpl_str *text;
    size_t n_sign;

    ebb_tpl_sb_init(&sb, out->vm);
    if (negative || f->sign == '+' || f->sign == ' ')
        ebb_tpl_sb_raw(&sb, negative ? "-" : &f->sign, 1, 0);
    if (f->alt)
        ebb_tpl_sb_puts(&sb, prefix);
    n_sign = sb.n;
    put_grouped(&sb, digits, strlen(digits), f->comma);
    text = ebb_tpl_sb_finish(&sb);
    pad_to(out, text, f, f->align ? f->align : '>', n_sign);
}

static void format_int(tpl_sb *out, const spec *f, int64_t i)
{
    char text[72];
    uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    size_t n = sizeof text - 1;

    text[n] = '\0';
    switch (f->type) {
    case 'b':
        do
            text[--n] = (char)('0' + (u & 1));
        while ((u >>= 1) != 0);
        put_number(out, f, i < 0, "0b", text + n);
        return;
    case 'x': snprintf(text, sizeof text, "%" PRIx64, u); break;
    case 'X': snprintf(text, sizeof text, "%" PRIX64, u); break;
    case 'o': snprintf(text, sizeof text, "%" PRIo64, u); break;
    default:  snprintf(text, sizeof text, "%" PRIu64, u); break;
    }
    put_number(out, f, i < 0, f->type == 'x' ? "0x" : f->type == 'X' ? "0X" : f->type == 'o' ? "0o" : "", text);
}

static void put_double(tpl_sb *out, const spec *f, double d)
{
    char text[512];
    int digits = (int)(f->precision < 0 ? 6 : f->precision);

    switch (f->type) {
    case 'e': snprintf(text, sizeof text, "%.*e", digits, d); break;
    case 'E': snprintf(text, sizeof text, "%.*E", digits, d); break;
    case 'g': snprintf(text, sizeof text, "%.*g", digits, d); break;
    case 'G': snprintf(text, sizeof text, "%.*G", digits, d); break;
    case '%': snprintf(text, sizeof text, "%.*f%%", digits, 100 * d); break;
    default:  snprintf(text, sizeof text, "%.*f", digits, d); break;
    }
    put_number(out, f, text[0] == '-', "", text + (text[0] == '-'));
}

static void put_text(tpl_sb *out, const spec *f, tpl_str *s)
{
    if (f->precision >= 0)
        s = ebb_tpl_str_cut(out->vm, s, 0, ebb_tpl_str_at(out->vm, s, (size_t)f->precision));
    pad_to(out, s, f, f->align && f->align != '=' ? f->align : '<', 0);
}

/* The value as the type says: s r d i b o x X e E f F g G % c, or by its kind. */
static void put_value(tpl_sb *out, const spec *f, tpl_val v)
{
    tpl_vm *vm = out->vm;

    if (f->type && strchr("dibxXo", f->type)) {
        if (v.kind == TPL_FLOAT && v.f > -9e18 && v.f < 9e18)
            v = ebb_tpl_int((int64_t)v.f);
        format_int(out, f, ebb_tpl_want_int(vm, v, 0));
    } else if (f->type && strchr("eEfFgG%", f->type)) {
        if (!ebb_tpl_is_number(v))
            ebb_tpl_fail(vm, EBB_FORMAT, "the format '%c' wants a number, not a %s", f->type, ebb_tpl_type_name(v));
        put_double(out, f, ebb_tpl_as_float(v));
    } else if (!f->type && v.kind == TPL_INT) {
        format_int(out, f, v.i);
    } else if (!f->type && v.kind == TPL_FLOAT && f->precision >= 0) {
        spec g = *f;
        g.type = 'g';
        put_double(out, &g, v.f);
    } else {
        spec g = *f;
        if (!g.align && ebb_tpl_is_number(v))
            g.align = '>';
        put_text(out, &g, ebb_tpl_to_str(vm, v));
    }
}

static tpl_val repr_of(tpl_vm *vm, tpl_val v)
{
    tpl_sb sb;

    ebb_tpl_sb_init(&sb, vm);
    ebb_tpl_sb_repr(&sb, v);
    return ebb_tpl_str(ebb_tpl_sb_finish(&sb));
}

/* -- "%..." ---------------------------------------------------------------------------------- */

typedef struct percent { tpl_vm *vm; tpl_str *fmt; tpl_val args; size_t next; bool named; } percent;

static tpl_val percent_next(percent *p)
{
    if (p->args.kind != TPL_TUPLE && p->next++ == 0)
        return p->args;
    if (p->args.kind != TPL_TUPLE || p->next >= p->args.list->n)
        ebb_tpl_fail(p->vm, EBB_FORMAT, "not enough arguments for the format string");
    return p->args.list->v[p->next++];
}

static size_t percent_number(percent *p, size_t at, int64_t *out, int64_t max)
{
    if (at < p->fmt->n && p->fmt->p[at] == '*') {
        *out = ebb_tpl_want_int(p->vm, percent_next(p), 0);
        if (*out > max)
            ebb_tpl_fail(p->vm, EBB_LIMIT, "a format asks for more than %lld characters", (long long)max);
        return at + 1;
    }
    return read_number(p->vm, p->fmt, at, out, max);
}

/* The value of "(name)" at `at`, which is moved behind it. */
static tpl_val percent_named(percent *p, size_t *at)
{
    const char *close = memchr(p->fmt->p + *at, ')', p->fmt->n - *at);
    const tpl_val *v;

    if (!close || p->args.kind != TPL_DICT)
        ebb_tpl_fail(p->vm, EBB_FORMAT, "the format string wants a dict");
    size_t to = (size_t)(close - p->fmt->p);
    ebb_tpl_step(p->vm, (to - *at) / 64);
    v = ebb_tpl_dict_find(p->vm, p->args.dict, ebb_tpl_str(ebb_tpl_str_cut(p->vm, p->fmt, *at + 1, to)));
    if (!v)
        ebb_tpl_fail(p->vm, EBB_FORMAT, "the format string names a key that is not there");
    p->named = true;
    *at = to + 1;
    return *v;
}

static size_t percent_flags(tpl_vm *vm, const tpl_str *s, size_t at, spec *f)
{
    for (; at < s->n && s->p[at] && strchr("-+ #0", s->p[at]); at = ebb_tpl_str_next(vm, at, 1)) {
        switch (s->p[at]) {
        case '-': f->align = '<'; break;
        case '#': f->alt = true; break;
        case '0': f->fill[0] = '0'; break;
        default:  f->sign = s->p[at] == ' ' && f->sign == '+' ? '+' : s->p[at]; break;
        }
    }
    return at;
}

static size_t percent_one(percent *p, size_t at, tpl_sb *out)
{
    spec f = { .precision = -1 };
    const tpl_str *s = p->fmt;
    bool has_name = at < s->n && s->p[at] == '(';
    tpl_val v = has_name ? percent_named(p, &at) : ebb_tpl_none();

    at = percent_flags(p->vm, s, at, &f);
    at = percent_number(p, at, &f.width, FIELD_MAX);
    if (f.width < 0) {
        f.align = '<';
        f.width = f.width < -FIELD_MAX ? FIELD_MAX : -f.width;
    }
    if (at < s->n && s->p[at] == '.')
        at = percent_number(p, at + 1, &f.precision, PRECISION_MAX);
    if (at >= s->n || !s->p[at] || !strchr("diuoxXeEfFgGcrsa%", s->p[at]))
        ebb_tpl_fail(p->vm, EBB_FORMAT, "the format string has an unknown conversion");
    f.type = s->p[at] == 'u' ? 'd' : s->p[at];
    if (f.type == '%') {
        ebb_tpl_sb_puts(out, "%");
        return at + 1;
    }
    if (!has_name)
        v = percent_next(p);
    bool number = strchr("dioxXeEfFgG", f.type) != NULL;
    f.align = f.align ? f.align : number && f.fill[0] ? '=' : '>';
    if (f.align == '<' || !number)
        f.fill[0] = '\0';
    if (f.type == 'r' || f.type == 'a')
        v = repr_of(p->vm, v);
    if (f.type == 'c' && v.kind == TPL_INT) {
        tpl_sb sb;
        ebb_tpl_sb_init(&sb, p->vm);
        ebb_tpl_sb_cp(&sb, v.i >= 0 && v.i < 0x110000 && (v.i < 0xD800 || v.i > 0xDFFF) ? (uint32_t)v.i : 0xFFFD, 0);
        v = ebb_tpl_str(ebb_tpl_sb_finish(&sb));
    }
    if (!number)
        f.type = 's';
    put_value(out, &f, v);
    return at + 1;
}

tpl_str *ebb_tpl_percent(tpl_vm *vm, tpl_str *fmt, tpl_val args)
{
    percent p = { .vm = vm, .fmt = fmt, .args = args };
    tpl_sb out;

    ebb_tpl_sb_init(&out, vm);
    for (size_t at = 0; at < fmt->n;) {
        const char *hit = memchr(fmt->p + at, '%', fmt->n - at);
        size_t to = hit ? (size_t)(hit - fmt->p) : fmt->n;
        ebb_tpl_sb_part(&out, fmt, at, to);
        ebb_tpl_step(vm, 1);
        at = hit ? percent_one(&p, to + 1, &out) : to;
    }
    bool left = args.kind == TPL_TUPLE ? p.next < args.list->n
                                       : p.next == 0 && !p.named && args.kind != TPL_DICT && args.kind != TPL_LIST;
    if (left)
        ebb_tpl_fail(vm, EBB_FORMAT, "not all arguments of the format string are used");
    return ebb_tpl_sb_finish(&out);
}

/* -- "{...}" ----------------------------------------------------------------------------------- */

typedef struct braces { tpl_vm *vm; tpl_str *fmt; const tpl_call *call; size_t next; } braces;

static tpl_val braces_root(braces *b, tpl_str *name)
{
    int64_t i = (int64_t)b->next;

    if (name->n == 0) {
        b->next++;
    } else if (name->p[0] >= '0' && name->p[0] <= '9') {
        if (read_number(b->vm, name, 0, &i, FIELD_MAX) != name->n)
            ebb_tpl_fail(b->vm, EBB_FORMAT, "format(): a strange field");
    } else {
        ebb_tpl_step(b->vm, b->call->n_named / 8);
        for (size_t k = 0; k < b->call->n_named; k++)
            if (ebb_tpl_str_eq(b->call->names[k], name))
                return b->call->named[k];
        ebb_tpl_fail(b->vm, EBB_FORMAT, "format(): no argument '%.*s'", (int)(name->n < 60 ? name->n : 60), name->p);
    }
    if ((uint64_t)i >= b->call->n_pos)
        ebb_tpl_fail(b->vm, EBB_FORMAT, "format(): not enough arguments");
    return b->call->pos[i];
}

static size_t field_end(tpl_vm *vm, const tpl_str *s, size_t at, size_t to, const char *stops)
{
    while (at < to && (!s->p[at] || !strchr(stops, s->p[at])))
        at = ebb_tpl_str_next(vm, at, 1);
    return at;
}

/* name.attr[key] in s[at..to) */
static tpl_val braces_value(braces *b, size_t at, size_t to)
{
    tpl_str *s = b->fmt;
    size_t end = field_end(b->vm, s, at, to, ".[");
    tpl_val v = braces_root(b, ebb_tpl_str_cut(b->vm, s, at, end));

    while (end < to) {
        bool item = s->p[end] == '[';
        size_t from = end + 1;
        tpl_val key;
        int64_t i;
        end = field_end(b->vm, s, from, to, item ? "]" : ".[");
        key = ebb_tpl_str(ebb_tpl_str_cut(b->vm, s, from, end));
        if (item && key.s->n && key.s->p[0] >= '0' && key.s->p[0] <= '9' && key.s->n < 7) {
            read_number(b->vm, key.s, 0, &i, FIELD_MAX * 10);
            key = ebb_tpl_int(i);
        }
        v = item ? ebb_tpl_item(b->vm, v, key) : ebb_tpl_attr(b->vm, v, key.s);
        end += item && end < to;
    }
    return v;
}

static void braces_spec(tpl_vm *vm, const tpl_str *s, size_t at, size_t to, spec *f)
{
    size_t len = 1;

    if (at < to)
        ebb_tpl_str_cp(s, at, &len);
    if (at + len < to && strchr("<>^=", s->p[at + len])) {
        memcpy(f->fill, s->p + at, len);
        f->align = s->p[at + len];
        at += len + 1;
    } else if (at < to && strchr("<>^=", s->p[at])) {
        f->align = s->p[at++];
    }
    if (at < to && strchr("+- ", s->p[at]))
        f->sign = s->p[at++];
    if (at < to && s->p[at] == '#')
        f->alt = at++ < to;
    if (at < to && s->p[at] == '0' && !f->align) {
        f->align = '=';
        f->fill[0] = '0';
    }
    at = read_number(vm, s, at, &f->width, FIELD_MAX);
    if (at < to && (s->p[at] == ',' || s->p[at] == '_'))
        f->comma = at++ < to;
    if (at < to && s->p[at] == '.')
        at = read_number(vm, s, at + 1, &f->precision, PRECISION_MAX);
    if (at < to && s->p[at] && strchr("sdbxXoeEfFgG%n", s->p[at]))
        f->type = s->p[at] == 'n' ? 'd' : s->p[at], at++;
    if (at != to)
        ebb_tpl_fail(vm, EBB_FORMAT, "format(): a format that is not known");
}

/* The field that begins behind "{" at `at`; returns the position behind "}". */
static size_t braces_one(braces *b, size_t at, tpl_sb *out)
{
    spec f = { .precision = -1 };
    const char *close = memchr(b->fmt->p + at, '}', b->fmt->n - at);
    size_t to, end;
    tpl_val v;

    if (!close)
        ebb_tpl_fail(b->vm, EBB_FORMAT, "format(): '{' without '}'");
    to = (size_t)(close - b->fmt->p);
    end = field_end(b->vm, b->fmt, at, to, "!:");
    v = braces_value(b, at, end);
    if (end + 1 < to && b->fmt->p[end] == '!') {
        v = b->fmt->p[end + 1] == 'r' ? repr_of(b->vm, v) : ebb_tpl_str(ebb_tpl_to_str(b->vm, v));
        end += 2;
    }
    if (end < to && b->fmt->p[end] == ':')
        braces_spec(b->vm, b->fmt, end + 1, to, &f);
    put_value(out, &f, v);
    return to + 1;
}

tpl_str *ebb_tpl_format(tpl_vm *vm, tpl_str *fmt, const tpl_call *call)
{
    braces b = { .vm = vm, .fmt = fmt, .call = call };
    tpl_sb out;

    ebb_tpl_sb_init(&out, vm);
    for (size_t at = 0; at < fmt->n;) {
        size_t to = field_end(vm, fmt, at, fmt->n, "{}");
        bool doubled = to + 1 < fmt->n && fmt->p[to] == fmt->p[to + 1];
        ebb_tpl_sb_part(&out, fmt, at, doubled ? to + 1 : to);
        ebb_tpl_step(vm, 1);
        if (to == fmt->n)
            break;
        if (!doubled && fmt->p[to] == '}')
            ebb_tpl_fail(vm, EBB_FORMAT, "format(): '}' without '{'");
        at = doubled ? to + 2 : braces_one(&b, to + 1, &out);
    }
    return ebb_tpl_sb_finish(&out);
}
