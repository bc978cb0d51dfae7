/* Keys and pastes, and the place in the text that they move. */
#include "ebb_test.h"

#include "tui/screen.h"

static void several_lines(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "one\\\rtwo\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one\ntwo");
    screen_answer(&s, "");
    screen_keys(&s, "\"\"\"\rthree\rfour\r\"\"\"\r");
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "three\nfour");
    screen_answer(&s, "");
    screen_keys(&s, "\"\"\"doc\"\"\" of code\r");              /* its own quotes, and closed */
    assert_string_equal(ebb_chat_message(s.chat, 4)->text, "\"\"\"doc\"\"\" of code");
    screen_close(&s);
}

/* A usage that takes the whole row leaves no mark of what had no room. */
static void a_long_message_takes_the_row(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "/load x");
    screen_step(&s, 0.2);
    assert_has(&s, "  /load NAME: Open another session, by name, number or ti...\n");
    screen_close(&s);
    screen_open_ready(&s, 12, 90);
    screen_keys(&s, "/undo");
    screen_step(&s, 0.2);
    assert_has(&s, "undo      Take back the last question and its answer.");
    screen_close(&s);
}

static void scrolling(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 40);
    screen_keys(&s, "count\r");
    for (int i = 1; i <= 30; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %d\n", i);
        fake_text(s.chat, line);
    }
    assert_has(&s, "line 30\n");
    screen_keys(&s, "\033[5~\033[5~");
    assert_lacks(&s, "line 30\n");
    assert_has(&s, "line 12\n");
    assert_has(&s, "Alt-End: to the end");
    screen_keys(&s, "?");
    assert_has(&s, "PgUp PgDn: page");
    assert_has(&s, "line 12\n");
    screen_keys(&s, "\033[6~\033[5~");
    const char *before = strdup(screen_text(&s));
    fake_text(s.chat, "line 31\n");
    assert_has(&s, "v new text below");
    assert_memory_equal(before, screen_text(&s), (size_t)(strstr(before, "PgDn") - before - 1));
    free((char *)before);
    screen_keys(&s, "\033[1;3F");
    assert_has(&s, "line 31\n");
    screen_keys(&s, "\033[1;3H");
    assert_has(&s, "> count\n\nline 1\n");
    for (int i = 0; i < 10; i++)
        screen_keys(&s, "\033[6~");
    assert_has(&s, "line 31\n");
    assert_true(s.app.view.is_bottom);
    screen_keys(&s, "\033[5~\033");              /* back to the end; the answer goes on */
    screen_step(&s, 1);
    assert_true(s.app.view.is_bottom);
    assert_true(ebb_chat_is_busy(s.chat));
    screen_keys(&s, "\033");
    screen_step(&s, 1);
    assert_false(ebb_chat_is_busy(s.chat));
    screen_close(&s);
}

/* All that the hint about keys says can be read on a usual terminal. */
static void keys_of_looking_back(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 80);
    screen_keys(&s, "count\r");
    screen_answer(&s, "1\n\n2\n\n3\n\n4\n\n5\n\n6\n\n7\n\n8\n\n9\n");
    screen_keys(&s, "\033[5~?");
    assert_has(&s, "Esc: the end");
    assert_has(&s, "Ctrl-S: find");
    screen_close(&s);
}

/* The status says what Esc does now: the end first, then it stops. */
static void escape_is_what_it_says(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 100);
    screen_keys(&s, "count\r");
    fake_text(s.chat, "1\n\n2\n\n3\n\n4\n\n5\n\n6\n\n7\n\n8\n\n9\n");
    screen_step(&s, 1);
    assert_has(&s, " - Esc stops\n");
    screen_keys(&s, "\033[5~");
    assert_has(&s, " - Esc: the end\n");
    assert_lacks(&s, "Esc stops");
    screen_keys(&s, "\033");
    screen_step(&s, 1);
    assert_has(&s, " - Esc stops\n");
    assert_true(ebb_chat_is_busy(s.chat));
    screen_close(&s);
}

static void resize_keeps_the_place(void **state)
{
    screen s;
    ebb_buf text = { 0 };

    (void)state;
    screen_open_ready(&s, 20, 90);
    screen_keys(&s, "go\r");
    for (int i = 0; i < 300; i++)
        ebb_buf_addf(&text, "word%d ", i);
    fake_text(s.chat, text.data);
    screen_step(&s, 0.1);
    screen_keys(&s, "\033[1;3H\033[1;5B\033[6;5~\033[6;5~\033[6;5~\033[6;5~\033[6;5~\033[6;5~");
    const char *top = screen_text(&s);
    size_t n = strcspn(top, " \n");
    char word[32] = "";
    memcpy(word, top, n);
    for (int cols = 89; cols > 30; cols -= 7) {
        ebb_term_mem_resize(s.term, 20, cols);
        const char *now = screen_text(&s);
        size_t first_row = strcspn(now, "\n");
        const char *at = strstr(now, word);
        assert_non_null(at);
        assert_true(at < now + first_row);
    }
    ebb_buf_fini(&text);
    screen_close(&s);
}

static void history_keys(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "/set temp 1\r/list\rdraft\033[A");
    assert_has(&s, "\n> /list\n");
    screen_keys(&s, "\033[A");
    assert_has(&s, "\n> /set temp 1\n");
    screen_keys(&s, "\033[B\033[B");
    assert_has(&s, "\n> draft\n");
    screen_keys(&s, "\x12temp");
    assert_has(&s, "search: temp");
    assert_has(&s, "\n> /set temp 1\n");
    screen_keys(&s, "\x07");
    assert_has(&s, "\n> draft\n");
    screen_close(&s);
}

/* A line that was found is one of the history: what was typed is below it, and the arrows go on from there. */
static void history_found(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "/set temp 1\r/list\rdraft\x12temp\x05");
    assert_has(&s, "\n> /set temp 1\n");
    screen_keys(&s, "\033[B");
    assert_has(&s, "\n> /list\n");
    screen_keys(&s, "\033[B");
    assert_has(&s, "\n> draft\n");
    screen_keys(&s, "\x12temp\033[200~!\033[201~");
    assert_has(&s, "\n> /set temp 1!\n");
    screen_keys(&s, "\033[B\033[B");
    assert_has(&s, "\n> draft\n");
    ebb_vi_set(&s.app.vi, &s.app.editor, true);
    screen_keys(&s, "\033");
    screen_step(&s, 1);
    screen_keys(&s, "/s\r");
    assert_has(&s, "\n> /list\n");
    screen_keys(&s, "j");
    assert_has(&s, "\n> draft\n");
    screen_keys(&s, "n");
    assert_has(&s, "\n> /set temp 1\n");
    screen_keys(&s, "jj");
    assert_has(&s, "\n> draft\n");
    screen_close(&s);
}

static void big_paste_is_folded(void **state)
{
    screen s;
    ebb_buf paste = { 0 };

    (void)state;
    screen_open_ready(&s, 12, 60);
    ebb_buf_adds(&paste, "\033[200~");
    for (int i = 0; i < 1204; i++)
        ebb_buf_addf(&paste, "%d\033[31m\r\n", i);
    ebb_buf_adds(&paste, "\033[201~");
    screen_keys(&s, "see ");
    ebb_term_mem_feed(s.term, paste.data, paste.len);
    screen_step(&s, 0);
    screen_keys(&s, " please");
    assert_has(&s, "\n> see [pasted 1,204 lines] please\n");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "\r");
    const ebb_message *m = ebb_chat_message(s.chat, 0);
    assert_memory_equal(m->text, "see 0\033[31m\n1", 12);
    assert_string_equal(m->text + m->n_text - 8, "\n please");
    assert_has(&s, "\u241B[31m");                /* never raw */
    assert_null(strchr(screen_text(&s), '\033'));
    ebb_buf_fini(&paste);
    screen_close(&s);
}

/* Nothing is dropped silently. */
static void what_a_paste_loses_is_said(void **state)
{
    ebb_buf paste = { 0 };
    screen s;

    (void)state;
    screen_open(&s, 20, 100, "");
    fake_ready(s.chat);
    ebb_buf_adds(&paste, "\033[200~");
    for (size_t i = 0; i < EBB_PASTE_BYTES + 5; i++)
        ebb_buf_addc(&paste, 'x');
    ebb_buf_adds(&paste, "\033[201~");
    ebb_term_mem_feed(s.term, paste.data, paste.len);
    screen_keys(&s, "y");
    assert_has(&s, "! the paste is cut off after 16777216 bytes: 5 more are not in it; 16 MiB at once are kept\n");
    for (size_t i = 6; i < paste.len - 6; i++)
        paste.data[i] = (char)0xFF;              /* no text: three bytes for each stand in its place */
    ebb_term_mem_feed(s.term, paste.data, paste.len);
    screen_keys(&s, "y");
    assert_has(&s, "! the paste is cut off after 5592405 bytes: 11184816 more are not in it; ");
    ebb_buf_fini(&paste);
    screen_close(&s);
}

static void esc_sends_what_waits(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "one\rtwo\r");
    fake_text(s.chat, "A long");
    assert_has(&s, "waits: two");
    screen_keys(&s, "\x1b");
    screen_step(&s, 0.2);                        /* no sequence follows */
    screen_step(&s, 0.1);
    assert_lacks(&s, "waits: two");
    assert_has(&s, "stopped; what waits goes next");     /* there is nothing that an empty line continues */
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    assert_string_equal(ebb_chat_message(s.chat, 1)->text, "A long");
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "two");
    assert_true(ebb_chat_is_busy(s.chat));
    screen_close(&s);
}

/* However long they are: Ctrl-X takes one that has no row. */
static void all_that_waits_is_counted(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 14, 40);
    screen_keys(&s, "one\r");
    for (int i = 0; i < 5; i++)
        screen_keys(&s, "a question that is longer than a row is\r");
    assert_has(&s, "waits: a question that is longer than...\n");
    assert_has(&s, "waits: a question that ...  (and 2 more)\n");
    screen_keys(&s, "\x18");
    assert_has(&s, "  (and 1 more)\n");
    screen_close(&s);
}

static void a_command_ends_an_edit(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 16, 60);
    screen_keys(&s, "one\r");
    screen_answer(&s, "");
    screen_keys(&s, "/edit 1\r");
    assert_has(&s, "\n> one\n");
    screen_keys(&s, "\x15/new\r");
    screen_keys(&s, "two\r");
    assert_lacks(&s, "there is no message");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "two");
    screen_close(&s);
}

static void ctrl_l_draws_all_of_it(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "a draft");
    size_t before = ebb_term_mem_changes(s.term), n_seen = 0;
    for (const char *c = screen_text(&s); *c; c++)
        n_seen += *c != ' ' && *c != '\n';
    screen_keys(&s, "\x0c");
    assert_true(ebb_term_mem_changes(s.term) - before >= n_seen);
    assert_has(&s, "\n> a draft\n");
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_lines),
        cmocka_unit_test(a_long_message_takes_the_row),
        cmocka_unit_test(scrolling),
        cmocka_unit_test(keys_of_looking_back),
        cmocka_unit_test(escape_is_what_it_says),
        cmocka_unit_test(resize_keeps_the_place),
        cmocka_unit_test(history_keys),
        cmocka_unit_test(history_found),
        cmocka_unit_test(big_paste_is_folded),
        cmocka_unit_test(what_a_paste_loses_is_said),
        cmocka_unit_test(esc_sends_what_waits),
        cmocka_unit_test(all_that_waits_is_counted),
        cmocka_unit_test(a_command_ends_an_edit),
        cmocka_unit_test(ctrl_l_draws_all_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
