/* A new plan for another budget (replan.h). */
#include "turn/replan.h"

#include <stdio.h>
#include <string.h>

#include "conversation/chat_priv.h"
#include "models/plan_text.h"

static ebb_status plan_anew(ebb_chat *c, uint64_t bytes, ebb_plan *plan, ebb_error *err)
{
    ebb_engine_opts opts = c->opening.opts;
    ebb_status st;

    opts.ram_bytes = bytes;
    st = c->ops.plan(c->ops.arg, c->backend, &opts, plan, err);
    if (st == EBB_OK && !plan->fits)
        st = EBB_FAIL(err, EBB_BUDGET, "no plan fits that budget (%s)", plan->why);
    return st;
}

/* K and V of another type are of no use to the new engine; else they are read back. */
static void add_price(ebb_buf *out, const ebb_chat *c, const ebb_plan *plan, const ebb_stats *now)
{
    char kv[24];
    size_t n = ebb_chat_expect_tokens(c);

    if (n == 0)
        return;
    if (strcmp(ebb_plan_kv_text(plan, kv), now->kv_type) == 0 && !c->opening.opts.no_kv_cache) {
        ebb_buf_addf(out, "; K and V of the %zu tokens are read back", n);
        return;
    }
    ebb_buf_addf(out, "; the %zu tokens of the conversation are read again", n);
    if (plan->predicted_prefill_tok_s > 0 && (double)n / plan->predicted_prefill_tok_s >= 1)
        ebb_buf_addf(out, ", in about %.0f s", (double)n / plan->predicted_prefill_tok_s);
}

/* A size as it can be typed, without a blank. */
static const char *as_typed(uint64_t bytes, char out[24])
{
    static const struct { uint64_t unit; const char *name; } units[] = { { 1ull << 30, "G" }, { 1ull << 20, "M" },
                                                                         { 1, "" } };
    size_t i = 0;

    while (bytes % units[i].unit != 0)
        i++;
    snprintf(out, 24, "%llu%s", (unsigned long long)(bytes / units[i].unit), units[i].name);
    return out;
}

/* Worth reporting: the only way to that budget, more layers in memory, or a tenth faster. */
static bool is_better(const ebb_plan *plan, uint64_t budget_bytes, const ebb_stats *now)
{
    return now->budget_bytes > budget_bytes || plan->n_resident > now->n_resident ||
           (now->predicted_decode_tok_s > 0 && plan->predicted_decode_tok_s > 1.1 * now->predicted_decode_tok_s);
}

void ebb_replan_offer(ebb_chat *c)
{
    uint64_t bytes = c->overflow.budget_asked;
    ebb_plan plan = { 0 };
    ebb_buf line = { 0 };
    char kv[24], size[24], speed[16];
    ebb_stats now;

    c->overflow.budget_asked = 0;
    if (bytes == 0 || !c->ops.plan || !c->backend)
        return;
    c->backend->ops->stats(c->backend, &now);
    if (plan_anew(c, bytes, &plan, NULL) != EBB_OK ||
        plan.n_ctx < ebb_chat_expect_tokens(c) + ebb_overflow_reserve(c) || !is_better(&plan, bytes, &now))
        return;
    ebb_buf_addf(&line, "A new plan would have %u of %u layers in memory", plan.n_resident, plan.n_layers);
    if (plan.predicted_decode_tok_s > 0)
        ebb_buf_addf(&line, ", about %s tok/s", ebb_speed_text(plan.predicted_decode_tok_s, speed));
    ebb_buf_addf(&line, ", with K and V in %s and a context of %u tokens (now %s and %u)",
                 ebb_plan_kv_text(&plan, kv), plan.n_ctx, now.kv_type, now.n_ctx);
    add_price(&line, c, &plan, &now);
    ebb_buf_addf(&line, ". /mem %s anew reopens the model so.", as_typed(bytes, size));
    ebb_chat_notice(c, "%s", ebb_buf_text(&line));
    ebb_buf_fini(&line);
}

ebb_status ebb_replan(ebb_chat *c, uint64_t bytes, ebb_error *err)
{
    ebb_plan plan = { 0 };
    ebb_buf line = { 0 };
    char kv[24];
    ebb_status st = plan_anew(c, bytes, &plan, err);

    if (st == EBB_OK && plan.n_ctx < ebb_chat_expect_tokens(c) + ebb_overflow_reserve(c))
        st = EBB_FAIL(err, EBB_CONTEXT, "the conversation has %zu tokens, that plan's context %u; /forget makes room "
                                        "first", ebb_chat_expect_tokens(c), plan.n_ctx);
    if (st != EBB_OK)
        return st;
    ebb_plan_line(&line, &plan);
    ebb_chat_notice(c, "the model is reopened with K and V in %s and a context of %u tokens: %.240s",
                    ebb_plan_kv_text(&plan, kv), plan.n_ctx, ebb_buf_text(&line));
    ebb_buf_fini(&line);
    st = ebb_overflow_reopen(c, c->opening.opts.n_ctx, bytes, err);
    c->overflow.was_asked = st == EBB_OK;
    return st;
}
