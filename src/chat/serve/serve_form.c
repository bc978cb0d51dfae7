/* The form that a request asks for, as a grammar (serve_priv.h). */
#include <string.h>

#include "schema/schema.h"
#include "serve/serve_priv.h"

static const json_t *given(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return v && !json_is_null(v) && !(json_is_string(v) && json_string_length(v) == 0) ? v : NULL;
}

static const json_t *format_of(const json_t *o)
{
    const json_t *format = given(o, "response_format");
    const char *type = json_string_value(json_object_get(format, "type"));

    return format && !(type && strcmp(type, "text") == 0) ? format : NULL;
}

bool ebb_serve_has_form(const json_t *o)
{
    return given(o, "grammar") || given(o, "json_schema") || format_of(o);
}

static ebb_status compile_schema(ebb_serve_waiting *who, const json_t *schema, ebb_grammar **out, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = ebb_schema_grammar(schema, ebb_serve_stops_waiting, who, &text, err);

    if (st == EBB_OK)
        st = ebb_grammar_new(ebb_buf_text(&text), text.len, out, err);
    ebb_buf_fini(&text);
    return st;
}

/* json_object: any object, or with llama-server one of a schema; json_schema: OpenAI's, which has the schema below a
 * name. */
static ebb_status compile_format(ebb_serve_waiting *who, const json_t *format, ebb_grammar **out, ebb_error *err)
{
    const char *type = json_string_value(json_object_get(format, "type"));
    const json_t *named = json_object_get(json_object_get(format, "json_schema"), "schema");
    const json_t *schema = named ? named : given(format, "schema");
    json_t *object;
    ebb_status st;

    if (type && schema && (strcmp(type, "json_schema") == 0 || strcmp(type, "json_object") == 0))
        return compile_schema(who, schema, out, err);
    if (!type || strcmp(type, "json_object") != 0)
        return EBB_FAIL(err, EBB_USAGE, "response_format must be text, json_object, or json_schema with a schema in "
                        "json_schema.schema");
    object = json_pack("{s:s}", "type", "object");
    st = object ? compile_schema(who, object, out, err) : EBB_FAIL(err, EBB_NOMEM, "no memory for a schema");
    json_decref(object);
    return st;
}

static ebb_status compile_form(ebb_serve_waiting *who, const json_t *o, ebb_grammar **out, ebb_error *err)
{
    const json_t *grammar = given(o, "grammar"), *schema = given(o, "json_schema"), *format = format_of(o);

    if (!!grammar + !!schema + !!format > 1)
        return EBB_FAIL(err, EBB_USAGE, "grammar, json_schema and response_format: give only one of them");
    if (grammar && !json_is_string(grammar))
        return EBB_FAIL(err, EBB_USAGE, "grammar must be a text in GBNF");
    if (grammar)
        return ebb_grammar_new(json_string_value(grammar), json_string_length(grammar), out, err);
    if (schema)
        return compile_schema(who, schema, out, err);
    return format ? compile_format(who, format, out, err) : EBB_OK;
}

/* One at a time: a few bytes make many MiB. */
ebb_status ebb_serve_read_form(ebb_serve_waiting *who, const json_t *o, ebb_grammar **out, ebb_error *err)
{
    ebb_serve_place place;
    ebb_status st;

    *out = NULL;
    if (!ebb_serve_has_form(o))
        return EBB_OK;
    ebb_serve_begin_form(who->s, ebb_http_client(who->x), &place);
    if (ebb_serve_stops_waiting(who))
        st = EBB_FAIL(err, EBB_CANCELED, "stopped before the request was read");
    else
        st = compile_form(who, o, out, err);
    ebb_serve_end_form(who->s);
    return st;
}
