/* Messages are sent, or wait until they can be (app.h). */
#include "app/app.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "edit/marked.h"
#include "tree/attachment.h"

enum { QUEUE_MAX = 16, QUEUED_ROW_BYTES = 4096 };        /* a row has fewer columns */

static const char queued[] = "queued; Ctrl-X takes it back";

/* -- May it be sent? --------------------------------------------------------------------- */

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

/* -- An edit that waits ------------------------------------------------------------------ */

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

/* -- In and out -------------------------------------------------------------------------- */

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

/* -- Sending ----------------------------------------------------------------------------- */

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

        ebb_app_put_back(a, text);
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
        ebb_app_put_back(a, text);
    free(text);
    a->frame.is_dirty = true;
}

void ebb_app_unqueue(ebb_app *a)
{
    if (a->queue.n == 0)
        return;
    char *text = dequeue(a, a->queue.n - 1);
    ebb_app_put_back(a, text);
    free(text);
    a->frame.is_dirty = true;
}

bool ebb_app_send_or_queue(ebb_app *a, const char *line, const char *whole)
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
