/* A schema as shapes: its keywords read, its references and alternatives followed (schema_priv.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "schema/schema_priv.h"

enum { MOST_DEPTH = 64, MOST_SHAPES = 256 };
enum { OF_KEYWORD = 2, OF_BRANCH = 10 };         /* ebb_schema_spend, for each, even if it says nothing */

static const struct { const char *name; unsigned types; } type_names[] = {
    { "null", EBB_TYPE_NULL }, { "boolean", EBB_TYPE_BOOLEAN }, { "integer", EBB_TYPE_INTEGER },
    { "number", EBB_TYPE_INTEGER | EBB_TYPE_FRACTION }, { "string", EBB_TYPE_STRING }, { "array", EBB_TYPE_ARRAY },
    { "object", EBB_TYPE_OBJECT },
};

/* What makes texts invalid, and is not kept. */
static const char *const refused[] = {
    "not", "if", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies",
    "unevaluatedProperties", "unevaluatedItems", "contains", "multipleOf", "divisibleBy", "extends", "disallow",
    "$dynamicRef", "$recursiveRef",
};

/* -- Lists ---------------------------------------------------------------------------- */

static void fini_shape(ebb_shape *s)
{
    json_decref(s->values);
    json_decref(s->prefix);
    json_decref(s->items);
    json_decref(s->properties);
    json_decref(s->required);
    json_decref(s->absent);
    json_decref(s->additional);
}

void ebb_shapes_fini(ebb_shapes *l)
{
    for (size_t i = 0; i < l->n; i++)
        fini_shape(&l->list[i]);
    free(l->list);
    *l = (ebb_shapes){ 0 };
}

/* *s is the list's then, or freed. */
static bool add_shape(ebb_compiler *c, ebb_shapes *l, const ebb_shape *s)
{
    ebb_shape *p = l->n < MOST_SHAPES ? ebb_grow(l->list, l->n, &l->cap, sizeof *p) : NULL;

    if (!p) {
        fini_shape((ebb_shape *)s);
        return l->n < MOST_SHAPES ? ebb_schema_fail_no_memory(c)
                                  : ebb_schema_fail(c, EBB_LIMIT, "more than %d alternatives, written out",
                                                    MOST_SHAPES);
    }
    l->list = p;
    p[l->n++] = *s;
    return true;
}

/* -- Keywords --------------------------------------------------------------------------- */

static bool read_type(ebb_compiler *c, const json_t *v, unsigned *types)
{
    size_t n = json_is_array(v) ? json_array_size(v) : 1;

    *types = 0;
    if (!ebb_schema_spend(c, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);
        unsigned type = 0;

        for (size_t k = 0; name && k < sizeof type_names / sizeof *type_names; k++)
            if (strcmp(name, type_names[k].name) == 0)
                type = type_names[k].types;
        if (!type)
            return ebb_schema_fail(c, EBB_FORMAT, "type must be null, boolean, integer, number, string, array, "
                                                  "object, or a list of these");
        *types |= type;
    }
    return true;
}

static bool read_count(ebb_compiler *c, const char *key, const json_t *v, uint64_t *out)
{
    double x = json_number_value(v);

    if (!json_is_number(v) || !(x >= 0 && x < 1e15) || x != floor(x))
        return ebb_schema_fail(c, EBB_FORMAT, "%s must be a whole number", key);
    *out = (uint64_t)x;
    return true;
}

static bool read_bound(ebb_compiler *c, const char *key, const json_t *v, bool is_open, bool is_lower, ebb_bound *out)
{
    int order;

    if (!json_is_number(v))
        return ebb_schema_fail(c, EBB_FORMAT, "%s must be a number", key);
    order = out->is_set ? ebb_schema_compare_numbers(v, out->number) : 1;
    if (out->is_set && (is_lower ? order < 0 : order > 0))
        return true;
    *out = (ebb_bound){ .is_set = true, .is_open = is_open || (order == 0 && out->is_open),
                        .value = json_number_value(v), .number = v };
    return true;
}

/* exclusiveMinimum is a number of its own, and was a mark on minimum until draft 4. */
static bool read_bounds(ebb_compiler *c, const json_t *o, const char *key, const char *open_key, bool is_lower,
                        ebb_bound *out)
{
    const json_t *v = json_object_get(o, key), *open = json_object_get(o, open_key);

    if (v && !read_bound(c, key, v, json_is_true(open), is_lower, out))
        return false;
    return !open || json_is_boolean(open) || read_bound(c, open_key, open, true, is_lower, out);
}

static bool read_keyword_text(ebb_compiler *c, const char *key, const json_t *v, const char **out)
{
    *out = json_string_value(v);
    if (!*out || strlen(*out) != json_string_length(v))
        return ebb_schema_fail(c, EBB_FORMAT, "%s is a text", key);
    return ebb_schema_spend(c, json_string_length(v) / EBB_SCHEMA_SEEN_BYTES);
}

static bool is_schema(const json_t *v)
{
    return json_is_object(v) || json_is_boolean(v);
}

static bool read_schema(ebb_compiler *c, const char *key, json_t *v, json_t **out)
{
    if (!is_schema(v))
        return ebb_schema_fail(c, EBB_FORMAT, "%s must be a schema: an object, true or false", key);
    json_decref(*out);
    *out = json_incref(v);
    return true;
}

/* A list of schemas for the first items; what is behind is `items`, or was additionalItems. */
static bool read_prefix(ebb_compiler *c, const char *key, json_t *v, ebb_shape *s)
{
    if (!ebb_schema_spend(c, json_array_size(v)))
        return false;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!is_schema(json_array_get(v, i)))
            return ebb_schema_fail(c, EBB_FORMAT, "%s must hold schemas: objects, true or false", key);
    if (!json_is_array(v))
        return ebb_schema_fail(c, EBB_FORMAT, "%s must be a list of schemas", key);
    json_decref(s->prefix);
    s->prefix = json_incref(v);
    return true;
}

static bool read_items(ebb_compiler *c, const json_t *o, ebb_shape *s)
{
    json_t *items = json_object_get(o, "items"), *behind = json_object_get(o, "additionalItems");

    if (c->has_no_prefix_items && items && json_object_get(o, "prefixItems"))
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "prefixItems beside items is of draft 2020-12, and $schema names "
                                                   "an older one");
    if (!json_is_array(items))
        return !items || read_schema(c, "items", items, &s->items);
    return read_prefix(c, "items", items, s) && (!behind || read_schema(c, "additionalItems", behind, &s->items));
}

static bool read_properties(ebb_compiler *c, json_t *v, ebb_shape *s)
{
    const char *name;
    json_t *schema;

    if (!json_is_object(v))
        return ebb_schema_fail(c, EBB_FORMAT, "properties must be an object of schemas");
    if (!ebb_schema_spend(c, json_object_size(v)))
        return false;
    json_object_foreach(v, name, schema)
        if (!is_schema(schema))
            return ebb_schema_fail(c, EBB_FORMAT, "properties/%.60s must be a schema: an object, true or false", name);
    s->properties = json_incref(v);
    return true;
}

/* Until draft 3, required was a mark on a property. */
static bool read_required(ebb_compiler *c, const json_t *v, ebb_shape *s)
{
    s->required = json_object();
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *name = json_array_get(v, i);
        const char *text = json_string_value(name) ? json_string_value(name) : "";

        if (strlen(text) != json_string_length(name))
            return ebb_schema_fail(c, EBB_UNSUPPORTED, "required: a name with \\u0000 in it");
        if (!ebb_schema_spend_name(c, text))
            return false;
        if (json_object_set_new(s->required, text, json_true()) != 0 || !json_is_string(name))
            return ebb_schema_fail(c, EBB_FORMAT, "required must be a list of names");
    }
    return json_is_array(v) || ebb_schema_fail(c, EBB_FORMAT, "required must be a list of names");
}

static bool read_enum(ebb_compiler *c, json_t *v, ebb_shape *s)
{
    if (!json_is_array(v))
        return ebb_schema_fail(c, EBB_FORMAT, "enum must be a list of values");
    s->values = json_incref(v);
    return true;
}

/* Beside an enum, it leaves that one value or none. */
static bool read_const(ebb_compiler *c, json_t *v, ebb_shape *s)
{
    bool is_there = !s->values;

    if (s->values && ebb_schema_spend(c, json_array_size(s->values)))
        is_there = ebb_schema_has_value(c, s->values, v);
    json_decref(s->values);
    s->values = json_array();
    return (s->values && (!is_there || json_array_append(s->values, v) == 0) && c->st == EBB_OK) ||
           ebb_schema_fail_no_memory(c);
}

static bool is_in(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0)
            return true;
    return false;
}

static bool read_keyword(ebb_compiler *c, const char *key, json_t *v, ebb_shape *s)
{
    static const struct { const char *key; size_t at; } counts[] = {
        { "minLength", offsetof(ebb_shape, min_length) }, { "maxLength", offsetof(ebb_shape, max_length) },
        { "minItems", offsetof(ebb_shape, min_items) }, { "maxItems", offsetof(ebb_shape, max_items) },
        { "minProperties", offsetof(ebb_shape, min_properties) },
        { "maxProperties", offsetof(ebb_shape, max_properties) },
    };

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(key, counts[i].key) == 0)
            return read_count(c, key, v, (uint64_t *)(void *)((char *)s + counts[i].at));
    if (strcmp(key, "type") == 0)
        return read_type(c, v, &s->types);
    if (strcmp(key, "prefixItems") == 0)
        return read_prefix(c, key, v, s);
    if (strcmp(key, "properties") == 0)
        return read_properties(c, v, s);
    if (strcmp(key, "required") == 0)
        return read_required(c, v, s);
    if (strcmp(key, "additionalProperties") == 0)
        return read_schema(c, key, v, &s->additional);
    if (strcmp(key, "pattern") == 0)
        return read_keyword_text(c, key, v, &s->pattern);
    if (strcmp(key, "format") == 0)
        return read_keyword_text(c, key, v, &s->format);
    if (strcmp(key, "uniqueItems") == 0 && json_is_true(v))
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "uniqueItems is not supported");
    if (is_in(key, refused, sizeof refused / sizeof *refused))
        return ebb_schema_fail(c, EBB_UNSUPPORTED, "%s is not supported", key);
    return true;                                 /* an annotation, read elsewhere, or a keyword of no draft */
}

static bool read_keywords(ebb_compiler *c, json_t *o, ebb_shape *s)
{
    json_t *v;
    const char *key;

    *s = (ebb_shape){ .types = EBB_TYPE_ANY, .max_length = EBB_NO_LIMIT, .max_items = EBB_NO_LIMIT,
                      .max_properties = EBB_NO_LIMIT };
    if (json_is_boolean(o))
        return true;
    json_object_foreach(o, key, v)
        if (!read_keyword(c, key, v, s))
            return false;
    if (json_is_true(json_object_get(o, "nullable")) && json_object_get(o, "type"))
        s->types |= EBB_TYPE_NULL;
    return (!json_object_get(o, "enum") || read_enum(c, json_object_get(o, "enum"), s)) &&
           (!json_object_get(o, "const") || read_const(c, json_object_get(o, "const"), s)) && read_items(c, o, s) &&
           read_bounds(c, o, "minimum", "exclusiveMinimum", true, &s->min) &&
           read_bounds(c, o, "maximum", "exclusiveMaximum", false, &s->max);
}

/* -- Alternatives -------------------------------------------------------------------------- */

/* *l becomes the intersections of each shape of *l with each shape of `other`; `other` is freed. */
static bool multiply(ebb_compiler *c, ebb_shapes *l, ebb_shapes *other)
{
    ebb_shapes both = { 0 };
    bool ok = c->st == EBB_OK;

    for (size_t i = 0; ok && i < l->n; i++)
        for (size_t k = 0; ok && k < other->n; k++) {
            ebb_shape s = { 0 };
            ok = ebb_shape_merge(c, &l->list[i], &other->list[k], &s);
            if (!ok || s.types == 0)
                fini_shape(&s);
            else
                ok = add_shape(c, &both, &s);
        }
    ebb_shapes_fini(l);
    ebb_shapes_fini(other);
    *l = both;
    return ok;
}

/* oneOf: what is valid under two branches is valid under none. */
static bool part_branches(ebb_compiler *c, ebb_shapes *all, const size_t *end, size_t n)
{
    for (size_t a = 0; a < n; a++)
        for (size_t i = a ? end[a - 1] : 0; i < end[a]; i++)
            for (size_t k = end[a]; k < all->n; k++)
                if (!ebb_shape_part(c, &all->list[i], &all->list[k])) {
                    size_t b = a + 1;
                    while (k >= end[b])
                        b++;
                    return ebb_schema_fail(c, EBB_UNSUPPORTED, "oneOf: its branches %zu and %zu may both be valid; "
                                                               "anyOf allows that", a + 1, b + 1);
                }
    return true;
}

static bool read_branches(ebb_compiler *c, const char *key, const json_t *list, ebb_shapes *l)
{
    bool is_one = strcmp(key, "oneOf") == 0, ok = true;
    size_t n = json_array_size(list), *end = ebb_schema_spend(c, n * OF_BRANCH) ? calloc(n + 1, sizeof *end) : NULL;
    ebb_shapes all = { 0 };

    if (!end)
        return ebb_schema_fail_no_memory(c);
    if (n == 0)
        ok = ebb_schema_fail(c, EBB_FORMAT, "%s must be a list of one schema or more", key);
    for (size_t i = 0; ok && i < n; i++) {
        size_t path;
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        path = ebb_schema_enter(c, key, number);
        ok = ebb_schema_shapes(c, json_array_get(list, i), &all);
        ebb_schema_leave(c, path);
        end[i] = all.n;
    }
    ok = ok && (!is_one || part_branches(c, &all, end, n));
    free(end);
    if (!ok) {
        ebb_shapes_fini(&all);
        return false;
    }
    return multiply(c, l, &all);
}

static bool read_all_of(ebb_compiler *c, const json_t *list, ebb_shapes *l)
{
    bool ok = json_array_size(list) > 0 || ebb_schema_fail(c, EBB_FORMAT, "allOf must be a list of one schema or more");

    ok = ok && ebb_schema_spend(c, json_array_size(list) * OF_BRANCH);
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        size_t path;
        char number[24];
        ebb_shapes other = { 0 };
        snprintf(number, sizeof number, "%zu", i);
        path = ebb_schema_enter(c, "allOf", number);
        ok = ebb_schema_shapes(c, json_array_get(list, i), &other);
        ebb_schema_leave(c, path);
        ok = multiply(c, l, &other) && ok;
    }
    return ok;
}

static bool follow_ref(ebb_compiler *c, const json_t *ref, ebb_shapes *out)
{
    size_t path = ebb_schema_enter(c, "$ref", NULL);
    const json_t *to = ebb_schema_find_ref(c, ref);
    bool ok = to && ebb_schema_shapes(c, to, out);

    ebb_schema_leave(c, path);
    return ok;
}

static bool read_object(ebb_compiler *c, json_t *o, ebb_shapes *l)
{
    static const char *const branches[] = { "anyOf", "oneOf" };
    const json_t *ref = json_object_get(o, "$ref");
    ebb_shape own;
    bool ok;

    if (ref && c->ref_ignores_siblings)
        return follow_ref(c, ref, l);
    ok = read_keywords(c, o, &own);
    if (!ok) {
        fini_shape(&own);
        return false;
    }
    ok = add_shape(c, l, &own);
    if (ok && ref) {
        ebb_shapes other = { 0 };
        ok = follow_ref(c, ref, &other);
        ok = multiply(c, l, &other) && ok;
    }
    if (ok && json_object_get(o, "allOf"))
        ok = read_all_of(c, json_object_get(o, "allOf"), l);
    for (size_t i = 0; ok && i < 2; i++)
        if (json_object_get(o, branches[i]))
            ok = read_branches(c, branches[i], json_object_get(o, branches[i]), l);
    return ok;
}

bool ebb_schema_shapes(ebb_compiler *c, const json_t *schema, ebb_shapes *out)
{
    ebb_shapes l = { 0 };
    bool ok = c->st == EBB_OK;

    if (c->depth >= MOST_DEPTH)
        return ebb_schema_fail(c, EBB_LIMIT, "nested more than %d deep, or a reference that comes back to itself",
                               MOST_DEPTH);
    if (!is_schema(schema))
        return ebb_schema_fail(c, EBB_FORMAT, "a schema must be an object, true or false");
    if (!ok || json_is_false(schema))
        return ok;
    if (!ebb_schema_spend(c, EBB_SCHEMA_STEP + OF_KEYWORD * json_object_size(schema)))
        return false;
    c->depth++;
    if (json_is_true(schema)) {
        ebb_shape any;
        ok = read_keywords(c, (json_t *)schema, &any) && add_shape(c, &l, &any);
    } else {
        ok = read_object(c, (json_t *)schema, &l);
    }
    for (size_t i = 0; ok && i < l.n; i++) {     /* each is the other list's from here on, held or not */
        ok = add_shape(c, out, &l.list[i]);
        l.list[i] = (ebb_shape){ 0 };
    }
    ebb_shapes_fini(&l);
    c->depth--;
    return ok;
}
