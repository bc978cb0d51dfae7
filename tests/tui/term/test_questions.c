/* What a terminal is asked and what becomes of its answers: whichever way they come, when they come, and when none
 * does.  The far end of a pty is the terminal. */
#include "ebb_test.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "term/announce.h"
#include "term/questions.h"
#include "term/term.h"

/* -- Answers as bytes -------------------------------------------------------------------------- */

static void colors(void **state)
{
    static const struct { const char *answer; ebb_background background; } rows[] = {
        { "\033]11;rgb:ffff/ffff/ffff\033\\", EBB_BACKGROUND_LIGHT },
        { "\033]11;rgb:0000/0000/0000\a", EBB_BACKGROUND_DARK },
        { "\033]11;rgb:f/f/e\a", EBB_BACKGROUND_LIGHT }, { "\033]11;rgb:1c/1c/1c\033\\", EBB_BACKGROUND_DARK },
        { "\033]11;rgba:fdfd/f6f6/e3e3/ffff\033\\", EBB_BACKGROUND_LIGHT },
        { "\033]11;rgb:0000/0000/ffff\a", EBB_BACKGROUND_DARK },         /* blue is dark, */
        { "\033]11;rgb:0000/ffff/0000\a", EBB_BACKGROUND_LIGHT },        /* green is light */
        { "\033]11;rgb:\a", EBB_BACKGROUND_UNKNOWN }, { "\033]11;rgb:ff/ff\a", EBB_BACKGROUND_UNKNOWN },
        { "\033]11;white\a", EBB_BACKGROUND_UNKNOWN }, { "\033]10;rgb:ff/ff/ff\a", EBB_BACKGROUND_UNKNOWN },
        { "\033]11;rgb:gg/ff/ff\a", EBB_BACKGROUND_UNKNOWN }, { "\033]11;", EBB_BACKGROUND_UNKNOWN },
        { "\033]11;r", EBB_BACKGROUND_UNKNOWN }, { "\033]11;rgb:ff/ff/", EBB_BACKGROUND_UNKNOWN },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_term_answers a = { 0 };
        size_t n = strlen(rows[i].answer);
        char *exact = malloc(n);                 /* nothing behind it is read */

        assert_non_null(exact);
        memcpy(exact, rows[i].answer, n);
        assert_int_equal(ebb_questions_take(&a, exact, n), rows[i].background != EBB_BACKGROUND_UNKNOWN);
        assert_int_equal(a.background, rows[i].background);
        free(exact);
    }
}

static void modes(void **state)
{
    static const struct { const char *answer; bool has_sync, has_keys, is_complete; } rows[] = {
        { "\033[?2026;1$y", true, false, false }, { "\033[?2026;2$y", true, false, false },
        { "\033[?2026;0$y", false, false, false }, { "\033[?2026;4$y", false, false, false },
        { "\033[?2026;", false, false, false }, { "\033[?2004;1$y", false, false, false },
        { "\033[?0u", false, true, false }, { "\033[?1u", false, true, false }, { "\033[?u", false, false, false },
        { "\033[?62;22c", false, false, true }, { "\033[?1;2c", false, false, true },
        { "\033[?", false, false, false }, { "\033[c", false, false, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ebb_term_answers a = { 0 };
        assert_int_equal(ebb_questions_take(&a, rows[i].answer, strlen(rows[i].answer)),
                         rows[i].has_sync || rows[i].has_keys || rows[i].is_complete);
        assert_int_equal(a.has_sync, rows[i].has_sync);
        assert_int_equal(a.has_key_protocol, rows[i].has_keys);
        assert_int_equal(a.is_complete, rows[i].is_complete);
    }
}

static void who_is_asked(void **state)
{
    static const char *const asked[] = { "xterm-256color", "xterm-kitty", "tmux-256color", "screen", "foot",
                                        "st-256color" },
                      *const left_alone[] = { "linux", "vt100", "dumb", "ansi", "eterm-color", "", "stv52", "wy60" };
    ebb_buf all = { 0 }, apple = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_true(ebb_questions_suit(asked[i]));
    for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
        assert_false(ebb_questions_suit(left_alone[i]));
    ebb_questions_add(&all, NULL);
    ebb_questions_add(&apple, "Apple_Terminal");
    assert_string_equal(ebb_buf_text(&all), "\033]11;?\033\\\033[?2026$p\033[?u\033[>q\033[c");
    assert_string_equal(ebb_buf_text(&apple), "\033]11;?\033\\\033[?u\033[>q\033[c");
    ebb_buf_fini(&all);
    ebb_buf_fini(&apple);
}

static void announcements(void **state)
{
    ebb_buf out = { 0 };
    char longest[1000];

    (void)state;
    ebb_announce_add_title(&out, "a\033]0;b\a\xE2\x80\xAE\nc;d", strlen("a\033]0;b\a\xE2\x80\xAE\nc;d"), true);
    assert_memory_equal(out.data, "\033]2;", 4);
    for (size_t i = 4; i + 1 < out.len; i++)
        assert_true(out.data[i] >= ' ' && out.data[i] < 0x7F && out.data[i] != ';');
    assert_int_equal(out.data[out.len - 1], '\a');
    ebb_buf_clear(&out);
    ebb_announce_add_title(&out, "", 0, false);
    assert_string_equal(ebb_buf_text(&out), "\033]2;ebb\a");
    ebb_buf_clear(&out);
    memset(longest, 'x', sizeof longest);
    ebb_announce_add_title(&out, longest, sizeof longest, false);
    assert_true(out.len < 140);
    ebb_buf_clear(&out);
    ebb_announce_add_notification(&out, "done; all", 9, "xterm", false, false, false);
    assert_string_equal(ebb_buf_text(&out), "\033]9;ebb: done, all\a");
    ebb_buf_clear(&out);
    ebb_announce_add_notification(&out, "done", 4, "foot", false, false, false);
    assert_string_equal(ebb_buf_text(&out), "\033]777;notify;ebb;done\a");
    ebb_buf_clear(&out);
    ebb_announce_add_notification(&out, "done", 4, "tmux-256color", false, true, false);
    assert_string_equal(ebb_buf_text(&out), "\033Ptmux;\033\033]9;ebb: done\a\033\\");
    ebb_buf_fini(&out);
}

/* -- A terminal at the far end of a pty ------------------------------------------------------------- */

static const char all_answers[] = "\033]11;rgb:ffff/ffff/ffff\033\\\033[?2026;2$y\033[?0u\033[?62c";

typedef struct far_end {
    int     fd;
    pid_t   pid;
    ebb_buf got;
} far_end;

static void put_frame(ebb_term *t, const char *text)
{
    if (t->ops->begin)
        t->ops->begin(t, 0, 10);
    t->ops->clear(t);
    for (int row = 0; row < 10; row++)
        ebb_term_puts(t, row, 0, 80, text, EBB_FACE_TEXT);
    t->ops->flush(t, 9, 0);
}

/* Says what it knows and gets, a line each; `e` lends the line, `k` crashes. */
static void play_terminal(bool is_inline)
{
    ebb_term_opts opts = { 0 };
    ebb_term *t;
    ebb_input in;
    ebb_error err;

    if ((is_inline ? ebb_term_inline : ebb_term_curses)(&opts, &t, &err) != EBB_OK)
        _exit(1);
    t->ops->title(t, "talk", 4);
    put_frame(t, "first");
    for (;;) {
        struct pollfd fds[3];
        int n = t->ops->fds(t, fds, 3);

        poll(fds, (nfds_t)n, t->ops->timeout_ms(t));
        while (t->ops->input(t, &in)) {
            char line[80];
            if (in.kind == EBB_INPUT_HANGUP || (in.kind == EBB_INPUT_KEY && in.key.code == 'q')) {
                t->ops->close(t);
                _exit(0);
            }
            if (in.kind == EBB_INPUT_KEY && in.key.code == 'k')
                abort();
            if (in.kind == EBB_INPUT_KEY && in.key.code == 'e') {
                t->ops->lend(t, false);
                t->ops->send(t, "<lent>", 6);
                t->ops->take_back(t);
                put_frame(t, "again");
                continue;
            }
            snprintf(line, sizeof line, "<%d %x %d|%d%d%d%d>", in.kind, in.key.code, in.key.mods,
                     t->answers.background, t->answers.has_sync, t->answers.has_key_protocol, t->answers.is_complete);
            t->ops->send(t, line, strlen(line));
            if (in.kind == EBB_INPUT_REPLY)
                put_frame(t, t->answers.is_complete ? "a frame of all rows" : "some");
        }
    }
}

static far_end begin_far_end_of(unsigned short rows, unsigned short cols, bool is_inline, const char *term_name)
{
    struct winsize size = { .ws_row = rows, .ws_col = cols };
    far_end f = { 0 };

    f.pid = forkpty(&f.fd, NULL, NULL, &size);
    assert_true(f.pid >= 0);
    if (f.pid == 0) {
        setenv("TERM", term_name, 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        unsetenv("TERM_PROGRAM");
        play_terminal(is_inline);
    }
    return f;
}

static far_end begin_far_end(bool is_inline, const char *term_name)
{
    return begin_far_end_of(24, 80, is_inline, term_name);
}

/* Read until `text` has come; false: the end has. */
static bool read_until(far_end *f, const char *text)
{
    char bytes[4096];
    ssize_t got;

    while (f->got.len == 0 || !memmem(f->got.data, f->got.len, text, strlen(text))) {
        if ((got = read(f->fd, bytes, sizeof bytes)) <= 0)
            return false;
        ebb_buf_add(&f->got, bytes, (size_t)got);
    }
    return true;
}

static void say(far_end *f, const char *s)
{
    assert_int_equal(write(f->fd, s, strlen(s)), (ssize_t)strlen(s));
}

static int end_far_end(far_end *f)
{
    int status = 0;

    while (read_until(f, "\001"))                /* which never comes */
        ;
    waitpid(f->pid, &status, 0);
    close(f->fd);
    return status;
}

static const char *find(const far_end *f, const char *s)
{
    return memmem(f->got.data, f->got.len, s, strlen(s));
}

static void answers_are_taken(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        far_end f = begin_far_end(i, "xterm-256color");

        assert_true(read_until(&f, "\033[c"));
        say(&f, "x");                            /* a key before the answers is a key, not lost */
        say(&f, all_answers);
        assert_true(read_until(&f, "|2111>"));
        assert_true(read_until(&f, EBB_KEY_PROTOCOL_ON));
        say(&f, "\033[13;2u");
        assert_true(read_until(&f, "<1 11000c 4|2111>"));
        assert_non_null(find(&f, "<1 78 0|"));
        say(&f, "e");
        assert_true(read_until(&f, "<lent>"));
        say(&f, "q");
        assert_int_equal(end_far_end(&f), 0);
        /* Frames are announced, the protocol is given back for others and in the end, as is the title. */
        assert_non_null(find(&f, EBB_SYNC_BEGIN));
        assert_non_null(find(&f, EBB_SYNC_END));
        assert_true(find(&f, EBB_KEY_PROTOCOL_OFF) < find(&f, "<lent>"));
        assert_true(find(&f, EBB_TITLE_SAVE) < find(&f, "\033]2;talk - ebb\a"));
        assert_true(find(&f, EBB_TITLE_RESTORE) < find(&f, "<lent>"));
        const char *back = find(&f, "<lent>");
        size_t n = f.got.len - (size_t)(back - f.got.data);
        assert_non_null(memmem(back, n, EBB_KEY_PROTOCOL_ON, sizeof EBB_KEY_PROTOCOL_ON - 1));
        assert_non_null(memmem(back, n, EBB_KEY_PROTOCOL_OFF, sizeof EBB_KEY_PROTOCOL_OFF - 1));
        assert_non_null(memmem(back, n, EBB_TITLE_RESTORE, sizeof EBB_TITLE_RESTORE - 1));
        ebb_buf_fini(&f.got);
    }
}

/* Of whatever size it is: nothing of curses' goes out before the questions, where a half of a sequence would be. */
static void the_smallest_is_asked_first(void **state)
{
    static const unsigned short sizes[][2] = { { 1, 1 }, { 1, 2 }, { 2, 3 }, { 3, 10 } };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        far_end f = begin_far_end_of(sizes[i][0], sizes[i][1], false, "xterm-256color");

        assert_true(read_until(&f, "\033[c"));
        assert_memory_equal(f.got.data, "\033]11;?", 6);
        say(&f, "z");
        assert_true(read_until(&f, "<1 7a 0|0000>"));
        say(&f, "q");
        assert_int_equal(end_far_end(&f), 0);
        assert_non_null(find(&f, "\033[?1049h"));
        ebb_buf_fini(&f.got);
    }
}

/* Byte by byte, with keys before, between and behind: no part of an answer is a key. */
static void slow_answers_do_not_leak(void **state)
{
    far_end f = begin_far_end(false, "xterm-256color");

    (void)state;
    assert_true(read_until(&f, "\033[c"));
    for (size_t i = 0; i < sizeof all_answers - 1; i++) {
        char one[2] = { all_answers[i] };
        usleep(i % 7 == 0 ? 60000 : 1000);       /* longer than what a lone Esc is waited for */
        say(&f, one);
    }
    say(&f, "y");
    assert_true(read_until(&f, "<1 79 0|2111>"));
    for (size_t i = 0; i + 3 < f.got.len; i++)
        if (memcmp(f.got.data + i, "<1 ", 3) == 0)
            assert_memory_equal(f.got.data + i, "<1 79", 5);
    say(&f, "q");
    assert_int_equal(end_far_end(&f), 0);
    ebb_buf_fini(&f.got);
}

/* Nobody waits for a terminal that says nothing, and it gets nothing that it did not ask for. */
static void silence(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        far_end f = begin_far_end(i, "xterm-256color");

        assert_true(read_until(&f, "first"));    /* the first frame, without an answer */
        say(&f, "z");
        assert_true(read_until(&f, "<1 7a 0|0000>"));
        say(&f, "q");
        assert_int_equal(end_far_end(&f), 0);
        assert_null(find(&f, EBB_SYNC_BEGIN));
        assert_null(find(&f, EBB_KEY_PROTOCOL_ON));
        assert_null(find(&f, EBB_KEY_PROTOCOL_OFF));
        ebb_buf_fini(&f.got);
    }
}

static void others_are_asked_nothing(void **state)
{
    far_end f = begin_far_end(false, "vt100");

    (void)state;
    assert_true(read_until(&f, "first"));
    say(&f, "q");
    assert_int_equal(end_far_end(&f), 0);
    assert_null(find(&f, "\033]"));
    assert_null(find(&f, "\033[c"));
    assert_null(find(&f, EBB_TITLE_SAVE));
    ebb_buf_fini(&f.got);
}

static void a_crash_gives_all_back(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        far_end f = begin_far_end(i, "xterm-256color");

        assert_true(read_until(&f, "\033[c"));
        say(&f, all_answers);
        assert_true(read_until(&f, EBB_KEY_PROTOCOL_ON));
        say(&f, "k");
        assert_true(WIFSIGNALED(end_far_end(&f)));
        assert_non_null(find(&f, EBB_KEY_PROTOCOL_OFF));
        assert_non_null(find(&f, EBB_TITLE_RESTORE));
        ebb_buf_fini(&f.got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colors), cmocka_unit_test(modes), cmocka_unit_test(who_is_asked),
        cmocka_unit_test(announcements), cmocka_unit_test(answers_are_taken),
        cmocka_unit_test(the_smallest_is_asked_first),
        cmocka_unit_test(slow_answers_do_not_leak), cmocka_unit_test(silence),
        cmocka_unit_test(others_are_asked_nothing), cmocka_unit_test(a_crash_gives_all_back),
    };

    return cmocka_run_group_tests_name("questions", tests, NULL, NULL);
}
