/* What an answer cost, in a line (turn_stats_line.h). */
#include "transcript/turn_stats_line.h"

#include <string.h>

#include "base/utf8.h"
#include "text/humanize.h"

static void add_count(ebb_buf *out, uint32_t n, bool is_about)
{
    ebb_buf_adds(out, is_about ? "about " : "");
    ebb_humanize_count(out, n);
}

/* The figures that the server reports; others are left out. */
static void add_remote(const ebb_message *m, const char *dot, ebb_buf *out)
{
    const ebb_turn_stats *c = &m->turn_stats;

    ebb_utf8_add_line(out, m->engine, strlen(m->engine), false);
    if (!(c->about & EBB_ABOUT_REUSED)) {
        ebb_buf_addf(out, "%scached ", dot);
        ebb_humanize_count(out, c->n_reused);
    }
    ebb_buf_addf(out, "%sprompt ", dot);
    add_count(out, c->about & EBB_ABOUT_REUSED ? c->n_prompt : c->n_computed, c->about & EBB_ABOUT_PROMPT);
    if (c->prefill_s > 0 && c->n_computed > 0) {
        ebb_buf_adds(out, " @ ");
        ebb_humanize_rate(out, c->n_computed / c->prefill_s);
        ebb_buf_adds(out, " tok/s");
    }
    if (c->first_s > 0) {
        ebb_buf_addf(out, "%sfirst word ", dot);
        ebb_humanize_seconds(out, c->first_s);
    }
    ebb_buf_adds(out, dot);
    add_count(out, c->n_generated, c->about & EBB_ABOUT_GENERATED);
    ebb_buf_adds(out, " tok");
    if (c->decode_s > 0 && c->n_generated > 0) {
        ebb_buf_adds(out, " @ ");
        ebb_humanize_rate(out, c->n_generated / c->decode_s);
        ebb_buf_adds(out, " tok/s");
    }
}

void ebb_turn_stats_line(const ebb_message *m, bool ascii, ebb_buf *out)
{
    const char *dot = ascii ? " | " : " \u00B7 ";
    const ebb_turn_stats *c = &m->turn_stats;

    if (m->finish == EBB_FINISH_CANCELED)
        ebb_buf_addf(out, "stopped%s", dot);
    else if (m->finish == EBB_FINISH_LENGTH)
        ebb_buf_addf(out, "cut at the length limit%s", dot);
    else if (m->finish == EBB_FINISH_ERROR)
        ebb_buf_addf(out, "ended by an error%s", dot);
    else if (m->finish == EBB_FINISH_NONE || m->finish == EBB_FINISH_CUT_OFF)
        ebb_buf_addf(out, "unfinished%s", dot);
    if (m->engine) {
        add_remote(m, dot, out);
        return;
    }
    ebb_humanize_count(out, c->n_generated);
    ebb_buf_adds(out, " tok");
    if (c->decode_s > 0 && c->n_generated > 0) {
        ebb_buf_adds(out, dot);
        ebb_humanize_rate(out, c->n_generated / c->decode_s);
        ebb_buf_adds(out, "/s");
    }
    if (c->prefill_s + c->decode_s >= 0.05) {
        ebb_buf_adds(out, dot);
        ebb_humanize_seconds(out, c->prefill_s + c->decode_s);
    }
}
