/* Weights read from disk, while they are. */
#include "panel/panel.h"

#include "text/humanize.h"

static void draw_disk_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = ebb_panel_machine(f);
    ebb_buf value = { 0 };

    if (!s || s->disk_bytes_s < 1)
        return;
    ebb_buf_addf(&value, "%.2f GB/s", s->disk_bytes_s / 1e9);
    ebb_canvas_line(c, "disk", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    ebb_buf_addf(&value, "%.0f%% of the time", s->stall_share * 100);
    ebb_canvas_line(c, "  waited for", ebb_buf_text(&value));
    if (s->read_tok_bytes >= 1) {
        ebb_buf_clear(&value);
        ebb_humanize_bytes(&value, (uint64_t)s->read_tok_bytes);
        ebb_canvas_line(c, "  for each token", ebb_buf_text(&value));
    }
    if (s->experts_selected > 0) {
        ebb_buf_clear(&value);
        ebb_buf_addf(&value, "%.0f%% in memory", 100 * (double)s->experts_resident / (double)s->experts_selected);
        ebb_canvas_line(c, "  experts", ebb_buf_text(&value));
    }
    ebb_buf_fini(&value);
    ebb_canvas_gap(c);
}

static void add_disk_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    const ebb_stats *s = ebb_panel_machine(f);

    (void)ascii;
    if (!s || s->disk_bytes_s < 1)
        return;
    ebb_buf_addf(out, "disk %.2f GB/s", s->disk_bytes_s / 1e9);
}

const ebb_gauge ebb_gauge_disk = { "disk", draw_disk_gauge, add_disk_brief };
