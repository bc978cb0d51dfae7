/* Memory: anonymous and mapped pages, the budget, K and V; and the figures by which the engine decides. */
#include "panel/panel.h"

#include <string.h>

#include "base/utf8.h"
#include "text/humanize.h"

static void draw_memory_row(ebb_canvas *c, const char *label, uint64_t bytes)
{
    ebb_buf value = { 0 };

    ebb_humanize_bytes(&value, bytes);
    ebb_canvas_line(c, label, ebb_buf_text(&value));
    ebb_buf_fini(&value);
}

/* Available memory, memory pressure, and this process's pages in swap. */
static void draw_controller(ebb_canvas *c, const ebb_stats *s)
{
    ebb_buf value = { 0 };

    if (s->mode[0] == '\0')
        return;
    ebb_humanize_bytes(&value, s->available_bytes > 0 ? (uint64_t)s->available_bytes : 0);
    if (s->pressure_avg10 >= 0)
        ebb_buf_addf(&value, ", PSI %.0f%%", s->pressure_avg10);
    ebb_canvas_line(c, "available", ebb_buf_text(&value));
    if (s->swap_bytes > 0)
        draw_memory_row(c, "  in swap", s->swap_bytes);
    ebb_canvas_line(c, "  mode", s->mode);
    ebb_buf_fini(&value);
}

static void draw_kv(ebb_canvas *c, const ebb_stats *s)
{
    ebb_buf value = { 0 };

    if (s->kv_bytes + s->kv_file_bytes == 0)
        return;
    ebb_humanize_bytes(&value, s->kv_memory_bytes);
    ebb_buf_adds(&value, ", ");
    ebb_humanize_bytes(&value, ebb_stats_kv_free_bytes(s));
    ebb_buf_adds(&value, " free");
    ebb_canvas_line(c, "KV", ebb_buf_text(&value));
    if (s->kv_file_bytes > 0)
        draw_memory_row(c, "  in a file", s->kv_file_bytes);
    if (s->kv_lent_bytes > 0)
        draw_memory_row(c, "  lent", s->kv_lent_bytes);
    ebb_canvas_line(c, "  kept as", s->kv_type);
    ebb_buf_fini(&value);
}

static void draw_memory_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = ebb_panel_machine(f);
    double share;

    if (!s || s->rss_anon_bytes + s->rss_file_bytes == 0)
        return;
    share = s->budget_bytes ? (double)(s->rss_anon_bytes + s->rss_file_bytes) / (double)s->budget_bytes : 0;
    draw_memory_row(c, "memory (RSS)", s->rss_bytes ? s->rss_bytes : s->rss_anon_bytes + s->rss_file_bytes);
    draw_memory_row(c, "  anonymous", s->rss_anon_bytes);
    draw_memory_row(c, "  mapped", s->rss_file_bytes);
    if (s->budget_bytes > 0) {
        draw_memory_row(c, "  budget", s->budget_bytes);
        ebb_canvas_bar(c, share, share > 0.95 ? EBB_FACE_METER_HIGH : EBB_FACE_METER);
    }
    if (s->draft_bytes > 0)
        draw_memory_row(c, "draft model", s->draft_bytes);
    draw_controller(c, s);
    draw_kv(c, s);
    ebb_canvas_gap(c);
}

static void add_memory_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    const ebb_stats *s = ebb_panel_machine(f);

    if (!s || s->rss_anon_bytes + s->rss_file_bytes == 0)
        return;
    if (f->is_remote) {
        ebb_utf8_add_line(out, f->remote.name, strlen(f->remote.name), ascii);
        ebb_buf_adds(out, ": ");
    }
    ebb_buf_adds(out, "memory ");
    ebb_humanize_bytes(out, s->rss_bytes ? s->rss_bytes : s->rss_anon_bytes + s->rss_file_bytes);
}

const ebb_gauge ebb_gauge_memory = { "memory", draw_memory_gauge, add_memory_brief };
