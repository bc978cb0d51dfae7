/* Unsent text (app.h): saved during typing, and when the program ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "command/slash.h"
#include "os/paths.h"

static const double autosave_s = 1.0;            /* most of the typing that kill -9 takes */

static bool has_editor(const ebb_app *a)
{
    return a->external.program == EBB_EXTERNAL_EDITOR;
}

static void add_unsent(ebb_buf *out, const char *text)
{
    if (out->len == 0)
        text = ebb_unsent_behind_signs(text);
    if (*text && out->len > 0)
        ebb_buf_addc(out, '\n');
    ebb_buf_adds(out, text);
}

/* `/system` and a prompt of many lines is worth as much as a message; the name of a command alone is not. */
static bool has_words(const char *command)
{
    const char *name_end = command + strcspn(command, " \n");

    return name_end[strspn(name_end, " \n")] != '\0';
}

/* A line as it is typed: as a message, or, where none is there before it, as it stands; a command of the chat is kept
 * only so. */
static void add_typed(ebb_buf *out, const char *line)
{
    bool is_slash = ebb_slash_command_is(line), is_special = ebb_typed_is_special(line, strlen(line));

    if (out->len == 0 && (is_special || (is_slash && has_words(line))) && ebb_buf_adds(out, EBB_UNSENT_COMMAND))
        ebb_buf_adds(out, line);
    else if (!is_slash)
        add_unsent(out, line + ebb_typed_skip(line, strlen(line)));
}

static bool is_command(const char *unsent)
{
    return unsent[0] == EBB_UNSENT_COMMAND[0];
}

static bool is_slash_command(const char *unsent)
{
    return is_command(unsent) && ebb_slash_command_is(unsent + 1);
}

/* The line says the message's number, or 0 for the beginning of the last answer, and its id.
 * `n_before` bytes stand before what an editor may have: the result is how many it is with the mark. */
static size_t mark_edit(const ebb_app *a, ebb_buf *out, size_t number, size_t n_before)
{
    const ebb_message *m = ebb_frontend_edited(&a->frontend, number);
    char mark[48];
    int n = snprintf(mark, sizeof mark, EBB_UNSENT_EDIT "%zu %lld\n", number, m ? (long long)m->id : 0);

    ebb_buf_insert(out, 0, mark, (size_t)n);
    return n_before > 0 ? n_before + (size_t)n : (size_t)n - 1;  /* what was saved begins a line of its own */
}

/* Edit on: the text behind the mark.  false: there is no such message any more.  An older ebb has written no id, and a
 * message that is in no store has none that stays. */
static bool begin_edit(ebb_app *a, const char *mark)
{
    char *end;
    size_t i = strtoul(mark + 1, &end, 10);
    long long id = *end == ' ' ? strtoll(end, NULL, 10) : 0;
    const ebb_message *m = ebb_frontend_edited(&a->frontend, i);

    if (!m || (id > 0 && m->id != id) || (i > 0 ? m->role == EBB_ROLE_NOTE : m->role != EBB_ROLE_ASSISTANT))
        return false;
    a->frontend.editing = i;
    a->frontend.is_cutting = i == 0;
    return true;
}

/* What was typed before a line of the history took its place: it is there again below that, whatever becomes of the
 * line. */
static const char *typed_before_history(const ebb_app *a)
{
    const ebb_history *h = &a->history;

    return h->at < h->n ? ebb_buf_text(&h->unsent) : "";
}

/* The input; where a line of the history has taken its place, what was typed before, and that line if it was
 * changed.  The result: where the line begins. */
static size_t gather_input(const ebb_app *a, ebb_buf *out)
{
    ebb_buf line = { 0 };
    size_t n_before;

    if (a->search.is_on)
        ebb_buf_adds(&line, ebb_buf_text(&a->search.before));
    else
        ebb_editor_marked(&a->editor, &line);
    add_typed(out, typed_before_history(a));
    n_before = out->len;
    if (!ebb_history_shows(&a->history, ebb_buf_text(&line)))
        add_typed(out, ebb_buf_text(&line));
    ebb_buf_fini(&line);
    return n_before;
}

/* A message, or an answer, that was put there to be edited and is as it was, unless an editor is at it. */
static bool is_only_offered(const ebb_app *a)
{
    return ebb_frontend_edits(&a->frontend) && a->editor.n_edits == a->marks.offered_edits && !has_editor(a);
}

/* Queued messages and the input, behind the mark if one of them is to replace something; it is a single text then.  The
 * result: where the input, or the line that shows in its place, begins. */
static size_t gather_unsent(const ebb_app *a, ebb_buf *out)
{
    bool edits = ebb_frontend_edits(&a->frontend);
    size_t n_queued, n_before;

    for (size_t i = 0; i < a->queue.n; i++)
        add_unsent(out, a->queue.messages[i].text);
    if (a->arrived.front.len > 0) {
        add_unsent(out, EBB_MARK_BEGIN);
        ebb_buf_add(out, a->arrived.front.data, a->arrived.front.len);
        ebb_buf_adds(out, EBB_MARK_END);
    }
    add_unsent(out, ebb_buf_text(&a->arrived.behind));
    n_queued = n_before = out->len;
    if (!is_only_offered(a))
        n_before = gather_input(a, out);
    if (a->queue.editing || a->queue.is_cutting)
        return mark_edit(a, out, a->queue.editing, n_before);
    if (edits && (out->len > n_queued || has_editor(a)) && !is_slash_command(ebb_buf_text(out)))
        return mark_edit(a, out, a->frontend.editing, n_before);
    return n_before;
}

/* What was autosaved goes when it is kept in peace: where that fails, it is what there is. */
ebb_status ebb_app_leave(ebb_app *a, bool *has_unsent, ebb_error *err)
{
    char session[EBB_SESSION_KEY_BYTES];
    ebb_buf text = { 0 };
    ebb_unsent_lent lent = { .path = a->external.path };
    ebb_status st = EBB_OK;

    ebb_app_external_end(a);
    lent.n_before = gather_unsent(a, &text);
    *has_unsent = (text.len > 0 || a->external.has_more) && a->frontend.state_dir.len > 0;
    ebb_chat_session_key(a->frontend.chat, session);
    if (*has_unsent)
        st = ebb_unsent_persist(a->frontend.state_dir.data, session, ebb_buf_text(&text), text.len,
                                a->external.has_more ? &lent : NULL, err);
    if (st == EBB_OK)
        ebb_unsent_end_autosave(&a->unsent.file);
    else
        *has_unsent = a->unsent.file.fd >= 0;
    ebb_unsent_leave_autosave(&a->unsent.file);
    ebb_buf_fini(&text);
    return st;
}

/* By the session's key, or by the name under which an older ebb has left it. */
static bool restore_unsent(ebb_app *a, ebb_buf *out, ebb_error *err)
{
    const char *dir = ebb_buf_text(&a->frontend.state_dir);
    char session[EBB_SESSION_KEY_BYTES];

    ebb_chat_session_key(a->frontend.chat, session);
    return *dir && (ebb_unsent_restore(&a->unsent.file, dir, session, out, err) ||
                    (*session && ebb_unsent_restore(&a->unsent.file, dir, ebb_chat_session_name(a->frontend.chat),
                                                    out, err)));
}

/* It may be behind a connection that hangs: whoever has logged in anew would look for it here. */
static void hint_running(ebb_app *a)
{
    char session[EBB_SESSION_KEY_BYTES];
    pid_t process;

    ebb_chat_session_key(a->frontend.chat, session);
    if (!ebb_unsent_find_running(ebb_buf_text(&a->frontend.state_dir), session, &process))
        return;
    if (process > 0)
        ebb_app_hint(a, "process %ld has your unsent text: `fg` if stopped, or `kill %ld` and start again",
                     (long)process, (long)process);
    else
        ebb_app_hint(a, "another ebb has your unsent text; leave that one, then start again");
}

/* What programs that were killed have left with editors; with --private nothing is written to the state folder. */
static void sweep_lent(const ebb_app *a)
{
    ebb_buf dir = { 0 };

    if (a->frontend.state_dir.len > 0)
        ebb_unsent_take_back(a->frontend.state_dir.data);
    if (a->frontend.state_dir.len > 0 || ebb_path_in(EBB_DIR_STATE, NULL, &dir, NULL) == EBB_OK)
        ebb_unsent_sweep_lent(dir.len > 0 ? dir.data : a->frontend.state_dir.data, ebb_seal_here());
    ebb_buf_fini(&dir);
}

static void offer_unsent(ebb_app *a, const ebb_buf *text)
{
    bool is_edit = text->data[0] == EBB_UNSENT_EDIT[0], edits;
    size_t n_mark = is_edit ? strcspn(text->data, "\n") + 1 : 0, skip = n_mark < text->len ? n_mark : text->len;
    bool is_typed = is_command(text->data + skip), runs;

    edits = is_edit && !is_slash_command(text->data + skip) && begin_edit(a, text->data);    /* commands edit nothing */
    skip += is_typed;
    runs = is_typed && !ebb_typed_has_quotes(text->data + skip, text->len - skip) &&
           !(text->data[skip] == '!' && a->frontend.opts->no_commands);
    if (is_typed)
        a->frontend.edit(&a->frontend, text->data + skip, text->len - skip);
    else
        ebb_frontend_offer(&a->frontend, text->data + skip, text->len - skip);
    a->marks.offered_edits = 0;                  /* it is nowhere else: no slash takes its place */
    if (a->frontend.is_cutting)
        ebb_app_hint(a, "the answer as you were cutting it; Enter goes on from there, Ctrl-C drops it");
    else if (edits)
        ebb_app_hint(a, "message %zu as you were editing it; Enter sends it, Ctrl-C drops it", a->frontend.editing);
    else
        ebb_app_hint(a, "unsent when you left; Enter %s it, Ctrl-C drops it", runs ? "runs" : "sends");
}

void ebb_app_restore_unsent(ebb_app *a)
{
    ebb_buf text = { 0 };
    ebb_error err = { .code = EBB_OK };

    sweep_lent(a);
    if (restore_unsent(a, &text, &err))
        offer_unsent(a, &text);
    else
        hint_running(a);
    if (err.code != EBB_OK)
        ebb_app_hint_left(a, &err);
    ebb_buf_fini(&text);
}

bool ebb_app_unsent_save(ebb_app *a)
{
    const char *dir = ebb_buf_text(&a->frontend.state_dir);
    ebb_buf text = { 0 };
    ebb_unsent_lent lent = { a->external.path, gather_unsent(a, &text) };
    bool ok;

    a->unsent.due_s = -1;
    ebb_chat_session_key(a->frontend.chat, a->unsent.session);
    ok = !*dir || ebb_unsent_autosave(&a->unsent.file, dir, a->unsent.session, ebb_buf_text(&text), text.len,
                                      has_editor(a) ? &lent : NULL);
    ebb_buf_fini(&text);
    return ok;
}

/* What is unsent has changed where this has: no change hides another. */
static size_t count_changes(const ebb_app *a)
{
    return (a->editor.n_edits << 8) + ((size_t)(a->arrived.front.len > 0) << 7) + a->queue.n;
}

static bool has_unsent_text(const ebb_app *a)
{
    return a->editor.text.len > 0 || *typed_before_history(a) || a->queue.n > 0 || a->arrived.front.len > 0 ||
           a->arrived.behind.len > 0 || has_editor(a);
}

/* Typed text is saved within a second; once it is sent or deleted, waits for its turn or has had it, or the session has
 * another key, the file follows at once: a kill then brings no message twice, and takes none. */
void ebb_app_unsent_tick(ebb_app *a, double now_s)
{
    size_t seen = count_changes(a);
    bool is_empty = !has_unsent_text(a), is_queue_new = a->queue.n != a->unsent.n_queued;
    char session[EBB_SESSION_KEY_BYTES];

    ebb_chat_session_key(a->frontend.chat, session);
    if (is_queue_new || (a->unsent.file.fd >= 0 && (is_empty || strcmp(session, a->unsent.session) != 0)))
        a->unsent.due_s = now_s;
    else if (!is_empty && seen != a->unsent.n_edits && a->unsent.due_s < 0)
        a->unsent.due_s = now_s + autosave_s;
    a->unsent.n_edits = seen;
    a->unsent.n_queued = a->queue.n;
    if (a->unsent.due_s >= 0 && now_s >= a->unsent.due_s)
        ebb_app_unsent_save(a);
}
