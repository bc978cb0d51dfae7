/* Expressions: tokens -> tree, by recursive descent in Jinja's order of binding. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "template/builtins.h"
#include "template/parser.h"
#include "template/strings.h"

static tpl_node *parse_or(tpl_parser *p);
static tpl_node *parse_unary(tpl_parser *p, bool with_filters);

static tpl_node *binary(tpl_parser *p, tpl_node_type type, unsigned op, tpl_node *a, tpl_node *b)
{
    tpl_node *n = ebb_tpl_node(p, type);

    n->op = op;
    n->a = a;
    n->b = b;
    return n;
}

/* -- Literals ---------------------------------------------------------------------- */

/* Code point of up to `most` digits of the base at s[*at], which is moved on. */
static uint32_t escape_number(const char *s, size_t n, size_t *at, int most, int base)
{
    uint32_t cp = 0;

    for (int d; most > 0 && *at < n && (d = ebb_hex_digit(s[*at])) >= 0 && d < base; most--, (*at)++)
        cp = cp * (uint32_t)base + (uint32_t)d;
    return cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000) ? 0xFFFD : cp;
}

static void put_string_escape(tpl_sb *sb, const char *s, size_t n, size_t *at)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    char c = s[*at];
    const char *known = strchr(from, c);

    if (c == '\n') {
        (*at)++;
    } else if (c && known) {
        ebb_tpl_sb_raw(sb, &to[known - from], 1, 0);
        (*at)++;
    } else if (c == 'x' || c == 'u' || c == 'U') {
        (*at)++;
        ebb_tpl_sb_cp(sb, escape_number(s, n, at, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16), 0);
    } else if (c >= '0' && c <= '7') {
        ebb_tpl_sb_cp(sb, escape_number(s, n, at, 3, 8), 0);
    } else {
        ebb_tpl_sb_raw(sb, "\\", 1, 0);
    }
}

static tpl_str *string_of(tpl_parser *p, const tpl_token *first, const tpl_token *end)
{
    tpl_sb sb;
    tpl_str *s;

    ebb_tpl_sb_init(&sb, p->vm);
    for (const tpl_token *t = first; t < end; t++) {
        for (size_t at = 0; at < t->n;) {
            const char *slash = memchr(t->p + at, '\\', t->n - at);
            size_t to = slash ? (size_t)(slash - t->p) : t->n;
            ebb_tpl_sb_raw(&sb, t->p + at, to - at, 0);
            at = to + 1;
            if (slash && at < t->n)
                put_string_escape(&sb, t->p, t->n, &at);
        }
    }
    s = ebb_tpl_sb_finish(&sb);
    ebb_tpl_str_cps(p->vm, s);
    return s;
}

static tpl_val number_of(tpl_parser *p, const tpl_token *t)
{
    char text[64];
    size_t n = 0;
    int base = 10;
    long long i;

    for (size_t k = 0; k < t->n && n + 1 < sizeof text; k++)
        if (t->p[k] != '_')
            text[n++] = t->p[k];
    text[n] = '\0';
    if (t->type == TPL_T_FLOAT)
        return ebb_tpl_float(strtod(text, NULL));
    if (n > 2 && text[0] == '0' && (text[1] | 0x20) > '9')
        base = (text[1] | 0x20) == 'x' ? 16 : (text[1] | 0x20) == 'o' ? 8 : 2;
    errno = 0;
    i = strtoll(base == 10 ? text : text + 2, NULL, base);
    if (errno || t->n > 60)
        ebb_tpl_fail(p->vm, EBB_FORMAT, "the number %.40s is too large", text);
    return ebb_tpl_int(i);
}

static tpl_node *constant(tpl_parser *p, tpl_val v)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_CONST);

    n->val = v;
    return n;
}

static tpl_node *parse_name(tpl_parser *p)
{
    static const struct { const char *name; tpl_val val; } words[] = {
        { "true", { .kind = TPL_BOOL, .b = true } },   { "True", { .kind = TPL_BOOL, .b = true } },
        { "false", { .kind = TPL_BOOL, .b = false } }, { "False", { .kind = TPL_BOOL, .b = false } },
        { "none", { .kind = TPL_NONE } },              { "None", { .kind = TPL_NONE } },
    };
    tpl_node *n;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ebb_tpl_skip_name(p, words[i].name))
            return constant(p, words[i].val);
    n = ebb_tpl_node(p, TPL_N_NAME);
    n->name = ebb_tpl_expect_name(p);
    return n;
}

static tpl_node *parse_list(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_LIST);
    tpl_nodes kids = { 0 };

    while (!ebb_tpl_skip_op(p, ']')) {
        if (kids.n)
            ebb_tpl_expect_op(p, ',', ",");
        if (ebb_tpl_skip_op(p, ']'))
            break;
        ebb_tpl_nodes_add(p, &kids, ebb_tpl_parse_expr(p, true));
    }
    ebb_tpl_set_kids(n, &kids);
    return n;
}

static tpl_node *parse_dict(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_DICT);
    tpl_nodes kids = { 0 };

    while (!ebb_tpl_skip_op(p, '}')) {
        if (kids.n)
            ebb_tpl_expect_op(p, ',', ",");
        if (ebb_tpl_skip_op(p, '}'))
            break;
        ebb_tpl_nodes_add(p, &kids, ebb_tpl_parse_expr(p, true));
        ebb_tpl_expect_op(p, ':', ":");
        ebb_tpl_nodes_add(p, &kids, ebb_tpl_parse_expr(p, true));
    }
    ebb_tpl_set_kids(n, &kids);
    return n;
}

static tpl_node *parse_parens(tpl_parser *p)
{
    tpl_node *n;

    if (ebb_tpl_skip_op(p, ')'))
        return ebb_tpl_node(p, TPL_N_TUPLE);
    n = ebb_tpl_parse_tuple(p, true, false);
    ebb_tpl_expect_op(p, ')', ")");
    return n;
}

static tpl_node *parse_primary(tpl_parser *p)
{
    const tpl_token *first = p->t;

    switch (p->t->type) {
    case TPL_T_NAME:
        return parse_name(p);
    case TPL_T_STRING:
        while (p->t->type == TPL_T_STRING)
            p->t++;
        return constant(p, ebb_tpl_str(string_of(p, first, p->t)));
    case TPL_T_INT: case TPL_T_FLOAT:
        p->t++;
        return constant(p, number_of(p, first));
    default:
        break;
    }
    if (ebb_tpl_skip_op(p, '('))
        return parse_parens(p);
    if (ebb_tpl_skip_op(p, '['))
        return parse_list(p);
    if (ebb_tpl_skip_op(p, '{'))
        return parse_dict(p);
    ebb_tpl_unexpected(p, "an expression");
}

/* -- What follows a primary: a.b a[b] a(b) a|b a is b --------------------------------- */

static void add_named(tpl_parser *p, tpl_args *args, tpl_nodes *values, tpl_str *name, tpl_node *value)
{
    if (values->n % 8 == 0) {
        tpl_str **grown = ebb_tpl_alloc_array(p->vm, values->n + 8, sizeof *grown);
        if (values->n)
            memcpy(grown, args->names, values->n * sizeof *grown);
        args->names = grown;
    }
    args->names[values->n] = name;
    ebb_tpl_nodes_add(p, values, value);
}

static void parse_arg(tpl_parser *p, tpl_args *args, tpl_nodes *pos, tpl_nodes *named)
{
    if (ebb_tpl_skip_op(p, '*')) {
        if (args->star || args->star_star)
            ebb_tpl_unexpected(p, "one * argument");
        args->star = ebb_tpl_parse_expr(p, true);
    } else if (ebb_tpl_skip_op(p, TPL_OP('*', '*'))) {
        if (args->star_star)
            ebb_tpl_unexpected(p, "one ** argument");
        args->star_star = ebb_tpl_parse_expr(p, true);
    } else if (p->t->type == TPL_T_NAME && p->t[1].type == TPL_T_OP && p->t[1].op == '=') {
        tpl_str *name = ebb_tpl_expect_name(p);
        p->t++;
        add_named(p, args, named, name, ebb_tpl_parse_expr(p, true));
    } else {
        if (named->n || args->star || args->star_star)
            ebb_tpl_unexpected(p, "a named argument");
        ebb_tpl_nodes_add(p, pos, ebb_tpl_parse_expr(p, true));
    }
}

/* Behind "(", up to and with ")". */
static tpl_args *parse_args(tpl_parser *p)
{
    tpl_args *args = ebb_tpl_alloc(p->vm, sizeof *args);
    tpl_nodes pos = { 0 }, named = { 0 };
    bool comma = false;

    *args = (tpl_args){ 0 };
    while (!ebb_tpl_skip_op(p, ')')) {
        if (comma)
            ebb_tpl_expect_op(p, ',', ",");
        if (comma && ebb_tpl_skip_op(p, ')'))
            break;
        comma = true;
        parse_arg(p, args, &pos, &named);
    }
    args->pos = pos.v;
    args->n_pos = pos.n;
    args->named = named.v;
    args->n_named = named.n;
    return args;
}

static tpl_node *parse_slice(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_SLICE), **part[3] = { &n->b, &n->c, &n->d };

    for (int i = 0; i < 3; i++) {
        if (!ebb_tpl_at_op(p, ':') && !ebb_tpl_at_op(p, ']') && !ebb_tpl_at_op(p, ','))
            *part[i] = ebb_tpl_parse_expr(p, true);
        if (!ebb_tpl_skip_op(p, ':'))
            return i == 0 ? *part[0] : n;
    }
    return n;
}

static tpl_node *parse_item(tpl_parser *p, tpl_node *a)
{
    tpl_node *n = parse_slice(p);

    if (!n)
        ebb_tpl_unexpected(p, "an index");
    if (n->type == TPL_N_SLICE && !n->a) {
        n->a = a;
    } else {
        tpl_nodes kids = { 0 };
        ebb_tpl_nodes_add(p, &kids, n);
        while (ebb_tpl_skip_op(p, ','))
            ebb_tpl_nodes_add(p, &kids, ebb_tpl_parse_expr(p, true));
        if (kids.n > 1) {
            n = ebb_tpl_node(p, TPL_N_TUPLE);
            ebb_tpl_set_kids(n, &kids);
        }
        n = binary(p, TPL_N_ITEM, 0, a, n);
    }
    ebb_tpl_expect_op(p, ']', "]");
    return n;
}

static tpl_node *parse_dot(tpl_parser *p, tpl_node *a)
{
    tpl_node *n;

    if (p->t->type == TPL_T_INT) {
        n = binary(p, TPL_N_ITEM, 0, a, constant(p, number_of(p, p->t)));
        p->t++;
        return n;
    }
    n = ebb_tpl_node(p, TPL_N_ATTR);
    n->a = a;
    n->name = ebb_tpl_expect_name(p);
    return n;
}

static tpl_node *parse_call(tpl_parser *p, tpl_node *a)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_CALL);

    n->a = a;
    n->args = parse_args(p);
    return n;
}

static tpl_node *parse_postfix(tpl_parser *p, tpl_node *n)
{
    for (;;) {
        if (ebb_tpl_skip_op(p, '.'))
            n = parse_dot(p, n);
        else if (ebb_tpl_skip_op(p, '['))
            n = parse_item(p, n);
        else if (ebb_tpl_skip_op(p, '('))
            n = parse_call(p, n);
        else
            return n;
    }
}

/* A name with dots, as filters and tests of extensions have. */
static tpl_str *dotted_name(tpl_parser *p)
{
    tpl_str *name = ebb_tpl_expect_name(p);

    while (ebb_tpl_skip_op(p, '.')) {
        tpl_str dot = { .p = ".", .n = 1 };
        name = ebb_tpl_concat(p->vm, ebb_tpl_concat(p->vm, name, &dot), ebb_tpl_expect_name(p));
    }
    return name;
}

tpl_node *ebb_tpl_parse_filters(tpl_parser *p, tpl_node *input, bool first)
{
    tpl_node *n = input;

    while (first || ebb_tpl_skip_op(p, '|')) {
        tpl_node *filter = ebb_tpl_node(p, TPL_N_FILTER);
        first = false;
        filter->a = n;
        filter->name = dotted_name(p);
        filter->fn = ebb_tpl_filter_find(filter->name);
        filter->args = ebb_tpl_skip_op(p, '(') ? parse_args(p) : NULL;
        n = filter;
    }
    return n;
}

/* `is equalto x` takes one operand without parentheses. */
static bool at_test_operand(const tpl_parser *p)
{
    switch (p->t->type) {
    case TPL_T_NAME:
        return !ebb_tpl_at_name(p, "else") && !ebb_tpl_at_name(p, "or") && !ebb_tpl_at_name(p, "and");
    case TPL_T_STRING: case TPL_T_INT: case TPL_T_FLOAT:
        return true;
    default:
        return ebb_tpl_at_op(p, '[') || ebb_tpl_at_op(p, '{');
    }
}

static tpl_node *parse_test(tpl_parser *p, tpl_node *a)
{
    bool negated = ebb_tpl_skip_name(p, "not");
    tpl_node *n = ebb_tpl_node(p, TPL_N_TEST), *no;

    n->a = a;
    n->name = dotted_name(p);
    n->fn = ebb_tpl_test_find(n->name);
    if (ebb_tpl_skip_op(p, '(')) {
        n->args = parse_args(p);
    } else if (at_test_operand(p)) {
        tpl_nodes pos = { 0 };
        if (ebb_tpl_at_name(p, "is"))
            ebb_tpl_unexpected(p, "no second `is`");
        ebb_tpl_nodes_add(p, &pos, parse_postfix(p, parse_primary(p)));
        n->args = ebb_tpl_alloc(p->vm, sizeof *n->args);
        *n->args = (tpl_args){ .pos = pos.v, .n_pos = pos.n };
    }
    if (!negated)
        return n;
    no = ebb_tpl_node(p, TPL_N_NOT);
    no->a = n;
    return no;
}

static tpl_node *parse_filters_and_tests(tpl_parser *p, tpl_node *n)
{
    for (;;) {
        if (ebb_tpl_at_op(p, '|'))
            n = ebb_tpl_parse_filters(p, n, false);
        else if (ebb_tpl_skip_name(p, "is"))
            n = parse_test(p, n);
        else if (ebb_tpl_skip_op(p, '('))
            n = parse_call(p, n);
        else
            return n;
    }
}

/* -- Operators, the tightest first --------------------------------------------------------- */

static tpl_node *parse_unary(tpl_parser *p, bool with_filters)
{
    tpl_node *n;

    ebb_tpl_enter(p->vm);
    if (ebb_tpl_at_op(p, '-') || ebb_tpl_at_op(p, '+')) {
        n = ebb_tpl_node(p, ebb_tpl_at_op(p, '-') ? TPL_N_NEG : TPL_N_POS);
        p->t++;
        n->a = parse_unary(p, false);
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    if (with_filters)
        n = parse_filters_and_tests(p, n);
    ebb_tpl_leave(p->vm);
    return n;
}

static tpl_node *parse_pow(tpl_parser *p)
{
    tpl_node *n = parse_unary(p, true);

    while (ebb_tpl_skip_op(p, TPL_OP('*', '*')))
        n = binary(p, TPL_N_BINARY, TPL_OP('*', '*'), n, parse_unary(p, true));
    return n;
}

static tpl_node *parse_product(tpl_parser *p)
{
    static const unsigned ops[] = { '*', '/', TPL_OP('/', '/'), '%' };
    tpl_node *n = parse_pow(p);

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (!ebb_tpl_skip_op(p, ops[i]))
            continue;
        n = binary(p, TPL_N_BINARY, ops[i], n, parse_pow(p));
        i = (size_t)-1;
    }
    return n;
}

static tpl_node *parse_concat(tpl_parser *p)
{
    tpl_node *n = parse_product(p), *all;
    tpl_nodes kids = { 0 };

    if (!ebb_tpl_at_op(p, '~'))
        return n;
    ebb_tpl_nodes_add(p, &kids, n);
    while (ebb_tpl_skip_op(p, '~'))
        ebb_tpl_nodes_add(p, &kids, parse_product(p));
    all = ebb_tpl_node(p, TPL_N_CONCAT);
    ebb_tpl_set_kids(all, &kids);
    return all;
}

static tpl_node *parse_sum(tpl_parser *p)
{
    tpl_node *n = parse_concat(p);

    while (ebb_tpl_at_op(p, '+') || ebb_tpl_at_op(p, '-')) {
        unsigned op = p->t++->op;
        n = binary(p, TPL_N_BINARY, op, n, parse_concat(p));
    }
    return n;
}

/* The comparison at the current token, consumed; 0 if there is none. */
static unsigned comparison(tpl_parser *p)
{
    static const unsigned ops[] = { TPL_OP('=', '='), TPL_OP('!', '='), '<', TPL_OP('<', '='), '>', TPL_OP('>', '=') };

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ebb_tpl_skip_op(p, ops[i]))
            return ops[i];
    if (ebb_tpl_skip_name(p, "in"))
        return 'i';
    if (ebb_tpl_at_name(p, "not") && p->t[1].type == TPL_T_NAME && p->t[1].n == 2 && memcmp(p->t[1].p, "in", 2) == 0) {
        p->t += 2;
        return 'n';
    }
    return 0;
}

static tpl_node *parse_compare(tpl_parser *p)
{
    tpl_node *n = parse_sum(p), *all;
    tpl_nodes kids = { 0 };

    for (unsigned op; (op = comparison(p)) != 0;)
        ebb_tpl_nodes_add(p, &kids, binary(p, TPL_N_OPERAND, op, parse_sum(p), NULL));
    if (kids.n == 0)
        return n;
    all = ebb_tpl_node(p, TPL_N_COMPARE);
    all->a = n;
    ebb_tpl_set_kids(all, &kids);
    return all;
}

static tpl_node *parse_not(tpl_parser *p)
{
    tpl_node *n;

    if (!ebb_tpl_at_name(p, "not"))
        return parse_compare(p);
    n = ebb_tpl_node(p, TPL_N_NOT);
    p->t++;
    ebb_tpl_enter(p->vm);
    n->a = parse_not(p);
    ebb_tpl_leave(p->vm);
    return n;
}

static tpl_node *parse_and(tpl_parser *p)
{
    tpl_node *n = parse_not(p);

    while (ebb_tpl_skip_name(p, "and"))
        n = binary(p, TPL_N_AND, 0, n, parse_not(p));
    return n;
}

static tpl_node *parse_or(tpl_parser *p)
{
    tpl_node *n = parse_and(p);

    while (ebb_tpl_skip_name(p, "or"))
        n = binary(p, TPL_N_OR, 0, n, parse_and(p));
    return n;
}

tpl_node *ebb_tpl_parse_expr(tpl_parser *p, bool with_cond)
{
    tpl_node *n;

    ebb_tpl_enter(p->vm);
    n = parse_or(p);
    while (with_cond && ebb_tpl_skip_name(p, "if")) {
        tpl_node *test = parse_or(p), *cond = binary(p, TPL_N_COND, 0, n, test);
        if (ebb_tpl_skip_name(p, "else"))
            cond->c = ebb_tpl_parse_expr(p, true);
        n = cond;
    }
    ebb_tpl_leave(p->vm);
    return n;
}

static bool at_tuple_end(const tpl_parser *p, bool in_for)
{
    return p->t->type == TPL_T_PRINT_END || p->t->type == TPL_T_TAG_END || ebb_tpl_at_op(p, ')') ||
           (in_for && (ebb_tpl_at_name(p, "recursive") || ebb_tpl_at_name(p, "if")));
}

tpl_node *ebb_tpl_parse_tuple(tpl_parser *p, bool with_cond, bool in_for)
{
    tpl_node *n = ebb_tpl_parse_expr(p, with_cond);
    tpl_nodes kids = { 0 };

    if (!ebb_tpl_at_op(p, ','))
        return n;
    ebb_tpl_nodes_add(p, &kids, n);
    while (ebb_tpl_skip_op(p, ',') && !at_tuple_end(p, in_for))
        ebb_tpl_nodes_add(p, &kids, ebb_tpl_parse_expr(p, with_cond));
    n = ebb_tpl_node(p, TPL_N_TUPLE);
    ebb_tpl_set_kids(n, &kids);
    return n;
}
