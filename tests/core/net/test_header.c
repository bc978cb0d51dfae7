/* Lines of a reply's header, from somebody else. */
#include "ebb_test.h"

#include "net/header.h"

static void expect_header(const char *line, const char *value)
{
    char out[8] = "before";

    assert_int_equal(ebb_header_text(line, strlen(line), "etag", out, sizeof out), value != NULL);
    assert_string_equal(out, value ? value : "before");
}

static void test_values(void **state)
{
    (void)state;
    expect_header("etag: abc\r\n", "abc");
    expect_header("ETag:abc", "abc");
    expect_header("Etag: \t a b \t\r\n", "a b");
    expect_header("etag:\r\n", "");
    expect_header("etag:", "");
    expect_header("etag: 1234567\r\n", "1234567");
    expect_header("etag: a\x1B[m\x7F\r\n", "a?[m?");
    expect_header("etag: \xC3\xA4\n", "\xC3\xA4");
}

static void test_no_value(void **state)
{
    (void)state;
    expect_header("etag: 12345678\r\n", NULL);    /* longer than there is room */
    expect_header("etags: abc\r\n", NULL);
    expect_header("etag : abc\r\n", NULL);
    expect_header("x-etag: abc\r\n", NULL);
    expect_header("etag", NULL);
    expect_header("", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_no_value),
    };

    return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
