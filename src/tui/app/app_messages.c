/* What is typed: sent, run as a command, or kept until it can be sent (app.h). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "command/slash.h"
#include "edit/marked.h"
#include "term/width.h"
#include "text/humanize.h"
#include "tree/attachment.h"

enum { QUEUE_MAX = 16, QUEUED_ROW_BYTES = 4096 };        /* a row has fewer columns */

enum { HINT_MARGIN = 4 };        /* columns beside a hint */

void ebb_app_hint(ebb_app *a, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ebb_buf_clear(&a->hint);
    ebb_buf_adds(&a->hint, text);
    a->frame.is_dirty = a->frame.is_urgent = true;
}

void ebb_app_say_error(ebb_app *a, const ebb_error *err)
{
    a->frontend.say(&a->frontend, EBB_SAY_ERROR, err->msg, strlen(err->msg));
}

void ebb_app_hint_error(ebb_app *a, const ebb_error *err)
{
    int rows, cols;

    a->term->ops->size(a->term, &rows, &cols);
    if (a->view.width > 0 && a->view.width < cols)
        cols = a->view.width;
    if (ebb_width_text(err->msg, strlen(err->msg)) + HINT_MARGIN <= cols)
        ebb_app_hint(a, "%s", err->msg);
    else
        ebb_app_say_error(a, err);
}

void ebb_app_hint_left(ebb_app *a, const ebb_error *err)
{
    ebb_error whole;

    EBB_FAIL(&whole, err->code, "%s; it is left there", err->msg);
    ebb_app_hint_error(a, &whole);
}

/* -- Messages that wait ------------------------------------------------------------------ */

static bool can_send(const ebb_app *a)
{
    return ebb_chat_is_ready(a->frontend.chat) && !ebb_chat_is_busy(a->frontend.chat);
}

/* What is typed now looks for a remote engine again; what waits does not do so by itself.  An edit goes before that: it
 * may mend the question that holds it up. */
static bool can_send_typed(const ebb_app *a)
{
    return (a->queue.n == 0 || ebb_frontend_edits(&a->frontend)) &&
           (can_send(a) || ebb_chat_can_reconnect(a->frontend.chat));
}

/* The question may have been taken back meanwhile. */
static bool is_queue_held(const ebb_app *a)
{
    return a->queue.is_held && ebb_chat_is_question_open(a->frontend.chat);
}

static const char queued[] = "queued; Ctrl-X takes it back";

static bool is_edit_queued(const ebb_app *a)
{
    return a->queue.editing || a->queue.is_cutting;
}

static void drop_queued_edit(ebb_app *a)
{
    a->queue.editing = 0;
    a->queue.is_cutting = false;
}

/* What the input was to replace, the first message that waits is to replace from now on. */
static void queue_edit(ebb_app *a)
{
    const ebb_message *m = ebb_frontend_edited(&a->frontend, a->frontend.editing);

    a->queue.edited_id = m ? m->id : 0;
    a->queue.editing = a->frontend.editing;
    a->queue.is_cutting = a->frontend.is_cutting;
    ebb_frontend_leave_edit(&a->frontend);
}

/* Is the message still there that is to be replaced?  On another branch, or after /undo, its number is that of another
 * one, or of none. */
static bool has_edited(const ebb_app *a)
{
    const ebb_message *m = ebb_frontend_edited(&a->frontend, a->queue.editing);

    return m && m->id == a->queue.edited_id;
}

/* The way back. */
static void unqueue_edit(ebb_app *a)
{
    if (is_edit_queued(a) && has_edited(a) && !ebb_frontend_edits(&a->frontend)) {
        a->frontend.editing = a->queue.editing;
        a->frontend.is_cutting = a->queue.is_cutting;
    }
    drop_queued_edit(a);
}

/* Is there room for another one?  Else that is said. */
static bool has_room_in_queue(ebb_app *a)
{
    if (ebb_frontend_edits(&a->frontend) && is_edit_queued(a))
        ebb_app_hint(a, "an edit waits already; Ctrl-X takes back what waits");
    else if (a->queue.n == QUEUE_MAX)
        ebb_app_hint(a, "%d messages are waiting already", QUEUE_MAX);
    else
        return true;
    return false;
}

/* What was asked, behind the files that go along. */
static const char *queued_words(const char *marked)
{
    size_t n = strlen(marked), at = ebb_marked_begins(marked, n) ? EBB_MARK_BYTES : 0;
    size_t words = at + ebb_attachments_end(marked + at, n - at);

    return words > at && words < n ? marked + words : marked;
}

/* What a row shows of it: the beginning of its words, once for all frames. */
static void add_queued_row(ebb_buf *out, const char *marked)
{
    const char *words = queued_words(marked);
    size_t n = ebb_utf8_cut(words, strnlen(words, QUEUED_ROW_BYTES + 1), QUEUED_ROW_BYTES);
    const char *end = memchr(words, '\n', n);

    n = end ? (size_t)(end - words) : n;
    ebb_marked_add_plain(out, words, n);
    ebb_buf_adds(out, words[n] ? " ..." : "");
}

static bool enqueue(ebb_app *a, const char *text)
{
    struct ebb_queued *queue = realloc(a->queue.messages, (a->queue.n + 1) * sizeof *queue);
    char *copy = strdup(text);
    ebb_buf row = { 0 };
    bool edits = ebb_frontend_edits(&a->frontend);
    size_t i = edits ? 0 : a->queue.n;

    add_queued_row(&row, text);
    if (queue)
        a->queue.messages = queue;
    if (!queue || !copy || row.failed) {
        free(copy);
        ebb_buf_fini(&row);
        ebb_app_hint(a, "no memory to keep the message until it can be sent");
        return false;
    }
    memmove(queue + i + 1, queue + i, (a->queue.n++ - i) * sizeof *queue);
    queue[i] = (struct ebb_queued){ copy, ebb_buf_take(&row) };
    if (edits)
        queue_edit(a);
    a->queue.generation = ebb_chat_generation(a->frontend.chat);
    return true;
}

/* Where the text goes now, its edit goes along. */
static char *dequeue(ebb_app *a, size_t i)
{
    char *text = a->queue.messages[i].text;

    free(a->queue.messages[i].row);
    if (i == 0)
        unqueue_edit(a);
    memmove(a->queue.messages + i, a->queue.messages + i + 1, (--a->queue.n - i) * sizeof *a->queue.messages);
    return text;
}

/* Has somebody else the line, who would not keep what is added to it? */
static bool is_line_away(const ebb_app *a)
{
    return a->external.program == EBB_EXTERNAL_EDITOR || a->search.is_on;
}

/* Before something is added: where a line of the history stands in its place, the user's own is back, with what was
 * changed of the other one below it, as in a draft.  If there is no own one, that of the history is it. */
static void own_line(ebb_app *a)
{
    ebb_history *h = &a->history;
    ebb_buf own = { 0 }, shown = { 0 };

    if (h->at < h->n && h->unsent.len > 0 && ebb_editor_marked(&a->editor, &shown)) {
        ebb_buf_add(&own, h->unsent.data, h->unsent.len);
        if (shown.len > 0 && !ebb_history_shows(h, shown.data)) {
            ebb_buf_addc(&own, '\n');
            ebb_buf_add(&own, shown.data, shown.len);
        }
        ebb_editor_set(&a->editor, ebb_buf_text(&own), own.len);
        a->editor.is_given = a->editor.is_given || a->marks.is_unsent_given;
    }
    h->at = h->n;
    a->editor.caret = a->editor.text.len;
    ebb_buf_fini(&own);
    ebb_buf_fini(&shown);
}

static void put_back(ebb_app *a, const char *text)
{
    const char *prefix = ebb_typed_prefix(text, strlen(text));

    if (is_line_away(a)) {
        ebb_buf_adds(&a->arrived.behind, a->arrived.behind.len > 0 ? "\n" : "");
        ebb_buf_adds(&a->arrived.behind, text);
        return;
    }
    own_line(a);
    if (!ebb_editor_is_empty(&a->editor))
        ebb_editor_insert(&a->editor, "\n", 1);
    else
        ebb_editor_insert(&a->editor, prefix, strlen(prefix));
    ebb_editor_insert_marked(&a->editor, text, strlen(text));
}

/* `marked`: the text with its marks.  false: it was not taken, and stays the user's. */
static bool send_text(ebb_app *a, const char *marked)
{
    ebb_buf text = { 0 };
    ebb_error err;
    bool ok = ebb_marked_add_plain(&text, marked, strlen(marked));

    ebb_transcript_end(&a->view);
    if (!ok)
        EBB_FAIL(&err, EBB_NOMEM, "no memory for the message");
    ok = ok && ebb_frontend_send(&a->frontend, ebb_buf_text(&text), text.len, &err) == EBB_OK;
    if (ok)
        ebb_transcript_sync(&a->view);
    else
        ebb_app_say_error(a, &err);
    ebb_buf_fini(&text);
    return ok;
}

void ebb_app_take_back_queue(ebb_app *a)
{
    while (a->queue.n > 0) {
        char *text = dequeue(a, 0);

        put_back(a, text);
        free(text);
    }
    a->frame.is_dirty = true;
}

void ebb_app_hold_queue(ebb_app *a)
{
    a->queue.is_held = ebb_chat_is_ready(a->frontend.chat) || ebb_chat_can_reconnect(a->frontend.chat);
    if (a->queue.n > 0 && is_queue_held(a))
        ebb_app_hint(a, "Enter asks again, and sends what waits then; Ctrl-X takes it back");
}

/* What waits is for what was there when it came; the user decides anew. */
static void take_back_strayed(ebb_app *a)
{
    bool is_elsewhere = a->queue.n > 0 && a->queue.generation != ebb_chat_generation(a->frontend.chat);
    bool is_edit_lost = is_edit_queued(a) && !has_edited(a);

    if (!is_elsewhere && !is_edit_lost)
        return;
    drop_queued_edit(a);
    ebb_app_take_back_queue(a);
    ebb_app_hint(a, "%s: what waited is not sent yet",
                 is_elsewhere ? "this is another conversation" : "the message that it was to replace is not here");
}

void ebb_app_send_next(ebb_app *a)
{
    take_back_strayed(a);
    if (a->queue.n == 0 || !can_send(a) || is_queue_held(a) || ebb_chat_awaits_overflow_choice(a->frontend.chat) ||
        ebb_frontend_edits(&a->frontend))        /* that goes first */
        return;
    char *text = dequeue(a, 0);
    if (a->queue.n == 0 && strcmp(ebb_buf_text(&a->hint), queued) == 0)
        ebb_buf_clear(&a->hint);                 /* it has gone */
    if (!send_text(a, text))
        put_back(a, text);
    free(text);
    a->frame.is_dirty = true;
}

void ebb_app_unqueue(ebb_app *a)
{
    if (a->queue.n == 0)
        return;
    char *text = dequeue(a, a->queue.n - 1);
    put_back(a, text);
    free(text);
    a->frame.is_dirty = true;
}

static void run_command(ebb_app *a, const char *line)
{
    ebb_transcript_end(&a->view);
    ebb_frontend_leave_edit(&a->frontend);       /* a command instead of the message that was to be edited */
    ebb_slash_command_run(&a->frontend, line);
    ebb_transcript_sync(&a->view);
    a->frame.figures_s = -1;                     /* what it has set is shown */
}

/* `line` as it was typed; `whole` as it is sent, with the files that go with it; both marked.  false: it was refused,
 * and is back in the editor. */
static bool run_message(ebb_app *a, const char *line, const char *whole)
{
    bool ok;

    if (can_send_typed(a)) {
        ok = send_text(a, whole);
    } else {
        ok = has_room_in_queue(a) && enqueue(a, whole);
        if (ok)
            ebb_app_hint(a, "%s", queued);
        if (is_queue_held(a) || ebb_chat_can_reconnect(a->frontend.chat))
            ebb_frontend_go_on(&a->frontend);
    }
    if (!ok)
        ebb_editor_set(&a->editor, line, strlen(line));
    return ok;
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

static void attach_output(ebb_app *a, const ebb_buf *block)
{
    own_line(a);
    a->editor.caret = 0;                         /* in front of what was typed meanwhile, as files are */
    ebb_editor_paste(&a->editor, ebb_buf_text(block), block->len);
    a->editor.caret = a->editor.text.len;
    ebb_app_hint(a, "the output is attached; type your question about it");
}

void ebb_app_output_tick(ebb_app *a, double now_s)
{
    ebb_line_arrivals all;

    (void)!ebb_command_output_poll(&a->output, now_s, &a->arrived.front);
    if (is_line_away(a) || a->arrived.front.len + a->arrived.behind.len == 0)
        return;
    all = a->arrived;
    a->arrived = (ebb_line_arrivals){ 0 };
    if (all.front.len > 0)
        attach_output(a, &all.front);
    if (all.behind.len > 0)
        put_back(a, all.behind.data);
    ebb_buf_fini(&all.front);
    ebb_buf_fini(&all.behind);
    a->frame.is_dirty = a->frame.is_urgent = true;
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
    if (run_message(a, ebb_buf_text(marked), ebb_buf_text(whole)))
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
