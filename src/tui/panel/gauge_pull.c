/* A model that is being fetched: how much of it is there, how fast it comes, how long it takes. */
#include "panel/panel.h"

#include "text/humanize.h"

static double pull_share(const ebb_download_progress *p)
{
    return p->total != UINT64_MAX && p->total > 0 ? (double)p->done / (double)p->total : -1;
}

static void add_pull_amount(ebb_buf *out, const ebb_download_progress *p)
{
    if (p->total != UINT64_MAX) {
        ebb_humanize_bytes(out, p->total);
        ebb_buf_addf(out, " %3.0f%%", 100 * pull_share(p));
    } else {
        ebb_humanize_bytes(out, p->done);
    }
}

static void add_pull_pace(ebb_buf *out, const ebb_download_progress *p, const char *between)
{
    if (p->is_check)
        ebb_buf_adds(out, "checking");
    else if (p->bytes_s >= 0)
        ebb_buf_addf(out, p->bytes_s < 10e6 ? "%.1f MB/s" : "%.0f MB/s", p->bytes_s / 1e6);
    if (p->left_s >= 0) {
        ebb_buf_adds(out, between);
        ebb_humanize_seconds(out, p->left_s);
        ebb_buf_adds(out, " left");
    }
}

static void draw_pull_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_pull_event *e = &f->pull;
    ebb_buf value = { 0 };

    if (!f->is_pulling)
        return;
    if (e->n_files)
        add_pull_amount(&value, &e->progress);
    ebb_canvas_line(c, "fetching", ebb_buf_text(&value));
    if (pull_share(&e->progress) >= 0)
        ebb_canvas_bar(c, pull_share(&e->progress), EBB_FACE_METER);
    ebb_buf_clear(&value);
    if (e->n_files)
        add_pull_pace(&value, &e->progress, ", ");
    if (value.len)
        ebb_canvas_line(c, "", ebb_buf_text(&value));
    ebb_canvas_gap(c);
    ebb_buf_fini(&value);
}

static void add_pull_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    const ebb_pull_event *e = &f->pull;

    if (!f->is_pulling)
        return;
    ebb_buf_adds(out, "fetching ");
    if (!e->n_files)
        return;
    if (pull_share(&e->progress) >= 0) {
        ebb_canvas_bar_text(out, pull_share(&e->progress), ascii);
        ebb_buf_addc(out, ' ');
    }
    add_pull_amount(out, &e->progress);
    ebb_buf_addc(out, ' ');
    add_pull_pace(out, &e->progress, " ");
}

const ebb_gauge ebb_gauge_pull = { "pull", draw_pull_gauge, add_pull_brief };
