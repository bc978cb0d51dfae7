/* What is typed and not sent yet: it waits, is kept, and comes back. */
#include "ebb_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/utf8.h"
#include "support/own_folder.h"
#include "support/small_disk.h"
#include "tui/screen.h"

/* What was synced, in its order: of drafts `d`, of an editor's files, which are overwritten before they go, `e`. */
static char synced[64];

int fdatasync(int fd)
{
    char self[40], path[600];
    ssize_t n;

    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    n = readlink(self, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    if (strlen(synced) + 1 < sizeof synced)
        synced[strlen(synced)] = strstr(path, "ebb-draft-") ? 'e' : strstr(path, "/draft-") ? 'd' : '-';
    return (int)syscall(SYS_fdatasync, fd);
}

/* A question and its answer are there, the model is not yet: what is typed waits. */
static void open_answered(screen *s)
{
    screen_open(s, 16, 80, "");
    fake_add(s->chat, EBB_ROLE_USER, "one");
    fake_add(s->chat, EBB_ROLE_ASSISTANT, "A");
}

static void become_ready(screen *s)
{
    fake_ready(s->chat);
    screen_step(s, 0.1);
}

/* Was something kept?  The screen is closed. */
static bool leaves_unsent(screen *s)
{
    bool has_unsent;
    ebb_error err;

    assert_int_equal(ebb_app_leave(&s->app, &has_unsent, &err), EBB_OK);
    screen_close(s);
    return has_unsent;
}

static void expect_found(const char *want)
{
    screen s;

    screen_open(&s, 12, 60, ebb_own_dir);
    assert_has(&s, want);
    screen_close(&s);
}

static void busy_queues(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, "");
    assert_has(&s, "\n> Ask something.");
    screen_keys(&s, "one\r");
    assert_has(&s, "waits: one\n>\n");
    assert_has(&s, "queued; Ctrl-X takes it back");
    become_ready(&s);
    assert_has(&s, "> one\n");
    assert_lacks(&s, "waits");
    assert_lacks(&s, "queued");
    screen_keys(&s, "two\rthree\rfour\r");
    assert_has(&s, "waits: two\nwaits: three\nwaits: four\n");
    screen_keys(&s, "\x18");                     /* Ctrl-X */
    assert_has(&s, "waits: two\nwaits: three\n> four\n");
    screen_keys(&s, "\x15");
    screen_answer(&s, "A");
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

/* Its row is made once, of its beginning: a paste of megabytes costs nothing while it waits. */
static void a_long_line_waits(void **state)
{
    ebb_buf keys = { 0 };
    screen s;

    (void)state;
    ebb_buf_adds(&keys, "\033[200~aa");
    for (int i = 0; i < 30000; i++)              /* 4,096 bytes end within a character */
        ebb_buf_adds(&keys, "\xE2\x82\xAC");
    ebb_buf_adds(&keys, "\033[201~\r");
    screen_open(&s, 12, 60, "");
    screen_keys(&s, ebb_buf_text(&keys));
    ebb_buf_fini(&keys);
    assert_has(&s, "waits: aa\xE2\x82\xAC\xE2\x82\xAC");
    assert_int_equal(s.app.queue.n, 1);
    assert_true(strlen(s.app.queue.messages[0].row) <= 4100);
    assert_true(ebb_utf8_is_valid(s.app.queue.messages[0].row, strlen(s.app.queue.messages[0].row)));
    screen_keys(&s, "\x18");
    assert_has(&s, "> [pasted 90,002 bytes]");
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
    become_ready(&s);
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
    screen s;

    (void)state;
    screen_open(&s, 12, 60, ebb_own_dir);
    screen_keys(&s, "one\r");
    screen_keys(&s, "//two\rhalf a li");
    assert_has(&s, "waits: one\nwaits: /two\n> half a li\n");
    assert_true(leaves_unsent(&s));
    screen_open(&s, 12, 60, ebb_own_dir);
    assert_has(&s, "unsent when you left");
    assert_has(&s, "> one\n  /two\n  half a li\n");
    fake_ready(s.chat);
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one\n/two\nhalf a li");
    screen_keys(&s, "/tr");                      /* a command is nothing to be sent */
    assert_false(leaves_unsent(&s));
    expect_found("> Ask something.");
}

static void expect_kept(const char *keys, const char *want)
{
    screen s;

    screen_open(&s, 12, 60, ebb_own_dir);
    screen_keys(&s, "\x15");                     /* what was kept before */
    screen_keys(&s, keys);
    leaves_unsent(&s);
    expect_found(want);
}

/* Lines of the history in its place, found or browsed, and slashes. */
static void unsent_is_what_was_typed(void **state)
{
    (void)state;
    expect_kept("an old line\r", "> an old line\n");
    expect_kept("half a line\x12old", "> half a line\n");
    expect_kept("half a line\033[A", "> half a line\n");
    expect_kept("half a line\033[A and more", "> half a line\n  an old line and more\n");
    expect_kept("half a line\033[A\x12old", "> half a line\n");
    expect_kept("half a line\x12old\x05", "> half a line\n");             /* taken, by any key */
    expect_kept("half a line\x12old\x0c", "> half a line\n");
    expect_kept("half a line\x12oldest\033[21~", "> half a line\n");       /* found before; F10 */
    expect_kept("half a line\033[A\x12old\x05", "> half a line\n");
    expect_kept("half a line\x12old\x05 and more", "> half a line\n  an old line and more\n");
    expect_kept("half a line\x12zz\x05 and more", "> half a line and more\n");
    expect_kept("half a line\033[A\x15", "> half a line\n");
    expect_kept("half a line\033[A\x15" "another", "> half a line\n  another\n");
    expect_kept("/system Speak of ebb", "> /system Speak of ebb\n");
    expect_kept("/system Speak of ebb\033[A", "> /system Speak of ebb\n");
    expect_kept("/system ", "> Ask something.");
    expect_kept("\033[A", "> Ask something.");
    expect_kept("//half a line", "> //half a line\n");
    expect_kept("!ls", "> !ls\n");
    expect_kept(" !half", ">  !half\n");
    expect_kept("\"\"\"half\ra line", "> \"\"\"half\n  a line\n");
}

static void edit_the_first(screen *s, const char *keys)
{
    screen_open(s, 12, 60, ebb_own_dir);
    fake_ready(s->chat);
    screen_keys(s, "\x15" "one\r");
    screen_answer(s, "A");
    screen_keys(s, "/edit 1\r");
    assert_has(s, "> one\n");
    screen_keys(s, keys);
}

/* A message that is edited is there already; what was changed of it is not. */
static void unsent_is_what_was_edited(void **state)
{
    screen s;

    (void)state;
    edit_the_first(&s, "");
    assert_false(leaves_unsent(&s));
    edit_the_first(&s, " and two");
    assert_true(leaves_unsent(&s));
    expect_found("> one and two\n");
}

/* The conversation of edit_the_first, opened again. */
static void open_again(screen *s, size_t n_messages)
{
    screen_open(s, 12, 100, "");
    fake_ready(s->chat);
    if (n_messages > 0)
        fake_add(s->chat, EBB_ROLE_USER, "one");
    if (n_messages > 1)
        fake_add(s->chat, EBB_ROLE_ASSISTANT, "A");
    ebb_buf_adds(&s->app.frontend.state_dir, ebb_own_dir);
    ebb_app_restore_unsent(&s->app);
    screen_step(s, 1);
}

/* A message or an answer that was being edited is edited on, if it is there still. */
static void an_unsent_edit_is_an_edit(void **state)
{
    screen s;

    (void)state;
    edit_the_first(&s, " and two");
    assert_true(leaves_unsent(&s));
    open_again(&s, 2);
    assert_has(&s, "message 1 as you were editing it; Enter sends it");
    assert_true(leaves_unsent(&s));              /* and left again, as it was */
    open_again(&s, 2);
    screen_keys(&s, "\r");
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one and two");
    assert_false(ebb_frontend_edits(&s.app.frontend));
    assert_false(leaves_unsent(&s));

    edit_the_first(&s, "\x03/cut\r lot");
    assert_true(leaves_unsent(&s));
    open_again(&s, 2);
    assert_has(&s, "the answer as you were cutting it; Enter goes on from there");
    screen_keys(&s, "\r");
    assert_string_equal(ebb_chat_message(s.chat, 1)->text, "A lot");
    assert_false(leaves_unsent(&s));

    edit_the_first(&s, "\x03/cut\r//lot");
    assert_true(leaves_unsent(&s));
    open_again(&s, 1);                           /* there is no answer: a message like any other */
    assert_false(ebb_frontend_edits(&s.app.frontend));
    assert_has(&s, "> //lot\n");
    assert_has(&s, "unsent when you left; Enter sends it");
    screen_keys(&s, "\x03");
    assert_false(leaves_unsent(&s));
}

/* An answer and a system prompt are no new questions, either. */
static void an_unsent_edit_of_any_message_is_one(void **state)
{
    static const struct { const char *keys, *want; size_t number; } t[] = {
        { "/edit 3\r lot", "> A lot\n", 3 },
        { "/edit 1\r Always.", "> Be short. Always.\n", 1 },
    };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        for (size_t opened = 0; opened < 2; opened++) {
            screen_open(&s, 12, 100, "");
            fake_ready(s.chat);
            fake_add(s.chat, EBB_ROLE_SYSTEM, "Be short.");
            fake_add(s.chat, EBB_ROLE_USER, "one");
            fake_add(s.chat, EBB_ROLE_ASSISTANT, "A");
            ebb_buf_adds(&s.app.frontend.state_dir, ebb_own_dir);
            ebb_app_restore_unsent(&s.app);
            if (opened == 0)
                screen_keys(&s, t[i].keys);
            assert_has(&s, t[i].want);
            assert_int_equal(s.app.frontend.editing, t[i].number);
            if (opened > 0)
                screen_keys(&s, "\x03");
            assert_int_equal(leaves_unsent(&s), opened == 0);
        }
}

/* What editors have saved of one when the program was killed is typed, as without an edit: a command edits nothing. */
static void an_unsent_edit_is_typed(void **state)
{
    static const struct { const char *draft, *want; bool edits; } t[] = {
        { "\x1e" "1 1\n\x1F/system be nice", "> /system be nice\n", false },
        { "\x1e" "1 1\n\x1F\"\"\"two", "> \"\"\"two\n", true },
    };
    screen s;
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        assert_int_equal(ebb_unsent_persist(ebb_own_dir, "", t[i].draft, strlen(t[i].draft), NULL, &err), EBB_OK);
        open_again(&s, 2);
        assert_has(&s, t[i].want);
        assert_int_equal(ebb_frontend_edits(&s.app.frontend), t[i].edits);
        screen_keys(&s, "\x03");
        assert_false(leaves_unsent(&s));
    }
}

/* What is pasted may begin with the signs of a draft: it comes back as the message that it was. */
static void signs_that_were_pasted_are_none(void **state)
{
    (void)state;
    expect_kept("\033[200~\x1F!touch x\033[201~", ">  !touch x\n");
    expect_kept("\033[200~\x1F/system x\033[201~", "> //system x\n");
    expect_kept("\033[200~\x1E" "1 \ntext\033[201~", "> 1\n  text\n");
    expect_kept("\033[200~\x1F\x1F\033[201~", "> Ask something.");
}

/* A message is known by its id: its number is another one's on another branch.  Older ebbs wrote none. */
static void an_unsent_edit_is_of_its_message(void **state)
{
    static const struct { const char *draft; bool edits; } t[] = {
        { "\x1e" "1 1\none and two", true },
        { "\x1e" "1\none and two", true },
        { "\x1e" "1\n77 and two", true },
        { "\x1e" "1 77\none and two", false },
    };
    screen s;
    ebb_error err;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        assert_int_equal(ebb_unsent_persist(ebb_own_dir, "", t[i].draft, strlen(t[i].draft), NULL, &err), EBB_OK);
        open_again(&s, 2);
        assert_has(&s, " and two\n");
        assert_int_equal(ebb_frontend_edits(&s.app.frontend), t[i].edits);
        screen_keys(&s, "\x03");
        assert_false(leaves_unsent(&s));
    }
}

/* Also with a line of the history in its place, changed or not, and while it waits. */
static void an_edit_below_something_is_an_edit(void **state)
{
    static const struct { const char *keys, *want; bool is_cut; } t[] = {
        { " and two\033[A", "> one and two\n", false },
        { " and two\033[A\x15three", "> one and two\n  three\n", false },
        { "\x03/cut\r lot\033[A", "> A lot\n", true },
        { "\x15\"\"\"two\r", "> \"\"\"two\n", false },
        { "\x15 !two", ">  !two\n", false },
    };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        edit_the_first(&s, t[i].keys);
        assert_true(leaves_unsent(&s));
        open_again(&s, 2);
        assert_has(&s, t[i].want);
        assert_int_equal(s.app.frontend.editing, t[i].is_cut ? 0 : 1);
        assert_int_equal(s.app.frontend.is_cutting, t[i].is_cut);
        screen_keys(&s, "\x03");
        assert_false(leaves_unsent(&s));
    }
    screen_open(&s, 12, 60, ebb_own_dir);
    fake_add(s.chat, EBB_ROLE_USER, "one");
    screen_keys(&s, "two\r/edit 1\r!\rthree");
    assert_true(leaves_unsent(&s));
    open_again(&s, 2);
    assert_has(&s, "> one!\n  two\n  three\n");
    assert_int_equal(s.app.frontend.editing, 1);
    screen_close(&s);
}

/* What was unsent is nowhere else: a slash is a character of it. */
static void a_slash_takes_nothing_away(void **state)
{
    screen s;

    (void)state;
    screen_open(&s, 12, 60, ebb_own_dir);
    screen_keys(&s, "\x15" "compare the folder src");
    assert_true(leaves_unsent(&s));
    screen_open(&s, 12, 60, ebb_own_dir);
    screen_keys(&s, "/tui");
    assert_has(&s, "> compare the folder src/tui\n");
    screen_close(&s);
    edit_the_first(&s, "");                      /* of a message that is edited, nothing is lost */
    screen_keys(&s, "/he");
    assert_has(&s, "> /he\n");
    screen_close(&s);
}

static size_t n_files(const char *begin)
{
    DIR *d = opendir(ebb_own_dir);
    size_t n = 0;

    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, begin, strlen(begin)) == 0;
    closedir(d);
    return n;
}

static size_t n_drafts(void)
{
    return n_files("draft");
}

/* kill -9 takes a second of typing, no more; and what was sent does not come again. */
static void unsent_survives_a_kill(void **state)
{
    screen s, other;
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        screen_open(&s, 12, 60, ebb_own_dir);
        screen_keys(&s, "half a thought");
        screen_step(&s, 2);
        screen_keys(&s, " and words that nobody will see");
        _exit(0);                                /* as if killed: nothing is closed */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(n_drafts(), 1);
    screen_open(&s, 12, 60, ebb_own_dir);
    assert_has(&s, "> half a thought\n");
    assert_int_equal(n_drafts(), 1);          /* another kill takes nothing of it */
    screen_keys(&s, "!");
    screen_step(&s, 2);
    assert_int_equal(n_drafts(), 1);
    screen_open(&other, 12, 60, ebb_own_dir);            /* of a program that runs it is its own */
    assert_has(&other, "> Ask something.");
    assert_has(&other, "another ebb has your unsent text");
    screen_close(&other);
    fake_ready(s.chat);
    screen_keys(&s, "\r");
    screen_step(&s, 0);
    assert_int_equal(n_drafts(), 0);
    screen_keys(&s, "more");
    screen_step(&s, 2);
    assert_int_equal(n_drafts(), 1);
    screen_keys(&s, "\x15");                     /* Ctrl-U */
    screen_step(&s, 0);
    assert_int_equal(n_drafts(), 0);
    screen_close(&s);
}

/* `keys` are typed while "first" is answered, in a program that is killed at once, before or after "one" has gone. */
static void kill_with_queue(const char *keys, bool ends)
{
    pid_t pid = fork();
    int status;
    screen s;

    if (pid == 0) {
        screen_open(&s, 12, 60, ebb_own_dir);
        fake_ready(s.chat);
        screen_keys(&s, "\x15" "first\r");       /* without what was kept before */
        screen_keys(&s, keys);
        if (ends)
            screen_answer(&s, "ok");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* What waits is kept as soon as the screen says that it does, and no longer than it does. */
static void a_queue_survives_a_kill(void **state)
{
    (void)state;
    kill_with_queue("one\r", false);
    expect_found("> one\n");
    kill_with_queue("one\rtwo\r", false);
    expect_found("> one\n  two\n");
    kill_with_queue("one\rtwo\r", true);
    expect_found("> two\n");
    kill_with_queue("one\rtwo\r\x18\x15", false);
    expect_found("> one\n");
    kill_with_queue("one\r", true);
    expect_found("> Ask something.");
}

/* Whoever has logged in anew is told where the text is, and has it once the ebb that hangs is ended. */
static void unsent_behind_a_connection_that_hangs(void **state)
{
    char place[100], typed;
    screen s;
    int typing[2];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(typing), 0);
    pid = fork();
    if (pid == 0) {
        screen_open(&s, 12, 80, ebb_own_dir);
        screen_keys(&s, "a long question");
        screen_step(&s, 2);
        (void)!write(typing[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(typing[0], &typed, 1), 1);
    screen_open(&s, 12, 80, ebb_own_dir);
    assert_has(&s, "> Ask something.");
    snprintf(place, sizeof place, "process %ld has your unsent text: `fg` if stopped, or `kill %ld` and", (long)pid,
             (long)pid);
    assert_has(&s, place);
    screen_close(&s);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    screen_open(&s, 12, 80, ebb_own_dir);
    assert_has(&s, "> a long question\n");
    screen_close(&s);
    assert_int_equal(close(typing[0]) + close(typing[1]), 0);
}

/* With an editor open, it is what that has saved, in the place of what it was given. */
static void unsent_survives_a_kill_in_the_editor(void **state)
{
    static const struct { const char *keys, *want; } t[] = {
        { "half a thought\x07", "> a whole one\n" },
        { "\x07", "> a whole one\n" },
        { "one\rhalf a thought\x07", "> one\n  a whole one\n" },
    };
    char number[24];
    ebb_tui_opts opts;
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            snprintf(number, sizeof number, "%ld", (long)getpid());
            setenv("KILLED", number, 1);
            screen_open(&s, 12, 60, ebb_own_dir);
            opts = *s.app.frontend.opts;
            opts.editor = "sh -c 'echo a whole one >\"$0\"; kill -9 $KILLED'";
            s.app.frontend.opts = &opts;
            screen_keys(&s, t[i].keys);
            screen_wait_editor(&s);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        screen_open(&s, 12, 60, ebb_own_dir);
        assert_has(&s, t[i].want);
        assert_has(&s, "unsent when you left");
        screen_keys(&s, "\x03");
        screen_step(&s, 0);
        assert_int_equal(n_drafts(), 0);
        screen_close(&s);
    }
}

/* What is edited there, unchanged before or not, takes the place of the message. */
static void an_edit_survives_a_kill_in_the_editor(void **state)
{
    static const char *const keys[] = { "\x07", " and more\x07", "\x15\x07" };
    char number[24];
    ebb_tui_opts opts;
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            snprintf(number, sizeof number, "%ld", (long)getpid());
            setenv("KILLED", number, 1);
            setenv("XDG_RUNTIME_DIR", ebb_own_dir, 1);   /* open_again begins with another folder of state */
            edit_the_first(&s, "");
            opts = *s.app.frontend.opts;
            opts.editor = "sh -c 'echo a whole one >\"$0\"; kill -9 $KILLED'";
            s.app.frontend.opts = &opts;
            screen_keys(&s, keys[i]);
            screen_wait_editor(&s);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        open_again(&s, 2);
        assert_has(&s, "> a whole one\n");
        assert_has(&s, "message 1 as you were editing it");
        screen_keys(&s, "\x03");
        assert_false(leaves_unsent(&s));
    }
}

/* The editor has begun, and does `at_end` when the terminal goes. */
static void open_editor(screen *s, ebb_tui_opts *opts, const char *state_dir, const char *at_end)
{
    static char command[400];
    char ready[80];

    snprintf(ready, sizeof ready, "%s/ready", ebb_own_dir);
    snprintf(command, sizeof command, "exec sh -c 'trap \"%s; exit 1\" HUP; : >%s; while :; do sleep 0.01; done'",
             at_end, ready);
    screen_open(s, 12, 100, state_dir);
    *opts = *s->app.frontend.opts;
    opts->editor = command;
    s->app.frontend.opts = opts;
    screen_keys(s, "half a thought\x07");
    while (access(ready, F_OK) != 0)
        usleep(1000);
    assert_int_equal(unlink(ready), 0);
}

/* nano puts aside what it has not saved when its terminal goes. */
static void what_an_editor_puts_aside_is_unsent(void **state)
{
    ebb_tui_opts opts;
    screen s;

    (void)state;
    open_editor(&s, &opts, ebb_own_dir, "echo a whole one >\\\"$0.save\\\"");
    assert_true(leaves_unsent(&s));
    expect_found("> a whole one\n");
}

/* A loss of power finds what was saved there: the draft is on the disk before the editor's file goes, also where ebb is
 * ended meanwhile, and where nothing could be kept when the editor began. */
static void what_an_editor_saved_is_synced_first(void **state)
{
    char later[80], command[160];
    ebb_tui_opts opts;
    screen s;

    (void)state;
    open_editor(&s, &opts, ebb_own_dir, "echo saved >\\\"$0\\\"");
    memset(synced, 0, sizeof synced);
    assert_true(leaves_unsent(&s));
    assert_memory_equal(synced, "de", 2);
    expect_found("> saved\n");

    snprintf(later, sizeof later, "%s/later", ebb_own_dir);
    snprintf(command, sizeof command, "sh -c 'rm %s; echo saved >\"$0\"'", later);
    assert_int_equal(close(open(later, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);  /* no folder yet */
    screen_open(&s, 12, 100, later);
    opts = *s.app.frontend.opts;
    opts.editor = command;
    s.app.frontend.opts = &opts;
    memset(synced, 0, sizeof synced);
    screen_keys(&s, "\x07");
    screen_wait_editor(&s);
    assert_has(&s, "> saved\n");
    assert_memory_equal(synced, "de", 2);
    assert_true(leaves_unsent(&s));
}

/* vi keeps that in a file that only vi reads: it moves to where it outlives the login, and the next start tells. */
static void what_only_vi_reads_is_told_of(void **state)
{
    ebb_tui_opts opts;
    screen s;

    (void)state;
    open_editor(&s, &opts, ebb_own_dir, "echo more >\\\"${0%/*}/.${0##*/}.swp\\\"");
    assert_true(leaves_unsent(&s));
    screen_open(&s, 12, 100, ebb_own_dir);
    assert_has(&s, "> half a thought\n");
    assert_has(&s, "vi -r /tmp/");
    assert_has(&s, "it is left there");
    screen_close(&s);
    assert_int_equal(n_files("ebb-draft-"), 1);
    assert_int_equal(n_files(".ebb-draft-"), 1);
}

/* --private: nothing is kept, and nothing stays. */
static void nothing_that_is_private_stays(void **state)
{
    char path[512], beside[600];
    ebb_tui_opts opts;
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    open_editor(&s, &opts, "", "echo more >\\\"${0%/*}/.${0##*/}.swp\\\"; echo other >\\\"$0\\\"");
    memcpy(path, s.app.external.path, sizeof path);
    snprintf(beside, sizeof beside, "%.*s/.%s.swp", (int)(strrchr(path, '/') - path), path, strrchr(path, '/') + 1);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_OK);
    assert_false(has_unsent);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(beside, F_OK), -1);
    screen_close(&s);
}

/* "half a thought" is autosaved, and nothing more has room. */
static void open_on_a_full_disk(screen *s)
{
    if (!ebb_small_disk_mount(ebb_own_dir, 64))
        skip();
    screen_open(s, 12, 60, ebb_own_dir);
    screen_keys(s, "half a thought");
    screen_step(s, 2);
    assert_true(ebb_small_disk_fill(ebb_own_dir));
}

/* Where the last words cannot be kept, those of a second ago stay. */
static void unsent_on_a_full_disk(void **state)
{
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    open_on_a_full_disk(&s);
    screen_keys(&s, " more");
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_IO);
    assert_true(has_unsent);
    screen_close(&s);
    expect_found("> half a thought\n");
    ebb_small_disk_unmount(ebb_own_dir);
}

/* An editor's file is all that there is of its text, and there is room for it. */
static void what_an_editor_saved_on_a_full_disk(void **state)
{
    ebb_tui_opts opts;
    bool has_unsent;
    ebb_error err;
    screen s;

    (void)state;
    open_on_a_full_disk(&s);
    opts = *s.app.frontend.opts;
    opts.editor = "sh -c 'printf \"%09000d\" 7 >\"$0\"'";
    s.app.frontend.opts = &opts;
    screen_keys(&s, "\x07");
    screen_wait_editor(&s);
    assert_int_equal(ebb_app_leave(&s.app, &has_unsent, &err), EBB_IO);
    screen_close(&s);
    ebb_small_disk_empty(ebb_own_dir);
    expect_found("0000000007\n");
    ebb_small_disk_unmount(ebb_own_dir);
}

/* A pipe is nobody's text, and nothing waits for its writer. */
static void unsent_is_no_pipe(void **state)
{
    char path[80];
    screen s;
    pid_t pid;

    (void)state;
    snprintf(path, sizeof path, "%s/draft-1", ebb_own_dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY);
        _exit(write(fd, "\nfrom a pipe", 12) != 12);
    }
    screen_open(&s, 12, 60, ebb_own_dir);
    assert_has(&s, "> Ask something.");
    assert_int_equal(n_drafts(), 1);
    screen_close(&s);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Each would take the place of the question before it, and get the same error. */
static void what_waits_is_held_after_an_error(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 16, 80);
    screen_keys(&s, "one\rtwo\r");
    fake_error(s.chat, "nas: Couldn't connect to server");
    screen_step(&s, 0.1);
    assert_has(&s, "> one\n");
    assert_has(&s, "waits: two\n");
    assert_has(&s, "Enter asks again, and sends what waits then");
    screen_keys(&s, "three\r");                  /* in its turn */
    assert_true(ebb_chat_is_busy(s.chat));
    assert_has(&s, "waits: two\nwaits: three\n");
    fake_error(s.chat, "nas: Couldn't connect to server");
    screen_step(&s, 0.1);
    screen_keys(&s, "\r");
    screen_answer(&s, "A");
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    assert_string_equal(ebb_chat_message(s.chat, 0)->text, "one");
    assert_string_equal(ebb_chat_message(s.chat, 2)->text, "two");
    assert_has(&s, "waits: three\n");
    screen_close(&s);
}

static void expect_message(const screen *s, size_t i, const char *want)
{
    assert_true(i < ebb_chat_n_messages(s->chat));
    assert_string_equal(ebb_chat_message(s->chat, i)->text, want);
}

/* What waits is a message of its own, and comes behind what is edited meanwhile. */
static void an_edit_goes_before_what_waits(void **state)
{
    screen s;

    (void)state;
    screen_open_ready(&s, 16, 80);
    screen_keys(&s, "one\rtwo\r");
    fake_error(s.chat, "nas: 5,000 tokens do not fit");
    screen_step(&s, 0.1);
    screen_keys(&s, "/edit 1\r and more\r");     /* not behind it, where it would change nothing */
    expect_message(&s, 0, "one and more");
    assert_has(&s, "waits: two\n");
    screen_answer(&s, "A");
    screen_answer(&s, "B");
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    expect_message(&s, 2, "two");
    screen_close(&s);

    open_answered(&s);
    screen_keys(&s, "two\r/cut\r lot");
    become_ready(&s);                        /* it could be sent now */
    assert_int_equal(ebb_chat_n_messages(s.chat), 2);
    assert_has(&s, "waits: two\n");
    screen_keys(&s, "\r");
    expect_message(&s, 1, "A lot");
    screen_answer(&s, ".");
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    expect_message(&s, 2, "two");
    screen_close(&s);
}

/* However it is left, with an engine that does not say anything more by itself. */
static void what_waits_goes_when_an_edit_is_left(void **state)
{
    static const char *const leaves[] = { "\x03", "\x15/help\r" };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        open_answered(&s);
        screen_keys(&s, "two\r/edit 1\r and more");
        become_ready(&s);
        assert_has(&s, "waits: two\n");
        screen_keys(&s, leaves[i]);
        assert_int_equal(ebb_chat_n_messages(s.chat), 4);
        expect_message(&s, 0, "one");
        expect_message(&s, 2, "two");
        assert_lacks(&s, "waits");
        screen_close(&s);
    }
}

/* Whatever is typed until it can be sent. */
static void an_edit_that_waits_is_an_edit(void **state)
{
    screen s;

    (void)state;
    open_answered(&s);
    screen_keys(&s, "two\r/edit 1\r and more\r");
    assert_has(&s, "waits: one and more\nwaits: two\n");
    screen_keys(&s, "\r");
    assert_lacks(&s, "no text to send");
    screen_keys(&s, "/edit 1\r!\r");
    assert_has(&s, "an edit waits already; Ctrl-X takes back what waits");
    assert_has(&s, "\n> one!\n");
    screen_keys(&s, "\x03\x18");
    assert_has(&s, "\n> two\n");
    assert_false(ebb_frontend_edits(&s.app.frontend));
    screen_keys(&s, "\x15\x18");
    assert_has(&s, "\n> one and more\n");
    assert_true(ebb_frontend_edits(&s.app.frontend));
    screen_keys(&s, " still\rthree\r/help\r");
    become_ready(&s);
    expect_message(&s, 0, "one and more still");
    screen_answer(&s, "B");
    screen_answer(&s, "C");
    assert_int_equal(ebb_chat_n_messages(s.chat), 4);
    expect_message(&s, 2, "three");
    screen_close(&s);

    screen_open(&s, 16, 80, "");                 /* a number means something else in another conversation */
    fake_add(s.chat, EBB_ROLE_USER, "one");
    screen_keys(&s, "/edit 1\r and more\r/load trip\r");
    screen_step(&s, 0.1);
    assert_has(&s, "\n> one and more\n");
    assert_false(ebb_frontend_edits(&s.app.frontend));
    screen_close(&s);
}

/* Where its message is not there any more, or another one in its place, it is no edit, and is not sent by itself. */
static void an_edit_that_waits_goes_to_no_other_message(void **state)
{
    static const char *const acts[] = { "/undo\r", "/system Be short.\r" };
    screen s;

    (void)state;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        open_answered(&s);
        screen_keys(&s, "/edit 1\r and more\r");
        assert_has(&s, "waits: one and more\n");
        screen_keys(&s, acts[i]);
        assert_has(&s, "the message that it was to replace is not here: what waited is not sent yet");
        assert_has(&s, "one and more\n");
        assert_lacks(&s, "waits: ");
        assert_false(ebb_frontend_edits(&s.app.frontend));
        become_ready(&s);
        assert_int_equal(ebb_chat_n_messages(s.chat), i);
        screen_keys(&s, "\r");
        assert_int_equal(ebb_chat_n_messages(s.chat), i + 2);
        screen_close(&s);
    }
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
    become_ready(&s);
    assert_has(&s, "! 5,000 tokens do not fit");
    assert_has(&s, "\n> another\n  long text\n");
    screen_close(&s);
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, ebb_own_dir_make, ebb_own_dir_drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_queues),
        cmocka_unit_test(a_long_line_waits),
        cmocka_unit_test(what_waits_stays_with_its_conversation),
        cmocka_unit_test(a_stop_takes_all_back),
        WITH_FOLDER(unsent_is_kept),
        WITH_FOLDER(unsent_is_what_was_typed),
        WITH_FOLDER(unsent_is_what_was_edited),
        WITH_FOLDER(an_unsent_edit_is_an_edit),
        WITH_FOLDER(an_unsent_edit_of_any_message_is_one),
        WITH_FOLDER(an_unsent_edit_is_of_its_message),
        WITH_FOLDER(an_unsent_edit_is_typed),
        WITH_FOLDER(signs_that_were_pasted_are_none),
        WITH_FOLDER(an_edit_below_something_is_an_edit),
        WITH_FOLDER(a_slash_takes_nothing_away),
        WITH_FOLDER(unsent_survives_a_kill),
        WITH_FOLDER(a_queue_survives_a_kill),
        WITH_FOLDER(unsent_behind_a_connection_that_hangs),
        WITH_FOLDER(unsent_survives_a_kill_in_the_editor),
        WITH_FOLDER(an_edit_survives_a_kill_in_the_editor),
        WITH_FOLDER(unsent_on_a_full_disk),
        WITH_FOLDER(what_an_editor_puts_aside_is_unsent),
        WITH_FOLDER(what_an_editor_saved_is_synced_first),
        WITH_FOLDER(what_only_vi_reads_is_told_of),
        WITH_FOLDER(nothing_that_is_private_stays),
        WITH_FOLDER(what_an_editor_saved_on_a_full_disk),
        WITH_FOLDER(unsent_is_no_pipe),
        cmocka_unit_test(what_waits_is_held_after_an_error),
        cmocka_unit_test(an_edit_goes_before_what_waits),
        cmocka_unit_test(what_waits_goes_when_an_edit_is_left),
        cmocka_unit_test(an_edit_that_waits_is_an_edit),
        cmocka_unit_test(an_edit_that_waits_goes_to_no_other_message),
        cmocka_unit_test(refused_text_comes_back),
        cmocka_unit_test(refused_queue_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
