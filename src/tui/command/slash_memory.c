/* Commands about memory (slash_impl.h). */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "command/slash_impl.h"
#include "models/plan_text.h"
#include "text/humanize.h"

static void add_memory_row(ebb_buf *out, const char *label, uint64_t bytes)
{
    if (bytes == 0)
        return;
    ebb_buf_addf(out, "%-22s", label);
    ebb_humanize_bytes(out, bytes);
    ebb_buf_addc(out, '\n');
}

bool ebb_slash_reads_output(const ebb_stats *s)
{
    /* a plan with K and V in a file reads no weights */
    return s->n_resident == s->n_layers &&
           (s->tier == EBB_TIER_STREAMING || (s->tier == EBB_TIER_CRITICAL && s->read_tok_bytes >= 1));
}

static void add_disk_speed(ebb_buf *out, const ebb_stats *s)
{
    char speed[16];

    ebb_buf_addf(out, "tier %s, %u of %u layers in memory", ebb_tier_name(s->tier), s->n_resident, s->n_layers);
    if (ebb_slash_reads_output(s))
        ebb_buf_adds(out, ", the output matrix on disk");
    if (s->predicted_decode_tok_s > 0)
        ebb_buf_addf(out, "; predicted %s tok/s", ebb_speed_text(s->predicted_decode_tok_s, speed));
    if (s->decode_tok_s > 0)
        ebb_buf_addf(out, ", measured %s", ebb_speed_text(s->decode_tok_s, speed));
    if (s->mode[0])
        ebb_buf_addf(out, "; mode %s", s->mode);
    if (s->read_tok_bytes >= 1) {
        ebb_buf_adds(out, "; read for each token ");
        ebb_humanize_bytes(out, (uint64_t)s->read_tok_bytes);
    }
}

static void say_use(ebb_frontend *f)
{
    ebb_buf out = { 0 };
    ebb_stats s;

    ebb_chat_stats(f->chat, &s);
    add_memory_row(&out, "budget", s.budget_bytes);
    add_memory_row(&out, "in use (RSS)", s.rss_bytes);
    add_memory_row(&out, "in use, anonymous", s.rss_anon_bytes);
    add_memory_row(&out, "in use, mapped", s.rss_file_bytes);
    add_memory_row(&out, "most in use so far", s.rss_peak_bytes);
    add_memory_row(&out, "weights, pinned", s.pinned_bytes);
    add_memory_row(&out, "weights, mapped", s.mapped_bytes);
    add_memory_row(&out, "weights, ring", s.ring_bytes);
    if (s.draft_bytes > 0)
        add_memory_row(&out, "draft model", s.draft_bytes);
    add_memory_row(&out, "KV cache, in memory", s.kv_memory_bytes);
    add_memory_row(&out, "KV cache, in a file", s.kv_file_bytes);
    add_memory_row(&out, "KV cache, lent to layers", s.kv_lent_bytes);
    add_memory_row(&out, "KV cache, free", ebb_stats_kv_free_bytes(&s));
    add_memory_row(&out, "room for activations", s.scratch_bytes);
    add_memory_row(&out, "still available", s.available_bytes > 0 ? (uint64_t)s.available_bytes : 0);
    add_memory_row(&out, "of ebb in swap", s.swap_bytes);
    if (s.pressure_avg10 >= 0)
        ebb_buf_addf(&out, "%-22s%.1f %% of the last 10 s\n", "waiting for memory", s.pressure_avg10);
    add_disk_speed(&out, &s);
    ebb_buf_adds(&out, "\n/mem SIZE changes the budget, /mem auto uses what the machine has, /mem SIZE anew makes a "
                       "new plan");
    f->say(f, EBB_SAY_TEXT, ebb_buf_text(&out), out.len);
    ebb_buf_fini(&out);
}

ebb_status ebb_slash_mem(ebb_frontend *f, const char *arg, ebb_error *err)
{
    size_t n = strcspn(arg, " \t");
    const char *rest = arg + n + strspn(arg + n, " \t");
    bool is_anew = strcmp(rest, "anew") == 0;
    char size[48];
    uint64_t bytes = 0;
    ebb_status st;

    snprintf(size, sizeof size, "%.*s", (int)(n < 47 ? n : 47), arg);
    if (*arg == '\0' && ebb_chat_engine(f->chat))
        return ebb_chat_set_budget(f->chat, 0, err);     /* which says who can */
    if (*arg == '\0') {
        if (!ebb_chat_is_ready(f->chat))
            return EBB_FAIL(err, EBB_BUSY, "there is no model in memory yet");
        say_use(f);
        return EBB_OK;
    }
    if ((*rest && !is_anew) ||
        ((is_anew || strcmp(size, "auto") != 0) && (!ebb_size_parse(size, &bytes) || bytes == 0)))
        return EBB_FAIL(err, EBB_USAGE, "/mem %.40s: give a size like 5G or 800M, or auto; anew behind a size opens "
                                        "the model as it is planned for it", arg);
    if (is_anew)
        return ebb_chat_replan(f->chat, bytes, err);
    st = ebb_chat_set_budget(f->chat, bytes, err);
    if (st == EBB_OK && ebb_chat_is_busy(f->chat))
        ebb_frontend_sayf(f, EBB_SAY_NOTICE, "the budget changes when this answer has ended");
    return st;
}

void ebb_complete_mem(ebb_frontend *f, const char *typed, ebb_candidate_fn *fn, void *arg)
{
    (void)f;
    (void)typed;
    fn(arg, "auto", "what the machine has");
}

ebb_status ebb_slash_plan(ebb_frontend *f, const char *arg, ebb_error *err)
{
    (void)arg;
    return ebb_chat_plan(f->chat, err);
}
