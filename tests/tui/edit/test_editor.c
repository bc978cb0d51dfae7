#include "ebb_test.h"

#include "edit/editor.h"
#include "os/file.h"
#include "term/width.h"
#include "tui/term_mem.h"

/* Types bytes as a terminal would send them. */
static void type(ebb_editor *e, const char *bytes)
{
    ebb_keys k = { 0 };
    ebb_input in;

    ebb_keys_feed(&k, bytes, strlen(bytes));
    while (ebb_keys_next(&k, &in) || ebb_keys_flush(&k, &in)) {
        if (in.kind == EBB_INPUT_PASTE)
            ebb_editor_paste(e, in.text, in.n);
        else
            ebb_editor_key(e, in.key);
    }
    ebb_keys_fini(&k);
}

/* keys -> text with | at the caret */
static const struct { const char *name, *keys, *want; } table[] = {
    { "typing", "abc", "abc|" },
    { "Ctrl-A, Ctrl-E", "abc\x01x\x05y", "xabcy|" },
    { "Ctrl-B, Ctrl-F", "abc\x02\x02x\x06y", "axby|c" },
    { "Home and End of the line", "one\ntwo\033[Hx\033[Fy", "one\nxtwoy|" },
    { "Alt-B, Alt-F", "one two\033b\033bx\033fy", "xoney| two" },
    { "Ctrl-arrows", "one two\033[1;5Dx\033[1;5Cy", "one xtwoy|" },
    { "Ctrl-D", "abc\x01\x04", "|bc" },
    { "Backspace joins lines", "a\nb\033[D\x7F", "a|b" },
    { "Ctrl-K to the line's end", "one\ntwo\x10\x01\x0B", "|\ntwo" },
    { "Ctrl-K at the end takes the line end", "one\ntwo\x10\x0B", "one|two" },
    { "Ctrl-U", "one two\033b\x15", "|two" },
    { "Ctrl-W to the blank", "one two-three\x17", "one |" },
    { "Alt-Backspace to the word", "one two-three\033\x7F", "one two-|" },
    { "Alt-D", "one two\x01\033d", "| two" },
    { "Ctrl-Y", "one two\x17\x01\x19", "two|one " },
    { "kills in a row are one", "one two three\x17\x17\x01\x19", "two three|one " },
    { "kills apart are two", "one two\x17\x02\x06\x17\x19", "one |" },
    { "Alt-Y", "one two\x17\x02\x06\x17\x19\033y", "two|" },
    { "Ctrl-T", "abc\x02\x14", "acb|" },
    { "Ctrl-T at the end", "abc\x14", "acb|" },
    { "Ctrl-_ a word at a time", "one two\x1F", "one|" },
    { "Ctrl-_ takes a paste alone", "typed words\033[200~pasted text\033[201~\x1F", "typed words|" },
    { "Ctrl-_ takes the last paste", "ab\033[200~one\033[201~\033[200~two\033[201~\x1F", "abone|" },
    { "Ctrl-_ leaves the paste before", "ab\033[200~one\033[201~cd\x1F", "abone|" },
    { "Ctrl-_ takes a yank alone", "one\x15two\x19\x1F", "two|" },
    { "Ctrl-_ twice", "one two\x1F\x1F", "|" },
    { "Ctrl-_ brings a kill back", "one two\x15\x1F", "one two|" },
    { "Alt-U, Alt-L, Alt-C", "one TWO three\x01\033u\033l\033c", "ONE two Three|" },
    { "Alt-Enter is a new line", "a\033\rb", "a\nb|" },
    { "Up keeps the column", "abcd\nx\nabcd\033[A\033[Ax", "abcdx|\nx\nabcd" },
    { "combining marks are one step", "ae\xCC\x81\x02\x7F", "|e\xCC\x81" },
    { "a flag is one step", "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\x02x", "x|\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA" },
    { "a family goes at once", "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\x7F", "|" },
    { "a mark typed later joins", "e\xCC\x81", "e\xCC\x81|" },
    /* what is typed in front of something that joins it: half a letter of Hindi, half a flag */
    { "half a letter", "\u0937\u093E\x01\u0915\u094D\u0930", "\u0915\u094D\u0930|\u0937\u093E" },
    { "half a flag", "\U0001F1EA\U0001F1F8\x01\U0001F1EB\U0001F1F7",
      "\U0001F1EB\U0001F1F7|\U0001F1EA\U0001F1F8" },
    { "half a family", "\u263A\uFE0F\x01\U0001F468\u200D\U0001F469",
      "\U0001F468\u200D\U0001F469|\u263A\uFE0F" },
    { "a letter before a lone mark", "\u0301b\x01" "ex", "ex|\u0301b" },
    { "undone between", "\u0937\u093E\x01\u0915\u094D \x1F\u0930", "\u0915\u094D\u0930|\u0937\u093E" },
    { "corrected between", "\u0937\u093E\x01\u0915\u094Dx\x7F\u0930", "\u0915\u094D\u0930|\u0937\u093E" },
    { "yanked between", "\u0915\u094D\x15\u0937\u093E\x01\x19\u0930", "\u0915\u094D\u0930|\u0937\u093E" },
    { "pasted between", "\u0937\u093E\x01\033[200~\u0915\u094D\033[201~\u0930", "\u0915\u094D\u0930|\u0937\u093E" },
    { "Backspace takes what was typed", "\U0001F1EA\U0001F1F8\x01\U0001F1EB\x7F", "|\U0001F1EA\U0001F1F8" },
    { "Delete takes what was there", "\U0001F1EA\U0001F1F8\x01\U0001F1EB\x04", "\U0001F1EB|" },
    { "left from where it is drawn", "\u0937\u093Ex\x01\u0915\u094D\x02", "|\u0915\u094D\u0937\u093Ex" },
    { "right from where it is drawn", "\u0937\u093Ex\x01\u0915\u094D\x06", "\u0915\u094D\u0937\u093Ex|" },
    { "up from where it is drawn", "abcd\n\u0937\u093Ex\x01\u0915\u094D\033[A", "abc|d\n\u0915\u094D\u0937\u093Ex" },
    { "words of other scripts", "\xD0\xB6\xD0\xB6 \xD0\xB6\x17", "\xD0\xB6\xD0\xB6 |" },
};

static void keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        ebb_editor e = { 0 };
        ebb_buf got = { 0 };
        type(&e, table[i].keys);
        ebb_buf_add(&got, ebb_buf_text(&e.text), e.text.len);
        ebb_buf_insert(&got, e.caret, "|", 1);
        if (strcmp(ebb_buf_text(&got), table[i].want) != 0)
            fail_msg("%s: got \"%s\", want \"%s\"", table[i].name, ebb_buf_text(&got), table[i].want);
        ebb_buf_fini(&got);
        ebb_editor_fini(&e);
    }
}

static void large_pastes_fold(void **state)
{
    ebb_editor e = { 0 };
    ebb_buf paste = { 0 }, text = { 0 };

    (void)state;
    while (paste.len < 1 << 20)
        ebb_buf_adds(&paste, "a line of it\n");
    type(&e, "a ");
    ebb_editor_paste(&e, paste.data, paste.len);
    type(&e, " b");
    assert_true(e.text.len < 20);
    ebb_editor_text(&e, &text);
    assert_int_equal(text.len, paste.len + 4);
    type(&e, "\x02\x02\x7F");
    assert_string_equal(e.text.data, "a  b");
    type(&e, "\x1F");                            /* undone as one */
    ebb_buf_clear(&text);
    ebb_editor_text(&e, &text);
    assert_int_equal(text.len, paste.len + 4);
    ebb_editor_paste(&e, paste.data, paste.len);
    type(&e, "\x1F");                            /* another one as well, without what was there */
    ebb_buf_clear(&text);
    ebb_editor_text(&e, &text);
    assert_int_equal(text.len, paste.len + 4);
    type(&e, "\x05\x15\x19");                    /* killed and yanked whole */
    ebb_buf_clear(&text);
    ebb_editor_text(&e, &text);
    assert_int_equal(text.len, paste.len + 4);
    ebb_buf_fini(&text);
    ebb_buf_fini(&paste);
    ebb_editor_fini(&e);
}

/* The program may take the text away between two keys: what was yanked is not there to be replaced. */
static void a_yank_of_before(void **state)
{
    ebb_editor e = { 0 };

    (void)state;
    type(&e, "one\x15two\x15\x19");
    ebb_editor_replace(&e, 0, 2, "", 0);
    ebb_editor_key(&e, (ebb_key){ .code = 'y', .mods = EBB_MOD_ALT });
    assert_string_equal(e.text.data, "o");
    ebb_editor_fini(&e);
}

/* However often it is cut, yanked, undone or browsed to. */
static void a_paste_is_kept_once(void **state)
{
    ebb_editor e = { 0 };
    ebb_buf paste = { 0 }, marked = { 0 }, text = { 0 };

    (void)state;
    while (paste.len < 8 << 10)
        ebb_buf_adds(&paste, "a line of it\n");
    ebb_editor_paste(&e, paste.data, paste.len);
    assert_true(ebb_editor_marked(&e, &marked));
    for (int i = 0; i < 20; i++) {
        type(&e, "\x15\x19 \x1F");
        ebb_editor_set(&e, "", 0);
        ebb_editor_set(&e, marked.data, marked.len);
    }
    assert_int_equal(e.n_pastes, 1);
    paste.data[paste.len - 2] = '!';
    ebb_editor_paste(&e, paste.data, paste.len);
    ebb_editor_paste(&e, paste.data, paste.len);
    assert_int_equal(e.n_pastes, 2);
    assert_true(ebb_editor_text(&e, &text));
    assert_int_equal(text.len, 3 * paste.len);
    assert_memory_equal(text.data + paste.len, paste.data, paste.len);
    assert_memory_equal(text.data + 2 * paste.len, paste.data, paste.len);
    assert_int_equal(text.data[paste.len - 2], 't');
    ebb_buf_fini(&text);
    ebb_buf_fini(&marked);
    ebb_buf_fini(&paste);
    ebb_editor_fini(&e);
}

/* There are only so many characters that stand for one: then it names files like any text. */
static void more_pastes_than_can_be_folded(void **state)
{
    static const char lines[] = EBB_MARK_BEGIN "@a\n\n\n\n\n\n\n\n\n" EBB_MARK_END;
    ebb_editor e = { 0 };
    char other[80];

    (void)state;
    for (int i = 0; i < EBB_EDITOR_PASTES; i++) {
        int n = snprintf(other, sizeof other, EBB_MARK_BEGIN "@%d\n\n\n\n\n\n\n\n\n" EBB_MARK_END, i);
        ebb_editor_insert_marked(&e, other, (size_t)n);
    }
    ebb_editor_insert_marked(&e, other, strlen(other));  /* one that is there */
    assert_false(e.is_given);
    ebb_editor_insert_marked(&e, lines, sizeof lines - 1);
    assert_true(e.is_given);
    assert_non_null(strstr(e.text.data, "@a"));
    ebb_editor_fini(&e);
}

static void nobody_forges_a_paste(void **state)
{
    ebb_editor e = { 0 };
    char mark[] = "\xF4\x8F\x80\x80";            /* the first paste's character */

    (void)state;
    ebb_editor_paste(&e, mark, 4);
    type(&e, mark);
    assert_string_equal(e.text.data, "\xEF\xBF\xBD");
    ebb_editor_fini(&e);
}

/* As large as a paste may be, and nothing but such characters: taken in one pass (moving the rest for each takes many
 * minutes). */
static void a_paste_of_forged_pastes(void **state)
{
    enum { N_MARKS = 4 << 20 };
    ebb_editor e = { 0 };
    ebb_buf paste = { 0 }, text = { 0 };

    (void)state;
    assert_true(ebb_buf_reserve(&paste, 4 * (size_t)N_MARKS));
    while (paste.len < 4 * (size_t)N_MARKS)
        ebb_buf_add(&paste, "\xF4\x8F\x80\x80", 4);
    ebb_editor_paste(&e, paste.data, paste.len);
    assert_true(ebb_editor_text(&e, &text));
    assert_int_equal(text.len, 3 * (size_t)N_MARKS);
    for (size_t i = 0; i < text.len; i += 3)
        assert_memory_equal(text.data + i, "\xEF\xBF\xBD", 3);
    ebb_buf_fini(&paste);
    ebb_buf_fini(&text);
    ebb_editor_fini(&e);
}

static void drawn(void **state)
{
    ebb_editor e = { 0 };
    ebb_term *t = ebb_term_mem(4, 12);
    int row, col;

    (void)state;
    type(&e, "hello \xE4\xBD\xA0\xE5\xA5\xBD\xE4\xBD\xA0 x");
    ebb_editor_paste(&e, "\033[2J", 4);
    assert_int_equal(ebb_editor_layout(&e, 10), 2);
    t->ops->clear(t);
    ebb_editor_draw(&e, t, 0, 2, 4, &row, &col);
    t->ops->flush(t, row, col);
    assert_string_equal(ebb_term_mem_screen(t), "  hello \u4F60\u597D\n  \u4F60 x\u241B[2J\n\n\n");
    assert_int_equal(row, 1);
    assert_int_equal(col, 10);
    t->ops->close(t);
    ebb_editor_fini(&e);
}

/* Of a message that a file or an editor has made; a file that went along is folded, and stays what it was. */
static void lines_of_dos(void **state)
{
    static const char lines[] = "one\r\ntwo\rthree\r\n\r\n";
    static const char file[] = EBB_MARK_BEGIN "a\r\nb\r\n" EBB_MARK_END;
    ebb_editor e = { 0 };
    ebb_buf text = { 0 };

    (void)state;
    ebb_editor_set(&e, lines, sizeof lines - 1);
    assert_string_equal(ebb_buf_text(&e.text), "one\ntwo\rthree\n\n");
    assert_int_equal(ebb_editor_layout(&e, 20), 4);
    ebb_editor_set(&e, file, sizeof file - 1);
    assert_true(ebb_editor_text(&e, &text));
    assert_string_equal(ebb_buf_text(&text), "a\r\nb\r\n");
    ebb_buf_fini(&text);
    ebb_editor_fini(&e);
}

/* Wherever the caret goes in any text, it stands at a cluster's beginning. */
static void caret_stays_between_clusters(void **state)
{
    ebb_editor e = { 0 };
    ebb_buf text = { 0 };
    ebb_error err;
    uint32_t seed = 7;

    (void)state;
    assert_int_equal(ebb_file_slurp(ebb_test_shared_path("data/unicode/UTF-8-demo.txt"), 1 << 20, &text, &err), EBB_OK);
    ebb_editor_insert(&e, text.data, 3000);
    ebb_editor_layout(&e, 40);
    for (int i = 0; i < 3000; i++) {
        static const char *const moves[] = { "\x02", "\x06", "\033[A", "\033[B", "\033b", "\033f", "\x01", "\x05",
                                             "\x7F", "\x04", "\x14", "x", "\x1F", "\xCC\x81" };
        size_t at = 0, caret = e.caret, n_edits = e.n_edits;
        seed = seed * 1664525u + 1013904223u;
        type(&e, moves[(seed >> 16) % 14]);
        if (e.n_edits != n_edits || e.caret == caret)
            continue;                            /* after an edit it is where that ended */
        while (at < e.caret)
            at += ebb_cluster_next(e.text.data + at, e.text.len - at, NULL);
        assert_int_equal(at, e.caret);
    }
    ebb_buf_fini(&text);
    ebb_editor_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys),
        cmocka_unit_test(large_pastes_fold),
        cmocka_unit_test(a_yank_of_before),
        cmocka_unit_test(a_paste_is_kept_once),
        cmocka_unit_test(more_pastes_than_can_be_folded),
        cmocka_unit_test(nobody_forges_a_paste),
        cmocka_unit_test(a_paste_of_forged_pastes),
        cmocka_unit_test(drawn),
        cmocka_unit_test(lines_of_dos),
        cmocka_unit_test(caret_stays_between_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
