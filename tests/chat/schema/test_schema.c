/* JSON Schema as a grammar: what is accepted and what is not, what is refused and where, and 1,000 random schemas of
 * which a model's texts are valid. */
#include "ebb_test.h"

#include <dirent.h>
#include <jansson.h>
#include <regex.h>

#include "ebb/grammar.h"
#include "schema/schema.h"
#include "support/tiny_engine.h"

static ebb_grammar *compile_schema(const char *text)
{
    ebb_buf b = { 0 };
    ebb_error err = { 0 };
    ebb_grammar *g = NULL;

    if (ebb_schema_grammar_of_text(text, strlen(text), &b, &err) != EBB_OK ||
        ebb_grammar_new(ebb_buf_text(&b), b.len, &g, &err) != EBB_OK)
        fail_msg("%s\n%s\n%s", text, err.msg, ebb_buf_text(&b));
    ebb_buf_fini(&b);
    return g;
}

static bool is_whole(const ebb_grammar *g, const char *text)
{
    ebb_match m;

    assert_int_equal(ebb_grammar_match(g, text, strlen(text), &m, NULL), EBB_OK);
    return m == EBB_MATCH_WHOLE;
}

/* -- Many values ------------------------------------------------------------------------ */

/* Each of them and no other: what they have in common is written once, so many are no more ways to go on than few. */
static void check_values(json_t *values)
{
    json_t *schema = json_pack("{s:o}", "enum", values), *v;
    char *text = json_dumps(schema, 0);
    ebb_grammar *g;
    size_t i;

    assert_non_null(text);
    g = compile_schema(text);
    json_array_foreach(values, i, v) {
        char *value = i % 20 ? NULL : json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

        if (!value)
            continue;
        if (!is_whole(g, value))
            fail_msg("%s is refused", value);
        value[strlen(value) - 1] = '\x01';
        assert_false(is_whole(g, value));
        free(value);
    }
    ebb_grammar_free(g);
    free(text);
    json_decref(schema);
}

static void test_many_values(void **state)
{
    enum { N = 5000 };
    json_t *numbered = json_array(), *numbers = json_array(), *longer = json_array(), *letters = json_array();
    char text[3 * 300 + 32];

    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(text, sizeof text, "item %d", i % 4900);         /* some of them twice */
        json_array_append_new(numbered, json_string(text));
        json_array_append_new(numbers, json_integer(i));
        snprintf(text, sizeof text, "%c%c%c\xC3%c\xE4\xB8%c", 'a' + i % 7, '"' + i % 11, '\\', 0x80 + i % 61,
                 0x80 + i % 63);
        json_array_append_new(letters, json_string(text));
    }
    for (int i = 0; i < 300; i++) {              /* each the beginning of the next, deeper than a grammar nests */
        memcpy(text + 3 * i, "\xE2\x82\xAC", 4);
        json_array_append_new(longer, json_string(text));
    }
    check_values(numbered);
    check_values(numbers);
    check_values(letters);
    check_values(longer);
}

/* -- Golden lists ---------------------------------------------------------------------- */

static const struct { const char *schema, *good[9], *bad[9]; } lists[] = {
    { "true", { "1", "\"a\"", "{\"a\": [1, 2.5e3, {}]}", "null", "\"\\u00e4\\ud83d\\ude00\"" },
      { "", "[", "nul", "\"\\ud800\"", "{a:1}", "01" } },
    { "{\"type\":\"integer\"}", { "0", "-12", "7" }, { "1.5", "\"1\"", "01", "1e3" } },
    { "{\"type\":\"integer\",\"minimum\":3,\"maximum\":125}", { "3", "9", "10", "99", "100", "125" },
      { "2", "126", "130", "-5", "03", "1000", "20.5" } },
    { "{\"type\":\"integer\",\"exclusiveMinimum\":-12,\"maximum\":7}", { "-11", "-9", "-1", "0", "7" },
      { "-12", "8", "10", "-13", "-100" } },
    { "{\"type\":\"integer\",\"minimum\":10,\"exclusiveMinimum\":true}", { "11", "99", "100", "123456789" },
      { "10", "9", "0", "-11" } },
    { "{\"type\":\"number\",\"minimum\":0,\"maximum\":1}", { "0", "0.5", "1", "1.0", "0.999" },
      { "1.1", "-0.1", "1.01", "2", "10" } },
    { "{\"type\":\"number\",\"exclusiveMinimum\":0.25,\"exclusiveMaximum\":10.5}",
      { "0.2501", "0.3", "10.49", "10", "5.123", "9.9" }, { "0.25", "0.250", "10.5", "10.50", "0.2", "11" } },
    { "{\"type\":\"number\",\"minimum\":-2.5}", { "-2.5", "-2.49", "0", "100.25", "-0.1" }, { "-2.51", "-3", "-10" } },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", { "\"ab\"", "\"\\u00e4bc\"", "\"\xC3\xA4\xC3\xB6\"" },
      { "\"a\"", "\"abcd\"", "\"\"", "ab" } },
    { "{\"type\":\"string\",\"pattern\":\"^[a-c]+\\\\d{2}$\"}", { "\"a12\"", "\"abc99\"" },
      { "\"d12\"", "\"a1\"", "\"a123\"" } },
    { "{\"type\":\"string\",\"pattern\":\"b\\\"|^$\"}", { "\"ab\\\"c\"", "\"\"", "\"b\\\"\"" }, { "\"ab\"", "\"c\"" } },
    { "{\"type\":\"string\",\"pattern\":\"^[^a-z\\\\s]{2}.?$\"}", { "\"AB\"", "\"\\\\1x\"", "\"\xC3\xA4\xC3\xA4\"" },
      { "\"aB\"", "\"A \"", "\"ABCD\"" } },
    { "{\"type\":\"string\",\"pattern\":\"^\\\\uD83C\\\\uDF0D$\"}", { "\"\xF0\x9F\x8C\x8D\"" },
      { "\"\xF0\x9F\x8C\x8E\"" } },
    /* half a character beside a whole one is none, and no pair */
    { "{\"type\":\"string\",\"pattern\":\"^[\\\\uD83C\\\\u0041]$\"}", { "\"A\"" },
      { "\"\xF0\x9F\x81\x81\"", "\"B\"" } },
    { "{\"type\":\"string\",\"format\":\"date\"}", { "\"2024-02-28\"", "\"1999-12-31\"", "\"2023-04-30\"" },
      { "\"2024-13-01\"", "\"2024-04-31\"", "\"2024-02-30\"", "\"24-1-1\"" } },
    { "{\"type\":\"string\",\"format\":\"date-time\"}", { "\"2024-02-28T23:59:59Z\"",
      "\"2024-01-01T00:00:00.5+01:30\"" },
      { "\"2024-02-28\"", "\"2024-02-28T24:00:00Z\"", "\"2024-02-28 10:00:00\"" } },
    { "{\"type\":\"string\",\"format\":\"uuid\"}", { "\"12345678-90ab-cdef-1234-567890ABCDEF\"" }, { "\"1234\"" } },
    { "{\"enum\":[\"a\",1,null,{\"x\":[1]}]}", { "\"a\"", "1", "null", "{\"x\":[1]}" }, { "\"b\"", "2", "{}" } },
    { "{\"type\":\"string\",\"enum\":[\"a\",1,\"long\"],\"maxLength\":2}", { "\"a\"" }, { "1", "\"long\"" } },
    { "{\"enum\":[1,2],\"const\":1.0}", { "1.0" }, { "2" } },
    { "{\"type\":[\"string\",\"null\"]}", { "\"a\"", "null" }, { "1", "[]" } },
    { "{\"type\":\"boolean\",\"nullable\":true}", { "true", "false", "null" }, { "0" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"string\"}},"
      "\"required\":[\"a\"],\"additionalProperties\":false}", { "{\"a\":1}", "{\"a\": 1, \"b\": \"x\"}",
      "{\n  \"a\": 1\n}" },
      { "{}", "{\"b\":\"x\"}", "{\"a\":1,\"c\":2}", "{\"a\":\"1\"}", "{\"a\":1,}" } },
    { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":false,\"ab\":{\"type\":\"null\"}}}",
      { "{}", "{\"a\":1}", "{\"ab\":null}", "{\"c\":[1]}", "{\"a\":1,\"abc\":\"\",\"\":0}", "{\"aa\":true}" },
      { "{\"a\":\"x\"}", "{\"b\":1}", "{\"ab\":1}", "{\"\\u0061\":\"x\"}" } },
    { "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"},\"minProperties\":1,\"maxProperties\":2}",
      { "{\"a\":1}", "{\"a\":1,\"b\":2}" }, { "{}", "{\"a\":\"x\"}", "{\"a\":1,\"b\":2,\"c\":3}" } },
    { "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":3}",
      { "[true, false]", "[true,true,true]" }, { "[]", "[true]", "[true,true,true,true]", "[1,2]" } },
    { "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"items"
      "\":false,\"minItems\":1}",
      { "[1]", "[1,\"a\"]" }, { "[]", "[1,\"a\",2]", "[\"a\"]" } },
    { "{\"type\":\"array\",\"items\":[{\"type\":\"integer\"}],\"additionalItems\":{\"type\":\"null\"}}",
      { "[]", "[1]", "[1,null,null]" }, { "[1,2]", "[null]" } },
    { "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":"
      "\"integer\"},\"next\":"
      "{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/n\"}]}},\"required\":[\"v\",\"next\"],"
      "\"additionalProperties\":false}}}", { "{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}" },
      { "{\"v\":1,\"next\":1}", "{\"v\":1}", "{\"v\":1,\"next\":{\"v\":2}}" } },
    { "{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},"
      "{\"properties\":{\"a\":{\"minimum\":5},\"b\":{\"type\":\"string\"}}}],\"type\":\"object\"}",
      { "{\"a\":5}", "{\"a\":6,\"b\":\"x\"}" }, { "{\"a\":4}", "{\"a\":6,\"b\":1}", "{}" } },
    { "{\"allOf\":[{\"properties\":{\"a\":{}},\"additionalProperties\":false},{\"properties\":{\"b"
      "\":{}}}],\"type\":\"object\"}",
      { "{}", "{\"a\":1}" }, { "{\"b\":1}" } },
    { "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"type\":\"integer\"}},"
      "\"required\":[\"k\"]},{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"]}]}",
      { "{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\"}" }, { "{\"k\":\"c\"}", "{}" } },
    { "{\"oneOf\":[{\"type\":\"object\",\"required\":[\"a\"]},{\"type\":\"object\",\"required\":[\"b\"]}]}",
      { "{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"c\":2}" }, { "{}", "{\"a\":1,\"b\":1}" } },
    { "{\"oneOf\":[{\"type\":\"integer\",\"maximum\":3},{\"type\":\"number\",\"minimum\":5}]}", { "3", "5", "5.5" },
      { "4", "4.5" } },
    { "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"properties\":{\"a\":{\"$ref\":\"#/definitions/x\","
      "\"maxLength\":1}},\"definitions\":{\"x\":{\"type\":\"string\"}},\"required\":[\"a\"],\"type\":\"object\"}",
      { "{\"a\":\"long\"}" }, { "{\"a\":1}" } },
    { "{\"$defs\":{\"n\":{\"$id\":\"http://x/n\",\"properties\":{\"v\":{\"$ref\":\"#/$defs/v\"},"
      "\"w\":{\"$ref\":\"#\"}},\"type\":\"object\",\"additionalProperties\":false,\"$defs\":{\"v\":{\"const\":\"a\"}}},"
      "\"v\":{\"type\":\"integer\"}},\"items\":{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"$ref\":\"#/$defs/v\"}]},"
      "\"type\":\"array\"}",
      { "[{\"v\":\"a\",\"w\":{}}]", "[1,{}]" }, { "[{\"v\":1}]", "[\"a\"]", "[{\"w\":1}]" } },
    { "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"definitions\":{\"id\":{\"type\":\"integer\"},"
      "\"n\":{\"$id\":\"n.json\",\"items\":{\"$id\":\"no.json\",\"$ref\":\"#/definitions/id\"},\"type\":\"array\","
      "\"definitions\":{\"id\":{\"const\":\"a\"}}}},\"$ref\":\"#/definitions/n\"}", { "[\"a\"]" }, { "[1]" } },
    /* the same words in parts with an $id each are two references */
    { "{\"allOf\":[{\"$id\":\"http://x/a\",\"type\":\"object\",\"properties\":{\"p\":{\"$ref\":\"#/$defs/t\"}},"
      "\"required\":[\"p\"],\"$defs\":{\"t\":{\"type\":\"integer\",\"minimum\":2}}},{\"$id\":\"http://x/b\","
      "\"properties\":{\"p\":{\"$ref\":\"#/$defs/t\"}},\"$defs\":{\"t\":{\"maximum\":3}}}]}",
      { "{\"p\":2}", "{\"p\":3}" }, { "{\"p\":4}", "{\"p\":1}" } },
    { "{\"enum\":[19.99,[0.1,{\"a\":1e50}],2.0,0.30000000000000004]}",
      { "19.99", "[0.1,{\"a\":1e50}]", "2.0", "0.30000000000000004" },
      { "19.989999999999998", "[0.10000000000000001,{\"a\":1e50}]", "0.3" } },
    { "{\"enum\":[\"a\\u0000bcdef\",\"x\"],\"maxLength\":2}", { "\"x\"" }, { "\"a\\u0000bcdef\"" } },
    { "{\"allOf\":[{\"enum\":[9007199254740993,1]},{\"enum\":[9007199254740992,1.0]}]}", { "1" },
      { "9007199254740993", "9007199254740992" } },
    { "{\"enum\":[1761234567890123457,1761234567890123456,1761234567890123458],\"maximum\":1761234567890123457,"
      "\"exclusiveMinimum\":1761234567890123456}", { "1761234567890123457" },
      { "1761234567890123456", "1761234567890123458" } },
    { "{\"oneOf\":[{\"const\":1761234567890123456},{\"const\":1761234567890123457}]}",
      { "1761234567890123456", "1761234567890123457" }, { "1761234567890123458" } },
    { "{\"type\":\"object\",\"title\":\"T\",\"x-order\":3,\"description\":\"d\",\"default\":{},\"properties\":"
      "{\"q\\\"\\\\\":{\"type\":\"null\"}},\"required\":[\"q\\\"\\\\\"]}", { "{\"q\\\"\\\\\":null}" }, { "{}" } },
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ebb_grammar *g = compile_schema(lists[i].schema);

        for (size_t k = 0; k < 9 && lists[i].good[k]; k++)
            if (!is_whole(g, lists[i].good[k]))
                fail_msg("%s\nis refused: %s", lists[i].schema, lists[i].good[k]);
        for (size_t k = 0; k < 9 && lists[i].bad[k]; k++)
            if (is_whole(g, lists[i].bad[k]))
                fail_msg("%s\nis taken: %s", lists[i].schema, lists[i].bad[k]);
        ebb_grammar_free(g);
    }
}

static const struct { const char *schema; ebb_status code; const char *says; } refused[] = {
    { "{\"a\"", EBB_FORMAT, "not JSON: line 1, column" },
    { "[1]", EBB_FORMAT, "#: a schema must be an object, true or false" },
    { "false", EBB_FORMAT, "#: nothing is valid under it" },
    { "{\"properties\":{\"a\":{\"type\":\"int\"}}}", EBB_FORMAT, "#/properties/a: type must be null, boolean" },
    { "{\"properties\":{\"a\":{\"items\":{\"not\":{}}}}}", EBB_UNSUPPORTED,
      "#/properties/a/items: not is not supported" },
    { "{\"uniqueItems\":true}", EBB_UNSUPPORTED, "uniqueItems" },
    { "{\"multipleOf\":2}", EBB_UNSUPPORTED, "multipleOf" },
    { "{\"patternProperties\":{}}", EBB_UNSUPPORTED, "patternProperties" },
    { "{\"if\":{}}", EBB_UNSUPPORTED, "if is not supported" },
    { "{\"$ref\":\"http://x/y\"}", EBB_UNSUPPORTED, "#/$ref: $ref http://x/y: only places of the schema itself" },
    { "{\"$ref\":\"#/$defs/none\"}", EBB_FORMAT, "there is no such place" },
    { "{\"$ref\":\"#\"}", EBB_LIMIT, "comes back to itself" },
    { "{\"required\":[\"a\\u0000b\"],\"properties\":{\"a\":{}},\"additionalProperties\":false}", EBB_UNSUPPORTED,
      "required: a name with \\u0000 in it" },
    { "{\"oneOf\":[{\"const\":[1]},{\"const\":[1.0]}]}", EBB_UNSUPPORTED, "may both be valid" },
    { "{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}", EBB_UNSUPPORTED, "two different texts for pattern" },
    { "{\"oneOf\":[{\"type\":\"string\"},{\"minLength\":2}]}", EBB_UNSUPPORTED, "branches 1 and 2 may both be valid" },
    { "{\"type\":\"string\",\"pattern\":\"a(?=b)\"}", EBB_UNSUPPORTED, "pattern, character 2: looking ahead" },
    { "{\"type\":\"string\",\"pattern\":\"\\\\bx\"}", EBB_UNSUPPORTED, "this escape" },
    { "{\"type\":\"string\",\"pattern\":\"(a\"}", EBB_UNSUPPORTED, "( is never closed" },
    { "{\"type\":\"string\",\"pattern\":\"\\\\uD83C\\\\u0041\"}", EBB_UNSUPPORTED,
      "pattern, character 7: no character that is followed here" },
    { "{\"type\":\"string\",\"pattern\":\"^a{2}{3}$\"}", EBB_UNSUPPORTED, "pattern, character 6: nothing that could" },
    { "{\"$schema\":\"https://json-schema.org/draft/2019-09/schema\",\"properties\":{\"a\":{\"prefixItems\":[{}],"
      "\"items\":false}}}", EBB_UNSUPPORTED, "#/properties/a: prefixItems beside items is of draft 2020-12" },
    { "{\"type\":\"string\",\"maxLength\":1000000}", EBB_LIMIT, "up to 50000" },
    { "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", EBB_FORMAT, "nothing is valid" },
    { "{\"type\":\"integer\",\"minimum\":9007199254740100,\"maximum\":9007199254740000}", EBB_FORMAT,
      "nothing is valid" },
    { "{\"type\":\"integer\",\"minimum\":9007199254740000,\"maximum\":9007199254740100}", EBB_LIMIT,
      "#: whole numbers of more than 15 digits are not written" },
    { "{\"items\":{\"type\":\"integer\",\"exclusiveMaximum\":-999999999999999},\"type\":\"array\"}", EBB_LIMIT,
      "#/items: whole numbers of more than 15 digits are not written" },
    { "{\"type\":\"object\",\"required\":[\"a\"],\"properties\":{\"a\":false}}", EBB_FORMAT, "nothing is valid" },
};

static void test_refusals_name_the_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        ebb_buf b = { 0 };
        ebb_error err = { 0 };
        ebb_status st = ebb_schema_grammar_of_text(refused[i].schema, strlen(refused[i].schema), &b, &err);

        if (st != refused[i].code || !strstr(err.msg, refused[i].says))
            fail_msg("%s\nsays %d: %s", refused[i].schema, st, err.msg);
        ebb_buf_fini(&b);
    }
}

/* A pattern as long as a file may be: no more is written than a grammar has, and each character is looked at once (a
 * length taken at each of them was minutes). */
static void test_a_pattern_of_megabytes(void **state)
{
    enum { N = 3900000 };
    ebb_buf schema = { 0 }, b = { 0 };
    ebb_error err = { 0 };

    (void)state;
    assert_true(ebb_buf_reserve(&schema, N + 64));
    ebb_buf_adds(&schema, "{\"type\":\"string\",\"pattern\":\"^");
    memset(schema.data + schema.len, 'a', N);
    schema.len += N;
    ebb_buf_adds(&schema, "$\"}");
    assert_int_equal(ebb_schema_grammar_of_text(schema.data, schema.len, &b, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, "a pattern of 3900002 bytes is too long"));
    assert_true(b.len < 5 << 20);
    ebb_buf_fini(&b);
    ebb_buf_fini(&schema);
}

static size_t count_in(const char *text, const char *part)
{
    size_t n = 0;

    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        n++;
    }
    return n;
}

/* A bundled schema of thousands of references, within a part that has an $id and outside of it. */
static void test_many_references(void **state)
{
    enum { N = 1900 };
    ebb_buf s = { 0 }, b = { 0 };
    ebb_error err = { 0 };

    (void)state;
    ebb_buf_adds(&s, "{\"type\":\"array\",\"prefixItems\":[{\"$ref\":\"#/$defs/part\"}");
    for (int i = 0; i < N; i++)
        ebb_buf_adds(&s, ",{\"$ref\":\"#/$defs/v\"}");
    ebb_buf_adds(&s, "],\"$defs\":{\"v\":{\"const\":\"root\"},\"part\":{\"$id\":\"http://x/part\",\"type\":\"array\","
                     "\"$defs\":{\"v\":{\"const\":\"part\"}},\"prefixItems\":[true");
    for (int i = 0; i < N; i++)
        ebb_buf_adds(&s, ",{\"$ref\":\"#/$defs/v\"}");
    ebb_buf_adds(&s, "]}}}");
    if (ebb_schema_grammar_of_text(s.data, s.len, &b, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(count_in(ebb_buf_text(&b), "\\\"root"), N);
    assert_int_equal(count_in(ebb_buf_text(&b), "\\\"part"), N);
    ebb_buf_fini(&b);
    ebb_buf_fini(&s);
}

/* Choices that are equal in two parts are taken once, whatever else has an $id: each with each would be too many. */
static void test_equal_choices_beside_an_id(void **state)
{
    enum { N = 20 };             /* 20 * 20 is more than is written out */
    ebb_buf choices = { 0 }, s = { 0 }, b = { 0 };
    ebb_error err = { 0 };

    (void)state;
    for (int i = 0; i < N; i++)
        ebb_buf_addf(&choices, "%s{\"properties\":{\"k\":{\"const\":\"v%d\"},\"t\":{\"$ref\":\"#/$defs/t\"}}}",
                     i ? "," : "", i);
    for (int same_id = 0; same_id < 2; same_id++) {
        const char *id = same_id ? "\"$id\":\"http://x/same\",\"$defs\":{\"t\":{\"const\":\"other\"}}," : "";

        ebb_buf_clear(&s);
        ebb_buf_clear(&b);
        ebb_buf_adds(&s, "{\"type\":\"object\",\"allOf\":[");
        for (int part = 0; part < 2; part++)
            ebb_buf_addf(&s, "{%s\"properties\":{\"a\":{\"type\":\"object\",\"anyOf\":[%s]}}},", id,
                         ebb_buf_text(&choices));
        ebb_buf_adds(&s, "{\"properties\":{\"z\":{\"$ref\":\"#/$defs/part\"}}}],\"$defs\":{\"t\":{\"const\":"
                         "\"root\"},\"part\":{\"$id\":\"http://x/part\",\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":"
                         "{\"const\":1}}}}}");
        if (ebb_schema_grammar_of_text(s.data, s.len, &b, &err) != EBB_OK)
            fail_msg("%s", err.msg);
        assert_true(count_in(ebb_buf_text(&b), same_id ? "\\\"other" : "\\\"root") > 0);
        assert_int_equal(count_in(ebb_buf_text(&b), same_id ? "\\\"root" : "\\\"other"), 0);
    }
    ebb_buf_fini(&choices);
    ebb_buf_fini(&b);
    ebb_buf_fini(&s);
}

static void check_too_much(const ebb_buf *text, const char *says)
{
    ebb_buf b = { 0 };
    ebb_error err = { 0 };

    assert_int_equal(ebb_schema_grammar_of_text(text->data, text->len, &b, &err), EBB_LIMIT);
    assert_non_null(strstr(err.msg, says));
    ebb_buf_fini(&b);
}

/* To a<n> in $defs, from a0: each refers to the next twice. */
static void add_doublings(ebb_buf *s, int n)
{
    for (int i = 0; i < n; i++)
        ebb_buf_addf(s, ",\"a%d\":{\"allOf\":[{\"$ref\":\"#/$defs/a%d\"},{\"$ref\":\"#/$defs/a%d\"}]}", i, i + 1,
                     i + 1);
}

/* Small schemas that double at each step, or compare everything with everything, without a limit for hours. */
static void test_bombs(void **state)
{
    ebb_buf s = { 0 };

    (void)state;
    ebb_buf_adds(&s, "{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a30\":{\"type\":\"integer\"}");
    add_doublings(&s, 30);
    ebb_buf_adds(&s, "}}");
    check_too_much(&s, "too much work");
    ebb_buf_clear(&s);
    ebb_buf_adds(&s, "{\"allOf\":[{\"enum\":[-1");
    for (int i = 0; i < 100000; i++)
        ebb_buf_addf(&s, ",%d", 2 * i);
    ebb_buf_adds(&s, "]},{\"enum\":[-1");
    for (int i = 0; i < 100000; i++)
        ebb_buf_addf(&s, ",%d", 2 * i + 1);
    ebb_buf_adds(&s, "]}]}");
    check_too_much(&s, "too much work");
    ebb_buf_clear(&s);
    ebb_buf_adds(&s, "{\"anyOf\":[");           /* one alternative too many, and it comes from an inner list */
    for (int i = 0; i < 2500; i++)
        ebb_buf_addf(&s, "%s{\"type\":\"object\",\"properties\":{\"p\":{\"type\":\"string\"}}}%s",
                     i % 50 ? "," : i ? ",{\"anyOf\":[" : "{\"anyOf\":[", i % 50 == 49 ? "]}" : "");
    ebb_buf_adds(&s, "]}");
    check_too_much(&s, "more than 256 alternatives");
    ebb_buf_clear(&s);
    ebb_buf_adds(&s, "{\"$defs\":{");            /* the same large parts are compared, a thousand times */
    for (int i = 0; i < 2; i++) {
        ebb_buf_addf(&s, "%s\"d%d\":{\"properties\":{\"p\":{\"examples\":[0", i ? "," : "", i);
        for (int k = 0; k < 5000; k++)
            ebb_buf_adds(&s, ",0");
        ebb_buf_adds(&s, "]}}}");
    }
    ebb_buf_adds(&s, "},\"properties\":{\"k\":{}");
    for (int i = 0; i < 1000; i++)
        ebb_buf_addf(&s, ",\"k%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d0\"},{\"$ref\":\"#/$defs/d1\"}]}", i);
    ebb_buf_adds(&s, "}}");
    check_too_much(&s, "too much work");
    ebb_buf_fini(&s);
}

/* -- Work that a few bytes ask for again and again ------------------------------------------------- */

/* What jansson takes while a schema is compiled, given back or not. */
static size_t n_taken;

static void *take_counted(size_t n)
{
    n_taken += n;
    return malloc(n);
}

typedef struct asker {
    int n_asked, stop_at;        /* 0: never */
} asker;

static bool ask(void *arg)
{
    asker *a = arg;

    return ++a->n_asked == a->stop_at;
}

/* Sets n_taken; *b is the caller's. */
static ebb_status compile_asking(const ebb_buf *text, asker *a, ebb_buf *b, ebb_error *err)
{
    json_t *schema = json_loadb(text->data, text->len, 0, NULL);
    json_malloc_t take;
    json_free_t give;
    ebb_status st;

    assert_non_null(schema);
    json_get_alloc_funcs(&take, &give);
    n_taken = 0;
    json_set_alloc_funcs(take_counted, give);
    st = ebb_schema_grammar(schema, ask, a, b, err);
    json_set_alloc_funcs(take, give);
    json_decref(schema);
    return st;
}

/* It ends by the bound of the work, which is asked about at each 10,000 of 6 million steps. */
static void check_ends(const ebb_buf *text, const char *says)
{
    ebb_buf b = { 0 };
    ebb_error err = { 0 };
    asker a = { 0 };

    if (compile_asking(text, &a, &b, &err) != EBB_LIMIT || !strstr(err.msg, says))
        fail_msg("%.200s\n%s", text->data, err.msg);
    assert_true(a.n_asked <= 601);
    assert_true(n_taken < (size_t)128 << 20);
    assert_true(b.len < (size_t)5 << 20);
    ebb_buf_fini(&b);
}

/* `item` n times, with commas between; a % in it is the number of each. */
static void add_items(ebb_buf *s, const char *item, int n)
{
    size_t n_before = strcspn(item, "%");

    for (int i = 0; i < n; i++) {
        ebb_buf_adds(s, i ? "," : "");
        ebb_buf_add(s, item, n_before);
        if (item[n_before])
            ebb_buf_addf(s, "%d%s", i, item + n_before + 1);
    }
}

/* One large part (before, n items, behind) and 250 references to it. */
static void check_references_to(const char *before, const char *item, int n, const char *behind)
{
    ebb_buf s = { 0 };

    ebb_buf_addf(&s, "{\"$defs\":{\"e\":{%s", before);
    add_items(&s, item, n);
    ebb_buf_addf(&s, "%s}},\"anyOf\":[", behind);
    add_items(&s, "{\"$ref\":\"#/$defs/e\"}", 250);
    ebb_buf_adds(&s, "]}");
    check_ends(&s, "too much work");
    ebb_buf_fini(&s);
}

/* Each reference reads, merges or writes all of the large part again. */
static void test_references_to_large_parts(void **state)
{
    char set[500] = { 0 };

    (void)state;
    check_references_to("\"enum\":[", "1", 100000, "]");
    check_references_to("\"enum\":[", "[0.1]", 50000, "]");
    check_references_to("\"const\":7,\"enum\":[", "%", 50000, "]");
    check_references_to("\"maxLength\":3,\"enum\":[", "\"no value of the shape: %\"", 30000, "]");
    check_references_to("\"type\":\"object\",\"required\":[", "\"%\"", 10000, "]");
    check_references_to("\"type\":\"object\",\"required\":[\"z\"],\"properties\":{\"z\":false,", "\"%\":true",
                        10000, "}");
    check_references_to("\"prefixItems\":[", "true", 50000, "]");
    check_references_to("\"type\":[", "\"null\"", 100000, "]");
    check_references_to("\"anyOf\":[true,", "false", 50000, "]");
    check_references_to("\"type\":\"null\",", "\"x%\":0", 50000, "");
    memset(set, 'a', sizeof set - 1);
    set[0] = '[';
    set[sizeof set - 2] = ']';
    check_references_to("\"type\":\"string\",\"pattern\":\"^", set, 500, "$\"");
}

/* Long names and texts, of which each copy and each look counts. */
static void test_references_to_long_texts(void **state)
{
    enum { N = 1000000 };
    static const char *const parts[][2] = {
        { "\"type\":\"object\",\"required\":[\"", "\"]" }, { "\"properties\":{\"", "\":true}" },
        { "\"type\":\"null\",\"format\":\"", "\"" },
    };
    char *text = malloc(N + 1);

    (void)state;
    assert_non_null(text);
    memset(text, 'a', N);
    text[N] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ebb_buf s = { 0 };

        ebb_buf_addf(&s, "{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a10\":{%s%s%s}", parts[i][0], text, parts[i][1]);
        add_doublings(&s, 10);
        ebb_buf_adds(&s, "}}");
        check_ends(&s, "too much work");
        ebb_buf_fini(&s);
    }
    free(text);
}

/* Each branch is compared with each, and each name of it is looked up then. */
static void test_branches_of_many_names(void **state)
{
    ebb_buf s = { 0 };

    (void)state;
    ebb_buf_adds(&s, "{\"$defs\":{\"e\":{\"type\":\"object\",\"required\":[");
    add_items(&s, "\"%\"", 10000);
    ebb_buf_adds(&s, "]}},\"oneOf\":[");
    add_items(&s, "{\"properties\":{\"k\":{\"const\":%}},\"required\":[\"k\"],\"allOf\":[{\"$ref\":\"#/$defs/e\"}]}",
              100);
    ebb_buf_adds(&s, "]}");
    check_ends(&s, "too much work");
    ebb_buf_clear(&s);
    ebb_buf_adds(&s, "{\"oneOf\":[");          /* nothing tells them apart but these names */
    for (int i = 0; i < 200; i++) {
        ebb_buf_addf(&s, "%s{\"type\":\"object\",\"required\":[", i ? "," : "");
        add_items(&s, "\"%\"", 1000);
        ebb_buf_addf(&s, ",\"k%d\"]}", i);
    }
    ebb_buf_adds(&s, "]}");
    check_ends(&s, "too much work");
    ebb_buf_fini(&s);
}

static void test_long_reference(void **state)
{
    enum { MOST = 4096 };
    char name[MOST];

    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        size_t n = MOST - strlen("#/$defs/") + (size_t)longer;
        ebb_buf s = { 0 }, b = { 0 };
        ebb_error err = { 0 };

        memset(name, 'n', n);
        ebb_buf_addf(&s, "{\"$defs\":{\"%.*s\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/%.*s\"}", (int)n, name, (int)n,
                     name);
        assert_int_equal(ebb_schema_grammar_of_text(s.data, s.len, &b, &err), longer ? EBB_LIMIT : EBB_OK);
        assert_true(!longer || strstr(err.msg, "$ref #/$defs/nnn"));
        assert_true(!longer || strstr(err.msg, "longer than 4096 bytes"));
        ebb_buf_fini(&s);
        ebb_buf_fini(&b);
    }
}

/* No name of it is another's beginning: each byte is a rule, until the grammar is as long as one may be. */
static void test_names_of_megabytes(void **state)
{
    enum { N = 30000, LENGTH = 100 };
    ebb_buf s = { 0 };
    uint32_t x = 1;

    (void)state;
    ebb_buf_adds(&s, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < N; i++) {
        ebb_buf_adds(&s, i ? ",\"" : "\"");
        for (int k = 0; k < LENGTH; k++) {
            x = x * 1664525u + 1013904223u;
            ebb_buf_addc(&s, (char)('a' + (x >> 24) % 16));
        }
        ebb_buf_adds(&s, "\":true");
    }
    ebb_buf_adds(&s, "}}");
    check_ends(&s, "too large: its grammar is more than 4 MiB");
    ebb_buf_fini(&s);
}

/* What two values have in common is gone through once (a length taken at each character was most of a minute). */
static void test_a_beginning_of_megabytes(void **state)
{
    enum { N = 1900000 };
    ebb_buf s = { 0 }, b = { 0 };
    ebb_error err = { 0 };

    (void)state;
    assert_true(ebb_buf_reserve(&s, 2 * N + 64));
    for (int i = 0; i < 2; i++) {
        ebb_buf_adds(&s, i ? "x\",\"" : "{\"enum\":[\"");
        memset(s.data + s.len, 'a', N);
        s.len += N;
    }
    ebb_buf_adds(&s, "y\"]}");
    assert_int_equal(ebb_schema_grammar_of_text(s.data, s.len, &b, &err), EBB_OK);
    assert_true(b.len > N && b.len < N + 10000);
    ebb_buf_fini(&b);
    ebb_buf_fini(&s);
}

/* Large, and of use: 40 properties of the same 5,000 values. */
static void test_many_uses_of_many_values(void **state)
{
    ebb_buf s = { 0 }, b = { 0 };
    ebb_error err = { 0 };
    asker a = { 0 };

    (void)state;
    ebb_buf_adds(&s, "{\"$defs\":{\"e\":{\"enum\":[");
    add_items(&s, "\"%\"", 5000);
    ebb_buf_adds(&s, "]}},\"type\":\"object\",\"properties\":{");
    add_items(&s, "\"p%\":{\"$ref\":\"#/$defs/e\"}", 40);
    ebb_buf_adds(&s, "}}");
    if (compile_asking(&s, &a, &b, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    ebb_buf_fini(&b);
    ebb_buf_fini(&s);
}

/* A thousand parts: it is asked more than once whether to stop, and ends where that is said. */
static void test_it_can_be_stopped(void **state)
{
    ebb_buf s = { 0 }, b = { 0 };
    ebb_error err = { 0 };
    asker a = { 0 };

    (void)state;
    ebb_buf_adds(&s, "{\"type\":\"object\",\"properties\":{\"a\":true");
    for (int i = 0; i < 1000; i++)
        ebb_buf_addf(&s, ",\"p%d\":{\"type\":\"string\"}", i);
    ebb_buf_adds(&s, "}}");
    if (compile_asking(&s, &a, &b, &err) != EBB_OK)
        fail_msg("%s", err.msg);
    assert_true(a.n_asked > 5);
    for (int at = 1; at <= 3; at++) {
        ebb_buf_clear(&b);
        a = (asker){ .stop_at = at };
        assert_int_equal(compile_asking(&s, &a, &b, &err), EBB_CANCELED);
        assert_int_equal(a.n_asked, at);
    }
    ebb_buf_fini(&b);
    ebb_buf_fini(&s);
}

/* -- Random schemas -------------------------------------------------------------------------- */

static uint32_t noise_state;

static uint32_t noise(uint32_t n)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return (noise_state >> 8) % n;
}

static const char *const patterns[] = { "^[a-c]{2,4}$", "^x[0-9]{1,3}y?$", "^(ab|cd){0,3}e$", "^[^a-z]{1,3}$" };

static json_t *random_schema(int depth);

static json_t *random_object(int depth)
{
    json_t *s = json_pack("{s:s, s:{}, s:[]}", "type", "object", "properties", "required");
    uint32_t n = noise(4);

    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%c%u", 'a' + (int)noise(3), noise(3));
        json_object_set_new(json_object_get(s, "properties"), name, random_schema(depth - 1));
        if (noise(2))
            json_array_append_new(json_object_get(s, "required"), json_string(name));
    }
    if (noise(4))
        json_object_set_new(s, "additionalProperties", json_false());
    else {
        json_object_set_new(s, "additionalProperties", random_schema(0));
        json_object_set_new(s, "maxProperties", json_integer(n + noise(3)));
    }
    return s;
}

static json_t *random_array(int depth)
{
    uint32_t least = noise(3);
    json_t *s = json_pack("{s:s, s:o, s:i, s:i}", "type", "array", "items", random_schema(depth - 1), "minItems",
                          (int)least, "maxItems", (int)(least + noise(3)));

    if (noise(3) == 0)
        json_object_set_new(s, "prefixItems", json_pack("[o, o]", random_schema(depth - 1), random_schema(0)));
    return s;
}

static json_t *random_number(void)
{
    double least = (double)noise(4000) / 16 - 125;
    bool is_whole_number = noise(2);
    json_t *s = json_pack("{s:s}", "type", is_whole_number ? "integer" : "number");

    if (noise(3))
        json_object_set_new(s, noise(2) ? "minimum" : "exclusiveMinimum", json_real(least));
    if (noise(3))
        json_object_set_new(s, noise(2) ? "maximum" : "exclusiveMaximum",
      json_real(least + 1 + (double)noise(3000) / 8));
    return s;
}

static json_t *random_text(void)
{
    static const char *const formats[] = { "date", "uuid", "time" };
    uint32_t least = noise(4);

    switch (noise(3)) {
    case 0: return json_pack("{s:s, s:s}", "type", "string", "pattern", patterns[noise(4)]);
    case 1: return json_pack("{s:s, s:s}", "type", "string", "format", formats[noise(3)]);
    default: return json_pack("{s:s, s:i, s:i}", "type", "string", "minLength", (int)least, "maxLength",
                              (int)(least + noise(8)));
    }
}

/* Branches that a constant tells apart. */
static json_t *random_one_of(int depth)
{
    json_t *list = json_array();

    for (int i = 0; i < 2; i++) {
        json_t *branch = random_object(depth);
        json_object_set_new(json_object_get(branch, "properties"), "kind", json_pack("{s:i}", "const", i));
        json_array_append_new(json_object_get(branch, "required"), json_string("kind"));
        json_object_del(branch, "maxProperties");
        json_object_set_new(branch, "additionalProperties", json_false());
        json_array_append_new(list, branch);
    }
    return json_pack("{s:o}", "oneOf", list);
}

static json_t *random_schema(int depth)
{
    switch (noise(depth > 0 ? 11 : 6)) {
    case 0: case 1: return random_number();
    case 2: case 3: return random_text();
    case 4: return json_pack("{s:[s, s]}", "type", "boolean", "null");
    case 5: return json_pack("{s:[s, i, n, {s:[b]}]}", "enum", "one", 2, "x", 1);
    case 6: case 7: return random_object(depth);
    case 8: return random_array(depth);
    case 9: return noise(2) ? json_pack("{s:[o, o]}", "anyOf", random_schema(depth - 1), random_schema(depth - 1))
                            : json_pack("{s:[o, {s:i}]}", "allOf", random_schema(depth - 1), "minItems", 1);
    default: return noise(2) ? random_one_of(depth) : json_pack("{s:s}", "$ref", "#/$defs/shared");
    }
}

/* -- A validator of what is made here -------------------------------------------------------- */

static bool is_valid(const json_t *root, const json_t *s, const json_t *v);

static bool is_of_type(const json_t *v, const char *type)
{
    return strcmp(type, "object") == 0 ? json_is_object(v) : strcmp(type, "array") == 0 ? json_is_array(v) :
           strcmp(type, "string") == 0 ? json_is_string(v) : strcmp(type, "boolean") == 0 ? json_is_boolean(v) :
           strcmp(type, "null") == 0 ? json_is_null(v) : strcmp(type, "integer") == 0 ? json_is_integer(v) :
           json_is_number(v);
}

static bool has_type(const json_t *s, const json_t *v)
{
    const json_t *type = json_object_get(s, "type");
    bool ok = !type;

    if (json_is_string(type))
        return is_of_type(v, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        ok = ok || is_of_type(v, json_string_value(json_array_get(type, i)));
    return ok;
}

static bool is_number_valid(const json_t *s, const json_t *v)
{
    double x = json_number_value(v);
    const json_t *b;

    return (!(b = json_object_get(s, "minimum")) || x >= json_number_value(b)) &&
           (!(b = json_object_get(s, "maximum")) || x <= json_number_value(b)) &&
           (!(b = json_object_get(s, "exclusiveMinimum")) || x > json_number_value(b)) &&
           (!(b = json_object_get(s, "exclusiveMaximum")) || x < json_number_value(b));
}

static bool matches(const char *pattern, const char *text)
{
    regex_t r;
    bool ok;

    assert_int_equal(regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB), 0);
    ok = regexec(&r, text, 0, NULL, 0) == 0;
    regfree(&r);
    return ok;
}

static size_t count_chars(const json_t *v)
{
    const char *s = json_string_value(v);
    size_t n = 0;

    for (size_t i = 0; i < json_string_length(v); i++)
        n += ((unsigned char)s[i] & 0xC0) != 0x80;
    return n;
}

/* The C locale's expressions count bytes: [^a-z] is counted in characters here. */
static bool is_pattern_valid(const char *pattern, const json_t *v)
{
    if (strcmp(pattern, patterns[3]) != 0)
        return matches(pattern, json_string_value(v));
    return count_chars(v) >= 1 && count_chars(v) <= 3 && !matches("[a-z]", json_string_value(v));
}

static bool is_text_valid(const json_t *s, const json_t *v)
{
    const char *pattern = json_string_value(json_object_get(s, "pattern"));
    const char *format = json_string_value(json_object_get(s, "format"));
    const json_t *least = json_object_get(s, "minLength"), *most = json_object_get(s, "maxLength");

    if (format)
        pattern = strcmp(format, "date") == 0 ? "^[0-9]{4}-(0[1-9]|1[0-2])-([0-2][0-9]|3[01])$" :
                  strcmp(format, "time") == 0 ?
      "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?(Z|[-+][0-2][0-9]:[0-5][0-9])$"
                                              : "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
    return (!pattern || is_pattern_valid(pattern, v)) &&
           (!least || count_chars(v) >= (size_t)json_integer_value(least)) &&
           (!most || count_chars(v) <= (size_t)json_integer_value(most));
}

static bool is_array_valid(const json_t *root, const json_t *s, const json_t *v)
{
    const json_t *prefix = json_object_get(s, "prefixItems"), *items = json_object_get(s, "items");
    const json_t *least = json_object_get(s, "minItems"), *most = json_object_get(s, "maxItems");
    size_t n = json_array_size(v);

    for (size_t i = 0; i < n; i++) {
        const json_t *own = i < json_array_size(prefix) ? json_array_get(prefix, i) : items;
        if (own && !is_valid(root, own, json_array_get(v, i)))
            return false;
    }
    return (!least || n >= (size_t)json_integer_value(least)) && (!most || n <= (size_t)json_integer_value(most));
}

static bool is_object_valid(const json_t *root, const json_t *s, const json_t *v)
{
    const json_t *properties = json_object_get(s, "properties"), *required = json_object_get(s, "required");
    const json_t *other = json_object_get(s, "additionalProperties"), *most = json_object_get(s, "maxProperties");
    const char *name;
    json_t *value;

    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(v, json_string_value(json_array_get(required, i))))
            return false;
    json_object_foreach((json_t *)v, name, value) {
        const json_t *own = json_object_get(properties, name);
        if (!own && !other)
            continue;
        if (!is_valid(root, own ? own : other, value))
            return false;
    }
    return !most || json_object_size(v) <= (size_t)json_integer_value(most);
}

static size_t count_valid(const json_t *root, const json_t *list, const json_t *v)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        n += is_valid(root, json_array_get(list, i), v);
    return n;
}

static bool is_valid(const json_t *root, const json_t *s, const json_t *v)
{
    const json_t *list;
    bool is_there = false;

    if (json_is_boolean(s))
        return json_is_true(s);
    if (json_object_get(s, "$ref") && !is_valid(root, json_object_get(json_object_get(root, "$defs"), "shared"), v))
        return false;
    if ((list = json_object_get(s, "enum"))) {
        for (size_t i = 0; i < json_array_size(list); i++)
            is_there = is_there || json_equal(json_array_get(list, i), v);
        if (!is_there)
            return false;
    }
    if ((list = json_object_get(s, "const")) && !json_equal(list, v))
        return false;
    if ((list = json_object_get(s, "anyOf")) && count_valid(root, list, v) == 0)
        return false;
    if ((list = json_object_get(s, "oneOf")) && count_valid(root, list, v) != 1)
        return false;
    if ((list = json_object_get(s, "allOf")) && count_valid(root, list, v) != json_array_size(list))
        return false;
    return has_type(s, v) && (!json_is_number(v) || is_number_valid(s, v)) &&
           (!json_is_string(v) || is_text_valid(s, v)) && (!json_is_array(v) || is_array_valid(root, s, v)) &&
           (!json_is_object(v) || is_object_valid(root, s, v));
}

/* -- A model that knows nothing writes ------------------------------------------------------ */

static size_t write_text(tiny_engine *f, const ebb_grammar *g, uint64_t seed, char *text, size_t cap)
{
    ebb_sampler *s = ebb_sampler_new(&(ebb_sampler_params){ .temp = 4, .top_p = 1, .repeat_penalty = 1, .seed = seed },
                                     EBB_TINY_VOCAB);
    ebb_token prompt[4], id;
    size_t n = 0;

    fill_ids(prompt, 4, 2);
    assert_int_equal(ebb_sampler_constrain(s, g, f->model, NULL), EBB_OK);
    assert_int_equal(ebb_session_sync(f->s, prompt, 4, NULL, NULL), EBB_OK);
    while ((id = ebb_session_sample(f->s, s)) != EBB_TOKEN_NONE && !ebb_model_is_eog(f->model, id)) {
        n += ebb_model_piece(f->model, id, false, text + n, cap - n);
        if (n >= cap || ebb_session_append(f->s, id, NULL) != EBB_OK)
            fail_msg("no end: %.*s", (int)(n < cap ? n : cap), text);
    }
    assert_int_equal(ebb_sampler_check(s, NULL), EBB_OK);
    ebb_sampler_free(s);
    return n;
}

static void test_random_schemas(void **state)
{
    enum { N = 1000 };
    tiny_engine f = { 0 };
    static char text[16384];
    int n_refused = 0;

    (void)state;
    open_tiny_engine(&f, &(ebb_tiny_opts){ .n_layers = 1, .n_embd = 64, .n_head = 1, .n_head_kv = 1, .n_ff = 64,
                                           .n_ctx = 8192 },
                     &(ebb_engine_opts){ .n_ctx = 8192, .n_threads = 1, .no_kv_cache = true });
    for (int i = 0; i < N; i++) {
        ebb_buf b = { 0 };
        ebb_error err = { 0 };
        ebb_grammar *g = NULL;
        json_t *schema, *value;
        json_error_t e;
        size_t n;

        noise_state = 12345u + 7919u * (uint32_t)(i + n_refused * N);
        schema = random_schema(3);
        json_object_set_new(schema, "$defs", json_pack("{s:o}", "shared", random_schema(0)));
        if (ebb_schema_grammar(schema, NULL, NULL, &b, &err) != EBB_OK ||
            ebb_grammar_new(ebb_buf_text(&b), b.len, &g, &err) != EBB_OK) {
            char *shown = json_dumps(schema, JSON_COMPACT);
            if (!strstr(err.msg, "nothing is valid"))        /* all else that is made here is followed */
                fail_msg("%s\n%s", shown, err.msg);
            free(shown);
            json_decref(schema);
            ebb_buf_fini(&b);
            assert_true(++n_refused < N / 2);
            i--;
            continue;
        }
        n = write_text(&f, g, (uint64_t)i + 1, text, sizeof text);
        value = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
        if (!value || !is_valid(schema, schema, value))
            fail_msg("%s\n%.*s\n%s", json_dumps(schema, JSON_COMPACT), (int)n, text, value ? "not valid" : e.text);
        json_decref(value);
        json_decref(schema);
        ebb_grammar_free(g);
        ebb_buf_fini(&b);
    }
    close_tiny_engine(&f);
}

/* -- The test suite of json-schema.org ---------------------------------------------------------------- */

/* What was seen of one draft.  An invalid text may never be one of the grammar; a valid one need not be. */
typedef struct suite_count {
    int n_groups, n_refused, n_valid, n_written, n_invalid;
} suite_count;

/* Its schemas leave out which draft they are of, up to draft 7. */
static void name_draft(json_t *schema, const char *draft)
{
    char uri[80];

    snprintf(uri, sizeof uri, "http://json-schema.org/draft-0%c/schema#", draft[5]);
    if (json_is_object(schema) && !json_object_get(schema, "$schema") && strlen(draft) == 6)
        json_object_set_new(schema, "$schema", json_string(uri));
}

static void check_suite_group(const json_t *group, const char *draft, suite_count *n)
{
    ebb_buf b = { 0 };
    ebb_error err = { 0 };
    ebb_grammar *g = NULL;
    json_t *schema = json_deep_copy(json_object_get(group, "schema"));
    const json_t *test;
    size_t i;

    n->n_groups++;
    name_draft(schema, draft);
    if (ebb_schema_grammar(schema, NULL, NULL, &b, &err) != EBB_OK ||
        ebb_grammar_new(ebb_buf_text(&b), b.len, &g, &err) != EBB_OK)
        n->n_refused++;
    json_array_foreach(json_object_get(group, "tests"), i, test) {
        char *text = json_dumps(json_object_get(test, "data"), JSON_COMPACT | JSON_ENCODE_ANY);
        bool is_valid_text = json_is_true(json_object_get(test, "valid"));
        bool is_written = g && text && is_whole(g, text);
        if (is_written && !is_valid_text)
            fail_msg("%s: %s: %s\n%s\nis not valid, and %s", draft,
                     json_string_value(json_object_get(group, "description")),
                     json_string_value(json_object_get(test, "description")), json_dumps(schema, JSON_COMPACT), text);
        n->n_valid += g && is_valid_text;
        n->n_written += is_written;
        n->n_invalid += g && !is_valid_text;
        free(text);
    }
    ebb_grammar_free(g);
    ebb_buf_fini(&b);
    json_decref(schema);
}

static void check_suite_draft(const char *suite, const char *draft)
{
    char path[500];
    suite_count n = { 0 };
    DIR *dir;

    snprintf(path, sizeof path, "%s/tests/%s", suite, draft);
    dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        size_t len = strlen(e->d_name), i;
        json_t *groups;
        const json_t *group;

        if (len < 6 || strcmp(e->d_name + len - 5, ".json") != 0)
            continue;
        snprintf(path, sizeof path, "%s/tests/%s/%s", suite, draft, e->d_name);
        groups = json_load_file(path, JSON_ALLOW_NUL, NULL);
        json_array_foreach(groups, i, group)
            check_suite_group(group, draft, &n);
        json_decref(groups);
    }
    closedir(dir);
    print_message("%s: %d of %d schemas followed; of their texts %d that are not valid are refused, %d of %d that are "
                  "valid can be written\n", draft, n.n_groups - n.n_refused, n.n_groups, n.n_invalid, n.n_written,
                  n.n_valid);
}

/* EBB_JSON_SCHEMA_SUITE: where github.com/json-schema-org/JSON-Schema-Test-Suite is. */
static void test_suite(void **state)
{
    static const char *const drafts[] = { "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12" };
    const char *suite = getenv("EBB_JSON_SCHEMA_SUITE");

    (void)state;
    if (!suite)
        skip();
    for (size_t i = 0; i < sizeof drafts / sizeof *drafts; i++)
        check_suite_draft(suite, drafts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists), cmocka_unit_test(test_suite),
        cmocka_unit_test(test_refusals_name_the_place),
        cmocka_unit_test(test_random_schemas), cmocka_unit_test(test_a_pattern_of_megabytes),
        cmocka_unit_test(test_many_values), cmocka_unit_test(test_many_references),
        cmocka_unit_test(test_equal_choices_beside_an_id), cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_references_to_large_parts), cmocka_unit_test(test_references_to_long_texts),
        cmocka_unit_test(test_branches_of_many_names), cmocka_unit_test(test_long_reference),
        cmocka_unit_test(test_names_of_megabytes), cmocka_unit_test(test_a_beginning_of_megabytes),
        cmocka_unit_test(test_many_uses_of_many_values), cmocka_unit_test(test_it_can_be_stopped),
    };

    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
