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
    ebb_buf_adds(out, "reused ");
    ebb_humanize_count(out, c->n_reused);
    if (c->n_reused_disk > 0) {
        ebb_buf_adds(out, " (from disk ");
        ebb_humanize_count(out, c->n_reused_disk);
        ebb_buf_addc(out, ')');
    }
    if (c->n_prefilled_early > 0) {
        ebb_buf_adds(out, " (while you typed ");
        ebb_humanize_count(out, c->n_prefilled_early);
        ebb_buf_addc(out, ')');
    }
    ebb_buf_addf(out, "%scomputed ", dot);
    ebb_humanize_count(out, c->n_computed);
    if (c->prefill_s > 0 && c->n_computed > 0) {
        ebb_buf_adds(out, " @ ");
        ebb_humanize_rate(out, c->n_computed / c->prefill_s);
        ebb_buf_adds(out, " tok/s");
    }
    ebb_buf_adds(out, dot);
    ebb_humanize_count(out, c->n_generated);
    ebb_buf_adds(out, " tok");
    if (c->n_accepted > 0) {
        ebb_buf_adds(out, " (guessed ");
        ebb_humanize_count(out, c->n_accepted);
        ebb_buf_addc(out, ')');
    }
    if (c->decode_s > 0 && c->n_generated > 0) {
        ebb_buf_adds(out, " @ ");
        ebb_humanize_rate(out, c->n_generated / c->decode_s);
        ebb_buf_adds(out, " tok/s");
    }
}
