/* JSON whose texts are not all text (json/json_mend.h). */
#include "ebb_test.h"

#include <string.h>

#include "json/json_mend.h"

static void test_mended(void **state)
{
    static const char *const cases[][2] = {
        { "", "" }, { "\"a\\ud83c\\udf89b\"", "" }, { "\"\\\\ud83c\"", "" }, { "\"\\u00e9\\n\"", "" },
        { "\"\\ud83c\"", "\"\\uFFFD\"" }, { "\"\\udf89\\ud83c\"", "\"\\uFFFD\\uFFFD\"" },
        { "\"\\uD83C\\ud83c\\udf89\"", "\"\\uFFFD\\ud83c\\udf89\"" }, { "\"\\ud83c\\n\"", "\"\\uFFFD\\n\"" },
        { "\"caf\xe9\"", "\"caf\xEF\xBF\xBD\"" }, { "\"\xed\xa0\xbc\\udf89\"", "\"\uFFFD\uFFFD\uFFFD\\uFFFD\"" },
        { "\"\\ud83", "" }, { "\\", "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ebb_buf out = { 0 };

        assert_true(ebb_json_mend(cases[i][0], strlen(cases[i][0]), &out));
        assert_string_equal(ebb_buf_text(&out), cases[i][1]);
        ebb_buf_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_mended) };

    return cmocka_run_group_tests_name("json mend", tests, NULL, NULL);
}
