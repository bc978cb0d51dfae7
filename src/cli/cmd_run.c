/* ebb run: one answer to standard output. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/hangup.h"
#include "app/stat_server.h"
#include "backend/backend.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli.h"
#include "cmd_run.h"
#include "confinement.h"
#include "conversation/chat.h"
#include "edit/attach.h"
#include "store/store.h"
#include "unlock.h"

#define MAX_INPUT ((size_t)64 << 20)

static volatile sig_atomic_t stop_signal;

static void on_run_signal(int sig)
{
    stop_signal = sig;
}

static bool run_wants_stop(void *arg)
{
    (void)arg;
    return stop_signal != 0;
}

static ebb_run_output output, own_lines = { .fd = -1 };
static ebb_run_output *lines = &own_lines;       /* what is said on standard error */
static bool has_progress;                        /* the last of them is how far it is, and no whole line */

/* One terminal or pipe for both keeps them in one order, and so does one output. */
static void open_outputs(void)
{
    struct stat out, error;

    ebb_run_output_open(&output, STDOUT_FILENO);
    if (fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 && out.st_dev == error.st_dev &&
        out.st_ino == error.st_ino)
        lines = &output;
    else
        ebb_run_output_open(lines, STDERR_FILENO);
}

/* What clears it: its place is for what comes now. */
static const char *take_progress(void)
{
    const char *clear = has_progress ? "\r\033[K" : "";

    has_progress = false;
    return clear;
}

static void clear_progress(void)
{
    const char *clear = take_progress();

    if (*clear)
        ebb_run_output_add_raw(lines, clear, strlen(clear));
}

/* A line on standard error, added at once (cmd_run.h): what others chose in it was made visible. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    ebb_buf line = { 0 };
    char *text = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return;
    ebb_buf_addf(&line, "%s%s\n", take_progress(), text);
    ebb_run_output_add_raw(lines, ebb_buf_text(&line), line.len);
    ebb_buf_fini(&line);
    free(text);
}

/* The filter of one document, from its start to its end. */
static ebb_status read_document(const ebb_args *a, ebb_documents *d, ebb_error *err)
{
    enum { LOOK_MS = 100 };
    ebb_buf name = { 0 };
    ebb_status st = ebb_documents_start(d, ebb_clock_s(), err);

    ebb_documents_add_name(d, &name);
    if (st == EBB_OK && ebb_cli_progress(a))
        tell("ebb: reading %s", ebb_buf_text(&name));
    ebb_buf_fini(&name);
    while (st == EBB_OK && !ebb_documents_poll(d, ebb_clock_s())) {
        struct pollfd p = { .fd = d->run.fd, .events = POLLIN };
        if (stop_signal)
            return EBB_FAIL(err, EBB_CANCELED, "run: stopped while a document was read");
        if (poll(&p, 1, LOOK_MS) > 0 && !(p.revents & POLLIN))
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);   /* its output is closed; it ends */
    }
    return st;
}

/* Files that the command line names with @ go along; what is piped in can name none. */
static ebb_status attach_files(const ebb_args *a, ebb_buf *prompt, ebb_error *err)
{
    ebb_buf whole = { .max = prompt->max };
    ebb_attached files;
    ebb_filters filters;
    ebb_documents documents = { .filters = &filters };
    ebb_status st;

    ebb_filters_init(&filters, a->filters, a->n_filters);
    while ((st = ebb_attach_expand(prompt->data, prompt->len, &documents, &whole, &files, err)) == EBB_BUSY) {
        st = read_document(a, &documents, err);
        if (st != EBB_OK)
            break;
    }
    ebb_documents_fini(&documents);
    if (st == EBB_OK) {
        ebb_buf_fini(prompt);
        *prompt = whole;
        if (files.missing[0] && !a->quiet)
            tell("ebb: no file %s; sent as text", files.missing);
        if (files.n_left_out > 0 && !a->quiet)
            tell("ebb: %zu files attached, %zu left out (not text, too large, or too many)", files.n_files,
                 files.n_left_out);
    } else {
        ebb_buf_fini(&whole);
    }
    return st;
}

/* Something can be read, perhaps the end.  false: a signal has come, perhaps before there was anything to wait for: a
 * read alone would wait then for what may never be piped in. */
static bool await_input(void)
{
    enum { LOOK_MS = 1000 };
    struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
    int n = 0;

    while (!stop_signal && (n == 0 || (n < 0 && errno == EINTR)))
        n = poll(&p, 1, LOOK_MS);
    return !stop_signal;
}

/* `n` more bytes were to go behind it. */
static ebb_status fail_input(const ebb_buf *prompt, size_t n, ebb_error *err)
{
    return prompt->len + n > MAX_INPUT ? EBB_FAIL(err, EBB_LIMIT, "the input is larger than %zu MiB", MAX_INPUT >> 20)
                                       : EBB_FAIL(err, EBB_NOMEM, "no memory for the input");
}

static ebb_status read_prompt(const ebb_args *a, ebb_buf *prompt, ebb_error *err)
{
    size_t n_more = 0;

    prompt->max = MAX_INPUT;
    if (a->prompt)
        ebb_buf_adds(prompt, a->prompt);
    for (size_t i = 0; i < a->n_words; i++)
        ebb_buf_addf(prompt, "%s%s", prompt->len ? " " : "", a->words[i]);
    if (prompt->len > 0) {
        ebb_status st = attach_files(a, prompt, err);
        if (st != EBB_OK)
            return st;
    }
    if (!isatty(STDIN_FILENO)) {
        char chunk[65536];
        size_t before = prompt->len;
        if (before)
            ebb_buf_adds(prompt, "\n\n");
        size_t start = prompt->len;
        for (;;) {
            ssize_t got;
            if (!await_input())
                return EBB_FAIL(err, EBB_CANCELED, "run: stopped while the input was read");
            got = read(STDIN_FILENO, chunk, sizeof chunk);
            if (got < 0 && (errno == EINTR || errno == EAGAIN))  /* who shares the pipe may have asked for that */
                continue;
            if (got < 0 && prompt->len > start)
                return EBB_FAIL(err, EBB_IO, "run: the input breaks off: %s", strerror(errno));
            if (got <= 0)                        /* closed or unreadable: what -p says is the prompt */
                break;
            n_more = (size_t)got;
            if (!ebb_buf_add(prompt, chunk, n_more))
                break;                           /* there may be no end of it */
        }
        if (prompt->len == start)
            ebb_buf_remove(prompt, before, start - before);
    }
    if (!prompt->failed && prompt->len > 0 && memchr(prompt->data, '\0', prompt->len))
        return EBB_FAIL(err, EBB_FORMAT, "run: the piped input is binary (byte %zu is 0), and models read text; "
                                         "@FILE attaches a PDF",
                        (size_t)((char *)memchr(prompt->data, '\0', prompt->len) - prompt->data));
    if (prompt->failed)
        return fail_input(prompt, n_more, err);
    if (prompt->len == 0)
        return EBB_FAIL(err, EBB_USAGE, "run: nothing to answer; give a text or pipe one in; to chat, leave out `run`");
    return EBB_OK;
}

/* Not only for standard output. */
static bool is_persisted(const ebb_args *a)
{
    return a->session || a->continue_last;
}

/* A reader who is behind sees where it is when he has caught up. */
static void show_progress(const ebb_args *a, const char *what, uint64_t done, uint64_t total)
{
    char text[64];

    if (!ebb_cli_progress(a) || !total)
        return;
    if (!ebb_run_output_is_behind(lines)) {
        snprintf(text, sizeof text, "\r%s %3.0f %%", what, 100.0 * (double)done / (double)total);
        ebb_run_output_add_raw(lines, text, strlen(text));
        has_progress = true;
    }
    if (done == total)
        clear_progress();
}

static bool has_head;            /* the first of several answers has the line above it */

static uint32_t count_of(const ebb_args *a)
{
    return a->n_answers ? a->n_answers : 1;
}

/* Of several answers each has a line above it that says which it is. */
static void print_head(const ebb_args *a, uint32_t i, const ebb_message *m)
{
    uint64_t seed = m->n_sample_records ? m->sample_records[m->n_sample_records - 1].sampling.seed : 0;
    char line[80];

    if (count_of(a) < 2)
        return;
    snprintf(line, sizeof line, "%s--- %u of %u, seed %llu ---\n", i > 0 ? "\n" : "", i + 1, count_of(a),
             (unsigned long long)seed);
    ebb_run_output_add(&output, line, strlen(line));
}

static void print_answer(const ebb_args *a, ebb_chat *c, const char *text, size_t n)
{
    const ebb_message *m = ebb_chat_message(c, ebb_chat_n_messages(c) - 1);

    clear_progress();
    if (!has_head)
        print_head(a, 0, m);
    has_head = true;
    ebb_run_output_add(&output, text, n);
}

/* EPIPE: `| head` has seen enough. */
static ebb_status check_output(ebb_status st, ebb_error *err)
{
    if (st != EBB_OK || !output.error || output.error == EPIPE)
        return st;
    return EBB_FAIL(err, EBB_IO, "not all of the answer could be written to standard output: %s",
                    strerror(output.error));
}

/* A line of the chat's, which may name what others chose. */
static void tell_visible(const ebb_args *a, const char *text, size_t n)
{
    ebb_buf line = { 0 };

    if (!a->quiet && ebb_utf8_add_visible(&line, text, n, false))
        tell("%s", ebb_buf_text(&line));
    ebb_buf_fini(&line);
}

static void tell_event(const ebb_args *a, const ebb_chat_event *ev)
{
    tell_visible(a, ev->text, ev->n_text);
}

/* What of the file is ignored; and, with -v or --io, what was planned, with the reader of the weights and why. */
static void tell_decision(const ebb_args *a, const ebb_chat *c)
{
    char line[EBB_MEMORY_EVENT_TEXT];
    ebb_stats s;

    ebb_chat_stats(c, &s);
    if (!ebb_cli_progress(a) && s.left_out[0])   /* else it came as a notice */
        tell_visible(a, s.left_out, strlen(s.left_out));
    if (a->quiet || (!a->verbose && a->engine.io == EBB_IO_AUTO))
        return;
    tell("%s", ebb_memory_event_text(&s.memory_event, line, sizeof line));
}

static bool has_broken_off;      /* the answer to this question, with an error */

/* Handle the events that wait; false when the answer has ended. */
static bool drain_events(const ebb_args *a, ebb_chat *c, ebb_status *st, ebb_error *err)
{
    ebb_chat_event ev;

    while (ebb_chat_event_next(c, &ev)) {
        switch (ev.kind) {
        case EBB_EVENT_LOADING: show_progress(a, "loading", ev.done, ev.total); break;
        case EBB_EVENT_PREFILL: show_progress(a, "reading", ev.done, ev.total); break;
        case EBB_EVENT_TEXT:
            if (!a->json)
                print_answer(a, c, ev.text, ev.n_text);
            break;
        case EBB_EVENT_NOTICE:
            if (ebb_cli_progress(a))
                tell_event(a, &ev);
            break;
        case EBB_EVENT_NOTE:                     /* what the model no longer sees is not for a terminal only */
        case EBB_EVENT_WARNING: tell_event(a, &ev); break;
        case EBB_EVENT_REFUSED:
        case EBB_EVENT_ERROR:
            *st = EBB_FAIL(err, EBB_IO, "%.*s", (int)ev.n_text, ev.text);
            has_broken_off = true;
            return false;
        case EBB_EVENT_DONE: return false;
        case EBB_EVENT_READY: tell_decision(a, c); break;
        case EBB_EVENT_REPORT: case EBB_EVENT_CHANGED: case EBB_EVENT_SPECULATIVE_PREFILL: break;
        }
    }
    return true;
}

/* What poll(2) says of the chat; who asks for the figures meanwhile gets them, and the reader what he takes: of two
 * places that are one terminal by two names, the lines first, as progress clears the line it stands in. */
static int wait_for_event(ebb_chat *c, ebb_stat_server *stat, int timeout_ms)
{
    struct pollfd fds[4] = { { .fd = ebb_chat_fd(c), .events = POLLIN }, { .fd = stat->fd, .events = POLLIN },
                             { .fd = ebb_run_output_fd(&own_lines), .events = POLLOUT },
                             { .fd = ebb_run_output_fd(&output), .events = POLLOUT } };
    int n = poll(fds, 4, timeout_ms);

    if (n < 0)
        return n;
    if (n > 0 && fds[1].revents)
        ebb_stat_server_serve(stat, c);
    ebb_run_output_send(&own_lines);
    ebb_run_output_send(&output);
    return n;
}

/* Until the process that writes in this conversation has ended, or a moment where it cannot be said who that is. */
static void wait_for_writer(const ebb_args *a, ebb_chat *c, ebb_stat_server *stat)
{
    enum { LOOK_MS = 20, WAIT_MS = 1000 };
    long writer = ebb_chat_writer_pid(c);
    ebb_chat_event ev;

    if (writer && !a->quiet && !stop_signal)
        tell("waiting for process %ld, which writes the answer before this one", writer);
    stat->is_waiting = true;
    do {
        while (ebb_chat_event_next(c, &ev))
            if (ev.kind == EBB_EVENT_WARNING)
                tell_event(a, &ev);
        wait_for_event(c, stat, writer ? WAIT_MS : LOOK_MS);
    } while (writer && ebb_chat_writer_pid(c) == writer && !stop_signal);
    stat->is_waiting = false;
}

/* What is kept goes on unseen, for a while. */
static bool goes_on_unseen(const ebb_args *a)
{
    return stop_signal == SIGHUP && is_persisted(a);
}

/* How many of --linger's seconds are left: they begin when it is first seen that the terminal is gone. */
static uint32_t linger_left_s(const ebb_args *a)
{
    static double gone_s;
    double now_s = ebb_clock_s();

    if (gone_s <= 0)
        gone_s = now_s;
    return now_s - gone_s < a->linger_s ? a->linger_s - (uint32_t)(now_s - gone_s) : 0;
}

/* The question comes behind the answers that other processes write in this conversation: of those who wait for the
 * same one, each waits for the one who was quicker. */
static ebb_status take_turn(const ebb_args *a, ebb_chat *c, ebb_stat_server *stat, ebb_error *err)
{
    ebb_status st;

    while ((st = ebb_chat_take_turn(c, err)) == EBB_BUSY &&
           (!stop_signal || (goes_on_unseen(a) && linger_left_s(a) > 0))) {
        stat->is_unseen = stop_signal == SIGHUP;
        wait_for_writer(a, c, stat);
    }
    if (st == EBB_BUSY && goes_on_unseen(a) && !a->quiet)
        tell("the question was not asked: the answer before it took longer than --linger");
    return st;
}

/* An answer that cannot be written goes on only where it is kept. */
static bool is_unwanted(const ebb_args *a)
{
    return stop_signal || (output.error && !is_persisted(a));
}

/* Before the input, which may take as long as who writes it. */
static bool is_session_missing(const char *name)
{
    ebb_store *s;
    int64_t id;
    bool is_missing;

    if (!name || ebb_store_open(NULL, &s, NULL) != EBB_OK)
        return false;                            /* what comes next says why */
    is_missing = ebb_store_find_or_begin(s, name, &id, NULL) == EBB_NOTFOUND;
    ebb_store_close(s);
    return is_missing;
}

static ebb_status answer_prompt(const ebb_args *a, ebb_chat *c, const ebb_buf *prompt, ebb_error *err)
{
    ebb_stat_server stat;
    ebb_status st;
    bool stopping = false;

    ebb_stat_server_open(&stat);                 /* `ebb stop` finds it there */
    st = take_turn(a, c, &stat, err);
    if (st == EBB_OK)
        st = ebb_chat_send_several(c, count_of(a), prompt->data, prompt->len, err);
    while (st == EBB_OK) {
        if (goes_on_unseen(a) && !stopping) {
            ebb_hangup(c, linger_left_s(a), &stat);
            break;
        }
        if (is_unwanted(a) && !stopping) {
            ebb_chat_stop(c);
            stopping = true;
        }
        if (!drain_events(a, c, &st, err))
            break;
        if (wait_for_event(c, &stat, stopping ? 100 : 1000) < 0 && errno != EINTR)
            st = EBB_FAIL(err, EBB_IO, "poll: %s", strerror(errno));
    }
    clear_progress();
    ebb_stat_server_close(&stat);
    return st;
}

static int print_run_json(const ebb_args *a, ebb_chat *c)
{
    ebb_buf line = { 0 };
    bool is_whole = ebb_run_add_json(&line, c, count_of(a) > 1);

    if (is_whole)
        ebb_run_output_add(&output, line.data, line.len);
    ebb_buf_fini(&line);
    return is_whole ? EBB_EXIT_OK : EBB_EXIT_FAILED;
}

/* A text ends with a line end, in a file too. */
static void end_last_line(const ebb_message *m)
{
    if (m->n_text == 0 || m->text[m->n_text - 1] != '\n')
        ebb_run_output_add(&output, "\n", 1);
}

/* The first was printed while it came; the others are behind it. */
static void end_answers(const ebb_args *a, ebb_chat *c)
{
    const ebb_message *first = ebb_chat_message(c, ebb_chat_n_messages(c) - 1);
    size_t n = 0;
    const ebb_message **all = count_of(a) > 1 ? ebb_run_list_answers(c, &n) : NULL;

    if (n > 0 && !has_head)
        print_head(a, 0, first);
    end_last_line(first);
    for (size_t i = 1; i < n; i++) {
        print_head(a, (uint32_t)i, all[i]);
        ebb_run_output_add(&output, all[i]->text, all[i]->n_text);
        end_last_line(all[i]);
    }
    free(all);
}

/* The part that arrived is for its reader, as it is where it is printed while it comes. */
static bool has_part(const ebb_chat *c)
{
    const ebb_message *last = has_broken_off ? ebb_chat_message(c, ebb_chat_n_messages(c) - 1) : NULL;

    return last && last->role == EBB_ROLE_ASSISTANT && last->n_text > 0;
}

/* `ebb stop` is for the answer: what was written of it is still for its reader. */
static bool has_been_ended(void)
{
    return stop_signal && stop_signal != SIGUSR1;
}

int ebb_cmd_run(ebb_args *a)
{
    struct sigaction act = { .sa_handler = on_run_signal };
    ebb_chat_opts opts;
    ebb_chat *c = NULL;
    ebb_buf prompt = { 0 };
    char *grammar = NULL;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st;

    ebb_cli_model_from_words(a, 0);
    if (ebb_cli_model_from_first_word(a, &err) != EBB_OK || ebb_cli_check_private(a, &err) != EBB_OK ||
        ebb_cli_unlock(a, is_persisted(a), &err) != EBB_OK)
        return ebb_cli_fail(&err);
    if (ebb_cli_answer_form(a, &grammar, &err) != EBB_OK)
        return ebb_cli_fail(&err);
    if (count_of(a) == 1)                        /* a remote engine gives one answer at a time */
        ebb_cli_share(a, true);
    opts = ebb_cli_chat_opts(a);
    opts.grammar = grammar;
    if (!opts.engine_name)
        opts.shared_address = NULL;              /* loaded for one answer, it is not handed over to other processes */
    if (!is_persisted(a))
        opts.store_path = ":memory:";
    opts.is_unattended = true;
    opts.needs_session = true;
    opts.stop = run_wants_stop;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    ebb_cli_catch_hangup(on_run_signal);
    sigaction(SIGUSR1, &act, NULL);              /* another ebb, where one looks on, wants it stopped */
    open_outputs();
    opts.is_name_free = is_session_missing(a->session);
    st = read_prompt(a, &prompt, &err);
    if (st == EBB_OK)
        ebb_cli_confine(a, EBB_CLI_ANSWER, NULL);
    if (st == EBB_OK)
        st = ebb_chat_open(&opts, &c, &err);
    if (st == EBB_OK)
        st = answer_prompt(a, c, &prompt, &err);
    if (a->json && (st == EBB_OK || has_part(c)))
        status = print_run_json(a, c);
    else if (st == EBB_OK)
        end_answers(a, c);
    if (c)
        ebb_chat_end(c);
    if (st == EBB_OK)
        st = ebb_chat_check_saved(c, &err);
    ebb_chat_close(c);                           /* whoever waits for memory or session need not wait for the reader */
    ebb_run_output_close(&own_lines, &output, has_been_ended);
    st = check_output(st, &err);
    ebb_buf_fini(&prompt);
    free(grammar);
    if (stop_signal)
        return 128 + stop_signal;
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
