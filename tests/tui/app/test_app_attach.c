/* Files that go along with what is typed, pasted, recalled and edited: which, how often, and what is asked before. */
#include "ebb_test.h"

#include <stdio.h>

#include "os/file.h"
#include "support/own_folder.h"
#include "tui/screen.h"

static void put(const char *name, const char *text)
{
    char path[300];
    ebb_error err;

    snprintf(path, sizeof path, "%s/%s", ebb_own_dir, name);
    assert_int_equal(ebb_file_replace(path, text, strlen(text), &err), EBB_OK);
}

/* Each % is the folder of the test. */
static void type(screen *s, const char *keys)
{
    ebb_buf all = { 0 };

    for (; *keys; keys++)
        if (*keys == '%')
            ebb_buf_adds(&all, ebb_own_dir);
        else
            ebb_buf_addc(&all, *keys);
    ebb_term_mem_feed(s->term, ebb_buf_text(&all), all.len);
    screen_step(s, 0);
    ebb_buf_fini(&all);
}

static const char *message(screen *s, size_t i)
{
    return ebb_chat_message(s->chat, i)->text;
}

/* Message i says `what` this often. */
static void expect_said(screen *s, size_t i, const char *what, size_t want)
{
    size_t n = 0;

    for (const char *at = message(s, i); (at = strstr(at, what)) != NULL; at++)
        n++;
    if (n != want)
        fail_msg("%zu times, not %zu: %s\n%s", n, want, what, message(s, i));
}

static void open_with_files(screen *s, const char *state_dir)
{
    put("notes.txt", "NOTES\n");
    put("diary.txt", "DIARY\n");
    put("my notes.txt", "MINE\n");
    screen_open(s, 24, 120, state_dir);
    fake_ready(s->chat);
    screen_step(s, 1);
}

#define PASTE(TEXT) "\033[200~" TEXT "\033[201~"
#define LINES "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

/* A paste that is only "[pasted 10 lines]" has no file sent; one that can be read is asked about. */
static void a_paste_names_files(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "sum up: " PASTE(LINES "see @%/diary.txt\n") "and @%/notes.txt\r");
    expect_said(&s, 0, "DIARY", 0);
    expect_said(&s, 0, "NOTES", 1);
    expect_said(&s, 0, "diary.txt", 1);
    assert_has(&s, "not attached: ");
    assert_has(&s, "diary.txt, which stands in what was pasted; type it to attach it");
    screen_answer(&s, "ok");
    type(&s, PASTE("see @%/diary.txt") "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_has(&s, "diary.txt goes along; Enter again sends both");
    type(&s, "\r");
    expect_said(&s, 2, "DIARY", 1);
    screen_close(&s);
}

/* The line is sent after a question only. */
static void expect_asked(screen *s)
{
    size_t n = ebb_chat_n_messages(s->chat);

    type(s, "\r");
    assert_int_equal(ebb_chat_n_messages(s->chat), n);
    assert_has(s, "diary.txt goes along; Enter again sends both");
}

/* A paste is no less one when it was away meanwhile. */
static void a_paste_comes_back(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, PASTE("see @%/diary.txt") "\x03\x1f");       /* dropped, and undone */
    expect_asked(&s);
    type(&s, "\x05\x15hi\r");                    /* cut, and put back behind another message */
    screen_answer(&s, "ok");
    type(&s, "\x19 now");
    expect_asked(&s);
    type(&s, "\033[A\x03\033[B");               /* the history's line dropped, and back to it */
    assert_has(&s, "> see @");
    expect_asked(&s);
    type(&s, "\x03read @%/diary.txt\r");        /* what is typed then is */
    expect_said(&s, 2, "DIARY", 1);
    screen_close(&s);
}

static void a_paste_comes_back_in_vi(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "/editing vi\r");
    type(&s, PASTE("see @%/diary.txt") "\x03\033");
    type(&s, "u");
    expect_asked(&s);
    type(&s, "dd");
    type(&s, "ihi\r");
    screen_answer(&s, "ok");
    type(&s, "\033");
    type(&s, "p");
    expect_asked(&s);
    screen_close(&s);
}

/* The question comes back with its file: that is not read, nor sent, a second time. */
static void an_edited_message_has_its_files_once(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    put("notes.txt", "NOTES\n@diary.txt\n");
    type(&s, "what is in @%/notes.txt\r");
    screen_answer(&s, "ok");
    for (size_t i = 0; i < 2; i++) {
        type(&s, "/edit\r");
        assert_has(&s, "\n> [pasted ");           /* and its name no command: it begins with a slash */
        type(&s, " now\r");
        expect_said(&s, 0, "NOTES", 1);
        screen_answer(&s, "ok");
    }
    assert_non_null(strstr(message(&s, 0), "notes.txt now now"));
    type(&s, "/edit\r");
    type(&s, " and @%/diary.txt\r");             /* what comes along now is asked about */
    assert_has(&s, "diary.txt goes along; Enter again sends both");
    type(&s, "\r");
    expect_said(&s, 0, "NOTES", 1);
    expect_said(&s, 0, "DIARY", 1);
    screen_close(&s);
}

/* /edit N TEXT is sent as if it was typed: with the files that it names, behind those that the message has, and what is
 * asked about either. */
static void a_text_behind_edit_takes_files_along(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "what is in @%/notes.txt\r");
    screen_answer(&s, "ok");
    put("notes.txt", "OTHERS\n");
    type(&s, "/edit 1 and in @%/diary.txt or @%/notes.txt\r");
    expect_said(&s, 0, "NOTES", 1);              /* as it was when it went along */
    expect_said(&s, 0, "OTHERS", 0);
    expect_said(&s, 0, "DIARY", 1);
    expect_said(&s, 0, "what is", 0);
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_false(ebb_frontend_edits(&s.app.frontend));
    screen_answer(&s, "ok");
    type(&s, "\033[A");                          /* once, and without the files */
    assert_has(&s, "> /edit 1 and in @");
    type(&s, "\033[A");
    assert_has(&s, "> what is in @");
    type(&s, "\x03/edit 1 see @%/none.txt\r");
    expect_said(&s, 0, "none.txt", 0);
    assert_has(&s, "none.txt; Enter again sends it as text");
    assert_has(&s, "lines]see @");               /* there to be mended */
    type(&s, "\r");
    expect_said(&s, 0, "none.txt", 1);
    screen_answer(&s, "ok");
    type(&s, "//path\r");
    screen_answer(&s, "ok");
    type(&s, "/edit 3 /other\r");
    assert_string_equal(message(&s, 2), "/other");
    screen_close(&s);
}

/* However the text of the file got there: the slash that its path begins with is its own, and makes no command. */
static void a_changed_file_stays_one(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "what of @%/notes.txt\r");
    screen_answer(&s, "ok");
    type(&s, "/edit 1\r");
    screen_edit(&s, "sed -i s/NOTES/CHANGED/");
    assert_has(&s, "> [pasted 5 lines]what of @");
    type(&s, "\r");
    expect_said(&s, 0, "CHANGED", 1);
    expect_said(&s, 0, "NOTES", 0);
    assert_memory_equal(message(&s, 0), ebb_own_dir, strlen(ebb_own_dir));
    screen_answer(&s, "ok");
    type(&s, "/edit 1 %/notes.txt:\n```txt\nTYPED\n```\n\nwhat of it\r");
    expect_said(&s, 0, "TYPED", 1);
    assert_memory_equal(message(&s, 0), ebb_own_dir, strlen(ebb_own_dir));
    screen_close(&s);
}

/* What has no ending is a file only where the words name it: so they do, however often they are others. */
static void a_file_without_ending_goes_along_again(void **state)
{
    screen s;

    (void)state;
    put("Makefile", "ALL\n");
    put("read me", "ME\n");
    open_with_files(&s, "");
    type(&s, "what are @%/Makefile and @\"%/read me\" ?\r\r");
    for (int i = 0; i < 3; i++) {
        expect_said(&s, 0, "ALL", 1);
        expect_said(&s, 0, "ME\n", 1);
        assert_has(&s, "Makefile - ");           /* folded, as a file */
        screen_answer(&s, "ok");
        type(&s, "/edit 1 explain it\r");
        expect_said(&s, 0, "@", 2);
    }
    expect_said(&s, 0, "/read me\" explain it", 1);
    screen_close(&s);
}

/* What is folded of the command stays so, and names none; what can be read is asked about. */
static void a_paste_behind_edit_names_no_files(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "one\r");
    screen_answer(&s, "ok");
    type(&s, "/edit 1 sum up: " PASTE(LINES "see @%/diary.txt\n") "\r");
    expect_said(&s, 0, "sum up: ", 1);
    expect_said(&s, 0, "DIARY", 0);
    assert_has(&s, "diary.txt, which stands in what was pasted; type it to attach it");
    screen_answer(&s, "ok");
    type(&s, "/edit 1 " PASTE("read @%/diary.txt") "\r");
    expect_said(&s, 0, "read", 0);
    assert_has(&s, "diary.txt goes along; Enter again sends both");
    type(&s, "\x03");
    assert_false(ebb_frontend_edits(&s.app.frontend));
    screen_close(&s);
}

/* What was pasted into a message names no files when that is edited, though it can be read by then. */
static void an_edited_paste_is_asked_about(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, PASTE(LINES "see @%/diary.txt\n") "what is that?\r");
    screen_answer(&s, "ok");
    type(&s, "/edit\r");
    type(&s, " please\r");
    expect_said(&s, 0, "please", 0);
    assert_has(&s, "diary.txt goes along; Enter again sends both");
    screen_close(&s);
}

static void what_waits_has_its_files_once(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "one\r");
    type(&s, "what is in @%/notes.txt\r");
    assert_has(&s, "waits: what is in @");
    type(&s, "\x18");
    assert_has(&s, "> [pasted 5 lines]what is in @");        /* however small it is */
    type(&s, "\x07");                            /* an editor saves it as it is */
    screen_wait_editor(&s);
    assert_has(&s, "> [pasted 5 lines]what is in @");
    type(&s, " now" PASTE(LINES "@%/diary.txt") "\r");
    assert_has(&s, "waits: what is in @");
    type(&s, "\x18");
    assert_has(&s, "now[pasted 10 lines]");
    type(&s, "\r");
    screen_answer(&s, "ok");
    screen_step(&s, 1);
    expect_said(&s, 2, "NOTES", 1);
    expect_said(&s, 2, "DIARY", 0);
    expect_said(&s, 2, "\xF4", 0);               /* no marks */
    screen_close(&s);
}

/* Each of them has its files in front of its own words. */
static void what_waits_comes_back_with_its_files(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "one\r");
    type(&s, "read @%/notes.txt\r");
    type(&s, "and @%/diary.txt\r");
    type(&s, "\x03");                            /* takes all of it back */
    fake_done(s.chat, EBB_FINISH_CANCELED);
    screen_step(&s, 0.1);
    type(&s, "\r");
    screen_answer(&s, "ok");
    expect_said(&s, 2, "read @", 1);
    expect_said(&s, 2, "and @", 1);
    expect_said(&s, 2, "NOTES", 1);
    expect_said(&s, 2, "DIARY", 1);
    screen_close(&s);
}

/* Typed lines come back as lines, pastes as pastes, from wherever they were. */
static void what_comes_back_is_as_it_was(void **state)
{
    static const char typed[] = "a\x0a" "b\x0a" "c\x0a" "d\x0a" "e\x0a" "f\x0a" "g\x0a" "h\x0a" "i";
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    open_with_files(&s, ebb_own_dir);
    type(&s, "old\r");
    type(&s, typed);
    type(&s, PASTE(LINES "@%/diary.txt"));
    for (int i = 0; i < 9; i++)
        type(&s, "\033[A");
    assert_has(&s, "\n> old\n");
    type(&s, "\033[B");
    assert_has(&s, "\n> b\n  c\n");            /* eight rows of it */
    assert_has(&s, "\n  i[pasted 10 lines]\n");
    type(&s, "\x12" "ol\x07");                   /* looked for something, and did not take it */
    assert_has(&s, "\n  i[pasted 10 lines]\n");
    for (int i = 0; i < 20; i++)
        type(&s, "\x15");
    type(&s, "\x19");                            /* cut and put back */
    assert_has(&s, "\n  i[pasted 10 lines]\n");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    screen_close(&s);
    open_with_files(&s, ebb_own_dir);            /* left, and begun again */
    assert_has(&s, "\n  i[pasted 10 lines]\n");
    type(&s, "\r");
    expect_said(&s, 0, "DIARY", 0);
    expect_said(&s, 0, "a\nb\nc\nd\ne\nf\ng\nh\ni1\n2\n", 1);
    expect_said(&s, 0, "\xF4", 0);
    screen_answer(&s, "ok");
    type(&s, "\033[A");                          /* from the file of the history */
    assert_has(&s, "\n  i[pasted 10 lines]\n");
    type(&s, "\r");
    expect_said(&s, 2, "DIARY", 0);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    screen_close(&s);
}

/* A name with blanks is put in quotes, and taken within them. */
static void names_with_blanks(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "read @%/my\t");
    assert_non_null(strstr(ebb_buf_text(&s.app.editor.text), "/my notes.txt\" "));
    type(&s, "and\r");
    expect_said(&s, 0, "MINE", 1);
    screen_answer(&s, "ok");
    type(&s, "read @\"%/my no");
    screen_step(&s, 1);
    type(&s, "\t");
    assert_non_null(strstr(ebb_buf_text(&s.app.editor.text), "/my notes.txt\" "));
    type(&s, "\x15read @\"%/my notes.txt");
    screen_step(&s, 1);
    type(&s, "\r");                              /* closes the quotes */
    assert_non_null(strstr(ebb_buf_text(&s.app.editor.text), "/my notes.txt\" "));
    type(&s, "\r");
    expect_said(&s, 2, "MINE", 1);
    screen_close(&s);
}

/* A word of an answer that is shortened or edited is a word. */
static void an_answer_takes_no_files_along(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, "one\r");
    screen_answer(&s, "");
    type(&s, "/cut\r");
    type(&s, "see @%/diary.txt\r");
    expect_said(&s, 1, "see @", 1);
    expect_said(&s, 1, "DIARY", 0);
    screen_answer(&s, "");
    type(&s, "/edit 2\r");
    type(&s, "\x15look at @%/diary.txt\r");
    expect_said(&s, 1, "look at @", 1);
    expect_said(&s, 1, "DIARY", 0);
    screen_close(&s);
}

/* A question with code in a fence is no file. */
static void code_is_no_file(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, PASTE("Why does this crash:\n```c\nint *p = 0;\n```\n\nIn one line.") "\r");
    assert_has(&s, "> Why does this crash:");
    assert_lacks(&s, "Ctrl-O shows it");
    screen_close(&s);
}

/* What was pasted stands for no file, even if it begins as one would stand there. */
static void a_paste_is_no_file(void **state)
{
    screen s;

    (void)state;
    open_with_files(&s, "");
    type(&s, PASTE("notes.txt:\n```txt\nSTRANGE\n```\n\n" LINES) " is this like @%/notes.txt\r");
    expect_said(&s, 0, "STRANGE", 1);
    expect_said(&s, 0, "NOTES", 1);
    screen_answer(&s, "ok");
    type(&s, PASTE("%/notes.txt:\n```txt\nSTRANGE\n```\n\n" LINES) " is this like @%/notes.txt\r");
    expect_said(&s, 2, "STRANGE", 1);
    expect_said(&s, 2, "NOTES", 1);
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_paste_names_files),
        cmocka_unit_test(a_paste_comes_back),
        cmocka_unit_test(a_paste_comes_back_in_vi),
        cmocka_unit_test(an_edited_message_has_its_files_once),
        cmocka_unit_test(a_text_behind_edit_takes_files_along),
        cmocka_unit_test(a_changed_file_stays_one),
        cmocka_unit_test(a_file_without_ending_goes_along_again),
        cmocka_unit_test(a_paste_behind_edit_names_no_files),
        cmocka_unit_test(an_edited_paste_is_asked_about),
        cmocka_unit_test(what_waits_has_its_files_once),
        cmocka_unit_test(what_waits_comes_back_with_its_files),
        cmocka_unit_test(what_comes_back_is_as_it_was),
        cmocka_unit_test(names_with_blanks),
        cmocka_unit_test(an_answer_takes_no_files_along),
        cmocka_unit_test(code_is_no_file),
        cmocka_unit_test(a_paste_is_no_file),
    };

    return cmocka_run_group_tests_name("app_attach", tests, ebb_own_dir_make, ebb_own_dir_drop);
}
