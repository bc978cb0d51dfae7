/* Addresses over a screen of curses (overlay.h). */
#include "term/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define SAVE_CURSOR    "\0337"   /* DECSC and DECRC: with the look, too */
#define RESTORE_CURSOR "\0338"

void ebb_overlay_fini(ebb_curses_links *o)
{
    free(o->cells);
    memset(o, 0, sizeof *o);
}

void ebb_overlay_forget(ebb_curses_links *o)
{
    memset(o->shown, 0, sizeof o->shown);
}

/* What is put over a cell takes its address away. */
static void cover(ebb_curses_links *o, int row, int col)
{
    for (size_t i = o->n_cells; i-- > 0;)
        if (o->cells[i].row == row && o->cells[i].col == col)
            o->cells[i].cell.link = 0;
}

void ebb_overlay_cell_add(ebb_curses_links *o, int row, int col, const char *text, int width, ebb_face face,
                          uint32_t link)
{
    ebb_overlay_cell *cells;
    ebb_grid one;
    uint32_t h;

    if (row < 0 || row >= EBB_OVERLAY_ROWS)
        return;
    if (col < o->end[row])
        cover(o, row, col);
    h = o->next[row] ? o->next[row] : 2166136261u;
    for (const char *s = text; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    h = (h ^ (uint32_t)col ^ (uint32_t)face << 16) * 16777619u;
    o->next[row] = ((h ^ link) * 16777619u) | 1;
    if (!link || o->n_cells >= EBB_OVERLAY_CELLS)
        return;
    cells = ebb_grow(o->cells, o->n_cells, &o->cap_cells, sizeof *cells);
    if (!cells)
        return;
    o->cells = cells;
    one = (ebb_grid){ .rows = 1, .cols = 2, .cells = (ebb_cell[2]){ { .width = 0 } } };
    ebb_grid_put(&one, 0, 0, text, width, face, link);
    o->cells[o->n_cells++] = (ebb_overlay_cell){ row, col, one.cells[0] };
    o->end[row] = col + width > o->end[row] ? col + width : o->end[row];
}

/* A run of cells of one row, one address and one face. */
static size_t draw_run(const ebb_curses_links *o, size_t i, const ebb_hyperlinks *links, const ebb_buf *sgr,
                       ebb_buf *out)
{
    const ebb_overlay_cell *first = &o->cells[i];
    int col = first->col;

    ebb_buf_addf(out, "\033[%d;%dH", first->row + 1, first->col + 1);
    ebb_buf_add(out, ebb_buf_text(&sgr[first->cell.face]), sgr[first->cell.face].len);
    ebb_hyperlink_switch(links, first->cell.link, out);
    for (; i < o->n_cells; i++) {
        const ebb_overlay_cell *c = &o->cells[i];
        if (c->row != first->row || c->col != col || c->cell.link != first->cell.link ||
            c->cell.face != first->cell.face)
            break;
        ebb_buf_adds(out, c->cell.text);
        col += c->cell.width;
    }
    ebb_hyperlink_switch(links, 0, out);
    return i;
}

void ebb_overlay_draw(ebb_curses_links *o, const ebb_hyperlinks *links, const ebb_buf *sgr, bool is_settling,
                      ebb_buf *out)
{
    for (size_t i = 0; i < o->n_cells;) {
        int row = o->cells[i].row;
        bool is_old = o->shown[row] == o->next[row];

        if (is_old || is_settling || o->cells[i].cell.link == 0) {
            i++;
            continue;
        }
        if (out->len == 0)
            ebb_buf_adds(out, SAVE_CURSOR);
        i = draw_run(o, i, links, sgr, out);
    }
    if (out->len > 0)
        ebb_buf_adds(out, RESTORE_CURSOR);
    for (int row = 0; row < EBB_OVERLAY_ROWS; row++) {
        o->shown[row] = is_settling && o->shown[row] != o->next[row] ? 0 : o->next[row];
        o->next[row] = 0;
        o->end[row] = 0;
    }
    o->n_cells = 0;
}
