/* Two shapes as one, and two that have nothing in common (schema_priv.h). */
#include <math.h>
#include <string.h>

#include "schema/schema_priv.h"

/* -- Values ------------------------------------------------------------------------------ */

static unsigned type_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT: return EBB_TYPE_OBJECT;
    case JSON_ARRAY: return EBB_TYPE_ARRAY;
    case JSON_STRING: return EBB_TYPE_STRING;
    case JSON_INTEGER: return EBB_TYPE_INTEGER;
    case JSON_REAL: return json_real_value(v) == floor(json_real_value(v)) ? EBB_TYPE_INTEGER : EBB_TYPE_FRACTION;
    case JSON_TRUE: case JSON_FALSE: return EBB_TYPE_BOOLEAN;
    case JSON_NULL: break;
    }
    return EBB_TYPE_NULL;
}

/* A whole number has up to 63 bits, of which a double has the first 53. */
static int compare_mixed(json_int_t whole, double x)
{
    json_int_t below;

    if (x >= 0x1p63 || x < -0x1p63)
        return x > 0 ? -1 : 1;
    below = (json_int_t)floor(x);
    return whole != below ? (whole > below) - (whole < below) : x > (double)below ? -1 : 0;
}

int ebb_schema_compare_numbers(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b))
        return (json_integer_value(a) > json_integer_value(b)) - (json_integer_value(a) < json_integer_value(b));
    if (json_is_integer(a))
        return compare_mixed(json_integer_value(a), json_real_value(b));
    if (json_is_integer(b))
        return -compare_mixed(json_integer_value(b), json_real_value(a));
    return (json_real_value(a) > json_real_value(b)) - (json_real_value(a) < json_real_value(b));
}

static bool bound_admits(const ebb_shape *s, const json_t *v)
{
    int above = s->min.is_set ? ebb_schema_compare_numbers(v, s->min.number) : 1;
    int below = s->max.is_set ? ebb_schema_compare_numbers(s->max.number, v) : 1;

    return (above > 0 || (above == 0 && !s->min.is_open)) && (below > 0 || (below == 0 && !s->max.is_open));
}

static uint64_t count_chars(const json_t *text)
{
    const char *s = json_string_value(text);
    size_t n_bytes = json_string_length(text);
    uint64_t n = 0;

    for (size_t i = 0; i < n_bytes; i++)
        n += ((unsigned char)s[i] & 0xC0) != 0x80;
    return n;
}

bool ebb_shape_admits(ebb_compiler *c, const ebb_shape *s, const json_t *v, bool *is_known)
{
    unsigned type = type_of(v);
    uint64_t n;

    if (!ebb_schema_spend(c, 1 + json_string_length(v) / EBB_SCHEMA_SEEN_BYTES) || !(s->types & type))
        return false;
    if (type == EBB_TYPE_INTEGER || type == EBB_TYPE_FRACTION)
        return bound_admits(s, v);
    if (type == EBB_TYPE_STRING) {
        if (s->pattern || s->format)
            *is_known = false;
        n = count_chars(v);
        return n >= s->min_length && n <= s->max_length;
    }
    if (type == EBB_TYPE_ARRAY) {
        n = json_array_size(v);
        if ((s->prefix || s->items) && n > 0)
            *is_known = false;
        return n >= s->min_items && n <= s->max_items;
    }
    if (type == EBB_TYPE_OBJECT && (s->properties || s->required || s->absent || s->additional || s->min_properties ||
                                    s->max_properties != EBB_NO_LIMIT))
        *is_known = false;
    return true;
}

/* A name is looked up next. */
static bool see_name(ebb_compiler *c, const char *name)
{
    return ebb_schema_spend(c, 1 + strlen(name) / EBB_SCHEMA_SEEN_BYTES);
}

/* json_equal, but 1.0 is 1, and what it looks at is spent: the same large parts can be compared again and again. */
static bool is_equal(ebb_compiler *c, const json_t *a, const json_t *b)
{
    const char *name;
    json_t *part;
    size_t i;

    if (a == b)
        return true;
    if (json_is_number(a) && json_is_number(b))
        return ebb_schema_spend(c, 1) && ebb_schema_compare_numbers(a, b) == 0;
    if (!a || !b || json_typeof(a) != json_typeof(b) || json_object_size(a) != json_object_size(b) ||
        json_array_size(a) != json_array_size(b) || json_string_length(a) != json_string_length(b) ||
        !ebb_schema_spend(c, 1 + json_string_length(a) / EBB_SCHEMA_SEEN_BYTES))
        return false;
    json_object_foreach((json_t *)a, name, part)
        if (!see_name(c, name) || !is_equal(c, part, json_object_get(b, name)))
            return false;
    json_array_foreach(a, i, part)
        if (!is_equal(c, part, json_array_get(b, i)))
            return false;
    return json_is_object(a) || json_is_array(a) || json_equal(a, b);
}

bool ebb_schema_has_value(ebb_compiler *c, const json_t *list, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_equal(c, json_array_get(list, i), v))
            return true;
    return false;
}

/* -- Both ---------------------------------------------------------------------------------- */

/* Whether `#` is of the same in both; copies of a part that has an $id refer to the same. */
static bool is_same_base(ebb_compiler *c, const json_t *ref_a, const json_t *ref_b)
{
    return is_equal(c, ebb_schema_base_of(c, ref_a), ebb_schema_base_of(c, ref_b));
}

/* Of equal schemas.  Where parts have an $id of their own, equal words may refer to two places. */
static bool has_same_bases(ebb_compiler *c, const json_t *a, const json_t *b)
{
    const json_t *ref = json_object_get(a, "$ref");
    const char *name;
    json_t *part;
    size_t i;

    if (a == b)
        return true;
    if (json_is_string(ref) && !is_same_base(c, ref, json_object_get(b, "$ref")))
        return false;
    json_object_foreach((json_t *)a, name, part)
        if (!has_same_bases(c, part, json_object_get(b, name)))
            return false;
    json_array_foreach(a, i, part)
        if (!has_same_bases(c, part, json_array_get(b, i)))
            return false;
    return true;
}

static bool is_same_schema(ebb_compiler *c, const json_t *a, const json_t *b)
{
    return is_equal(c, a, b) && (c->n_bases == 0 || has_same_bases(c, a, b));
}

/* A schema under which valid is what is valid under both (NULL: anything); held.  NULL with an error: it failed. */
static json_t *both_schemas(ebb_compiler *c, json_t *a, json_t *b)
{
    json_t *both, *known;
    size_t i;

    if (!a || json_is_true(a) || json_is_false(b) || a == b)
        return b ? json_incref(b) : json_incref(a);
    if (!b || json_is_true(b) || json_is_false(a) || is_same_schema(c, a, b))
        return json_incref(a);
    if (!ebb_schema_spend(c, json_array_size(c->made)))
        return NULL;
    json_array_foreach(c->made, i, known) {      /* so that what comes back to itself comes to an end */
        const json_t *of = json_object_get(known, "allOf");

        if (json_array_get(of, 0) == a && json_array_get(of, 1) == b)
            return json_incref(known);
    }
    both = json_pack("{s:[O, O]}", "allOf", a, b);
    if (!both) {
        ebb_schema_fail_no_memory(c);
        return NULL;
    }
    json_array_append(c->made, both);
    return both;
}

/* A new object; NULL: there are none, or it failed. */
static json_t *join_names(ebb_compiler *c, json_t *a, json_t *b)
{
    json_t *both;

    if ((!a && !b) || !ebb_schema_spend_names(c, a) || !ebb_schema_spend_names(c, b))
        return NULL;
    both = json_object();
    if (!both || (a && json_object_update(both, a) != 0) || (b && json_object_update(both, b) != 0))
        ebb_schema_fail_no_memory(c);
    return both;
}

/* Nobody changes them, so they may be those of one side. */
static json_t *both_required(ebb_compiler *c, json_t *a, json_t *b)
{
    return a && b ? join_names(c, a, b) : json_incref(a ? a : b);
}

static json_t *both_values(ebb_compiler *c, json_t *a, json_t *b)
{
    json_t *both;

    if (!a || !b)
        return json_incref(a ? a : b);
    both = json_array();
    for (size_t i = 0; i < json_array_size(a); i++)
        if (ebb_schema_has_value(c, b, json_array_get(a, i)))
            json_array_append(both, json_array_get(a, i));
    return both;
}

static ebb_bound both_bounds(ebb_bound a, ebb_bound b, bool is_lower)
{
    int order;

    if (!a.is_set || !b.is_set)
        return a.is_set ? a : b;
    order = ebb_schema_compare_numbers(a.number, b.number);
    if (order == 0)
        return a.is_open ? a : b;
    return (order > 0) == is_lower ? a : b;
}

static bool both_texts(ebb_compiler *c, const char *key, const char *a, const char *b, const char **out)
{
    *out = a ? a : b;
    if (!a || !b || a == b)
        return true;
    return ebb_schema_spend(c, strlen(a) / EBB_SCHEMA_SEEN_BYTES) &&
           (strcmp(a, b) == 0 || ebb_schema_fail(c, EBB_UNSUPPORTED, "allOf: two different texts for %s", key));
}

static json_t *item_schema(const ebb_shape *s, size_t i)
{
    return i < json_array_size(s->prefix) ? json_array_get(s->prefix, i) : s->items;
}

/* A place in a list that may hold anything, or what was made. */
static void append_schema(json_t *list, json_t *schema)
{
    json_array_append_new(list, schema ? schema : json_true());
}

static void merge_items(ebb_compiler *c, const ebb_shape *a, const ebb_shape *b, ebb_shape *out)
{
    size_t n_a = json_array_size(a->prefix), n_b = json_array_size(b->prefix), n = n_a > n_b ? n_a : n_b;

    out->items = both_schemas(c, a->items, b->items);
    if (n > 0)
        out->prefix = json_array();
    for (size_t i = 0; i < n && ebb_schema_spend(c, EBB_SCHEMA_ITEM); i++)
        append_schema(out->prefix, both_schemas(c, item_schema(a, i), item_schema(b, i)));
}

static json_t *property_schema(const ebb_shape *s, const char *name)
{
    json_t *own = json_object_get(s->properties, name);

    return own ? own : s->additional;
}

static void merge_properties(ebb_compiler *c, const ebb_shape *a, const ebb_shape *b, ebb_shape *out)
{
    const ebb_shape *both[] = { a, b };
    const char *name;
    json_t *schema, *merged;

    out->additional = both_schemas(c, a->additional, b->additional);
    if (a->properties || b->properties)
        out->properties = json_object();
    for (int i = 0; i < 2; i++)
        json_object_foreach(both[i]->properties, name, schema) {
            if (!ebb_schema_spend_name(c, name))
                return;
            if (json_object_get(out->properties, name))
                continue;
            merged = both_schemas(c, property_schema(a, name), property_schema(b, name));
            json_object_set_new(out->properties, name, merged ? merged : json_true());
        }
}

static uint64_t pairs_of(const ebb_shape *a, const ebb_shape *b)
{
    return (uint64_t)json_array_size(a->values) * json_array_size(b->values);
}

bool ebb_shape_merge(ebb_compiler *c, const ebb_shape *a, const ebb_shape *b, ebb_shape *out)
{
    *out = (ebb_shape){ 0 };
    if (!ebb_schema_spend(c, EBB_SCHEMA_STEP + pairs_of(a, b)))
        return false;
    *out = (ebb_shape){
        .types = a->types & b->types, .values = both_values(c, a->values, b->values),
        .min = both_bounds(a->min, b->min, true), .max = both_bounds(a->max, b->max, false),
        .min_length = a->min_length > b->min_length ? a->min_length : b->min_length,
        .max_length = a->max_length < b->max_length ? a->max_length : b->max_length,
        .min_items = a->min_items > b->min_items ? a->min_items : b->min_items,
        .max_items = a->max_items < b->max_items ? a->max_items : b->max_items,
        .min_properties = a->min_properties > b->min_properties ? a->min_properties : b->min_properties,
        .max_properties = a->max_properties < b->max_properties ? a->max_properties : b->max_properties,
    };
    merge_items(c, a, b, out);
    merge_properties(c, a, b, out);
    out->required = both_required(c, a->required, b->required);
    out->absent = join_names(c, a->absent, b->absent);       /* of its own: it grows (keep_absent) */
    return both_texts(c, "pattern", a->pattern, b->pattern, &out->pattern) &&
           both_texts(c, "format", a->format, b->format, &out->format) && c->st == EBB_OK;
}

/* -- Nothing in common ----------------------------------------------------------------------- */

/* The values of `a` are none of b's. */
static bool values_part(ebb_compiler *c, const ebb_shape *a, const ebb_shape *b)
{
    for (size_t i = 0; i < json_array_size(a->values); i++) {
        const json_t *v = json_array_get(a->values, i);
        bool is_known = true, is_of;

        if (b->values ? !ebb_schema_has_value(c, b->values, v) : false)
            continue;
        is_of = ebb_shape_admits(c, b, v, &is_known);
        if (is_of || !is_known)
            return false;
    }
    return c->st == EBB_OK;
}

static bool numbers_part(const ebb_shape *a, const ebb_shape *b)
{
    ebb_bound min = both_bounds(a->min, b->min, true), max = both_bounds(a->max, b->max, false);
    int order = min.is_set && max.is_set ? ebb_schema_compare_numbers(min.number, max.number) : -1;

    return order > 0 || (order == 0 && (min.is_open || max.is_open));
}

/* Schemas of a property under which nothing is valid in both. */
static bool schemas_part(ebb_compiler *c, const json_t *x, const json_t *y)
{
    ebb_shapes a = { 0 }, b = { 0 };
    bool ok = x && y && ebb_schema_shapes(c, x, &a) && ebb_schema_shapes(c, y, &b);

    for (size_t i = 0; ok && i < a.n; i++)
        for (size_t k = 0; ok && k < b.n; k++) {
            bool has_values = a.list[i].values && b.list[k].values;
            ok = ebb_schema_spend(c, EBB_SCHEMA_STEP + pairs_of(&a.list[i], &b.list[k])) &&
                 (!(a.list[i].types & b.list[k].types) ||
                 (has_values && values_part(c, &a.list[i], &b.list[k])) ||
                 ((a.list[i].values || b.list[k].values) && !has_values &&
                  values_part(c, a.list[i].values ? &a.list[i] : &b.list[k],
                              a.list[i].values ? &b.list[k] : &a.list[i])));
        }
    ebb_shapes_fini(&a);
    ebb_shapes_fini(&b);
    return ok;
}

static bool is_required(const ebb_shape *s, const char *name)
{
    return json_object_get(s->required, name) != NULL;
}

/* A name that `a` requires and b does not know; NULL: there is none, or it failed. */
static const char *foreign_name(ebb_compiler *c, const ebb_shape *a, const ebb_shape *b)
{
    const char *name;
    json_t *v;

    json_object_foreach(a->required, name, v)
        if (!see_name(c, name))
            return NULL;
        else if (!json_object_get(b->properties, name) && !is_required(b, name))
            return name;
    return NULL;
}

static bool keep_absent(ebb_compiler *c, ebb_shape *s, const char *name)
{
    if (!ebb_schema_spend_name(c, name))
        return false;
    if (!s->absent)
        s->absent = json_object();
    return json_object_set_new(s->absent, name, json_true()) == 0 || ebb_schema_fail_no_memory(c);
}

static bool objects_part(ebb_compiler *c, ebb_shape *a, ebb_shape *b)
{
    const char *name, *of_a, *of_b;
    json_t *schema;

    json_object_foreach(a->properties, name, schema)
        if (!see_name(c, name))
            return false;
        else if ((is_required(a, name) || is_required(b, name)) &&
                 schemas_part(c, schema, json_object_get(b->properties, name)))
            return true;
    of_a = foreign_name(c, a, b);
    of_b = foreign_name(c, b, a);
    if (c->st != EBB_OK)
        return false;
    if ((of_a && json_is_false(b->additional)) || (of_b && json_is_false(a->additional)))
        return true;
    if (!of_a || !of_b)
        return false;
    return keep_absent(c, b, of_a) &&            /* an object with that name may be valid for a */
           keep_absent(c, a, of_b);
}

bool ebb_shape_part(ebb_compiler *c, ebb_shape *a, ebb_shape *b)
{
    unsigned common = a->types & b->types;

    if (!ebb_schema_spend(c, EBB_SCHEMA_STEP + pairs_of(a, b)))
        return false;
    if (a->values || b->values)
        return a->values ? values_part(c, a, b) : values_part(c, b, a);
    if (common & ~(unsigned)(EBB_TYPE_OBJECT | EBB_TYPE_INTEGER | EBB_TYPE_FRACTION))
        return false;
    if ((common & (EBB_TYPE_INTEGER | EBB_TYPE_FRACTION)) && !numbers_part(a, b))
        return false;
    return !(common & EBB_TYPE_OBJECT) || objects_part(c, a, b);
}
