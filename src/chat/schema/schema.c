/* Schemas as rules, and what all rules share (schema_priv.h). */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "json/json_load.h"
#include "schema/schema_priv.h"

enum { MOST_RULES = 4096 };

/* Rules that all schemas share, with numbers that every reader accepts and bounded white space. */
static const char prelude[] =
    "root ::= r0\n"
    "ws ::= (\" \" | \"\\n\" [ \\t]{0,20})?\n"
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? ws \"}\"\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? ws \"]\"\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "char ::= [^\"\\\\\\x00-\\x1f\\x7f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cA-CefEF] hex{3} | "
    "[dD] [0-7] hex{2} | [dD] [89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2}))\n"
    "name-char ::= [^\"\\\\\\x00-\\x1f\\x7f]\n"
    "hex ::= [0-9a-fA-F]\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,14})\n"
    "number ::= integer (\".\" [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?\n";

/* -- Rules ------------------------------------------------------------------------------- */

static void write_types(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    if (s->types & EBB_TYPE_OBJECT)
        ebb_write_object(c, s, b);
    if (s->types & EBB_TYPE_ARRAY)
        ebb_write_array(c, s, b);
    if (s->types & EBB_TYPE_STRING)
        ebb_write_string(c, s, b);
    if (s->types & (EBB_TYPE_INTEGER | EBB_TYPE_FRACTION))
        ebb_write_number(c, s, b);
    if (s->types & EBB_TYPE_BOOLEAN) {
        ebb_write_way(b);
        ebb_buf_adds(b, "\"true\" | \"false\"");
    }
    if (s->types & EBB_TYPE_NULL) {
        ebb_write_way(b);
        ebb_buf_adds(b, "\"null\"");
    }
}

/* What is written is spent, too: bodies of rules within rules are held at the same time. */
static bool write_shape(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    size_t before = b->len;

    if (s->values)
        ebb_write_values(c, s, b);
    else
        write_types(c, s, b);
    return ebb_schema_spend(c, (b->len - before) / EBB_SCHEMA_WRITTEN_BYTES) && ebb_schema_has_room(c, b);
}

static bool add_rule(ebb_compiler *c, const json_t *schema)
{
    ebb_schema_rule *p;

    if (!ebb_schema_has_room(c, NULL))
        return false;
    if (c->n_rules >= MOST_RULES)
        return ebb_schema_fail(c, EBB_LIMIT, "too large: more than %d parts, written out", MOST_RULES);
    p = ebb_grow(c->rules, c->n_rules, &c->cap_rules, sizeof *p);
    if (!p)
        return ebb_schema_fail_no_memory(c);
    c->rules = p;
    p[c->n_rules] = (ebb_schema_rule){ .schema = schema, .rule = (int)c->n_rules };
    c->n_rules++;
    return true;
}

/* Write the rule's body.  An empty body matches nothing; as the rule may have been referenced
 * already, it is written as one that never ends.  Returns -1 then. */
static int close_rule(ebb_compiler *c, int rule, const ebb_buf *body)
{
    if (body->failed || c->path.failed)
        ebb_schema_fail_no_memory(c);
    if (c->st != EBB_OK)
        return -1;
    if (body->len == 0)
        ebb_buf_addf(c->out, "r%d ::= \"?\" r%d\n", rule, rule);
    else
        ebb_buf_addf(c->out, "r%d ::= %s\n", rule, ebb_buf_text(body));
    return body->len == 0 ? (c->rules[rule].rule = -1) : rule;
}

int ebb_schema_rule_of(ebb_compiler *c, const json_t *schema)
{
    enum { RULES_OF_STEP = 64 };         /* that are looked through */
    ebb_buf body = { 0 };
    ebb_shapes shapes = { 0 };
    int rule;

    if (!ebb_schema_spend(c, c->n_rules / RULES_OF_STEP))
        return -1;
    for (size_t i = 0; i < c->n_rules; i++)
        if (c->rules[i].schema == schema)
            return c->rules[i].rule;
    if (!add_rule(c, schema))
        return -1;
    rule = (int)c->n_rules - 1;
    if (ebb_schema_shapes(c, schema, &shapes))
        for (size_t i = 0; i < shapes.n && write_shape(c, &shapes.list[i], &body); i++)
            ;
    ebb_shapes_fini(&shapes);
    rule = close_rule(c, rule, &body);
    ebb_buf_fini(&body);
    return rule;
}

/* -- The whole ---------------------------------------------------------------------------- */

static bool is_of_draft(const json_t *root, const char *name)
{
    const char *draft = json_string_value(json_object_get(root, "$schema"));

    return draft && strstr(draft, name);
}

static void read_draft(ebb_compiler *c)
{
    bool is_oldest = is_of_draft(c->root, "draft-03") || is_of_draft(c->root, "draft-04");

    c->ref_ignores_siblings = is_oldest || is_of_draft(c->root, "draft-06") || is_of_draft(c->root, "draft-07");
    c->has_no_prefix_items = c->ref_ignores_siblings || is_of_draft(c->root, "2019-09");
    c->id = is_oldest ? "id" : "$id";
}

ebb_status ebb_schema_grammar(const json_t *schema, bool (*stop)(void *arg), void *arg, ebb_buf *out, ebb_error *err)
{
    ebb_compiler c = { .root = schema, .out = out, .err = err, .made = json_array(), .stop = stop, .stop_arg = arg };

    read_draft(&c);
    ebb_buf_adds(&c.path, "#");
    ebb_buf_adds(out, prelude);
    if (!c.made)
        ebb_schema_fail_no_memory(&c);
    ebb_schema_find_bases(&c);
    if (ebb_schema_rule_of(&c, schema) < 0 && c.st == EBB_OK)
        ebb_schema_fail(&c, EBB_FORMAT, "nothing is valid under it");
    if (out->failed && c.st == EBB_OK)
        ebb_schema_fail_no_memory(&c);
    json_decref(c.made);
    free(c.rules);
    free(c.bases);
    ebb_buf_fini(&c.path);
    return c.st;
}

ebb_status ebb_schema_grammar_of_text(const char *text, size_t n, ebb_buf *out, ebb_error *err)
{
    json_error_t e;
    json_t *schema = ebb_json_load(text, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    ebb_status st;

    if (!schema)
        return EBB_FAIL(err, EBB_FORMAT, "the schema is not JSON: line %d, column %d: %s", e.line, e.column, e.text);
    st = ebb_schema_grammar(schema, NULL, NULL, out, err);
    json_decref(schema);
    return st;
}
