/* The plain front end: lines in, lines out, no output is ever moved or changed (tui.h).
 * For screen readers, dumb terminals, logs and pipes. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "app/greeting.h"
#include "app/hangup.h"
#include "app/stat_server.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "command/frontend.h"
#include "command/pull_follow.h"
#include "command/slash.h"
#include "edit/attach.h"
#include "edit/typed.h"
#include "term/keys.h"
#include "term/signals.h"
#include "transcript/turn_stats_line.h"
#include "tui.h"

enum { DOCUMENT_LOOK_MS = 100, READ_BYTES = 64 << 10, TERMINAL_LINE_BYTES = 4095 };

/* Why a message is not whole, and so is not sent. */
typedef enum plain_loss {
    IS_WHOLE,
    IS_TOO_LONG,                 /* it had more than EBB_PASTE_BYTES: the most of it is lost */
    HAS_CUT_LINE,                /* the terminal has kept only the beginning of a line */
} plain_loss;

typedef struct plain {
    ebb_frontend frontend;       /* first: commands get it and give it back */
    char      in[READ_BYTES];    /* read; from in_at to in_end it is not in the message yet */
    size_t    in_at, in_end;
    ebb_buf   message;           /* the line under way, behind those that go on in it */
    size_t    n_open;            /* bytes of it in which quotes are not closed */
    plain_loss loss;             /* of the message */
    ebb_documents documents;
    ebb_buf   waiting;           /* a message whose documents are being read */
    size_t    n_shown;           /* bytes of the answer that were printed */
    ebb_buf   shown;             /* these */
    int64_t   shown_id;          /* of that answer, once it is kept; 0: none */
    unsigned  milestone;         /* quarters of the prompt that were announced */
    unsigned  pulled_quarter;    /* of a model that is fetched, likewise */
    bool      is_rewriting;      /* /edit N TEXT is under way: where it fails, nothing is edited any more */
    bool      has_told;          /* the command that is run has said itself what it did */
    size_t    n_known;           /* messages when they were last spoken of, and the id of the last */
    int64_t   last_known;
    bool      is_opening;        /* /load: its messages are shown once it is loaded */
    bool      has_prompt;        /* the output ends with "You: " */
    bool      in_answer;         /* "Model: " was printed */
    bool      at_line_start;
    bool      is_end;            /* of standard input */
    bool      is_unreadable;     /* that end was an error */
    bool      is_terminal;
    bool      has_failed;        /* no model: commands still work */
    bool      has_greeted;
    int       signal;
    ebb_stat_server stat;
} plain;

static void plain_put(plain *p, const char *s, size_t n)
{
    ebb_buf visible = { 0 };

    ebb_utf8_add_visible(&visible, s, n, false);
    if (visible.len > 0) {
        fwrite(visible.data, 1, visible.len, stdout);
        p->at_line_start = visible.data[visible.len - 1] == '\n';
    }
    ebb_buf_fini(&visible);
}

static void fresh_line(plain *p)
{
    if (!p->at_line_start)
        putchar('\n');
    p->at_line_start = true;
    p->has_prompt = false;
}

static void plain_say(ebb_frontend *f, ebb_say kind, const char *text, size_t n)
{
    plain *p = (plain *)f;

    p->has_told |= kind == EBB_SAY_NOTICE;
    fresh_line(p);
    fputs(kind == EBB_SAY_ERROR ? "Error: " : kind == EBB_SAY_NOTICE ? "Note: " : "", stdout);
    plain_put(p, text, n);
    fresh_line(p);
}

static bool is_free(const plain *p)
{
    return (ebb_chat_is_ready(p->frontend.chat) || p->has_failed) && !ebb_chat_is_busy(p->frontend.chat) &&
           !ebb_documents_is_running(&p->documents) &&
           !ebb_chat_awaits_report(p->frontend.chat);
}

/* Who answers, and what to type: once, to somebody who begins. */
static void plain_greet(plain *p)
{
    ebb_machine machine;
    ebb_buf text = { 0 };

    if (p->has_greeted || ebb_chat_n_messages(p->frontend.chat) > 0 ||
        ebb_machine_probe(NULL, false, &machine, NULL) != EBB_OK)
        return;
    if (ebb_greeting_measures(&machine, ebb_chat_model(p->frontend.chat)) &&
        ebb_machine_probe(NULL, true, &machine, NULL) != EBB_OK)
        machine.memory_bytes_s = 0;
    ebb_greeting_text(&text, &machine, ebb_chat_model(p->frontend.chat), true, false);
    ebb_buf_adds(&text, "\n/help lists the commands; Ctrl-D leaves.");
    plain_say(&p->frontend, EBB_SAY_TEXT, ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
}

static void plain_prompt(plain *p)
{
    if (!p->is_terminal || p->has_prompt || p->is_end || p->frontend.quit || !is_free(p))
        return;
    plain_greet(p);
    p->has_greeted = true;
    fresh_line(p);
    fputs("You: ", stdout);
    p->has_prompt = true;
    p->at_line_start = false;
}

/* Where the output goes elsewhere (`ebb | tee log`), nothing would be on the terminal, as if ebb hung. */
static void greet_aside(void)
{
    if (isatty(STDIN_FILENO) && !isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
        fputs("ebb: the output is no terminal, so there is no prompt: type a message, or /help; Ctrl-D leaves\n",
              stderr);
}

/* -- Answers ---------------------------------------------------------------------------- */

/* Up to where an answer may be printed: for a screen reader, whole sentences. */
static size_t printable(const plain *p, const char *s, size_t n, bool is_done)
{
    if (is_done || !p->frontend.opts->accessible)
        return n;
    while (n > p->n_shown && s[n - 1] != '\n' &&
           !(n > p->n_shown + 1 && s[n - 1] == ' ' && strchr(".!?:", s[n - 2])))
        n--;
    return n;
}

static void show_message(plain *p, const ebb_message *m)
{
    fresh_line(p);
    fputs(m->role == EBB_ROLE_USER ? "You: " : m->role == EBB_ROLE_ASSISTANT ? "Model: " :
          m->role == EBB_ROLE_NOTE ? "Note: " : "System: ", stdout);
    p->at_line_start = false;
    plain_put(p, m->text, m->n_text);
    fresh_line(p);
}

static const ebb_message *last_message(const plain *p)
{
    size_t n = ebb_chat_n_messages(p->frontend.chat);

    return n > 0 ? ebb_chat_message(p->frontend.chat, n - 1) : NULL;
}

static void set_shown(plain *p, const ebb_message *m, size_t n)
{
    if (n > p->n_shown && p->shown.len == p->n_shown && n <= m->n_text)
        ebb_buf_add(&p->shown, m->text + p->n_shown, n - p->n_shown);
    p->n_shown = n;
}

static void leave_answer(plain *p)
{
    fresh_line(p);
    ebb_buf_clear(&p->shown);
    p->in_answer = false;
    p->n_shown = 0;
    p->shown_id = 0;
}

static void show_answer_text(plain *p, const ebb_message *m, bool is_done)
{
    size_t end = printable(p, m->text, m->n_text, is_done);

    p->shown_id = m->id > 0 ? m->id : 0;
    if (!p->in_answer && (end > 0 || is_done)) {
        fresh_line(p);
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
static size_t find_shown(const plain *p)
{
    size_t n = ebb_chat_n_messages(p->frontend.chat), i = 0;

    while (i < n && ebb_chat_message(p->frontend.chat, i)->id != p->shown_id)
        i++;
    return i;
}

/* Another process has gone on with another branch, where the answer that is shown is not: its last question, as a turn
 * of its own.  A copy of the answer, under another id, is that answer.  false: it has not. */
static bool show_other_branch(plain *p)
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
static bool show_what_followed(plain *p)
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

static void show_answer(plain *p, bool is_done)
{
    show_what_followed(p);
    if (last_message(p) && last_message(p)->role == EBB_ROLE_ASSISTANT)
        show_answer_text(p, last_message(p), is_done);
}

static void announce(plain *p, const char *what, const ebb_chat_event *ev)
{
    unsigned quarter = ev->total ? (unsigned)(4 * ev->done / ev->total) : 0;

    if (!p->is_terminal || ev->total == 0 || quarter <= p->milestone || quarter > 3)
        return;
    p->milestone = quarter;
    fresh_line(p);
    printf("Note: %s, %u%%\n", what, quarter * 25);
}

/* What was said before this session was opened here. */
static void show_history(plain *p)
{
    for (size_t i = 0; i < ebb_chat_n_messages(p->frontend.chat); i++)
        show_message(p, ebb_chat_message(p->frontend.chat, i));
}

/* true: the messages are not those that were last spoken of. */
static bool note_messages(plain *p)
{
    size_t n = p->n_known;
    int64_t last = p->last_known;

    p->n_known = ebb_chat_n_messages(p->frontend.chat);
    p->last_known = last_message(p) ? last_message(p)->id : 0;
    return p->n_known != n || p->last_known != last;
}

/* Another list of messages: a session was opened, something was undone.  Or a mark on one: the command has told. */
static void on_changed(plain *p)
{
    bool is_other_list = note_messages(p);

    if (p->is_opening)
        show_history(p);
    else if (show_what_followed(p) || show_other_branch(p))
        show_answer(p, false);
    else if (!ebb_chat_is_busy(p->frontend.chat) && (is_other_list || !p->has_told))
        ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "the conversation has %zu message%s now",
                       ebb_chat_n_messages(p->frontend.chat), ebb_chat_n_messages(p->frontend.chat) == 1 ? "" : "s");
    p->is_opening = false;
}

static void handle_chat_events(plain *p)
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
        case EBB_EVENT_NOTICE: plain_say(&p->frontend, EBB_SAY_NOTICE, ev.text, ev.n_text); break;
        case EBB_EVENT_REPORT: plain_say(&p->frontend, EBB_SAY_TEXT, ev.text, ev.n_text); break;
        case EBB_EVENT_ERROR:
            if (p->in_answer)
                show_answer(p, true);
            p->shown_id = 0;
            plain_say(&p->frontend, EBB_SAY_ERROR, ev.text, ev.n_text);
            p->has_failed = !ebb_chat_is_ready(p->frontend.chat);
            break;
        case EBB_EVENT_REFUSED:
            p->is_opening = false;
            plain_say(&p->frontend, EBB_SAY_ERROR, ev.text, ev.n_text);
            break;
        case EBB_EVENT_CHANGED: on_changed(p); break;
        case EBB_EVENT_SPECULATIVE_PREFILL: break; /* what is typed here comes in whole lines */
        }
    note_messages(p);
    p->has_told = false;
}

/* -- Lines ---------------------------------------------------------------------------------- */

/* The text of an answer that is still generated counts as printed so far. */
static void skip_shown(plain *p)
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

/* What the edit was for has failed, or is stopped; after a bare /edit, another line may take its place. */
static void leave_rewriting(plain *p)
{
    if (p->is_rewriting)
        ebb_frontend_leave_edit(&p->frontend);
    p->is_rewriting = false;
}

/* The filter of a document begins; the message that needs it waits. */
static ebb_status start_document(plain *p, const char *s, size_t n, ebb_error *err)
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
static ebb_status add_files(plain *p, const ebb_buf *text, ebb_buf *whole, ebb_attached *files, ebb_error *err)
{
    if (text->failed)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the message");
    if (p->is_terminal && ebb_frontend_takes_files(&p->frontend))
        return ebb_attach_expand(ebb_buf_text(text), text->len, &p->documents, whole, files, err);
    return ebb_buf_add(whole, ebb_buf_text(text), text->len) ? EBB_OK
                                                             : EBB_FAIL(err, EBB_NOMEM, "no memory for the message");
}

static void send_message(plain *p, const char *s, size_t n)
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
        plain_say(&p->frontend, EBB_SAY_ERROR, err.msg, strlen(err.msg));
    if (st != EBB_OK || !waits)
        leave_rewriting(p);
    ebb_buf_fini(&text);
    ebb_buf_fini(&whole);
}

/* Has a filter ended?  Then its message goes, unless it was stopped. */
static void documents_tick(plain *p)
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
static void send_rewritten(plain *p)
{
    ebb_buf text = p->frontend.rewritten;

    p->frontend.rewritten = (ebb_buf){ 0 };
    p->is_rewriting = text.len > 0;
    if (text.len > 0)
        send_message(p, text.data, text.len);
    ebb_buf_fini(&text);
}

/* A session that a command opens, now or in a job, is shown.  What fails opens none: the next change is another one. */
static void run_command(plain *p, const char *s)
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

static void say_not_sent(plain *p)
{
    if (p->loss == HAS_CUT_LINE)
        ebb_frontend_sayf(&p->frontend, EBB_SAY_ERROR, "the terminal cuts a line at 4,095 bytes, so this one is not "
                          "sent; give it as a file (@NAME), or in lines that end with \\, but for the last");
    else
        ebb_frontend_sayf(&p->frontend, EBB_SAY_ERROR, "a message of more than %u MiB, or than there is memory for, is "
                          "not sent; send it in parts", EBB_PASTE_BYTES >> 20);
}

/* A line, or several joined by backslashes, is complete. */
static void run_message(plain *p)
{
    ebb_buf text = p->message;
    const char *s = ebb_buf_text(&text);
    bool has_path = begins_with_path(s, text.len);

    memset(&p->message, 0, sizeof p->message);
    if (p->loss != IS_WHOLE || text.failed) {
        say_not_sent(p);
    } else if (ebb_slash_command_is(s) && !has_path) {
        run_command(p, s);
    } else if (p->is_terminal && s[0] == '!' && text.len > 1) {
        static const char none[] = "commands run only on the full screen and inline, with --shell; here `COMMAND | "
                                   "ebb run` takes their output along (a blank before ! sends it as text)";
        plain_say(&p->frontend, EBB_SAY_ERROR, none, sizeof none - 1);
    } else if (strspn(s, " \t") < text.len) {
        size_t n = text.len, skip = !has_path && (p->is_terminal || s[0] == '/') ? ebb_typed_skip(s, n) : 0;
        const char *message = s;
        ebb_frontend_unquote(&message, &n);
        send_message(p, message + skip, n - skip);
    } else if (text.len == 0) {
        ebb_frontend_go_on(&p->frontend);
    }
    skip_shown(p);
    ebb_buf_fini(&text);
    p->n_open = 0;
    p->loss = IS_WHOLE;
}

/* A message that is too long is not sent, and not kept; but what its end is decides what the next line is. */
static void add_to_message(plain *p, const char *s, size_t n)
{
    ebb_buf_add(&p->message, s, n);
    if (p->message.len <= EBB_PASTE_BYTES)
        return;
    ebb_buf_remove(&p->message, EBB_QUOTES_BYTES, p->message.len - EBB_QUOTES_BYTES - n);
    p->n_open = 0;
    if (p->loss == IS_WHOLE)
        p->loss = IS_TOO_LONG;
}

/* A terminal that gives whole lines keeps so many bytes of one, and drops the rest of it before anybody can read it:
 * of a line of just as many nobody knows. */
static bool is_cut_by_terminal(size_t n_line)
{
    struct termios modes;

    return n_line >= TERMINAL_LINE_BYTES && tcgetattr(STDIN_FILENO, &modes) == 0 && (modes.c_lflag & ICANON);
}

/* Does the line that ends here go on in the next one? */
static bool line_goes_on(plain *p)
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

/* What is read goes to the message, if that may be run now, up to the end of a line; true: it was run, or goes on. */
static bool run_next_line(plain *p)
{
    const char *s = p->in + p->in_at, *nl;
    size_t n = p->in_end - p->in_at;
    bool is_last = p->is_end && n == 0 && p->message.len > 0, is_cut;

    if (!is_free(p) || p->frontend.quit || (n == 0 && !is_last))
        return false;
    nl = memchr(s, '\n', n);
    n = nl ? (size_t)(nl - s) : n;
    is_cut = is_cut_by_terminal(n);
    if (is_cut)
        p->loss = HAS_CUT_LINE;
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

/* A read says either; the SIGHUP may come later, or not to us. */
static bool has_hung_up(const plain *p, ssize_t got)
{
    return p->is_terminal && ((got < 0 && errno == EIO) || (got == 0 && !isatty(STDIN_FILENO)));
}

/* Only once all that was read before is run: who sends more than can be answered waits. */
static void plain_read_input(plain *p)
{
    ssize_t got = read(STDIN_FILENO, p->in, sizeof p->in);

    if (got > 0) {
        p->in_at = 0;
        p->in_end = (size_t)got;
    } else if (has_hung_up(p, got)) {
        p->signal = SIGHUP;
        p->frontend.quit = true;
    } else if (got < 0 && errno != EINTR && errno != EAGAIN) {
        fprintf(stderr, "ebb: standard input cannot be read: %s\n", strerror(errno));
        p->is_end = p->is_unreadable = true;
    } else if (got == 0)
        p->is_end = true;
}

/* The shell's output is between our earlier lines and the next ones. */
static void suspend(plain *p)
{
    static const char nobody[] = "there is no shell here to bring ebb back, so it was not stopped";

    fflush(stdout);
    if (!ebb_signals_stop()) {
        p->at_line_start = false;                /* the terminal has shown ^Z */
        plain_say(&p->frontend, EBB_SAY_NOTICE, nobody, sizeof nobody - 1);
    }
    p->at_line_start = p->at_line_start || p->is_terminal;
    p->has_prompt = false;
}

/* Ctrl-C at the prompt: lines of a message that goes on, or an edit that was begun.  false: there is neither. */
static bool drop_message(plain *p)
{
    bool has_lines = p->message.len > 0 || p->loss != IS_WHOLE, edits = ebb_frontend_edits(&p->frontend);

    if (!has_lines && !edits)
        return false;
    ebb_buf_clear(&p->message);
    p->n_open = 0;
    p->loss = IS_WHOLE;
    if (!has_lines)
        ebb_frontend_leave_edit(&p->frontend);
    ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "%s", has_lines ? "the lines of this message are dropped"
                                                                    : "the message stays as it is");
    return true;
}

static void handle_signal(plain *p)
{
    int number;

    while ((number = ebb_signals_next()) != 0) {
        if (number == SIGUSR1 || (number == SIGINT && ebb_chat_is_busy(p->frontend.chat))) {
            ebb_chat_stop(p->frontend.chat);
        } else if (number == SIGUSR2) {
            ebb_chat_share_model(p->frontend.chat);
        } else if (number == SIGINT && ebb_documents_is_running(&p->documents)) {
            p->at_line_start = false;            /* the terminal has shown ^C */
            ebb_documents_stop(&p->documents);
        } else if (number == SIGINT && p->is_terminal) {
            p->at_line_start = false;            /* the terminal has shown ^C */
            if (!drop_message(p) && !ebb_pull_follow_stop(&p->frontend))
                ebb_frontend_sayf(&p->frontend, EBB_SAY_NOTICE, "Ctrl-D leaves");
        } else if (number == SIGINT && ebb_pull_follow_stop(&p->frontend)) {
            p->at_line_start = false;
        } else if (number == SIGTSTP) {
            suspend(p);
        } else if (number != SIGWINCH && number != SIGCONT && number != SIGCHLD) {
            p->signal = number;
            p->frontend.quit = true;
        }
    }
}

/* A model that is fetched: each quarter of it, and the end. */
static void follow_pull(plain *p)
{
    const ebb_download_progress *d = &p->frontend.pull.last.progress;
    unsigned quarter;
    ebb_buf line = { 0 };

    ebb_pull_follow_poll(&p->frontend);
    quarter = d->total != UINT64_MAX && d->total > 0 ? (unsigned)(4 * d->done / d->total) : 0;
    if (!ebb_pull_process_is_running(&p->frontend.pull))
        p->pulled_quarter = 0;
    else if (quarter > p->pulled_quarter && quarter < 4) {
        p->pulled_quarter = quarter;
        ebb_pull_follow_figures(&p->frontend.pull, &line);
        plain_say(&p->frontend, EBB_SAY_NOTICE, ebb_buf_text(&line), line.len);
    }
    ebb_buf_fini(&line);
}

static void plain_loop_step(plain *p)
{
    struct pollfd fds[5] = {
        { .fd = ebb_signals_fd(), .events = POLLIN },
        { .fd = ebb_chat_fd(p->frontend.chat), .events = POLLIN },
        { .fd = -1, .events = POLLIN },          /* standard input, once its turn has come */
        { .fd = p->stat.fd, .events = POLLIN },
        { .fd = ebb_pull_process_is_running(&p->frontend.pull) ? p->frontend.pull.fd : -1, .events = POLLIN },
    };

    while (run_next_line(p))
        handle_chat_events(p);
    plain_prompt(p);
    fflush(stdout);
    if (!p->is_end && p->in_at == p->in_end)
        fds[2].fd = STDIN_FILENO;
    if (p->frontend.quit || (p->is_end && p->in_at == p->in_end && p->message.len == 0 && is_free(p) &&
                             !ebb_pull_process_is_running(&p->frontend.pull))) {
        p->frontend.quit = true;
        return;
    }
    if (poll(fds, 5, ebb_documents_is_running(&p->documents) ? DOCUMENT_LOOK_MS : -1) < 0 && errno != EINTR)
        p->frontend.quit = true;
    handle_signal(p);
    documents_tick(p);
    if (fds[3].revents)
        ebb_stat_server_serve(&p->stat, p->frontend.chat);
    follow_pull(p);                              /* also after SIGCHLD */
    if (fds[2].revents)
        plain_read_input(p);
    handle_chat_events(p);
}

static bool plain_wants_stop(void *arg)
{
    (void)arg;
    return ebb_signals_want_stop();
}

int ebb_plain_run(const ebb_chat_opts *chat_opts, const ebb_tui_opts *opts)
{
    plain p = { .at_line_start = true, .is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) };
    ebb_chat_opts stoppable = *chat_opts;
    ebb_chat *chat;
    ebb_error err;
    int status;

    stoppable.stop = plain_wants_stop;
    if (ebb_chat_open(&stoppable, &chat, &err) != EBB_OK) {
        fprintf(stderr, "ebb: %s\n", err.msg);
        return 1;
    }
    ebb_frontend_init(&p.frontend, chat, opts);
    p.frontend.say = plain_say;
    p.documents.filters = opts->filters;
    if (!ebb_signals_open())
        p.frontend.quit = true;
    show_history(&p);
    note_messages(&p);
    greet_aside();
    skip_shown(&p);                              /* another process may be at it still */
    ebb_stat_server_open(&p.stat);
    ebb_stat_server_unlock(opts->begin_lock);
    while (!p.frontend.quit)
        plain_loop_step(&p);
    fresh_line(&p);
    fflush(stdout);
    if (p.signal == SIGHUP)
        ebb_hangup(chat, opts->linger_s, &p.stat);
    ebb_stat_server_close(&p.stat);
    ebb_signals_close();
    status = p.signal ? 128 + p.signal : p.has_failed || p.is_unreadable;
    ebb_buf_fini(&p.message);
    ebb_buf_fini(&p.waiting);
    ebb_buf_fini(&p.shown);
    ebb_documents_fini(&p.documents);
    ebb_frontend_fini(&p.frontend);
    ebb_chat_close(chat);
    return status;
}
