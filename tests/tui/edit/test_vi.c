/* vi's keys: what stands there after them, and where the caret is (the character in brackets). */
#include "ebb_test.h"

#include "tui/screen.h"

static const struct { const char *text, *keys, *want; } table[] = {
    /* motions, from the beginning of the text: Esc 0 */
    { "one two three", "w", "one [t]wo three" },
    { "one two three", "2w", "one two [t]hree" },
    { "one two three", "e", "on[e] two three" },
    { "one two three", "ee", "one tw[o] three" },
    { "one two three", "$", "one two thre[e]" },
    { "one two three", "$b", "one two [t]hree" },
    { "one two three", "$2b", "one [t]wo three" },
    { "one.two three", "w", "one[.]two three" },
    { "one.two three", "W", "one.two [t]hree" },
    { "one.two three", "E", "one.tw[o] three" },
    { "one.two three", "$B", "one.two [t]hree" },
    { "  one", "^", "  [o]ne" },
    { "  one", "$0", "[ ] one" },
    { "abcabc", "fc", "ab[c]abc" },
    { "abcabc", "2fc", "abcab[c]" },
    { "abcabc", "fc;", "abcab[c]" },
    { "abcabc", "tc", "a[b]cabc" },
    { "abcabc", "tc;", "abca[b]c" },
    { "abcabc", "2tc", "abca[b]c" },
    { "a,b,c", "t,;", "a,[b],c" },
    { "abcabc", "$Fa", "abc[a]bc" },
    { "abcabc", "$Ta", "abca[b]c" },
    { "abcabc", "fb;,", "a[b]cabc" },
    { "abc", "lll", "ab[c]" },
    { "abc", "llh", "a[b]c" },
    { "abc", "fz", "[a]bc" },
    /* operators */
    { "one two three", "dw", "[t]wo three" },
    { "one two three", "2dw", "[t]hree" },
    { "one two three", "d2w", "[t]hree" },
    { "one two three four five six seven", "2d3w", "[s]even" },
    { "one two three", "wd$", "one[ ]" },
    { "one two three", "wD", "one[ ]" },
    { "one two three", "$db", "one two [e]" },
    { "one two three", "de", "[ ]two three" },
    { "one two three", "dtw", "[w]o three" },
    { "one two three", "dfw", "[o] three" },
    { "one two three", "dd", "[]" },
    { "one two three", "cwfour\033", "fou[r] two three" },
    { "one two three", "c2wfour\033", "fou[r] three" },
    { "one two three", "wcwX\033", "one [X] three" },
    { "one two three", "Cx\033", "[x]" },
    { "one two three", "ccx\033", "[x]" },
    { "one two three", "Sx\033", "[x]" },
    { "one two three", "sX\033", "[X]ne two three" },
    { "one two three", "3sX\033", "[X] two three" },
    { "one two three", "yw$p", "one two threeone[ ]" },
    { "one two three", "ywP", "one[ ]one two three" },
    { "one two three", "d0", "[o]ne two three" },
    { "last word", "wdw", "last[ ]" },
    /* what t and T look for may stand beside the caret */
    { "a.b.c", "dt.", "[.]b.c" },
    { "f(a) (b)", "2lct)x\033", "f([x]) (b)" },
    { "f(ab", "$dT(", "f([b]" },
    /* lines joined, opened and put */
    { "one\ntwo\nthree", "kk3J", "one two[ ]three" },
    { "one\n  two", "k0J", "one[ ]two" },
    { "f(one\n)", "kJ", "f(one[)]" },
    { "one \ntwo", "kJ", "one [t]wo" },
    { "\none", "kJ", "[o]ne" },
    { "abcd", "xJ.", "[c]d" },    /* nothing was joined: x is what is done again */
    { "one", "3oX\033", "one\nX\nX\n[X]" },
    { "one", "2OX\033", "X\n[X]\none" },
    { "  one\ntwo", "kyyjp", "  one\ntwo\n  [o]ne" },
    { "one\n\ntwo", "kkyyjddp", "one\ntwo\n[]" },
    { "one", "ddSX\033p", "X\n[o]ne" },
    { "one", "ddddp", "\n[o]ne" },
    { "x\n\ny", "ddSX\033p", "x\nX\n[]" },        /* an empty line of several is one that was cut */
    { "one", "ddyyp", "\n[]" },
    /* a word that was cut by Ctrl-W is no line, though a line was cut before */
    { "one\ntwo", "kddiX Y\027\033p", "X [Y]two" },
    { "\ntwo", "kddiX Y\027\033p", "X [Y]two" },
    /* a change that cannot be done again types nothing, and runs nothing */
    { "one, two", "ct,a.b\033$.", "a.b, tw[o]" },
    { "one, two", "ct,x.y\033$.", "x.y, tw[o]" },
    /* counts and line ends */
    { "one two\nthree four", "k02dw", "[]\nthree four" },
    { "one two\nthree four", "k0d2w", "[]\nthree four" },
    { "one two\nthree four", "k03dw", "[f]our" },
    { "one two\nthree four", "k0wd2w", "one [f]our" },
    { "one two\nthree four", "k0w2D", "one[ ]" },
    { "one two\nthree four", "k0wd2$", "one[ ]" },
    { "one two\nthree four", "k0w2CX\033", "one [X]" },
    { "one two\nthree four\nfive", "kk02$", "one two\nthree fou[r]\nfive" },
    { "one two\nthree four", "k0w9D", "one[ ]" },
    /* up and down, at the column of the caret */
    { "abcdef\nghijkl\nmnopqr", "kk0j", "abcdef\n[g]hijkl\nmnopqr" },
    { "abcdef\nghijkl\nmnopqr", "$kk0jiX\033", "abcdef\n[X]ghijkl\nmnopqr" },
    { "abcdef\nghijkl\nmnopqr", "kfjk", "abc[d]ef\nghijkl\nmnopqr" },
    { "abcdef\nx\nmnopqr", "$kk", "abcde[f]\nx\nmnopqr" },
    { "abcdef\nx\nmnopqr", "lll2k", "abc[d]ef\nx\nmnopqr" },
    { "abcdef\nx\nmnopqr", "2k2j", "abcdef\nx\n[m]nopqr" },
    { "abcdef\nx\nmnopqr", "k9k", "[a]bcdef\nx\nmnopqr" },
    /* a find that cannot be made so often */
    { "abcabc", "3fc", "[a]bcabc" },
    { "abcabc", "d3fc", "[a]bcabc" },
    { "abcabc", "c3fcx\033", "[b]cabc" },        /* x is a command: nothing was changed */
    { "abcabc", "$3dTa", "abcab[c]" },
    { "abcabc", "$2dTa", "a[c]" },
    { "abcabc", "2;", "[a]bcabc" },
    { "abcabc", "fc2;", "ab[c]abc" },
    /* commands */
    { "abc", "x", "[b]c" },
    { "abc", "2x", "[c]" },
    { "abc", "9x", "[]" },
    { "abc", "lX", "[b]c" },
    { "abc", "xp", "b[a]c" },
    { "abc", "rX", "[X]bc" },
    { "abc", "2rX", "X[X]c" },
    { "abc", "4rX", "[a]bc" },
    { "abc", "~", "A[b]c" },
    { "aBc", "3~", "Ab[C]" },
    { "abc", "iX\033", "[X]abc" },
    { "abc", "aX\033", "a[X]bc" },
    { "abc", "IX\033", "[X]abc" },
    { "abc", "AX\033", "abc[X]" },
    { "abc", "3iX\033", "XX[X]abc" },
    { "abc", "ox\033", "abc\n[x]" },
    { "abc", "Ox\033", "[x]\nabc" },
    { "abc", "yyp", "abc\n[a]bc" },
    { "abc", "yyP", "[a]bc\nabc" },
    { "abc", "ox\033kJ", "abc[ ]x" },
    { "abc", "ox\033kdd", "[x]" },
    { "abc", "ox\033dd", "[a]bc" },
    { "abc", "ox\033kyyjp", "abc\nx\n[a]bc" },
    { "abc", "ox\033k2dd", "[]" },
    { "abc", "ox\033G", "abc\n[x]" },
    /* undo, redo, again */
    { "abc", "xu", "[a]bc" },
    { "abc", "xxuu", "[a]bc" },
    { "abc", "xx2u", "[a]bc" },
    { "abc", "xxuu\x12", "[b]c" },
    { "abc", "xxuu\x12\x12", "[c]" },
    { "abc", "Alonger words\033u", "ab[c]" },
    { "abc", "cwlonger words\033u", "[a]bc" },
    { "one two three", "dw.", "[t]hree" },
    { "one two three", "cwX\033w.", "X [X] three" },
    { "abc", "x.u", "[b]c" },
    { "abc", "iX\033.", "[X]Xabc" },
    { "abc", "3iX\033.", "XXXX[X]Xabc" },
    { "abc", "iX\033.u", "[X]abc" },
    { "a1a2a3", "fax;.", "a12[3]" },
    /* what is no command */
    { "abc", "dq", "[a]bc" },
    { "abc", "d\033x", "[b]c" },
    { "abc", "2\033x", "[b]c" },
    { "abc", "\033j", "[a]bc" },
    /* wide and joined characters are one step */
    { "\xE4\xBD\xA0\xE5\xA5\xBD x", "x", "[\xE5\xA5\xBD] x" },
    { "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9x", "l", "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9[x]" },
    { "e\xCC\x81x", "x", "[x]" },
    /* what is inserted in front of something that joins it */
    { "\u0937\u093E", "i\u0915\u094D\u0930\033", "[\u0915]\u094D\u0930\u0937\u093E" },
    { "\U0001F1EA\U0001F1F8", "i\U0001F1EB\U0001F1F7\033", "[\U0001F1EB]\U0001F1F7\U0001F1EA\U0001F1F8" },
    { "\U0001F1EA\U0001F1F8", "3i\U0001F1EB\033", "\U0001F1EB\U0001F1EB[\U0001F1EB]\U0001F1EA\U0001F1F8" },
    { "\U0001F1EAa\U0001F1F8", "lx", "[\U0001F1EA]\U0001F1F8" },
};

static void write_out(const screen *s, char *out, size_t cap)
{
    const ebb_editor *e = &s->app.editor;
    const char *text = ebb_buf_text(&e->text);
    size_t at = e->caret, len = at < e->text.len && text[at] != '\n' ? 1 : 0;

    while (len > 0 && at + len < e->text.len && ((unsigned char)text[at + len] & 0xC0) == 0x80)
        len++;
    snprintf(out, cap, "%.*s[%.*s]%s", (int)at, text, (int)len, text + at, text + at + len);
}

/* One key a read, so that Esc is a key of its own. */
static void type(screen *s, const char *keys)
{
    for (; *keys; keys++) {
        size_t n = 1;
        while (((unsigned char)keys[n] & 0xC0) == 0x80)
            n++;
        ebb_term_mem_feed(s->term, keys, n);
        screen_step(s, 0.1);
        keys += n - 1;
    }
}

static void keys_do_what_they_do(void **state)
{
    char got[256];
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        screen_open(&s, 16, 60, "");
        ebb_vi_set(&s.app.vi, &s.app.editor, true);
        type(&s, table[i].text);
        type(&s, "\033" "0");
        type(&s, table[i].keys);
        write_out(&s, got, sizeof got);
        if (strcmp(got, table[i].want) != 0)
            fail_msg("'%s' after '%s' is '%s', not '%s'", table[i].text, table[i].keys, got, table[i].want);
        screen_close(&s);
    }
}

/* No key types one: it was pasted, or is of a file. */
static void a_tab_parts_joined_lines(void **state)
{
    char got[256];
    screen s;

    (void)state;
    screen_open(&s, 16, 60, "");
    ebb_vi_set(&s.app.vi, &s.app.editor, true);
    ebb_editor_insert(&s.app.editor, "one\t\ntwo", 8);
    type(&s, "\033kJ");
    write_out(&s, got, sizeof got);
    assert_string_equal(got, "one\t[t]wo");
    screen_close(&s);
}

static void history_and_modes(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 16, 60, "");
    fake_ready(s.chat);
    screen_keys(&s, "/editing vi\r");
    assert_true(s.app.vi.is_on);
    type(&s, "first line\r");
    fake_done(s.chat, EBB_FINISH_STOP);
    type(&s, "second\r");
    assert_false(s.app.vi.is_normal);            /* what is sent leaves insert mode behind */
    fake_done(s.chat, EBB_FINISH_STOP);
    type(&s, "\033");
    assert_non_null(strstr(screen_text(&s), "-- normal --"));
    type(&s, "2d");
    assert_non_null(strstr(screen_text(&s), "-- normal -- 2d"));
    type(&s, "\033k");
    assert_string_equal(s.app.editor.text.data, "second");
    type(&s, "k");
    assert_string_equal(s.app.editor.text.data, "first line");
    type(&s, "j");
    assert_string_equal(s.app.editor.text.data, "second");
    type(&s, "/first\r");
    assert_string_equal(s.app.editor.text.data, "first line");
    assert_true(s.app.vi.is_normal);
    type(&s, "dw");
    assert_string_equal(s.app.editor.text.data, "line");
    screen_keys(&s, "A!\033" "0");               /* Esc and the next key in one piece */
    type(&s, "x");
    assert_string_equal(s.app.editor.text.data, "ine!");
    type(&s, "i\033\033");
    screen_keys(&s, "/editing emacs\r");
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_do_what_they_do),
        cmocka_unit_test(a_tab_parts_joined_lines),
        cmocka_unit_test(history_and_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
