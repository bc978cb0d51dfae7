/* A frame of the inline terminal (app.h): what is finished goes up and stays there. */
#include "app/app.h"
#include "text/humanize.h"

/* Of a conversation that is opened, the rows that are shown: some screens. */
enum { SCREENS_SHOWN = 2, STATUS_FROM = 3 };

typedef struct region {
    int cols;
    int notice;                  /* rows above the rest: what is not shown */
    int tail, greeting, editor, menu, queue, status;
} region;

bool ebb_app_inline_is_fullscreen(ebb_app *a)
{
    bool is_fullscreen = !a->view.is_bottom || a->find.state != EBB_FIND_OFF;

    if (is_fullscreen != a->is_fullscreen)
        a->term->ops->fullscreen(a->term, is_fullscreen);
    a->is_fullscreen = is_fullscreen;
    return is_fullscreen;
}

/* Notice that the scrollback's rows are outdated, or that earlier messages are not shown. */
static void add_notice(ebb_app *a, ebb_buf *out, int rows, int cols)
{
    ebb_transcript *t = &a->view;
    bool is_gone = t->scrollback.is_gone, is_first = t->scrollback.item == 0 && !t->scrollback.has_head &&
                                            t->scrollback.n_head == 0;
    size_t passed = is_gone || is_first ? ebb_transcript_flow_skip(t, cols < EBB_TEXT_COLUMNS ? cols : EBB_TEXT_COLUMNS,
                                                                   (size_t)rows * SCREENS_SHOWN) : 0;

    t->scrollback.is_gone = false;
    if (is_gone && t->scrollback.item > passed)
        ebb_buf_addf(out, "* the conversation goes on after its message %zu", t->scrollback.item - passed);
    else if (is_gone)
        ebb_buf_adds(out, t->n_items > 0 ? "* another conversation" : "* an empty conversation");
    if (passed > 0) {
        ebb_buf_adds(out, out->len ? "; " : "* ");
        ebb_humanize_count(out, passed);
        ebb_buf_adds(out, " earlier messages: PgUp");
    }
}

static region plan_region(ebb_app *a, const ebb_flow *f, int rows, int cols, bool is_end)
{
    region r = { .cols = cols };
    int most = rows / 3 > 1 ? rows / 3 : 1, left;

    if (is_end)
        return r;
    r.editor = (int)ebb_editor_layout(&a->editor, cols - 2);
    if (r.editor > most)
        r.editor = most;
    r.status = rows >= STATUS_FROM;
    r.queue = rows < 6 ? 0 : ebb_app_queue_rows(a);
    r.menu = ebb_menu_rows(&a->menu);
    left = rows - r.editor - r.status - r.queue;
    if (r.menu > left)
        r.menu = left > 0 ? left : 0;
    left -= r.menu;
    r.tail = left <= 0 ? 0 : f->n_tail < (size_t)left ? (int)f->n_tail : left;
    a->view.height = rows > 4 ? rows - 3 : 1;    /* a page, should one look back */
    return r;
}

static void draw_inline_status(ebb_app *a, int row, int cols)
{
    ebb_buf line = { 0 };
    int col = 2;                                 /* below what is typed */

    ebb_app_status_message(a, &line);
    if (line.len > 0)
        col = ebb_term_put_cut(a->term, row, col, cols, ebb_buf_text(&line), line.len, EBB_FACE_NOTICE) + 2;
    ebb_buf_clear(&line);
    if (a->layout != EBB_LAYOUT_OFF && col < cols - 1)
        ebb_panel_brief(&line, &a->figures, a->term->ascii, cols - col - 1);
    ebb_term_put(a->term, row, col, cols, ebb_buf_text(&line), line.len, EBB_FACE_LABEL);
    ebb_buf_fini(&line);
}

static void draw_inline_frame(ebb_app *a, const region *r, const ebb_flow *f, const ebb_buf *notice, int above)
{
    int row = 0, caret_row, caret_col;

    a->term->ops->clear(a->term);
    if (r->notice) {
        ebb_term_put(a->term, row, 0, r->cols, ebb_buf_text(notice), notice->len, EBB_FACE_NOTICE);
        row += r->notice;
    }
    ebb_transcript_flow_draw(&a->view, a->term, f, row, (size_t)r->tail);
    row = above + r->tail;
    if (r->greeting)
        row += ebb_app_draw_greeting(a, row, r->greeting, r->cols) + 1;
    caret_row = row;
    caret_col = 0;
    if (r->editor)
        ebb_app_draw_prompt(a, row, r->editor, r->cols, &caret_row, &caret_col);
    row += r->editor;
    ebb_menu_draw(&a->menu, a->term, row, r->menu, r->cols);
    row += r->menu;
    ebb_app_draw_queue(a, row, r->queue, r->cols);
    if (r->status)
        draw_inline_status(a, row + r->queue, r->cols);
    if (caret_col >= r->cols)
        caret_col = r->cols - 1;
    a->term->ops->flush(a->term, caret_row, caret_col);
}

/* True: there are more rows for the scrollback. */
static bool hand_out_step(ebb_app *a, bool is_end)
{
    ebb_buf notice = { 0 };
    int rows, cols, above;
    ebb_flow f;
    region r;

    a->term->ops->size(a->term, &rows, &cols);
    add_notice(a, &notice, rows, cols);
    f = ebb_transcript_flow(&a->view, cols < EBB_TEXT_COLUMNS ? cols : EBB_TEXT_COLUMNS, is_end);
    r = plan_region(a, &f, rows, cols, is_end);
    r.notice = notice.len > 0 ? 2 : 0;
    if (ebb_app_greets(a) && !is_end && rows >= 8) {
        r.greeting = ebb_app_greeting_rows(a, cols);
        if (r.greeting > rows - 4 - r.menu)
            r.greeting = rows > 4 + r.menu ? rows - 4 - r.menu : 0;
    }
    above = (int)f.n_fixed + r.notice;
    a->term->ops->begin(a->term, above, r.tail + (r.greeting ? r.greeting + 1 : 0) + r.editor + r.menu + r.queue +
                        r.status + is_end);
    draw_inline_frame(a, &r, &f, &notice, above);
    ebb_transcript_flow_commit(&a->view, &f);
    ebb_buf_fini(&notice);
    return f.n_fixed > 0;
}

void ebb_app_inline_frame(ebb_app *a, bool is_end)
{
    if (is_end && a->is_fullscreen)
        a->term->ops->fullscreen(a->term, false);
    a->is_fullscreen = a->is_fullscreen && !is_end;
    while (hand_out_step(a, is_end))
        ;
}
