/* Rows that the full screen and the inline region share (app.h). */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/greeting.h"
#include "base/utf8.h"
#include "command/slash.h"
#include "term/width.h"

enum { QUEUED_ROWS_MAX = 3 };

/* What Enter will do with a message that was put into the editor; once it has changed, what that costs. */
static void add_editing(const ebb_app *a, ebb_buf *out)
{
    bool has_cost = a->preview.is_known && a->editor.n_edits != a->marks.offered_edits;

    if (a->frontend.is_cutting) {
        ebb_buf_adds(out, has_cost ? "" : "shorten or rewrite it: Enter goes on from there, Ctrl-C leaves it");
    } else if (a->frontend.editing) {
        ebb_buf_addf(out, "editing message %zu: ", a->frontend.editing);
        if (has_cost)
            ebb_app_preview_text(a, out);
        else
            ebb_buf_adds(out, "Enter sends it as a new branch, Ctrl-C leaves it");
    }
}

/* The status row's text before the figures: a hint, the search, the mode, or "new text below". */
void ebb_app_status_message(const ebb_app *a, ebb_buf *out)
{
    bool ascii = a->term->ascii;

    if (a->find.state) {
        ebb_app_find_status(a, out);
        return;
    }
    if (a->vi.is_on && a->vi.is_normal && !a->search.is_on) {
        ebb_buf_adds(out, "-- normal -- ");
        ebb_vi_pending(&a->vi, out);
    }
    if (a->search.is_on) {
        ebb_buf_adds(out, "search: ");
        ebb_utf8_add_visible(out, ebb_buf_text(&a->search.pattern), a->search.pattern.len, !a->term->utf8);
        if (a->hint.len > 0)
            ebb_buf_adds(out, "  (");
    }
    ebb_utf8_add_visible(out, ebb_buf_text(&a->hint), a->hint.len, !a->term->utf8);
    if (a->search.is_on && a->hint.len > 0)
        ebb_buf_addc(out, ')');
    if (out->len == 0)
        ebb_app_select_status(a, out);
    if (out->len == 0 && !ebb_slash_command_is(ebb_buf_text(&a->editor.text)))
        add_editing(a, out);
    if (out->len == 0)
        ebb_app_preview_text(a, out);
    if (out->len == 0 && a->menu.is_open)
        ebb_buf_adds(out, ascii ? "Up Down: choose, Tab: take, Esc: close"
                                : "\u2191\u2193 choose \u00B7 Tab takes \u00B7 Esc closes");
    if (out->len == 0 && ebb_slash_command_is(ebb_buf_text(&a->editor.text)))
        ebb_slash_command_usage(ebb_buf_text(&a->editor.text), out);
    if (out->len == 0 && !a->view.is_bottom)
        ebb_buf_adds(out, a->view.has_more ? (ascii ? "v new text below (Alt-End)" : "\u2193 new text below (Alt-End)")
                                           : "PgDn: more, Alt-End: to the end");
}

int ebb_app_queue_rows(const ebb_app *a)
{
    return (int)(a->queue.n < QUEUED_ROWS_MAX ? a->queue.n : QUEUED_ROWS_MAX);
}

/* Of a message that waits as much as fits, and all of `more`. */
static void draw_queued(ebb_app *a, int row, int cols, const char *text, const char *more)
{
    ebb_buf line = { 0 };
    int col;

    ebb_buf_adds(&line, "waits: ");
    ebb_utf8_add_visible(&line, text, strlen(text), !a->term->utf8);
    col = ebb_term_put_cut(a->term, row, 0, cols - ebb_width_text(more, strlen(more)), ebb_buf_text(&line), line.len,
                           EBB_FACE_QUEUED);
    ebb_term_puts(a->term, row, col, cols, more, EBB_FACE_QUEUED);
    ebb_buf_fini(&line);
}

void ebb_app_draw_queue(ebb_app *a, int row, int n, int cols)
{
    char more[40] = "";

    for (int i = 0; i < n; i++) {
        if (i + 1 == n && a->queue.n > (size_t)n)
            snprintf(more, sizeof more, "  (and %zu more)", a->queue.n - (size_t)n);
        draw_queued(a, row + i, cols, a->queue.messages[i].row, more);
    }
}

bool ebb_app_greets(const ebb_app *a)
{
    return a->view.n_items == 0 ||
           (!a->greeting.is_touched && !a->figures.has_failed && ebb_chat_n_messages(a->frontend.chat) == 0);
}

enum { GREETING_INDENT = 2, AIRY_FROM = 16 };

/* Without the blank lines between its paragraphs. */
static void close_up(ebb_buf *text)
{
    for (size_t i = 1; i < text->len; i++)
        if (text->data[i] == '\n' && text->data[i - 1] == '\n')
            ebb_buf_remove(text, i--, 1);
}

static bool wrap_greeting(ebb_app *a, int cols, ebb_wrap *w)
{
    ebb_buf text = { 0 };
    int rows, all_cols;

    a->greeting.has_machine = a->greeting.has_machine ||
                              ebb_machine_probe(NULL, false, &a->greeting.machine, NULL) == EBB_OK;
    if (!a->greeting.has_machine)
        return false;
    ebb_machine room = a->greeting.machine;
    if (a->figures.stats.budget_bytes > 0 && a->figures.stats.budget_bytes < room.available_bytes)
        room.available_bytes = a->figures.stats.budget_bytes;    /* --ram */
    ebb_greeting_text(&text, &room, a->figures.model, a->greeting.is_first_run, true,
                      a->frontend.opts->is_private);
    if (a->greeting.is_first_run && !a->term->ops->begin)
        ebb_buf_adds(&text, "\nebb --inline leaves the conversation in the terminal's own scrollback.");
    a->term->ops->size(a->term, &rows, &all_cols);
    if (rows < AIRY_FROM)
        close_up(&text);
    *w = (ebb_wrap){ .ascii = !a->term->utf8, .md.base = EBB_FACE_DIM };
    ebb_wrap_text(w, ebb_buf_text(&text), text.len, true);
    ebb_wrap_rows(w, cols - 2 * GREETING_INDENT);
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

/* Its first line is its title; what is set in is typed. */
static ebb_face greeting_face(const ebb_wrap *w, size_t row)
{
    uint32_t line = w->rows[row].line;

    return line == 0 ? EBB_FACE_BOLD : w->visible.data[line] == ' ' ? EBB_FACE_CODE : EBB_FACE_DIM;
}

/* As many of its rows as make whole lines (what is indented belongs to the line above); where not even one fits, what
 * fits. */
static size_t whole_lines(const ebb_wrap *w, size_t rows)
{
    size_t n = rows < w->n_rows ? rows : w->n_rows;

    while (n > 0 && n < w->n_rows &&
           (w->rows[n].line == w->rows[n - 1].line || w->visible.data[w->rows[n].start] == ' '))
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
        ebb_term_put(a->term, row + (int)i, GREETING_INDENT + w.rows[i].indent, cols - 1,
                     w.visible.data + w.rows[i].start, w.rows[i].end - w.rows[i].start, greeting_face(&w, i));
    ebb_wrap_fini(&w);
    return (int)i;
}

void ebb_app_draw_prompt(ebb_app *a, int row, int rows, int cols, int *caret_row, int *caret_col)
{
    static const char hint[] = "Ask something.  /help shows commands and keys.";

    ebb_term_puts(a->term, row, 0, cols, "> ", EBB_FACE_PROMPT);
    if (ebb_editor_is_empty(&a->editor) && ebb_app_greets(a) && a->queue.n == 0)
        ebb_term_puts(a->term, row, 2, cols, (int)sizeof hint + 1 <= cols ? hint : "Ask something, or /help.",
                      EBB_FACE_DIM);
    ebb_editor_draw(&a->editor, a->term, row, 2, rows, caret_row, caret_col);
}
