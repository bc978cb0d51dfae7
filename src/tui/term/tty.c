/* The terminal line (tty.h). */
#include "term/tty.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "term/announce.h"
#include "term/signals.h"
#include "term/tty_output.h"

enum { READ_BYTES = 64 << 10, MAX_ROWS = 1000, MAX_COLS = 2000 };

/* What signal handlers need. */
static struct {
    struct termios cooked;
    char           restore[256]; /* bytes that bring the terminal back */
    size_t         n_restore;
    volatile sig_atomic_t is_active;
    bool           is_open;
} line;

static const int fatal[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL };

/* -- Restoring --------------------------------------------------------------- */

/* Async-signal-safe. */
static void restore_now(void)
{
    if (!line.is_active)
        return;
    line.is_active = 0;
    ebb_tty_write_now(line.restore, line.n_restore);
    tcsetattr(STDIN_FILENO, TCSANOW, &line.cooked);
}

void ebb_tty_guard(bool is_on)
{
    line.is_active = is_on;
}

void ebb_tty_guard_with(const char *bytes, size_t n)
{
    line.n_restore = n < sizeof line.restore ? n : 0;
    memcpy(line.restore, bytes, line.n_restore);
}

static void on_fatal(int number)
{
    static const char text[] = "ebb: stopped by a fault of its own, signal ";
    char digits[8] = { (char)('0' + number / 10), (char)('0' + number % 10), '\n' };

    restore_now();
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0 || write(STDERR_FILENO, digits, 3) < 0)
        _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

static void install_fatal(void (*handler)(int), int flags)
{
    struct sigaction sa = { .sa_flags = flags };

    sa.sa_handler = handler;
    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &sa, NULL);
}

static bool install_handlers(void)
{
    static char stack[64 << 10];
    stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };

    if (!ebb_signals_open())
        return false;
    sigaltstack(&alternate, NULL);
    install_fatal(on_fatal, SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
    return true;
}

/* -- Opening and closing --------------------------------------------------------- */

ebb_status ebb_tty_open(ebb_tty *t, ebb_error *err)
{
    static bool has_exit_hook;

    memset(t, 0, sizeof *t);
    if (line.is_open)
        return EBB_FAIL(err, EBB_BUSY, "the terminal is already in use");
    if (tcgetattr(STDIN_FILENO, &line.cooked) != 0 || !isatty(STDOUT_FILENO))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "standard input and output are not a terminal; use --plain");
    if (!install_handlers())
        return EBB_FAIL(err, EBB_UNSUPPORTED, "signals cannot be caught here; use --plain");
    ebb_tty_output_open();
    line.is_open = true;
    line.n_restore = 0;
    if (!has_exit_hook)
        has_exit_hook = atexit(restore_now) == 0;
    return EBB_OK;
}

void ebb_tty_close(ebb_tty *t)
{
    ebb_tty_take_back(t);
    install_fatal(SIG_DFL, 0);
    ebb_tty_output_close();
    ebb_signals_close();
    line.is_open = false;
    line.is_active = 0;
    ebb_keys_fini(&t->keys);
    ebb_buf_fini(&t->reply);
    ebb_buf_fini(&t->title);
}

void ebb_tty_raw(void)
{
    struct termios raw = line.cooked;

    cfmakeraw(&raw);                             /* Ctrl-C, -Z, -S and -Q are keys here */
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

void ebb_tty_cooked(void)
{
    tcsetattr(STDIN_FILENO, TCSANOW, &line.cooked);
}

/* What the line says, or, where it says nothing (a serial one), the environment; 0: unknown. */
static long size_of(unsigned short said, const char *name)
{
    const char *s = said ? NULL : getenv(name);

    return s ? strtol(s, NULL, 10) : said;
}

bool ebb_tty_size(int *rows, int *cols)
{
    struct winsize ws = { 0 };
    long n_rows, n_cols;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) != 0)
        ws.ws_row = ws.ws_col = 0;
    n_rows = size_of(ws.ws_row, "LINES");
    n_cols = size_of(ws.ws_col, "COLUMNS");
    if (n_rows <= 0 || n_cols <= 0)
        return false;
    *rows = n_rows < MAX_ROWS ? (int)n_rows : MAX_ROWS;
    *cols = n_cols < MAX_COLS ? (int)n_cols : MAX_COLS;
    return true;
}

double ebb_tty_byte_s(void)
{
    static const struct { speed_t speed; double baud; } slow[] = {
        { B19200, 19200 }, { B9600, 9600 }, { B4800, 4800 }, { B2400, 2400 }, { B1200, 1200 },
    };
    enum { BITS = 10 };          /* of a byte, with where it begins and ends */
    struct termios modes;
    speed_t speed = tcgetattr(STDOUT_FILENO, &modes) == 0 ? cfgetospeed(&modes) : B0;

    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (slow[i].speed == speed)
            return BITS / slow[i].baud;
    return 0;
}

bool ebb_tty_has_links(ebb_links wish, double byte_s, const char *term_name)
{
    return byte_s <= 0 && (wish == EBB_LINKS_ALWAYS || (wish == EBB_LINKS_AUTO && ebb_questions_has_links(term_name)));
}

/* Raw mode for input; output keeps its line processing. */
static void set_keys_only(void)
{
    struct termios modes = line.cooked;

    cfmakeraw(&modes);
    modes.c_oflag = line.cooked.c_oflag;
    tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

void ebb_tty_lend(ebb_tty *t, bool keeps_keys)
{
    t->is_lent = true;
    t->keeps_keys = keeps_keys;
    if (keeps_keys)
        set_keys_only();
    else
        ebb_signals_ignore_keys(true);
}

void ebb_tty_take_back(ebb_tty *t)
{
    if (!t->is_lent)
        return;
    if (t->keeps_keys)
        ebb_tty_cooked();
    else
        ebb_signals_ignore_keys(false);
    t->is_lent = t->keeps_keys = false;
}

bool ebb_tty_is_plain_kind(const char *name)
{
    return strncmp(name, "vt", 2) == 0 || strcmp(name, "linux") == 0 || strncmp(name, "dumb", 4) == 0 ||
           strncmp(name, "ansi", 4) == 0;
}

bool ebb_tty_has_paste(const char *name)
{
    return !ebb_tty_is_plain_kind(name) || strcmp(name, "linux") == 0;
}

/* -- Input ---------------------------------------------------------------------- */

static bool has_keys(const ebb_tty *t)
{
    return !t->is_lent || t->keeps_keys;
}

int ebb_tty_fds(const ebb_tty *t, struct pollfd *out, int cap)
{
    int n = 0;

    if (cap > 0)
        out[n++] = (struct pollfd){ .fd = ebb_signals_fd(), .events = POLLIN };
    if (cap > 1 && !t->is_gone)
        out[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = has_keys(t) ? POLLIN : 0 };
    if (cap > 2)
        out[n++] = (struct pollfd){ .fd = ebb_tty_output_fd(), .events = POLLOUT };
    return n;
}

int ebb_tty_timeout_ms(const ebb_tty *t)
{
    return has_keys(t) && ebb_keys_is_waiting(&t->keys) ? EBB_KEYS_WAIT_MS : -1;
}

static bool has_input(int timeout_ms)
{
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

    return poll(&p, 1, timeout_ms) > 0;
}

/* Seconds after which a terminal counts as one that does not reply. */
static const double usual_reply_s = 1;

/* Take the terminal's replies from between the keys; true: a reply has new information. */
static bool take_replies(ebb_tty *t)
{
    bool is_news = false;

    while (!is_news && t->is_asked && ebb_keys_take_reply(&t->keys, &t->reply))
        is_news = ebb_questions_take(&t->answers, ebb_buf_text(&t->reply), t->reply.len);
    return is_news;
}

void ebb_tty_ask(ebb_tty *t, const char *term_name)
{
    ebb_buf questions = { 0 };

    if (t->is_asked || !ebb_questions_suit(term_name))
        return;
    t->is_asked = true;
    t->asked_s = ebb_clock_s();
    ebb_questions_add(&questions, getenv("TERM_PROGRAM"));
    ebb_tty_write(ebb_buf_text(&questions), questions.len);
    ebb_buf_fini(&questions);
}

void ebb_tty_await_answers(ebb_tty *t, double until_s)
{
    char bytes[4096];

    while (t->is_asked && !t->is_gone) {
        double left_s = t->asked_s + until_s - ebb_clock_s();
        ssize_t got;

        if (take_replies(t))
            continue;
        if (t->answers.is_complete || !has_input(left_s > 0 ? (int)(left_s * 1000) + 1 : 0))
            return;
        got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got <= 0)                            /* whoever reads next finds out why */
            return;
        ebb_keys_feed(&t->keys, bytes, (size_t)got);
    }
}

void ebb_tty_await_last_answers(ebb_tty *t)
{
    static const double silent_s = 2, most_s = 0.1;
    double age_s = ebb_clock_s() - t->asked_s;

    if (t->is_asked && !t->answers.is_complete && age_s < silent_s)
        ebb_tty_await_answers(t, age_s + most_s);
}

/* -- The title --------------------------------------------------------------------- */

void ebb_tty_set_title(ebb_tty *t, const char *text, size_t n, bool ascii)
{
    ebb_buf title = { 0 };

    if (!t->is_asked)
        return;
    ebb_announce_add_title(&title, text, n, ascii);
    if (!title.failed && (title.len != t->title.len || memcmp(title.data, ebb_buf_text(&t->title), title.len) != 0)) {
        ebb_tty_write(title.data, title.len);
        ebb_buf_fini(&t->title);
        t->title = title;
        return;
    }
    ebb_buf_fini(&title);
}

void ebb_tty_enter_title(ebb_tty *t)
{
    if (!t->is_asked)
        return;
    ebb_tty_write(EBB_TITLE_SAVE, sizeof EBB_TITLE_SAVE - 1);
    ebb_tty_write(ebb_buf_text(&t->title), t->title.len);
}

void ebb_tty_leave_title(ebb_tty *t)
{
    if (t->is_asked)
        ebb_tty_write(EBB_TITLE_RESTORE, sizeof EBB_TITLE_RESTORE - 1);
}

/* -- Keys ------------------------------------------------------------------------------ */

static bool next_signal(ebb_input *out)
{
    int number = ebb_signals_next();

    if (number == 0)
        return false;
    *out = (ebb_input){ .number = number };
    switch (number) {
    case SIGWINCH: out->kind = EBB_INPUT_RESIZE; break;
    case SIGCONT: out->kind = EBB_INPUT_RESUME; break;
    case SIGTSTP: out->kind = EBB_INPUT_SUSPEND; break;
    case SIGUSR1: out->kind = EBB_INPUT_STOP; break;
    case SIGUSR2: out->kind = EBB_INPUT_SHARE; break;
    case SIGCHLD: out->kind = EBB_INPUT_CHILD; break;
    default: out->kind = EBB_INPUT_SIGNAL;
    }
    return true;
}

static bool is_hung_up(void)
{
    struct pollfd p = { .fd = STDIN_FILENO };

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR));
}

bool ebb_tty_is_interrupted(ebb_tty *t)
{
    char bytes[READ_BYTES];

    if (t->is_gone || !has_keys(t))
        return t->is_gone;
    if (t->keys.in.len < sizeof bytes && has_input(0)) {
        ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got <= 0)                            /* whoever reads next finds out why */
            return got == 0 || (errno != EINTR && errno != EAGAIN);
        ebb_keys_feed(&t->keys, bytes, (size_t)got);
    }
    return ebb_keys_take_interrupt(&t->keys);
}

/* What is pasted comes in a piece: Ctrl-C that comes alone, after a silence, was pressed. */
static bool is_pressed_in_paste(const ebb_tty *t, const char *bytes, ssize_t n, double silent_s)
{
    static const double usual_gap_s = 1;

    return t->keys.in_paste && n == 1 && bytes[0] == 'c' - '`' && silent_s > usual_gap_s;
}

/* Whoever leaves in the midst of a paste keeps what has come of it. */
static void put_paste_first(ebb_tty *t, ebb_input *out)
{
    if (!t->keys.in_paste || (out->kind != EBB_INPUT_SIGNAL && out->kind != EBB_INPUT_HANGUP))
        return;
    t->after_paste = *out;
    ebb_keys_end_paste(&t->keys, out);
}

bool ebb_tty_input(ebb_tty *t, ebb_input *out)
{
    char bytes[READ_BYTES];

    ebb_tty_send_kept();
    if (t->after_paste.kind) {
        *out = t->after_paste;
        t->after_paste.kind = EBB_INPUT_NONE;
        return true;
    }
    if (next_signal(out)) {
        if (out->kind == EBB_INPUT_RESUME && t->keeps_keys)
            set_keys_only();
        put_paste_first(t, out);
        return true;
    }
    if (!has_keys(t)) {
        bool is_end = !t->is_gone && is_hung_up();
        t->is_gone |= is_end;
        *out = (ebb_input){ .kind = EBB_INPUT_HANGUP };
        return is_end;
    }
    *out = (ebb_input){ .kind = EBB_INPUT_REPLY };
    t->keys.expects_reply = t->is_asked && !t->answers.is_complete && ebb_clock_s() - t->asked_s < usual_reply_s;
    if (take_replies(t) || ebb_keys_next(&t->keys, out))
        return true;
    while (!t->is_gone && has_input(ebb_tty_timeout_ms(t) > 0 ? EBB_KEYS_WAIT_MS : 0)) {
        ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
        double silent_s;
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            return false;
        if (got <= 0) {                          /* end of input: the terminal is gone */
            t->is_gone = true;
            *out = (ebb_input){ .kind = EBB_INPUT_HANGUP };
            put_paste_first(t, out);
            return true;
        }
        silent_s = ebb_clock_s() - t->read_s;
        t->read_s += silent_s;
        if (is_pressed_in_paste(t, bytes, got, silent_s)) {
            ebb_keys_end_paste(&t->keys, out);
            return true;
        }
        ebb_keys_feed(&t->keys, bytes, (size_t)got);
        *out = (ebb_input){ .kind = EBB_INPUT_REPLY };
        if (take_replies(t) || ebb_keys_next(&t->keys, out))
            return true;
    }
    return ebb_keys_flush(&t->keys, out);
}
