/* The model, its tier, its kernels. */
#include "panel/panel.h"

#include <string.h>

#include "base/utf8.h"
#include "text/humanize.h"

static void draw_model_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = ebb_panel_machine(f);
    ebb_buf line = { 0 };

    if (!f->model)
        return;
    ebb_canvas_text(c, f->model->name, EBB_FACE_HEADING);
    ebb_buf_adds(&line, f->model->arch);         /* elsewhere: the kind of server */
    if (!f->is_remote) {
        ebb_buf_addf(&line, " %s, ", f->model->quantization);
        ebb_humanize_bytes(&line, f->model->weight_bytes);
    }
    ebb_canvas_text(c, ebb_buf_text(&line), EBB_FACE_VALUE);
    if (s && s->n_threads > 0) {
        ebb_buf_clear(&line);
        ebb_buf_addf(&line, "%s, %s, %u threads", ebb_tier_name(s->tier), s->cpu, s->n_threads);
        ebb_canvas_text(c, ebb_buf_text(&line), EBB_FACE_VALUE);
    }
    ebb_buf_fini(&line);
    ebb_canvas_gap(c);
}

enum { NAME_BYTES = 30 };          /* bytes of it in a line */

static void add_model_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    if (!f->model)
        return;
    ebb_utf8_add_line(out, f->model->name, strnlen(f->model->name, NAME_BYTES), ascii);
    if (f->model->name[strnlen(f->model->name, NAME_BYTES)])
        ebb_buf_adds(out, ascii ? "..." : "\u2026");
    if (f->is_remote)
        return;
    ebb_buf_addf(out, " %s", f->model->quantization);
    if (f->stats.tier != EBB_TIER_FULL)
        ebb_buf_addf(out, " %s", ebb_tier_name(f->stats.tier));
}

const ebb_gauge ebb_gauge_model = { "model", draw_model_gauge, add_model_brief };
