/* The menu of what may be meant, and completion. */
#include "ebb_test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(completion),
        cmocka_unit_test(menu_of_commands),
        cmocka_unit_test(menu_picks),
        cmocka_unit_test(menu_of_numbers),
        cmocka_unit_test(menu_of_models_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
