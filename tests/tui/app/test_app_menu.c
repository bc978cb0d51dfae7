/* The menu of what may be meant, and completion. */
#include "ebb_test.h"

#include "os/file.h"
#include "support/own_folder.h"
#include "tui/screen.h"

static void completion(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "/th\t");
    assert_has(&s, "> /theme");
    screen_keys(&s, "li\t\r");
    assert_string_equal(s.app.frontend.theme, "light");
    screen_keys(&s, "\x15/load tr\t");
    assert_has(&s, "> /load trip");
    screen_close(&s);
}

/* What fits best stands first; arrows choose, Enter takes and runs what needs no more, Esc closes. */
static void menu_of_commands(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "/re");
    screen_step(&s, 0.2);                        /* the hands rest: the list follows */
    assert_has(&s, "retry");
    assert_has(&s, "Another answer to the last question, or N at once.");
    assert_has(&s, "redo");
    screen_keys(&s, "\033[B");
    assert_true(s.app.menu.is_chosen);
    screen_keys(&s, "\033");
    screen_step(&s, 1);
    screen_keys(&s, "x");                        /* a lone Esc is one when something else follows */
    assert_false(s.app.menu.is_open);
    screen_keys(&s, "\x15/hlp");                 /* letters in their order */
    screen_step(&s, 0.2);
    assert_has(&s, "List commands and keys");
    screen_keys(&s, "\r");
    assert_has(&s, "/help [COMMAND]");
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_keys(&s, "\x15/lod\r");               /* it needs to know which */
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/load ");
    assert_true(s.app.menu.is_open);
    screen_keys(&s, "\x15/nonsense");
    screen_step(&s, 0.2);
    assert_false(s.app.menu.is_open);
    screen_keys(&s, "\x15words about / and @");
    assert_true(s.app.menu.is_open && s.app.menu.is_file);
    screen_close(&s);
}

static void menu_picks(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "/theme\r");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/theme ");
    screen_keys(&s, "\033[B");                   /* seen at once */
    assert_true(s.app.menu.is_previewed);
    screen_keys(&s, "\x15");
    assert_false(s.app.menu.is_previewed);
    assert_string_equal(s.app.frontend.theme, "dark");
    screen_keys(&s, "/theme lgt\r");
    assert_string_equal(s.app.frontend.theme, "light");
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_keys(&s, "/load\r");
    assert_has(&s, "trip");
    screen_keys(&s, "tri\r");
    assert_has(&s, "> Where to?");
    screen_keys(&s, "/tree\r");                  /* walks */
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/go ");
    assert_has(&s, "you: Where to?");
    screen_keys(&s, "\x15");
    assert_false(s.app.menu.is_open);
    screen_close(&s);
}

/* Nobody has typed "/go ", which /tree chooses for: Esc leaves none of it, but a word that was typed behind it. */
static void esc_leaves_the_tree(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "hello\r");
    screen_answer(&s, "Hi.");
    screen_keys(&s, "/tree\r\033[A\033[27u");
    assert_false(s.app.menu.is_open);
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_keys(&s, "/tree\r1\033[27u");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/go 1");
    screen_keys(&s, "\x15/go \033[27u");
    assert_false(s.app.menu.is_open);
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "/go ");
    screen_close(&s);
}

/* What is picked is the session that is shown, also where its title is another one's number. */
static void menu_of_numbers(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    fake_third = "2";
    screen_keys(&s, "/load\r");
    assert_has(&s, "\n  3 ");
    fake_third = NULL;
    screen_close(&s);
}

/* The list has the engine that answers, also one that has no name here. */
static void engines_are_listed(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    screen_keys(&s, "/engine\r\033[27u\r");
    assert_has(&s, "* here ");
    strcpy(fake_remote(s.chat)->name, "http://box:8080");
    screen_keys(&s, "/engine\r\033[27u\r");
    assert_has(&s, "* http://box:8080");
    screen_close(&s);
}

/* The number of a session is what it says, not a part of another one's title. */
static void a_number_is_no_title(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    fake_third = "21 ideas";
    screen_keys(&s, "/load 2");
    screen_keys(&s, "\r");
    assert_has(&s, "there is no session '2'");   /* the chat's word, which knows only trip */
    screen_keys(&s, "/load 21\r");
    assert_has(&s, "there is no session '21 ideas'");
    screen_keys(&s, "/load 2\033[B\r");          /* an arrow has chosen */
    assert_has(&s, "there is no session '21 ideas'");
    fake_third = NULL;
    screen_close(&s);
}

/* A remote engine's models are those that it has, not the files of this machine. */
static void menu_of_models_there(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 80);
    strcpy(fake_remote(s.chat)->name, "box");
    screen_keys(&s, "/model ");
    assert_has(&s, "big-model");
    assert_has(&s, "other-model");
    assert_lacks(&s, "guide");
    screen_close(&s);
}

/* "BEFORE@FOLDER/no" is typed, which opens the menu of notes.txt. */
static void type_name(screen *s, const char *before)
{
    char keys[200], path[200];
    ebb_error err;

    snprintf(path, sizeof path, "%s/notes.txt", ebb_own_dir);
    assert_int_equal(ebb_file_replace(path, "x", 1, &err), EBB_OK);
    snprintf(keys, sizeof keys, "%s@%s/no", before, ebb_own_dir);
    screen_keys(s, keys);
    screen_step(s, 0.2);
    assert_true(s->app.menu.is_open);
}

/* An editor gives back another line than the one that the menu was of. */
static void a_menu_and_an_editor(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 24, 120);
    type_name(&s, "see ");
    screen_edit(&s, "sh -c 'printf four >\"$0\"'");
    assert_false(s.app.menu.is_open);
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "four");
    screen_answer(&s, "ok");
    type_name(&s, "compare with ");
    screen_edit(&s, "sh -c 'printf \"\\nand two\\nand three\" >>\"$0\"'");
    assert_has(&s, "/no\n  and two\n  and three\n");
    screen_keys(&s, "\r\r");                     /* asked: there is no such file */
    assert_non_null(strstr(ebb_chat_message(s.chat, 2)->text, "/no\nand two\nand three"));
    screen_answer(&s, "ok");
    screen_keys(&s, "/theme\r");
    assert_true(s.app.menu.is_open);
    screen_edit(&s, "sh -c 'printf \"a message\" >\"$0\"'");
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 4)->text, "a message");
    screen_close(&s);
}

/* The output of a command comes in front of the word that one chooses for. */
static void a_menu_and_an_output(void **state)
{
    char want[200];
    screen s;

    (void)state;
    snprintf(want, sizeof want, "see @%s/notes.txt ", ebb_own_dir);
    for (int is_folded = 0; is_folded < 2; is_folded++) {
        screen_open_ready(&s, 40, 120);
        screen_keys(&s, "!");
        screen_keys(&s, screen_hold(is_folded ? "seq 20" : "echo one"));
        screen_keys(&s, "\r\r");
        type_name(&s, "see ");
        screen_go_on(&s);
        assert_has(&s, "the output is attached");
        screen_keys(&s, "\t");
        assert_has(&s, is_folded ? "> [pasted 24 lines]see @" : "echo one:\n  ```\n  one\n");
        assert_string_equal(s.app.editor.text.data + s.app.editor.text.len - strlen(want), want);
        screen_keys(&s, "\r");
        assert_non_null(strstr(ebb_chat_message(s.chat, 0)->text, is_folded ? "\n19\n20\n" : "echo one:\n```\none\n"));
        screen_close(&s);
    }
}

/* A message that waits for its document is sent while its menu is open. */
static void a_menu_and_a_document(void **state)
{
    static ebb_filters filters;
    screen s;

    (void)state;
    ebb_filters_init(&filters, &(ebb_filter_choice){ ".txt", 4, screen_hold("cat") }, 1);
    screen_open_ready(&s, 24, 120);
    s.app.documents.filters = &filters;
    type_name(&s, "sum up ");
    screen_keys(&s, "tes.txt\r");
    screen_go_on(&s);
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_false(s.app.menu.is_open);
    screen_keys(&s, "\t");
    assert_true(ebb_editor_is_empty(&s.app.editor));
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completion),
        cmocka_unit_test(menu_of_commands),
        cmocka_unit_test(menu_picks),
        cmocka_unit_test(esc_leaves_the_tree),
        cmocka_unit_test(menu_of_numbers), cmocka_unit_test(a_number_is_no_title),
        cmocka_unit_test(engines_are_listed),
        cmocka_unit_test(menu_of_models_there),
        cmocka_unit_test(a_menu_and_an_editor),
        cmocka_unit_test(a_menu_and_an_output),
        cmocka_unit_test(a_menu_and_a_document),
    };

    return cmocka_run_group_tests_name("app_menu", tests, ebb_own_dir_make, ebb_own_dir_drop);
}
