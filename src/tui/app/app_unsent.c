/* Unsent text (app.h): saved during typing, and when the program ends. */
#include "app/app.h"
#include "command/slash.h"

static const double autosave_s = 1.0;            /* most of the typing that kill -9 takes */

/* "" for a conversation without messages: it has no name yet by which to find the text again. */
static const char *session_of_unsent(const ebb_app *a)
{
    return ebb_chat_n_messages(a->frontend.chat) > 0 ? ebb_chat_session_name(a->frontend.chat) : "";
}

static void add_unsent(ebb_buf *out, const char *text)
{
    if (*text && out->len > 0)
        ebb_buf_addc(out, '\n');
    ebb_buf_adds(out, text);
}

/* Queued messages and the input, unless the input is a command or being edited for one. */
static void gather_unsent(const ebb_app *a, ebb_buf *out)
{
    ebb_buf line = { 0 };

    for (size_t i = 0; i < a->queue.n; i++)
        add_unsent(out, a->queue.messages[i]);
    if (!a->frontend.editing && !a->frontend.is_cutting && ebb_editor_text(&a->editor, &line) &&
        !ebb_slash_command_is(ebb_buf_text(&line)))
        add_unsent(out, ebb_buf_text(&line));
    ebb_buf_fini(&line);
}

bool ebb_app_leave(ebb_app *a)
{
    ebb_buf text = { 0 };
    ebb_error err;
    bool is_persisted;

    ebb_app_external_end(a);
    gather_unsent(a, &text);
    is_persisted = text.len > 0 && a->frontend.state_dir.len > 0 &&
              ebb_unsent_persist(a->frontend.state_dir.data, session_of_unsent(a), text.data, text.len, &err) == EBB_OK;
    if (is_persisted || text.len == 0)
        ebb_unsent_end_autosave(&a->unsent.file);
    ebb_buf_fini(&text);
    return is_persisted;
}

void ebb_app_restore_unsent(ebb_app *a)
{
    ebb_buf text = { 0 };

    if (a->frontend.state_dir.len > 0 && ebb_unsent_restore(a->frontend.state_dir.data, session_of_unsent(a), &text) &&
        text.len > 0) {
        ebb_frontend_offer(&a->frontend, text.data, text.len);
        ebb_app_hint(a, "unsent when you left; Enter sends it, Ctrl-C drops it");
    }
    ebb_buf_fini(&text);
}

/* Typed text is saved within a second; once it is sent or deleted, the file follows at once. */
void ebb_app_unsent_tick(ebb_app *a, double now_s)
{
    size_t seen = a->editor.n_edits + a->queue.n;
    bool is_empty = a->editor.text.len == 0 && a->queue.n == 0;
    ebb_buf text = { 0 };

    if (is_empty && a->unsent.file.fd >= 0)
        a->unsent.due_s = now_s;
    else if (!is_empty && seen != a->unsent.n_edits && a->unsent.due_s < 0)
        a->unsent.due_s = now_s + autosave_s;
    a->unsent.n_edits = seen;
    if (a->unsent.due_s < 0 || now_s < a->unsent.due_s)
        return;
    a->unsent.due_s = -1;
    gather_unsent(a, &text);
    if (a->frontend.state_dir.len > 0)
        ebb_unsent_autosave(&a->unsent.file, a->frontend.state_dir.data, session_of_unsent(a),
                            ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
}
