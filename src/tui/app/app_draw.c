/* A frame of the full screen (app.h). */
#include <string.h>

#include "app/app.h"
#include "app/greeting.h"
#include "base/utf8.h"
#include "command/slash.h"
#include "term/width.h"
#include "text/humanize.h"

enum { QUEUED_ROWS_MAX = 3, TWO_ROWS_FROM = 16, TWO_COLS_FROM = 60, RULE_FROM = 12, SECOND_RULE_FROM = 20 };

typedef struct layout {
    int rows, cols;              /* the terminal */
    int main_cols;               /* left of the panel */
    int status_rows, queue_rows, editor_rows, view_rows;
    int rules;                   /* above the input, and below it */
} layout;

/* The panel where there is room for it, or where it is wanted and possible. */
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
    l.view_rows = l.rows - l.status_rows - l.queue_rows - l.editor_rows - l.rules;
    return l;
}

/* What stands in front of the figures: a hint, the search, or news from below. */
void ebb_app_status_message(const ebb_app *a, ebb_buf *out)
{
    bool ascii = a->term->ascii;

    if (a->finding) {
        ebb_app_find_status(a, out);
        return;
    }
    if (a->vi.is_on && a->vi.is_normal && !a->in_search) {
        ebb_buf_adds(out, "-- normal -- ");
        ebb_vi_pending(&a->vi, out);
    }
    if (a->in_search) {
        ebb_buf_adds(out, "search: ");
        ebb_utf8_add_visible(out, ebb_buf_text(&a->pattern), a->pattern.len, !a->term->utf8);
        if (a->hint.len > 0)
            ebb_buf_adds(out, "  (");
    }
    ebb_utf8_add_visible(out, ebb_buf_text(&a->hint), a->hint.len, !a->term->utf8);
    if (a->in_search && a->hint.len > 0)
        ebb_buf_addc(out, ')');
    if (out->len == 0)
        ebb_app_preview_text(a, out);
    if (out->len == 0 && a->menu.is_open)
        ebb_buf_adds(out, ascii ? "Up Down: choose, Tab: take, Esc: close" : "\u2191\u2193 choose \u00B7 Tab takes \u00B7 Esc closes");
    if (out->len == 0 && ebb_slash_command_is(ebb_buf_text(&a->editor.text)))
        ebb_slash_command_usage(ebb_buf_text(&a->editor.text), out);
    if (out->len == 0 && !a->view.is_bottom)
        ebb_buf_adds(out, a->view.has_more ? (ascii ? "v new text below (Alt-End)" : "\u2193 new text below (Alt-End)")
                                           : "PgDn: more, Alt-End: to the end");
}

static void add_session(const ebb_app *a, ebb_buf *out)
{
    const char *name = a->figures.session;

    if (name && *name)
        ebb_utf8_add_visible(out, name, strlen(name), !a->term->utf8);
}

/* While one waits the wide layout says here, too, for what and how long: it is where one looks. */
static void add_live(const ebb_app *a, ebb_buf *out, bool is_wide, int width)
{
    bool is_waiting = a->figures.is_busy || !(a->figures.model || a->figures.has_failed);
    const char *stop = a->figures.is_busy ? "Esc stops" : "", *dot = a->term->ascii ? " - " : " \u00B7 ";
    size_t before = out->len;

    if (a->layout == EBB_LAYOUT_OFF || (is_wide && !is_waiting))
        return;
    if (is_wide)
        ebb_panel_live(out, &a->figures, a->term->ascii);
    else
        ebb_panel_brief(out, &a->figures, a->term->ascii, width - (*stop ? (int)strlen(stop) + 3 : 0));
    if (*stop)
        ebb_buf_addf(out, "%s%s", out->len > before ? dot : "", stop);
}

static void draw_session_name(ebb_app *a, int row, int from, int limit)
{
    ebb_buf line = { 0 };
    int width;

    add_session(a, &line);
    width = ebb_width_text(ebb_buf_text(&line), line.len, 0);
    if (width > limit - from - 2)
        width = limit - from - 2;
    if (width > 3)
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
    col = ebb_term_put_cut(a->term, row, 1, l->main_cols, ebb_buf_text(&line), line.len, EBB_FACE_NOTICE);
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
    const ebb_stats *s = &a->figures.stats;
    ebb_buf line = { 0 };
    int col = 1;

    if (s->n_layers > 0) {
        ebb_buf_addf(&line, "layers %u/%u ", s->n_resident, s->n_layers);
        col = ebb_term_puts(a->term, row, col, l->cols, ebb_buf_text(&line), EBB_FACE_LABEL);
        ebb_layer_map_draw(a->term, row, 1, col, l->cols / 2, s);
        col += ebb_layer_map_count(s) < l->cols / 2 ? ebb_layer_map_count(s) : l->cols / 2;
    }
    draw_session_name(a, row, col + 1, l->cols);
    ebb_buf_fini(&line);
}

int ebb_app_queue_rows(const ebb_app *a)
{
    return (int)(a->n_queue < QUEUED_ROWS_MAX ? a->n_queue : QUEUED_ROWS_MAX);
}

void ebb_app_draw_queue(ebb_app *a, int row, int n, int cols)
{
    ebb_buf line = { 0 };

    for (int i = 0; i < n; i++) {
        const char *text = a->queue[i];
        ebb_buf_clear(&line);
        ebb_buf_adds(&line, "waits: ");
        ebb_utf8_add_visible(&line, text, strcspn(text, "\n"), !a->term->utf8);
        if (strchr(text, '\n'))
            ebb_buf_adds(&line, " ...");
        if (i + 1 == n && a->n_queue > (size_t)n)
            ebb_buf_addf(&line, "  (and %zu more)", a->n_queue - (size_t)n);
        ebb_term_puts(a->term, row + i, 0, cols, ebb_buf_text(&line), EBB_FACE_QUEUED);
    }
    ebb_buf_fini(&line);
}

static void draw_panel(ebb_app *a, const layout *l)
{
    ebb_canvas c = { .term = a->term, .row = 0, .end = l->rows, .col = l->main_cols + 2, .limit = l->cols - 1 };

    for (int row = 0; row < l->rows; row++)
        ebb_term_puts(a->term, row, l->main_cols, l->cols, a->term->ascii ? "|" : "\u2502", EBB_FACE_BORDER);
    ebb_panel_draw(&c, &a->figures);
}

bool ebb_app_greets(const ebb_app *a)
{
    return a->view.n_items == 0 || (!a->is_touched && !a->figures.has_failed && ebb_chat_n_messages(a->frontend.chat) == 0);
}

static bool wrap_greeting(ebb_app *a, int cols, ebb_wrap *w)
{
    ebb_buf text = { 0 };

    a->has_machine = a->has_machine || ebb_machine_probe(NULL, false, &a->machine, NULL) == EBB_OK;
    if (!a->has_machine)
        return false;
    ebb_machine room = a->machine;
    if (a->figures.stats.budget_bytes > 0 && a->figures.stats.budget_bytes < room.available_bytes)
        room.available_bytes = a->figures.stats.budget_bytes;    /* --ram */
    ebb_greeting_text(&text, &room, a->figures.model, a->is_first_run);
    *w = (ebb_wrap){ .ascii = !a->term->utf8, .md.base = EBB_FACE_DIM };
    ebb_wrap_text(w, ebb_buf_text(&text), text.len, true);
    ebb_wrap_rows(w, cols - 2);
    ebb_buf_fini(&text);
    return true;
}

int ebb_app_greeting_rows(ebb_app *a, int cols)
{
    ebb_wrap w;
    int n;

    if (!wrap_greeting(a, cols, &w))
        return 0;
    n = (int)w.n_rows;
    ebb_wrap_fini(&w);
    return n;
}

/* As many of its rows as make whole lines (what is indented belongs to the line above); where not even one fits, what fits. */
static size_t whole_lines(const ebb_wrap *w, size_t rows)
{
    size_t n = rows < w->n_rows ? rows : w->n_rows;

    while (n > 0 && n < w->n_rows && (w->rows[n].line == w->rows[n - 1].line || w->visible.data[w->rows[n].start] == ' '))
        n--;
    return n > 0 ? n : rows < w->n_rows ? rows : w->n_rows;
}

int ebb_app_draw_greeting(ebb_app *a, int row, int rows, int cols)
{
    ebb_wrap w;
    size_t i, n;

    if (!wrap_greeting(a, cols, &w))
        return 0;
    n = whole_lines(&w, rows > 0 ? (size_t)rows : 0);
    for (i = 0; i < n; i++)
        ebb_term_put(a->term, row + (int)i, 1, cols - 1, w.visible.data + w.rows[i].start, w.rows[i].end - w.rows[i].start,
                     EBB_FACE_DIM);
    ebb_wrap_fini(&w);
    return (int)i;
}

void ebb_app_draw_prompt(ebb_app *a, int row, int rows, int cols, int *caret_row, int *caret_col)
{
    static const char hint[] = "Ask something.  /help shows commands and keys.";

    ebb_term_puts(a->term, row, 0, cols, "> ", EBB_FACE_PROMPT);
    if (ebb_editor_is_empty(&a->editor) && ebb_app_greets(a) && a->n_queue == 0)
        ebb_term_puts(a->term, row, 2, cols, (int)sizeof hint + 1 <= cols ? hint : "Ask something, or /help.", EBB_FACE_DIM);
    ebb_editor_draw(&a->editor, a->term, row, 2, rows, caret_row, caret_col);
}

/* Rows that the greeting takes from the view; notices about loading stand below it where there is room for both. */
static int draw_greeting_above(ebb_app *a, const layout *l)
{
    enum { NOTICE_ROWS = 5 };
    int rows;

    if (a->view.n_items > 0 && ebb_app_greeting_rows(a, l->main_cols) + 1 + NOTICE_ROWS > l->view_rows)
        return 0;
    rows = ebb_app_draw_greeting(a, 0, l->view_rows, l->main_cols);
    return a->view.n_items > 0 ? rows + 1 : 0;
}

static void fullscreen_frame(ebb_app *a)
{
    layout l = plan_layout(a);
    int row = l.view_rows, greeting = 0, caret_row, caret_col, text_cols;

    a->term->ops->clear(a->term);
    if (ebb_app_greets(a) && l.view_rows >= 3)
        greeting = draw_greeting_above(a, &l);
    text_cols = l.main_cols - (l.main_cols < l.cols);
    ebb_transcript_draw(&a->view, a->term, greeting, l.view_rows - greeting, text_cols < EBB_TEXT_COLUMNS ? text_cols : EBB_TEXT_COLUMNS);
    if (a->menu.is_open) {
        int n = ebb_menu_rows(&a->menu) < l.view_rows ? ebb_menu_rows(&a->menu) : l.view_rows;
        ebb_menu_draw(&a->menu, a->term, l.view_rows - n, n, l.main_cols);
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
    if (!a->term->ops->begin)
        fullscreen_frame(a);
    else if (ebb_app_inline_is_fullscreen(a))
        fullscreen_frame(a);
    else
        ebb_app_inline_frame(a, false);
}
