/* Backend messages are handled, on the chat's thread (chat_priv.h). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "conversation/chat_priv.h"
#include "turn/replan.h"

#define POLL_MS 250              /* between two reports of a long prefill's progress */

/* Tokens behind the model's last answer: a prefill that was stopped may never have read them. */
static uint64_t count_unread(const ebb_chat *c)
{
    uint64_t n = 0;

    for (size_t i = c->tree.n_path; i > 0; i--) {
        const ebb_message *m = &c->tree.path[i - 1]->m;
        if (m->role == EBB_ROLE_ASSISTANT && m->n_ids > 0 &&
            memcmp(m->ids_model, c->info->fingerprint, sizeof m->ids_model) == 0)
            break;                               /* what another model wrote, this one has not read yet */
        n += m->n_ids;
    }
    return n;
}

/* Progress of a prefill; a notice if ids of earlier turns have to be computed again. */
static void on_prefill(ebb_chat *c, const ebb_backend_event *ev)
{
    uint64_t own = count_unread(c) > c->turn.n_new ? count_unread(c) : c->turn.n_new;

    if (ebb_chat_facts(c)) {                     /* a server's recomputation is shown by its turn stats alone */
        ebb_chat_emit_event(c, EBB_EVENT_PREFILL, NULL, 0, ev->done, ev->total);
        return;
    }
    c->turn.is_prefilling = ev->done < ev->total;
    if (c->turn.is_prefilling) {
        c->turn.prefill_seen = 0;
        ebb_chat_arm_timer(c, POLL_MS);
        if (ev->total > own + 1 && !c->quality.is_open)  /* its price was said */
            ebb_chat_notice(c, "%llu tokens of the conversation are computed again: they are neither in memory nor on "
                               "disk any more",
                            (unsigned long long)(ev->total - own));
    }
    ebb_chat_emit_event(c, EBB_EVENT_PREFILL, NULL, 0, ev->done, ev->total);
}

static void handle_backend_event(ebb_chat *c, const ebb_backend_event *ev)
{
    switch (ev->kind) {
    case EBB_BACKEND_LOADING:
        ebb_chat_emit_event(c, EBB_EVENT_LOADING, NULL, 0, ev->done, ev->total);
        break;
    case EBB_BACKEND_READY:
    case EBB_BACKEND_FAILED:
    case EBB_BACKEND_TOKEN:
        ebb_turn_on_backend(c, ev);
        break;
    case EBB_BACKEND_PREFILL:
        on_prefill(c, ev);
        break;
    case EBB_BACKEND_END:
        c->turn.is_prefilling = false;
        ebb_turn_on_backend(c, ev);
        break;
    case EBB_BACKEND_NOTICE:
        ebb_chat_emit_event(c, EBB_EVENT_NOTICE, ev->text, ev->n_text, 0, 0);
        break;
    case EBB_BACKEND_WARNING:
        ebb_chat_emit_event(c, EBB_EVENT_WARNING, ev->text, ev->n_text, 0, 0);
        break;
    case EBB_BACKEND_SPECULATIVE_PREFILL:
        if (c->overflow.prefill_note && c->overflow.prefill_note == ebb_context_view_note(c->tree.path, c->tree.n_path))
            ebb_chat_record_cache_salt(c, &ev->cache_salt);
        if (c->overflow.prefill_note && c->overflow.prefill_note == c->overflow.gap_note)
            ebb_overflow_drop_gap(c);
        c->overflow.prefill_note = NULL;
        ebb_chat_emit_event(c, EBB_EVENT_SPECULATIVE_PREFILL, NULL, 0, ev->done, ev->total);
        break;
    case EBB_BACKEND_BUDGET_SET:
        c->awaits_budget = false;
        if (ev->finish == EBB_FINISH_STOP)
            c->opening.opts.ram_bytes = ev->total;       /* it holds when the model is opened again, too */
        ebb_chat_emit_event(c, EBB_EVENT_NOTICE, ev->text, ev->n_text, 0, 0);
        ebb_replan_offer(c);
        break;
    case EBB_BACKEND_REPORT:
        c->awaits_plan = false;
        ebb_chat_emit_event(c, EBB_EVENT_REPORT, ev->text, ev->n_text, 0, 0);
        break;
    }
}

static void note_lost_text(ebb_chat *c)
{
    pthread_mutex_lock(&c->queues.lock);
    c->turn.has_lost_text |= c->queues.has_lost_text;
    c->queues.has_lost_text = false;
    pthread_mutex_unlock(&c->queues.lock);
}

/* All tokens that wait make one event. */
static void on_token_run(ebb_chat *c, ebb_queued_backend_event *queued)
{
    size_t from = c->turn.answer ? c->turn.answer->m.n_text : 0;

    c->turn.is_prefilling = false;
    do {
        ebb_turn_on_backend(c, &queued->ev);
        free(queued->text);
    } while (ebb_chat_next_backend_event(c, true, queued));
    if (c->turn.answer && c->turn.answer->m.n_text > from)
        ebb_chat_emit_event(c, EBB_EVENT_TEXT, c->turn.answer->m.text + from, c->turn.answer->m.n_text - from, 0, 0);
}

/* Handle one event, or a run of tokens: the UI events and the tree change together. */
static bool handle_next(ebb_chat *c)
{
    ebb_queued_backend_event queued;

    if (!ebb_chat_next_backend_event(c, false, &queued))
        return false;
    note_lost_text(c);                           /* what was lost before an end counts with it */
    if (queued.ev.kind == EBB_BACKEND_TOKEN) {
        on_token_run(c, &queued);
    } else {
        handle_backend_event(c, &queued.ev);
        free(queued.text);
    }
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
    if (!c->queues.timer_ns || ebb_clock_ns() < c->queues.timer_ns)
        return;
    c->queues.timer_ns = 0;
    clear_fd(c->queues.timer);
    if ((c->turn.answer && c->turn.answer->is_dirty) || (c->saving.retry_ns && ebb_clock_ns() >= c->saving.retry_ns))
        ebb_chat_save(c, false);
    else if (c->saving.retry_ns)
        ebb_chat_arm_timer(c, (uint32_t)((c->saving.retry_ns - ebb_clock_ns()) / 1000000u) + 1);
    if (c->turn.is_prefilling) {
        ebb_stats s;

        c->backend->ops->stats(c->backend, &s);
        if (s.prefill_done > c->turn.prefill_seen && s.prefill_done < s.prefill_total)
            ebb_chat_emit_event(c, EBB_EVENT_PREFILL, NULL, 0, s.prefill_done, s.prefill_total);
        c->turn.prefill_seen = s.prefill_done;
        ebb_chat_arm_timer(c, POLL_MS);
    }
    ebb_chat_follow_poll(c);
}

static bool pop_ui_event(ebb_chat *c, ebb_chat_event *out)
{
    if (c->queues.first_ui_event == c->queues.n_ui_events)
        return false;
    free(c->queues.shown);
    c->queues.shown = c->queues.ui_events[c->queues.first_ui_event].text;
    *out = c->queues.ui_events[c->queues.first_ui_event++].ev;
    out->text = c->queues.shown ? c->queues.shown : out->text;
    return true;
}

bool ebb_chat_event_next(ebb_chat *c, ebb_chat_event *out)
{
    if (pop_ui_event(c, out))
        return true;
    clear_fd(c->queues.wake);                           /* first, so that what comes now rings again */
    on_timer(c);
    ebb_chat_job_poll(c);
    while (c->queues.first_ui_event == c->queues.n_ui_events && handle_next(c))
        ;
    if (c->queues.first_ui_event == c->queues.n_ui_events)
        ebb_chat_share_if_idle(c);
    if (c->queues.first_ui_event == c->queues.n_ui_events) {
        if (ebb_chat_gather_reference(c))
            ebb_chat_wake(c);
        return false;
    }
    ebb_chat_wake(c);                                /* there may be more than this one */
    return pop_ui_event(c, out);
}
