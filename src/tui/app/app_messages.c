/* What is typed becomes a command, or a message that is sent (app.h). */
#include "app/app.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "command/slash.h"
#include "edit/marked.h"
#include "text/humanize.h"
#include "tree/attachment.h"

static void run_command(ebb_app *a, const char *line)
{
    ebb_transcript_end(&a->view);
    ebb_frontend_leave_edit(&a->frontend);       /* a command instead of the message that was to be edited */
    ebb_slash_command_run(&a->frontend, line);
    ebb_transcript_sync(&a->view);
    a->frame.figures_s = -1;                     /* what it has set is shown */
}

/* Enter begins another line: behind a backslash, and within quotes. */
static bool goes_on(ebb_app *a, const ebb_buf *text)
{
    const ebb_buf *typed = &a->editor.text;
    bool is_escaped = typed->len > 0 && a->editor.caret == typed->len && typed->data[typed->len - 1] == '\\';

    if (is_escaped)
        ebb_editor_replace(&a->editor, typed->len - 1, 1, "\n", 1);
    else if (ebb_frontend_is_open(ebb_buf_text(text), text->len, 0))
        ebb_editor_insert(&a->editor, "\n", 1);
    else
        return false;
    return true;
}

/* How many files went along, where it was not one by its name; and that one did not. */
static void hint_attached(ebb_app *a, const ebb_attached *files)
{
    ebb_buf size = { 0 };

    if (files->n_files + files->n_left_out < 2) {
        if (files->only_text[0])
            ebb_app_hint(a, "not attached: %s, which stands in what was pasted; type it to attach it",
                         files->only_text);
        return;
    }
    ebb_humanize_bytes(&size, files->n_bytes);
    if (files->n_left_out > 0)
        ebb_app_hint(a, "%zu files attached, %s; %zu left out (not text, too large, or too many)", files->n_files,
                     ebb_buf_text(&size), files->n_left_out);
    else
        ebb_app_hint(a, "%zu files attached, %s", files->n_files, ebb_buf_text(&size));
    ebb_buf_fini(&size);
}

/* !command: it is shown before it runs, and so all of it has to be seen; `is_folded`: it is not. */
static void submit_shell_command(ebb_app *a, const char *line, bool is_folded)
{
    const char *command = line + 1 + strspn(line + 1, " \t");
    ebb_error err;

    if (a->frontend.opts->no_commands) {
        ebb_app_hint(a, "commands need ebb --shell; a blank before ! sends it as text");
        return;
    }
    if (is_folded) {
        ebb_app_hint(a, "a command with a folded paste does not run; a blank before ! sends it as text");
        return;
    }
    if (a->marks.asked_edits != a->editor.n_edits) {
        a->marks.asked_edits = a->editor.n_edits;
        ebb_app_hint(a, "Enter again runs the command and attaches its output (a blank before ! sends it as text)");
        return;
    }
    if (ebb_command_output_start(&a->output, command, ebb_clock_s(), &err) != EBB_OK) {
        ebb_app_hint_error(a, &err);
        return;
    }
    if (ebb_history_add(&a->history, line, strlen(line), &err) != EBB_OK)
        ebb_app_say_error(a, &err);
    ebb_editor_clear(&a->editor);
    ebb_vi_reset(&a->vi, &a->editor);
    ebb_app_hint(a, "running %.100s; Esc stops it", command);
}

/* The filter of a document that is attached begins; the message is sent when it has ended, if it is still there. */
static ebb_status start_document(ebb_app *a, ebb_error *err)
{
    ebb_buf name = { 0 };
    ebb_status st = EBB_OK;

    if (!ebb_documents_is_running(&a->documents))
        st = ebb_documents_start(&a->documents, ebb_clock_s(), err);
    if (st == EBB_OK) {
        a->marks.document_edits = a->editor.n_edits;
        ebb_documents_add_name(&a->documents, &name);
        ebb_app_hint(a, "reading %s; Esc stops", ebb_buf_text(&name));
    }
    ebb_buf_fini(&name);
    return st;
}

void ebb_app_documents_tick(ebb_app *a, double now_s)
{
    if (!ebb_documents_poll(&a->documents, now_s))
        return;
    ebb_buf_clear(&a->hint);
    a->frame.is_dirty = a->frame.is_urgent = true;
    if (a->marks.document_edits && a->marks.document_edits == a->editor.n_edits)
        ebb_app_submit(a);
    else if (a->marks.document_edits)
        ebb_app_hint(a, "the document has been read; Enter sends it with what you have typed");
}

void ebb_app_documents_await_enter(ebb_app *a)
{
    if (a->marks.document_edits)
        a->marks.document_edits = SIZE_MAX;
}

void ebb_app_documents_stop(ebb_app *a)
{
    a->marks.document_edits = 0;
    ebb_documents_stop(&a->documents);
    ebb_app_hint(a, "stopped; the message is not sent");
}

ebb_status ebb_app_attach(ebb_app *a, const char *marked, size_t n, ebb_buf *out, ebb_attached *files, ebb_error *err)
{
    if (ebb_frontend_takes_files(&a->frontend))
        return ebb_attach_expand(marked, n, &a->documents, out, files, err);
    *files = (ebb_attached){ 0 };
    return ebb_buf_add(out, marked, n) ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for the text");
}

/* Files that go along by what nobody typed here are asked about: a paste or a message may name what its author wants to
 * have.  `whole` begins with n_files bytes of them. */
static bool asks_for_files(ebb_app *a, const ebb_attached *files, const ebb_buf *whole)
{
    ebb_buf name = { 0 };

    if (!a->editor.is_given || files->n_files == 0 || a->marks.files_edits == a->editor.n_edits)
        return false;
    a->marks.files_edits = a->editor.n_edits;
    ebb_utf8_add_line(&name, ebb_buf_text(whole), strcspn(ebb_buf_text(whole), "\n") - 1, !a->term->utf8);
    if (files->n_files == 1)
        ebb_app_hint(a, "%.100s goes along; Enter again sends both", ebb_buf_text(&name));
    else
        ebb_app_hint(a, "%.100s and %zu more files go along; Enter again sends all", ebb_buf_text(&name),
                     files->n_files - 1);
    ebb_buf_fini(&name);
    return true;
}

/* Of a line that is not sent yet: what to ask first.  false: nothing. */
static bool asks_first(ebb_app *a, const char *line, const ebb_attached *files)
{
    const char *meant;

    if (a->marks.asked_edits == a->editor.n_edits)
        return false;
    if (files->missing[0])
        ebb_app_hint(a, "no file %s; Enter again sends it as text", files->missing);
    else if (ebb_slash_command_is_meant(line, &meant))
        ebb_app_hint(a, "/%s is the command; Enter again sends '%s' as a message", meant, line);
    else
        return false;
    a->marks.asked_edits = a->editor.n_edits;
    return true;
}

/* The line leaves the editor; `marked` goes to the history. */
static void take_line(ebb_app *a, const ebb_buf *marked)
{
    bool is_known = a->marks.rewritten_edits && a->marks.rewritten_edits == a->editor.n_edits;
    ebb_error err;

    a->greeting.is_first_run = false;
    a->greeting.is_touched = true;
    ebb_editor_clear(&a->editor);
    ebb_vi_reset(&a->vi, &a->editor);
    if (!is_known && ebb_history_add(&a->history, ebb_buf_text(marked), marked->len, &err) != EBB_OK)
        ebb_app_hint(a, "not in the history file: %s", err.msg);
}

/* `whole` as it is sent: its files, marked, in front of the line. */
static void send_line(ebb_app *a, const ebb_buf *marked, const ebb_buf *whole, const ebb_attached *files)
{
    bool is_given = a->editor.is_given;

    take_line(a, marked);
    if (ebb_app_send_or_queue(a, ebb_buf_text(marked), ebb_buf_text(whole)))
        hint_attached(a, files);
    else
        a->editor.is_given = is_given;
    ebb_documents_forget(&a->documents);
}

/* `marked` is what was typed, `line` the same without marks. */
static void submit_message(ebb_app *a, const ebb_buf *marked, const char *line)
{
    ebb_attached files = { 0 };
    ebb_buf whole = { 0 };
    const char *message = ebb_buf_text(marked);
    size_t n = marked->len, skip = ebb_typed_skip(message, n);
    ebb_error err;
    ebb_status st;
    bool waits;

    ebb_frontend_unquote(&message, &n);
    message += skip;
    n -= skip;
    st = ebb_app_attach(a, message, n, &whole, &files, &err);
    waits = st == EBB_BUSY;
    if (waits)
        st = start_document(a, &err);
    if (st != EBB_OK)
        ebb_app_hint_error(a, &err);
    else if (!waits && !asks_for_files(a, &files, &whole) && !asks_first(a, line, &files)) {
        if (whole.len > n && (!ebb_buf_insert(&whole, whole.len - n, EBB_MARK_END, EBB_MARK_BYTES) ||
                              !ebb_buf_insert(&whole, 0, EBB_MARK_BEGIN, EBB_MARK_BYTES)))
            ebb_app_hint(a, "no memory for the message and its files");
        else
            send_line(a, marked, &whole, &files);
    }
    ebb_buf_fini(&whole);
}

bool ebb_app_is_command(const ebb_buf *marked, const char *line)
{
    return !ebb_marked_begins(ebb_buf_text(marked), marked->len) && ebb_slash_command_is(line);
}

/* /edit N TEXT: what stands in the editor then is what /edit N and typing the text would leave there; what was folded
 * of the command is so again, and files that the text begins with are, as those of a message are. */
static bool set_rewritten(ebb_app *a, const ebb_buf *command)
{
    const ebb_buf *text = &a->frontend.rewritten;
    ebb_buf front = { 0 };
    size_t n_files = ebb_frontend_add_kept(&a->frontend, a->frontend.editing, ebb_buf_text(text), text->len, &front);
    size_t n_own = ebb_attachments_end(ebb_buf_text(text), text->len);
    bool is_whole;

    ebb_editor_set(&a->editor, ebb_buf_text(command), command->len);
    is_whole = ebb_editor_set_edited(&a->editor, ebb_buf_text(text), text->len, n_own);
    if (n_files > 0) {
        ebb_buf_insert(&front, n_files, EBB_MARK_END, EBB_MARK_BYTES);
        ebb_buf_insert(&front, 0, EBB_MARK_BEGIN, EBB_MARK_BYTES);
    } else if (n_own == 0) {
        ebb_buf_adds(&front, ebb_typed_prefix(ebb_buf_text(text), text->len));
    }
    a->editor.caret = 0;
    ebb_editor_insert_marked(&a->editor, ebb_buf_text(&front), front.len);
    a->editor.caret = a->editor.text.len;
    is_whole = is_whole && !front.failed;
    ebb_buf_fini(&front);
    return is_whole;
}

static void submit_rewritten(ebb_app *a, const ebb_buf *command, bool is_given)
{
    ebb_buf text = { 0 }, marked = { 0 };
    bool is_whole = set_rewritten(a, command);

    ebb_buf_clear(&a->frontend.rewritten);
    a->editor.is_given = a->editor.is_given || is_given || !is_whole;
    a->marks.rewritten_edits = a->editor.n_edits;
    if (ebb_editor_text(&a->editor, &text) && ebb_editor_marked(&a->editor, &marked))
        submit_message(a, &marked, ebb_buf_text(&text));
    else
        ebb_app_hint(a, "out of memory: the message is too large");
    ebb_buf_fini(&text);
    ebb_buf_fini(&marked);
}

/* `n_typed`: bytes in front of what is folded.  A command that has its name from there is none that anybody chose. */
static void submit_slash_command(ebb_app *a, const ebb_buf *marked, const char *line, size_t n_typed)
{
    bool is_given = a->editor.is_given;

    if (strcspn(line, " \t\n") > n_typed) {
        ebb_app_hint(a, "the name of that command is folded; a blank before / sends it as text");
        return;
    }
    take_line(a, marked);
    run_command(a, line);
    ebb_documents_forget(&a->documents);
    if (a->frontend.rewritten.len > 0)
        submit_rewritten(a, marked, is_given);
}

void ebb_app_submit(ebb_app *a)
{
    ebb_buf text = { 0 }, marked = { 0 };
    bool has_text = ebb_editor_text(&a->editor, &text) && ebb_editor_marked(&a->editor, &marked);
    bool has_words = strspn(ebb_buf_text(&text), " \t\n") < text.len;
    size_t n_typed = ebb_marked_next(ebb_buf_text(&marked), marked.len);

    if (!has_text) {
        ebb_app_hint(a, "out of memory: the message is too large");
    } else if (goes_on(a, &marked)) {
        ebb_buf_clear(&a->hint);
    } else if (text.len > 1 && marked.data[0] == '!') {
        submit_shell_command(a, text.data, n_typed < marked.len);
    } else if (has_words && ebb_app_is_command(&marked, text.data)) {
        submit_slash_command(a, &marked, text.data, n_typed);
    } else if (has_words) {
        submit_message(a, &marked, text.data);
    } else if (text.len == 0 && ebb_frontend_edits(&a->frontend)) {
        ebb_app_hint(a, "there is no text to send; Ctrl-C leaves the message as it was");
    } else if (text.len == 0) {
        ebb_frontend_go_on(&a->frontend);
    }
    ebb_buf_fini(&text);
    ebb_buf_fini(&marked);
}
