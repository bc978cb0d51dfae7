#include "ebb_test.h"

#include "term/keys.h"

typedef struct expected { const char *bytes; uint32_t code; unsigned mods; } expected;

static void sequences(void **state)
{
    static const expected table[] = {
        { "a", 'a', 0 }, { "\xC3\xA9", 0xE9, 0 }, { "\xF0\x9F\x98\x80", 0x1F600, 0 },
        { "\r", EBB_KEY_ENTER, 0 }, { "\n", 'j', EBB_MOD_CTRL }, { "\t", EBB_KEY_TAB, 0 },
        { "\x7F", EBB_KEY_BACKSPACE, 0 }, { "\x01", 'a', EBB_MOD_CTRL }, { "\x1F", '_', EBB_MOD_CTRL },
        { "\033x", 'x', EBB_MOD_ALT }, { "\033\r", EBB_KEY_ENTER, EBB_MOD_ALT },
        { "\033\x7F", EBB_KEY_BACKSPACE, EBB_MOD_ALT },
        { "\033[A", EBB_KEY_UP, 0 }, { "\033OA", EBB_KEY_UP, 0 }, { "\033[1;5D", EBB_KEY_LEFT, EBB_MOD_CTRL },
        { "\033[1;3H", EBB_KEY_HOME, EBB_MOD_ALT }, { "\033[3~", EBB_KEY_DELETE, 0 }, { "\033[5~", EBB_KEY_PGUP, 0 },
        { "\033[6;5~", EBB_KEY_PGDN, EBB_MOD_CTRL }, { "\033[Z", EBB_KEY_TAB, EBB_MOD_SHIFT },
        { "\033[1~", EBB_KEY_HOME, 0 }, { "\033[8~", EBB_KEY_END, 0 }, { "\033OP", EBB_KEY_F1, 0 },
        { "\033[11~", EBB_KEY_F1, 0 }, { "\033[[A", EBB_KEY_F1, 0 }, { "\033[24~", EBB_KEY_F12, 0 },
        { "\033[15~", EBB_KEY_F1 + 4, 0 }, { "\033[17~", EBB_KEY_F1 + 5, 0 },
        { "\033\033[A", EBB_KEY_UP, EBB_MOD_ALT }, { "\033[13;2u", EBB_KEY_ENTER, EBB_MOD_SHIFT },
        { "\033[27;2;13~", EBB_KEY_ENTER, EBB_MOD_SHIFT }, { "\033[97;5u", 'a', EBB_MOD_CTRL },
        { "\033\xC3\xA9", 0xE9, EBB_MOD_ALT },
        /* kitty's protocol: Shift is in the character, locks count for nothing, Ctrl is by the Latin keyboard, keys
         * that are control characters without it stay what they are, the keypad has numbers of its own */
        { "\033[27u", EBB_KEY_ESC, 0 }, { "\033[27;129u", EBB_KEY_ESC, 0 },
        { "\033[97:65;4u", 'A', EBB_MOD_ALT }, { "\033[44:60;4u", '<', EBB_MOD_ALT },
        { "\033[45:95;6u", '_', EBB_MOD_CTRL }, { "\033[47;5u", '_', EBB_MOD_CTRL },
        { "\033[1089::99;5u", 'c', EBB_MOD_CTRL }, { "\033[99:67;6u", 'c', EBB_MOD_CTRL },
        { "\033[105;5u", EBB_KEY_TAB, 0 }, { "\033[104;5u", EBB_KEY_BACKSPACE, 0 }, { "\033[91;5u", EBB_KEY_ESC, 0 },
        { "\033[32;5u", ' ', EBB_MOD_CTRL }, { "\033[57414u", EBB_KEY_ENTER, 0 }, { "\033[57400;129u", '1', 0 },
        { "\033[57421;5u", EBB_KEY_PGUP, EBB_MOD_CTRL }, { "\033[57426u", EBB_KEY_DELETE, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        ebb_keys k = { 0 };
        ebb_input in;
        ebb_keys_feed(&k, table[i].bytes, strlen(table[i].bytes));
        assert_true(ebb_keys_next(&k, &in));
        assert_int_equal(in.kind, EBB_INPUT_KEY);
        assert_int_equal(in.key.code, table[i].code);
        assert_int_equal(in.key.mods, table[i].mods);
        assert_false(ebb_keys_next(&k, &in));
        assert_false(ebb_keys_is_waiting(&k));
        ebb_keys_fini(&k);
    }
}

/* The same three arrows in one read, where they may be the wheel and where they cannot. */
static void runs_of_arrows(void **state)
{
    static const char run[] = "\033OA\033OA\033OA";

    (void)state;
    for (int has_wheel = 0; has_wheel < 2; has_wheel++) {
        ebb_keys k = { .has_wheel = has_wheel };
        ebb_input in;
        ebb_keys_feed(&k, run, sizeof run - 1);
        for (int i = 0; i < 3; i++) {
            assert_true(ebb_keys_next(&k, &in));
            assert_int_equal(in.key.code, has_wheel ? EBB_KEY_PGUP : EBB_KEY_UP);
            assert_int_equal(in.key.mods, has_wheel ? EBB_MOD_SHIFT : 0);
        }
        assert_false(ebb_keys_next(&k, &in));
        ebb_keys_fini(&k);
    }
}

/* A link may cut anywhere: byte by byte gives the same keys. */
static void cut_anywhere(void **state)
{
    static const char bytes[] = "a\033[1;5D\xE4\xBD\xA0\033OP\033[200~x\r\ny\033[201~\033x";
    static const uint32_t codes[] = { 'a', EBB_KEY_LEFT, 0x4F60, EBB_KEY_F1, 0, 'x' };
    ebb_keys k = { 0 };
    ebb_input in;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < sizeof bytes - 1; i++) {
        ebb_keys_feed(&k, bytes + i, 1);
        while (ebb_keys_next(&k, &in)) {
            if (in.kind == EBB_INPUT_PASTE)
                assert_memory_equal(in.text, "x\ny", 3);
            assert_int_equal(in.key.code, codes[n++]);
        }
    }
    assert_int_equal(n, 6);
    ebb_keys_fini(&k);
}

static void a_lone_escape_waits(void **state)
{
    ebb_keys k = { 0 };
    ebb_input in;

    (void)state;
    ebb_keys_feed(&k, "\033", 1);
    assert_false(ebb_keys_next(&k, &in));
    assert_true(ebb_keys_is_waiting(&k));
    assert_true(ebb_keys_flush(&k, &in));
    assert_int_equal(in.key.code, EBB_KEY_ESC);
    ebb_keys_feed(&k, "\033[", 2);               /* Alt-[ or a cut sequence */
    assert_false(ebb_keys_next(&k, &in));
    assert_true(ebb_keys_flush(&k, &in));
    assert_int_equal(in.key.mods, EBB_MOD_ALT);
    assert_false(ebb_keys_is_waiting(&k));
    ebb_keys_fini(&k);
}

static void answers_and_mice_are_swallowed(void **state)
{
    static const char bytes[] = "\033[?62;4c\033]11;rgb:0000/0000/0000\033\\\033[<0;10;5M\033[M abz\033[?2026;2$y";
    ebb_keys k = { 0 };
    ebb_input in;

    (void)state;
    ebb_keys_feed(&k, bytes, sizeof bytes - 1);
    assert_true(ebb_keys_next(&k, &in));
    assert_int_equal(in.key.code, 'z');
    assert_false(ebb_keys_next(&k, &in));
    ebb_keys_fini(&k);
}

/* What is too much is counted; and what was taken is not kept. */
static void a_paste_has_a_limit(void **state)
{
    static char kilobyte[1024];
    ebb_keys k = { 0 };
    ebb_input in;

    (void)state;
    memset(kilobyte, 'x', sizeof kilobyte);
    ebb_keys_feed(&k, "\033[200~", 6);
    for (size_t n = 0; n <= EBB_PASTE_BYTES; n += sizeof kilobyte) {
        ebb_keys_feed(&k, kilobyte, sizeof kilobyte);
        assert_false(ebb_keys_next(&k, &in));
    }
    ebb_keys_feed(&k, "\033[201~\033[200~y\033[201~", 19);
    assert_true(ebb_keys_next(&k, &in));
    assert_int_equal(in.n, EBB_PASTE_BYTES);
    assert_int_equal(in.n_lost, sizeof kilobyte);
    assert_true(ebb_keys_next(&k, &in));
    assert_int_equal(in.n, 1);
    assert_int_equal(in.n_lost, 0);
    assert_true(k.paste.cap < EBB_PASTE_BYTES);
    ebb_keys_fini(&k);
}

static void a_paste_is_one_event(void **state)
{
    ebb_keys k = { 0 };
    ebb_buf big = { 0 };
    ebb_input in;

    (void)state;
    for (int i = 0; i < 100000; i++)
        ebb_buf_adds(&big, "ten bytes\r\n");
    ebb_keys_feed(&k, "\033[200~", 6);
    for (size_t at = 0; at < big.len; at += 4096) {
        ebb_keys_feed(&k, big.data + at, big.len - at < 4096 ? big.len - at : 4096);
        assert_false(ebb_keys_next(&k, &in));
    }
    ebb_keys_feed(&k, "\033[201~", 6);
    assert_true(ebb_keys_next(&k, &in));
    assert_int_equal(in.kind, EBB_INPUT_PASTE);
    assert_int_equal(in.n, 1000000);
    assert_null(memchr(in.text, '\r', in.n));
    ebb_buf_fini(&big);
    ebb_keys_fini(&k);
}

static uint32_t next_code(ebb_keys *k)
{
    ebb_input in;

    return ebb_keys_next(k, &in) ? in.key.code : 0;
}

/* It comes out from behind other keys, however the terminal spells it; what was typed around it stays. */
static void an_interrupt_goes_first(void **state)
{
    static const char *const spelt[] = { "\003", "\033[99;5u", "\033[27;5;99~" };
    ebb_keys k = { 0 };
    ebb_input in;

    (void)state;
    for (size_t i = 0; i < sizeof spelt / sizeof *spelt; i++) {
        ebb_keys_feed(&k, "c\033[A", 4);
        assert_false(ebb_keys_take_interrupt(&k));
        ebb_keys_feed(&k, spelt[i], strlen(spelt[i]));
        ebb_keys_feed(&k, "z", 1);
        assert_true(ebb_keys_take_interrupt(&k));
        assert_false(ebb_keys_take_interrupt(&k));
        assert_int_equal(next_code(&k), 'c');
        assert_int_equal(next_code(&k), EBB_KEY_UP);
        assert_int_equal(next_code(&k), 'z');
        assert_int_equal(next_code(&k), 0);
    }
    ebb_keys_feed(&k, "\033[200~so\003me\033[201~", 17);
    assert_false(ebb_keys_take_interrupt(&k));
    assert_true(ebb_keys_next(&k, &in));
    assert_int_equal(in.n, 5);
    ebb_keys_feed(&k, "\033[200~", 6);
    assert_false(ebb_keys_next(&k, &in));
    ebb_keys_feed(&k, "\003", 1);
    assert_false(ebb_keys_take_interrupt(&k));
    ebb_keys_fini(&k);
}

static void random_bytes(void **state)
{
    ebb_keys k = { 0 };
    ebb_input in;
    uint32_t seed = 1;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        static const char likely[] = "\033\033[[O;0123456789~uMAHP]\\\a";
        seed = seed * 1664525u + 1013904223u;
        char byte = seed >> 30 ? likely[(seed >> 8) % (sizeof likely - 1)] : (char)(seed >> 16);
        ebb_keys_feed(&k, &byte, 1);
        while (ebb_keys_next(&k, &in))
            if (in.kind == EBB_INPUT_KEY)
                assert_true(in.key.code <= EBB_KEY_F12);
        if (seed % 97 == 0)
            ebb_keys_flush(&k, &in);
    }
    ebb_keys_fini(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences), cmocka_unit_test(runs_of_arrows),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(a_lone_escape_waits),
        cmocka_unit_test(answers_and_mice_are_swallowed),
        cmocka_unit_test(a_paste_is_one_event),
        cmocka_unit_test(a_paste_has_a_limit),
        cmocka_unit_test(an_interrupt_goes_first),
        cmocka_unit_test(random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
