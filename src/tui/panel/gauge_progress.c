/* The operation under way (loading, prefill, another process's answer): a bar and the time left. */
#include "panel/panel.h"

#include "text/humanize.h"

typedef struct progress {
    const char *what;
    double      share, left_s;   /* left_s < 0: not known */
    uint64_t    done, total;
    bool        is_share;        /* no amount is known, the share is */
} progress;

static bool find_progress(const ebb_figures *f, progress *p)
{
    const ebb_stats *s = &f->stats;

    *p = (progress){ .left_s = -1 };
    if (f->job) {
        *p = (progress){ .what = f->job, .left_s = -1, .is_share = true, .share = f->job_share };
        return true;
    }
    if (!f->model) {
        p->what = f->is_remote ? f->has_failed ? "not connected; Enter tries again" : "connecting"
                : f->has_failed ? "no model; /model FILE loads one" : "loading";
        p->done = f->load_done;
        p->total = f->load_total;
    } else if (s->phase == EBB_PHASE_PREFILL && s->prefill_total > 0) {
        p->what = "reading";
        p->done = s->prefill_done;
        p->total = s->prefill_total;
        if (s->prefill_tok_s > 0)
            p->left_s = (s->prefill_total - s->prefill_done) / s->prefill_tok_s;
    } else if (f->is_remote && f->remote.waits_s >= 0) {
        p->what = "waiting";
    } else {
        return false;
    }
    p->share = p->total > 0 ? (double)p->done / (double)p->total : 0;
    return true;
}

static void draw_progress_gauge(ebb_canvas *c, const ebb_figures *f)
{
    ebb_buf value = { 0 };
    progress p;

    if (f->writer) {
        ebb_buf_addf(&value, "process %ld", f->writer);
        ebb_canvas_line(c, "attached to", ebb_buf_text(&value));
        ebb_canvas_gap(c);
        ebb_buf_fini(&value);
        return;
    }
    if (!find_progress(f, &p))
        return;
    if (p.is_share) {
        ebb_buf_addf(&value, "%3.0f%%", p.share * 100);
    } else if (p.total == 0 && f->is_remote) {
        if (f->model)
            ebb_humanize_seconds(&value, f->remote.waits_s);
    } else if (p.total == 0) {
        ebb_buf_adds(&value, f->has_failed ? "" : "the model ...");
    } else if (!f->model) {
        ebb_humanize_bytes(&value, p.total);
        ebb_buf_addf(&value, " %3.0f%%", p.share * 100);
    } else {
        ebb_humanize_count(&value, p.done);
        ebb_buf_addc(&value, '/');
        ebb_humanize_count(&value, p.total);
        ebb_buf_addf(&value, " tok %3.0f%%", p.share * 100);
    }
    ebb_canvas_line(c, p.what, ebb_buf_text(&value));
    if (p.total > 0 || p.is_share)
        ebb_canvas_bar(c, p.share, EBB_FACE_METER);
    if (p.left_s >= 0) {
        ebb_buf_clear(&value);
        ebb_humanize_seconds(&value, p.left_s);
        ebb_canvas_line(c, "left", ebb_buf_text(&value));
    }
    ebb_buf_fini(&value);
    ebb_canvas_gap(c);
}

static void add_progress_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    progress p;

    if (f->writer)
        ebb_buf_addf(out, "attached to process %ld", f->writer);
    if (f->writer || !find_progress(f, &p))
        return;
    ebb_buf_adds(out, p.what);
    if (p.total == 0 && f->is_remote && f->model && !p.is_share) {
        ebb_buf_addc(out, ' ');
        ebb_humanize_seconds(out, f->remote.waits_s);
    }
    if (p.total == 0 && !p.is_share)
        return;
    ebb_buf_addc(out, ' ');
    ebb_canvas_bar_text(out, p.share, ascii);
    ebb_buf_addf(out, " %.0f%%", p.share * 100);
    if (p.left_s >= 0) {
        ebb_buf_addc(out, ' ');
        ebb_humanize_seconds(out, p.left_s);
        ebb_buf_adds(out, " left");
    }
}

const ebb_gauge ebb_gauge_progress = { "progress", draw_progress_gauge, add_progress_brief };
