/* A terminal in memory (term_mem.h). */
#include "tui/term_mem.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "term/grid.h"

typedef struct term_mem {
    ebb_term  base;
    int       rows, cols;
    int       above;             /* inline: rows of the frame that scroll away */
    int       most_rows;
    bool      is_inline, is_fullscreen;
    ebb_grid  next, shown;
    int       cursor_row, cursor_col;
    ebb_keys  keys;
    bool      was_resized, is_lent, keeps_keys;
    size_t    n_changes;
    ebb_buf   screen, sent, scrolled;
} term_mem;

static void mem_close(ebb_term *t)
{
    term_mem *m = (term_mem *)t;

    ebb_grid_fini(&m->next);
    ebb_grid_fini(&m->shown);
    ebb_keys_fini(&m->keys);
    ebb_buf_fini(&m->screen);
    ebb_buf_fini(&m->sent);
    ebb_buf_fini(&m->scrolled);
    free(m);
}

static void mem_size(ebb_term *t, int *rows, int *cols)
{
    *rows = ((term_mem *)t)->rows;
    *cols = ((term_mem *)t)->cols;
}

static void mem_clear(ebb_term *t)
{
    ebb_grid_blank(&((term_mem *)t)->next);
}

static void mem_begin(ebb_term *t, int above, int rows)
{
    term_mem *m = (term_mem *)t;

    if (ebb_grid_resize(&m->next, above + rows, m->cols))
        m->above = above;
    m->most_rows = above + rows > m->most_rows ? above + rows : m->most_rows;
}

static void mem_fullscreen(ebb_term *t, bool is_fullscreen)
{
    term_mem *m = (term_mem *)t;

    m->is_fullscreen = m->keys.has_wheel = is_fullscreen;
    m->above = 0;
    if (is_fullscreen && ebb_grid_resize(&m->next, m->rows, m->cols))
        ebb_grid_resize(&m->shown, m->rows, m->cols);
}

static void mem_cell(ebb_term *t, int row, int col, const char *text, int width, ebb_face face)
{
    ebb_grid_put(&((term_mem *)t)->next, row, col, text, width, face, t->link);
}

static void add_row(ebb_buf *out, const ebb_grid *g, int row)
{
    size_t keep = out->len;

    for (int col = 0; col < g->cols; col++) {
        const ebb_cell *c = ebb_grid_at(g, row, col);
        ebb_buf_adds(out, c->text);
        if (strcmp(c->text, " ") != 0 && c->width)
            keep = out->len;
    }
    ebb_buf_remove(out, keep, out->len - keep);
    ebb_buf_addc(out, '\n');
}

static void mem_flush(ebb_term *t, int cursor_row, int cursor_col)
{
    term_mem *m = (term_mem *)t;
    int rows = m->next.rows - m->above;

    for (int row = 0; row < m->above; row++)
        add_row(&m->scrolled, &m->next, row);
    if (rows != m->shown.rows && !ebb_grid_resize(&m->shown, rows, m->cols))
        return;
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < m->cols; col++) {
            const ebb_cell *from = ebb_grid_at(&m->next, row + m->above, col);
            ebb_cell *to = ebb_grid_at(&m->shown, row, col);
            m->n_changes += !ebb_cell_equal(from, to);
            *to = *from;
        }
    m->cursor_row = cursor_row - m->above;
    m->cursor_col = cursor_col;
}

static void mem_repaint(ebb_term *t)
{
    ebb_grid_blank(&((term_mem *)t)->shown);
}

static void mem_theme(ebb_term *t, const ebb_theme *theme)
{
    (void)t;
    (void)theme;
}

static bool mem_suspend(ebb_term *t)
{
    mem_repaint(t);
    return true;
}

static void mem_lend(ebb_term *t, bool keeps_keys)
{
    term_mem *m = (term_mem *)t;

    m->is_lent = true;
    m->keeps_keys = keeps_keys;
}

static void mem_take_back(ebb_term *t)
{
    ((term_mem *)t)->is_lent = false;
    mem_repaint(t);
}

static int mem_fds(ebb_term *t, struct pollfd *out, int cap)
{
    (void)t;
    (void)out;
    (void)cap;
    return 0;
}

static int mem_timeout(ebb_term *t)
{
    return ebb_keys_is_waiting(&((term_mem *)t)->keys) ? 0 : -1;
}

static bool mem_input(ebb_term *t, ebb_input *out)
{
    term_mem *m = (term_mem *)t;

    if (m->was_resized) {
        m->was_resized = false;
        *out = (ebb_input){ .kind = EBB_INPUT_RESIZE };
        return true;
    }
    if (m->is_lent && !m->keeps_keys)
        return false;
    return ebb_keys_next(&m->keys, out) || ebb_keys_flush(&m->keys, out);
}

static bool mem_is_interrupted(ebb_term *t)
{
    return ebb_keys_take_interrupt(&((term_mem *)t)->keys);
}

static void mem_send(ebb_term *t, const char *bytes, size_t n)
{
    ebb_buf_add(&((term_mem *)t)->sent, bytes, n);
}

static const ebb_term_ops mem_ops = {
    .close = mem_close, .size = mem_size, .clear = mem_clear, .cell = mem_cell, .flush = mem_flush,
    .repaint = mem_repaint, .theme = mem_theme, .suspend = mem_suspend, .lend = mem_lend,
    .take_back = mem_take_back, .fds = mem_fds, .timeout_ms = mem_timeout, .input = mem_input, .send = mem_send,
    .is_interrupted = mem_is_interrupted,
};

static const ebb_term_ops inline_ops = {
    .close = mem_close, .size = mem_size, .clear = mem_clear, .begin = mem_begin, .fullscreen = mem_fullscreen,
    .cell = mem_cell, .flush = mem_flush,
    .repaint = mem_repaint, .theme = mem_theme, .suspend = mem_suspend, .lend = mem_lend,
    .take_back = mem_take_back, .fds = mem_fds, .timeout_ms = mem_timeout, .input = mem_input, .send = mem_send,
    .is_interrupted = mem_is_interrupted,
};

static bool allocate(term_mem *m, int rows, int cols)
{
    if (!ebb_grid_resize(&m->next, rows, cols) || !ebb_grid_resize(&m->shown, rows, cols))
        return false;
    m->above = 0;
    m->rows = rows;
    m->cols = cols;
    return true;
}

static ebb_term *new_term(int rows, int cols, const ebb_term_ops *ops)
{
    term_mem *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->base = (ebb_term){ .ops = ops, .ascii = true, .utf8 = true };
    m->keys.has_wheel = !ops->fullscreen;
    if (!allocate(m, rows, cols)) {
        mem_close(&m->base);
        return NULL;
    }
    return &m->base;
}

ebb_term *ebb_term_mem(int rows, int cols)
{
    return new_term(rows, cols, &mem_ops);
}

ebb_term *ebb_term_mem_inline(int rows, int cols)
{
    return new_term(rows, cols, &inline_ops);
}

const char *ebb_term_mem_scrolled(ebb_term *t)
{
    return ebb_buf_text(&((term_mem *)t)->scrolled);
}

int ebb_term_mem_most_rows(const ebb_term *t)
{
    return ((const term_mem *)t)->most_rows;
}

void ebb_term_mem_feed(ebb_term *t, const char *bytes, size_t n)
{
    ebb_keys_feed(&((term_mem *)t)->keys, bytes, n);
}

void ebb_term_mem_resize(ebb_term *t, int rows, int cols)
{
    term_mem *m = (term_mem *)t;

    m->was_resized = allocate(m, rows, cols);
}

const char *ebb_term_mem_screen(ebb_term *t)
{
    term_mem *m = (term_mem *)t;

    ebb_buf_clear(&m->screen);
    for (int row = 0; row < m->shown.rows; row++)
        add_row(&m->screen, &m->shown, row);
    return m->screen.failed ? NULL : m->screen.data;
}

const char *ebb_term_mem_cell(const ebb_term *t, int row, int col)
{
    return ebb_grid_at(&((const term_mem *)t)->shown, row, col)->text;
}

ebb_face ebb_term_mem_face(const ebb_term *t, int row, int col)
{
    return (ebb_face)ebb_grid_at(&((const term_mem *)t)->shown, row, col)->face;
}

void ebb_term_mem_cursor(const ebb_term *t, int *row, int *col)
{
    *row = ((const term_mem *)t)->cursor_row;
    *col = ((const term_mem *)t)->cursor_col;
}

size_t ebb_term_mem_changes(const ebb_term *t)
{
    return ((const term_mem *)t)->n_changes;
}

const ebb_buf *ebb_term_mem_sent(const ebb_term *t)
{
    return &((const term_mem *)t)->sent;
}
