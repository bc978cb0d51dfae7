/* Titles out of first questions. */
#include "ebb_test.h"

#include "store/title.h"

static void check(const char *text, size_t cap, const char *want)
{
    char out[256];

    ebb_title_make(text, strlen(text), out, cap);
    assert_string_equal(out, want);
}

static void test_titles(void **state)
{
    (void)state;
    check("Hello", 128, "Hello");
    check("  a \n\n b\t", 128, "a b");
    check("", 128, "");
    check("\x1b[31mred\x07", 128, "[31mred");
    check("\xff" "x", 128, "\xef\xbf\xbdx");
    check("12345678901234567890123456789012345678901234567890", 128,
          "12345678901234567890123456789012345678901234567890");
    check("123456789012345678901234567890123456789012345678901", 128,
          "1234567890123456789012345678901234567890123456789…");
    check("日本日本日本日本日本日本日本日本日本日本日本日本日本日本", 128,
          "日本日本日本日本日本日本日本日本日本日本日本日本…");
    check("abcdefgh", 8, "abcd…");
    check("a.c:\n```c\nint x;\n```\n\nb.md:\n````md\n```\n````\n\nWhat is this?", 128, "What is this?");
    check("a.c:\n```c\nint x;\n```", 128, "a.c: ```c int x; ```");
    check("a.c:\n```c\nint x;", 128, "a.c: ```c int x;");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_titles) };

    return cmocka_run_group_tests_name("title", tests, NULL, NULL);
}
