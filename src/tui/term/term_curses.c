/* The process's terminal through ncurses (term.h).  ncurses keeps the screen and sends what
 * differs; keys are read and decoded by ourselves (tty.c, keys.c), by read batch, so
 * that a slow link does not turn sequences into text. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>

#include "base/utf8.h"
#include "term/caps.h"
#include "term/overlay.h"
#include "term/signals.h"
#include "term/term_line.h"

typedef struct term_curses {
    ebb_term_line line;
    SCREEN  *screen;
    FILE    *drawn;              /* what curses takes for the terminal */
    bool     is_active;          /* curses has the terminal */
    bool     has_keys_pushed;    /* the keyboard protocol is on, on curses' screen */
    /* On a slow line, or to announce frames, cells are compared with the last frame's, by hash: this frame's, then
     * the last one's. */
    uint32_t *cells;
    int      n_rows, n_cols;
    ebb_curses_links overlay;
    ebb_buf  sgr[EBB_FACE_COUNT];        /* for the overlay */
    attr_t   attr[EBB_FACE_COUNT];
    int      pair[EBB_FACE_COUNT];
} term_curses;

/* -- Entering and leaving ------------------------------------------------------ */

static void curses_prepare_restore(const ebb_term_line *l)
{
    ebb_buf bytes = { 0 };

    ebb_term_line_add_restore(l, &bytes);
    ebb_cap_add(&bytes, "rmcup");
    ebb_buf_adds(&bytes, "\r\n");
    ebb_tty_guard_with(ebb_buf_text(&bytes), bytes.len);
    ebb_buf_fini(&bytes);
}

static void send_drawn(term_curses *t)
{
    char bytes[16 << 10];
    int memory = fileno(t->drawn);
    off_t left = lseek(memory, 0, SEEK_CUR);
    ssize_t n;

    lseek(memory, 0, SEEK_SET);
    while (left > 0 && (n = read(memory, bytes, left < (off_t)sizeof bytes ? (size_t)left : sizeof bytes)) > 0) {
        ebb_tty_write(bytes, (size_t)n);
        left -= n;
    }
    lseek(memory, 0, SEEK_SET);
}

static void enter_modes(term_curses *t)
{
    if (t->line.has_paste)
        ebb_tty_write(EBB_PASTE_ON, sizeof EBB_PASTE_ON - 1);
    ebb_tty_enter_title(&t->line.tty);
    ebb_tty_guard(true);
    t->is_active = true;
}

/* Without a second screen the cursor is left at the beginning of the frame's last row: what is said then is not to end
 * in the rest of it. */
static void erase_row(void)
{
    ebb_buf bytes = { 0 };

    ebb_cap_add(&bytes, "el");
    ebb_tty_write(ebb_buf_text(&bytes), bytes.len);
    ebb_buf_fini(&bytes);
}

static void leave_modes(term_curses *t)
{
    bool has_frame = !isendwin();

    if (!t->is_active)
        return;
    t->is_active = false;
    ebb_tty_await_last_answers(&t->line.tty);
    if (t->has_keys_pushed)
        ebb_tty_write(EBB_KEY_PROTOCOL_OFF, sizeof EBB_KEY_PROTOCOL_OFF - 1);
    t->has_keys_pushed = false;
    ebb_tty_leave_title(&t->line.tty);
    if (t->line.has_paste)
        ebb_tty_write(EBB_PASTE_OFF, sizeof EBB_PASTE_OFF - 1);
    if (has_frame)                               /* twice, the cursor would go back to where it once was */
        endwin();
    send_drawn(t);
    if (has_frame)
        erase_row();
    ebb_tty_finish_output();
    ebb_tty_guard(false);
    ebb_tty_cooked();
}

static void curses_adopt_size(ebb_term_line *l)
{
    int rows, cols;

    (void)l;
    if (ebb_tty_size(&rows, &cols))
        resizeterm(rows, cols);
}

static void curses_close(ebb_term *base)
{
    term_curses *t = (term_curses *)base;

    leave_modes(t);
    delscreen(t->screen);
    fclose(t->drawn);
    free(t->cells);
    ebb_overlay_fini(&t->overlay);
    for (int f = 0; f < EBB_FACE_COUNT; f++)
        ebb_buf_fini(&t->sgr[f]);
    ebb_term_line_free(&t->line);
}

/* After a stop: the shell may have changed the modes and drawn over the screen. */
static void curses_resume(ebb_term_line *l)
{
    term_curses *t = (term_curses *)l;

    leave_modes(t);
    curses_adopt_size(l);
    ebb_tty_raw();
    enter_modes(t);
    ebb_overlay_forget(&t->overlay);
    clearok(curscr, TRUE);
}

static bool curses_suspend(ebb_term *base)
{
    term_curses *t = (term_curses *)base;
    bool was_stopped;

    leave_modes(t);
    was_stopped = ebb_signals_stop();
    curses_resume(&t->line);
    return was_stopped;
}

static void curses_lend(ebb_term *base, bool keeps_keys)
{
    term_curses *t = (term_curses *)base;

    leave_modes(t);
    ebb_tty_lend(&t->line.tty, keeps_keys);
}

static void curses_take_back(ebb_term *base)
{
    term_curses *t = (term_curses *)base;

    ebb_tty_take_back(&t->line.tty);
    curses_resume(&t->line);
}

/* -- What a frame costs ---------------------------------------------------------- */

/* curses does not say what it sends.  On a slow line, and where frames can be announced, the cells that differ are
 * counted. */
static void fit_cells(term_curses *t)
{
    int rows, cols;

    getmaxyx(stdscr, rows, cols);
    if ((t->line.byte_s <= 0 && !t->line.base.answers.has_sync) || (t->cells && rows == t->n_rows && cols == t->n_cols))
        return;
    free(t->cells);
    t->cells = calloc(2 * (size_t)rows * (size_t)cols, sizeof *t->cells);
    t->n_rows = t->cells ? rows : 0;
    t->n_cols = t->cells ? cols : 0;
}

static void record_cell(term_curses *t, int row, int col, const char *text, ebb_face face)
{
    bool is_blank = strcmp(text, " ") == 0;
    uint32_t hash = 2166136261u ^ (uint32_t)face;

    if (row < 0 || col < 0 || row >= t->n_rows || col >= t->n_cols)
        return;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    t->cells[row * t->n_cols + col] = is_blank ? 0 : hash;
}

/* Bytes that the frame takes, about; 0 also where nobody counts. */
static size_t record_frame(term_curses *t)
{
    enum { MOVE_BYTES = 8 };     /* to where cells differ, and their colour */
    size_t n = (size_t)t->n_rows * (size_t)t->n_cols, n_bytes = 0;
    uint32_t *last = t->cells + n;
    bool was_same = true;

    if (!t->cells)
        return 0;
    for (size_t i = 0; i < n; i++) {
        bool is_same = t->cells[i] == last[i];
        n_bytes += is_same ? 0 : was_same ? 1 + MOVE_BYTES : 1;
        was_same = is_same;
    }
    t->line.base.frame_s += (double)n_bytes * t->line.byte_s;
    memcpy(last, t->cells, n * sizeof *last);
    memset(t->cells, 0, n * sizeof *t->cells);
    return n_bytes;
}

/* -- Drawing ------------------------------------------------------------------- */

static void curses_size(ebb_term *t, int *rows, int *cols)
{
    (void)t;
    getmaxyx(stdscr, *rows, *cols);
}

static void curses_clear(ebb_term *base)
{
    fit_cells((term_curses *)base);
    ebb_hyperlinks_clear(&base->links);
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

    record_cell(t, row, col, text, face);
    if (base->has_links)
        ebb_overlay_cell_add(&t->overlay, row, col, text, width, face, base->link);
    if (!to_wide(text, width, wide)) {
        /* Newer than libc's tables: a mark that keeps the columns. */
        if (width == 2)
            curses_cell(base, row, col + 1, " ", 1, face);
        wcscpy(wide, wcwidth(0xFFFD) == 1 ? L"\xFFFD" : L"?");
    }
    if (setcchar(&c, wide, t->attr[face], 0, &t->pair[face]) == OK)
        mvadd_wch(row, col, &c);
}

/* The protocol belongs to the screen that is shown: it is asked for when curses has changed to its own. */
static void push_keys(term_curses *t)
{
    if (t->has_keys_pushed || !t->line.base.answers.has_key_protocol || !t->is_active)
        return;
    ebb_tty_write(EBB_KEY_PROTOCOL_ON, sizeof EBB_KEY_PROTOCOL_ON - 1);
    t->has_keys_pushed = true;
}

/* curses knows no addresses: when it is done, the cells that have some are written over once more, from a saved
 * cursor. */
static void send_links(term_curses *t)
{
    ebb_buf out = { 0 };

    ebb_overlay_draw(&t->overlay, &t->line.base.links, t->sgr, t->line.base.is_settling, &out);
    if (out.len > 0)
        ebb_tty_write(out.data, out.len);
    ebb_buf_fini(&out);
}

/* A few cells are shown at once anyway; a frame of more is announced, so that no half of it is. */
static void curses_flush(ebb_term *base, int cursor_row, int cursor_col)
{
    term_curses *t = (term_curses *)base;
    bool is_announced = record_frame(t) >= EBB_SYNC_FROM_BYTES && base->answers.has_sync;

    if (is_announced)
        ebb_tty_write(EBB_SYNC_BEGIN, sizeof EBB_SYNC_BEGIN - 1);
    curs_set(cursor_row >= 0);
    if (cursor_row >= 0)
        move(cursor_row, cursor_col);
    refresh();
    send_drawn(t);
    if (base->has_links)
        send_links(t);
    if (is_announced)
        ebb_tty_write(EBB_SYNC_END, sizeof EBB_SYNC_END - 1);
    push_keys(t);
}

static void curses_repaint(ebb_term *base)
{
    term_curses *t = (term_curses *)base;

    if (t->line.has_paste)
        ebb_tty_write(EBB_PASTE_ON, sizeof EBB_PASTE_ON - 1);
    ebb_overlay_forget(&t->overlay);
    clearok(curscr, TRUE);
}

static void curses_theme(ebb_term *base, const ebb_theme *theme)
{
    static const attr_t attrs[] = { A_BOLD, A_DIM, A_ITALIC, A_UNDERLINE, A_REVERSE };
    term_curses *t = (term_curses *)base;

    for (int f = 0; f < EBB_FACE_COUNT; f++) {
        const ebb_style *s = &theme->style[f];
        int fg = t->line.no_color ? -1 : ebb_color_fit(s->fg, t->line.n_colors);
        int bg = t->line.no_color ? -1 : ebb_color_fit(s->bg, t->line.n_colors);

        ebb_caps_face(s, t->line.no_color ? 0 : t->line.n_colors, &t->sgr[f]);
        t->attr[f] = A_NORMAL;
        for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
            if (s->attrs & 1u << i)
                t->attr[f] |= attrs[i];
        /* Eight colours: bold replaces bright, dim replaces grey, which would be black. */
        if (t->line.n_colors == 8 && s->fg >= 8 && s->fg < 16) {
            t->attr[f] |= s->fg == 8 ? A_DIM : A_BOLD;
            fg = s->fg == 8 ? -1 : fg;
        }
        t->pair[f] = 0;
        if ((fg >= 0 || bg >= 0) && init_extended_pair(f + 1, fg, bg) == OK)
            t->pair[f] = f + 1;
    }
    ebb_overlay_forget(&t->overlay);
    clearok(curscr, TRUE);
}

/* -- Opening ---------------------------------------------------------------------- */

static const ebb_term_ops curses_ops = {
    .close = curses_close, .size = curses_size, .clear = curses_clear, .cell = curses_cell,
    .flush = curses_flush, .repaint = curses_repaint, .theme = curses_theme,
    .suspend = curses_suspend, .lend = curses_lend, .take_back = curses_take_back, .fds = ebb_term_line_fds,
    .timeout_ms = ebb_term_line_timeout_ms, .input = ebb_term_line_input, .send = ebb_term_line_send,
    .is_interrupted = ebb_term_line_is_interrupted,
    .title = ebb_term_line_title, .await_answers = ebb_term_line_await_answers, .backlog = ebb_term_line_backlog,
};

static bool can_move_cursor(void)
{
    return *ebb_cap("cup") != '\0';
}

/* curses would wait for a terminal that takes nothing: from here on it draws in memory, which is sent like everything
 * else. */
static bool draw_in_memory(FILE *drawn)
{
    int memory = memfd_create("frame", MFD_CLOEXEC);
    bool ok = memory >= 0 && dup3(memory, fileno(drawn), O_CLOEXEC) >= 0;

    if (memory >= 0)
        close(memory);
    return ok;
}

static void start_screen(term_curses *t, const ebb_term_opts *opts)
{
    const char *kind = termname();

    ebb_term_line_probe(&t->line, opts, kind);
    ebb_term_line_show_screen(&t->line, true);
    noecho();
    nonl();
    ebb_tty_raw();
    idlok(stdscr, TRUE);
    leaveok(stdscr, FALSE);
    if (has_colors() && !opts->no_color) {
        start_color();
        use_default_colors();
        t->line.n_colors = COLORS;
    }
    ebb_tty_ask(&t->line.tty, kind);
    curses_prepare_restore(&t->line);
    enter_modes(t);
}

static FILE *open_terminal(void)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    FILE *terminal = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && !terminal)
        close(fd);
    return terminal;
}

/* curses believes any size, and keeps each cell more than once.  LINES and COLUMNS, which it asks first, are set for it
 * alone: who is started later asks the line, whose size may be another by then.  Its buffer is as large as the screen
 * that it begins with, and what it says first has to fit: a part that went out at once would be torn from the rest. */
static SCREEN *open_screen(FILE *drawn)
{
    enum { COLS_MIN = 20 };
    int rows = 24, cols = 80;
    char lines[12], columns[12];
    SCREEN *screen;

    ebb_tty_size(&rows, &cols);
    snprintf(lines, sizeof lines, "%d", rows);
    snprintf(columns, sizeof columns, "%d", cols > COLS_MIN ? cols : COLS_MIN);
    setenv("LINES", lines, 1);
    setenv("COLUMNS", columns, 1);
    screen = newterm(NULL, drawn, stdin);
    unsetenv("LINES");
    unsetenv("COLUMNS");
    if (screen && cols < COLS_MIN)
        resizeterm(rows, cols);
    return screen;
}

ebb_status ebb_term_curses(const ebb_term_opts *opts, ebb_term **out, ebb_error *err)
{
    static const ebb_term_line_ops line_ops = {
        .prepare_restore = curses_prepare_restore, .resized = curses_adopt_size, .resumed = curses_resume,
    };
    ebb_term_line *l;
    term_curses *t;
    ebb_status st = ebb_term_line_new(sizeof *t, &curses_ops, &line_ops, &l, err);

    *out = NULL;
    if (st != EBB_OK)
        return st;
    t = (term_curses *)l;
    t->drawn = open_terminal();
    t->screen = t->drawn ? open_screen(t->drawn) : NULL;
    if (t->screen && !(can_move_cursor() && draw_in_memory(t->drawn))) {
        endwin();
        delscreen(t->screen);
        t->screen = NULL;
    }
    if (!t->screen)
        goto refused;
    start_screen(t, opts);
    *out = &l->base;
    return EBB_OK;
refused:
    if (t->drawn)
        fclose(t->drawn);
    return ebb_term_line_refuse(l, err);
}
