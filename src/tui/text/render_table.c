/* Tables (render_table.h). */
#include "text/render_table.h"

#include <md4c.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "term/hyperlink.h"
#include "term/width.h"
#include "text/wrap_visible.h"

enum { COLUMNS_MAX = 64 };

void ebb_table_fini(ebb_table *t)
{
    ebb_buf_fini(&t->text);
    ebb_buf_fini(&t->addresses);
    free(t->runs);
    free(t->cells);
    free(t->links);
    memset(t, 0, sizeof *t);
}

void ebb_table_begin_cell(ebb_table *t, uint8_t align)
{
    ebb_table_cell *cells = ebb_grow(t->cells, t->n_cells, &t->cap_cells, sizeof *cells);

    t->is_open = cells != NULL;
    t->failed = t->failed || !cells;
    if (!cells)
        return;
    t->cells = cells;
    t->cells[t->n_cells++] = (ebb_table_cell){ t->text.len, t->text.len, t->n_runs, t->n_links, align };
}

void ebb_table_add(ebb_table *t, const char *s, size_t n, ebb_face face, bool ascii)
{
    ebb_face_run *runs = ebb_grow(t->runs, t->n_runs, &t->cap_runs, sizeof *runs);

    t->failed = t->failed || !runs;
    if (runs)
        t->runs = runs;
    if (t->failed)
        return;
    t->runs[t->n_runs++] = (ebb_face_run){ (uint32_t)t->text.len, (uint8_t)face };
    ebb_utf8_add_visible(&t->text, s, n, ascii);
}

void ebb_table_add_link(ebb_table *t, size_t start, const char *address, size_t n)
{
    ebb_table_link *links = ebb_grow(t->links, t->n_links, &t->cap_links, sizeof *links);
    size_t at = t->addresses.len;

    t->failed = t->failed || !links;
    if (links)
        t->links = links;
    if (!t->failed && n <= EBB_HYPERLINK_BYTES && ebb_buf_add(&t->addresses, address, n))
        t->links[t->n_links++] = (ebb_table_link){ start, t->text.len, at, n };
}

void ebb_table_end_cell(ebb_table *t)
{
    if (t->is_open)
        t->cells[t->n_cells - 1].end = t->text.len;
    t->is_open = false;
}

size_t ebb_table_bytes(const ebb_table *t)
{
    return t->text.len + t->addresses.len + t->n_runs * sizeof *t->runs + t->n_cells * sizeof *t->cells +
           t->n_links * sizeof *t->links;
}

static int cell_width(const ebb_table *t, const ebb_table_cell *c)
{
    return ebb_width_text(ebb_buf_text(&t->text) + c->start, c->end - c->start);
}

static void add_blanks(ebb_wrap *w, int n)
{
    for (; n > 0; n--)
        ebb_wrap_add(w, " ", 1, EBB_FACE_MARKUP);
}

/* Behind the cell's text, which begins at `start` of the visible one. */
static void add_cell_links(const ebb_table *t, ebb_wrap *w, const ebb_table_cell *c, size_t start)
{
    for (const ebb_table_link *l = t->links + c->link; l < t->links + t->n_links && l->start < c->end; l++)
        ebb_wrap_add_link(w, start + l->start - c->start, start + l->end - c->start,
                          t->addresses.data + l->address, l->n_address);
}

static void add_cell(const ebb_table *t, ebb_wrap *w, const ebb_table_cell *c, bool is_header)
{
    for (size_t i = c->run; i < t->n_runs && t->runs[i].start < c->end; i++) {
        size_t end = i + 1 < t->n_runs && t->runs[i + 1].start < c->end ? t->runs[i + 1].start : c->end;
        ebb_face face = (ebb_face)t->runs[i].face;
        ebb_wrap_add(w, t->text.data + t->runs[i].start, end - t->runs[i].start,
                     is_header && face == w->md.base ? EBB_FACE_BOLD : face);
    }
}

static void add_grid_row(const ebb_table *t, ebb_wrap *w, size_t first, const int *widths)
{
    const char *bar = w->plain_glyphs ? " | " : " \u2502 ";

    for (size_t k = 0; k < t->n_columns && first + k < t->n_cells; k++) {
        const ebb_table_cell *c = &t->cells[first + k];
        int blanks = widths[k] - cell_width(t, c);
        int before = c->align == MD_ALIGN_RIGHT ? blanks : c->align == MD_ALIGN_CENTER ? blanks / 2 : 0;
        if (k > 0)
            ebb_wrap_add(w, bar, strlen(bar), EBB_FACE_MARKUP);
        add_blanks(w, before);
        size_t start = w->visible.len;
        add_cell(t, w, c, first == 0);
        add_cell_links(t, w, c, start);
        if (k + 1 < t->n_columns)
            add_blanks(w, blanks - before);
    }
}

static void add_table_rule(const ebb_table *t, ebb_wrap *w, const int *widths)
{
    const char *line = w->plain_glyphs ? "-" : "\u2500", *cross = w->plain_glyphs ? "-+-" : "\u2500\u253C\u2500";

    for (size_t k = 0; k < t->n_columns; k++) {
        if (k > 0)
            ebb_wrap_add(w, cross, strlen(cross), EBB_FACE_MARKUP);
        for (int i = 0; i < widths[k]; i++)
            ebb_wrap_add(w, line, strlen(line), EBB_FACE_MARKUP);
    }
}

static void draw_grid(const ebb_table *t, ebb_wrap *w, const int *widths, ebb_table_line_fn *begin_line, void *arg)
{
    for (size_t i = 0; i < t->n_cells && begin_line(arg, 0); i += t->n_columns) {
        add_grid_row(t, w, i, widths);
        if (i == 0 && begin_line(arg, 0))
            add_table_rule(t, w, widths);
    }
}

/* A line per cell, "header: cell"; a header alone is a line of its own.  A header comes with every row, its links with
 * none: addresses are long. */
static void draw_records(const ebb_table *t, ebb_wrap *w, ebb_table_line_fn *begin_line, void *arg)
{
    bool has_body = t->n_cells > t->n_columns;

    for (size_t i = has_body ? t->n_columns : 0; i < t->n_cells && begin_line(arg, 4); i++) {
        size_t k = i % t->n_columns;
        add_blanks(w, k > 0 ? 2 : 0);
        add_cell(t, w, &t->cells[k], true);
        if (has_body) {
            ebb_wrap_add(w, ": ", 2, EBB_FACE_MARKUP);
            size_t start = w->visible.len;
            add_cell(t, w, &t->cells[i], false);
            add_cell_links(t, w, &t->cells[i], start);
        }
    }
}

void ebb_table_draw(const ebb_table *t, ebb_wrap *w, int width, ebb_table_line_fn *begin_line, void *arg)
{
    int widths[COLUMNS_MAX] = { 0 }, total = 0;

    if (t->n_columns == 0 || t->failed)
        return;
    for (size_t i = 0; i < t->n_cells && t->n_columns <= COLUMNS_MAX; i++) {
        int cell = cell_width(t, &t->cells[i]);
        if (cell > widths[i % t->n_columns])
            widths[i % t->n_columns] = cell;
    }
    for (size_t k = 0; k < t->n_columns && k < COLUMNS_MAX; k++)
        total += widths[k] + (k > 0 ? 3 : 0);
    if (t->n_columns <= COLUMNS_MAX && (width <= 0 || total <= width))
        draw_grid(t, w, widths, begin_line, arg);
    else
        draw_records(t, w, begin_line, arg);
}
