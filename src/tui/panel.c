/* The gauges in a column or a line (panel.h). */
#include "panel.h"

#include <string.h>

#include "base/utf8.h"
#include "width.h"

/* In the order in which they are shown.  Where a line has not room for all, the
 * lower `rank` stays. */
static const struct row { const ebb_gauge *gauge; int rank; } table[] = {
    { &ebb_gauge_model, 3 },   { &ebb_gauge_progress, 0 }, { &ebb_gauge_speed, 1 }, { &ebb_gauge_context, 2 },
    { &ebb_gauge_memory, 4 },  { &ebb_gauge_layers, 6 },   { &ebb_gauge_disk, 5 },  { &ebb_gauge_decision, 7 },
};
enum { N_GAUGES = sizeof table / sizeof *table };

void ebb_panel_draw(ebb_canvas *c, const ebb_figures *f)
{
    for (int i = 0; i < N_GAUGES && c->row < c->end; i++)
        table[i].gauge->draw(c, f);
}

void ebb_panel_brief(ebb_buf *out, const ebb_figures *f, bool ascii, int width)
{
    ebb_buf words[N_GAUGES] = { { 0 } };
    bool is_shown[N_GAUGES] = { false };
    int used = 0;

    for (int i = 0; i < N_GAUGES; i++)
        if (table[i].gauge->brief)
            table[i].gauge->brief(&words[i], f, ascii);
    for (int rank = 0; rank < N_GAUGES; rank++)
        for (int i = 0; i < N_GAUGES; i++) {
            int cols = ebb_width_text(ebb_buf_text(&words[i]), words[i].len, 0) + (used ? 3 : 0);
            if (table[i].rank != rank || words[i].len == 0 || used + cols > width)
                continue;
            is_shown[i] = true;
            used += cols;
        }
    for (int i = 0, n = 0; i < N_GAUGES; i++) {
        if (is_shown[i])
            ebb_buf_addf(out, "%s%s", n++ ? ascii ? " | " : " \u00B7 " : "", ebb_buf_text(&words[i]));
        ebb_buf_fini(&words[i]);
    }
}

/* -- For gauges -------------------------------------------------------------------------- */

bool ebb_canvas_text(ebb_canvas *c, const char *text, ebb_face face)
{
    ebb_buf visible = { 0 };

    if (c->row >= c->end)
        return false;
    ebb_utf8_add_visible(&visible, text, strlen(text), !c->term->utf8);
    ebb_term_put_cut(c->term, c->row++, c->col, c->limit, ebb_buf_text(&visible), visible.len, face);
    ebb_buf_fini(&visible);
    return true;
}

bool ebb_canvas_line(ebb_canvas *c, const char *label, const char *value)
{
    int width = ebb_width_text(value, strlen(value), 0);
    int col = c->limit - width;

    if (!ebb_canvas_text(c, label, EBB_FACE_LABEL))
        return false;
    if (col <= c->col + (int)strlen(label))
        col = c->col + (int)strlen(label) + 1;
    ebb_term_puts(c->term, c->row - 1, col, c->limit, value, EBB_FACE_VALUE);
    return true;
}

static int filled(double share, int cells)
{
    int n = (int)(share * cells + 0.5);

    if (share > 0 && n == 0)
        n = 1;
    return n < 0 ? 0 : n > cells ? cells : n;
}

void ebb_canvas_bar(ebb_canvas *c, double share, ebb_face face)
{
    int cells = c->limit - c->col, full = filled(share, cells);

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

void ebb_bar_text(ebb_buf *out, double share, int cells, bool ascii)
{
    int full = filled(share, cells);

    if (ascii)
        ebb_buf_addc(out, '[');
    for (int i = 0; i < cells; i++)
        ebb_buf_adds(out, ascii ? (i < full ? "#" : "-") : (i < full ? "\u2588" : "\u2591"));
    if (ascii)
        ebb_buf_addc(out, ']');
}
