/* A smaller context than the conversation needs: what that costs is said first, and done when it is asked for again
 * (overflow.h). */
#include <stdlib.h>

#include "conversation/chat_priv.h"
#include "models/plan_text.h"

/* The turns that would go for a context of n_ctx; false: none can, or the rest is still too long. */
static bool choose_for_ctx(ebb_chat *c, uint32_t n_ctx, ebb_truncation *l)
{
    uint32_t n = ebb_chat_n_tokens(c);
    bool any;

    c->overflow.n_ctx_wanted = n_ctx;
    any = ebb_overflow_choose_turns(c, n, n_ctx / 2, l) && ebb_overflow_fits(c, n - l->n_tokens);
    c->overflow.n_ctx_wanted = 0;
    return any;
}

static bool is_too_long_for(ebb_chat *c, uint32_t n_ctx)
{
    bool fits;

    c->overflow.n_ctx_wanted = n_ctx;
    fits = ebb_overflow_fits(c, ebb_chat_n_tokens(c));
    c->overflow.n_ctx_wanted = 0;
    return !fits;
}

static void say_price(ebb_chat *c, const ebb_plan *plan, const ebb_truncation *l)
{
    uint32_t left = ebb_chat_n_tokens(c) - l->n_tokens;
    ebb_buf line = { 0 };

    ebb_plan_line(&line, plan);
    ebb_chat_notice(c, "A context of %u tokens has no room for the %u of this conversation.  The oldest %u turn%s "
                       "(%u tokens) would be left out, and the %u that stay computed again, in about %.1f s; "
                       "%.200s. The same command once more does it.",
                    plan->n_ctx, ebb_chat_n_tokens(c), l->n_turns, l->n_turns == 1 ? "" : "s", l->n_tokens, left,
                    plan->predicted_prefill_tok_s > 0 ? left / plan->predicted_prefill_tok_s : 0, ebb_buf_text(&line));
    ebb_buf_fini(&line);
}

ebb_status ebb_overflow_price_ctx(ebb_chat *c, uint32_t n_ctx, bool *was_reported, ebb_error *err)
{
    ebb_engine_opts opts = c->opening.opts;
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_truncation l = { 0 };
    ebb_plan plan = { 0 };
    ebb_status st;

    *was_reported = false;
    opts.n_ctx = n_ctx;
    st = c->ops.plan(c->ops.arg, c->backend, &opts, &plan, err);
    if (st != EBB_OK || !plan.fits || !is_too_long_for(c, plan.n_ctx))
        return st;
    if (c->overflow.shrink_to == plan.n_ctx && c->overflow.shrink_at == leaf)
        return EBB_OK;                           /* the cost was shown before */
    if (!choose_for_ctx(c, plan.n_ctx, &l)) {
        free(l.kept);
        return EBB_FAIL(err, EBB_CONTEXT, "the conversation has %u tokens, and what cannot be left out of it does not "
                        "fit a context of %u", ebb_chat_n_tokens(c), plan.n_ctx);
    }
    say_price(c, &plan, &l);
    free(l.kept);
    c->overflow.shrink_to = plan.n_ctx;
    c->overflow.shrink_at = leaf;
    *was_reported = true;
    return EBB_OK;
}

/* K and V of what stays are of other positions, and the model that could move them goes. */
ebb_status ebb_overflow_shrink(ebb_chat *c, uint32_t n_ctx, ebb_error *err)
{
    ebb_prompt p = { 0 };
    ebb_status st;

    if (!is_too_long_for(c, n_ctx))
        return EBB_OK;
    st = ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, &p, err);
    c->overflow.n_ctx_wanted = n_ctx;
    if (st == EBB_OK)
        st = ebb_overflow_forget(c, &p, ebb_overflow_choose_next(c, ebb_tree_leaf(&c->tree)), err);
    c->overflow.n_ctx_wanted = c->overflow.shrink_to = 0;
    ebb_prompt_fini(&p);
    ebb_overflow_drop_gap(c);
    return st;
}
