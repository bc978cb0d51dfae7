/* How full the context is. */
#include "panel/panel.h"

#include "text/humanize.h"

static double share_of(const ebb_stats *s)
{
    return (double)s->n_ctx_used / (double)s->n_ctx;
}

/* The server's figures; what it does not say is not known, and what it has not counted yet is about (~). */
static void draw_remote(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = &f->stats;
    ebb_buf value = { 0 };

    ebb_buf_adds(&value, f->remote.is_about && s->n_ctx_used ? "~" : "");
    ebb_humanize_count(&value, s->n_ctx_used);
    if (s->n_ctx) {
        ebb_buf_addc(&value, '/');
        ebb_humanize_count(&value, s->n_ctx);
        ebb_buf_addf(&value, " tok %2.0f%%", share_of(s) * 100);
    } else {
        ebb_buf_adds(&value, " tok of unknown");
    }
    ebb_canvas_line(c, "context", ebb_buf_text(&value));
    if (s->n_ctx)
        ebb_canvas_bar(c, share_of(s), share_of(s) > 0.8 ? EBB_FACE_METER_HIGH : EBB_FACE_METER);
    ebb_buf_fini(&value);
    ebb_canvas_gap(c);
}

static void draw_context_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = &f->stats;
    ebb_buf value = { 0 };

    if (f->is_remote && f->model) {
        draw_remote(c, f);
        return;
    }
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
    ebb_buf_adds(out, f->is_remote && f->remote.is_about && f->stats.n_ctx_used ? "ctx ~" : "ctx ");
    ebb_humanize_count(out, f->stats.n_ctx_used);
    ebb_buf_addc(out, '/');
    ebb_humanize_count(out, f->stats.n_ctx);
    ebb_buf_addf(out, " %.0f%%", share_of(&f->stats) * 100);
}

const ebb_gauge ebb_gauge_context = { "context", draw_context_gauge, add_context_brief };
