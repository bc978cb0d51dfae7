/* A smaller context than the conversation needs: what that costs is said first, and done when it is asked for again
 * (overflow.h). */
#include <stdlib.h>

#include "conversation/chat_priv.h"
#include "models/plan_text.h"

static bool fits_ctx(ebb_chat *c, size_t n_ids, uint32_t n_ctx)
{
    bool fits;

    c->overflow.n_ctx_wanted = n_ctx;
    fits = ebb_overflow_fits(c, n_ids);
    c->overflow.n_ctx_wanted = 0;
    return fits;
}

/* The turns that would go for a context of n_ctx; false: none can, or the rest is still too long. */
static bool choose_for_ctx(ebb_chat *c, const ebb_prompt *p, uint32_t n_ctx, ebb_truncation *l)
{
    return ebb_overflow_choose_turns(c, p, n_ctx / 2, l) && fits_ctx(c, p->n_ids - l->n_tokens, n_ctx);
}

/* n_ctx has no room for *p, the path's prompt, in which the tokens of an imported conversation are counted, too.  One
 * that cannot be made is no matter of the context: the next question says why. */
static bool is_too_long_for(ebb_chat *c, uint32_t n_ctx, ebb_prompt *p)
{
    *p = (ebb_prompt){ 0 };
    return c->tree.n_path > 0 && ebb_chat_prompt(c, c->tree.path, c->tree.n_path, NULL, p, NULL) == EBB_OK &&
           !fits_ctx(c, p->n_ids, n_ctx);
}

static void say_price(ebb_chat *c, const ebb_plan *plan, const ebb_prompt *p, const ebb_truncation *l)
{
    size_t left = p->n_ids - l->n_tokens;
    ebb_buf line = { 0 };

    ebb_plan_line(&line, plan);
    ebb_chat_notice(c, "A context of %u tokens has no room for the %zu of this conversation.  The oldest %u turn%s "
                       "(%u tokens) would be left out, and the %zu that stay computed again, in about %.1f s; "
                       "%.200s. The same command once more does it.",
                    plan->n_ctx, p->n_ids, l->n_turns, l->n_turns == 1 ? "" : "s", l->n_tokens, left,
                    plan->predicted_prefill_tok_s > 0 ? (double)left / plan->predicted_prefill_tok_s : 0,
                    ebb_buf_text(&line));
    ebb_buf_fini(&line);
}

/* A context that the conversation does not fit. */
static ebb_status price_of(ebb_chat *c, const ebb_plan *plan, const ebb_prompt *p, bool *was_reported, ebb_error *err)
{
    const ebb_node *leaf = ebb_tree_leaf(&c->tree);
    ebb_truncation l = { 0 };
    bool any;

    if (c->overflow.shrink_to == plan->n_ctx && c->overflow.shrink_at == leaf)
        return EBB_OK;                           /* the cost was shown before */
    any = choose_for_ctx(c, p, plan->n_ctx, &l);
    if (any)
        say_price(c, plan, p, &l);
    free(l.kept);
    if (!any)
        return EBB_FAIL(err, EBB_CONTEXT, "the conversation has %zu tokens, and what cannot be left out of it does not "
                        "fit a context of %u", p->n_ids, plan->n_ctx);
    c->overflow.shrink_to = plan->n_ctx;
    c->overflow.shrink_at = leaf;
    *was_reported = true;
    return EBB_OK;
}

ebb_status ebb_overflow_price_ctx(ebb_chat *c, uint32_t n_ctx, bool *was_reported, ebb_error *err)
{
    ebb_engine_opts opts = c->opening.opts;
    ebb_plan plan = { 0 };
    ebb_prompt p = { 0 };
    ebb_status st;

    *was_reported = false;
    opts.n_ctx = n_ctx;
    st = c->ops.plan(c->ops.arg, c->backend, &opts, &plan, err);
    if (st == EBB_OK && plan.fits && is_too_long_for(c, plan.n_ctx, &p))
        st = price_of(c, &plan, &p, was_reported, err);
    ebb_prompt_fini(&p);
    return st;
}

/* K and V of what stays are of other positions, and the model that could move them goes. */
ebb_status ebb_overflow_shrink(ebb_chat *c, uint32_t n_ctx, ebb_error *err)
{
    ebb_prompt p = { 0 };
    ebb_status st = EBB_OK;

    if (is_too_long_for(c, n_ctx, &p)) {
        c->overflow.n_ctx_wanted = n_ctx;
        st = ebb_overflow_forget(c, &p, ebb_overflow_choose_next(c, ebb_tree_leaf(&c->tree)), err);
        c->overflow.n_ctx_wanted = c->overflow.shrink_to = 0;
        ebb_overflow_drop_gap(c);
    }
    ebb_prompt_fini(&p);
    return st;
}
