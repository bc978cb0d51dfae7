/* Messages of errors: one line that a terminal may be given as it is. */
#include "ebb_test.h"

#include <errno.h>

#include "ebb/status.h"

static void expect_text(const char *name, const char *shown)
{
    ebb_error err = { 0 };

    assert_int_equal(EBB_FAIL(&err, EBB_FORMAT, "%s: no", name), EBB_FORMAT);
    assert_int_equal(strncmp(err.msg, shown, strlen(shown)), 0);
    assert_string_equal(err.msg + strlen(shown), ": no");
}

/* A file's name may hold whatever moves a cursor or turns text around; letters of any script stay. */
static void test_nothing_a_terminal_obeys(void **state)
{
    (void)state;
    expect_text("a\033[31m\nb\x7f", "a?[31m?b?");
    expect_text("x\xc2\x9b" "2Jy", "x?2Jy");     /* CSI as one character */
    expect_text("x\x9b" "2Jy", "x?2Jy");         /* and as the byte of old */
    expect_text("a\xe2\x80\xae" "b\xe2\x81\xa6", "a?b?"); /* right to left from here on; an isolate */
    expect_text("\xc3\xbc \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\xa6\x99",
                "\xc3\xbc \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\xa6\x99");
}

/* What is cut to its room loses whole characters of its middle. */
static void test_long(void **state)
{
    ebb_error err = { 0 };
    char text[sizeof err.msg + 10];
    const char *gap;
    size_t n_tail;

    (void)state;
    for (int lead = 0; lead < 3; lead++) {
        memset(text, 'a', sizeof text);
        for (size_t i = (size_t)lead; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xe2\x82\xac", 3);
        text[sizeof text - 1] = '\0';
        EBB_FAIL(&err, EBB_LIMIT, "%s", text);
        assert_in_range(strlen(err.msg), sizeof err.msg - 5, sizeof err.msg - 1);
        gap = strstr(err.msg, "...");
        assert_non_null(gap);
        assert_int_equal((gap - err.msg - lead) % 3, 0);
        assert_memory_equal(err.msg, text, gap - err.msg);
        n_tail = strlen(gap + 3);
        assert_string_equal(gap + 3, text + sizeof text - 1 - n_tail);
        assert_int_equal((unsigned char)gap[3], 0xe2);
    }
}

/* However long a path is, what is wrong with it is said, and so is how it begins. */
static void test_long_name(void **state)
{
    ebb_error err = { 0 };
    char path[9000];

    (void)state;
    for (size_t n = 300; n < sizeof path; n += 300) {
        memset(path, 'x', n);
        path[0] = '/';
        path[n] = '\0';
        EBB_FAIL(&err, EBB_IO, "%.*s: folder cannot be created: %s", (int)(n < 8000 ? n : 8000), path, "no room");
        assert_memory_equal(err.msg, "/xxxxx", 6);
        assert_string_equal(strchr(err.msg, ':'), ": folder cannot be created: no room");
    }
}

static void test_fields(void **state)
{
    ebb_error err = { 0 };

    (void)state;
    errno = ENOSPC;
    assert_int_equal(EBB_FAIL(&err, EBB_IO, "x"), EBB_IO);
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_non_null(strstr(err.where, "test_status.c:"));
    assert_int_equal(EBB_FAIL(&err, EBB_USAGE, "x"), EBB_USAGE);
    assert_int_equal(err.sys_errno, 0);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(EBB_FAIL(NULL, EBB_USAGE, "x"), EBB_USAGE);
    assert_string_equal(ebb_status_text(EBB_NOTFOUND), "not found");
    assert_string_equal(ebb_status_text((ebb_status)999), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_a_terminal_obeys),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_long_name),
        cmocka_unit_test(test_fields),
    };

    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
