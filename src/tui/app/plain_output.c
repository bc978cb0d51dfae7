/* What the plain front end prints: answers, messages, what the chat has to say (plain.h). */
#include "app/plain.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "transcript/turn_stats_line.h"

static void plain_put(ebb_plain *p, const char *s, size_t n)
{
    ebb_buf visible = { 0 };

    ebb_utf8_add_visible(&visible, s, n, false);
    if (visible.len > 0) {
        fwrite(visible.data, 1, visible.len, stdout);
        p->at_line_start = visible.data[visible.len - 1] == '\n';
    }
    ebb_buf_fini(&visible);
}

void ebb_plain_fresh_line(ebb_plain *p)
{
    if (!p->at_line_start)
        putchar('\n');
    p->at_line_start = true;
    p->has_prompt = false;
}

void ebb_plain_say(ebb_frontend *f, ebb_say kind, const char *text, size_t n)
{
    ebb_plain *p = (ebb_plain *)f;

    p->has_told |= kind == EBB_SAY_NOTICE;
    ebb_plain_fresh_line(p);
    fputs(kind == EBB_SAY_ERROR ? "Error: " : kind == EBB_SAY_NOTICE ? "Note: " : "", stdout);
    plain_put(p, text, n);
    ebb_plain_fresh_line(p);
}

/* -- Answers ----------------------------------------------------------------------------- */

/* Up to where an answer may be printed: for a screen reader, whole sentences. */
static size_t printable(const ebb_plain *p, const char *s, size_t n, bool is_done)
{
    if (is_done || !p->frontend.opts->accessible)
        return n;
    while (n > p->n_shown && s[n - 1] != '\n' &&
           !(n > p->n_shown + 1 && s[n - 1] == ' ' && strchr(".!?:", s[n - 2])))
        n--;
    return n;
}

static void show_message(ebb_plain *p, const ebb_message *m)
{
    ebb_plain_fresh_line(p);
    fputs(m->role == EBB_ROLE_USER ? "You: " : m->role == EBB_ROLE_ASSISTANT ? "Model: " :
          m->role == EBB_ROLE_NOTE ? "Note: " : "System: ", stdout);
    p->at_line_start = false;
    plain_put(p, m->text, m->n_text);
    ebb_plain_fresh_line(p);
}

static const ebb_message *last_message(const ebb_plain *p)
{
    size_t n = ebb_chat_n_messages(p->frontend.chat);

    return n > 0 ? ebb_chat_message(p->frontend.chat, n - 1) : NULL;
}

static void set_shown(ebb_plain *p, const ebb_message *m, size_t n)
{
    if (n > p->n_shown && p->shown.len == p->n_shown && n <= m->n_text)
        ebb_buf_add(&p->shown, m->text + p->n_shown, n - p->n_shown);
    p->n_shown = n;
}

static void leave_answer(ebb_plain *p)
{
    ebb_plain_fresh_line(p);
    ebb_buf_clear(&p->shown);
    p->in_answer = false;
    p->n_shown = 0;
    p->shown_id = 0;
}

static void show_answer_text(ebb_plain *p, const ebb_message *m, bool is_done)
{
    size_t end = printable(p, m->text, m->n_text, is_done);

    p->shown_id = m->id > 0 ? m->id : 0;
    if (!p->in_answer && (end > 0 || is_done)) {
        ebb_plain_fresh_line(p);
        fputs("Model: ", stdout);
        p->at_line_start = false;
        p->in_answer = true;
    }
    if (end > p->n_shown)
        plain_put(p, m->text + p->n_shown, end - p->n_shown);
    set_shown(p, m, end > p->n_shown ? end : p->n_shown);
    if (is_done) {
        leave_answer(p);
        p->milestone = 0;
        if (p->is_terminal) {
            ebb_buf turn_stats = { 0 };
            ebb_turn_stats_line(m, true, &turn_stats);
            printf("(%s)\n", ebb_buf_text(&turn_stats));
            ebb_buf_fini(&turn_stats);
        }
    }
}

/* Where the answer that is shown stands; where the messages end if it does not. */
static size_t find_shown(const ebb_plain *p)
{
    size_t n = ebb_chat_n_messages(p->frontend.chat), i = 0;

    while (i < n && ebb_chat_message(p->frontend.chat, i)->id != p->shown_id)
        i++;
    return i;
}

/* Another process has gone on with another branch, where the answer that is shown is not: its last question, as a turn
 * of its own.  A copy of the answer, under another id, is that answer.  false: it has not. */
static bool show_other_branch(ebb_plain *p)
{
    size_t n = ebb_chat_n_messages(p->frontend.chat);
    const ebb_message *m = last_message(p);

    if (!p->shown_id || !m || m->role != EBB_ROLE_ASSISTANT || find_shown(p) < n || p->shown.len < p->n_shown ||
        (m->n_text >= p->shown.len && memcmp(m->text, ebb_buf_text(&p->shown), p->shown.len) == 0))
        return false;
    leave_answer(p);
    if (n > 1)
        show_message(p, ebb_chat_message(p->frontend.chat, n - 2));
    return true;
}

/* Behind the answer that is shown, another process has gone on meanwhile: the end of the one, and what came before the
 * answer that is shown now.  false: it has not. */
static bool show_what_followed(ebb_plain *p)
{
    size_t n = ebb_chat_n_messages(p->frontend.chat), i = find_shown(p);

    if (!p->shown_id || i + 1 >= n)
        return false;
    show_answer_text(p, ebb_chat_message(p->frontend.chat, i), true);
    while (++i < n)
        if (i + 1 < n || last_message(p)->role != EBB_ROLE_ASSISTANT)
            show_message(p, ebb_chat_message(p->frontend.chat, i));
    if (last_message(p)->role == EBB_ROLE_ASSISTANT)
        p->shown_id = last_message(p)->id;
    return true;
}

static void show_answer(ebb_plain *p, bool is_done)
{
    show_what_followed(p);
    if (last_message(p) && last_message(p)->role == EBB_ROLE_ASSISTANT)
        show_answer_text(p, last_message(p), is_done);
}

/* -- Events ------------------------------------------------------------------------------ */

static void announce(ebb_plain *p, const char *what, const ebb_chat_event *ev)
{
    unsigned quarter = ev->total ? (unsigned)(4 * ev->done / ev->total) : 0;

    if (!p->is_terminal || ev->total == 0 || quarter <= p->milestone || quarter > 3)
        return;
    p->milestone = quarter;
    ebb_plain_fresh_line(p);
    printf("Note: %s, %u%%\n", what, quarter * 25);
}

void ebb_plain_show_history(ebb_plain *p)
{
    for (size_t i = 0; i < ebb_chat_n_messages(p->frontend.chat); i++)
        show_message(p, ebb_chat_message(p->frontend.chat, i));
}

bool ebb_plain_note_messages(ebb_plain *p)
{
    size_t n = p->n_known;
    int64_t last = p->last_known;

    p->n_known = ebb_chat_n_messages(p->frontend.chat);
    p->last_known = last_message(p) ? last_message(p)->id : 0;
    return p->n_known != n || p->last_known != last;
}

/* Another list of messages: a session was opened, something was undone.  Or a mark on one: the command has told. */
static void on_changed(ebb_plain *p)
{
    bool is_other_list = ebb_plain_note_messages(p);

    if (p->is_opening)
        ebb_plain_show_history(p);
    else if (show_what_followed(p) || show_other_branch(p))
        show_answer(p, false);
    else if (!ebb_chat_is_busy(p->frontend.chat) && (is_other_list || !p->has_told))
        ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "the conversation has %zu message%s now",
                       ebb_chat_n_messages(p->frontend.chat), ebb_chat_n_messages(p->frontend.chat) == 1 ? "" : "s");
    p->is_opening = false;
}

void ebb_plain_take_events(ebb_plain *p)
{
    ebb_chat_event ev;

    while (ebb_chat_event_next(p->frontend.chat, &ev))
        switch (ev.kind) {
        case EBB_EVENT_LOADING:
            p->has_failed = false;
            announce(p, "loading the model", &ev);
            break;
        case EBB_EVENT_READY:
            p->milestone = 0;
            ebb_frontend_ready(&p->frontend);
            break;
        case EBB_EVENT_PREFILL: announce(p, "reading the prompt", &ev); break;
        case EBB_EVENT_TEXT: show_answer(p, false); break;
        case EBB_EVENT_DONE: show_answer(p, true); break;
        case EBB_EVENT_NOTE:
        case EBB_EVENT_WARNING:
        case EBB_EVENT_NOTICE: ebb_plain_say(&p->frontend, EBB_SAY_NOTICE, ev.text, ev.n_text); break;
        case EBB_EVENT_REPORT: ebb_plain_say(&p->frontend, EBB_SAY_TEXT, ev.text, ev.n_text); break;
        case EBB_EVENT_ERROR:
            if (p->in_answer)
                show_answer(p, true);
            p->shown_id = 0;
            ebb_plain_say(&p->frontend, EBB_SAY_ERROR, ev.text, ev.n_text);
            p->has_failed = !ebb_chat_is_ready(p->frontend.chat);
            break;
        case EBB_EVENT_REFUSED:
            p->is_opening = false;
            ebb_plain_say(&p->frontend, EBB_SAY_ERROR, ev.text, ev.n_text);
            break;
        case EBB_EVENT_CHANGED: on_changed(p); break;
        case EBB_EVENT_SPECULATIVE_PREFILL: break; /* what is typed here comes in whole lines */
        }
    ebb_plain_note_messages(p);
    p->has_told = false;
}

void ebb_plain_skip_shown(ebb_plain *p)
{
    const ebb_message *m = last_message(p);

    if (p->in_answer)
        return;
    p->shown_id = 0;
    if (!ebb_chat_is_busy(p->frontend.chat) || !m || m->role != EBB_ROLE_ASSISTANT)
        return;
    ebb_buf_clear(&p->shown);
    p->n_shown = 0;
    set_shown(p, m, m->n_text);
    p->shown_id = m->id > 0 ? m->id : 0;
}
