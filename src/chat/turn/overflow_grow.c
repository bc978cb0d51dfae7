/* A larger context: the model is opened again with it, and K and V are read back from disk
 * (overflow.h). */
#include <stdio.h>
#include <stdlib.h>

#include "conversation/chat_priv.h"
#include "models/models.h"
#include "models/plan_text.h"

/* Double the context until `need` tokens and an answer fit, up to the length that the model was
 * trained for.  false: that length is not enough. */
static bool choose_larger_ctx(const ebb_chat *c, size_t need, uint32_t *out)
{
    uint32_t n_ctx = c->backend->ops->n_ctx(c->backend), trained = ebb_overflow_trained(c),
        most = trained ? trained : UINT32_MAX / 2;
    uint64_t want = 2ull * n_ctx;

    while (want < most && want < need + ebb_overflow_reserve(c))
        want *= 2;
    *out = want < most ? (uint32_t)want : most;
    return *out > n_ctx && *out > need;
}

/* The plan for the larger context; UNSUPPORTED, NOTFOUND or BUDGET: not possible, err says why. */
static ebb_status plan_larger(ebb_chat *c, size_t need, uint32_t *n_ctx, ebb_plan *plan, ebb_error *err)
{
    ebb_engine_opts opts = c->opening.opts;
    ebb_status st = ebb_chat_need_ids(c, "the context is the server's", err);

    if (st != EBB_OK)
        return st;
    if (!c->ops.plan || !choose_larger_ctx(c, need, n_ctx))
        return EBB_FAIL(err, EBB_UNSUPPORTED, "the model was trained for %u tokens, no more",
                        ebb_overflow_trained(c));
    st = ebb_chat_check_file_at_hand(c, err);
    if (st != EBB_OK)
        return st;
    opts.n_ctx = *n_ctx;
    st = c->ops.plan(c->ops.arg, c->backend, &opts, plan, err);
    if (st == EBB_OK && !plan->fits)
        return EBB_FAIL(err, EBB_BUDGET, "a context of %u tokens does not fit the memory (%s)", *n_ctx, plan->why);
    return st;
}

bool ebb_overflow_describe_growth(ebb_chat *c, size_t need, char *out, size_t cap)
{
    char total[16], budget[16];
    ebb_plan plan;
    uint32_t n_ctx;

    if (plan_larger(c, need, &n_ctx, &plan, NULL) != EBB_OK)
        return false;
    snprintf(out, cap, "takes a context of %u tokens (%s of %s)", n_ctx, ebb_size_text(plan.total_bytes, total),
             ebb_size_text(plan.budget_bytes, budget));
    return true;
}

static ebb_node *add_growth_note(ebb_chat *c, uint32_t n_ctx, const ebb_plan *plan, ebb_overflow_next next)
{
    char text[400];
    ebb_buf line = { 0 };
    ebb_node *note;

    ebb_plan_line(&line, plan);
    snprintf(text, sizeof text, "The context grows from %u to %u tokens: %.240s.",
             c->backend->ops->n_ctx(c->backend), n_ctx, ebb_buf_text(&line));
    ebb_buf_fini(&line);
    note = ebb_overflow_add_note(c, EBB_OVERFLOW_GROW, next, text);
    return note && ebb_overflow_move_below(c, note, next >= EBB_NEXT_CONTINUE ? ebb_tree_leaf(&c->tree) : NULL)
           ? note : NULL;
}

/* The open model is closed only once the opening with the other options has been accepted. */
ebb_status ebb_overflow_reopen(ebb_chat *c, uint32_t n_ctx, uint64_t ram_bytes, ebb_error *err)
{
    uint32_t before = c->opening.opts.n_ctx;
    uint64_t ram_before = c->opening.opts.ram_bytes;
    char *path;
    ebb_status st = ebb_chat_model_path(c, &path, err);

    if (st != EBB_OK)
        return st;
    free(c->overflow.path);
    c->overflow.path = path;
    c->opening.opts.n_ctx = n_ctx;
    c->opening.opts.ram_bytes = ram_bytes;
    st = ebb_chat_open_backend(c, path, err);
    if (st != EBB_OK) {
        c->opening.opts.n_ctx = before;
        c->opening.opts.ram_bytes = ram_before;
    }
    c->overflow.has_grown = st == EBB_OK;
    c->overflow.was_asked = false;
    c->overflow.n_ctx_before = before;
    c->overflow.ram_bytes_before = ram_before;
    return st;
}

ebb_status ebb_overflow_set_ctx(ebb_chat *c, uint32_t n_ctx, ebb_error *err)
{
    ebb_engine_opts opts = c->opening.opts;
    ebb_plan plan = { 0 };
    ebb_buf line = { 0 };
    ebb_status st;

    opts.n_ctx = n_ctx;
    st = c->ops.plan(c->ops.arg, c->backend, &opts, &plan, err);
    if (st == EBB_OK && !plan.fits)
        st = EBB_FAIL(err, EBB_BUDGET, "that context does not fit the memory (%s)", plan.why);
    if (st == EBB_OK)
        st = ebb_overflow_shrink(c, plan.n_ctx, err);
    if (st != EBB_OK)
        return st;
    ebb_plan_line(&line, &plan);
    ebb_chat_notice(c, "the model is opened with a context of %u tokens: %.240s", plan.n_ctx, ebb_buf_text(&line));
    ebb_buf_fini(&line);
    st = ebb_overflow_reopen(c, plan.n_ctx, c->opening.opts.ram_bytes, err);
    c->overflow.was_asked = st == EBB_OK;
    return st;
}

ebb_status ebb_overflow_grow(ebb_chat *c, const ebb_prompt *p, ebb_overflow_next next, ebb_error *err)
{
    ebb_plan plan = { 0 };
    ebb_node *note;
    uint32_t n_ctx;
    ebb_status st = plan_larger(c, p->n_ids, &n_ctx, &plan, err);

    if (st != EBB_OK)
        return st;
    note = add_growth_note(c, n_ctx, &plan, next);
    if (!note)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a note");
    st = ebb_overflow_reopen(c, n_ctx, c->opening.opts.ram_bytes, err);
    if (st != EBB_OK)
        return st;
    ebb_chat_emit_event(c, EBB_EVENT_NOTE, note->m.text, note->m.n_text, 0, 0);
    return EBB_OK;
}

bool ebb_overflow_undo_growth(ebb_chat *c, const ebb_backend_event *ev)
{
    bool was_policy = !c->overflow.was_asked && c->settings.overflow == EBB_OVERFLOW_GROW;
    ebb_error err = { 0 };

    if (!c->overflow.has_grown)
        return false;
    c->overflow.has_grown = false;
    c->opening.opts.n_ctx = c->overflow.n_ctx_before;
    c->opening.opts.ram_bytes = c->overflow.ram_bytes_before;
    c->overflow.cannot_grow |= was_policy;       /* the setting stays: another model may be able to */
    ebb_chat_notice(c, "%.*s; the model stays as it was%s", (int)ev->n_text, ev->text,
                    was_policy ? ", and the oldest turns are forgotten when it is full" : "");
    return ebb_chat_open_backend(c, c->overflow.path, &err) == EBB_OK;
}
