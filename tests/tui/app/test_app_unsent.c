/* What is typed and not sent yet: it waits, is kept, and comes back. */
#include "ebb_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "support/small_disk.h"
#include "tui/screen.h"

static void busy_queues(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    assert_has(&s, "\n> Ask something.");
    screen_keys(&s, "one\r");
    assert_has(&s, "waits: one\n>\n");
    assert_has(&s, "queued; Ctrl-X takes it back");
    fake_ready(s.chat);
    screen_step(&s, 0.1);
    assert_has(&s, "> one\n");
    assert_lacks(&s, "waits");
    assert_lacks(&s, "queued");
    screen_keys(&s, "two\rthree\rfour\r");
    assert_has(&s, "waits: two\nwaits: three\nwaits: four\n");
    screen_keys(&s, "\x18");                     /* Ctrl-X */
    assert_has(&s, "waits: two\nwaits: three\n> four\n");
    screen_keys(&s, "\x15");
    fake_text(s.chat, "A");
    fake_done(s.chat, EBB_FINISH_STOP);
    screen_step(&s, 0.1);
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "two");
    screen_keys(&s, "\x03");                     /* stops, and takes the rest of the queue back */
    assert_has(&s, "\n> three\n");
    assert_lacks(&s, "waits");
    fake_done(s.chat, EBB_FINISH_CANCELED);
    screen_step(&s, 0.1);
    screen_keys(&s, "\x15" "four\r//five\r");
    assert_has(&s, "waits: /five\n");
    screen_keys(&s, "\x18");                     /* a message, as it was: no command */
    assert_has(&s, "\n> //five\n");
    screen_close(&s);
}

/* What waits for a model goes to no other conversation. */
static void what_waits_stays_with_its_conversation(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 70, "");
    screen_keys(&s, "one\r//two\r");
    assert_has(&s, "waits: one\nwaits: /two\n");
    screen_keys(&s, "/load trip\r");
    fake_ready(s.chat);
    screen_step(&s, 0.1);
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_has(&s, "\n> one\n  /two\n");
    assert_has(&s, "another conversation");
    screen_close(&s);
}

/* Ctrl-C takes all that waits back, in its order. */
static void a_stop_takes_all_back(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 70);
    screen_keys(&s, "one\rtwo\rthree\r\x03");
    fake_done(s.chat, EBB_FINISH_CANCELED);
    screen_step(&s, 0.1);
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_has(&s, "\n> two\n  three\n");
    screen_close(&s);
}

/* What waits when one leaves, and the line under way, is there when the conversation is opened next. */
static void unsent_is_kept(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    screen_open(&s, 12, 60, dir);
    screen_keys(&s, "one\r");
    screen_keys(&s, "//two\rhalf a li");
    assert_has(&s, "waits: one\nwaits: /two\n> half a li\n");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_true(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "unsent when you left");
    assert_has(&s, "> one\n  /two\n  half a li\n");
    fake_ready(s.chat);
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one\n/two\nhalf a li");
    screen_keys(&s, "/tr");                      /* a command is nothing to be sent */
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_false(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> Ask something.");
    screen_close(&s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static void expect_kept(const char *dir, const char *keys, const char *want)
{
    bool has_unsent;
    ebb_error err;
    screen s;

    screen_open(&s, 12, 60, dir);
    screen_keys(&s, "\x15");                     /* what was kept before */
    screen_keys(&s, keys);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, want);
    screen_close(&s);
}

/* Lines of the history in its place, found or browsed, and slashes. */
static void unsent_is_what_was_typed(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    expect_kept(dir, "an old line\r", "> an old line\n");
    expect_kept(dir, "half a line\x12old", "> half a line\n");
    expect_kept(dir, "half a line\033[A", "> half a line\n");
    expect_kept(dir, "half a line\033[A and more", "> half a line\n  an old line and more\n");
    expect_kept(dir, "half a line\033[A\x12old", "> half a line\n");
    expect_kept(dir, "\033[A", "> Ask something.");
    expect_kept(dir, "//half a line", "> //half a line\n");
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static void edit_the_first(screen *s, const char *dir, const char *keys)
{
    screen_open(s, 12, 60, dir);
    fake_ready(s->chat);
    screen_keys(s, "\x15" "one\r");
    fake_text(s->chat, "A");
    fake_done(s->chat, EBB_FINISH_STOP);
    screen_step(s, 0.1);
    screen_keys(s, "/edit 1\r");
    assert_has(s, "> one\n");
    screen_keys(s, keys);
}

/* A message that is edited is there already; what was changed of it is not. */
static void unsent_is_what_was_edited(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    edit_the_first(&s, dir, "");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_false(has_unsent);
    screen_close(&s);
    edit_the_first(&s, dir, " and two");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_true(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> one and two\n");
    screen_close(&s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static size_t n_drafts(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "draft", 5) == 0;
    closedir(d);
    return n;
}

/* kill -9 takes a second of typing, no more; and what was sent does not come again. */
static void unsent_survives_a_kill(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64];
    screen s, other;
    int status;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(dir));
    pid = fork();
    if (pid == 0) {
        screen_open(&s, 12, 60, dir);
        screen_keys(&s, "half a thought");
        screen_step(&s, 2);
        screen_keys(&s, " and words that nobody will see");
        _exit(0);                                /* as if killed: nothing is closed */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(n_drafts(dir), 1);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> half a thought\n");
    assert_int_equal(n_drafts(dir), 1);          /* another kill takes nothing of it */
    screen_keys(&s, "!");
    screen_step(&s, 2);
    assert_int_equal(n_drafts(dir), 1);
    screen_open(&other, 12, 60, dir);            /* of a program that runs it is its own */
    assert_has(&other, "> Ask something.");
    screen_close(&other);
    fake_ready(s.chat);
    screen_keys(&s, "\r");
    screen_step(&s, 0);
    assert_int_equal(n_drafts(dir), 0);
    screen_keys(&s, "more");
    screen_step(&s, 2);
    assert_int_equal(n_drafts(dir), 1);
    screen_keys(&s, "\x15");                     /* Ctrl-U */
    screen_step(&s, 0);
    assert_int_equal(n_drafts(dir), 0);
    screen_close(&s);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

/* With an editor open, it is what that has saved, in the place of what it was given. */
static void unsent_survives_a_kill_in_the_editor(void **state)
{
    static const struct { const char *keys, *want; } t[] = {
        { "half a thought\x07", "> a whole one\n" },
        { "\x07", "> a whole one\n" },
        { "one\rhalf a thought\x07", "> one\n  a whole one\n" },
    };
    char dir[] = "/tmp/ebb-draft-XXXXXX", cmd[64], number[24];
    ebb_tui_opts opts;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            snprintf(number, sizeof number, "%ld", (long)getpid());
            setenv("KILLED", number, 1);
            screen_open(&s, 12, 60, dir);
            opts = *s.app.frontend.opts;
            opts.editor = "sh -c 'echo a whole one >\"$0\"; kill -9 $KILLED'";
            s.app.frontend.opts = &opts;
            screen_keys(&s, t[i].keys);
            screen_wait_editor(&s);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        screen_open(&s, 12, 60, dir);
        assert_has(&s, t[i].want);
        assert_has(&s, "unsent when you left");
        screen_keys(&s, "\x03");
        screen_step(&s, 0);
        assert_int_equal(n_drafts(dir), 0);
        screen_close(&s);
    }
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

/* Where the last words cannot be kept, those of a second ago stay. */
static void unsent_on_a_full_disk(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX";
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    if (!ebb_small_disk_mount(dir, 64)) {
        assert_int_equal(rmdir(dir), 0);
        skip();
    }
    screen_open(&s, 12, 60, dir);
    screen_keys(&s, "half a thought");
    screen_step(&s, 2);
    assert_true(ebb_small_disk_fill(dir));
    screen_keys(&s, " more");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_IO);
    assert_true(has_unsent);
    screen_close(&s);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> half a thought\n");
    screen_close(&s);
    ebb_small_disk_unmount(dir);
    assert_int_equal(rmdir(dir), 0);
}

/* An editor's file is all that there is of its text, and there is room for it. */
static void what_an_editor_saved_on_a_full_disk(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX";
    ebb_tui_opts opts;
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    assert_non_null(mkdtemp(dir));
    if (!ebb_small_disk_mount(dir, 64)) {
        assert_int_equal(rmdir(dir), 0);
        skip();
    }
    screen_open(&s, 12, 60, dir);
    opts = *s.app.frontend.opts;
    opts.editor = "sh -c 'printf \"%09000d\" 7 >\"$0\"'";
    s.app.frontend.opts = &opts;
    screen_keys(&s, "half a thought");
    screen_step(&s, 2);
    assert_true(ebb_small_disk_fill(dir));
    screen_keys(&s, "\x07");
    screen_wait_editor(&s);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_IO);
    screen_close(&s);
    ebb_small_disk_empty(dir);
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "0000000007\n");
    screen_close(&s);
    ebb_small_disk_unmount(dir);
    assert_int_equal(rmdir(dir), 0);
}

/* A pipe is nobody's text, and nothing waits for its writer. */
static void unsent_is_no_pipe(void **state)
{
    char dir[] = "/tmp/ebb-draft-XXXXXX", path[64], cmd[64];
    screen s;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/draft-1", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY);
        _exit(write(fd, "\nfrom a pipe", 12) != 12);
    }
    screen_open(&s, 12, 60, dir);
    assert_has(&s, "> Ask something.");
    assert_int_equal(n_drafts(dir), 1);
    screen_close(&s);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    assert_int_equal(system(cmd), 0);
}

static void refused_text_comes_back(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 12, 60);
    fake_refuse(s.chat, "5,000 tokens do not fit the context of 4,096");
    screen_keys(&s, "long text\r");
    assert_has(&s, "! 5,000 tokens do not fit");
    assert_has(&s, "\n> long text\n");
    screen_close(&s);
}

/* Its turn came while another was being typed. */
static void refused_queue_comes_back(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 24, 60, "");
    screen_keys(&s, "long text\ranother");
    fake_refuse(s.chat, "5,000 tokens do not fit the context of 4,096");
    fake_ready(s.chat);
    screen_step(&s, 0.1);
    assert_has(&s, "! 5,000 tokens do not fit");
    assert_has(&s, "\n> another\n  long text\n");
    screen_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_queues),
        cmocka_unit_test(what_waits_stays_with_its_conversation),
        cmocka_unit_test(a_stop_takes_all_back),
        cmocka_unit_test(unsent_is_kept),
        cmocka_unit_test(unsent_is_what_was_typed),
        cmocka_unit_test(unsent_is_what_was_edited),
        cmocka_unit_test(unsent_survives_a_kill),
        cmocka_unit_test(unsent_survives_a_kill_in_the_editor),
        cmocka_unit_test(unsent_on_a_full_disk),
        cmocka_unit_test(what_an_editor_saved_on_a_full_disk),
        cmocka_unit_test(unsent_is_no_pipe),
        cmocka_unit_test(refused_text_comes_back),
        cmocka_unit_test(refused_queue_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
