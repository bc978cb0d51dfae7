/* The gauges in a column or a line (panel.h). */
#include "panel/panel.h"

#include "term/width.h"

/* In the order in which they are shown.  If not all fit into a line, those with the
 * lower `rank` stay. */
static const struct row { const ebb_gauge *gauge; int rank; } table[] = {
    { &ebb_gauge_model, 3 },   { &ebb_gauge_progress, 0 }, { &ebb_gauge_speed, 1 }, { &ebb_gauge_context, 2 },
    { &ebb_gauge_engine, 4 }, { &ebb_gauge_memory, 4 },  { &ebb_gauge_layers, 6 },   { &ebb_gauge_disk, 5 },
    { &ebb_gauge_decision, 7 }, { &ebb_gauge_pull, 2 },
    { &ebb_gauge_form, 3 },
};
enum { N_GAUGES = sizeof table / sizeof *table };

void ebb_panel_draw(ebb_canvas *c, const ebb_figures *f)
{
    for (int i = 0; i < N_GAUGES && c->row < c->end; i++)
        table[i].gauge->draw(c, f);
}

void ebb_panel_live(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    ebb_buf speed = { 0 };

    ebb_gauge_progress.brief(out, f, ascii);
    if (f->model && f->stats.phase == EBB_PHASE_DECODE)
        ebb_gauge_speed.brief(&speed, f, ascii);
    if (speed.len > 0)
        ebb_buf_addf(out, "%s%s", out->len > 0 ? ascii ? " | " : " \u00B7 " : "", ebb_buf_text(&speed));
    if (f->is_pulling && out->len > 0)
        ebb_buf_adds(out, ascii ? " | " : " \u00B7 ");
    ebb_gauge_pull.brief(out, f, ascii);
    ebb_buf_fini(&speed);
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
            int cols = ebb_width_text(ebb_buf_text(&words[i]), words[i].len) + (used ? 3 : 0);
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
