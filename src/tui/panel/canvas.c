/* Drawing primitives of the gauges (canvas.h). */
#include "panel/canvas.h"

#include <string.h>

#include "base/utf8.h"
#include "term/width.h"

bool ebb_canvas_text(ebb_canvas *c, const char *text, ebb_face face)
{
    ebb_buf visible = { 0 };

    if (c->row >= c->end)
        return false;
    ebb_utf8_add_line(&visible, text, strlen(text), !c->term->utf8);
    ebb_term_put_cut(c->term, c->row++, c->col, c->limit, ebb_buf_text(&visible), visible.len, face);
    ebb_buf_fini(&visible);
    return true;
}

bool ebb_canvas_line(ebb_canvas *c, const char *label, const char *value)
{
    int width = ebb_width_text(value, strlen(value));
    int col = c->limit - width;

    if (!ebb_canvas_text(c, label, EBB_FACE_LABEL))
        return false;
    if (col <= c->col + (int)strlen(label))
        col = c->col + (int)strlen(label) + 1;
    ebb_term_puts(c->term, c->row - 1, col, c->limit, value, EBB_FACE_VALUE);
    return true;
}

static int filled_cells(double share, int cells)
{
    int n = (int)(share * cells + 0.5);

    if (share > 0 && n == 0)
        n = 1;
    return n < 0 ? 0 : n > cells ? cells : n;
}

void ebb_canvas_bar(ebb_canvas *c, double share, ebb_face face)
{
    int cells = c->limit - c->col, full = filled_cells(share, cells);

    if (c->row >= c->end)
        return;
    for (int i = 0; i < cells; i++)
        ebb_term_puts(c->term, c->row, c->col + i, c->limit,
                      c->term->ascii ? (i < full ? "#" : "-") : (i < full ? "\u2588" : "\u2591"),
                      i < full ? face : EBB_FACE_METER_EMPTY);
    c->row++;
}

void ebb_canvas_gap(ebb_canvas *c)
{
    c->row++;
}

void ebb_canvas_bar_text(ebb_buf *out, double share, bool ascii)
{
    enum { CELLS = 10 };
    int full = filled_cells(share, CELLS);

    if (ascii)
        ebb_buf_addc(out, '[');
    for (int i = 0; i < CELLS; i++)
        ebb_buf_adds(out, ascii ? (i < full ? "#" : "-") : (i < full ? "\u2588" : "\u2591"));
    if (ascii)
        ebb_buf_addc(out, ']');
}
