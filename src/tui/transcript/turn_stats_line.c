/* What an answer cost, in a line (turn_stats_line.h). */
#include "transcript/turn_stats_line.h"

#include "text/humanize.h"

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
    else if (m->finish == EBB_FINISH_NONE)
        ebb_buf_addf(out, "unfinished%s", dot);
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
