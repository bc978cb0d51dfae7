/* Every rendering of ../shared/data/templates/expected.json, byte for byte. */
#include "ebb_test.h"

#include <jansson.h>
#include <time.h>

#include "os/file.h"
#include "template/template.h"

static json_t *load(const char *name)
{
    char rest[200];
    json_error_t e;
    json_t *j;

    snprintf(rest, sizeof rest, "data/templates/%s", name);
    j = json_load_file(ebb_test_shared_path(rest), 0, &e);
    if (!j)
        fail_msg("%s: %s", name, e.text);
    return j;
}

static const json_t *case_of(const json_t *cases, const char *name)
{
    size_t i;
    json_t *c;

    json_array_foreach(cases, i, c)
        if (strcmp(json_string_value(json_object_get(c, "case")), name) == 0)
            return json_object_get(c, "context");
    fail_msg("no case %s", name);
    return NULL;
}

static ebb_template *compile(const char *name)
{
    char rest[200];
    ebb_buf source = { 0 };
    ebb_template *t = NULL;
    ebb_error err = { 0 };

    snprintf(rest, sizeof rest, "data/templates/%s", name);
    assert_int_equal(ebb_file_slurp(ebb_test_shared_path(rest), 1 << 20, &source, &err), EBB_OK);
    if (ebb_template_compile(source.data, source.len, &t, &err) != EBB_OK)
        print_error("%s: %s\n", name, err.msg);
    ebb_buf_fini(&source);
    return t;
}

/* NULL if the rendering is what the row says, else what is wrong. */
static const char *differs(const ebb_template_result *r, ebb_status st, const json_t *row)
{
    const char *want = json_string_value(json_object_get(row, "result"));
    const char *kind = json_string_value(json_object_get(row, "kind"));
    const char *error = json_string_value(json_object_get(row, "error"));

    if (want)
        return st != EBB_OK ? "failed" : strcmp(ebb_buf_text(&r->text), want) != 0 ? "another text" : NULL;
    if (st == EBB_OK)
        return "did not fail";
    if (strcmp(kind, "raise") == 0)
        return !r->raised ? "did not raise" : strcmp(ebb_buf_text(&r->message), error) != 0 ? "another message" : NULL;
    return r->raised ? "raised" : NULL;
}

static void test_expected(void **state)
{
    json_t *cases = load("cases.json"), *rows = load("expected.json"), *row;
    struct tm now = { 0 };
    ebb_template *t = NULL;
    const char *current = "";
    size_t i, n_wrong = 0;

    (void)state;
    strptime(json_string_value(json_object_get(cases, "now")), "%Y-%m-%dT%H:%M:%S", &now);
    json_array_foreach(rows, i, row) {
        const char *name = json_string_value(json_object_get(row, "template"));
        const char *which = json_string_value(json_object_get(row, "case"));
        ebb_template_opts o = { .no_generation_prompt = !json_is_true(json_object_get(row, "add_generation_prompt")),
                                .now = &now, .attribute = i % 2 };
        ebb_template_result r;
        ebb_error err = { 0 };
        if (strcmp(name, current) != 0) {
            ebb_template_free(t);
            t = compile(name);
            current = name;
        }
        if (!t) {
            n_wrong++;
            continue;
        }
        ebb_status st = ebb_template_render(t, case_of(json_object_get(cases, "cases"), which), &o, &r, &err);
        const char *wrong = differs(&r, st, row);
        if (wrong) {
            n_wrong++;
            print_error("%s, %s, %d: %s: %s\n", name, which, !o.no_generation_prompt, wrong, err.msg);
        }
        ebb_template_result_fini(&r);
    }
    ebb_template_free(t);
    json_decref(cases);
    json_decref(rows);
    assert_int_equal(n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_expected) };

    return cmocka_run_group_tests_name("template/vectors", tests, NULL, NULL);
}
