/* What the backend has sent is handled, on the chat's thread (chat_priv.h). */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "conversation/chat_priv.h"
#include "models/models.h"

#define POLL_MS 250              /* how often a long prefill tells how far it is */

/* A larger context could not be had: the model comes back as it was. */
static bool restore_context_size(ebb_chat *c, const ebb_backend_event *ev)
{
    bool is_answer_pending = c->is_answer_pending;
    ebb_error err = { 0 };

    if (!c->overflow.has_grown)
        return false;
    c->overflow.has_grown = false;
    c->engine_opts.n_ctx = c->overflow.n_ctx_before;
    if (!c->overflow.was_asked)
        c->settings.overflow = EBB_OVERFLOW_FORGET;
    ebb_chat_notice(c, "%.*s; the context stays as it was%s", (int)ev->n_text, ev->text,
                    c->overflow.was_asked ? "" : ", and the oldest turns are forgotten when it is full");
    if (ebb_chat_open_model(c, c->overflow.path ? c->overflow.path : EBB_MODELS_GUIDE, &err) != EBB_OK)
        return false;
    c->is_answer_pending = is_answer_pending;
    return true;
}

static void on_load_failed(ebb_chat *c, const ebb_backend_event *ev)
{
    if (restore_context_size(c, ev))
        return;
    c->state = EBB_CHAT_FAILED;
    c->is_answer_pending = false;
    ebb_chat_emit_event(c, EBB_EVENT_ERROR, ev->text, ev->n_text, 0, 0);
}

/* What stands behind the last answer that has words was perhaps never read: its answer may have been stopped before. */
static uint64_t count_unread(const ebb_chat *c)
{
    uint64_t n = 0;

    for (size_t i = c->tree.n_path; i > 0; i--) {
        const ebb_message *m = &c->tree.path[i - 1]->m;
        if (m->role == EBB_ROLE_ASSISTANT && m->n_ids > 0)
            break;
        n += m->n_ids;
    }
    return n;
}

/* Some of what should be there is not: the turn does not count that as its own. */
static void on_prefill(ebb_chat *c, const ebb_backend_event *ev)
{
    uint64_t own = count_unread(c) > c->n_turn ? count_unread(c) : c->n_turn;

    if (ebb_chat_facts(c)) {                     /* what it computes again is its own matter, and the receipt's */
        ebb_chat_emit_event(c, EBB_EVENT_PREFILL, NULL, 0, ev->done, ev->total);
        return;
    }
    c->is_prefilling = ev->done < ev->total;
    if (c->is_prefilling) {
        c->prefill_seen = 0;
        ebb_chat_arm_timer(c, POLL_MS);
        if (ev->total > own + 1)
            ebb_chat_notice(c, "%llu tokens of the conversation are computed again: they are neither in memory nor on disk any more",
                            (unsigned long long)(ev->total - own));
    }
    ebb_chat_emit_event(c, EBB_EVENT_PREFILL, NULL, 0, ev->done, ev->total);
}

static void handle_backend_event(ebb_chat *c, const ebb_backend_event *ev)
{
    switch (ev->kind) {
    case EBB_BACKEND_TOKEN:
        break;                                   /* on_tokens */
    case EBB_BACKEND_LOADING:
        ebb_chat_emit_event(c, EBB_EVENT_LOADING, NULL, 0, ev->done, ev->total);
        break;
    case EBB_BACKEND_READY:
        ebb_chat_on_ready(c);
        break;
    case EBB_BACKEND_FAILED:
        on_load_failed(c, ev);
        break;
    case EBB_BACKEND_PREFILL:
        on_prefill(c, ev);
        break;
    case EBB_BACKEND_END:
        c->is_prefilling = false;
        ebb_chat_on_end(c, ev);
        break;
    case EBB_BACKEND_NOTICE:
        ebb_chat_emit_event(c, EBB_EVENT_NOTICE, ev->text, ev->n_text, 0, 0);
        break;
    case EBB_BACKEND_SPECULATIVE_PREFILL:
        if (c->overflow.prefill_note && c->overflow.prefill_note == ebb_context_view_note(c->tree.path, c->tree.n_path))
            ebb_chat_record_cache_salt(c, &ev->cache_salt);
        c->overflow.prefill_note = NULL;
        ebb_chat_emit_event(c, EBB_EVENT_SPECULATIVE_PREFILL, NULL, 0, ev->done, ev->total);
        break;
    case EBB_BACKEND_BUDGET_SET:
        c->awaits_budget = false;
        ebb_chat_emit_event(c, EBB_EVENT_NOTICE, ev->text, ev->n_text, 0, 0);
        break;
    case EBB_BACKEND_REPORT:
        c->awaits_plan = false;
        ebb_chat_emit_event(c, EBB_EVENT_REPORT, ev->text, ev->n_text, 0, 0);
        break;
    }
}

static void report_lost_events(ebb_chat *c)
{
    bool has_lost_event;

    pthread_mutex_lock(&c->lock);
    has_lost_event = c->has_lost_event;
    c->has_lost_event = false;
    pthread_mutex_unlock(&c->lock);
    if (has_lost_event)
        c->awaits_budget = c->awaits_plan = false;
    if (has_lost_event)
        ebb_chat_notice(c, "out of memory: a part of the answer was lost");
}

/* All tokens that wait make one event. */
static void on_token_run(ebb_chat *c, ebb_queued_backend_event *queued)
{
    size_t from = c->answer ? c->answer->m.n_text : 0;

    c->is_prefilling = false;
    do {
        ebb_chat_on_token(c, &queued->ev);
        free(queued->text);
    } while (ebb_chat_next_backend_event(c, true, queued));
    if (c->answer && c->answer->m.n_text > from)
        ebb_chat_emit_event(c, EBB_EVENT_TEXT, c->answer->m.text + from, c->answer->m.n_text - from, 0, 0);
}

/* One event, or a run of tokens: what is told and what stands go together. */
static bool handle_next(ebb_chat *c)
{
    ebb_queued_backend_event queued;

    if (!ebb_chat_next_backend_event(c, false, &queued))
        return false;
    if (queued.ev.kind == EBB_BACKEND_TOKEN) {
        on_token_run(c, &queued);
    } else {
        handle_backend_event(c, &queued.ev);
        free(queued.text);
    }
    report_lost_events(c);
    return true;
}

void ebb_chat_handle_backend_events(ebb_chat *c)
{
    while (handle_next(c))
        ;
}

static void clear_fd(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof count) < 0)
        return;                                  /* EAGAIN: it was clear */
}

static void on_timer(ebb_chat *c)
{
    if (!c->timer_ns || ebb_clock_ns() < c->timer_ns)
        return;
    c->timer_ns = 0;
    clear_fd(c->timer);
    if ((c->answer && c->answer->is_dirty) || (c->retry_ns && ebb_clock_ns() >= c->retry_ns))
        ebb_chat_save(c, false);
    else if (c->retry_ns)
        ebb_chat_arm_timer(c, (uint32_t)((c->retry_ns - ebb_clock_ns()) / 1000000u) + 1);
    if (c->is_prefilling) {
        ebb_stats s;

        c->backend->ops->stats(c->backend, &s);
        if (s.prefill_done > c->prefill_seen && s.prefill_done < s.prefill_total)
            ebb_chat_emit_event(c, EBB_EVENT_PREFILL, NULL, 0, s.prefill_done, s.prefill_total);
        c->prefill_seen = s.prefill_done;
        ebb_chat_arm_timer(c, POLL_MS);
    }
    ebb_chat_follow_poll(c);
}

static bool pop_ui_event(ebb_chat *c, ebb_chat_event *out)
{
    if (c->first_ui_event == c->n_ui_events)
        return false;
    free(c->shown);
    c->shown = c->ui_events[c->first_ui_event].text;
    *out = c->ui_events[c->first_ui_event++].ev;
    out->text = c->shown;
    return true;
}

bool ebb_chat_event_next(ebb_chat *c, ebb_chat_event *out)
{
    if (pop_ui_event(c, out))
        return true;
    clear_fd(c->wake);                           /* first, so that what comes now rings again */
    on_timer(c);
    while (c->first_ui_event == c->n_ui_events)
        if (!handle_next(c))
            return false;
    ebb_chat_wake(c);                                /* there may be more than this one */
    return pop_ui_event(c, out);
}
