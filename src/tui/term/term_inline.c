/* The process's terminal, inline (term.h): a region below what the terminal keeps itself.
 *
 * The region's place on the screen is unknown: the cursor moves relative to the
 * region's first row, and new rows come by line feeds, which scroll when they must.  So it
 * works wherever cursor-up, erase and colours do, and needs no answer of the terminal.
 *
 *     finished rows          the terminal's: scrolled, selected, kept by it
 *     region row 0           shown.cells[0]; the next frame begins here: its `above` rows
 *     ...                    overwrite the region from its top, the new region follows
 *     region row n - 1
 *
 * After a resize the region is drawn anew; how many rows it takes by then depends on whether
 * the terminal has broken its long lines anew (opts.reflows). */
#include "term/term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "term/announce.h"
#include "term/caps.h"
#include "term/grid.h"
#include "term/signals.h"
#include "term/tty.h"

typedef struct term_inline {
    ebb_term base;
    ebb_tty  tty;
    int      rows, cols;         /* of the screen, as far as it is used */
    bool     has_paste, no_color, reflows, is_active;
    bool     fills_edge;         /* a character in the last column does not wrap at once */
    bool     has_alternate;      /* a second screen for fullscreen() */
    bool     has_keys_pushed;    /* the keyboard protocol is on, on the screen that is shown */
    int      n_colors;
    ebb_buf  sgr[EBB_FACE_COUNT];

    ebb_grid next, shown;        /* the frame being drawn; the region on the screen */
    int      above;              /* of next's rows */
    int     *reach;              /* columns that a row of `shown` had since it was last erased as a whole */
    int      n_reach;
    int      row, col;           /* the cursor, from the region's first row */
    int      face;               /* switched on now; -1: unknown */
    uint32_t link;               /* likewise, an address; 0: none */
    ebb_links links;             /* as it was asked for */
    bool     is_hidden;          /* the cursor */
    bool     was_stopped;        /* by ourselves: the SIGCONT that follows is known */
    bool     is_stale;           /* the region is to be drawn anew */

    bool     is_fullscreen;
    ebb_grid kept;               /* the region while the whole screen is taken */
    int      kept_row, kept_col, kept_cols;
    ebb_buf  out;
    double   byte_s;             /* on a slow line */
} term_inline;

/* -- Bytes ------------------------------------------------------------------------ */

static void inline_send_out(term_inline *t)
{
    ebb_tty_write(ebb_buf_text(&t->out), t->out.len);
    t->base.frame_s += (double)t->out.len * t->byte_s;
    ebb_buf_clear(&t->out);
}

/* A few cells are shown at once anyway; a frame of more is announced, so that no half of it is. */
static void announce_frame(term_inline *t)
{
    if (!t->base.answers.has_sync || t->out.len < EBB_SYNC_FROM_BYTES)
        return;
    ebb_buf_insert(&t->out, 0, EBB_SYNC_BEGIN, sizeof EBB_SYNC_BEGIN - 1);
    ebb_buf_adds(&t->out, EBB_SYNC_END);
}

/* Each screen has its own flags of the keyboard protocol. */
static void push_keys_inline(term_inline *t)
{
    if (!t->has_keys_pushed && t->is_active && t->base.answers.has_key_protocol)
        ebb_buf_adds(&t->out, EBB_KEY_PROTOCOL_ON);
    t->has_keys_pushed |= t->is_active && t->base.answers.has_key_protocol;
}

static void pop_keys_inline(term_inline *t)
{
    if (t->has_keys_pushed)
        ebb_buf_adds(&t->out, EBB_KEY_PROTOCOL_OFF);
    t->has_keys_pushed = false;
}

static void set_link(term_inline *t, uint32_t link)
{
    if (t->link != link)
        ebb_hyperlink_switch(&t->base.links, link, &t->out);
    t->link = link;
}

static void set_face(term_inline *t, int face)
{
    if (t->face == face)
        return;
    ebb_buf_add(&t->out, ebb_buf_text(&t->sgr[face]), t->sgr[face].len);
    t->face = face;
}

/* For cells that are erased. */
static void set_plain(term_inline *t)
{
    set_link(t, 0);
    set_face(t, EBB_FACE_TEXT);
}

static void to_column(term_inline *t, int col)
{
    if (col == t->col)
        return;
    if (t->col >= 0 && col == t->col - 1) {
        ebb_buf_addc(&t->out, '\b');
    } else {
        ebb_buf_addc(&t->out, '\r');
        if (col > 0)
            ebb_cap_add_n(&t->out, "cuf", col);
    }
    t->col = col;
}

/* The cursor to a row of the region or the one after its last, which is made. */
static void move_in_region(term_inline *t, int row, int col)
{
    if (row < t->row)
        ebb_cap_add_n(&t->out, "cuu", t->row - row);
    for (; t->row < row; t->row++)
        ebb_buf_addc(&t->out, '\n');
    t->row = row;
    to_column(t, col);
}

static void erase_below(term_inline *t)
{
    set_plain(t);
    ebb_cap_add(&t->out, "ed");
}

/* -- Frames -------------------------------------------------------------------------- */

static void inline_size(ebb_term *base, int *rows, int *cols)
{
    *rows = ((term_inline *)base)->rows;
    *cols = ((term_inline *)base)->cols;
}

static void inline_clear(ebb_term *base)
{
    ebb_grid_blank(&((term_inline *)base)->next);
    ebb_hyperlinks_clear(&base->links);
}

static void inline_begin(ebb_term *base, int above, int rows)
{
    term_inline *t = (term_inline *)base;

    if (ebb_grid_resize(&t->next, above + rows, t->cols))
        t->above = above;
}

static void inline_cell(ebb_term *base, int row, int col, const char *text, int width, ebb_face face)
{
    ebb_grid_put(&((term_inline *)base)->next, row, col, text, width, face,
                 base->link);
}

/* Terminals may give the character another width: the cursor is then placed for the next one. */
static bool is_risky(const ebb_cell *c)
{
    uint32_t cp;
    size_t n = strlen(c->text), used = ebb_utf8_decode(c->text, n, &cp);

    return used < n || (c->width == 2 && cp >= 0x1F000);
}

static void draw_cell(term_inline *t, const ebb_cell *c, int row, int col)
{
    move_in_region(t, row, col);
    set_face(t, c->face);
    set_link(t, c->link);
    ebb_buf_adds(&t->out, c->text);
    t->col = is_risky(c) || col + c->width >= t->cols ? -1 : col + c->width;
}

/* Cells from `col` on that are blank to the end of the row. */
static int blank_from(const ebb_grid *g, int row)
{
    int col = g->cols;

    while (col > 0 && ebb_cell_is_blank(ebb_grid_at(g, row, col - 1)))
        col--;
    return col;
}

/* Grow `reach` to `rows`, new ones with 0 columns.  Without memory, rows beyond it are as wide as
 * the screen. */
static void make_reach(term_inline *t, int rows)
{
    int *reach = rows > t->n_reach ? realloc(t->reach, (size_t)rows * sizeof *reach) : NULL;

    if (!reach)
        return;
    for (int i = t->n_reach; i < rows; i++)
        reach[i] = 0;
    t->reach = reach;
    t->n_reach = rows;
}

static void set_reach(term_inline *t, int from, int cols)
{
    for (int i = from; i < t->n_reach; i++)
        t->reach[i] = cols;
}

/* `row` of the frame over row `row` of the region (or over nothing). */
static void draw_region_row(term_inline *t, int row)
{
    bool is_new = row >= t->shown.rows;
    int end = blank_from(&t->next, row), old_end = is_new ? 0 : blank_from(&t->shown, row);

    if (is_new)
        move_in_region(t, row, 0);
    if (row < t->above && end < (row < t->n_reach ? t->reach[row] : t->cols)) {
        move_in_region(t, row, 0);               /* a terminal would remember how long this line was */
        set_plain(t);
        ebb_cap_add(&t->out, "el");
        is_new = true;
        old_end = 0;
        if (row < t->n_reach)
            t->reach[row] = 0;
    }
    if (row < t->n_reach && t->reach[row] < end)
        t->reach[row] = end;
    for (int col = 0; col < end; col++) {
        const ebb_cell *c = ebb_grid_at(&t->next, row, col);
        bool is_same = !is_new && ebb_cell_equal(c, ebb_grid_at(&t->shown, row, col));
        if (c->width > 0 && (!is_same && (col < old_end || !ebb_cell_is_blank(c))))
            draw_cell(t, c, row, col);
    }
    if (end < old_end) {
        move_in_region(t, row, end);
        set_plain(t);
        ebb_cap_add(&t->out, "el");
    }
}

/* What is now the region: the last rows of the frame. */
static void adopt_frame(term_inline *t)
{
    ebb_grid was = t->shown;
    size_t skip = (size_t)t->above * (size_t)t->next.cols;

    t->shown = t->next;
    t->shown.rows -= t->above;
    memmove(t->shown.cells, t->shown.cells + skip,
            (size_t)t->shown.rows * (size_t)t->shown.cols * sizeof *t->shown.cells);
    t->next = was;
    ebb_grid_resize(&t->next, t->shown.rows, t->shown.cols);
    if (t->above > 0 && t->above < t->n_reach)
        memmove(t->reach, t->reach + t->above, (size_t)(t->n_reach - t->above) * sizeof *t->reach);
    set_reach(t, t->shown.rows, 0);
    t->row -= t->above;
    t->above = 0;
}

static void show_cursor(term_inline *t, bool is_shown)
{
    if (t->is_hidden == !is_shown)
        return;
    ebb_cap_add(&t->out, is_shown ? "cnorm" : "civis");
    t->is_hidden = !is_shown;
}

/* Where the region begins again after it was erased: one blank row, the cursor at its beginning. */
static void invalidate_region(term_inline *t)
{
    int rows = t->is_fullscreen ? t->rows : 1;

    ebb_grid_resize(&t->shown, rows, t->cols);
    set_reach(t, 0, 0);
    t->row = t->col = 0;
    t->face = -1;
    t->is_stale = false;
}

static void redraw_region(term_inline *t)
{
    if (t->is_fullscreen && t->has_alternate) {
        set_plain(t);
        ebb_cap_add(&t->out, "clear");
    } else {
        move_in_region(t, 0, 0);
        erase_below(t);
    }
    invalidate_region(t);
}

static void inline_flush(ebb_term *base, int cursor_row, int cursor_col)
{
    term_inline *t = (term_inline *)base;

    if (t->next.cols != t->cols)
        return;                                  /* made for another width: the next one will do */
    if (t->is_stale)
        redraw_region(t);
    make_reach(t, t->next.rows);
    for (int row = 0; row < t->next.rows; row++)
        draw_region_row(t, row);
    if (t->next.rows < t->shown.rows) {
        move_in_region(t, t->next.rows, 0);
        erase_below(t);
    }
    set_link(t, 0);
    show_cursor(t, cursor_row >= 0);
    move_in_region(t, cursor_row >= 0 ? cursor_row : t->next.rows - 1, cursor_row >= 0 ? cursor_col : 0);
    adopt_frame(t);
    push_keys_inline(t);
    announce_frame(t);
    inline_send_out(t);
}

static void inline_repaint(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    if (t->has_paste)
        ebb_buf_adds(&t->out, EBB_PASTE_ON);
    t->is_stale = true;
}

/* -- Faces ------------------------------------------------------------------------------ */

static void inline_theme(ebb_term *base, const ebb_theme *theme)
{
    term_inline *t = (term_inline *)base;

    for (int f = 0; f < EBB_FACE_COUNT; f++)
        ebb_caps_face(&theme->style[f], t->no_color ? 0 : t->n_colors, &t->sgr[f]);
    t->face = -1;
    t->is_stale = true;
}

/* -- Entering and leaving ------------------------------------------------------------------- */

static void inline_prepare_restore(const term_inline *t)
{
    ebb_buf bytes = { 0 };

    ebb_buf_adds(&bytes, t->base.answers.has_sync ? EBB_SYNC_END : "");
    ebb_buf_adds(&bytes, t->base.answers.has_key_protocol ? EBB_KEY_PROTOCOL_OFF : "");
    ebb_buf_adds(&bytes, t->tty.is_asked ? EBB_TITLE_RESTORE : "");
    ebb_buf_adds(&bytes, t->has_paste ? EBB_PASTE_OFF : "");
    ebb_cap_add(&bytes, "sgr0");
    ebb_cap_add(&bytes, "cnorm");
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
    t->cols = cols > 1 && !t->fills_edge ? cols - 1 : cols;
}

static void inline_enter(term_inline *t)
{
    ebb_tty_raw();
    ebb_tty_guard(true);
    t->is_active = true;
    inline_adopt_size(t);
    ebb_tty_enter_title(&t->tty);
    if (t->has_paste)
        ebb_buf_adds(&t->out, EBB_PASTE_ON);
    invalidate_region(t);
    ebb_grid_resize(&t->next, 1, t->cols);
    t->above = 0;
}

/* The region goes; what is above it stays. */
static void inline_leave(term_inline *t)
{
    if (!t->is_active)
        return;
    ebb_tty_await_last_answers(&t->tty);
    if (t->is_fullscreen)
        t->base.ops->fullscreen(&t->base, false);
    t->is_active = false;
    pop_keys_inline(t);
    ebb_tty_leave_title(&t->tty);
    move_in_region(t, 0, 0);
    erase_below(t);
    ebb_cap_add(&t->out, "sgr0");
    show_cursor(t, true);
    if (t->has_paste)
        ebb_buf_adds(&t->out, EBB_PASTE_OFF);
    inline_send_out(t);
    ebb_tty_guard(false);
    ebb_tty_cooked();
}

static void inline_close(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    inline_leave(t);
    ebb_tty_close(&t->tty);
    for (int f = 0; f < EBB_FACE_COUNT; f++)
        ebb_buf_fini(&t->sgr[f]);
    ebb_grid_fini(&t->next);
    ebb_grid_fini(&t->shown);
    ebb_grid_fini(&t->kept);
    ebb_buf_fini(&t->out);
    ebb_hyperlinks_fini(&t->base.links);
    free(t->reach);
    free(t);
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
    ebb_tty_lend(&t->tty, keeps_keys);
}

static void inline_take_back(ebb_term *base)
{
    term_inline *t = (term_inline *)base;

    ebb_tty_take_back(&t->tty);
    inline_enter(t);
}

/* -- The whole screen for a while -------------------------------------------------------------- */

static void enter_alternate_screen(term_inline *t)
{
    t->kept_row = t->row;
    t->kept_col = t->col;
    t->kept_cols = t->cols;
    ebb_grid_fini(&t->kept);
    t->kept = t->shown;
    memset(&t->shown, 0, sizeof t->shown);
    ebb_cap_add(&t->out, "smcup");
}

/* Rows between the region's first one and the cursor, after the width has changed. */
static int rows_above(const term_inline *t, const ebb_grid *g, int row)
{
    int n = row;

    for (int i = 0; t->reflows && i < row && i < g->rows; i++) {
        int used = blank_from(g, i);
        n += used > t->cols ? (used - 1) / t->cols : 0;
    }
    return n < t->rows ? n : t->rows - 1;
}

static void leave_alternate_screen(term_inline *t)
{
    ebb_cap_add(&t->out, "rmcup");
    ebb_grid_fini(&t->shown);
    t->shown = t->kept;
    memset(&t->kept, 0, sizeof t->kept);
    set_reach(t, 0, t->cols);
    t->row = t->kept_row;
    t->col = t->kept_col;
    t->face = -1;
    if (t->kept_cols != t->cols) {
        t->row = rows_above(t, &t->shown, t->row);
        t->col = -1;
        t->is_stale = true;
    }
}

static void inline_fullscreen(ebb_term *base, bool is_fullscreen)
{
    term_inline *t = (term_inline *)base;

    if (t->is_fullscreen == is_fullscreen)
        return;
    if (t->has_alternate)
        pop_keys_inline(t);
    t->is_fullscreen = is_fullscreen;
    if (t->has_alternate && is_fullscreen)
        enter_alternate_screen(t);
    else if (t->has_alternate)
        leave_alternate_screen(t);
    if (is_fullscreen) {
        t->is_stale = true;
        t->above = 0;
        ebb_grid_resize(&t->next, t->rows, t->cols);
        if (!t->has_alternate)                   /* the region grows */
            move_in_region(t, 0, 0);
    }
    inline_prepare_restore(t);
}

/* -- Input ---------------------------------------------------------------------------------------- */

static int inline_fds(ebb_term *base, struct pollfd *out, int cap)
{
    return ebb_tty_fds(&((term_inline *)base)->tty, out, cap);
}

static int inline_timeout(ebb_term *base)
{
    return ebb_tty_timeout_ms(&((term_inline *)base)->tty);
}

static void inline_resized(term_inline *t)
{
    inline_adopt_size(t);
    if (!t->is_fullscreen || !t->has_alternate)
        t->row = rows_above(t, &t->shown, t->row);
    t->col = -1;
    t->is_stale = true;
    ebb_grid_resize(&t->next, t->is_fullscreen ? t->rows : 1, t->cols);
}

/* After SIGCONT: another program had the terminal, so the cursor's place is unknown. */
static void inline_resumed(term_inline *t)
{
    if (t->was_stopped) {
        ebb_tty_raw();
        t->is_stale = true;
    } else {
        ebb_buf_adds(&t->out, "\r");
        inline_enter(t);
    }
    t->was_stopped = false;
}

static void inline_adopt_answers(term_inline *t)
{
    t->base.answers = t->tty.answers;
    t->base.has_links |= t->links == EBB_LINKS_AUTO && t->byte_s <= 0 && t->base.answers.has_links;
    inline_prepare_restore(t);
}

static bool inline_input(ebb_term *base, ebb_input *out)
{
    term_inline *t = (term_inline *)base;

    if (!ebb_tty_input(&t->tty, out))
        return false;
    if (out->kind == EBB_INPUT_REPLY)
        inline_adopt_answers(t);
    if (t->tty.is_lent)                          /* what has changed is seen when it comes back */
        return true;
    if (out->kind == EBB_INPUT_RESIZE)
        inline_resized(t);
    else if (out->kind == EBB_INPUT_RESUME)
        inline_resumed(t);
    return true;
}

static void inline_send(ebb_term *base, const char *bytes, size_t n)
{
    (void)base;
    ebb_tty_write(bytes, n);
}

static void inline_title(ebb_term *base, const char *text, size_t n)
{
    ebb_tty_set_title(&((term_inline *)base)->tty, text, n, !base->utf8);
}

static void inline_await(ebb_term *base, double until_s)
{
    term_inline *t = (term_inline *)base;

    ebb_tty_await_answers(&t->tty, until_s);
    inline_adopt_answers(t);
}

static bool inline_is_behind(ebb_term *base)
{
    (void)base;
    return ebb_tty_is_behind();
}

/* -- Opening ------------------------------------------------------------------------------------------ */

static const ebb_term_ops inline_ops = {
    .close = inline_close, .size = inline_size, .clear = inline_clear, .begin = inline_begin,
    .fullscreen = inline_fullscreen,
    .cell = inline_cell, .flush = inline_flush, .repaint = inline_repaint, .theme = inline_theme,
    .suspend = inline_suspend, .lend = inline_lend, .take_back = inline_take_back, .fds = inline_fds,
    .timeout_ms = inline_timeout, .input = inline_input, .send = inline_send, .title = inline_title,
    .await_answers = inline_await, .is_behind = inline_is_behind,
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

    t->base.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    t->base.ascii = opts->ascii || !t->base.utf8 || ebb_tty_is_plain_kind(kind);
    t->byte_s = ebb_tty_byte_s();
    t->has_paste = ebb_tty_has_paste(kind);
    t->no_color = opts->no_color;
    t->reflows = opts->reflows || strncmp(kind, "tmux", 4) == 0;
    t->fills_edge = !ebb_cap_flag("am") || ebb_cap_flag("xenl");
    t->has_alternate = has_alternate(kind);
    t->n_colors = ebb_cap_number("colors");
    t->links = opts->links;
    t->base.has_links = ebb_tty_has_links(opts->links, t->byte_s, kind);
}

ebb_status ebb_term_inline(const ebb_term_opts *opts, ebb_term **out, ebb_error *err)
{
    term_inline *t = calloc(1, sizeof *t);
    ebb_status st;

    *out = NULL;
    if (!t)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the screen");
    t->base.ops = &inline_ops;
    st = ebb_tty_open(&t->tty, err);
    if (st != EBB_OK) {
        free(t);
        return st;
    }
    setlocale(LC_CTYPE, "");
    if (!can_draw()) {
        ebb_tty_close(&t->tty);
        free(t);
        return EBB_FAIL(err, EBB_UNSUPPORTED, "this terminal cannot move its cursor; use --plain");
    }
    probe_terminal(t, opts);
    ebb_tty_raw();
    ebb_tty_ask(&t->tty, ebb_caps_name());
    inline_prepare_restore(t);
    inline_enter(t);
    *out = &t->base;
    return EBB_OK;
}
