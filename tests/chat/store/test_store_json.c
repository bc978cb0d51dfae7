/* JSON in columns of the database, which another program may have written (store_sql.h). */
#include "ebb_test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/store_sql.h"

static size_t n_allocs;

static void *count_alloc(size_t n)
{
    n_allocs++;
    return malloc(n);
}

/* A few megabytes of objects that would take hundreds are not read; the message is there without. */
static void test_many_values(void **state)
{
    ebb_message m = { 0 };
    ebb_truncation cut;
    ebb_buf b = { 0 };

    (void)state;
    ebb_buf_addc(&b, '[');
    for (int i = 0; i < 1000000; i++)
        ebb_buf_adds(&b, "{},");
    ebb_buf_adds(&b, "{}]");
    json_set_alloc_funcs(count_alloc, free);
    assert_true(ebb_sample_records_parse(b.data, &m));
    ebb_truncation_parse(b.data, &cut);
    assert_int_equal(n_allocs, 0);
    assert_int_equal(m.n_sample_records, 0);
    assert_int_equal(cut.how, EBB_OVERFLOW_ASK);
    json_set_alloc_funcs(malloc, free);
    ebb_buf_fini(&b);
}

/* Whether the prompt had opened a thought: yes, no, or nothing is said, as of answers of before. */
static void test_how_an_answer_begins(void **state)
{
    for (int begin = EBB_THOUGHT_UNSURE; begin <= EBB_THOUGHT_UNOPENED; begin++) {
        ebb_sample_record record = { .begin = (ebb_thought_begin)begin };
        const ebb_message m = { .sample_records = &record, .n_sample_records = 1 };
        char *json = ebb_sample_records_json(&m);
        ebb_message again = { 0 };

        assert_non_null(json);
        assert_int_equal(strstr(json, "thinks") != NULL, begin != EBB_THOUGHT_UNSURE);
        assert_true(ebb_sample_records_parse(json, &again));
        assert_int_equal(again.n_sample_records, 1);
        assert_int_equal(again.sample_records[0].begin, begin);
        free(again.sample_records);
        free(json);
    }
    (void)state;
}

static void test_what_is_read(void **state)
{
    ebb_message m = { 0 };
    ebb_truncation cut;

    (void)state;
    assert_true(ebb_sample_records_parse("[{}, 5, {\"n\": 7, \"before\": \"000102030405060708090a0b0c0d0e0f\","
                                         " \"drawn\": \"ff0102030405060708090a0b0c0d0e0f\", \"grammar\": \"g\"},"
                                         " {\"before\": \"zz0102030405060708090a0b0c0d0e0f\"}]", &m));
    assert_int_equal(m.n_sample_records, 1);
    assert_int_equal(m.sample_records[0].n, 7);
    assert_int_equal(m.sample_records[0].ids_hash[0], 0xff);
    assert_string_equal(m.sample_records[0].grammar, "g");
    free(m.sample_records[0].grammar);
    free(m.sample_records);
    ebb_truncation_parse("{\"how\": \"forget\", \"first\": 9, \"kept\": [1, 1, 5, 3, -2, 9, \"x\"],"
                         " \"salt\": \"000102030405060708090a0b0c0d0e0g\"}", &cut);
    assert_int_equal(cut.how, EBB_OVERFLOW_FORGET);
    assert_int_equal(cut.n_kept, 2);
    assert_int_equal(cut.kept[1], 5);
    free(cut.kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_values),
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_how_an_answer_begins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
