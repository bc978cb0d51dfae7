/* A remote engine: its address, its time to the first token, what it had cached; of an `ebb serve` also its clients and
 * whose machine the gauges below are about. */
#include "panel/panel.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "text/humanize.h"

/* A time of day instead of a duration: an idle panel is not redrawn. */
static void add_time(ebb_buf *out, int64_t ms)
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    char text[16];

    if (ms > 0 && localtime_r(&t, &tm) && strftime(text, sizeof text, "since %H:%M", &tm))
        ebb_buf_adds(out, text);
    else
        ebb_buf_adds(out, "no");
}

static void draw_clients(ebb_canvas *c, const ebb_server_figures *s)
{
    ebb_buf value = { 0 };

    ebb_buf_addf(&value, "%u, %u answering", s->n_clients, s->n_running);
    if (s->n_waiting)
        ebb_buf_addf(&value, ", %u waiting", s->n_waiting);
    ebb_canvas_line(c, "clients", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    ebb_humanize_rate(&value, s->stats.decode_tok_s);
    ebb_buf_adds(&value, " tok/s");
    if (s->stats.decode_tok_s > 0)
        ebb_canvas_line(c, "  of all", ebb_buf_text(&value));
    ebb_buf_fini(&value);
}

/* Of which machine, and when, is what follows: between answers nobody asks it. */
static void draw_whose(ebb_canvas *c, const ebb_remote_figures *r)
{
    time_t t = (time_t)(r->server.taken_ms / 1000);
    char text[sizeof r->where + 24], when[16] = "";
    struct tm tm;

    if (localtime_r(&t, &tm))
        (void)strftime(when, sizeof when, "%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s, at %s", r->where, when);
    ebb_canvas_gap(c);
    ebb_canvas_text(c, text, EBB_FACE_HEADING);
}

static void draw(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_remote_figures *r = &f->remote;
    ebb_buf value = { 0 };

    if (!f->is_remote)
        return;
    ebb_utf8_add_line(&value, r->where, strlen(r->where), c->term->ascii);
    ebb_canvas_line(c, "engine at", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    add_time(&value, r->connected_ms);
    ebb_canvas_line(c, "  connected", ebb_buf_text(&value));
    ebb_buf_clear(&value);
    if (r->first_s > 0) {
        ebb_humanize_seconds(&value, r->first_s);
        ebb_canvas_line(c, "first word", ebb_buf_text(&value));
    }
    ebb_buf_clear(&value);
    if (r->has_cached) {
        ebb_humanize_count(&value, r->cached_tok);
        ebb_buf_adds(&value, " + ");
    }
    ebb_humanize_count(&value, r->new_tok);
    ebb_buf_adds(&value, " tok");
    if (r->new_tok > 0 || r->has_cached)
        ebb_canvas_line(c, r->has_cached ? "cached + new" : "prompt", ebb_buf_text(&value));
    ebb_buf_fini(&value);
    if (r->server.taken_ms)
        draw_clients(c, &r->server);
    if (r->server.taken_ms)
        draw_whose(c, r);
    else
        ebb_canvas_gap(c);
}

static void brief(ebb_buf *out, const ebb_figures *f, bool ascii)
{
    if (!f->is_remote)
        return;
    ebb_buf_adds(out, "at ");
    ebb_utf8_add_line(out, f->remote.name, strlen(f->remote.name), ascii);
    if (f->remote.first_s > 0) {
        ebb_buf_adds(out, ", first word ");
        ebb_humanize_seconds(out, f->remote.first_s);
    }
}

const ebb_gauge ebb_gauge_engine = { "engine", draw, brief };
