/* A terminal in memory (term_mem.h). */
#include "term_mem.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell {
    char    text[28];
    uint8_t width;               /* 0: the right half of a wide one */
    uint8_t face;
} cell;

typedef struct term_mem {
    ebb_term  base;
    int       rows, cols;
    cell     *next, *shown;      /* [rows * cols] */
    int       cursor_row, cursor_col;
    ebb_keys  keys;
    bool      was_resized;
    size_t    n_changes;
    ebb_buf   screen, sent;
} term_mem;

static const cell blank = { " ", 1, EBB_FACE_TEXT };

static void mem_close(ebb_term *t)
{
    term_mem *m = (term_mem *)t;

    free(m->next);
    free(m->shown);
    ebb_keys_fini(&m->keys);
    ebb_buf_fini(&m->screen);
    ebb_buf_fini(&m->sent);
    free(m);
}

static void mem_size(ebb_term *t, int *rows, int *cols)
{
    *rows = ((term_mem *)t)->rows;
    *cols = ((term_mem *)t)->cols;
}

static void blank_all(cell *cells, int n)
{
    for (int i = 0; i < n; i++)
        cells[i] = blank;
}

static void mem_clear(ebb_term *t)
{
    term_mem *m = (term_mem *)t;

    blank_all(m->next, m->rows * m->cols);
}

static void mem_cell(ebb_term *t, int row, int col, const char *text, int width, ebb_face face)
{
    term_mem *m = (term_mem *)t;
    cell *c = m->next + row * m->cols + col;

    if (row < 0 || row >= m->rows || col < 0 || col + width > m->cols)
        return;
    strncpy(c->text, text, sizeof c->text - 1);
    c->text[sizeof c->text - 1] = '\0';
    c->width = (uint8_t)width;
    c->face = (uint8_t)face;
    if (width == 2)
        c[1] = (cell){ "", 0, (uint8_t)face };
}

static void mem_flush(ebb_term *t, int cursor_row, int cursor_col)
{
    term_mem *m = (term_mem *)t;

    for (int i = 0; i < m->rows * m->cols; i++)
        if (memcmp(&m->next[i].width, &m->shown[i].width, 2) != 0 ||
            strcmp(m->next[i].text, m->shown[i].text) != 0) {
            m->shown[i] = m->next[i];
            m->n_changes++;
        }
    m->cursor_row = cursor_row;
    m->cursor_col = cursor_col;
}

static void mem_repaint(ebb_term *t)
{
    term_mem *m = (term_mem *)t;

    blank_all(m->shown, m->rows * m->cols);
}

static void mem_theme(ebb_term *t, const ebb_theme *theme)
{
    (void)t;
    (void)theme;
}

static void mem_suspend(ebb_term *t)
{
    mem_repaint(t);
}

static void mem_outside(ebb_term *t, bool (*fn)(ebb_term *t, void *arg), void *arg)
{
    fn(t, arg);
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
    return ebb_keys_next(&m->keys, out) || ebb_keys_flush(&m->keys, out);
}

static void mem_send(ebb_term *t, const char *bytes, size_t n)
{
    ebb_buf_add(&((term_mem *)t)->sent, bytes, n);
}

static const ebb_term_ops mem_ops = {
    .close = mem_close, .size = mem_size, .clear = mem_clear, .cell = mem_cell, .flush = mem_flush,
    .repaint = mem_repaint, .theme = mem_theme, .suspend = mem_suspend, .outside = mem_outside, .fds = mem_fds,
    .timeout_ms = mem_timeout, .input = mem_input, .send = mem_send,
};

static bool allocate(term_mem *m, int rows, int cols)
{
    cell *next = malloc((size_t)rows * (size_t)cols * sizeof *next);
    cell *shown = malloc((size_t)rows * (size_t)cols * sizeof *shown);

    if (!next || !shown) {
        free(next);
        free(shown);
        return false;
    }
    free(m->next);
    free(m->shown);
    m->next = next;
    m->shown = shown;
    m->rows = rows;
    m->cols = cols;
    blank_all(next, rows * cols);
    blank_all(shown, rows * cols);
    return true;
}

ebb_term *ebb_term_mem(int rows, int cols)
{
    term_mem *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->base = (ebb_term){ .ops = &mem_ops, .ascii = true, .utf8 = true };
    if (!allocate(m, rows, cols)) {
        free(m);
        return NULL;
    }
    return &m->base;
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
    for (int row = 0; row < m->rows; row++) {
        size_t keep = m->screen.len;
        for (int col = 0; col < m->cols; col++) {
            const cell *c = m->shown + row * m->cols + col;
            ebb_buf_adds(&m->screen, c->text);
            if (strcmp(c->text, " ") != 0 && c->width)
                keep = m->screen.len;
        }
        ebb_buf_remove(&m->screen, keep, m->screen.len - keep);
        ebb_buf_addc(&m->screen, '\n');
    }
    return m->screen.failed ? NULL : m->screen.data;
}

ebb_face ebb_term_mem_face(const ebb_term *t, int row, int col)
{
    const term_mem *m = (const term_mem *)t;

    return (ebb_face)m->shown[row * m->cols + col].face;
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
