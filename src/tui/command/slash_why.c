/* /why: what the last answer's time went into, and what would change it. */
#include <string.h>

#include "command/slash_impl.h"
#include "models/models.h"
#include "text/humanize.h"
#include "transcript/turn_stats_line.h"

/* Slower than predicted by more than the machine's moods. */
static const double slower = 0.75;
/* Of the time; more is the disk's. */
static const double much_waiting = 0.15;

static const ebb_message *last_measured_answer(const ebb_chat *c)
{
    for (size_t i = ebb_chat_n_messages(c); i > 0; i--) {
        const ebb_message *m = ebb_chat_message(c, i - 1);
        if (m->role == EBB_ROLE_ASSISTANT && m->turn_stats.n_prompt + m->turn_stats.n_generated > 0)
            return m;
    }
    return NULL;
}

static void add_token_rate(ebb_buf *out, uint32_t n, double s)
{
    ebb_humanize_count(out, n);
    ebb_buf_adds(out, n == 1 ? " token in " : " tokens in ");
    ebb_humanize_seconds(out, s);
    if (s > 0) {
        ebb_buf_adds(out, ", ");
        ebb_humanize_rate(out, n / s);
        ebb_buf_adds(out, " tok/s");
    }
}

/* " (guessed 12)": so many of those before; nothing for none. */
static void add_share(ebb_buf *out, const char *what, uint32_t n)
{
    if (n == 0)
        return;
    ebb_buf_adds(out, what);
    ebb_humanize_count(out, n);
    ebb_buf_addc(out, ')');
}

static void add_turn(ebb_buf *out, const ebb_turn_stats *c)
{
    ebb_buf_adds(out, "The prompt: ");
    if (c->n_reused > 0) {
        ebb_humanize_count(out, c->n_reused);
        ebb_buf_adds(out, c->n_reused == 1 ? " token was known already" : " tokens were known already");
        add_share(out, " (from disk: ", c->n_reused_disk);
        add_share(out, " (read while you typed: ", c->n_prefilled_early);
        ebb_buf_adds(out, c->n_computed > 0 ? "; read: " : "");
    }
    if (c->n_computed > 0)
        add_token_rate(out, c->n_computed, c->prefill_s);
    ebb_buf_adds(out, ".\nThe answer: ");
    add_token_rate(out, c->n_generated, c->decode_s);
    if (c->n_accepted_reference > 0)
        ebb_buf_addf(out, " (guessed %u, %u of them from other conversations)", c->n_accepted,
                     c->n_accepted_reference);
    else
        add_share(out, " (guessed ", c->n_accepted);
    ebb_buf_adds(out, ".\n");
}

static void add_disk(ebb_buf *out, const ebb_stats *s)
{
    if (ebb_slash_reads_output(s))
        ebb_buf_adds(out, "All layers are in memory; the output matrix is not: it is read from disk for each token");
    else if (s->n_resident == s->n_layers)
        ebb_buf_adds(out, "All layers are in memory; of K and V, what has no room there is read from a file");
    else
        ebb_buf_addf(out, "%u of %u layers are in memory; the rest is read from disk for each token", s->n_resident,
                     s->n_layers);
    if (s->stall_share > much_waiting)
        ebb_buf_addf(out, ", and %.0f%% of the time was spent waiting for that", s->stall_share * 100);
    ebb_buf_adds(out, ".\nFaster: more memory (close other programs; /mem), a smaller file of the model, a shorter "
                      "--ctx, --kv q8_0");
    ebb_buf_adds(out, s->draft_bytes > 0 ? "."
                                         : ",\nor a small model with the same vocabulary to draft tokens (--draft).");
}

/* All that decides the speed is how fast memory and processor take the weights. */
static void add_memory(ebb_buf *out, const ebb_stats *s, bool is_guide)
{
    ebb_buf_adds(out, "All layers are in memory: each token takes ");
    ebb_humanize_bytes(out, s->pinned_bytes + s->mapped_bytes);
    ebb_buf_adds(out, " of weights through the processor");
    if (s->predicted_decode_tok_s > 0) {
        ebb_buf_adds(out, ", about ");
        ebb_humanize_rate(out, s->predicted_decode_tok_s);
        ebb_buf_adds(out, " tok/s on this machine");
    }
    ebb_buf_adds(out, is_guide ? "." : ".\nFaster: a smaller file (fewer bits, or a smaller model).");
}

static void add_reason(ebb_buf *out, const ebb_turn_stats *c, const ebb_stats *s, bool is_guide)
{
    double tok_s = c->decode_s > 0 ? c->n_generated / c->decode_s : 0;

    if (s->tier >= EBB_TIER_STREAMING)
        add_disk(out, s);
    else if (s->n_resident < s->n_layers)
        ebb_buf_addf(out, "%u of %u layers are in memory so far: the others come from disk when they are first used.\n"
                          "The next answer will be faster.", s->n_resident, s->n_layers);
    else
        add_memory(out, s, is_guide);
    if (c->about & EBB_ABOUT_SIDE_BY_SIDE)
        ebb_buf_adds(out, "\nIt was written side by side with others, which share each pass: each alone is slower, all "
                          "of them are done sooner.");
    else if (s->tier < EBB_TIER_STREAMING && tok_s > 0 && tok_s < slower * s->predicted_decode_tok_s)
        ebb_buf_adds(out, "\nIt was slower than that: the file had to be read from disk first, or other programs were "
                          "using the processor.");
}

ebb_status ebb_slash_why(ebb_frontend *f, const char *arg, ebb_error *err)
{
    const ebb_message *m = last_measured_answer(f->chat);
    const ebb_model_info *loaded;
    ebb_buf out = { 0 };
    ebb_stats s;

    (void)arg;
    if (m && m->engine && !ebb_chat_is_busy(f->chat)) {
        ebb_turn_stats_line(m, !f->opts || f->opts->ascii, &out);
        ebb_buf_adds(&out, "\nThese figures are the server's and this machine's clock's; only the server knows where "
                           "its time went.");
        f->say(f, EBB_SAY_TEXT, ebb_buf_text(&out), out.len);
        ebb_buf_fini(&out);
        return EBB_OK;
    }
    if (ebb_chat_engine(f->chat))
        return EBB_FAIL(err, EBB_USAGE,
                        "this answer came from an engine that is not connected now; the line below it shows what "
                        "it cost");
    if (!m || ebb_chat_is_busy(f->chat) || !ebb_chat_is_ready(f->chat))
        return EBB_FAIL(err, EBB_BUSY, "/why is about the last answer, once it has ended");
    loaded = ebb_chat_model(f->chat);
    ebb_chat_stats(f->chat, &s);
    add_turn(&out, &m->turn_stats);
    if (m->model && loaded && strcmp(m->model, loaded->name) != 0)       /* the figures at hand are another model's */
        ebb_buf_addf(&out, "It was written by %s, which is no longer loaded.", m->model);
    else
        add_reason(&out, &m->turn_stats, &s, loaded && strcmp(loaded->path, EBB_MODELS_GUIDE) == 0);
    f->say(f, EBB_SAY_TEXT, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
    return EBB_OK;
}
