/* The last memory event as a line, of this engine or, with a remote one, of its server. */
#include "panel/panel.h"

#include <string.h>

#include "text/wrap.h"

static void draw_decision_gauge(ebb_canvas *c, const ebb_figures *f)
{
    ebb_wrap w = { .ascii = !c->term->utf8, .md = { .base = EBB_FACE_DIM } };
    char line[EBB_MEMORY_EVENT_TEXT];

    if (f->is_remote)
        memcpy(line, f->remote.server.decision, sizeof line);
    else
        ebb_memory_event_text(&f->stats.memory_event, line, sizeof line);
    if (line[0] == '\0')
        return;
    ebb_wrap_text(&w, line, strlen(line), true);
    ebb_wrap_rows(&w, c->limit - c->col);
    for (size_t i = 0; i < w.n_rows && c->row < c->end; i++)
        ebb_term_put(c->term, c->row++, c->col, c->limit, w.visible.data + w.rows[i].start,
                     w.rows[i].end - w.rows[i].start, EBB_FACE_DIM);
    ebb_wrap_fini(&w);
    ebb_canvas_gap(c);
}

const ebb_gauge ebb_gauge_decision = { "decision", draw_decision_gauge, NULL };
