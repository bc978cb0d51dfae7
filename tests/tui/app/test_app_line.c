/* What comes for the line while something else stands in its place: an editor, a search, the history. */
#include "ebb_test.h"

#include "os/file.h"
#include "support/own_folder.h"
#include "tui/screen.h"

static const char *path_here(const char *name)
{
    static char path[100];

    snprintf(path, sizeof path, "%s/%s", ebb_own_dir, name);
    return path;
}

static void put(const char *name, const char *text)
{
    ebb_error err;

    assert_int_equal(ebb_file_replace(path_here(name), text, strlen(text), &err), EBB_OK);
}

/* "older" is what was said; the command runs that prints 1 to 20. */
static void open_with_command(screen *s, const char *state_dir)
{
    screen_open(s, 24, 100, state_dir);
    fake_ready(s->chat);
    screen_step(s, 1);
    screen_keys(s, "older\r");
    screen_answer(s, "ok");
    screen_keys(s, "!");
    screen_keys(s, screen_hold("seq 20"));
    screen_keys(s, "\r\r");
    assert_true(ebb_command_output_is_running(&s->app.output));
}

/* Ctrl-G; the editor does `command` to the file when it is told to. */
static void begin_editor(screen *s, const char *command)
{
    static char editor[400];
    static ebb_tui_opts opts;

    unlink(path_here("save"));
    snprintf(editor, sizeof editor, "sh -c 'until [ -e %s ]; do sleep 0.01; done; %s' ", path_here("save"), command);
    opts = *s->app.frontend.opts;
    opts.editor = editor;
    s->app.frontend.opts = &opts;
    screen_keys(s, "\x07");
    assert_true(ebb_app_is_lent(&s->app));
}

static void end_editor(screen *s)
{
    put("save", "");
    screen_wait_editor(s);
    screen_step(s, 0);
}

/* It stands in front of what the editor gives back; nothing is there twice, and pastes stay folded. */
static void an_output_behind_an_editor(void **state)
{
    screen s;

    (void)state;
    put("diary.txt", "DIARY\n");
    open_with_command(&s, "");
    screen_keys(&s, "what is it");
    begin_editor(&s, "printf \" in French\" >>\"$0\"");
    screen_go_on(&s);
    assert_int_equal(s.app.editor.text.len, strlen("what is it"));
    end_editor(&s);
    assert_has(&s, "> [pasted 24 lines]what is it in French\n");
    assert_has(&s, "the output is attached");
    screen_close(&s);

    open_with_command(&s, "");
    screen_keys(&s, "sum up: \033[200~1\n2\n3\n4\n5\n6\n7\n8\nsee @");
    screen_keys(&s, path_here("diary.txt"));
    screen_keys(&s, "\033[201~");
    begin_editor(&s, "printf \" in French\" >>\"$0\"");
    screen_go_on(&s);
    end_editor(&s);
    assert_has(&s, "> [pasted 24 lines]sum up: [pasted 9 lines] in French\n");
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    assert_null(strstr(ebb_chat_message(s.chat, 2)->text, "DIARY"));
    screen_close(&s);
}

/* What was copied out of a folded paste there, or pasted there, is typed by nobody here. */
static void what_an_editor_gives_back_is_asked_about(void **state)
{
    screen s;

    (void)state;
    put("diary.txt", "DIARY\n");
    screen_open_ready(&s, 24, 120);
    screen_keys(&s, "sum up: \033[200~1\n2\n3\n4\n5\n6\n7\n8\nsee @");
    screen_keys(&s, path_here("diary.txt"));
    screen_keys(&s, "\033[201~");
    screen_edit(&s, "f() { set -- \"$1\" \"$(tail -n 1 \"$1\")\"; printf \"\\n%s\" \"$2\" >>\"$1\"; }; f");
    assert_has(&s, "> sum up: [pasted 9 lines]\n  see @");
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 0);
    assert_has(&s, "diary.txt goes along; Enter again sends both");
    screen_keys(&s, "\x03see @");
    screen_keys(&s, path_here("diary.txt"));
    screen_keys(&s, " ");
    screen_edit(&s, "true");                     /* as it was: it is what was typed */
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    screen_close(&s);
}

/* What it begins with is no file, as long as none has gone along: that of the user is not left out. */
static void what_an_editor_writes_is_no_file(void **state)
{
    static const char write_it[] = "f() { printf '%s:\n```txt\nSTRANGE\n```\n\nlike @%s ?' \"$D\" \"$D\" >\"$1\"; }; f";
    screen s;

    (void)state;
    put("diary.txt", "DIARY\n");
    setenv("D", path_here("diary.txt"), 1);
    screen_open_ready(&s, 24, 120);
    screen_edit(&s, write_it);
    screen_keys(&s, "\r\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_non_null(strstr(ebb_chat_message(s.chat, 0)->text, "DIARY"));
    assert_non_null(strstr(ebb_chat_message(s.chat, 0)->text, "STRANGE"));
    screen_close(&s);
}

/* A message that waits for its document is not sent while somebody is at it. */
static void a_document_behind_an_editor(void **state)
{
    static ebb_filters filters;
    screen s;

    (void)state;
    put("page.txt", "PAGE\n");
    ebb_filters_init(&filters, &(ebb_filter_choice){ ".txt", 4, screen_hold("cat") }, 1);
    for (int is_search = 0; is_search < 2; is_search++) {
        screen_open_ready(&s, 24, 120);
        s.app.documents.filters = &filters;
        screen_hold("cat");
        screen_keys(&s, "sum up @");
        screen_keys(&s, path_here("page.txt"));
        screen_keys(&s, " \r");
        assert_true(ebb_documents_is_running(&s.app.documents));
        if (is_search)
            screen_keys(&s, "\x12sum");
        else
            begin_editor(&s, "printf \"in French\" >>\"$0\"");
        screen_go_on(&s);
        assert_int_equal(ebb_chat_n_messages(s.chat), 0);
        if (is_search)
            screen_keys(&s, "\x07");
        else
            end_editor(&s);
        if (!is_search)
            assert_has(&s, "the document has been read; Enter sends it");
        assert_has(&s, is_search ? "page.txt\n" : "page.txt in French\n");
        screen_keys(&s, is_search ? "\r" : "\r\r");      /* the editor's text is asked about */
        assert_int_equal(ebb_chat_n_messages(s.chat), 2);
        assert_non_null(strstr(ebb_chat_message(s.chat, 0)->text, "PAGE"));
        screen_close(&s);
    }
}

/* It is in front of the own line, whatever is shown when it comes. */
static void an_output_below_the_history(void **state)
{
    static const struct { const char *typed, *want, *below; } t[] = {
        { "\033[A\033[A", "> [pasted 24 lines]older\n", "> [pasted 24 lines]older\n" },
        { "mine\033[A\033[A", "> [pasted 24 lines]mine\n", "> [pasted 24 lines]mine\n" },
        { "mine\033[A\033[A and more", "> [pasted 24 lines]mine\n  older and more\n", "[pasted 24 lines]mine" },
        { "mine\x12old\x07", "> [pasted 24 lines]mine\n", "> [pasted 24 lines]mine\n" },
    };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        open_with_command(&s, "");
        screen_keys(&s, t[i].typed);
        screen_go_on(&s);
        assert_has(&s, t[i].want);
        assert_has(&s, "the output is attached");
        screen_keys(&s, "\033[B");
        assert_has(&s, t[i].below);
        screen_close(&s);
    }
    for (int is_taken = 0; is_taken < 2; is_taken++) {   /* a search goes on meanwhile */
        open_with_command(&s, "");
        screen_keys(&s, "mine\x12old");
        screen_go_on(&s);
        assert_lacks(&s, "pasted");
        screen_keys(&s, is_taken ? "\x05" : "\x07");
        assert_has(&s, "> [pasted 24 lines]mine\n");
        screen_close(&s);
    }
}

/* A message that was refused, or that was for another conversation. */
static void what_comes_back_below_the_history(void **state)
{
    static const struct { const char *keys, *then, *want; } t[] = {
        { "mine\033[A", "\033[B", "\n> mine\n  long text\n" },
        { "mine\x12old", "\x07", "\n> mine\n  long text\n" },
        { "\x12old", "\x07", "\n> long text\n" },
    };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        screen_open(&s, 24, 60, "");
        screen_keys(&s, "older\r");
        screen_keys(&s, "\x18\x15long text\r");
        screen_keys(&s, t[i].keys);
        fake_refuse(s.chat, "5,000 tokens do not fit the context of 4,096");
        fake_ready(s.chat);
        screen_step(&s, 0.1);
        assert_has(&s, "! 5,000 tokens do not fit");
        screen_keys(&s, t[i].then);
        assert_has(&s, t[i].want);
        screen_close(&s);
    }
    screen_open(&s, 24, 60, "");
    screen_keys(&s, "older\rlong text\rmine\033[A\x18\033[B");
    assert_has(&s, "\n> mine\n  long text\n");
    screen_close(&s);
}

/* Whoever leaves, or is killed, meanwhile has it the next time. */
static void what_came_is_kept(void **state)
{
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    open_with_command(&s, ebb_own_dir);
    screen_keys(&s, "mine\x12old");
    screen_go_on(&s);
    screen_step(&s, 2);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_true(has_unsent);
    screen_close(&s);
    screen_open(&s, 24, 60, ebb_own_dir);
    assert_has(&s, "> [pasted 24 lines]\n  mine\n");
    screen_close(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_behind_an_editor),
        cmocka_unit_test(what_an_editor_gives_back_is_asked_about),
        cmocka_unit_test(what_an_editor_writes_is_no_file),
        cmocka_unit_test(a_document_behind_an_editor),
        cmocka_unit_test(an_output_below_the_history),
        cmocka_unit_test(what_comes_back_below_the_history),
        cmocka_unit_test(what_came_is_kept),
    };

    return cmocka_run_group_tests_name("app_line", tests, ebb_own_dir_make, ebb_own_dir_drop);
}
