/* Titles out of first questions. */
#include "ebb_test.h"

#include "base/utf8.h"
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
    check("abcdefg", 8, "abcdefg");
    check("a.c:\n```c\nint x;\n```\n\nb.md:\n````md\n```\n````\n\nWhat is this?", 128, "What is this?");
    check("Why does it crash:\n```c\nint x;\n```\n\nIn short.", 128, "Why does it crash: ```c int x; ``` In short.");
    check("a.c:\n```c\nint x;\n```", 128, "a.c: ```c int x; ```");
    check("a.c:\n```c\nint x;", 128, "a.c: ```c int x;");
}

/* A title stands in lists that other programs read, too: no character hides in one, be it a filler that counts as a
 * letter. */
static void test_nothing_hides(void **state)
{
    (void)state;
    for (uint32_t cp = 1; cp < 0x110000; cp++) {
        char text[8] = "a", out[64];
        size_t n = 1 + ebb_utf8_encode(cp, text + 1);

        if (ebb_utf8_is_visible(cp) || (cp >= 0xD800 && cp < 0xE000) || cp == EBB_UTF8_BAD)
            continue;
        text[n++] = 'b';
        ebb_title_make(text, n, out, sizeof out);
        if (strcmp(out, "ab") != 0 && strcmp(out, "a b") != 0)
            fail_msg("U+%04X stays in a title", (unsigned)cp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_titles), cmocka_unit_test(test_nothing_hides) };

    return cmocka_run_group_tests_name("title", tests, NULL, NULL);
}
