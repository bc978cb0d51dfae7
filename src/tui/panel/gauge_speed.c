/* Tokens per second of this turn or the last, what was reused, and what speculative decoding is worth. */
#include "panel/panel.h"

#include "text/humanize.h"

static void draw_speed_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = &f->stats, *m = ebb_panel_machine(f);
    ebb_buf value = { 0 };

    if (s->decode_tok_s <= 0 && s->prefill_tok_s <= 0)
        return;
    ebb_humanize_rate(&value, s->decode_tok_s);
    ebb_buf_adds(&value, " tok/s");
    if (s->decode_tok_s > 0)
        ebb_canvas_line(c, "answer", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    ebb_humanize_rate(&value, s->predicted_decode_tok_s);
    ebb_buf_adds(&value, " tok/s");
    if (s->decode_tok_s > 0 && s->predicted_decode_tok_s > 0)
        ebb_canvas_line(c, "  predicted", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    ebb_humanize_rate(&value, s->prefill_tok_s);
    ebb_buf_adds(&value, " tok/s");
    if (s->prefill_tok_s > 0)
        ebb_canvas_line(c, "prompt", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    ebb_humanize_count(&value, s->reused_tok);
    ebb_buf_adds(&value, " + ");
    ebb_humanize_count(&value, s->computed_tok);
    ebb_buf_adds(&value, " tok");
    if (!f->is_remote)                           /* there, gauge_engine.c says what is known */
        ebb_canvas_line(c, "reused + new", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    if (m && m->n_drafted > 0)
        ebb_buf_addf(&value, "%.0f %% accepted", 100.0 * (double)m->n_accepted / (double)m->n_drafted);
    if (value.len > 0)
        ebb_canvas_line(c, "draft tokens", ebb_buf_text(&value));
    ebb_buf_fini(&value);
    ebb_canvas_gap(c);
}

static void add_speed_brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    (void)ascii;
    if (f->stats.decode_tok_s <= 0)
        return;
    ebb_humanize_rate(out, f->stats.decode_tok_s);
    ebb_buf_adds(out, " tok/s");
}

const ebb_gauge ebb_gauge_speed = { "speed", draw_speed_gauge, add_speed_brief };
