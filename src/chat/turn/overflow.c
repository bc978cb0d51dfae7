/* A conversation that no longer fits the context: what is decided then (overflow.h). */
#include <stdlib.h>

#include "conversation/chat_priv.h"

/* The policy for this time: what was asked for now, else the setting.  Where nobody can be asked, the oldest
 * turns go. */
static ebb_overflow_policy policy_of(const ebb_chat *c)
{
    if (c->overflow.is_forced)
        return c->overflow.forced;
    if (ebb_context_view_takes_last_turn(c))
        return EBB_OVERFLOW_STOP;                /* there are no earlier turns to leave out */
    if (c->overflow.has_compacted && c->settings.overflow == EBB_OVERFLOW_COMPACT)
        return EBB_OVERFLOW_FORGET;
    if (c->overflow.cannot_grow && c->settings.overflow == EBB_OVERFLOW_GROW)
        return EBB_OVERFLOW_FORGET;
    return c->settings.overflow == EBB_OVERFLOW_ASK && c->overflow.is_unattended ? EBB_OVERFLOW_FORGET
                                                                                 : c->settings.overflow;
}

/* -- Asking ------------------------------------------------------------------------------------------- */

/* A line for each choice. */
static void ask_overflow_choice(ebb_chat *c, const ebb_prompt *p)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);
    ebb_truncation l = { 0 };
    ebb_buf text = { 0 };
    char larger[160];
    bool any = ebb_overflow_choose_turns(c, p, n_ctx / 2, &l);

    if (!any && p->n_ids >= n_ctx)
        ebb_buf_addf(&text, "%zu tokens do not fit the context of %u, and there is nothing older to leave out. "
                            "What now?", p->n_ids, n_ctx);
    else
        ebb_buf_addf(&text, "The context is full: %zu of %u tokens%s. What now?", p->n_ids, n_ctx,
                     p->n_ids < n_ctx ? ", which leaves no room for an answer" : "");
    if (any)
        ebb_buf_addf(&text, "\n/forget leaves the oldest %u turn%s out (%s%u tokens)\n/compact puts a summary in "
                            "their place", l.n_turns,
                     l.n_turns == 1 ? "" : "s", ebb_chat_about(c), l.n_tokens);
    if (ebb_overflow_describe_growth(c, p->n_ids, larger, sizeof larger))
        ebb_buf_addf(&text, "\n/grow %s", larger);
    ebb_buf_adds(&text, "\n/undo takes the question back");
    if (any)
        ebb_buf_adds(&text, "\nEnter does /forget. /set overflow forget, slide, compact, grow or stop decides for "
                            "good.");
    free(l.kept);
    ebb_chat_emit_event(c, EBB_EVENT_NOTICE, ebb_buf_text(&text), text.len, 0, 0);
    ebb_buf_fini(&text);
    c->overflow.asked_at = ebb_tree_leaf(&c->tree);
}

/* -- The decision ------------------------------------------------------------------------------------- */

/* What helps depends on whether anything but the question can become shorter. */
static ebb_status refuse_question(const ebb_chat *c, const ebb_prompt *p, ebb_error *err)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend);
    ebb_truncation l = { 0 };
    bool has_older = ebb_overflow_choose_turns(c, p, n_ctx / 2, &l);

    free(l.kept);
    if (ebb_context_view_takes_last_turn(c))
        return EBB_FAIL(err, EBB_CONTEXT, "the message has %zu tokens, and the guide reads %u: shorten it, or load "
                                          "another model with /model", p->n_ids, n_ctx);
    if (!has_older && ebb_overflow_is_untrained(c, p->n_ids))
        return EBB_FAIL(err, EBB_CONTEXT, "the message has %zu tokens, the context holds %u with its answer, and the "
                                          "model was trained for %u: shorten it, or take a model with a longer "
                                          "context", p->n_ids, n_ctx, ebb_overflow_trained(c));
    if (!has_older)
        return EBB_FAIL(err, EBB_CONTEXT, "the message has %zu tokens, the context holds %u with its answer: shorten "
                                          "it, or make room with /set ctx", p->n_ids, n_ctx);
    return EBB_FAIL(err, EBB_CONTEXT, "the conversation has %zu tokens, the context holds %u with the answer: "
                                      "/forget, /compact, /grow, /undo or /new", p->n_ids, n_ctx);
}

static ebb_status check_fits_at_all(const ebb_chat *c, const ebb_prompt *p, ebb_error *err)
{
    return !ebb_overflow_fills(c, p->n_ids) ? EBB_OK
         : c->overflow.is_unattended ? ebb_overflow_refuse_input(c, p->n_ids, err)
         : refuse_question(c, p, err);
}

static ebb_status forget_instead(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_error *err)
{
    ebb_status st = ebb_overflow_forget(c, p, next, err);

    /* What cannot be made smaller but fits goes as it is. */
    return st == EBB_CONTEXT && !c->overflow.is_forced && check_fits_at_all(c, p, NULL) == EBB_OK ? EBB_OK : st;
}

/* Tokens, or where they cannot go one by one, turns. */
static ebb_status slide_or_forget(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_error *err)
{
    bool slid;
    ebb_status st = ebb_overflow_slide(c, p, next, &slid, err);

    return st == EBB_OK && !slid ? forget_instead(c, p, next, err) : st;
}

static ebb_status apply_policy(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_overflow_outcome *outcome,
                               ebb_error *err)
{
    ebb_error why = { 0 };
    ebb_status st;

    *outcome = EBB_OVERFLOW_RESOLVED;
    switch (policy_of(c)) {
    case EBB_OVERFLOW_ASK:
        ask_overflow_choice(c, p);
        *outcome = EBB_OVERFLOW_ASKED;
        return EBB_OK;
    case EBB_OVERFLOW_STOP:
        return check_fits_at_all(c, p, err);
    case EBB_OVERFLOW_COMPACT:
        st = ebb_overflow_compact(c, p, next, &why);
        *outcome = st == EBB_OK ? EBB_OVERFLOW_SUMMING_UP : EBB_OVERFLOW_RESOLVED;
        break;
    case EBB_OVERFLOW_GROW:
        st = ebb_overflow_grow(c, p, next, &why);
        *outcome = st == EBB_OK ? EBB_OVERFLOW_GROWING : EBB_OVERFLOW_RESOLVED;
        break;
    case EBB_OVERFLOW_SLIDE:
        return slide_or_forget(c, p, next, err);
    default:
        return forget_instead(c, p, next, err);
    }
    if (st == EBB_OK)
        return EBB_OK;
    /* The model may have been closed for a larger context that could not be had. */
    if (c->overflow.is_forced || !c->backend) {
        *err = why;
        return st;
    }
    ebb_chat_notice(c, "%s; the oldest turns are forgotten instead", why.msg);
    return forget_instead(c, p, next, err);
}

ebb_status ebb_overflow_resolve(ebb_chat *c, ebb_prompt *p, ebb_overflow_next next, ebb_overflow_outcome *outcome,
                                ebb_error *err)
{
    ebb_status st;

    *outcome = EBB_OVERFLOW_RESOLVED;
    if (p->n_ids == 0)
        return EBB_FAIL(err, EBB_USAGE, "there is nothing to answer");
    if (!c->overflow.is_forced && ebb_overflow_fits(c, p->n_ids))
        return EBB_OK;
    st = apply_policy(c, p, next, outcome, err);
    c->overflow.is_forced = false;
    c->overflow.n_turns = 0;
    return st;
}

/* -- What the user does ---------------------------------------------------------------------------------- */

ebb_overflow_next ebb_overflow_choose_next(const ebb_chat *c, const ebb_node *leaf)
{
    bool is_full = c->overflow.asked_at == leaf || ebb_overflow_fills(c, ebb_chat_expect_tokens(c));

    while (leaf && leaf->m.role == EBB_ROLE_NOTE)
        leaf = leaf->parent;
    if (leaf && leaf->m.role == EBB_ROLE_USER)
        return EBB_NEXT_ANSWER;
    if (!leaf || leaf->m.role != EBB_ROLE_ASSISTANT || leaf->m.finish == EBB_FINISH_STOP ||
        leaf != ebb_tree_leaf(&c->tree))
        return EBB_NEXT_NOTHING;
    return is_full && ebb_turn_check_continue(c, &leaf->m, NULL) == EBB_OK ? EBB_NEXT_CONTINUE : EBB_NEXT_STAY;
}

/* -- Beforehand --------------------------------------------------------------------------------------------- */

static const char *const policy_outlook[] = {
    [EBB_OVERFLOW_ASK] = "you are asked what to do when it is full",
    [EBB_OVERFLOW_FORGET] = "when it is full, the oldest turns are forgotten",
    [EBB_OVERFLOW_COMPACT] = "when it is full, a summary takes the place of the oldest turns",
    [EBB_OVERFLOW_GROW] = "when it is full, it grows if memory allows",
    [EBB_OVERFLOW_STOP] = "when it is full, no more is answered",
    [EBB_OVERFLOW_SLIDE] = "when it is full, the oldest tokens behind the system prompt are left out",
};

void ebb_overflow_warn(ebb_chat *c)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend), n = ebb_chat_n_tokens(c);
    bool is_nearly_full = n_ctx && 10ull * n >= 8ull * n_ctx;

    ebb_overflow_warn_untrained(c, n);
    if (is_nearly_full && !c->overflow.is_warned)
        ebb_chat_notice(c, "The context is %u %% full (%u of %u tokens): %s. /forget, /compact or /grow act now; "
                           "/pin keeps a "
                        "message; /set overflow decides.", (unsigned)(100ull * n / n_ctx), n, n_ctx,
                        policy_outlook[policy_of(c)]);
    c->overflow.is_warned = is_nearly_full;
}

bool ebb_overflow_continues(const ebb_chat *c, const ebb_message *answer)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend), limit = c->settings.n_predict;
    ebb_overflow_policy how = policy_of(c);

    return answer->finish == EBB_FINISH_LENGTH && !(limit && c->turn.n_spent >= limit) &&
           ebb_overflow_fills(c, ebb_chat_n_tokens(c)) &&
           ebb_chat_tokens_of(c, answer) < n_ctx / 2 && how != EBB_OVERFLOW_ASK && how != EBB_OVERFLOW_STOP;
}
