/* Short texts: copies and trimmed ones. */
#include "ebb_test.h"

#include "base/text.h"

static void test_copy(void **state)
{
    static const char with_nul[] = { 'a', '\0', 'b' };
    char *all = ebb_text_copy(with_nul, sizeof with_nul), *part = ebb_text_copy("budget", 3);
    char *none = ebb_text_copy(NULL, 0), *other;
    bool ok = true;

    (void)state;
    assert_memory_equal(all, "a\0b", 4);
    assert_string_equal(part, "bud");
    assert_string_equal(none, "");
    assert_null(ebb_text_copy_or_null(NULL, &ok));
    other = ebb_text_copy_or_null("budget", &ok);
    assert_string_equal(other, "budget");
    assert_true(ok);
    free(other);
    free(all);
    free(part);
    free(none);
}

static void test_trim(void **state)
{
    static const char *const cases[][2] = {
        { "", "" },
        { " \t\r ", "" },
        { "a", "a" },
        { "\t a b \r", "a b" },
        { "a\n ", "a\n" },
        { "  \xc2\xa0 ", "\xc2\xa0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16];

        strcpy(text, cases[i][0]);
        assert_string_equal(ebb_text_trim(text), cases[i][1]);
    }
}

static void test_mark(void **state)
{
    (void)state;
    assert_int_equal(ebb_text_mark("\xEF\xBB\xBF", 3), 3);
    assert_int_equal(ebb_text_mark("\xEF\xBB\xBFx", 4), 3);
    assert_int_equal(ebb_text_mark("\xEF\xBB\xBF", 2), 0);
    assert_int_equal(ebb_text_mark("x\xEF\xBB\xBF", 4), 0);
    assert_int_equal(ebb_text_mark("", 0), 0);
}

static void test_file_name(void **state)
{
    const char *path = "models/tiny.gguf";

    (void)state;
    assert_ptr_equal(ebb_text_file_name(path), path + 7);
    assert_string_equal(ebb_text_file_name("/tiny"), "tiny");
    assert_string_equal(ebb_text_file_name("tiny"), "tiny");
    assert_string_equal(ebb_text_file_name("models/"), "");
    assert_string_equal(ebb_text_file_name(""), "");
}

static void test_hex_digits(void **state)
{
    static const char small[] = "0123456789abcdef", large[] = "0123456789ABCDEF";

    (void)state;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(ebb_hex_digit(small[i]), i);
        assert_int_equal(ebb_hex_digit(large[i]), i);
    }
    for (const char *c = "/:@G`g \xE4"; *c; c++)
        assert_int_equal(ebb_hex_digit(*c), -1);
    assert_int_equal(ebb_hex_digit('\0'), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy), cmocka_unit_test(test_trim), cmocka_unit_test(test_mark),
        cmocka_unit_test(test_file_name), cmocka_unit_test(test_hex_digits),
    };

    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
