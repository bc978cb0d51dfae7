/* What an editor of the user's leaves behind: it becomes the draft, or stays where it is. */
#include "ebb_test.h"

#include <unistd.h>

#include "tui/screen.h"

/* The draft, whose files are folded, is edited by `command`, which gets the file as its last argument.  *kept: whether
 * the file is there afterwards, which is then removed. */
static void edit_draft(screen *s, const char *draft, const char *command, bool *kept)
{
    screen_open(s, 12, 120, "");
    fake_ready(s->chat);
    screen_use_editor(command);
    s->app.frontend.edit(&s->app.frontend, draft, strlen(draft));
    screen_keys(s, "\x07");
    screen_wait_editor(s);
    screen_step(s, 0);
    *kept = access(s->app.external.path, F_OK) == 0;
    if (*kept && unlink(s->app.external.path) != 0)
        assert_int_equal(rmdir(s->app.external.path), 0);
}

static void edit(screen *s, const char *command, bool *kept)
{
    edit_draft(s, "mine", command, kept);
}

static void path_beside(const screen *s, const char *before, const char *behind, char out[600])
{
    const char *path = s->app.external.path, *name = strrchr(path, '/') + 1;

    snprintf(out, 600, "%.*s%s%s%s", (int)(name - path), path, before, name, behind);
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

/* Of a command, too, that goes on as a message does which has a file in front; whatever was folded there before. */
static void a_command_is_the_draft(void **state)
{
    static const char *const drafts[] = { "mine", "a.txt:\n```txt\nA\n```\n\nwhat" };
    static const char writes[] =
        "sh -c 'printf \"/system a:\\n\\140\\140\\140\\nB\\n\\140\\140\\140\\n\\n@d/\" >\"$0\"'";
    bool kept;
    screen s;

    (void)state;
    for (int i = 0; i < 2; i++) {
        edit_draft(&s, drafts[i], writes, &kept);
        assert_string_equal(ebb_buf_text(&s.app.editor.text), "/system a:\n```\nB\n```\n\n@d/");
        screen_keys(&s, "\r");
        assert_int_equal(ebb_chat_n_messages(s.chat), 1);
        assert_int_equal(ebb_chat_message(s.chat, 0)->role, EBB_ROLE_SYSTEM);
        screen_close(&s);
    }
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

/* nano ends so when its terminal goes or memory is short, Emacs by the signal; of a backup nothing stays. */
static void what_an_editor_has_put_aside(void **state)
{
    static const struct { const char *command, *want, *before, *behind; } t[] = {
        { "sh -c 'echo other >\"$0\"; echo rest >\"$0.save\"; exit 1'", "\n> rest\n", "", ".save" },
        { "exec sh -c 'echo rest >\"${0%/*}/#${0##*/}#\"; kill -9 $$'", "\n> rest\n", "#", "#" },
        { "sh -c 'echo other >\"$0\"; echo older >\"$0~\"'", "\n> other\n", "", "~" },
        { "sh -c 'echo other >\"$0\"; echo given up >\"$0.save\"'", "\n> other\n", "", ".save" },
        { "sh -c 'echo other >\"$0~\"; exit 1'", "\n> mine\n", "", "~" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char beside[600];
        bool kept;
        screen s;

        edit(&s, t[i].command, &kept);
        assert_has(&s, t[i].want);
        assert_false(kept);
        path_beside(&s, t[i].before, t[i].behind, beside);
        assert_int_equal(access(beside, F_OK), -1);
        screen_close(&s);
    }
}

/* What vi was about to save is in a file that vi alone reads. */
static void what_only_vi_reads_is_kept(void **state)
{
    char beside[600];
    bool kept;
    screen s;

    (void)state;
    edit(&s, "exec sh -c 'echo other >\"$0\"; echo more >\"${0%/*}/.${0##*/}.swp\"; kill -9 $$'", &kept);
    assert_has(&s, "\n> other\n");
    assert_has(&s, "vi -r /");
    assert_has(&s, "is left there");
    assert_true(kept);
    path_beside(&s, ".", ".swp", beside);
    assert_int_equal(unlink(beside), 0);
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

/* What ends before anybody could have written something does not wait for its window. */
static void an_editor_that_does_not_wait(void **state)
{
    static const struct { const char *command; double began_s; bool is_told; } t[] = {
        { "true", 1e9, true }, { "true", -1e9, false }, { "sh -c 'echo more >>\"$0\"'", 1e9, false },
        { "false", 1e9, false }, { "rm", 1e9, false },
    };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        screen_open_ready(&s, 12, 120);
        screen_use_editor(t[i].command);
        ebb_term_mem_feed(s.term, "mine\x07", 5);
        for (ebb_input in; s.term->ops->input(s.term, &in);)
            ebb_app_input(&s.app, &in);
        s.app.external.began_s += t[i].began_s;
        screen_wait_editor(&s);
        if (t[i].is_told)
            assert_has(&s, "unchanged; an editor in a window has to wait: EDITOR='code --wait'");
        else
            assert_lacks(&s, "has to wait");
        screen_close(&s);
    }
}

/* The caret and the line ends stay, and undo goes back to what was typed before. */
static void what_is_not_changed_stays(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    screen_keys(&s, "first line\n\n\x07");
    screen_wait_editor(&s);
    screen_keys(&s, "second line");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "first line\n\nsecond line");
    screen_keys(&s, "\x01\x1F\x1F\x02\x02\x07");
    screen_wait_editor(&s);
    screen_keys(&s, "+");
    assert_string_equal(ebb_buf_text(&s.app.editor.text), "first line+\n\n");
    screen_close(&s);
}

static void type_with_paste(screen *s, const char *command)
{
    screen_open(s, 40, 120, "");
    fake_ready(s->chat);
    screen_use_editor(command);
    screen_keys(s, "sum up \033[200~1\n2\n3\n4\n5\n6\n7\n8\n\033[201~");
    screen_keys(s, "\x07");
    screen_wait_editor(s);
    screen_step(s, 0);
}

/* Around it, what the editor wrote is typed text, of any length; where it was changed, it is such text itself. */
static void a_paste_stays_folded(void **state)
{
    screen s;

    (void)state;
    type_with_paste(&s, "sh -c 'printf \"a\\nb\\nc\\nd\\ne\\nf\\ng\\nh\\n\" >>\"$0\"'");
    assert_has(&s, "\n> sum up [pasted 8 lines]\n  a\n  b\n");
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "sum up 1\n2\n3\n4\n5\n6\n7\n8\na\nb\nc\nd\ne\nf\ng\nh");
    screen_close(&s);
    type_with_paste(&s, "sed -i s/5/five/");
    assert_has(&s, "\n  4\n  five\n  6\n");
    screen_close(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_the_draft),
        cmocka_unit_test(a_command_is_the_draft),
        cmocka_unit_test(a_failing_editor_discards),
        cmocka_unit_test(what_an_editor_has_put_aside),
        cmocka_unit_test(what_only_vi_reads_is_kept),
        cmocka_unit_test(what_cannot_be_taken_is_kept),
        cmocka_unit_test(a_file_that_is_gone_is_not_left),
        cmocka_unit_test(an_editor_that_does_not_wait),
        cmocka_unit_test(what_is_not_changed_stays),
        cmocka_unit_test(a_paste_stays_folded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
