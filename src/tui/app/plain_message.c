/* What is read in plain lines: a message, a command, or a part of one (plain.h). */
#include "app/plain.h"

#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "command/slash.h"
#include "term/keys.h"

enum { TERMINAL_LINE_BYTES = 4095 };

bool ebb_plain_is_free(const ebb_plain *p)
{
    return (ebb_chat_is_ready(p->frontend.chat) || p->has_failed) && !ebb_chat_is_busy(p->frontend.chat) &&
           !ebb_documents_is_running(&p->documents) &&
           !ebb_chat_awaits_report(p->frontend.chat);
}

/* -- Sending ----------------------------------------------------------------------------- */

/* What the edit was for has failed, or is stopped; after a bare /edit, another line may take its place. */
static void leave_rewriting(ebb_plain *p)
{
    if (p->is_rewriting)
        ebb_frontend_leave_edit(&p->frontend);
    p->is_rewriting = false;
}

/* The filter of a document begins; the message that needs it waits. */
static ebb_status start_document(ebb_plain *p, const char *s, size_t n, ebb_error *err)
{
    ebb_buf name = { 0 };
    ebb_status st = ebb_documents_start(&p->documents, ebb_clock_s(), err);

    if (st == EBB_OK && !ebb_buf_add(&p->waiting, s, n))
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the message");
    ebb_documents_add_name(&p->documents, &name);
    if (st == EBB_OK)
        ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "reading %s; Ctrl-C stops", ebb_buf_text(&name));
    ebb_buf_fini(&name);
    return st;
}

/* Files that a message names are attached if it was typed at a terminal, not if from a pipe.  `text`: what went along
 * with the message that is edited, as it was then, and the words. */
static ebb_status add_files(ebb_plain *p, const ebb_buf *text, ebb_buf *whole, ebb_attached *files, ebb_error *err)
{
    if (text->failed)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the message");
    if (p->is_terminal && ebb_frontend_takes_files(&p->frontend))
        return ebb_attach_expand(ebb_buf_text(text), text->len, &p->documents, whole, files, err);
    return ebb_buf_add(whole, ebb_buf_text(text), text->len) ? EBB_OK
                                                             : EBB_FAIL(err, EBB_NOMEM, "no memory for the message");
}

static void send_message(ebb_plain *p, const char *s, size_t n)
{
    ebb_buf text = { 0 }, whole = { 0 };
    ebb_attached files = { 0 };
    ebb_error err;
    ebb_status st;
    bool waits;

    ebb_frontend_add_kept(&p->frontend, p->frontend.editing, s, n, &text);
    if (p->is_terminal && !ebb_frontend_edits(&p->frontend))    /* nothing has gone along before */
        ebb_attach_add_text(&text, s, n);
    else
        ebb_buf_add(&text, s, n);
    st = add_files(p, &text, &whole, &files, &err);
    waits = st == EBB_BUSY;
    if (waits)
        st = start_document(p, s, n, &err);
    else if (files.missing[0])
        ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "no file %s; sent as text", files.missing);
    if (st == EBB_OK && !waits)
        st = ebb_frontend_send(&p->frontend, ebb_buf_text(&whole), whole.len, &err);
    if (st != EBB_OK)
        ebb_plain_say(&p->frontend, EBB_SAY_ERROR, err.msg, strlen(err.msg));
    if (st != EBB_OK || !waits)
        leave_rewriting(p);
    ebb_buf_fini(&text);
    ebb_buf_fini(&whole);
}

void ebb_plain_documents_tick(ebb_plain *p)
{
    bool is_stopped = p->documents.run.is_stopped;
    ebb_buf message = p->waiting;

    if (!ebb_documents_poll(&p->documents, ebb_clock_s()))
        return;
    p->waiting = (ebb_buf){ 0 };
    if (is_stopped) {
        ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "stopped; the message is not sent");
        leave_rewriting(p);
    } else {
        send_message(p, ebb_buf_text(&message), message.len);
    }
    if (!ebb_documents_is_running(&p->documents))
        ebb_documents_forget(&p->documents);
    ebb_buf_fini(&message);
}

/* /edit N TEXT: it is sent as a line of its own would be. */
static void send_rewritten(ebb_plain *p)
{
    ebb_buf text = p->frontend.rewritten;

    p->frontend.rewritten = (ebb_buf){ 0 };
    p->is_rewriting = text.len > 0;
    if (text.len > 0)
        send_message(p, text.data, text.len);
    ebb_buf_fini(&text);
}

/* A session that a command opens, now or in a job, is shown.  What fails opens none: the next change is another one. */
static void run_command(ebb_plain *p, const char *s)
{
    uint32_t generation = ebb_chat_generation(p->frontend.chat);
    double share;

    p->is_opening = strncmp(s, "/load ", 6) == 0 || strncmp(s, "/import ", 8) == 0 || strcmp(s, "/undelete") == 0;
    p->has_told = false;
    ebb_frontend_leave_edit(&p->frontend);
    ebb_slash_command_run(&p->frontend, s);
    p->is_opening &= ebb_chat_generation(p->frontend.chat) != generation ||
                     ebb_chat_job_under_way(p->frontend.chat, &share);
    send_rewritten(p);
}

/* A message that begins with a file, by its whole path: as /edit N prints it, so a script may send it back. */
static bool begins_with_path(const char *s, size_t n)
{
    return ebb_slash_command_is(s) && ebb_typed_files(s, n) > 0;
}

static void say_not_sent(ebb_plain *p)
{
    if (p->loss == EBB_PLAIN_CUT_LINE)
        ebb_frontend_sayf(&p->frontend, EBB_SAY_ERROR, "the terminal cuts a line at 4,095 bytes, so this one is not "
                          "sent; give it as a file (@NAME), or in lines that end with \\, but for the last");
    else
        ebb_frontend_sayf(&p->frontend, EBB_SAY_ERROR, "a message of more than %u MiB, or than there is memory for, is "
                          "not sent; send it in parts", EBB_PASTE_BYTES >> 20);
}

/* A line, or several joined by backslashes, is complete. */
static void run_message(ebb_plain *p)
{
    ebb_buf text = p->message;
    const char *s = ebb_buf_text(&text);
    bool has_path = begins_with_path(s, text.len);

    memset(&p->message, 0, sizeof p->message);
    if (p->loss != EBB_PLAIN_WHOLE || text.failed) {
        say_not_sent(p);
    } else if (ebb_slash_command_is(s) && !has_path) {
        run_command(p, s);
    } else if (p->is_terminal && s[0] == '!' && text.len > 1) {
        static const char none[] = "commands run only on the full screen and inline, with --shell; here `COMMAND | "
                                   "ebb run` takes their output along (a blank before ! sends it as text)";
        ebb_plain_say(&p->frontend, EBB_SAY_ERROR, none, sizeof none - 1);
    } else if (strspn(s, " \t") < text.len) {
        size_t n = text.len, skip = !has_path && (p->is_terminal || s[0] == '/') ? ebb_typed_skip(s, n) : 0;
        const char *message = s;
        ebb_frontend_unquote(&message, &n);
        send_message(p, message + skip, n - skip);
    } else if (text.len == 0) {
        ebb_frontend_go_on(&p->frontend);
    }
    ebb_plain_skip_shown(p);
    ebb_buf_fini(&text);
    p->n_open = 0;
    p->loss = EBB_PLAIN_WHOLE;
}

/* -- Lines ------------------------------------------------------------------------------- */

/* A message that is too long is not sent, and not kept; but what its end is decides what the next line is. */
static void add_to_message(ebb_plain *p, const char *s, size_t n)
{
    ebb_buf_add(&p->message, s, n);
    if (p->message.len <= EBB_PASTE_BYTES)
        return;
    ebb_buf_remove(&p->message, EBB_QUOTES_BYTES, p->message.len - EBB_QUOTES_BYTES - n);
    p->n_open = 0;
    if (p->loss == EBB_PLAIN_WHOLE)
        p->loss = EBB_PLAIN_TOO_LONG;
}

/* A terminal that gives whole lines keeps so many bytes of one, and drops the rest of it before anybody can read it:
 * of a line of just as many nobody knows. */
static bool is_cut_by_terminal(size_t n_line)
{
    struct termios modes;

    return n_line >= TERMINAL_LINE_BYTES && tcgetattr(STDIN_FILENO, &modes) == 0 && (modes.c_lflag & ICANON);
}

/* Does the line that ends here go on in the next one? */
static bool line_goes_on(ebb_plain *p)
{
    const char *s = ebb_buf_text(&p->message);
    size_t n = p->message.len;

    if (n > 0 && s[n - 1] == '\\') {
        ebb_buf_remove(&p->message, n - 1, 1);
        return true;
    }
    p->n_open = ebb_frontend_is_open(s, n, p->n_open) ? n : 0;
    return p->n_open > 0;
}

bool ebb_plain_run_next_line(ebb_plain *p)
{
    const char *s = p->in + p->in_at, *nl;
    size_t n = p->in_end - p->in_at;
    bool is_last = p->is_end && n == 0 && p->message.len > 0, is_cut;

    if (!ebb_plain_is_free(p) || p->frontend.quit || (n == 0 && !is_last))
        return false;
    nl = memchr(s, '\n', n);
    n = nl ? (size_t)(nl - s) : n;
    is_cut = is_cut_by_terminal(n);
    if (is_cut)
        p->loss = EBB_PLAIN_CUT_LINE;
    add_to_message(p, s, n);
    p->in_at += n + (nl != NULL);
    if (!nl && !is_last)
        return true;
    if (p->is_terminal)                          /* the terminal has echoed the line end */
        p->at_line_start = true;
    p->has_prompt = false;
    if (!line_goes_on(p) || is_last) {
        run_message(p);
        return true;
    }
    ebb_buf_addc(&p->message, '\n');
    if (is_cut)                                  /* what is lost may be what would have ended the message */
        ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "the terminal has cut this line at 4,095 bytes, and the "
                          "message goes on; Ctrl-C drops it");
    return true;
}

bool ebb_plain_drop_message(ebb_plain *p)
{
    bool has_lines = p->message.len > 0 || p->loss != EBB_PLAIN_WHOLE, edits = ebb_frontend_edits(&p->frontend);

    if (!has_lines && !edits)
        return false;
    ebb_buf_clear(&p->message);
    p->n_open = 0;
    p->loss = EBB_PLAIN_WHOLE;
    if (!has_lines)
        ebb_frontend_leave_edit(&p->frontend);
    ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "%s", has_lines ? "the lines of this message are dropped"
                                                                    : "the message stays as it is");
    return true;
}
