/* Statements: tokens -> tree. */
#include <string.h>

#include "template/parser.h"
#include "template/strings.h"

static tpl_node *parse_block(tpl_parser *p, const char *const *ends);

/* -- Shared by both halves ------------------------------------------------------------ */

void ebb_tpl_unexpected(tpl_parser *p, const char *wanted)
{
    const tpl_token *t = p->t;

    p->vm->line = t->line;
    if (t->type == TPL_T_END)
        ebb_tpl_fail(p->vm, EBB_FORMAT, "%s is wanted, but the template ends", wanted);
    ebb_tpl_fail(p->vm, EBB_FORMAT, "%s is wanted, not '%.*s'", wanted, (int)(t->n < 40 ? t->n : 40), t->p);
}

tpl_node *ebb_tpl_node(tpl_parser *p, tpl_node_type type)
{
    tpl_node *n = ebb_tpl_alloc(p->vm, sizeof *n);

    memset(n, 0, sizeof *n);
    n->type = type;
    n->line = p->t->line;
    p->vm->line = n->line;
    return n;
}

void ebb_tpl_nodes_add(tpl_parser *p, tpl_nodes *list, tpl_node *node)
{
    list->v = ebb_tpl_grow(p->vm, list->v, list->n, &list->cap, sizeof *list->v);
    list->v[list->n++] = node;
}

void ebb_tpl_set_kids(tpl_node *node, const tpl_nodes *list)
{
    node->kids = list->v;
    node->n_kids = list->n;
}

bool ebb_tpl_at_op(const tpl_parser *p, unsigned op)
{
    return p->t->type == TPL_T_OP && p->t->op == op;
}

bool ebb_tpl_at_name(const tpl_parser *p, const char *name)
{
    return p->t->type == TPL_T_NAME && p->t->n == strlen(name) && memcmp(p->t->p, name, p->t->n) == 0;
}

bool ebb_tpl_skip_op(tpl_parser *p, unsigned op)
{
    return ebb_tpl_at_op(p, op) ? p->t++, true : false;
}

bool ebb_tpl_skip_name(tpl_parser *p, const char *name)
{
    return ebb_tpl_at_name(p, name) ? p->t++, true : false;
}

void ebb_tpl_expect_op(tpl_parser *p, unsigned op, const char *text)
{
    char wanted[8] = { '\'', text[0], '\'' };

    if (!ebb_tpl_skip_op(p, op))
        ebb_tpl_unexpected(p, wanted);
}

tpl_str *ebb_tpl_expect_name(tpl_parser *p)
{
    tpl_str *s;

    if (p->t->type != TPL_T_NAME)
        ebb_tpl_unexpected(p, "a name");
    s = ebb_tpl_str_new(p->vm, p->t->p, p->t->n, 0);
    ebb_tpl_str_cps(p->vm, s);
    p->t++;
    return s;
}

static void expect_tag_end(tpl_parser *p)
{
    if (p->t->type != TPL_T_TAG_END)
        ebb_tpl_unexpected(p, "'%}'");
    p->t++;
}

/* -- Targets ----------------------------------------------------------------------------- */

static tpl_node *parse_target_name(tpl_parser *p)
{
    static const char *const words[] = { "true", "false", "none", "True", "False", "None" };
    tpl_node *n = ebb_tpl_node(p, TPL_N_NAME);

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ebb_tpl_at_name(p, words[i]))
            ebb_tpl_unexpected(p, "a name that can be set");
    n->name = ebb_tpl_expect_name(p);
    return n;
}

/* An attribute of a namespace. */
static tpl_node *parse_target_attribute(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_NSREF);

    n->name = ebb_tpl_expect_name(p);
    p->t++;                                      /* . */
    n->val = ebb_tpl_str(ebb_tpl_expect_name(p));
    return n;
}

static tpl_node *parse_target_one(tpl_parser *p, bool is_set)
{
    tpl_node *n;

    if (is_set && p->t->type == TPL_T_NAME && p->t[1].type == TPL_T_OP && p->t[1].op == '.')
        return parse_target_attribute(p);
    if (!ebb_tpl_skip_op(p, '('))
        return parse_target_name(p);
    ebb_tpl_enter(p->vm);
    tpl_nodes kids = { 0 };
    do
        ebb_tpl_nodes_add(p, &kids, parse_target_one(p, false));
    while (ebb_tpl_skip_op(p, ',') && !ebb_tpl_at_op(p, ')'));
    ebb_tpl_expect_op(p, ')', ")");
    ebb_tpl_leave(p->vm);
    if (kids.n == 1 && p->t[-2].op != ',')
        return kids.v[0];
    n = ebb_tpl_node(p, TPL_N_TUPLE);
    ebb_tpl_set_kids(n, &kids);
    return n;
}

/* is_set: of {% set %}, where attributes of namespaces are targets, too. */
static tpl_node *parse_target(tpl_parser *p, bool is_set)
{
    tpl_node *n = parse_target_one(p, is_set);
    tpl_nodes kids = { 0 };

    if (!ebb_tpl_at_op(p, ','))
        return n;
    ebb_tpl_nodes_add(p, &kids, n);
    while (ebb_tpl_skip_op(p, ',') && !ebb_tpl_at_name(p, "in") && !ebb_tpl_at_op(p, '='))
        ebb_tpl_nodes_add(p, &kids, parse_target_one(p, is_set));
    n = ebb_tpl_node(p, TPL_N_TUPLE);
    ebb_tpl_set_kids(n, &kids);
    return n;
}

/* -- Statements ------------------------------------------------------------------------------ */

static tpl_node *parse_if(tpl_parser *p)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    tpl_node *first = ebb_tpl_node(p, TPL_N_IF), *n = first;

    for (;;) {
        n->a = ebb_tpl_parse_tuple(p, false, false);
        expect_tag_end(p);
        n->b = parse_block(p, ends);
        if (ebb_tpl_skip_name(p, "elif")) {
            n->c = ebb_tpl_node(p, TPL_N_IF);
            n = n->c;
            continue;
        }
        if (ebb_tpl_skip_name(p, "else")) {
            expect_tag_end(p);
            n->c = parse_block(p, ends + 2);
        }
        p->t++;                                  /* endif */
        expect_tag_end(p);
        return first;
    }
}

static tpl_node *parse_for(tpl_parser *p)
{
    static const char *const ends[] = { "else", "endfor", NULL };
    tpl_node *n = ebb_tpl_node(p, TPL_N_FOR);

    n->a = parse_target(p, false);
    if (!ebb_tpl_skip_name(p, "in"))
        ebb_tpl_unexpected(p, "'in'");
    n->b = ebb_tpl_parse_tuple(p, false, true);
    if (ebb_tpl_skip_name(p, "if"))
        n->c = ebb_tpl_parse_expr(p, true);
    n->op = ebb_tpl_skip_name(p, "recursive");
    expect_tag_end(p);
    p->n_loops++;
    n->d = parse_block(p, ends);
    p->n_loops--;
    if (ebb_tpl_skip_name(p, "else")) {
        expect_tag_end(p);
        n->e = parse_block(p, ends + 1);
    }
    p->t++;                                      /* endfor */
    expect_tag_end(p);
    return n;
}

/* The body of a tag up to `end`, which is consumed with its "%}". */
static tpl_node *parse_body(tpl_parser *p, const char *end)
{
    const char *ends[2] = { end, NULL };
    tpl_node *body;

    expect_tag_end(p);
    body = parse_block(p, ends);
    p->t++;
    expect_tag_end(p);
    return body;
}

static tpl_node *parse_set(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_SET);

    n->a = parse_target(p, true);
    if (ebb_tpl_skip_op(p, '=')) {
        n->b = ebb_tpl_parse_tuple(p, true, false);
        expect_tag_end(p);
        return n;
    }
    n->type = TPL_N_SET_BLOCK;
    n->b = ebb_tpl_parse_filters(p, NULL, false);
    n->c = parse_body(p, "endset");
    return n;
}

static bool mentions(const tpl_token *from, const tpl_token *to, const char *name)
{
    for (; from < to; from++)
        if (from->type == TPL_T_NAME && from->n == strlen(name) && memcmp(from->p, name, from->n) == 0)
            return true;
    return false;
}

/* Parameters of a macro: named parallel to names, NULL where there is no default. */
static void parse_params(tpl_parser *p, tpl_node *macro)
{
    tpl_args *args = ebb_tpl_alloc(p->vm, sizeof *args);
    tpl_nodes defaults = { 0 }, names = { 0 };

    ebb_tpl_expect_op(p, '(', "(");
    while (!ebb_tpl_skip_op(p, ')')) {
        if (names.n)
            ebb_tpl_expect_op(p, ',', ",");
        ebb_tpl_nodes_add(p, &names, parse_target_name(p));
        bool has = ebb_tpl_skip_op(p, '=');
        if (!has && defaults.n && defaults.v[defaults.n - 1])
            ebb_tpl_unexpected(p, "a default");
        ebb_tpl_nodes_add(p, &defaults, has ? ebb_tpl_parse_expr(p, true) : NULL);
    }
    *args = (tpl_args){ .n_named = names.n, .named = defaults.v };
    args->names = ebb_tpl_alloc_array(p->vm, names.n, sizeof *args->names);
    for (size_t i = 0; i < names.n; i++)
        args->names[i] = names.v[i]->name;
    macro->args = args;
}

static void parse_macro_body(tpl_parser *p, tpl_node *macro, const char *end)
{
    const tpl_token *from = p->t;
    unsigned n_loops = p->n_loops;

    p->n_loops = 0;
    macro->a = parse_body(p, end);
    p->n_loops = n_loops;
    macro->takes_more = mentions(from, p->t, "varargs");
    macro->takes_named = mentions(from, p->t, "kwargs");
}

static tpl_node *parse_macro(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_MACRO);

    n->name = parse_target_name(p)->name;
    parse_params(p, n);
    parse_macro_body(p, n, "endmacro");
    return n;
}

static tpl_node *parse_call_block(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_CALL_BLOCK), *caller = ebb_tpl_node(p, TPL_N_MACRO);

    caller->name = ebb_tpl_str_new(p->vm, "caller", 6, 0);
    if (ebb_tpl_at_op(p, '(')) {
        parse_params(p, caller);
    } else {
        caller->args = ebb_tpl_alloc(p->vm, sizeof *caller->args);
        *caller->args = (tpl_args){ 0 };
    }
    n->b = ebb_tpl_parse_expr(p, true);
    if (n->b->type != TPL_N_CALL)
        ebb_tpl_unexpected(p, "the call of a macro");
    parse_macro_body(p, caller, "endcall");
    n->a = caller;
    return n;
}

static tpl_node *parse_filter_block(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_FILTER_BLOCK);

    n->b = ebb_tpl_parse_filters(p, NULL, true);
    n->a = parse_body(p, "endfilter");
    return n;
}

static tpl_node *parse_with(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_WITH);
    tpl_nodes kids = { 0 };

    while (p->t->type != TPL_T_TAG_END) {
        if (kids.n)
            ebb_tpl_expect_op(p, ',', ",");
        ebb_tpl_nodes_add(p, &kids, parse_target_one(p, false));
        ebb_tpl_expect_op(p, '=', "=");
        ebb_tpl_nodes_add(p, &kids, ebb_tpl_parse_expr(p, true));
    }
    ebb_tpl_set_kids(n, &kids);
    n->a = parse_body(p, "endwith");
    return n;
}

static tpl_node *parse_generation(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_SCOPE);

    n->a = parse_body(p, "endgeneration");
    return n;
}

static tpl_node *parse_jump(tpl_parser *p)
{
    bool is_break = p->t[-1].n == 5;             /* the word before */
    tpl_node *n = ebb_tpl_node(p, is_break ? TPL_N_BREAK : TPL_N_CONTINUE);

    if (p->n_loops == 0)
        ebb_tpl_fail(p->vm, EBB_FORMAT, "%s outside of a loop", is_break ? "break" : "continue");
    expect_tag_end(p);
    return n;
}

static tpl_node *parse_statement(tpl_parser *p)
{
    static const struct { const char *tag; tpl_node *(*parse)(tpl_parser *); } tags[] = {
        { "if", parse_if }, { "for", parse_for }, { "set", parse_set }, { "macro", parse_macro },
        { "call", parse_call_block }, { "filter", parse_filter_block }, { "with", parse_with },
        { "generation", parse_generation }, { "break", parse_jump }, { "continue", parse_jump },
    };

    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (ebb_tpl_skip_name(p, tags[i].tag))
            return tags[i].parse(p);
    ebb_tpl_unexpected(p, "a tag that is known here");
}

static tpl_node *parse_text(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_TEXT);

    n->val = ebb_tpl_str(ebb_tpl_str_new(p->vm, p->t->p, p->t->n, 0));
    p->t++;
    return n;
}

static tpl_node *parse_print(tpl_parser *p)
{
    tpl_node *n = ebb_tpl_node(p, TPL_N_PRINT);

    p->t++;
    n->a = ebb_tpl_parse_tuple(p, true, false);
    if (p->t->type != TPL_T_PRINT_END)
        ebb_tpl_unexpected(p, "'}}'");
    p->t++;
    return n;
}

static bool at_end(const tpl_parser *p, const char *const *ends)
{
    for (; *ends; ends++)
        if (ebb_tpl_at_name(p, *ends))
            return true;
    return false;
}

/* Statements up to a tag that is one of `ends`, which stays the current token
 * (behind its "{%"); NULL for the whole template. */
static tpl_node *parse_block(tpl_parser *p, const char *const *ends)
{
    static const char *const none[] = { NULL };
    tpl_node *n = ebb_tpl_node(p, TPL_N_BLOCK);
    tpl_nodes kids = { 0 };

    ebb_tpl_enter(p->vm);
    for (;;) {
        if (p->t->type == TPL_T_END) {
            if (!ends)
                break;
            while (ends[1])
                ends++;
            ebb_tpl_unexpected(p, *ends);        /* the last one closes */
        } else if (p->t->type == TPL_T_DATA) {
            ebb_tpl_nodes_add(p, &kids, parse_text(p));
        } else if (p->t->type == TPL_T_PRINT) {
            ebb_tpl_nodes_add(p, &kids, parse_print(p));
        } else {
            p->t++;                              /* "{%" */
            if (at_end(p, ends ? ends : none))
                break;
            ebb_tpl_nodes_add(p, &kids, parse_statement(p));
        }
    }
    ebb_tpl_leave(p->vm);
    ebb_tpl_set_kids(n, &kids);
    return n;
}

tpl_node *ebb_tpl_parse(tpl_vm *vm, const char *src, size_t n)
{
    tpl_tokens tokens;
    tpl_parser p = { .vm = vm };

    ebb_tpl_lex(vm, src, n, &tokens);
    p.t = tokens.v;
    return parse_block(&p, NULL);
}
