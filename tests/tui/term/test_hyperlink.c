/* Addresses behind cells: which are told to a terminal, and how. */
#include "ebb_test.h"

#include <string.h>

#include "term/hyperlink.h"
#include "term/questions.h"

static void which_are_safe(void **state)
{
    static const char *const safe[] = { "http://a", "https://a.example/b?c=d;e#f", "HTTPS://A", "mailto:a@b.example" },
        *const unsafe[] = { "", "https://", "a.example", "ftp://a", "file:///etc/passwd", "javascript:a",
                            "data:text/html,a",
                            "https://a b", "https://a\033", "https://a\007", "https://a\n", "https://\xC3\xA4.example",
                            "https://a\xC2\x9C", "x-man-page://ls", "ssh://a" };
    char longest[EBB_HYPERLINK_BYTES + 2] = "https://";

    (void)state;
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        if (!ebb_hyperlink_is_safe(safe[i], strlen(safe[i])))
            fail_msg("%s is refused", safe[i]);
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        if (ebb_hyperlink_is_safe(unsafe[i], strlen(unsafe[i])))
            fail_msg("%s is let through", unsafe[i]);
    memset(longest + 8, 'a', sizeof longest - 8);
    assert_true(ebb_hyperlink_is_safe(longest, EBB_HYPERLINK_BYTES));
    assert_false(ebb_hyperlink_is_safe(longest, EBB_HYPERLINK_BYTES + 1));
}

static void switches(void **state)
{
    ebb_hyperlinks l = { 0 };
    ebb_buf out = { 0 };
    uint32_t a = ebb_hyperlink_add(&l, "https://a", 9), b = ebb_hyperlink_add(&l, "https://b", 9);
    char want[64], address[32];

    (void)state;
    assert_true(a != 0 && b != 0 && a != b);
    assert_int_equal(ebb_hyperlink_add(&l, "https://a", 9), a);
    assert_int_equal(l.n, 2);
    assert_int_equal(ebb_hyperlink_add(&l, "file:///a", 9), 0);
    ebb_hyperlink_switch(&l, b, &out);
    snprintf(want, sizeof want, "\033]8;id=%x;https://b\033\\", b);
    assert_string_equal(ebb_buf_text(&out), want);
    ebb_buf_clear(&out);
    ebb_hyperlinks_clear(&l);                    /* another frame does not know it */
    ebb_hyperlink_switch(&l, b, &out);
    assert_string_equal(ebb_buf_text(&out), "\033]8;;\033\\");
    for (int i = 0; i < EBB_HYPERLINKS + 5; i++) {
        int n = snprintf(address, sizeof address, "https://%d", i);
        assert_int_equal(ebb_hyperlink_add(&l, address, (size_t)n) != 0, i < EBB_HYPERLINKS);
    }
    ebb_hyperlinks_fini(&l);
    ebb_buf_fini(&out);
}

static void who_follows(void **state)
{
    static const struct { const char *answer; bool has_links; } rows[] = {
        { "\033P>|kitty(0.36.0)\033\\", true }, { "\033P>|tmux 3.4\033\\", true }, { "\033P>|tmux 3.3a\033\\", false },
        { "\033P>|VTE(7600)\033\\", true }, { "\033P>|XTerm(390)\033\\", false }, { "\033P>|\033\\", false },
        { "\033P>|", false }, { "\033P1+r\033\\", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_term_answers a = { 0 };
        assert_int_equal(ebb_questions_take(&a, rows[i].answer, strlen(rows[i].answer)), rows[i].has_links);
        assert_int_equal(a.has_links, rows[i].has_links);
    }
    assert_true(ebb_questions_has_links("xterm-kitty") && ebb_questions_has_links("foot"));
    assert_false(ebb_questions_has_links("xterm-256color") || ebb_questions_has_links("tmux-256color"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(which_are_safe), cmocka_unit_test(switches),
                                        cmocka_unit_test(who_follows) };

    return cmocka_run_group_tests_name("hyperlink", tests, NULL, NULL);
}
