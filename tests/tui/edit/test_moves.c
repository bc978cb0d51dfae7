/* Moving changes no text: every key that moves, in any order, over whatever may be typed or pasted. */
#include "ebb_test.h"

#include "tui/screen.h"

enum { ROUNDS = 60, KEYS = 150 };

static uint64_t seed = 1;

static size_t draw(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

static const char *const emacs[] = {
    "\x01", "\x05", "\x02", "\x06", "\033b", "\033f", "\033[A", "\033[B", "\033[C", "\033[D", "\033[H", "\033[F",
    "\033[1;5C", "\033[1;5D", "\033[5~", "\033[6~", "\x0c", "\x1b[1;3H", "\x1b[1;3F",
};
static const char *const vi[] = {
    "h", "l", "0", "^", "$", "w", "b", "e", "W", "B", "E", "fa", "Fa", "ta", "Ta", "fe", ";", ",", "j", "k", "9l",
    "99w", "3e", "4;", "20k", "yw", "yy", "Y", "y$", "y0", "yb", "3yy", "yfa", "yj", "yk", "\033[A", "\033[B",
    "\033[C", "\033[D", "\033[H", "\033[F", "y99w", "99999999999l", "\033",
};

static void make_text(ebb_buf *out)
{
    static const char *const pieces[] = {
        "words ", "a", "\n", "\n\n", "  ", "\t", "e\u0301", "\u0301", "\u05e2\u05d1\u05e8\u05d9\u05ea ", "\u65e5\u672c",
        "\U0001F469\u200D\U0001F467", "\u200b", "\u202e", "\x1b", "\x01", "\u1100\u1161\u11a8", "\U0001F1E9\U0001F1EA",
        "\xEF\xBF\xBD", ".,;()", "x\u0301\u0302\u0303\u0304",
    };

    for (size_t n = draw(4) ? draw(30) : draw(600); n > 0; n--)
        ebb_buf_adds(out, pieces[draw(sizeof pieces / sizeof *pieces)]);
}

static void check_moves(const char *const *keys, size_t n_keys, bool is_vi)
{
    for (int round = 0; round < ROUNDS; round++) {
        ebb_buf text = { 0 }, before = { 0 }, after = { 0 };
        screen s;

        screen_open_ready(&s, 12, 40);
        ebb_vi_set(&s.app.vi, &s.app.editor, is_vi);
        make_text(&text);
        for (size_t i = 0; i < 2; i++)           /* two pastes: long ones fold */
            ebb_app_input(&s.app, &(ebb_input){ .kind = EBB_INPUT_PASTE, .text = ebb_buf_text(&text), .n = text.len });
        if (is_vi)
            screen_keys(&s, "\033");
        assert_true(ebb_editor_text(&s.app.editor, &before));
        for (int i = 0; i < KEYS; i++) {
            const char *key = keys[draw(n_keys)];

            screen_keys(&s, key);
            ebb_buf_clear(&after);
            assert_true(ebb_editor_text(&s.app.editor, &after));
            if (after.len != before.len || memcmp(ebb_buf_text(&after), ebb_buf_text(&before), after.len) != 0)
                fail_msg("'%s' changed '%s' to '%s'", key, ebb_buf_text(&before), ebb_buf_text(&after));
        }
        ebb_buf_fini(&text);
        ebb_buf_fini(&before);
        ebb_buf_fini(&after);
        screen_close(&s);
    }
}

static void as_in_emacs(void **state)
{
    (void)state;
    check_moves(emacs, sizeof emacs / sizeof *emacs, false);
}

static void as_in_vi(void **state)
{
    (void)state;
    check_moves(vi, sizeof vi / sizeof *vi, true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_in_emacs),
        cmocka_unit_test(as_in_vi),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
