/* GBNF text read: recursive descent, one function for each line of the notation (gbnf.h). */
#include "grammar/gbnf.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/utf8.h"

enum { MOST_BYTES = 4 << 20, MOST_RULES = 1 << 16, MOST_DEPTH = 200, MOST_TIMES = 100000, LAST_CHAR = 0x10FFFF };

typedef struct parser {
    const char  *begin, *at, *end;
    const char  *known;          /* a position whose line is known: */
    const char  *known_begin;    /* where that line begins, */
    uint32_t     known_line;     /* and its number */
    ebb_gbnf    *t;
    ebb_grammar *g;
    uint32_t    *table;          /* rules (+ 1) by the hash of their name */
    size_t       n_table;
    uint64_t    *names;          /* [rules] hashes of whole names */
    size_t       cap_names;
    ebb_error   *err;
    ebb_status   st;
} parser;

/* -- Errors -------------------------------------------------------------------------- */

/* Positions are asked for in ascending order, but for those of errors. */
static void line_and_column(parser *p, const char *at, uint32_t *line, uint32_t *column)
{
    if (!p->known || at < p->known) {
        p->known = p->known_begin = p->begin;
        p->known_line = 1;
    }
    for (; p->known < at; p->known++)
        if (*p->known == '\n') {
            p->known_line++;
            p->known_begin = p->known + 1;
        }
    *line = p->known_line;
    *column = (uint32_t)(at - p->known_begin) + 1;
}

/* The first error counts.  Always false. */
static __attribute__((format(printf, 4, 5))) bool fail_at(parser *p, const char *at, ebb_status code,
                                                          const char *format, ...)
{
    uint32_t line, column;
    char what[200];
    va_list list;

    if (p->st != EBB_OK)
        return false;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    line_and_column(p, at, &line, &column);
    p->st = EBB_FAIL(p->err, code, "the grammar, line %u, column %u: %s", line, column, what);
    return false;
}

static bool fail_no_memory(parser *p)
{
    if (p->st == EBB_OK)
        p->st = EBB_FAIL(p->err, EBB_NOMEM, "no memory for the grammar");
    return false;
}

/* -- Nodes --------------------------------------------------------------------------- */

static uint32_t new_node(parser *p, ebb_gbnf_kind kind, uint32_t first, uint32_t n, uint32_t depth)
{
    ebb_gbnf *t = p->t;
    ebb_gbnf_node *grown;

    if (p->st != EBB_OK)
        return EBB_GRAMMAR_NONE;
    if (depth > MOST_DEPTH) {
        fail_at(p, p->at, EBB_LIMIT, "nested more than %d deep", MOST_DEPTH);
        return EBB_GRAMMAR_NONE;
    }
    grown = ebb_grow(t->nodes, t->n_nodes, &t->cap_nodes, sizeof *grown);
    if (!grown) {
        fail_no_memory(p);
        return EBB_GRAMMAR_NONE;
    }
    t->nodes = grown;
    grown[t->n_nodes] = (ebb_gbnf_node){ .kind = (uint8_t)kind, .depth = (uint16_t)depth, .first = first, .n = n,
                                         .next = EBB_GRAMMAR_NONE };
    return (uint32_t)t->n_nodes++;
}

static uint32_t depth_of(const parser *p, uint32_t node)
{
    return node == EBB_GRAMMAR_NONE ? 0 : p->t->nodes[node].depth;
}

/* The node has this one below it. */
static bool put_below(parser *p, uint32_t node, uint32_t child)
{
    uint32_t depth = depth_of(p, child) + 1;

    if (depth > MOST_DEPTH)
        return fail_at(p, p->at, EBB_LIMIT, "nested more than %d deep", MOST_DEPTH);
    if (depth > depth_of(p, node))
        p->t->nodes[node].depth = (uint16_t)depth;
    return true;
}

static bool add_char_range(parser *p, uint32_t first, uint32_t last)
{
    ebb_gbnf *t = p->t;
    uint32_t *grown = ebb_grow(t->ranges, t->n_ranges, &t->cap_ranges, 2 * sizeof *grown);

    if (!grown)
        return fail_no_memory(p);
    t->ranges = grown;
    grown[2 * t->n_ranges] = first;
    grown[2 * t->n_ranges++ + 1] = last;
    return true;
}

static bool add_text_char(parser *p, uint32_t cp)
{
    ebb_gbnf *t = p->t;
    char bytes[4];
    size_t n = ebb_utf8_encode(cp, bytes);

    for (size_t i = 0; i < n; i++) {
        char *grown = ebb_grow(t->text, t->n_text, &t->cap_text, 1);
        if (!grown)
            return fail_no_memory(p);
        t->text = grown;
        grown[t->n_text++] = bytes[i];
    }
    return true;
}

/* -- Blanks and names ------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

static void skip_blanks(parser *p, bool lines_too)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '#' ||
                              (lines_too && (*p->at == '\n' || *p->at == '\r')))) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n' && *p->at != '\r')
                p->at++;
        else
            p->at++;
    }
}

static bool is_next(const parser *p, char c)
{
    return p->at < p->end && *p->at == c;
}

static size_t name_length(const parser *p)
{
    const char *c = p->at;

    while (c < p->end && is_name_char(*c))
        c++;
    return (size_t)(c - p->at);
}

static bool grow_table(parser *p)
{
    size_t n = p->n_table ? 2 * p->n_table : 256;
    uint32_t *table = calloc(n, sizeof *table);

    if (!table)
        return false;
    for (uint32_t r = 0; r < p->g->n_rules; r++) {
        size_t i = p->names[r] & (n - 1);
        while (table[i])
            i = (i + 1) & (n - 1);
        table[i] = r + 1;
    }
    free(p->table);
    p->table = table;
    p->n_table = n;
    return true;
}

static uint32_t add_rule(parser *p, const char *name, size_t n, uint64_t hash)
{
    ebb_grammar *g = p->g;
    ebb_rule *rules = ebb_grow(g->rules, g->n_rules, &g->cap_rules, sizeof *rules);
    uint64_t *names = ebb_grow(p->names, g->n_rules, &p->cap_names, sizeof *names);
    uint32_t *bodies = ebb_grow(p->t->bodies, p->t->n_bodies, &p->t->cap_bodies, sizeof *bodies);

    g->rules = rules ? rules : g->rules;
    p->names = names ? names : p->names;
    p->t->bodies = bodies ? bodies : p->t->bodies;
    if (!rules || !names || !bodies) {
        fail_no_memory(p);
        return EBB_GRAMMAR_NONE;
    }
    rules[g->n_rules] = (ebb_rule){ .start = EBB_GRAMMAR_NONE };
    memcpy(rules[g->n_rules].name, name, n < sizeof rules->name ? n : sizeof rules->name - 1);
    names[g->n_rules] = hash;
    bodies[p->t->n_bodies++] = EBB_GRAMMAR_NONE;
    return (uint32_t)g->n_rules++;
}

/* The rule whose name begins here, which is read; it need not be defined yet. */
static uint32_t read_rule_name(parser *p)
{
    const char *name = p->at;
    size_t n = name_length(p), i;
    uint64_t hash = ebb_hash_table(name, n);
    uint32_t rule;

    if (n == 0) {
        fail_at(p, p->at, EBB_FORMAT, "expected the name of a rule: letters, digits and dashes");
        return EBB_GRAMMAR_NONE;
    }
    if (p->g->n_rules >= MOST_RULES) {
        fail_at(p, p->at, EBB_LIMIT, "more than %d rules", MOST_RULES);
        return EBB_GRAMMAR_NONE;
    }
    if (2 * p->g->n_rules >= p->n_table && !grow_table(p)) {
        fail_no_memory(p);
        return EBB_GRAMMAR_NONE;
    }
    p->at += n;
    for (i = hash & (p->n_table - 1); p->table[i]; i = (i + 1) & (p->n_table - 1))
        if (p->names[p->table[i] - 1] == hash)   /* 64 bits under a key that nobody knows: no two are alike */
            return p->table[i] - 1;
    rule = add_rule(p, name, n, hash);
    if (rule != EBB_GRAMMAR_NONE)
        p->table[i] = rule + 1;
    return rule;
}

/* -- Characters ------------------------------------------------------------------------- */

static bool read_hex(parser *p, const char *from, size_t n_digits, uint32_t *cp)
{
    *cp = 0;
    for (size_t i = 0; i < n_digits; i++, p->at++) {
        if (p->at >= p->end || !isxdigit((unsigned char)*p->at))
            return fail_at(p, from, EBB_FORMAT, "the escape needs %zu hexadecimal digits", n_digits);
        *cp = *cp << 4 | (uint32_t)(isdigit((unsigned char)*p->at) ? *p->at - '0' : (*p->at | 32) - 'a' + 10);
    }
    if (*cp > LAST_CHAR || (*cp >= 0xD800 && *cp <= 0xDFFF))
        return fail_at(p, from, EBB_FORMAT, "the escape is not a character");
    return true;
}

static bool read_escape(parser *p, uint32_t *cp)
{
    const char *from = p->at++;
    char c = p->at < p->end ? *p->at++ : '\0';

    switch (c) {
    case 'x': return read_hex(p, from, 2, cp);
    case 'u': return read_hex(p, from, 4, cp);
    case 'U': return read_hex(p, from, 8, cp);
    case 'n': *cp = '\n'; return true;
    case 'r': *cp = '\r'; return true;
    case 't': *cp = '\t'; return true;
    case '\\': case '"': case '[': case ']': *cp = (uint32_t)c; return true;
    default: return fail_at(p, from, EBB_FORMAT, "unknown escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\x41 "
                            "\\u0041 \\U00000041");
    }
}

static bool read_char(parser *p, uint32_t *cp)
{
    size_t n;

    if (*p->at == '\\')
        return read_escape(p, cp);
    n = ebb_utf8_decode(p->at, (size_t)(p->end - p->at), cp);
    if (n == 0 || (*cp == EBB_UTF8_BAD && n != 3))
        return fail_at(p, p->at, EBB_FORMAT, "invalid UTF-8");
    p->at += n;
    return true;
}

static uint32_t read_literal(parser *p)
{
    const char *from = p->at++;
    uint32_t first = (uint32_t)p->t->n_text, cp = 0;

    while (p->at < p->end && *p->at != '"')
        if (!read_char(p, &cp) || !add_text_char(p, cp))
            return EBB_GRAMMAR_NONE;
    if (p->at >= p->end) {
        fail_at(p, from, EBB_FORMAT, "the \" that begins here is never closed");
        return EBB_GRAMMAR_NONE;
    }
    p->at++;
    return new_node(p, EBB_GBNF_TEXT, first, (uint32_t)p->t->n_text - first, 0);
}

static int compare_ranges(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sort the ranges from `first` on, join what overlaps. */
static void join_ranges(ebb_gbnf *t, size_t first)
{
    uint32_t *r = t->ranges + 2 * first;
    size_t n = t->n_ranges - first, kept = 0;

    if (n > 1)
        qsort(r, n, 2 * sizeof *r, compare_ranges);
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && r[2 * i] <= r[2 * kept - 1] + 1) {
            if (r[2 * i + 1] > r[2 * kept - 1])
                r[2 * kept - 1] = r[2 * i + 1];
            continue;
        }
        r[2 * kept] = r[2 * i];
        r[2 * kept++ + 1] = r[2 * i + 1];
    }
    t->n_ranges = first + kept;
}

/* What is between the joined ranges from `first` on takes their place. */
static bool invert_ranges(parser *p, size_t first)
{
    ebb_gbnf *t = p->t;
    uint32_t from = 0;

    for (size_t i = first; i < t->n_ranges; i++) {
        uint32_t begin = t->ranges[2 * i], last = t->ranges[2 * i + 1];
        t->ranges[2 * i] = from;
        t->ranges[2 * i + 1] = begin - 1;        /* of nothing in front of 0: dropped below */
        from = last + 1;
    }
    if (t->n_ranges > first && t->ranges[2 * first + 1] == UINT32_MAX) {
        memmove(t->ranges + 2 * first, t->ranges + 2 * first + 2,
                2 * (t->n_ranges - first - 1) * sizeof *t->ranges);
        t->n_ranges--;
    }
    return from > LAST_CHAR || add_char_range(p, from, LAST_CHAR);
}

static bool read_range(parser *p)
{
    const char *from = p->at;
    uint32_t first = 0, last;

    if (!read_char(p, &first))
        return false;
    last = first;
    if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
        p->at++;
        if (!read_char(p, &last))
            return false;
    }
    if (last < first)
        return fail_at(p, from, EBB_FORMAT, "the range ends before it begins");
    return add_char_range(p, first, last);
}

static uint32_t read_chars(parser *p)
{
    const char *from = p->at++;
    size_t first = p->t->n_ranges;
    bool is_inverted = is_next(p, '^');

    p->at += is_inverted;
    while (p->at < p->end && *p->at != ']')
        if (!read_range(p))
            return EBB_GRAMMAR_NONE;
    if (p->at >= p->end) {
        fail_at(p, from, EBB_FORMAT, "the [ that begins here is never closed");
        return EBB_GRAMMAR_NONE;
    }
    p->at++;
    join_ranges(p->t, first);
    if (is_inverted && !invert_ranges(p, first))
        return EBB_GRAMMAR_NONE;
    if (p->t->n_ranges == first) {
        fail_at(p, from, EBB_FORMAT, "no character is in this set");
        return EBB_GRAMMAR_NONE;
    }
    return new_node(p, EBB_GBNF_CHARS, (uint32_t)first, (uint32_t)(p->t->n_ranges - first), 0);
}

static uint32_t read_any_char(parser *p)
{
    uint32_t first = (uint32_t)p->t->n_ranges;

    p->at++;
    return add_char_range(p, 0, LAST_CHAR) ? new_node(p, EBB_GBNF_CHARS, first, 1, 0) : EBB_GRAMMAR_NONE;
}

/* -- What consists of others -------------------------------------------------------------- */

static uint32_t read_choice(parser *p, uint32_t depth, bool is_group);

static uint32_t read_call(parser *p)
{
    const char *at = p->at;
    uint32_t rule = read_rule_name(p);

    if (rule == EBB_GRAMMAR_NONE)
        return rule;
    if (!p->g->rules[rule].used_line)
        line_and_column(p, at, &p->g->rules[rule].used_line, &p->g->rules[rule].used_column);
    return new_node(p, EBB_GBNF_CALL, rule, 0, 0);
}

static uint32_t read_group(parser *p, uint32_t depth)
{
    const char *from = p->at++;
    uint32_t node;

    if (depth >= MOST_DEPTH) {
        fail_at(p, from, EBB_LIMIT, "nested more than %d deep", MOST_DEPTH);
        return EBB_GRAMMAR_NONE;
    }
    skip_blanks(p, true);
    node = read_choice(p, depth + 1, true);
    if (node != EBB_GRAMMAR_NONE && !is_next(p, ')'))
        fail_at(p, p->at, EBB_FORMAT, "an earlier ( is never closed");
    if (p->st != EBB_OK)
        return EBB_GRAMMAR_NONE;
    p->at++;
    return node;
}

static bool read_times(parser *p, uint32_t *out)
{
    const char *from = p->at;

    *out = 0;
    while (p->at < p->end && isdigit((unsigned char)*p->at)) {
        *out = 10 * *out + (uint32_t)(*p->at++ - '0');
        if (*out > MOST_TIMES)
            return fail_at(p, from, EBB_LIMIT, "more than %d repetitions", MOST_TIMES);
    }
    return p->at > from || fail_at(p, from, EBB_FORMAT, "expected a number of repetitions, as in {2,5}");
}

static bool read_braces(parser *p, uint32_t *least, uint32_t *most)
{
    const char *from = p->at++;

    skip_blanks(p, true);
    if (!read_times(p, least))
        return false;
    *most = *least;
    skip_blanks(p, true);
    if (is_next(p, ',')) {
        p->at++;
        skip_blanks(p, true);
        *most = EBB_GRAMMAR_NONE;
        if (!is_next(p, '}') && !read_times(p, most))
            return false;
        skip_blanks(p, true);
    }
    if (!is_next(p, '}'))
        return fail_at(p, from, EBB_FORMAT, "expected {n}, {n,} or {n,m}");
    p->at++;
    return *most >= *least || fail_at(p, from, EBB_FORMAT, "the range ends before it begins");
}

/* What repeats `node`, as often as there is something. */
static uint32_t read_repeats(parser *p, uint32_t node, bool is_group)
{
    while (node != EBB_GRAMMAR_NONE && p->at < p->end && strchr("*+?{", *p->at) && *p->at) {
        char c = *p->at;
        uint32_t least = c == '+', most = c == '?' ? 1 : EBB_GRAMMAR_NONE;

        if (c == '{' && !read_braces(p, &least, &most))
            return EBB_GRAMMAR_NONE;
        p->at += c != '{';
        node = new_node(p, EBB_GBNF_REPEAT, node, least, depth_of(p, node) + 1);
        if (node != EBB_GRAMMAR_NONE)
            p->t->nodes[node].most = most;
        skip_blanks(p, is_group);
    }
    return node;
}

static uint32_t read_item(parser *p, uint32_t depth)
{
    switch (*p->at) {
    case '"': return read_literal(p);
    case '[': return read_chars(p);
    case '(': return read_group(p, depth);
    case '.': return read_any_char(p);
    default: return read_call(p);
    }
}

static bool begins_item(const parser *p)
{
    return p->at < p->end && (is_name_char(*p->at) || (strchr("\"[(.", *p->at) && *p->at));
}

static bool is_token_next(const parser *p)
{
    return is_next(p, '<') || (is_next(p, '!') && p->at + 1 < p->end && p->at[1] == '<');
}

static uint32_t read_sequence(parser *p, uint32_t depth, bool is_group)
{
    uint32_t sequence = new_node(p, EBB_GBNF_SEQUENCE, EBB_GRAMMAR_NONE, 0, 0), last = EBB_GRAMMAR_NONE;

    while (p->st == EBB_OK && begins_item(p)) {
        uint32_t node = read_item(p, depth);

        if (node == EBB_GRAMMAR_NONE)
            return node;
        skip_blanks(p, is_group);
        node = read_repeats(p, node, is_group);
        if (node == EBB_GRAMMAR_NONE)
            return node;
        if (last == EBB_GRAMMAR_NONE)
            p->t->nodes[sequence].first = node;
        else
            p->t->nodes[last].next = node;
        last = node;
        if (!put_below(p, sequence, node))
            return EBB_GRAMMAR_NONE;
    }
    if (is_token_next(p))
        fail_at(p, p->at, EBB_UNSUPPORTED, "tokens by name or number (<...>) are not supported; write their text");
    return p->st == EBB_OK ? sequence : EBB_GRAMMAR_NONE;
}

static uint32_t read_choice(parser *p, uint32_t depth, bool is_group)
{
    uint32_t first = read_sequence(p, depth, is_group), last = first, choice;

    if (first == EBB_GRAMMAR_NONE || !is_next(p, '|'))
        return first;
    choice = new_node(p, EBB_GBNF_CHOICE, first, 0, depth_of(p, first) + 1);
    while (choice != EBB_GRAMMAR_NONE && is_next(p, '|')) {
        uint32_t node;

        p->at++;
        skip_blanks(p, true);
        node = read_sequence(p, depth, is_group);
        if (node == EBB_GRAMMAR_NONE)
            return node;
        p->t->nodes[last].next = node;
        last = node;
        if (!put_below(p, choice, node))
            return EBB_GRAMMAR_NONE;
    }
    return choice;
}

static bool read_rule(parser *p)
{
    const char *from = p->at;
    uint32_t rule = read_rule_name(p), body, column;

    if (rule == EBB_GRAMMAR_NONE)
        return false;
    assert(p->g->rules);                         /* there is a rule */
    if (p->g->rules[rule].line)
        return fail_at(p, from, EBB_FORMAT, "the rule %s is defined a second time (first on line %u)",
                       p->g->rules[rule].name, p->g->rules[rule].line);
    line_and_column(p, from, &p->g->rules[rule].line, &column);
    skip_blanks(p, false);
    if (p->end - p->at < 3 || memcmp(p->at, "::=", 3) != 0)
        return fail_at(p, p->at, EBB_FORMAT, "expected ::= after the name of a rule");
    p->at += 3;
    skip_blanks(p, true);
    body = read_choice(p, 0, false);
    if (body == EBB_GRAMMAR_NONE)
        return false;
    p->t->bodies[rule] = body;
    if (p->at < p->end && *p->at != '\n' && *p->at != '\r')
        return fail_at(p, p->at, EBB_FORMAT, "expected the end of the line, or a part of the rule: "
                       "\"text\", [a-z], ., a name, ( ), | * + ? {n,m}");
    skip_blanks(p, true);
    return true;
}

static bool check_rules(parser *p)
{
    const ebb_grammar *g = p->g;

    for (size_t i = 0; i < g->n_rules; i++) {
        const ebb_rule *r = &g->rules[i];
        if (!r->line && p->st == EBB_OK)
            p->st = EBB_FAIL(p->err, EBB_FORMAT, "the grammar, line %u, column %u: there is no rule %s", r->used_line,
                             r->used_column, r->name);
    }
    return p->st == EBB_OK;
}

static bool find_root(parser *p)
{
    const char *at = p->at;

    p->at = "root";
    p->end = p->at + 4;
    p->g->root = read_rule_name(p);
    p->at = p->end = at;
    if (p->g->root == EBB_GRAMMAR_NONE)
        return false;
    assert(p->g->rules);                         /* there is a rule */
    if (!p->g->rules[p->g->root].line)
        p->st = EBB_FAIL(p->err, EBB_FORMAT, "the grammar has no rule root, where a text begins");
    return p->st == EBB_OK;
}

ebb_status ebb_gbnf_parse(const char *text, size_t n, ebb_gbnf *out, ebb_grammar *g, ebb_error *err)
{
    parser p = { .begin = text, .at = text, .end = text + n, .t = out, .g = g, .err = err };

    if (n > MOST_BYTES)
        return EBB_FAIL(err, EBB_LIMIT, "the grammar is larger than %d MiB", MOST_BYTES >> 20);
    skip_blanks(&p, true);
    while (p.at < p.end && read_rule(&p))
        ;
    if (p.st == EBB_OK && find_root(&p))
        check_rules(&p);
    free(p.table);
    free(p.names);
    return p.st;
}

void ebb_gbnf_fini(ebb_gbnf *t)
{
    free(t->nodes);
    free(t->ranges);
    free(t->text);
    free(t->bodies);
    *t = (ebb_gbnf){ 0 };
}

ebb_status ebb_grammar_new(const char *text, size_t n, ebb_grammar **out, ebb_error *err)
{
    ebb_grammar *g = calloc(1, sizeof *g);
    ebb_gbnf t = { 0 };
    ebb_status st;

    *out = NULL;
    if (!g)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the grammar");
    g->n_owners = 1;
    st = ebb_gbnf_parse(text, n, &t, g, err);
    if (st == EBB_OK)
        st = ebb_gbnf_build(&t, g, err);
    if (st == EBB_OK)
        st = ebb_grammar_finish(g, err);
    ebb_gbnf_fini(&t);
    if (st == EBB_OK)
        *out = g;
    else
        ebb_grammar_free(g);
    return st;
}
