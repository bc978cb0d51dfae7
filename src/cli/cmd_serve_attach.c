/* ebb serve --attach: standard input and output to the server of this user, which is started if there is none.  What
 * ssh runs over there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cmd_serve.h"
#include "confinement.h"
#include "net/listen.h"
#include "os/child.h"
#include "os/file.h"

enum { BEGIN_MS = 20000, LOOK_MS = 50, LEAVE_S = 600 };

static volatile sig_atomic_t is_asked_to_end;

static void on_attach_signal(int sig)
{
    is_asked_to_end = sig;
}

/* -- A server ---------------------------------------------------------------------------------------------------- */

/* It goes on when this process has ended, so that a line that breaks takes nothing along.  What the command line says
 * is for it.  Only this user can open its socket, so it wants no key, whatever the configuration has for servers: those
 * who come have none. */
static ebb_status start_server(const ebb_args *a, const char *path, ebb_child *child, ebb_error *err)
{
    char idle[16];
    const char *const own[] = { "--quiet", "--idle", idle, "--socket", path, "--key-file", "none" };
    const size_t n_own = sizeof own / sizeof own[0];
    int argc, nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    char **words = ebb_cli_remembered_words(&argc);
    const char **argv = calloc((size_t)argc + n_own + 2, sizeof *argv);
    ebb_status st = EBB_OK;

    snprintf(idle, sizeof idle, "%u", a->idle_s ? a->idle_s : LEAVE_S);
    if (nothing < 0)
        st = EBB_FAIL(err, EBB_IO, "/dev/null: %s", strerror(errno));
    else if (!argv)
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for the server's command");
    if (st == EBB_OK) {
        argv[0] = ebb_cli_program();
        ebb_args_rewrite(argc - 1, words + 1, EBB_FOR_SERVE, "--attach", own, n_own, argv + 1);
        st = ebb_child_start((char *const *)argv, nothing, child, err);
    }
    ebb_file_close(nothing);
    free(argv);
    return st;
}

static ebb_status await_server(const char *path, ebb_child *child, int *fd, ebb_error *err)
{
    const struct timespec look = { .tv_nsec = LOOK_MS * 1000000L };
    static const char name[] = "ebb: ";
    ebb_buf words = { 0 };
    const char *why;
    ebb_status st = EBB_NOTFOUND;

    for (int ms = 0; st == EBB_NOTFOUND && ms < BEGIN_MS && !is_asked_to_end; ms += LOOK_MS) {
        struct pollfd p = { .fd = child->err_fd, .events = 0 };

        nanosleep(&look, NULL);
        st = ebb_connect_unix(path, fd, err);
        /* it has ended; perhaps another one was quicker */
        if (st != EBB_OK && poll(&p, 1, 0) > 0 && (p.revents & POLLHUP)) {
            st = ebb_connect_unix(path, fd, err);
            break;
        }
    }
    ebb_child_listen(child, &words);
    why = ebb_child_last_line(&words);
    if (st != EBB_OK && why)
        st = EBB_FAIL(err, EBB_IO, "the server could not be started: %.300s",
                      strncmp(why, name, sizeof name - 1) == 0 ? why + sizeof name - 1 : why);
    ebb_buf_fini(&words);
    return st;
}

/* *child: the server, if there was none before. */
static ebb_status reach_server(const ebb_args *a, int *fd, ebb_child *child, ebb_error *err)
{
    ebb_buf path = { 0 };
    ebb_status st = ebb_serve_socket_path(a, &path, err);

    if (st == EBB_OK)
        st = ebb_connect_unix(path.data, fd, err);
    if (st == EBB_NOTFOUND && path.len) {
        st = start_server(a, path.data, child, err);
        if (st == EBB_OK)
            st = await_server(path.data, child, fd, err);
    }
    ebb_buf_fini(&path);
    return st;
}

/* -- The bridge ---------------------------------------------------------------------------------------------------- */

/* Bytes on their way: nothing more is read before they are gone. */
typedef struct flow {
    char   bytes[65536];
    size_t n, at;                /* read, and written of them */
} flow;

static bool is_empty(const flow *f)
{
    return f->at == f->n;
}

/* false: `from` has ended. */
static bool fill(flow *f, int from)
{
    ssize_t n = read(from, f->bytes, sizeof f->bytes);

    f->at = 0;
    f->n = n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* No more than a pipe takes without waiting once it can be written to.  What nobody takes any more is dropped: that end
 * is closed, and read next. */
static void drain(flow *f, int to)
{
    size_t n = f->n - f->at < PIPE_BUF ? f->n - f->at : PIPE_BUF;
    ssize_t put = write(to, f->bytes + f->at, n);

    if (put >= 0)
        f->at += (size_t)put;
    else if (errno != EINTR && errno != EAGAIN)
        f->at = f->n;
}

/* Until one of the ends closes, or a signal comes; each direction goes on while the other one waits for its reader.
 * Whether the server has said anything. */
static bool bridge(int fd)
{
    flow up = { .n = 0 }, down = { .n = 0 };
    bool has_heard = false, goes_on = true;
    sigset_t ending, before;

    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    sigprocmask(SIG_BLOCK, &ending, &before);    /* they come within ppoll */
    while (goes_on && !is_asked_to_end) {
        short of_server = (short)((is_empty(&down) ? POLLIN : 0) | (is_empty(&up) ? 0 : POLLOUT));
        struct pollfd p[3] = { { .fd = is_empty(&up) ? STDIN_FILENO : -1, .events = POLLIN },
                               { .fd = of_server ? fd : -1, .events = of_server },
                               { .fd = STDOUT_FILENO, .events = is_empty(&down) ? 0 : POLLOUT } };

        if (ppoll(p, 3, NULL, &before) < 0) {
            goes_on = errno == EINTR;
            continue;
        }
        if (p[2].revents & ~POLLOUT)             /* nobody reads any more */
            break;
        if (p[2].revents)
            drain(&down, STDOUT_FILENO);
        if (!is_empty(&up) && p[1].revents)
            drain(&up, fd);
        if (is_empty(&down) && (p[1].revents & ~POLLOUT)) {
            has_heard = true;
            goes_on = fill(&down, fd);
        }
        if (goes_on && p[0].revents)
            goes_on = fill(&up, STDIN_FILENO);
    }
    return has_heard;
}

/* A server that was started for this client and has said nothing yet waits for a model that another process is to
 * hand over: nobody wants that any more.  Who has come to it meanwhile starts another. */
static void leave(ebb_child *child, int fd, bool has_heard)
{
    ebb_file_close(fd);
    if (!has_heard)
        ebb_child_end(child);
}

int ebb_cmd_serve_attach(const ebb_args *a)
{
    struct sigaction act = { .sa_handler = on_attach_signal };
    ebb_child child = { .fd = -1, .err_fd = -1 };
    ebb_error err = { 0 };
    int fd = -1;

    sigaction(SIGTERM, &act, NULL);
    ebb_cli_catch_hangup(on_attach_signal);
    if (reach_server(a, &fd, &child, &err) != EBB_OK) {
        leave(&child, fd, false);
        return ebb_cli_fail(&err);
    }
    leave(&child, fd, bridge(fd));
    return EBB_EXIT_OK;
}
