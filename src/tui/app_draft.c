/* What was typed and not sent (app.h): kept while it is typed, and when one leaves. */
#include "app.h"
#include "commands.h"

static const double keep_s = 1.0;                /* most of the typing that kill -9 takes */

/* A conversation without a message has no name yet that would find it again. */
static const char *draft_of(const ebb_app *a)
{
    return ebb_chat_n_messages(a->front.chat) > 0 ? ebb_chat_session_name(a->front.chat) : "";
}

static void add_unsent(ebb_buf *out, const char *text)
{
    if (*text && out->len > 0)
        ebb_buf_addc(out, '\n');
    ebb_buf_adds(out, text);
}

/* Messages that wait, and the line under way, but for what is a command or belongs to one. */
static void gather(const ebb_app *a, ebb_buf *out)
{
    ebb_buf line = { 0 };

    for (size_t i = 0; i < a->n_queue; i++)
        add_unsent(out, a->queue[i]);
    if (!a->front.editing && !a->front.is_cutting && ebb_editor_text(&a->editor, &line) &&
        !ebb_command_is(ebb_buf_text(&line)))
        add_unsent(out, ebb_buf_text(&line));
    ebb_buf_fini(&line);
}

bool ebb_app_leave(ebb_app *a)
{
    ebb_buf text = { 0 };
    ebb_error err;
    bool is_kept;

    ebb_app_outside_end(a);
    gather(a, &text);
    is_kept = text.len > 0 && a->front.state_dir.len > 0 &&
              ebb_draft_keep(a->front.state_dir.data, draft_of(a), text.data, text.len, &err) == EBB_OK;
    if (is_kept || text.len == 0)
        ebb_draft_unguard(&a->draft);
    ebb_buf_fini(&text);
    return is_kept;
}

void ebb_app_take_draft(ebb_app *a)
{
    ebb_buf text = { 0 };

    if (a->front.state_dir.len > 0 && ebb_draft_take(a->front.state_dir.data, draft_of(a), &text) && text.len > 0) {
        ebb_front_offer(&a->front, text.data, text.len);
        ebb_app_hint(a, "this was not sent when you left; Enter sends it, Ctrl-C drops it");
    }
    ebb_buf_fini(&text);
}

/* Text that grows is kept within a second; when it is sent or taken away, that is so at once. */
void ebb_app_draft_tick(ebb_app *a, double now_s)
{
    size_t seen = a->editor.n_edits + a->n_queue;
    bool is_empty = a->editor.text.len == 0 && a->n_queue == 0;
    ebb_buf text = { 0 };

    if (is_empty && a->draft.fd >= 0)
        a->draft_due_s = now_s;
    else if (!is_empty && seen != a->draft_seen && a->draft_due_s < 0)
        a->draft_due_s = now_s + keep_s;
    a->draft_seen = seen;
    if (a->draft_due_s < 0 || now_s < a->draft_due_s)
        return;
    a->draft_due_s = -1;
    gather(a, &text);
    if (a->front.state_dir.len > 0)
        ebb_draft_guard(&a->draft, a->front.state_dir.data, draft_of(a), ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
}
