/* How full the context is. */
#include "panel/panel.h"

#include "text/humanize.h"

static double share_of(const ebb_stats *s)
{
    return (double)s->n_ctx_used / (double)s->n_ctx;
}

static void draw_context_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = &f->stats;
    ebb_buf value = { 0 };

    if (s->n_ctx == 0)
        return;
    ebb_humanize_count(&value, s->n_ctx_used);
    ebb_buf_addc(&value, '/');
    ebb_humanize_count(&value, s->n_ctx);
    ebb_buf_addf(&value, " tok %2.0f%%", share_of(s) * 100);
    ebb_canvas_line(c, "context", ebb_buf_text(&value));
    ebb_canvas_bar(c, share_of(s), share_of(s) > 0.8 ? EBB_FACE_METER_HIGH : EBB_FACE_METER);
    ebb_buf_fini(&value);
    ebb_canvas_gap(c);
}

static void add_context_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    (void)ascii;
    if (f->stats.n_ctx == 0)
        return;
    ebb_buf_adds(out, "ctx ");
    ebb_humanize_count(out, f->stats.n_ctx_used);
    ebb_buf_addc(out, '/');
    ebb_humanize_count(out, f->stats.n_ctx);
    ebb_buf_addf(out, " %.0f%%", share_of(&f->stats) * 100);
}

const ebb_gauge ebb_gauge_context = { "context", draw_context_gauge, add_context_brief };
