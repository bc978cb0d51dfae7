/* Decoding broken UTF-8, and the display filter. */
#include "base/utf8.h"
#include "ebb_test.h"

#define BAD "\xEF\xBF\xBD"

static void expect_valid(const char *in, const char *want)
{
    ebb_buf b = { 0 };

    assert_true(ebb_utf8_add_valid(&b, in, strlen(in)));
    assert_string_equal(ebb_buf_text(&b), want);
    ebb_buf_fini(&b);
}

static void test_maximal_parts_are_replaced(void **state)
{
    (void)state;
    expect_valid("", "");
    expect_valid("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    expect_valid("\xE2\x82z", BAD "z");
    expect_valid("\xF0\x9F\x98", BAD);
    expect_valid("\xC0\x80", BAD BAD);
    expect_valid("\xED\xA0\x80", BAD BAD BAD);
    expect_valid("\xF4\x90\x80\x80x", BAD BAD BAD BAD "x");
    expect_valid(BAD, BAD);
    expect_valid("\xEFp", BAD "p");              /* the beginning of U+FFFD itself is no character */
    expect_valid("\xEF\xBFp", BAD "p");
}

static void test_cut_off_is_not_invalid(void **state)
{
    uint32_t cp;

    (void)state;
    assert_int_equal(ebb_utf8_decode("\xE2\x82", 2, &cp), 0);
    assert_int_equal(ebb_utf8_decode("\xE2\x41", 2, &cp), 1);
    assert_int_equal(cp, EBB_UTF8_BAD);
    assert_int_equal(ebb_utf8_decode("\xF0\x9F\x98\x80", 4, &cp), 4);
    assert_int_equal(cp, 0x1F600);
}

static void test_every_scalar_value_comes_back(void **state)
{
    (void)state;
    for (uint32_t cp = 0, got; cp < 0x110000; cp++) {
        char s[4];
        if (cp >= 0xD800 && cp < 0xE000)
            continue;
        size_t n = ebb_utf8_encode(cp, s);
        if (ebb_utf8_decode(s, n, &got) != n || got != cp)
            fail_msg("U+%04X", (unsigned)cp);
    }
}

static void test_display_filter(void **state)
{
    ebb_buf b = { 0 };

    (void)state;
    assert_true(ebb_utf8_add_visible(&b, "a\x1B[2J\n\xC2\x9B\xE2\x80\xAE\xFF", 12, false));
    assert_string_equal(ebb_buf_text(&b), "a\xE2\x90\x9B[2J\n<U+009B><U+202E>" BAD);
    ebb_buf_clear(&b);
    assert_true(ebb_utf8_add_visible(&b, "\x1B\x7F", 2, true));
    assert_string_equal(ebb_buf_text(&b), "^[^?");
    ebb_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maximal_parts_are_replaced),
        cmocka_unit_test(test_cut_off_is_not_invalid),
        cmocka_unit_test(test_every_scalar_value_comes_back),
        cmocka_unit_test(test_display_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
