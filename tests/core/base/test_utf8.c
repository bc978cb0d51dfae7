/* Decoding broken UTF-8, and the display filter. */
#include "base/utf8.h"
#include "ebb_test.h"

#include <utf8proc.h>

#define BAD "\xEF\xBF\xBD"

static void expect_valid(const char *in, const char *want)
{
    ebb_buf b = { 0 };

    assert_int_equal(ebb_utf8_is_valid(in, strlen(in)), strcmp(in, want) == 0);
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

/* Nothing is cut within a character; what is broken anyway loses 3 bytes at most. */
static void test_cut(void **state)
{
    static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", broken[] = "\x80\x80\x80\x80\x80\x80\x80\x80";
    static const size_t kept[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11 };

    (void)state;
    for (size_t cap = 0; cap < sizeof kept / sizeof *kept; cap++)
        assert_int_equal(ebb_utf8_cut(text, sizeof text - 1, cap), kept[cap]);
    for (size_t cap = 0; cap < 8; cap++)
        assert_int_equal(ebb_utf8_cut(broken, 8, cap), cap < 3 ? 0 : cap - 3);
    assert_int_equal(ebb_utf8_cut(broken, 8, 8), 8);
    assert_int_equal(ebb_utf8_cut("", 0, 0), 0);
}

/* Back over a text as forward; what is no character is passed part by part. */
static void test_before(void **state)
{
    static const char *const texts[] = { "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", "\x80\x80\x80\x80\x80", "a\x80",
                                         "\xE2\x82\xAC\x82", "\xE2\x82", "\xF0\x9F\x98", "\xC3\xA9\xA9\xFF" };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = strlen(texts[i]), begin[16], n_begin = 0;
        ebb_buf b = { 0 };
        uint32_t cp;

        for (size_t at = 0, used; at < n; at += used ? used : n - at) {
            begin[n_begin++] = at;
            used = ebb_utf8_decode(texts[i] + at, n - at, &cp);
        }
        assert_true(ebb_buf_adds(&b, texts[i]));
        for (size_t at = n; n_begin > 0; at = begin[n_begin]) {
            assert_int_equal(ebb_utf8_before(texts[i], at), begin[--n_begin]);
            ebb_utf8_remove_last(&b);
            assert_int_equal(b.len, begin[n_begin]);
        }
        ebb_utf8_remove_last(&b);                /* nothing is left */
        assert_string_equal(ebb_buf_text(&b), "");
        ebb_buf_fini(&b);
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
    ebb_buf_clear(&b);
    assert_true(ebb_utf8_add_line(&b, "a\n\tb\x1B\xE2\x80\xAE", 8, false));
    assert_string_equal(ebb_buf_text(&b), "a\xE2\x90\x8A\xE2\x90\x89" "b\xE2\x90\x9B<U+202E>");
    ebb_buf_clear(&b);
    assert_true(ebb_utf8_add_line(&b, "\n\t", 2, true));
    assert_string_equal(ebb_buf_text(&b), "^J^I");
    assert_true(ebb_utf8_has_controls("a\tb"));
    assert_true(ebb_utf8_has_controls("\x7F"));
    assert_false(ebb_utf8_has_controls("caf\xC3\xA9 1"));
    ebb_buf_fini(&b);
}

/* Unicode's format characters and fillers draw nothing: each is shown by its number, but for what scripts need and
 * for the few that do draw something. */
static void test_nothing_hides(void **state)
{
    static const uint32_t fillers[] = { 0xAD,   0x034F, 0x115F,  0x1160,  0x17B4,  0x180E,
                                        0x3164, 0xFFA0, 0xE0001, 0xE0041, 0xE007F, 0xE01EF };

    (void)state;
    for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++)
        assert_false(ebb_utf8_is_visible(fillers[i]));
    for (uint32_t cp = 0x80; cp < 0x110000; cp++) {
        bool draws = (cp >= 0x600 && cp <= 0x605) || cp == 0x6DD || cp == 0x70F || cp == 0x890 || cp == 0x891 ||
                     cp == 0x8E2 || cp == 0x110BD || cp == 0x110CD || (cp >= 0x13430 && cp <= 0x1343F);
        if (utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_CF && !draws && cp != 0x200C && cp != 0x200D &&
            ebb_utf8_is_visible(cp))
            fail_msg("U+%04X hides", (unsigned)cp);
    }
    assert_true(ebb_utf8_is_visible(0xFE0F) && ebb_utf8_is_visible(0xE9) && ebb_utf8_is_visible(0x1F600));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maximal_parts_are_replaced),
        cmocka_unit_test(test_cut_off_is_not_invalid),
        cmocka_unit_test(test_every_scalar_value_comes_back),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_before),
        cmocka_unit_test(test_display_filter),
        cmocka_unit_test(test_nothing_hides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
