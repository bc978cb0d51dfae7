/* The plain front end: lines in, lines out, no output is ever moved or changed (tui.h, plain.h).
 * For screen readers, dumb terminals, logs and pipes. */
#include "app/plain.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/greeting.h"
#include "app/hangup.h"
#include "base/clock.h"
#include "command/pull_follow.h"
#include "term/signals.h"
#include "tui.h"

enum { DOCUMENT_LOOK_MS = 100 };

/* Who answers, and what to type: once, to somebody who begins. */
static void plain_greet(ebb_plain *p)
{
    ebb_machine machine;
    ebb_buf text = { 0 };

    if (p->has_greeted || ebb_chat_n_messages(p->frontend.chat) > 0 ||
        ebb_machine_probe(NULL, false, &machine, NULL) != EBB_OK)
        return;
    if (ebb_greeting_measures(&machine, ebb_chat_model(p->frontend.chat)) &&
        ebb_machine_probe(NULL, true, &machine, NULL) != EBB_OK)
        machine.memory_bytes_s = 0;
    ebb_greeting_text(&text, &machine, ebb_chat_model(p->frontend.chat), true, false, p->frontend.opts->is_private);
    ebb_buf_adds(&text, "\n/help lists the commands; Ctrl-D leaves.");
    ebb_plain_say(&p->frontend, EBB_SAY_TEXT, ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
}

static void plain_prompt(ebb_plain *p)
{
    if (!p->is_terminal || p->has_prompt || p->is_end || p->frontend.quit || !ebb_plain_is_free(p))
        return;
    plain_greet(p);
    p->has_greeted = true;
    ebb_plain_fresh_line(p);
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

/* A read says either; the SIGHUP may come later, or not to us. */
static bool has_hung_up(const ebb_plain *p, ssize_t got)
{
    return p->is_terminal && ((got < 0 && errno == EIO) || (got == 0 && !isatty(STDIN_FILENO)));
}

/* Only once all that was read before is run: who sends more than can be answered waits. */
static void plain_read_input(ebb_plain *p)
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
static void suspend(ebb_plain *p)
{
    static const char nobody[] = "there is no shell here to bring ebb back, so it was not stopped";

    fflush(stdout);
    if (!ebb_signals_stop()) {
        p->at_line_start = false;                /* the terminal has shown ^Z */
        ebb_plain_say(&p->frontend, EBB_SAY_NOTICE, nobody, sizeof nobody - 1);
    }
    p->at_line_start = p->at_line_start || p->is_terminal;
    p->has_prompt = false;
}

static void handle_signal(ebb_plain *p)
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
            if (!ebb_plain_drop_message(p) && !ebb_pull_follow_stop(&p->frontend))
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
static void follow_pull(ebb_plain *p)
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
        ebb_plain_say(&p->frontend, EBB_SAY_NOTICE, ebb_buf_text(&line), line.len);
    }
    ebb_buf_fini(&line);
}

static void plain_loop_step(ebb_plain *p)
{
    struct pollfd fds[5] = {
        { .fd = ebb_signals_fd(), .events = POLLIN },
        { .fd = ebb_chat_fd(p->frontend.chat), .events = POLLIN },
        { .fd = -1, .events = POLLIN },          /* standard input, once its turn has come */
        { .fd = p->stat.fd, .events = POLLIN },
        { .fd = ebb_pull_process_is_running(&p->frontend.pull) ? p->frontend.pull.fd : -1, .events = POLLIN },
    };

    while (ebb_plain_run_next_line(p))
        ebb_plain_take_events(p);
    plain_prompt(p);
    fflush(stdout);
    if (!p->is_end && p->in_at == p->in_end)
        fds[2].fd = STDIN_FILENO;
    if (p->frontend.quit || (p->is_end && p->in_at == p->in_end && p->message.len == 0 && ebb_plain_is_free(p) &&
                             !ebb_pull_process_is_running(&p->frontend.pull))) {
        p->frontend.quit = true;
        return;
    }
    if (poll(fds, 5, ebb_documents_is_running(&p->documents) ? DOCUMENT_LOOK_MS : -1) < 0 && errno != EINTR)
        p->frontend.quit = true;
    handle_signal(p);
    ebb_plain_documents_tick(p);
    if (fds[3].revents)
        ebb_stat_server_serve(&p->stat, p->frontend.chat);
    follow_pull(p);                              /* also after SIGCHLD */
    if (fds[2].revents)
        plain_read_input(p);
    ebb_plain_take_events(p);
}

static bool plain_wants_stop(void *arg)
{
    (void)arg;
    return ebb_signals_want_stop();
}

int ebb_plain_run(const ebb_chat_opts *chat_opts, const ebb_tui_opts *opts)
{
    ebb_plain p = { .at_line_start = true, .is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) };
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
    p.frontend.say = ebb_plain_say;
    p.documents.filters = opts->filters;
    if (!ebb_signals_open())
        p.frontend.quit = true;
    ebb_plain_show_history(&p);
    ebb_plain_note_messages(&p);
    greet_aside();
    ebb_plain_skip_shown(&p);                    /* another process may be at it still */
    ebb_stat_server_open(&p.stat);
    ebb_stat_server_unlock(opts->begin_lock);
    while (!p.frontend.quit)
        plain_loop_step(&p);
    ebb_plain_fresh_line(&p);
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
