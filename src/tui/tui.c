/* The full screen on the process's terminal: the poll loop (tui.h). */
#include "tui.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/hangup.h"
#include "app/stat_server.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "term/signals.h"

static int shorter_timeout(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

static void tui_loop_step(ebb_app *a, ebb_term *term, ebb_chat *chat, ebb_stat_server *stat)
{
    struct pollfd fds[6];
    ebb_input in;
    double now = ebb_clock_s();
    int n;

    ebb_app_tick(a, now);
    ebb_app_draw(a, now);
    n = term->ops->fds(term, fds, 3);
    fds[n++] = (struct pollfd){ .fd = ebb_chat_fd(chat), .events = POLLIN };
    fds[n++] = (struct pollfd){ .fd = ebb_pull_process_is_running(&a->frontend.pull) ? a->frontend.pull.fd : -1,
                                .events = POLLIN };
    fds[n++] = (struct pollfd){ .fd = stat->fd, .events = POLLIN };
    if (poll(fds, (nfds_t)n, shorter_timeout(term->ops->timeout_ms(term), ebb_app_timeout_ms(a, ebb_clock_s()))) < 0 &&
        errno != EINTR)
        a->frontend.quit = true;
    if (fds[n - 1].revents)
        ebb_stat_server_serve(stat, chat);
    while (!a->frontend.quit && term->ops->input(term, &in))
        ebb_app_input(a, &in);
    ebb_app_events(a);
}

static int fail_to_start(const ebb_error *err)
{
    fprintf(stderr, "ebb: %s\n", err->msg);
    return 1;
}

/* The last line that ebb leaves on the terminal: how one comes back, or why one cannot. */
static void say_good_bye(ebb_chat *chat, bool has_unsent, bool ascii)
{
    const char *name = ebb_chat_session_name(chat);
    char word[EBB_SESSION_WORD];
    ebb_buf line = { 0 };
    ebb_error err = { 0 };

    ebb_chat_end(chat);                          /* the last words are to be saved, too */
    if (ebb_chat_check_saved(chat, &err) != EBB_OK)
        fprintf(stderr, "ebb: %s\n", err.msg);
    if (!ebb_chat_is_saved(chat)) {
        if (has_unsent)
            puts("Your unsent text is kept for the next start.");
        return;
    }
    ebb_utf8_add_line(&line, name, strlen(name), ascii);
    ebb_chat_session_word(chat, word);
    if (ebb_chat_is_newest_session(chat))
        printf("ebb -c continues: ");
    else                                         /* it was opened to look something up */
        printf("ebb -s %s continues: ", word);
    printf("%s%s\n", ebb_buf_text(&line), has_unsent ? " (and has your unsent text)" : "");
    ebb_buf_fini(&line);
}

/* From the questions to the first frame at most, what has been opened meanwhile counted in.  A frame takes what has
 * come by then, and is painted anew in other colours when the rest comes.  Only rows that scroll cannot be: a
 * conversation that goes on inline waits for the colours, where the terminal's background decides them. */
static double answers_s(const ebb_tui_opts *opts, const ebb_chat *chat)
{
    static const double scrolled_s = 0.03;       /* terminals that are before one's eyes answer sooner */

    return opts->is_inline && !opts->theme && !opts->no_color && ebb_chat_n_messages(chat) > 0 ? scrolled_s : 0;
}

/* Plain lines on a terminal are a surprise to whoever has not asked for them: by TERM=dumb one has. */
static int run_plain(const ebb_chat_opts *chat_opts, const ebb_tui_opts *opts, const ebb_error *why)
{
    const char *kind = getenv("TERM");

    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !(kind && strcmp(kind, "dumb") == 0))
        printf("Note: %s\n", why->msg);
    return ebb_plain_run(chat_opts, opts);
}

int ebb_tui_run(const ebb_chat_opts *chat_opts, const ebb_tui_opts *opts)
{
    ebb_term_opts term_opts = { .no_color = opts->no_color, .ascii = opts->ascii, .links = (ebb_links)opts->links,
                                .reflows = opts->reflows || opts->in_tmux };
    ebb_chat_opts stoppable = *chat_opts;
    ebb_term *term;
    ebb_chat *chat;
    ebb_error err;
    ebb_app app;
    ebb_stat_server stat;
    bool is_hangup, has_unsent;
    ebb_status kept;
    int status;

    if ((opts->is_inline ? ebb_term_inline : ebb_term_curses)(&term_opts, &term, &err) != EBB_OK)
        return err.code == EBB_UNSUPPORTED ? run_plain(chat_opts, opts, &err) : fail_to_start(&err);
    stoppable.stop = ebb_app_wants_stop;
    stoppable.stop_arg = &app;                   /* prompts are made only for what it does */
    if (ebb_chat_open(&stoppable, &chat, &err) != EBB_OK) {
        term->ops->close(term);
        return fail_to_start(&err);
    }
    term->ops->await_answers(term, answers_s(opts, chat));
    ebb_app_init(&app, term, chat, opts);
    ebb_stat_server_open(&stat);
    ebb_stat_server_unlock(opts->begin_lock);
    while (!app.frontend.quit)
        tui_loop_step(&app, term, chat, &stat);
    status = app.signal ? 128 + app.signal : 0;
    is_hangup = app.signal == SIGHUP;
    if (is_hangup)
        ebb_signals_leave_terminal();
    kept = ebb_app_leave(&app, &has_unsent, &err);
    ebb_app_fini(&app);
    term->ops->close(term);
    if (kept != EBB_OK)
        fprintf(stderr, "ebb: %s of what was typed and not sent is lost: %s\n", has_unsent ? "the end" : "all",
                err.msg);
    if (is_hangup)
        ebb_hangup(chat, opts->linger_s, &stat);
    else
        say_good_bye(chat, has_unsent, opts->ascii);
    ebb_stat_server_close(&stat);
    ebb_chat_close(chat);
    return status;
}
