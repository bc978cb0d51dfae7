/* What an editor of the user's leaves behind: it becomes the draft, or stays where it is. */
#include "ebb_test.h"

#include <unistd.h>

#include "tui/screen.h"

/* The draft "mine" is edited by `command`, which gets the file as its last argument.  *kept: whether the file is there
 * afterwards, which is then removed. */
static void edit(screen *s, const char *command, bool *kept)
{
    ebb_tui_opts opts;

    screen_open(s, 12, 120, "");
    fake_ready(s->chat);
    opts = *s->app.frontend.opts;
    opts.editor = command;
    s->app.frontend.opts = &opts;
    screen_keys(s, "mine");
    screen_keys(s, "\x07");
    screen_wait_editor(s);
    screen_step(s, 0);
    *kept = access(s->app.external.path, F_OK) == 0;
    if (*kept && unlink(s->app.external.path) != 0)
        assert_int_equal(rmdir(s->app.external.path), 0);
}

static void what_is_written_is_the_draft(void **state)
{
    bool kept;
    screen s;

    (void)state;
    edit(&s, "sh -c 'echo other >\"$0\"'", &kept);
    assert_has(&s, "\n> other\n");
    assert_false(kept);
    screen_close(&s);
}

static void a_failing_editor_discards(void **state)
{
    bool kept;
    screen s;

    (void)state;
    edit(&s, "sh -c 'echo other >\"$0\"; exit 1'", &kept);
    assert_has(&s, "\n> mine\n");
    assert_has(&s, "the editor failed");
    assert_false(kept);
    screen_close(&s);
}

/* It may be all that there is of a text. */
static void what_cannot_be_taken_is_kept(void **state)
{
    static const char *const commands[] = { "truncate -s 17M", "sh -c 'rm \"$0\"; mkdir \"$0\"'",
                                            "sh -c 'rm \"$0\"; mkfifo \"$0\"'",
                                            "exec sh -c 'truncate -s 17M \"$0\"; kill -9 $$'" };

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        bool kept;
        screen s;

        edit(&s, commands[i], &kept);
        assert_has(&s, "\n> mine\n");
        assert_has(&s, "it is left there");
        assert_true(kept);
        screen_close(&s);
    }
}

static void a_file_that_is_gone_is_not_left(void **state)
{
    bool kept;
    screen s;

    (void)state;
    edit(&s, "rm", &kept);
    assert_has(&s, "\n> mine\n");
    assert_has(&s, "no such file");
    assert_lacks(&s, "it is left there");
    assert_false(kept);
    screen_close(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_the_draft),
        cmocka_unit_test(a_failing_editor_discards),
        cmocka_unit_test(what_cannot_be_taken_is_kept),
        cmocka_unit_test(a_file_that_is_gone_is_not_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
