/* Commands, as they are typed into a conversation. */
#include "ebb_test.h"

#include "tui/screen.h"

static void commands(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "/bogus now\r");
    assert_has(&s, "! no command /bogus");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "//slash\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "/slash");
    screen_answer(&s, "ok");
    screen_keys(&s, "/undo\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    assert_has(&s, "\n> //slash\n");            /* in the editor, as it must be typed to be put otherwise */
    screen_keys(&s, "\x15");
    screen_keys(&s, "/undo\r");
    assert_has(&s, "! there is nothing to undo");
    screen_keys(&s, "/redo\r");
    assert_has(&s, "> /slash");
    screen_keys(&s, "/set temp 0.1\r");
    assert_has(&s, "  temp = 0.1 (0 to 2)");
    screen_keys(&s, "/load trip\r");
    assert_has(&s, "> Where to?\n\nTo the sea.\n");
    screen_keys(&s, "/save sea\r");
    assert_has(&s, "* saved as sea");
    screen_keys(&s, "/list\r");
    assert_has(&s, "2 messages  trip");
    screen_keys(&s, "/theme nope\r");
    assert_has(&s, "! there is no theme 'nope'");
    screen_keys(&s, "/theme light\r");
    assert_string_equal(s.app.frontend.theme, "light");
    screen_keys(&s, "/copy\r");
    assert_has(&s, "11 bytes sent to the terminal");
    assert_string_equal(ebb_buf_text(ebb_term_mem_sent(s.term)), "\033]52;c;VG8gdGhlIHNlYS4=\a");
    screen_keys(&s, "/quit\r");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

#define PASTE(TEXT) "\033[200~" TEXT "\033[201~"
#define LINES "\n2\n3\n4\n5\n6\n7\n8\n9"

/* What is folded was not read by anybody: it is text, whatever it begins with. */
static void a_folded_paste_is_no_command(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 100);
    screen_keys(&s, PASTE("/system obey the paste" LINES) "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "/system obey the paste" LINES);
    screen_answer(&s, "ok");
    screen_keys(&s, PASTE("/usr/bin/ld: cannot find -lfoo" LINES "\n") "what is this?\r");
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "/usr/bin/ld: cannot find -lfoo" LINES "\nwhat is this?");
    screen_answer(&s, "ok");
    screen_keys(&s, PASTE("!exit 1 #" LINES) "\r");
    assert_string_equal(ebb_chat_message(s.chat, 4)->text, "!exit 1 #" LINES);
    screen_answer(&s, "ok");
    screen_keys(&s, "!" PASTE("exit 1 #" LINES) "\r\r");
    assert_has(&s, "a command with a folded paste does not run; a blank before ! sends it as text");
    assert_false(ebb_command_output_is_running(&s.app.output));
    screen_keys(&s, "\x15/" PASTE("new\n#" LINES) "\r");
    assert_has(&s, "the name of that command is folded; a blank before / sends it as text");
    assert_int_equal(ebb_chat_n_messages(s.chat), 6);
    screen_keys(&s, "\x15/system" PASTE("\nbe brief" LINES) "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "be brief" LINES);
    screen_close(&s);
}

/* One that is folded since it is huge is what it was: a command, or a message that begins like one. */
static void a_huge_line_keeps_its_beginning(void **state)
{
    ebb_buf line = { 0 };
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 100);
    ebb_buf_adds(&line, "/system be");
    while (line.len < 70000)
        ebb_buf_adds(&line, " brief");
    ebb_editor_set(&s.app.editor, line.data, line.len);
    screen_keys(&s, "");
    assert_has(&s, "> /system[pasted 69,");
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, line.data + strlen("/system "));
    assert_int_equal(ebb_chat_message(s.chat, 0)->role, EBB_ROLE_SYSTEM);
    fake_add(s.chat, EBB_ROLE_USER, line.data);
    screen_keys(&s, "/edit\r");
    assert_has(&s, "> //system[pasted 69,");
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 1)->text, line.data);
    ebb_buf_fini(&line);
    screen_close(&s);
}

/* What is not saved is not left without a word. */
static void short_titles(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 16, 60);
    screen_keys(&s, "/title hi\r");
    assert_has(&s, "  layers 6/8 ####==*.                                    hi\n");
    screen_close(&s);
}

static void leaving_unsaved(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 90);
    fake_unsaved(s.chat, "sessions.db cannot grow");
    screen_keys(&s, "\x04");
    assert_false(s.app.frontend.quit);
    assert_has(&s, "sessions.db cannot grow (/save ./NAME.json writes a file");
    screen_keys(&s, "\x04");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

/* Of answers: shown in the status line while there is one. */
static void a_form(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 120);
    screen_keys(&s, "/schema\r");
    assert_has(&s, "answers have no form");
    assert_lacks(&s, "JSON book.json");
    screen_keys(&s, "/schema wrong\r");
    assert_has(&s, "wrong: no schema");
    screen_keys(&s, "/schema book.json\r");
    assert_has(&s, "answers are JSON under the schema book.json from here on");
    screen_keys(&s, "x");
    assert_has(&s, "JSON book.json");
    screen_keys(&s, "\x7f/schema off\r");
    screen_keys(&s, "x");
    assert_lacks(&s, "JSON book.json");
    screen_close(&s);
}

/* With an empty input, too: what is typed then is a question, not the answer's beginning. */
static void an_edit_can_be_left(void **state)
{
    static const char *const begins[] = { "/cut\r", "/edit\r" };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        screen_open_ready(&s, 24, 80);
        screen_keys(&s, "one\r");
        screen_answer(&s, "A");
        screen_keys(&s, begins[i]);
        screen_keys(&s, "\x15\x15");
        assert_true(ebb_editor_is_empty(&s.app.editor));
        assert_has(&s, "Ctrl-C leaves it");
        screen_keys(&s, "\r");
        assert_has(&s, "there is no text to send; Ctrl-C leaves the message as it was");
        screen_keys(&s, "\x03");
        assert_lacks(&s, "leaves");
        screen_keys(&s, "two\r");
        assert_int_equal(ebb_chat_n_messages(s.chat), 4);
        assert_string_equal(ebb_chat_message(s.chat, 1)->text, "A");
        assert_string_equal(ebb_chat_message(s.chat, 2)->text, "two");
        screen_close(&s);
    }
}

/* What was a message is one again, however it begins; and a blank makes one, and is not of it. */
static void a_message_is_no_command(void **state)
{
    static const char *const begins[] = { "!touch x", "\"\"\"open: what is it", " !a", "/a" };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        char want[40];

        screen_open_ready(&s, 24, 80);
        fake_add(s.chat, EBB_ROLE_USER, begins[i]);
        fake_add(s.chat, EBB_ROLE_ASSISTANT, "A");
        screen_keys(&s, "/edit 1\r");
        screen_keys(&s, "\r");
        assert_int_equal(ebb_chat_n_messages(s.chat), 2);
        assert_string_equal(ebb_chat_message(s.chat, 0)->text, begins[i]);
        screen_answer(&s, "A");
        screen_keys(&s, "/undo\r");
        screen_keys(&s, "x\r");
        snprintf(want, sizeof want, "%sx", begins[i]);
        assert_string_equal(ebb_chat_message(s.chat, 0)->text, want);
        screen_keys(&s, i == 3 ? "//b\r" : " !b\r");
        screen_keys(&s, "\x18");
        screen_answer(&s, "A");
        screen_keys(&s, "\r");
        assert_string_equal(ebb_chat_message(s.chat, 2)->text, i == 3 ? "/b" : "!b");
        screen_close(&s);
    }
}

/* Whoever does something else with a message has left the edit. */
static void another_act_leaves_an_edit(void **state)
{
    static const char letters[] = "pbr";
    screen s;

    (void)state;
    for (size_t i = 0; letters[i]; i++) {
        char key[] = { letters[i], '\0' };

        screen_open_ready(&s, 24, 80);
        screen_keys(&s, "one\r");
        screen_answer(&s, "A");
        screen_keys(&s, "/edit\r\x15");
        assert_true(ebb_frontend_edits(&s.app.frontend));
        screen_keys(&s, "\033[1;3A");
        screen_keys(&s, key);
        assert_false(ebb_frontend_edits(&s.app.frontend));
        screen_close(&s);
    }
}

/* While a file is read keys are answered, and it can be stopped. */
static void a_job(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 120);
    fake_add(s.chat, EBB_ROLE_USER, "a question");
    fake_job(s.chat, "importing", 0.4);
    screen_keys(&s, "/edit\r");
    assert_has(&s, "a file is being read: stop that first");
    screen_keys(&s, "while it is read");
    assert_has(&s, "while it is read");
    screen_step(&s, 1);
    assert_has(&s, "importing");
    assert_has(&s, "40%");
    assert_has(&s, "Esc stops");
    screen_keys(&s, "\r\x04");                   /* waits for its end, like behind an answer; leaving is asked about */
    assert_has(&s, "importing is at 40 %: the same again leaves, and none of it is kept");
    assert_false(s.app.frontend.quit);
    assert_int_equal(ebb_chat_n_messages(s.chat), 1);
    screen_keys(&s, "\x03");
    assert_has(&s, "stopped: nothing from old.json is kept");
    screen_step(&s, 1);
    assert_lacks(&s, "40%");                     /* the status line's */
    screen_close(&s);
}

static void template_of_the_session(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 120);
    screen_keys(&s, "/set template\r");
    assert_has(&s, "template = auto (auto, none, a family like chatml, or a file)");
    screen_keys(&s, "/set template wrong\r");
    assert_has(&s, "there is no template wrong");
    screen_keys(&s, "/set template chatml\r");
    assert_has(&s, "* chat template: another\n");
    screen_keys(&s, "/set\r");
    assert_has(&s, "\n  template = chatml   how messages become a prompt\n");
    assert_has(&s, "\n  temp = 0.7          warmth\n");      /* not its range */
    assert_has(&s, "\n  ctx = ");
    ebb_term_mem_resize(s.term, 24, 36);         /* too narrow for two columns: further rows are set in a little */
    screen_keys(&s, "");
    assert_has(&s, "how messages\n    become a prompt\n");
    screen_close(&s);
}

/* Who is here for the first time hears of the other way to look; inline, and later, nobody does. */
static void inline_is_offered(void **state)
{
    static const char offer[] = "ebb --inline leaves the conversation in the terminal's own scrollback.";
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 100);
    s.app.greeting.is_first_run = true;
    screen_keys(&s, "\x0c");
    assert_has(&s, offer);
    s.app.greeting.is_first_run = false;
    screen_keys(&s, "\x0c");
    assert_null(strstr(screen_text(&s), offer));
    screen_close(&s);
}

static void help_names_every_command(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 96, 99);
    screen_keys(&s, "/help\r");
    static const char *const names[] = { "/retry", "/set [NAME [VALUE]]", "/quit", "Alt-Enter, Ctrl-J",
                                         "/system [TEXT]" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_has(&s, names[i]);
    assert_has(&s, "\n  Sessions");                    /* in groups */
    assert_has(&s, "\n  /engine [NAME [MODEL]]\n                      Show the engines");
    screen_close(&s);
}

/* What is longer than the window is read from its beginning; the next line of ebb shows the end again. */
static void help_begins_at_its_top(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "/help\r");
    assert_has(&s, "  /help [COMMAND]     List commands and keys");
    assert_has(&s, "\n                      costs.");  /* a row that goes on is below its explanation */
    assert_has(&s, "PgDn: more, Alt-End: to the end");
    screen_keys(&s, "\033[6~");
    assert_lacks(&s, "/help [COMMAND]");
    screen_keys(&s, "\033OP");                   /* F1 */
    assert_has(&s, "  /help [COMMAND]     List commands and keys");
    screen_keys(&s, "/title\r");
    assert_has(&s, "Ctrl-D              On an empty line: leave.");
    assert_true(s.app.view.is_bottom);
    screen_keys(&s, "half a line\033[21~");      /* F10 */
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

/* What ebb said in one session is of no use in another. */
static void another_session_begins_clean(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "/nonsense\r");
    assert_has(&s, "! no command /nonsense");
    screen_keys(&s, "\x15/temp 0.5\r");          /* a setting is changed as people write it */
    assert_has(&s, "temp = 0.5");
    screen_keys(&s, "/new\r");
    assert_lacks(&s, "nonsense");
    screen_keys(&s, "/nonsense\r/load trip\r");
    assert_lacks(&s, "nonsense");
    assert_has(&s, "> Where to?");
    screen_close(&s);
}

/* The same answer again is no fault, and that is said. */
static void retry_at_zero(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 100);
    screen_keys(&s, "first\r");
    screen_answer(&s, "An answer.");
    screen_keys(&s, "/retry\r");
    assert_lacks(&s, "at temperature 0");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/retry 4\r");
    assert_int_equal(fake_n_answers(s.chat), 4);
    assert_has(&s, "4 answers are being written side by side");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_keys(&s, "/retry 17\r/retry 0\r/retry many\r");
    assert_int_equal(fake_n_answers(s.chat), 4);
    assert_has(&s, "/retry 17: give how many answers, 1 to 16");
    assert_has(&s, "/retry many: give how many answers");
    screen_keys(&s, "/set parameter temp 0\r/retry\r");
    assert_int_equal(fake_n_answers(s.chat), 1);
    assert_has(&s, "at temperature 0 the same question gives the same answer");
    screen_close(&s);
}

/* A question that was put back gives way to a command, and only to one. */
static void command_after_undo(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "first\r");
    screen_answer(&s, "An answer.");
    screen_keys(&s, "/undo\r");
    assert_has(&s, "> first");
    screen_keys(&s, "/title\r");
    assert_has(&s, "title: ");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "and/or");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "and/or");
    screen_close(&s);
}

/* Hands that know other programs, or none. */
static void beginners(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 20, 100);
    screen_keys(&s, "exit\r");
    assert_has(&s, "/quit is the command; Enter again sends 'exit' as a message");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    screen_keys(&s, "another\r");
    assert_has(&s, "queued; Ctrl-X takes it back");
    screen_keys(&s, "\x18\x15");
    screen_keys(&s, "\x03");
    assert_has(&s, "stopped; Enter on an empty line continues");
    screen_keys(&s, "/ex");
    screen_step(&s, 0.2);
    assert_has(&s, "export    Write this session");
    screen_keys(&s, "port x");
    screen_step(&s, 0.2);
    assert_has(&s, "/export [FILE]");
    screen_keys(&s, "\x15/exprot\r");
    assert_has(&s, "no command /exprot; did you mean /export?");
    screen_keys(&s, "/clear\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    for (int i = 0; i < 20; i++)
        fake_add(s.chat, EBB_ROLE_USER, "line");
    ebb_transcript_sync(&s.app.view);
    screen_text(&s);
    screen_keys(&s, "\033OA\033OA\033OA");       /* the wheel, as many terminals send it */
    assert_false(s.app.view.is_bottom);
    screen_keys(&s, "\033");
    assert_true(s.app.view.is_bottom);
    screen_keys(&s, "/bye\r");
    assert_true(s.app.frontend.quit);
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands),
        cmocka_unit_test(a_folded_paste_is_no_command),
        cmocka_unit_test(a_huge_line_keeps_its_beginning),
        cmocka_unit_test(short_titles),
        cmocka_unit_test(leaving_unsaved),
        cmocka_unit_test(a_form),
        cmocka_unit_test(an_edit_can_be_left),
        cmocka_unit_test(a_message_is_no_command),
        cmocka_unit_test(another_act_leaves_an_edit),
        cmocka_unit_test(a_job),
        cmocka_unit_test(template_of_the_session),
        cmocka_unit_test(inline_is_offered),
        cmocka_unit_test(help_names_every_command),
        cmocka_unit_test(help_begins_at_its_top),
        cmocka_unit_test(another_session_begins_clean),
        cmocka_unit_test(retry_at_zero),
        cmocka_unit_test(command_after_undo),
        cmocka_unit_test(beginners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
