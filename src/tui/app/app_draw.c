/* A frame of the full screen (app.h). */
#include <string.h>

#include "app/app.h"
#include "base/utf8.h"
#include "term/width.h"

enum { TWO_ROWS_FROM = 16, TWO_COLS_FROM = 60, RULE_FROM = 12, SECOND_RULE_FROM = 20, GAP_FROM = 24, STATUS_COL = 2 };

enum { SAYS_LITTLE = 3 };        /* columns of a session's name that is cut off */

const char *const ebb_layout_names[EBB_LAYOUTS + 1] = {
    [EBB_LAYOUT_AUTO] = "auto", [EBB_LAYOUT_WIDE] = "panel", [EBB_LAYOUT_NARROW] = "two", [EBB_LAYOUT_LINE] = "one",
    [EBB_LAYOUT_OFF] = "hidden", NULL,
};

typedef struct layout {
    int rows, cols;              /* the terminal */
    int main_cols;               /* left of the panel */
    int status_rows, queue_rows, editor_rows, view_rows;
    int rules, gap;              /* above the input, and below it; a blank row above them */
} layout;

/* Is the panel shown?  The wide layout, if chosen, shows it on narrower screens, too. */
static bool has_panel(const ebb_app *a, const layout *l)
{
    int from = a->layout == EBB_LAYOUT_WIDE ? 2 * EBB_PANEL_COLUMNS : EBB_PANEL_WIDE;

    return a->layout <= EBB_LAYOUT_WIDE && l->cols >= from && l->rows >= 10;
}

static bool has_second_status(const ebb_app *a, const layout *l)
{
    return a->layout < EBB_LAYOUT_LINE && l->rows >= (a->layout == EBB_LAYOUT_NARROW ? 10 : TWO_ROWS_FROM) &&
           l->cols >= (a->layout == EBB_LAYOUT_NARROW ? 40 : TWO_COLS_FROM);
}

static layout plan_layout(ebb_app *a)
{
    layout l;
    int most;

    a->term->ops->size(a->term, &l.rows, &l.cols);
    l.main_cols = has_panel(a, &l) ? l.cols - EBB_PANEL_COLUMNS : l.cols;
    l.status_rows = l.rows < 3 ? 0 : l.main_cols < l.cols || !has_second_status(a, &l) ? 1 : 2;
    l.queue_rows = ebb_app_queue_rows(a);
    if (l.rows < 6)
        l.queue_rows = 0;
    most = l.rows / 3 > 1 ? l.rows / 3 : 1;
    l.editor_rows = (int)ebb_editor_layout(&a->editor, l.main_cols - 2);
    if (l.editor_rows > most)
        l.editor_rows = most;
    l.rules = (l.rows >= RULE_FROM) + (l.rows >= SECOND_RULE_FROM);
    l.gap = l.rows >= GAP_FROM;
    l.view_rows = l.rows - l.status_rows - l.queue_rows - l.editor_rows - l.rules - l.gap;
    return l;
}

int ebb_app_layout_shape(ebb_app *a)
{
    layout l;

    if (a->layout == EBB_LAYOUT_OFF || a->term->ops->begin)
        return a->layout == EBB_LAYOUT_OFF ? -1 : 0;
    l = plan_layout(a);
    return l.main_cols * 4 + l.status_rows;
}

static void add_session(const ebb_app *a, ebb_buf *out)
{
    const char *name = a->figures.session;

    if (name && *name)
        ebb_utf8_add_line(out, name, strlen(name), !a->term->utf8);
}

/* What Esc does while one waits: app_escape_key. */
static const char *escape_help(const ebb_app *a)
{
    if (!a->figures.is_busy)
        return "";
    return a->view.is_bottom ? "Esc stops" : "Esc: the end";
}

/* While one waits the wide layout says here, too, for what and how long: it is where one looks. */
static void add_live(const ebb_app *a, ebb_buf *out, bool is_wide, int width)
{
    bool is_waiting = a->figures.is_busy || !(a->figures.model || a->figures.has_failed);
    const char *escape = escape_help(a), *dot = a->term->ascii ? " - " : " \u00B7 ";
    size_t before = out->len;

    if (a->layout == EBB_LAYOUT_OFF || (is_wide && !is_waiting && !a->figures.is_pulling))
        return;
    if (is_wide)
        ebb_panel_live(out, &a->figures, a->term->ascii);
    else
        ebb_panel_brief(out, &a->figures, a->term->ascii, width - (*escape ? (int)strlen(escape) + 3 : 0));
    if (*escape)
        ebb_buf_addf(out, "%s%s", out->len > before ? dot : "", escape);
}

/* All of it, or as much as says something. */
static void draw_session_name(ebb_app *a, int row, int from, int limit)
{
    ebb_buf line = { 0 };
    int whole, width;

    add_session(a, &line);
    whole = width = ebb_width_text(ebb_buf_text(&line), line.len);
    if (width > limit - from - 2)
        width = limit - from - 2;
    if (width > 0 && (width == whole || width > SAYS_LITTLE))
        ebb_term_put_cut(a->term, row, limit - width - 1, limit - 1, ebb_buf_text(&line), line.len, EBB_FACE_LABEL);
    ebb_buf_fini(&line);
}

/* A hint at the left, then the figures; where these have the panel, the session's name at the right. */
static void draw_full_status(ebb_app *a, const layout *l, int row)
{
    ebb_buf line = { 0 };
    bool is_wide = l->main_cols < l->cols, has_message;
    int col;

    ebb_app_status_message(a, &line);
    col = ebb_term_put_cut(a->term, row, STATUS_COL, l->main_cols, ebb_buf_text(&line), line.len, EBB_FACE_NOTICE);
    has_message = line.len > 0;
    ebb_buf_clear(&line);
    add_live(a, &line, is_wide, l->main_cols - col - (has_message ? 4 : 1));
    if (has_message && line.len > 0) {
        ebb_term_puts(a->term, row, col + 1, l->main_cols, a->term->ascii ? "-" : "\u00B7", EBB_FACE_STATUS);
        col += 3;
    }
    col = ebb_term_put(a->term, row, col, l->main_cols, ebb_buf_text(&line), line.len, EBB_FACE_STATUS);
    if (is_wide)
        draw_session_name(a, row, col + 2, l->main_cols);
    ebb_buf_fini(&line);
}

static void draw_rule(ebb_app *a, const layout *l, int row)
{
    for (int col = 0; col < l->main_cols; col++)
        ebb_term_puts(a->term, row, col, l->main_cols, a->term->ascii ? "-" : "\u2500", EBB_FACE_BORDER);
}

/* The second row: the layers, and the session's name at the right. */
static void draw_second_status(ebb_app *a, const layout *l, int row)
{
    const ebb_stats *s = ebb_panel_machine(&a->figures);
    ebb_buf line = { 0 };
    int col = STATUS_COL;

    if (s && s->n_layers > 0) {
        ebb_buf_addf(&line, "layers %u/%u ", s->n_resident, s->n_layers);
        col = ebb_term_puts(a->term, row, col, l->cols, ebb_buf_text(&line), EBB_FACE_LABEL);
        ebb_layer_map_draw(a->term, row, 1, col, l->cols / 2, s);
        col += ebb_layer_map_count(s) < l->cols / 2 ? ebb_layer_map_count(s) : l->cols / 2;
    }
    draw_session_name(a, row, col + 1, l->cols);
    ebb_buf_fini(&line);
}

static void draw_panel(ebb_app *a, const layout *l)
{
    ebb_canvas c = { .term = a->term, .row = 0, .end = l->rows, .col = l->main_cols + 2, .limit = l->cols - 1 };

    for (int row = 0; row < l->rows; row++)
        ebb_term_puts(a->term, row, l->main_cols, l->cols, a->term->ascii ? "|" : "\u2502", EBB_FACE_BORDER);
    ebb_panel_draw(&c, &a->figures);
}

/* Rows that the greeting takes from the view; notices about loading are below it if both fit. */
static int draw_greeting_above(ebb_app *a, const layout *l)
{
    enum { NOTICE_ROWS = 5 };
    int rows;

    if (a->view.n_items > 0 && ebb_app_greeting_rows(a, l->main_cols) + 1 + NOTICE_ROWS > l->view_rows)
        return 0;
    rows = ebb_app_draw_greeting(a, 0, l->view_rows, l->main_cols);
    return a->view.n_items > 0 ? rows + 1 : 0;
}

/* Right above the input, a blank row between it and what it covers. */
static void draw_menu(ebb_app *a, const layout *l, int row, int rows)
{
    if (row > 0)
        ebb_term_blank(a->term, row - 1, l->main_cols);
    ebb_menu_draw(&a->menu, a->term, row, rows, l->main_cols);
}

static void fullscreen_frame(ebb_app *a)
{
    layout l = plan_layout(a);
    int row = l.view_rows + l.gap, greeting = 0, caret_row, caret_col, text_cols;

    a->term->ops->clear(a->term);
    if (ebb_app_greets(a) && l.view_rows >= 3)
        greeting = draw_greeting_above(a, &l);
    text_cols = l.main_cols - (l.main_cols < l.cols);
    ebb_transcript_draw(&a->view, a->term, greeting, l.view_rows - greeting, text_cols < EBB_TEXT_COLUMNS
                        ? text_cols : EBB_TEXT_COLUMNS);
    if (a->menu.is_open) {
        int n = ebb_menu_rows(&a->menu) < row ? ebb_menu_rows(&a->menu) : row;
        draw_menu(a, &l, row - n, n);
    }
    if (l.rules > 0)
        draw_rule(a, &l, row++);
    ebb_app_draw_queue(a, row, l.queue_rows, l.main_cols);
    row += l.queue_rows;
    ebb_app_draw_prompt(a, row, l.editor_rows, l.main_cols, &caret_row, &caret_col);
    row += l.editor_rows;
    if (l.rules > 1)
        draw_rule(a, &l, row++);
    if (l.status_rows > 0)
        draw_full_status(a, &l, row++);
    if (l.status_rows > 1)
        draw_second_status(a, &l, row++);
    if (l.main_cols < l.cols)
        draw_panel(a, &l);
    if (caret_col >= l.cols)
        caret_col = l.cols - 1;
    a->term->ops->flush(a->term, caret_row, caret_col);
}

void ebb_app_frame(ebb_app *a)
{
    if (!a->term->ops->begin || ebb_app_inline_is_fullscreen(a))
        fullscreen_frame(a);
    else
        ebb_app_inline_frame(a, false);
}
