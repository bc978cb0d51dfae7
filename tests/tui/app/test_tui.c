/* The full screen on a real terminal line (a pty), with the scripted chat. */
#include "ebb_test.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "tui.h"
#include "tui/fake_chat.h"

typedef struct line {
    pid_t          pid;
    int            fd;
    struct termios before;
    ebb_buf        out;          /* since the last take */
} line;

/* Ends with a line that is typed. */
static const char editor[] = "trap 'echo editor: continued' CONT; echo editor: open; until read -r line; do :; done #";
static bool is_inline;           /* which of the two screens is tried */
static const char *theme;        /* chosen, or NULL */

/* -- Waiting, made visible ----------------------------------------------------------------------------- */

static bool shows_waits;         /* in the program: poll() says so on the line before it waits for it */
static bool has_waited;
static const char wait_mark[] = "<waits>";

/* In place of libc's.  Time stands until the program waits, so that what it gives the terminal, counted from when it
 * asked, is not over before it waits where the start is slow (under valgrind it is). */
int clock_gettime(clockid_t id, struct timespec *t)
{
    static struct timespec begin;
    int failed = (int)syscall(SYS_clock_gettime, id, t);

    if (shows_waits && !has_waited && id == CLOCK_MONOTONIC) {
        if (begin.tv_sec == 0)
            begin = *t;
        *t = begin;
    }
    return failed;
}

/* A file is polled, too, before it is read. */
static bool has_terminal(const struct pollfd *fds, nfds_t n)
{
    for (nfds_t i = 0; i < n; i++)
        if (isatty(fds[i].fd))
            return true;
    return false;
}

static int poll_and_tell(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec t = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

    if (shows_waits && timeout_ms != 0 && has_terminal(fds, n)) {
        has_waited = true;
        if (write(STDOUT_FILENO, wait_mark, sizeof wait_mark - 1) < 0)
            _exit(1);
    }
    return ppoll(fds, n, timeout_ms < 0 ? NULL : &t, NULL);
}

/* In place of libc's, under both names that the compiler may call it by. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return poll_and_tell(fds, n, timeout_ms);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t n_bytes);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t n_bytes)
{
    if (n > n_bytes / sizeof *fds)
        abort();
    return poll_and_tell(fds, n, timeout_ms);
}

/* -- A line and the program on it -------------------------------------------------------------------------- */

/* Those of a new line.  The program has its own as soon as it runs, and nobody knows how soon that is. */
static struct termios usual_modes(void)
{
    struct termios modes;
    int ends[2];

    assert_int_equal(openpty(&ends[0], &ends[1], NULL, NULL, NULL), 0);
    assert_int_equal(tcgetattr(ends[1], &modes), 0);
    close(ends[0]);
    close(ends[1]);
    return modes;
}

static void start(line *l, const char *term)
{
    static const ebb_chat_opts chat = { 0 };
    ebb_tui_opts opts = { .config_dir = "/nonexistent", .state_dir = "", .editor = editor, .is_inline = is_inline,
                          .theme = theme };
    struct winsize size = { .ws_row = 24, .ws_col = 80 };

    memset(l, 0, sizeof *l);
    l->before = usual_modes();
    l->pid = forkpty(&l->fd, NULL, &l->before, &size);
    assert_true(l->pid >= 0);
    if (l->pid == 0) {
        setenv("TERM", term, 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        fake_echoes = true;
        int code = ebb_tui_run(&chat, &opts);
        fflush(stdout);
        _exit(code);
    }
}

/* Reads until `want` was there, or nothing comes for so many seconds. */
static bool expect(line *l, const char *want, double seconds)
{
    double end = ebb_clock_s() + seconds;
    char bytes[4096];

    while (!want || !memmem(ebb_buf_text(&l->out), l->out.len, want, strlen(want))) {
        struct pollfd p = { .fd = l->fd, .events = POLLIN };
        int left = (int)((end - ebb_clock_s()) * 1000);
        if (left <= 0 || poll(&p, 1, left) <= 0)
            return false;
        ssize_t got = read(l->fd, bytes, sizeof bytes);
        if (got <= 0)
            return false;
        ebb_buf_add(&l->out, bytes, (size_t)got);
    }
    return true;
}

static void put(line *l, const char *bytes)
{
    ebb_buf_clear(&l->out);
    assert_int_equal(write(l->fd, bytes, strlen(bytes)), strlen(bytes));
}

static void start_ready(line *l, const char *term)
{
    start(l, term);
    assert_true(expect(l, "Fake 8B", EBB_TEST_WAIT_S));
}

/* What was left over of the modes, and the exit status; SIGKILL's if it would not end. */
static int finish(line *l, bool *restored)
{
    struct termios after;
    double end = ebb_clock_s() + EBB_TEST_WAIT_S;
    int status;

    expect(l, NULL, EBB_TEST_WAIT_S);                      /* to the end of its output */
    if (ebb_clock_s() >= end)
        kill(l->pid, SIGKILL);
    *restored = tcgetattr(l->fd, &after) == 0 && after.c_lflag == l->before.c_lflag &&
                after.c_iflag == l->before.c_iflag && after.c_oflag == l->before.c_oflag;
    waitpid(l->pid, &status, 0);
    close(l->fd);
    ebb_buf_fini(&l->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Whatever is being typed; the terminal is as it was. */
static void quit(line *l)
{
    bool restored;

    put(l, "\x15/quit\r");
    assert_int_equal(finish(l, &restored), 0);
    assert_true(restored);
}

static void talks_on(const char *term)
{
    line l;

    start_ready(&l, term);
    put(&l, "hello\r");
    assert_true(expect(&l, "You said: hello", EBB_TEST_WAIT_S));
    quit(&l);
}

static void every_kind_of_terminal(void **state)
{
    static const char *const terms[] = { "xterm-256color", "xterm", "screen", "tmux-256color", "linux",
                                         "vt100", "rxvt" };

    (void)state;
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        talks_on(terms[i]);
}

/* A link that stutters brings them together; no wheel is sent as arrows on the only screen that there is. */
static void arrows_that_come_together(void **state)
{
    line l;

    (void)state;
    start_ready(&l, is_inline ? "xterm-256color" : "vt100");
    put(&l, "first\r");
    assert_true(expect(&l, "You said: first", EBB_TEST_WAIT_S));
    put(&l, "second\r");
    assert_true(expect(&l, "second", EBB_TEST_WAIT_S));
    put(&l, "third\r");
    assert_true(expect(&l, "third", EBB_TEST_WAIT_S));
    put(&l, "\033OA\033OA\033OAx\r");
    assert_true(expect(&l, "firstx", EBB_TEST_WAIT_S));
    quit(&l);
}

static void dumb_gets_plain_lines(void **state)
{
    bool restored;
    line l;

    (void)state;
    start(&l, "dumb");
    assert_true(expect(&l, "You: ", EBB_TEST_WAIT_S));
    assert_null(memmem(l.out.data, l.out.len, "TERM", 4));       /* they were asked for */
    put(&l, "hello\n");
    assert_true(expect(&l, "Model: You said: hello", EBB_TEST_WAIT_S));
    assert_null(memchr(l.out.data, '\033', l.out.len));
    put(&l, "\x04");
    assert_int_equal(finish(&l, &restored), 0);
}

/* The only screen that there is still has the frame, and the cursor in its last row. */
static void the_last_words_have_a_row(void **state)
{
    bool restored;
    line l;

    (void)state;
    start_ready(&l, "vt100");
    put(&l, "hello\r");
    assert_true(expect(&l, "You said: hello", EBB_TEST_WAIT_S));
    put(&l, "/quit\r");
    assert_true(expect(&l, " continues: ", EBB_TEST_WAIT_S));
    assert_non_null(memmem(l.out.data, l.out.len, "\033[Kebb -c continues: ", 21));
    assert_int_equal(finish(&l, &restored), 0);
    assert_true(restored);
}

/* Who comes from a newer terminal over ssh is told why there is no screen, and what helps. */
static void unknown_gets_plain_lines(void **state)
{
    bool restored;
    line l;

    (void)state;
    start(&l, "xterm-\033of-tomorrow");
    assert_true(expect(&l, "You: ", EBB_TEST_WAIT_S));
    assert_int_equal(strncmp(l.out.data, "Note: terminfo knows no way", 27), 0);
    assert_non_null(memmem(l.out.data, l.out.len, "of-tomorrow' (TERM), so these are plain lines", 45));
    assert_non_null(memmem(l.out.data, l.out.len, "TERM=xterm-256color\r\n", 21));
    assert_null(memchr(l.out.data, '\033', l.out.len));
    put(&l, "\x04");
    assert_int_equal(finish(&l, &restored), 0);
}

static void signals_restore(void **state)
{
    static const struct { int number, status; } table[] = {
        { SIGTERM, 143 }, { SIGHUP, 129 }, { SIGINT, 130 }, { SIGSEGV, -SIGSEGV }, { SIGABRT, -SIGABRT },
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bool restored;
        line l;
        start_ready(&l, "xterm-256color");
        ebb_buf_clear(&l.out);
        kill(l.pid, table[i].number);
        /* The old screen is back. */
        assert_true(expect(&l, is_inline ? "\033[?2004l" : "\033[?1049l", EBB_TEST_WAIT_S));
        assert_true(memmem(l.out.data, l.out.len, "\033[?2004l", 8) != NULL);
        assert_int_equal(finish(&l, &restored), table[i].status);
        assert_true(restored);
    }
}

/* The terminal goes at any stage: before the first frame, while one types, reads, searches, looks back, is in
 * another program. */
static void hang_up_ends_it(void **state)
{
    static const char *const stages[] = { NULL, "", "a draft", "hello\r", "/help\r\033[5~", "/help\r\023hel",
                                          "\033[200~a paste that",
                                          "one\012two\012three", "\033", "\022on", "/bare\r", "\x07" };

    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        int status;
        line l;
        start(&l, "xterm");
        if (stages[i]) {
            assert_true(expect(&l, "Fake 8B", EBB_TEST_WAIT_S));
            put(&l, stages[i]);
            expect(&l, NULL, 0.1);
        }
        close(l.fd);
        waitpid(l.pid, &status, 0);              /* an orphan would hold us up here */
        bool was_too_early = i == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1;   /* it found no terminal */
        if (!was_too_early && (WIFEXITED(status) ? WEXITSTATUS(status) != 129 : WTERMSIG(status) != SIGHUP))
            fail_msg("stage %zu: status %x", i, status);
        ebb_buf_fini(&l.out);
    }
}

/* Until there is a second and a half in which nothing comes; false: somebody always has something to say. */
static bool falls_silent(line *l)
{
    for (int i = 0; i < 40; i++) {
        ebb_buf_clear(&l->out);
        expect(l, NULL, 1.5);
        if (l->out.len == 0)
            return true;
    }
    return false;
}

/* SIGSTOP, since SIGTSTP does nothing to a program that is alone on its line.  It has stopped when we are told so, and
 * has its modes when it switches pastes on: what is typed before that is edited by the line. */
static void comes_back_after_a_stop(void **state)
{
    int status;
    line l;

    (void)state;
    start_ready(&l, "xterm");
    put(&l, "draft");
    assert_true(falls_silent(&l));
    kill(l.pid, SIGSTOP);
    assert_int_equal(waitpid(l.pid, &status, WUNTRACED), l.pid);
    assert_true(WIFSTOPPED(status));
    tcsetattr(l.fd, TCSANOW, &l.before);         /* as a shell does */
    kill(l.pid, SIGCONT);
    assert_true(expect(&l, "\033[?2004h", EBB_TEST_WAIT_S));
    assert_true(expect(&l, "draft", EBB_TEST_WAIT_S));
    quit(&l);
}

/* Nobody could continue it: it stays, and says so; nor does an editor stay stopped. */
static void is_not_stopped_for_ever(void **state)
{
    line l;

    (void)state;
    start_ready(&l, "xterm");
    put(&l, "\x1A");
    assert_true(expect(&l, "it was not stopped", EBB_TEST_WAIT_S));
    put(&l, "\x07");
    assert_true(expect(&l, "editor: open", EBB_TEST_WAIT_S));
    put(&l, "\x1A");
    assert_true(expect(&l, "editor: continued", EBB_TEST_WAIT_S));
    put(&l, "x\n");
    assert_true(expect(&l, "\033[?2004h", EBB_TEST_WAIT_S));
    assert_true(expect(&l, "Fake 8B", EBB_TEST_WAIT_S));
    quit(&l);
}

/* Bytes: nothing while idle, little for a key; a resize is followed. */
static void the_link_is_spared(void **state)
{
    struct winsize size = { .ws_row = 30, .ws_col = 120 };
    size_t n_bytes = 0;
    bool restored;
    line l;

    (void)state;
    start_ready(&l, "xterm-256color");
    assert_true(falls_silent(&l));
    for (int i = 0; i < 20; i++) {               /* what comes late is counted with the next one */
        put(&l, "x");
        assert_true(expect(&l, "x", EBB_TEST_WAIT_S));
        n_bytes += l.out.len;
    }
    assert_true(n_bytes <= 20 * 64);
    ebb_buf_clear(&l.out);
    ioctl(l.fd, TIOCSWINSZ, &size);
    assert_true(expect(&l, "Q4_K_M", EBB_TEST_WAIT_S));
    put(&l, "\x15\x04");
    assert_int_equal(finish(&l, &restored), 0);
}

/* Is the first frame drawn before anything is waited for?  The terminal answers nothing. */
static bool draws_first(const char *want)
{
    const char *frame, *wait;
    bool restored;
    line l;

    shows_waits = true;
    start(&l, "xterm-256color");
    shows_waits = false;
    assert_true(expect(&l, wait_mark, EBB_TEST_WAIT_S));
    assert_true(expect(&l, want, EBB_TEST_WAIT_S));
    assert_non_null(memmem(l.out.data, l.out.len, "\033[c", 3));             /* it was asked */
    frame = memmem(l.out.data, l.out.len, want, strlen(want));
    wait = memmem(l.out.data, l.out.len, wait_mark, sizeof wait_mark - 1);
    put(&l, "\x04");
    assert_int_equal(finish(&l, &restored), 0);
    return frame < wait;
}

static void nothing_is_waited_for_to_begin(void **state)
{
    (void)state;
    assert_true(draws_first("Fake 8B"));
}

/* Inline, rows of a conversation would keep wrong colours when they have scrolled, unless a theme was chosen. */
static void a_conversation_that_goes_on(void **state)
{
    (void)state;
    fake_question = "Seas?";
    fake_answer = "Tides.";
    assert_int_equal(draws_first("Tides."), !is_inline);
    theme = "light";
    assert_true(draws_first("Tides."));
    theme = fake_question = fake_answer = NULL;
}

static int inline_group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_terminal),
        cmocka_unit_test(arrows_that_come_together),
        cmocka_unit_test(unknown_gets_plain_lines),
        cmocka_unit_test(signals_restore),
        cmocka_unit_test(hang_up_ends_it),
        cmocka_unit_test(comes_back_after_a_stop),
        cmocka_unit_test(is_not_stopped_for_ever),
        cmocka_unit_test(the_link_is_spared),
        cmocka_unit_test(nothing_is_waited_for_to_begin),
        cmocka_unit_test(a_conversation_that_goes_on),
    };

    is_inline = true;
    return cmocka_run_group_tests_name("inline", tests, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_terminal),
        cmocka_unit_test(arrows_that_come_together),
        cmocka_unit_test(dumb_gets_plain_lines),
        cmocka_unit_test(the_last_words_have_a_row),
        cmocka_unit_test(unknown_gets_plain_lines),
        cmocka_unit_test(signals_restore),
        cmocka_unit_test(hang_up_ends_it),
        cmocka_unit_test(comes_back_after_a_stop),
        cmocka_unit_test(is_not_stopped_for_ever),
        cmocka_unit_test(the_link_is_spared),
        cmocka_unit_test(nothing_is_waited_for_to_begin),
        cmocka_unit_test(a_conversation_that_goes_on),
    };
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);

    return n_failed + inline_group();
}
