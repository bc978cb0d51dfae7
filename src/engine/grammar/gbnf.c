/* GBNF text read: recursive descent, one function for each line of the notation (gbnf.h); what is characters, in
 * gbnf_chars.c. */
#include "grammar/gbnf_reader.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

enum { MOST_BYTES = 4 << 20, MOST_RULES = 1 << 16, MOST_TIMES = 100000 };

/* -- How deep ---------------------------------------------------------------------------- */

static uint32_t depth_of(const ebb_gbnf_reader *p, uint32_t node)
{
    return node == EBB_GRAMMAR_NONE ? 0 : p->t->nodes[node].depth;
}

/* The node has this one below it. */
static bool put_below(ebb_gbnf_reader *p, uint32_t node, uint32_t child)
{
    uint32_t depth = depth_of(p, child) + 1;

    if (depth > EBB_GBNF_MOST_DEPTH)
        return ebb_gbnf_fail_at(p, p->at, EBB_LIMIT, "nested more than %d deep", EBB_GBNF_MOST_DEPTH);
    if (depth > depth_of(p, node))
        p->t->nodes[node].depth = (uint16_t)depth;
    return true;
}

/* -- Blanks and names ------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '-';
}

static void skip_blanks(ebb_gbnf_reader *p, bool lines_too)
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

static size_t name_length(const ebb_gbnf_reader *p)
{
    const char *c = p->at;

    while (c < p->end && is_name_char(*c))
        c++;
    return (size_t)(c - p->at);
}

static bool grow_table(ebb_gbnf_reader *p)
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

static uint32_t add_rule(ebb_gbnf_reader *p, const char *name, size_t n, uint64_t hash)
{
    ebb_grammar *g = p->g;
    ebb_rule *rules = ebb_grow(g->rules, g->n_rules, &g->cap_rules, sizeof *rules);
    uint64_t *names = ebb_grow(p->names, g->n_rules, &p->cap_names, sizeof *names);
    uint32_t *bodies = ebb_grow(p->t->bodies, p->t->n_bodies, &p->t->cap_bodies, sizeof *bodies);

    g->rules = rules ? rules : g->rules;
    p->names = names ? names : p->names;
    p->t->bodies = bodies ? bodies : p->t->bodies;
    if (!rules || !names || !bodies) {
        ebb_gbnf_fail_no_memory(p);
        return EBB_GRAMMAR_NONE;
    }
    rules[g->n_rules] = (ebb_rule){ .start = EBB_GRAMMAR_NONE };
    memcpy(rules[g->n_rules].name, name, n < sizeof rules->name ? n : sizeof rules->name - 1);
    names[g->n_rules] = hash;
    bodies[p->t->n_bodies++] = EBB_GRAMMAR_NONE;
    return (uint32_t)g->n_rules++;
}

/* The rule whose name begins here, which is read; it need not be defined yet. */
static uint32_t read_rule_name(ebb_gbnf_reader *p)
{
    const char *name = p->at;
    size_t n = name_length(p), i;
    uint64_t hash = ebb_hash_table(name, n);
    uint32_t rule;

    if (n == 0) {
        ebb_gbnf_fail_at(p, p->at, EBB_FORMAT, "expected the name of a rule: letters, digits and dashes");
        return EBB_GRAMMAR_NONE;
    }
    if (p->g->n_rules >= MOST_RULES) {
        ebb_gbnf_fail_at(p, p->at, EBB_LIMIT, "more than %d rules", MOST_RULES);
        return EBB_GRAMMAR_NONE;
    }
    if (2 * p->g->n_rules >= p->n_table && !grow_table(p)) {
        ebb_gbnf_fail_no_memory(p);
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

/* -- What consists of others -------------------------------------------------------------- */

static uint32_t read_choice(ebb_gbnf_reader *p, uint32_t depth, bool is_group);

static uint32_t read_call(ebb_gbnf_reader *p)
{
    const char *at = p->at;
    uint32_t rule = read_rule_name(p);

    if (rule == EBB_GRAMMAR_NONE)
        return rule;
    if (!p->g->rules[rule].used_line)
        ebb_gbnf_locate(p, at, &p->g->rules[rule].used_line, &p->g->rules[rule].used_column);
    return ebb_gbnf_add_node(p, EBB_GBNF_CALL, rule, 0, 0);
}

static uint32_t read_group(ebb_gbnf_reader *p, uint32_t depth)
{
    const char *from = p->at++;
    uint32_t node;

    if (depth >= EBB_GBNF_MOST_DEPTH) {
        ebb_gbnf_fail_at(p, from, EBB_LIMIT, "nested more than %d deep", EBB_GBNF_MOST_DEPTH);
        return EBB_GRAMMAR_NONE;
    }
    skip_blanks(p, true);
    node = read_choice(p, depth + 1, true);
    if (node != EBB_GRAMMAR_NONE && !ebb_gbnf_is_next(p, ')'))
        ebb_gbnf_fail_at(p, p->at, EBB_FORMAT, "an earlier ( is never closed");
    if (p->st != EBB_OK)
        return EBB_GRAMMAR_NONE;
    p->at++;
    return node;
}

static bool read_times(ebb_gbnf_reader *p, uint32_t *out)
{
    const char *from = p->at;

    *out = 0;
    while (p->at < p->end && isdigit((unsigned char)*p->at)) {
        *out = 10 * *out + (uint32_t)(*p->at++ - '0');
        if (*out > MOST_TIMES)
            return ebb_gbnf_fail_at(p, from, EBB_LIMIT, "more than %d repetitions", MOST_TIMES);
    }
    return p->at > from || ebb_gbnf_fail_at(p, from, EBB_FORMAT, "expected a number of repetitions, as in {2,5}");
}

static bool read_braces(ebb_gbnf_reader *p, uint32_t *least, uint32_t *most)
{
    const char *from = p->at++;

    skip_blanks(p, true);
    if (!read_times(p, least))
        return false;
    *most = *least;
    skip_blanks(p, true);
    if (ebb_gbnf_is_next(p, ',')) {
        p->at++;
        skip_blanks(p, true);
        *most = EBB_GRAMMAR_NONE;
        if (!ebb_gbnf_is_next(p, '}') && !read_times(p, most))
            return false;
        skip_blanks(p, true);
    }
    if (!ebb_gbnf_is_next(p, '}'))
        return ebb_gbnf_fail_at(p, from, EBB_FORMAT, "expected {n}, {n,} or {n,m}");
    p->at++;
    return *most >= *least || ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the range ends before it begins");
}

/* What repeats `node`, as often as there is something. */
static uint32_t read_repeats(ebb_gbnf_reader *p, uint32_t node, bool is_group)
{
    while (node != EBB_GRAMMAR_NONE && p->at < p->end && strchr("*+?{", *p->at) && *p->at) {
        char c = *p->at;
        uint32_t least = c == '+', most = c == '?' ? 1 : EBB_GRAMMAR_NONE;

        if (c == '{' && !read_braces(p, &least, &most))
            return EBB_GRAMMAR_NONE;
        p->at += c != '{';
        node = ebb_gbnf_add_node(p, EBB_GBNF_REPEAT, node, least, depth_of(p, node) + 1);
        if (node != EBB_GRAMMAR_NONE)
            p->t->nodes[node].most = most;
        skip_blanks(p, is_group);
    }
    return node;
}

static uint32_t read_item(ebb_gbnf_reader *p, uint32_t depth)
{
    switch (*p->at) {
    case '"': return ebb_gbnf_read_literal(p);
    case '[': return ebb_gbnf_read_set(p);
    case '(': return read_group(p, depth);
    case '.': return ebb_gbnf_read_any_char(p);
    default: return read_call(p);
    }
}

static bool begins_item(const ebb_gbnf_reader *p)
{
    return p->at < p->end && (is_name_char(*p->at) || (strchr("\"[(.", *p->at) && *p->at));
}

static bool is_token_next(const ebb_gbnf_reader *p)
{
    return ebb_gbnf_is_next(p, '<') || (ebb_gbnf_is_next(p, '!') && p->at + 1 < p->end && p->at[1] == '<');
}

static uint32_t read_sequence(ebb_gbnf_reader *p, uint32_t depth, bool is_group)
{
    uint32_t sequence = ebb_gbnf_add_node(p, EBB_GBNF_SEQUENCE, EBB_GRAMMAR_NONE, 0, 0), last = EBB_GRAMMAR_NONE;

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
        ebb_gbnf_fail_at(p, p->at, EBB_UNSUPPORTED,
                         "tokens by name or number (<...>) are not supported; write their text");
    return p->st == EBB_OK ? sequence : EBB_GRAMMAR_NONE;
}

static uint32_t read_choice(ebb_gbnf_reader *p, uint32_t depth, bool is_group)
{
    uint32_t first = read_sequence(p, depth, is_group), last = first, choice;

    if (first == EBB_GRAMMAR_NONE || !ebb_gbnf_is_next(p, '|'))
        return first;
    choice = ebb_gbnf_add_node(p, EBB_GBNF_CHOICE, first, 0, depth_of(p, first) + 1);
    while (choice != EBB_GRAMMAR_NONE && ebb_gbnf_is_next(p, '|')) {
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

static bool read_rule(ebb_gbnf_reader *p)
{
    const char *from = p->at;
    uint32_t rule = read_rule_name(p), body, column;

    if (rule == EBB_GRAMMAR_NONE)
        return false;
    assert(p->g->rules);                         /* there is a rule */
    if (p->g->rules[rule].line)
        return ebb_gbnf_fail_at(p, from, EBB_FORMAT, "the rule %s is defined a second time (first on line %u)",
                                p->g->rules[rule].name, p->g->rules[rule].line);
    ebb_gbnf_locate(p, from, &p->g->rules[rule].line, &column);
    skip_blanks(p, false);
    if (p->end - p->at < 3 || memcmp(p->at, "::=", 3) != 0)
        return ebb_gbnf_fail_at(p, p->at, EBB_FORMAT, "expected ::= after the name of a rule");
    p->at += 3;
    skip_blanks(p, true);
    body = read_choice(p, 0, false);
    if (body == EBB_GRAMMAR_NONE)
        return false;
    p->t->bodies[rule] = body;
    if (p->at < p->end && *p->at != '\n' && *p->at != '\r')
        return ebb_gbnf_fail_at(p, p->at, EBB_FORMAT, "expected the end of the line, or a part of the rule: "
                                "\"text\", [a-z], ., a name, ( ), | * + ? {n,m}");
    skip_blanks(p, true);
    return true;
}

static bool check_rules(ebb_gbnf_reader *p)
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

static bool find_root(ebb_gbnf_reader *p)
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

/* Read text[0..n): the tree, and in *g the names of its rules. */
static ebb_status parse_gbnf(const char *text, size_t n, ebb_gbnf *out, ebb_grammar *g, ebb_error *err)
{
    ebb_gbnf_reader p = { .begin = text, .at = text, .end = text + n, .t = out, .g = g, .err = err };

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

static void fini_gbnf(ebb_gbnf *t)
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
    st = parse_gbnf(text, n, &t, g, err);
    if (st == EBB_OK)
        st = ebb_gbnf_build(&t, g, err);
    if (st == EBB_OK)
        st = ebb_grammar_finish(g, err);
    fini_gbnf(&t);
    if (st != EBB_OK) {
        ebb_grammar_free(g);
        return st;
    }
    ebb_grammar_shrink(g);
    *out = g;
    return EBB_OK;
}
