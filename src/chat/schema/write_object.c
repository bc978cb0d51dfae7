/* Objects: their properties in the order of the schema, then others (schema_priv.h).
 *
 * With nothing written yet, property i comes with no comma before it ("rN-fI"); with something written, it comes
 * with one ("rN-gI").  An optional property may be left out in both.  So the grammar grows with the properties, not
 * with their subsets. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "schema/schema_priv.h"

typedef struct property {
    const char *name;
    int         rule;            /* -1: anything */
    bool        is_required;
} property;

typedef struct object {
    property   *list;
    size_t      n, cap;
    size_t      n_required;
    json_t     *names;           /* that no other property may have: name: true */
    bool        has_others;      /* properties beside these may be there */
    int         other_rule;      /* -1: anything */
    uint64_t    most_others;
    bool        is_never;        /* nothing is valid */
    unsigned    number;          /* of its rules */
} object;

/* -- What there is ------------------------------------------------------------------- */

static bool add_name(ebb_compiler *c, object *o, const char *name)
{
    return ebb_schema_spend_name(c, name) &&
           (json_object_set_new(o->names, name, json_true()) == 0 || ebb_schema_fail_no_memory(c));
}

static bool add_property(ebb_compiler *c, object *o, const char *name, const json_t *schema, bool is_required)
{
    property *p = ebb_grow(o->list, o->n, &o->cap, sizeof *p);
    size_t path;
    int rule = -1;

    if (!p)
        return ebb_schema_fail_no_memory(c);
    o->list = p;
    if (!add_name(c, o, name))
        return false;
    if (schema && !json_is_true(schema)) {
        path = ebb_schema_enter(c, "properties", name);
        rule = ebb_schema_rule_of(c, schema);
        ebb_schema_leave(c, path);
        if (rule < 0) {                          /* it cannot be there */
            o->is_never = o->is_never || is_required;
            return c->st == EBB_OK;
        }
    }
    p[o->n++] = (property){ .name = name, .rule = rule, .is_required = is_required };
    o->n_required += is_required;
    return true;
}

static bool gather_properties(ebb_compiler *c, const ebb_shape *s, object *o)
{
    const char *name;
    json_t *schema;
    bool ok = true;

    json_object_foreach(s->absent, name, schema) {
        if (!add_name(c, o, name))
            return false;
        o->is_never = o->is_never || json_object_get(s->required, name) != NULL;
    }
    json_object_foreach(s->properties, name, schema)
        if (ok && !json_object_get(s->absent, name))
            ok = add_property(c, o, name, schema, json_object_get(s->required, name) != NULL);
    json_object_foreach(s->required, name, schema)
        if (ok && !json_object_get(s->properties, name)) {
            o->is_never = o->is_never || json_is_false(s->additional);
            ok = add_property(c, o, name, s->additional, true);
        }
    return ok;
}

static bool read_others(ebb_compiler *c, const ebb_shape *s, object *o)
{
    size_t path;

    o->has_others = !json_is_false(s->additional);
    o->other_rule = -1;
    o->most_others = EBB_NO_LIMIT;
    if (s->additional && o->has_others && !json_is_true(s->additional)) {
        path = ebb_schema_enter(c, "additionalProperties", NULL);
        o->other_rule = ebb_schema_rule_of(c, s->additional);
        ebb_schema_leave(c, path);
        o->has_others = o->other_rule >= 0;
    }
    return c->st == EBB_OK;
}

/* Names of others may come twice, so one of them is all that is sure to be counted. */
static bool read_numbers(ebb_compiler *c, const ebb_shape *s, object *o)
{
    if (s->max_properties < o->n_required || (s->min_properties > o->n && !o->has_others))
        o->is_never = true;
    if (o->is_never)
        return true;
    if (s->max_properties != EBB_NO_LIMIT && s->max_properties < o->n)
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "maxProperties below the number of properties is not supported");
    if (s->max_properties != EBB_NO_LIMIT)
        o->most_others = s->max_properties - o->n;
    if (o->most_others == 0)
        o->has_others = false;
    if (s->min_properties > o->n_required && s->min_properties > 1)
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "minProperties above the number of required ones is not supported");
    return true;
}

/* -- Names that are none of these ------------------------------------------------------- */

/* Names are written without escapes, so names that need one are not generated. */
static bool is_plain_name(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < 0x20 || *name == '"' || *name == '\\' || *name == 0x7F)
            return false;
    return true;
}

static void add_class_char(ebb_buf *b, const char *s, size_t n)
{
    if (*s == ']' || *s == '[')
        ebb_buf_addc(b, '\\');
    if (*s == '^' || *s == '-')                  /* as characters of their own */
        ebb_buf_addf(b, "\\x%02x", *s);
    else
        ebb_buf_add(b, s, n);
}

/* Rule `node`: what may follow the first n_read bytes, which names[0..n) (sorted) have in common.
 * A character with which no name continues, and then anything; one with which some names continue,
 * and then the rule of that node; or the end, if no name ends here.  Further nodes are numbered
 * from *n_nodes on. */
static bool add_other_name(ebb_compiler *c, const object *o, const char **names, size_t n, size_t n_read,
                           unsigned node, unsigned *n_nodes)
{
    ebb_buf *b = c->out;
    bool ok = true;
    bool is_one = n > 0 && names[0][n_read] == '\0';
    size_t first = is_one ? 1 : 0;               /* the others are longer */
    unsigned next = *n_nodes;

    ebb_buf_addf(b, "o%u-n%u ::= ([^\"\\\\\\x00-\\x1f\\x7f", o->number, node);
    for (size_t i = first; i < n; i++) {
        size_t bytes = ebb_schema_char_bytes(names[i] + n_read);
        if (i == first || strncmp(names[i - 1] + n_read, names[i] + n_read, bytes) != 0)
            add_class_char(b, names[i] + n_read, bytes);
    }
    ebb_buf_adds(b, "] name-char*");
    for (size_t i = first; i < n; i++) {
        size_t bytes = ebb_schema_char_bytes(names[i] + n_read);
        if (i > first && strncmp(names[i - 1] + n_read, names[i] + n_read, bytes) == 0)
            continue;
        ebb_buf_adds(b, " | ");
        ebb_schema_add_literal(b, names[i] + n_read, bytes);
        ebb_buf_addf(b, " o%u-n%u", o->number, (*n_nodes)++);
        if (!ebb_schema_has_room(c, NULL))
            return false;
    }
    ebb_buf_adds(b, is_one ? ")\n" : ")?\n");
    for (size_t i = first, end; ok && i < n; i = end) {
        size_t bytes = ebb_schema_char_bytes(names[i] + n_read);

        for (end = i + 1; end < n && strncmp(names[i] + n_read, names[end] + n_read, bytes) == 0;)
            end++;
        ok = add_other_name(c, o, names + i, end - i, n_read + bytes, next++, n_nodes);
    }
    return ok;
}

static bool write_other_names(ebb_compiler *c, const object *o)
{
    const char **names = malloc((json_object_size(o->names) + 1) * sizeof *names), *name;
    size_t n = 0, longest = 0;
    unsigned n_nodes = 1;
    json_t *v;

    if (!names)
        return ebb_schema_fail_no_memory(c);
    json_object_foreach(o->names, name, v)
        if (is_plain_name(name)) {
            names[n++] = name;
            longest = strlen(name) > longest ? strlen(name) : longest;
        }
    qsort(names, n, sizeof *names, ebb_schema_compare_texts);
    if (longest > 128)
        ebb_schema_fail(c, EBB_LIMIT, "names of properties are followed up to 128 bytes where others may be there "
                        "(additionalProperties)");
    else
        add_other_name(c, o, names, n, 0, 0, &n_nodes);
    free(names);
    return c->st == EBB_OK;
}

/* -- Rules ------------------------------------------------------------------------------- */

static bool add_property_text(ebb_compiler *c, const property *p)
{
    json_t *name = json_string(p->name);
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;

    if (text)
        ebb_schema_add_literal(c->out, text, strlen(text));
    ebb_buf_adds(c->out, " \":\" ws ");
    ebb_schema_add_call(c->out, p->rule);
    free(text);
    json_decref(name);
    return text || ebb_schema_fail_no_memory(c);
}

/* The rules for properties from i on: one with a comma before the next property, one without. */
static bool write_property_rules(ebb_compiler *c, const object *o, size_t i)
{
    static const char kinds[] = { 'f', 'g' };
    bool ok = ebb_schema_has_room(c, NULL);

    for (int k = 0; ok && k < 2; k++) {
        ebb_buf_addf(c->out, "o%u-%c%zu ::= ", o->number, kinds[k], i);
        ebb_buf_adds(c->out, k ? "\",\" ws " : "");
        ok = add_property_text(c, &o->list[i]);
        ebb_buf_addf(c->out, " o%u-g%zu", o->number, i + 1);
        if (!o->list[i].is_required)
            ebb_buf_addf(c->out, " | o%u-%c%zu", o->number, kinds[k], i + 1);
        ebb_buf_addc(c->out, '\n');
    }
    return ok;
}

static void write_rest(ebb_compiler *c, const object *o, bool may_be_empty)
{
    ebb_buf *b = c->out;

    if (!o->has_others) {
        if (may_be_empty)
            ebb_buf_addf(b, "o%u-f%zu ::= \"\"\n", o->number, o->n);
        else
            ebb_buf_addf(b, "o%u-f%zu ::= \"?\" o%u-f%zu\n", o->number, o->n, o->number, o->n); /* has no end */
        ebb_buf_addf(b, "o%u-g%zu ::= \"\"\n", o->number, o->n);
        return;
    }
    if (!write_other_names(c, o))
        return;
    ebb_buf_addf(b, "o%u-other ::= \"\\\"\" o%u-n0 \"\\\":\" ws ", o->number, o->number);
    ebb_schema_add_call(b, o->other_rule);
    ebb_buf_addf(b, "\no%u-f%zu ::= %so%u-other (\",\" ws o%u-other)", o->number, o->n, may_be_empty ? "(" : "",
                 o->number, o->number);
    if (o->most_others == EBB_NO_LIMIT)
        ebb_buf_addf(b, "*%s\no%u-g%zu ::= (\",\" ws o%u-other)*\n", may_be_empty ? ")?" : "", o->number, o->n,
                     o->number);
    else
        ebb_buf_addf(b, "{0,%" PRIu64 "}%s\no%u-g%zu ::= (\",\" ws o%u-other){0,%" PRIu64 "}\n", o->most_others - 1,
                     may_be_empty ? ")?" : "", o->number, o->n, o->number, o->most_others);
}

void ebb_write_object(ebb_compiler *c, const ebb_shape *s, ebb_buf *b)
{
    object o = { .names = json_object(), .number = c->n_objects++ };
    bool ok = o.names ? gather_properties(c, s, &o) && read_others(c, s, &o) && read_numbers(c, s, &o)
                      : ebb_schema_fail_no_memory(c);

    if (ok && !o.is_never) {
        for (size_t i = 0; ok && i < o.n; i++)
            ok = write_property_rules(c, &o, i);
        if (ok)
            write_rest(c, &o, s->min_properties == 0 || o.n_required > 0);
        ebb_write_way(b);
        ebb_buf_addf(b, "\"{\" ws o%u-f0 ws \"}\"", o.number);
    }
    free(o.list);
    json_decref(o.names);
}
