/* The process's terminal, inline (term.h): a region below what the terminal keeps itself (inline_region.h). */
#include <string.h>

#include "term/caps.h"
#include "term/inline_region.h"
#include "term/signals.h"
#include "term/term_line.h"

typedef struct term_inline {
    ebb_term_line line;
    ebb_inline_region region;
    int      rows;               /* of the screen */
    bool     reflows, is_active;
    bool     fills_edge;         /* a character in the last column does not wrap at once */
    bool     has_alternate;      /* a second screen for fullscreen() */
    bool     has_keys_pushed;    /* the keyboard protocol is on, on the screen that is shown */
    bool     was_stopped;        /* by ourselves: the SIGCONT that follows is known */
    bool     is_fullscreen;
} term_inline;

/* -- Bytes ------------------------------------------------------------------------ */

static void inline_send_out(term_inline *t)
{
    ebb_tty_write(ebb_buf_text(&t->region.out), t->region.out.len);
    t->line.base.frame_s += (double)t->region.out.len * t->line.byte_s;
    ebb_buf_clear(&t->region.out);
}

/* A few cells are shown at once anyway; a frame of more is announced, so that no half of it is. */
static void announce_frame(term_inline *t)
{
    if (!t->line.base.answers.has_sync || t->region.out.len < EBB_SYNC_FROM_BYTES)
        return;
    ebb_buf_insert(&t->region.out, 0, EBB_SYNC_BEGIN, sizeof EBB_SYNC_BEGIN - 1);
    ebb_buf_adds(&t->region.out, EBB_SYNC_END);
}

/* Each screen has its own flags of the keyboard protocol. */
static void push_keys_inline(term_inline *t)
{
    if (!t->has_keys_pushed && t->is_active && t->line.base.answers.has_key_protocol)
        ebb_buf_adds(&t->region.out, EBB_KEY_PROTOCOL_ON);
    t->has_keys_pushed |= t->is_active && t->line.base.answers.has_key_protocol;
}

static void pop_keys_inline(term_inline *t)
{
    if (t->has_keys_pushed)
        ebb_buf_adds(&t->region.out, EBB_KEY_PROTOCOL_OFF);
    t->has_keys_pushed = false;
}

/* -- Frames -------------------------------------------------------------------------- */

static void inline_size(ebb_term *base, int *rows, int *cols)
{
    *rows = ((term_inline *)base)->rows;
    *cols = ((term_inline *)base)->region.cols;
}

static void inline_clear(ebb_term *base)
{
    ebb_grid_blank(&((term_inline *)base)->region.next);
    ebb_hyperlinks_clear(&base->links);
}

static void inline_begin(ebb_term *base, int above, int rows)
{
    term_inline *t = (term_inline *)base;

    ebb_inline_region_begin(&t->region, above, rows);
}

static void inline_cell(ebb_term *base, int row, int col, const char *text, int width, ebb_face face)
{
    ebb_grid_put(&((term_inline *)base)->region.next, row, col, text, width, face,
                 base->link);
}

/* Where the region begins again after it was erased: one blank row, the cursor at its beginning. */
static void invalidate_region(term_inline *t)
{
    ebb_inline_region_reset(&t->region, t->is_fullscreen ? t->rows : 1);
}

static void redraw_region(term_inline *t)
{
    if (t->is_fullscreen && t->has_alternate)
        ebb_inline_region_clear_screen(&t->region);
    else
        ebb_inline_region_erase(&t->region);
    invalidate_region(t);
}

static void inline_flush(ebb_term *base, int cursor_row, int cursor_col)
{
    term_inline *t = (term_inline *)base;

    if (t->region.next.cols != t->region.cols)
        return;                                  /* made for another width: the next one will do */
    if (t->region.is_stale)
        redraw_region(t);
    ebb_inline_region_draw(&t->region, cursor_row, cursor_col);
    push_keys_inline(t);
    announce_frame(t);
    inline_send_out(t);
}

static void inline_repaint(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    if (t->line.has_paste)
        ebb_buf_adds(&t->region.out, EBB_PASTE_ON);
    t->region.is_stale = true;
}

/* -- Faces ------------------------------------------------------------------------------ */

static void inline_theme(ebb_term *base, const ebb_theme *theme)
{
    term_inline *t = (term_inline *)base;

    for (int f = 0; f < EBB_FACE_COUNT; f++)
        ebb_caps_face(&theme->style[f], t->line.no_color ? 0 : t->line.n_colors, &t->region.sgr[f]);
    t->region.face = -1;
    t->region.is_stale = true;
}

/* -- Entering and leaving ------------------------------------------------------------------- */

static void inline_prepare_restore(const ebb_term_line *l)
{
    const term_inline *t = (const term_inline *)l;
    ebb_buf bytes = { 0 };

    ebb_term_line_add_restore(l, &bytes);
    if (t->is_fullscreen && t->has_alternate)
        ebb_cap_add(&bytes, "rmcup");
    ebb_buf_adds(&bytes, "\r\n");
    ebb_cap_add(&bytes, "ed");
    ebb_tty_guard_with(ebb_buf_text(&bytes), bytes.len);
    ebb_buf_fini(&bytes);
}

/* Columns that may be used: all but the last where it wraps at once. */
static void inline_adopt_size(term_inline *t)
{
    int rows = 24, cols = 80;

    ebb_tty_size(&rows, &cols);
    t->rows = rows;
    t->region.cols = cols > 1 && !t->fills_edge ? cols - 1 : cols;
}

static void inline_enter(term_inline *t)
{
    ebb_tty_raw();
    ebb_tty_guard(true);
    t->is_active = true;
    inline_adopt_size(t);
    ebb_tty_enter_title(&t->line.tty);
    if (t->line.has_paste)
        ebb_buf_adds(&t->region.out, EBB_PASTE_ON);
    invalidate_region(t);
    ebb_inline_region_begin(&t->region, 0, 1);
}

/* The region goes; what is above it stays. */
static void inline_leave(term_inline *t)
{
    if (!t->is_active)
        return;
    ebb_tty_await_last_answers(&t->line.tty);
    if (t->is_fullscreen)
        t->line.base.ops->fullscreen(&t->line.base, false);
    t->is_active = false;
    pop_keys_inline(t);
    ebb_tty_leave_title(&t->line.tty);
    ebb_inline_region_erase(&t->region);
    ebb_cap_add(&t->region.out, "sgr0");
    ebb_inline_region_show_cursor(&t->region, true);
    if (t->line.has_paste)
        ebb_buf_adds(&t->region.out, EBB_PASTE_OFF);
    inline_send_out(t);
    ebb_tty_finish_output();
    ebb_tty_guard(false);
    ebb_tty_cooked();
}

static void inline_close(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    inline_leave(t);
    ebb_inline_region_fini(&t->region);
    ebb_term_line_free(&t->line);
}

static bool inline_suspend(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    inline_leave(t);
    t->was_stopped = ebb_signals_stop();
    inline_enter(t);
    return t->was_stopped;
}

static void inline_lend(ebb_term *base, bool keeps_keys)
{
    term_inline *t = (term_inline *)base;

    inline_leave(t);
    ebb_tty_lend(&t->line.tty, keeps_keys);
}

static void inline_take_back(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    ebb_tty_take_back(&t->line.tty);
    inline_enter(t);
}

/* -- The whole screen for a while -------------------------------------------------------------- */

static void enter_alternate_screen(term_inline *t)
{
    ebb_inline_region_set_aside(&t->region);
    ebb_cap_add(&t->region.out, "smcup");
}

static void leave_alternate_screen(term_inline *t)
{
    ebb_cap_add(&t->region.out, "rmcup");
    ebb_inline_region_bring_back(&t->region, t->reflows, t->rows);
}

static void inline_fullscreen(ebb_term *base, bool is_fullscreen)
{
    term_inline *t = (term_inline *)base;

    if (t->is_fullscreen == is_fullscreen)
        return;
    if (t->has_alternate)
        pop_keys_inline(t);
    t->is_fullscreen = is_fullscreen;
    ebb_term_line_show_screen(&t->line, is_fullscreen);
    if (t->has_alternate && is_fullscreen)
        enter_alternate_screen(t);
    else if (t->has_alternate)
        leave_alternate_screen(t);
    if (is_fullscreen) {
        t->region.is_stale = true;
        ebb_inline_region_begin(&t->region, 0, t->rows);
    }
    inline_prepare_restore(&t->line);
}

/* -- A new size, and after a stop ------------------------------------------------------------------- */

static void inline_resized(ebb_term_line *l)
{
    term_inline *t = (term_inline *)l;

    inline_adopt_size(t);
    if (!t->is_fullscreen || !t->has_alternate)
        ebb_inline_region_follow_width(&t->region, t->reflows, t->rows);
    t->region.is_stale = true;
    ebb_inline_region_begin(&t->region, 0, t->is_fullscreen ? t->rows : 1);
}

/* After SIGCONT: another program had the terminal, so the cursor's place is unknown. */
static void inline_resumed(ebb_term_line *l)
{
    term_inline *t = (term_inline *)l;

    if (t->was_stopped) {
        ebb_tty_raw();
        t->region.is_stale = true;
    } else {
        ebb_buf_adds(&t->region.out, "\r");
        inline_enter(t);
    }
    t->was_stopped = false;
}

/* -- Opening ------------------------------------------------------------------------------------------ */

static const ebb_term_ops inline_ops = {
    .close = inline_close, .size = inline_size, .clear = inline_clear, .begin = inline_begin,
    .fullscreen = inline_fullscreen,
    .cell = inline_cell, .flush = inline_flush, .repaint = inline_repaint, .theme = inline_theme,
    .suspend = inline_suspend, .lend = inline_lend, .take_back = inline_take_back, .fds = ebb_term_line_fds,
    .timeout_ms = ebb_term_line_timeout_ms, .input = ebb_term_line_input, .send = ebb_term_line_send,
    .is_interrupted = ebb_term_line_is_interrupted,
    .title = ebb_term_line_title, .await_answers = ebb_term_line_await_answers, .backlog = ebb_term_line_backlog,
};

static bool can_draw(void)
{
    return ebb_caps_open() && *ebb_cap("cuu") && *ebb_cap("cuf") && *ebb_cap("ed") && *ebb_cap("el");
}

/* GNU screen says that it has an alternate screen and, as it comes, has none. */
static bool has_alternate(const char *kind)
{
    return *ebb_cap("smcup") && *ebb_cap("rmcup") && *ebb_cap("clear") && strncmp(kind, "screen", 6) != 0;
}

static void probe_terminal(term_inline *t, const ebb_term_opts *opts)
{
    const char *kind = ebb_caps_name();

    ebb_term_line_probe(&t->line, opts, kind);
    t->reflows = opts->reflows || strncmp(kind, "tmux", 4) == 0;
    t->fills_edge = !ebb_cap_flag("am") || ebb_cap_flag("xenl");
    t->has_alternate = has_alternate(kind);
    t->line.n_colors = ebb_cap_number("colors");
}

ebb_status ebb_term_inline(const ebb_term_opts *opts, ebb_term **out, ebb_error *err)
{
    static const ebb_term_line_ops line_ops = {
        .prepare_restore = inline_prepare_restore, .resized = inline_resized, .resumed = inline_resumed,
    };
    ebb_term_line *l;
    term_inline *t;
    ebb_status st = ebb_term_line_new(sizeof *t, &inline_ops, &line_ops, &l, err);

    *out = NULL;
    if (st != EBB_OK)
        return st;
    if (!can_draw())
        return ebb_term_line_refuse(l, err);
    t = (term_inline *)l;
    t->region.links = &l->base.links;
    probe_terminal(t, opts);
    ebb_tty_raw();
    ebb_tty_ask(&l->tty, ebb_caps_name());
    inline_prepare_restore(l);
    inline_enter(t);
    *out = &l->base;
    return EBB_OK;
}
