/* Cells in memory (grid.h). */
#include "term/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const ebb_cell blank = { " ", 1, EBB_FACE_TEXT, 0 };

void ebb_grid_fini(ebb_grid *g)
{
    free(g->cells);
    memset(g, 0, sizeof *g);
}

void ebb_grid_blank(ebb_grid *g)
{
    for (size_t i = 0; i < (size_t)g->rows * (size_t)g->cols; i++)
        g->cells[i] = blank;
}

bool ebb_grid_resize(ebb_grid *g, int rows, int cols)
{
    size_t n = (size_t)rows * (size_t)cols;

    if (n > g->cap) {
        ebb_cell *cells = malloc(n * sizeof *cells);
        if (!cells)
            return false;
        free(g->cells);
        g->cells = cells;
        g->cap = n;
    }
    g->rows = rows;
    g->cols = cols;
    ebb_grid_blank(g);
    return true;
}

ebb_cell *ebb_grid_at(const ebb_grid *g, int row, int col)
{
    return g->cells + (size_t)row * (size_t)g->cols + col;
}

/* As much of the text as a cell holds, whole characters. */
static void set_text(ebb_cell *c, const char *text)
{
    size_t n = ebb_utf8_cut(text, strlen(text), sizeof c->text - 1);

    memcpy(c->text, text, n);
    c->text[n] = '\0';
}

void ebb_grid_put(ebb_grid *g, int row, int col, const char *text, int width, ebb_face face, uint32_t link)
{
    ebb_cell *c;

    if (row < 0 || row >= g->rows || col < 0 || col + width > g->cols)
        return;
    c = ebb_grid_at(g, row, col);
    set_text(c, text);
    c->width = (uint8_t)width;
    c->face = (uint8_t)face;
    c->link = link;
    if (width == 2)
        c[1] = (ebb_cell){ "", 0, (uint8_t)face, link };
}

bool ebb_cell_equal(const ebb_cell *a, const ebb_cell *b)
{
    return a->width == b->width && a->face == b->face && a->link == b->link && strcmp(a->text, b->text) == 0;
}

bool ebb_cell_is_blank(const ebb_cell *c)
{
    return ebb_cell_equal(c, &blank);
}
