/* A message that Alt-Up has selected, and what a letter does with it (app.h). */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "command/clipboard.h"
#include "command/slash.h"

static const ebb_message *selected_message(const ebb_app *a)
{
    size_t i = a->view.selected;

    return i > 0 && i <= ebb_chat_n_messages(a->frontend.chat) ? ebb_chat_message(a->frontend.chat, i - 1) : NULL;
}

void ebb_app_select_status(const ebb_app *a, ebb_buf *out)
{
    const ebb_message *m = selected_message(a);
    bool is_last = a->view.selected == ebb_chat_n_messages(a->frontend.chat);

    if (!m || !ebb_editor_is_empty(&a->editor))
        return;
    ebb_buf_addf(out, "message %zu: ", a->view.selected);
    if (m->role == EBB_ROLE_USER)
        ebb_buf_adds(out, "e edit, ");
    if (m->role == EBB_ROLE_ASSISTANT && is_last)
        ebb_buf_adds(out, "r again, ");
    ebb_buf_addf(out, "b branch, p %s, c copy", m->pinned ? "unpin" : "pin");
}

/* A slash command about the message, by its number; in place of an edit that was begun, as when it is typed. */
static void run_about(ebb_app *a, const char *command)
{
    char line[40];

    snprintf(line, sizeof line, "/%s %zu", command, a->view.selected);
    ebb_transcript_end(&a->view);
    ebb_frontend_leave_edit(&a->frontend);
    ebb_slash_command_run(&a->frontend, line);
    ebb_transcript_sync(&a->view);
}

static void copy_selected(ebb_app *a)
{
    char how[400];
    ebb_error err;

    if (ebb_clipboard_copy_message(&a->frontend, a->view.selected - 1, how, sizeof how, &err) == EBB_OK)
        ebb_app_hint(a, "%s", how);
    else
        ebb_app_say_error(a, &err);
}

bool ebb_app_select_key(ebb_app *a, ebb_key key)
{
    const ebb_message *m = selected_message(a);
    bool is_move = key.mods == EBB_MOD_ALT && (key.code == EBB_KEY_UP || key.code == EBB_KEY_DOWN);

    if (!a->view.selected || is_move || key.code == EBB_KEY_PGUP || key.code == EBB_KEY_PGDN)
        return false;
    if (!m || key.mods || !ebb_editor_is_empty(&a->editor) || !strchr("erbpcy", (int)key.code) || key.code > 'z') {
        a->view.selected = 0;
        return false;
    }
    if (key.code == 'c' || key.code == 'y')
        copy_selected(a);
    else if (key.code == 'p')
        run_about(a, m->pinned ? "unpin" : "pin");
    else if (key.code == 'b')
        run_about(a, "branch");
    else if (key.code == 'e' && m->role == EBB_ROLE_USER)
        run_about(a, "edit");
    else if (key.code == 'r' && m->role == EBB_ROLE_ASSISTANT &&
             a->view.selected == ebb_chat_n_messages(a->frontend.chat)) {
        ebb_frontend_leave_edit(&a->frontend);
        ebb_slash_command_run(&a->frontend, "/retry");
    } else {
        ebb_app_hint(a, key.code == 'e' ? "only questions can be edited; b branches here"
                                        : "only the last answer can be asked for again; b branches here");
    }
    a->view.selected = 0;
    return true;
}
