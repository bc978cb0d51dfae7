/* The process's terminal through ncurses (term.h): the only file that includes
 * <curses.h>.  ncurses keeps the screen and sends what differs; keys are read and
 * decoded by ourselves (keys.c), by read batch, so that a slow link does not turn
 * sequences into text.
 *
 * Ways out: close, exit (atexit), SIGTERM/SIGHUP/SIGINT (through a pipe, as an
 * EBB_INPUT_SIGNAL), a crash (restored in the handler, with async-signal-safe
 * calls only, from bytes prepared at the start). */
#include "term.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

#include "base/utf8.h"
#include "signals.h"
#include "width.h"

enum { READ_BYTES = 64 << 10 };

typedef struct term_curses {
    ebb_term base;
    SCREEN  *screen;
    ebb_keys keys;
    bool     is_active;          /* curses has the terminal */
    bool     has_paste;          /* bracketed paste was switched on */
    bool     no_color;
    bool     is_gone;            /* hung up */
    int      n_colors;
    attr_t   attr[EBB_FACE_COUNT];
    int      pair[EBB_FACE_COUNT];
} term_curses;

/* What signal handlers need; there is one terminal per process. */
static struct {
    struct termios cooked;
    char           restore[256]; /* bytes that bring the terminal back */
    size_t         n_restore;
    volatile sig_atomic_t is_active;
    term_curses   *open;
} tty;

static const int fatal[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL };

#define PASTE_ON  "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

/* -- Restoring --------------------------------------------------------------- */

static void write_all(const char *s, size_t n)
{
    while (n > 0) {
        ssize_t put = write(STDOUT_FILENO, s, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return;
        s += put;
        n -= (size_t)put;
    }
}

/* Async-signal-safe. */
static void restore_now(void)
{
    if (!tty.is_active)
        return;
    tty.is_active = 0;
    write_all(tty.restore, tty.n_restore);
    tcsetattr(STDIN_FILENO, TCSANOW, &tty.cooked);
}

static void add_restore(const char *s)
{
    size_t n = s && s != (char *)-1 ? strlen(s) : 0;

    /* Delays ($<5>) are for terminals of another age: cut. */
    for (size_t i = 0; i < n && tty.n_restore < sizeof tty.restore; i++) {
        if (s[i] == '$' && i + 1 < n && s[i + 1] == '<') {
            while (i < n && s[i] != '>')
                i++;
            continue;
        }
        tty.restore[tty.n_restore++] = s[i];
    }
}

static void prepare_restore(bool has_paste)
{
    tty.n_restore = 0;
    if (has_paste)
        add_restore(PASTE_OFF);
    add_restore(tigetstr("sgr0"));
    add_restore(tigetstr("cnorm"));
    add_restore(tigetstr("rmcup"));
    add_restore("\r\n");
}

static void on_fatal(int number)
{
    static const char line[] = "ebb: stopped by a fault of its own, signal ";
    char digits[8] = { (char)('0' + number / 10), (char)('0' + number % 10), '\n' };

    restore_now();
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0 || write(STDERR_FILENO, digits, 3) < 0)
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

/* -- Entering and leaving ------------------------------------------------------ */

static void enter_modes(term_curses *t)
{
    if (t->has_paste)
        write_all(PASTE_ON, sizeof PASTE_ON - 1);
    tty.is_active = 1;
    t->is_active = true;
}

static void leave_modes(term_curses *t)
{
    if (!t->is_active)
        return;
    t->is_active = false;
    if (t->has_paste)
        write_all(PASTE_OFF, sizeof PASTE_OFF - 1);
    endwin();
    tty.is_active = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &tty.cooked);
}

static void adopt_size(void)
{
    struct winsize ws;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0 && ws.ws_col > 0)
        resizeterm(ws.ws_row, ws.ws_col);
}

static void curses_close(ebb_term *base)
{
    term_curses *t = (term_curses *)base;

    leave_modes(t);
    delscreen(t->screen);
    install_fatal(SIG_DFL, 0);
    ebb_signals_close();
    tty.open = NULL;
    ebb_keys_fini(&t->keys);
    free(t);
}

/* After a stop: the shell may have changed the modes and drawn over the screen. */
static void resume(term_curses *t)
{
    leave_modes(t);
    adopt_size();
    reset_prog_mode();
    raw();
    enter_modes(t);
    clearok(curscr, TRUE);
}

static void curses_suspend(ebb_term *base)
{
    term_curses *t = (term_curses *)base;

    leave_modes(t);
    ebb_signals_stop();
    resume(t);                                   /* also where nobody may stop us (no job control) */
}

static void curses_outside(ebb_term *base, bool (*fn)(ebb_term *t, void *arg), void *arg)
{
    term_curses *t = (term_curses *)base;
    char c = 0;

    leave_modes(t);
    ebb_signals_ignore_keys(true);
    if (fn(base, arg))
        while (c != '\n' && read(STDIN_FILENO, &c, 1) == 1)
            ;
    ebb_signals_ignore_keys(false);
    resume(t);
}

/* -- Drawing ------------------------------------------------------------------- */

static void curses_size(ebb_term *t, int *rows, int *cols)
{
    (void)t;
    getmaxyx(stdscr, *rows, *cols);
}

static void curses_clear(ebb_term *t)
{
    (void)t;
    erase();
}

/* Wide characters of `text`, cut where ncurses would not have them in one cell.
 * false: libc counts other columns than we do. */
static bool to_wide(const char *text, int width, wchar_t *out)
{
    size_t n = strlen(text), at = 0, len = 0;
    uint32_t cp;

    while (at < n && len < CCHARW_MAX) {
        size_t used = ebb_utf8_decode(text + at, n - at, &cp);
        if (used == 0)
            break;
        at += used;
        int w = wcwidth((wchar_t)cp);
        if (len == 0 ? w != width : w != 0)
            break;
        out[len++] = (wchar_t)cp;
    }
    out[len] = L'\0';
    return len > 0;
}

static void curses_cell(ebb_term *base, int row, int col, const char *text, int width, ebb_face face)
{
    term_curses *t = (term_curses *)base;
    wchar_t wide[CCHARW_MAX + 1];
    cchar_t c;

    if (!to_wide(text, width, wide)) {
        /* Newer than libc's tables: a mark that keeps the columns. */
        if (width == 2)
            curses_cell(base, row, col + 1, " ", 1, face);
        width = 1;
        wcscpy(wide, wcwidth(0xFFFD) == 1 ? L"\xFFFD" : L"?");
    }
    if (setcchar(&c, wide, t->attr[face], 0, &t->pair[face]) == OK)
        mvadd_wch(row, col, &c);
}

static void curses_flush(ebb_term *base, int cursor_row, int cursor_col)
{
    (void)base;
    curs_set(cursor_row >= 0);
    if (cursor_row >= 0)
        move(cursor_row, cursor_col);
    refresh();
}

static void curses_repaint(ebb_term *base)
{
    term_curses *t = (term_curses *)base;

    if (t->has_paste)
        write_all(PASTE_ON, sizeof PASTE_ON - 1);
    clearok(curscr, TRUE);
}

static void curses_theme(ebb_term *base, const ebb_theme *theme)
{
    static const attr_t attrs[] = { A_BOLD, A_DIM, A_ITALIC, A_UNDERLINE, A_REVERSE };
    term_curses *t = (term_curses *)base;

    for (int f = 0; f < EBB_FACE_COUNT; f++) {
        const ebb_style *s = &theme->style[f];
        int fg = t->no_color ? -1 : ebb_color_fit(s->fg, t->n_colors);
        int bg = t->no_color ? -1 : ebb_color_fit(s->bg, t->n_colors);

        t->attr[f] = A_NORMAL;
        for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
            if (s->attrs & 1u << i)
                t->attr[f] |= attrs[i];
        /* Eight colours: bold stands for bright, and grey would be black. */
        if (t->n_colors == 8 && s->fg >= 8 && s->fg < 16) {
            t->attr[f] |= s->fg == 8 ? A_DIM : A_BOLD;
            fg = s->fg == 8 ? -1 : fg;
        }
        t->pair[f] = 0;
        if ((fg >= 0 || bg >= 0) && init_extended_pair(f + 1, fg, bg) == OK)
            t->pair[f] = f + 1;
    }
    clearok(curscr, TRUE);
}

/* -- Input ---------------------------------------------------------------------- */

static int curses_fds(ebb_term *base, struct pollfd *out, int cap)
{
    term_curses *t = (term_curses *)base;
    int n = 0;

    if (cap > 0)
        out[n++] = (struct pollfd){ .fd = ebb_signals_fd(), .events = POLLIN };
    if (cap > 1 && !t->is_gone)
        out[n++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
    return n;
}

static int curses_timeout(ebb_term *base)
{
    return ebb_keys_is_waiting(&((term_curses *)base)->keys) ? EBB_KEYS_WAIT_MS : -1;
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, timeout_ms) > 0;
}

static bool next_signal(term_curses *t, ebb_input *out)
{
    int number = ebb_signals_next();

    if (number == 0)
        return false;
    *out = (ebb_input){ .number = number };
    switch (number) {
    case SIGWINCH:
        out->kind = EBB_INPUT_RESIZE;
        adopt_size();
        break;
    case SIGCONT:
        out->kind = EBB_INPUT_RESUME;
        resume(t);
        break;
    case SIGTSTP:
        out->kind = EBB_INPUT_SUSPEND;
        break;
    default:
        out->kind = EBB_INPUT_SIGNAL;
    }
    return true;
}

static bool curses_input(ebb_term *base, ebb_input *out)
{
    term_curses *t = (term_curses *)base;
    char bytes[READ_BYTES];

    if (next_signal(t, out) || ebb_keys_next(&t->keys, out))
        return true;
    while (!t->is_gone && is_readable(STDIN_FILENO, curses_timeout(base) > 0 ? EBB_KEYS_WAIT_MS : 0)) {
        ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            return false;
        if (got <= 0) {                          /* nobody is there any more */
            t->is_gone = true;
            *out = (ebb_input){ .kind = EBB_INPUT_HANGUP };
            return true;
        }
        ebb_keys_feed(&t->keys, bytes, (size_t)got);
        if (ebb_keys_next(&t->keys, out))
            return true;
    }
    return ebb_keys_flush(&t->keys, out);
}

static void curses_send(ebb_term *base, const char *bytes, size_t n)
{
    (void)base;
    write_all(bytes, n);
}

/* -- Opening ---------------------------------------------------------------------- */

static const ebb_term_ops curses_ops = {
    .close = curses_close, .size = curses_size, .clear = curses_clear, .cell = curses_cell,
    .flush = curses_flush, .repaint = curses_repaint, .theme = curses_theme,
    .suspend = curses_suspend, .outside = curses_outside, .fds = curses_fds, .timeout_ms = curses_timeout,
    .input = curses_input, .send = curses_send,
};

/* Terminals that neither know bracketed paste nor swallow it, and have few glyphs. */
static bool is_plain_kind(const char *name)
{
    return strncmp(name, "vt", 2) == 0 || strcmp(name, "linux") == 0 || strncmp(name, "dumb", 4) == 0 ||
           strncmp(name, "ansi", 4) == 0;
}

static bool can_move_cursor(void)
{
    const char *cup = tigetstr("cup");

    return cup && cup != (char *)-1;
}

static void start_screen(term_curses *t, const ebb_term_opts *opts)
{
    const char *kind = termname();

    t->base.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    t->base.ascii = opts->ascii || !t->base.utf8 || is_plain_kind(kind);
    t->has_paste = !is_plain_kind(kind) || strcmp(kind, "linux") == 0;
    t->no_color = opts->no_color;
    noecho();
    nonl();
    raw();                                       /* Ctrl-C, -Z, -S and -Q are keys here */
    idlok(stdscr, TRUE);
    leaveok(stdscr, FALSE);
    if (has_colors() && !opts->no_color) {
        start_color();
        use_default_colors();
        t->n_colors = COLORS;
    }
    prepare_restore(t->has_paste);
    enter_modes(t);
}

ebb_status ebb_term_curses(const ebb_term_opts *opts, ebb_term **out, ebb_error *err)
{
    static bool has_exit_hook;
    term_curses *t;

    *out = NULL;
    if (tty.open)
        return EBB_FAIL(err, EBB_BUSY, "the terminal is in use already");
    if (tcgetattr(STDIN_FILENO, &tty.cooked) != 0 || !isatty(STDOUT_FILENO))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "standard input and output are no terminal; use --plain");
    t = calloc(1, sizeof *t);
    if (!t)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the screen");
    t->base.ops = &curses_ops;
    setlocale(LC_CTYPE, "");
    t->screen = newterm(NULL, stdout, stdin);
    if (!t->screen || !can_move_cursor() || !install_handlers()) {
        if (t->screen) {
            endwin();
            delscreen(t->screen);
        }
        free(t);
        return EBB_FAIL(err, EBB_UNSUPPORTED, "this terminal cannot move its cursor; use --plain");
    }
    start_screen(t, opts);
    tty.open = t;
    if (!has_exit_hook)
        has_exit_hook = atexit(restore_now) == 0;
    *out = &t->base;
    return EBB_OK;
}
