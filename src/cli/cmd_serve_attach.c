/* ebb serve --attach: standard input and output to the server of this user, which is started if there is none.  What
 * ssh runs over there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cmd_serve.h"
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

/* It goes on when this process has ended, so that a line that breaks takes nothing along. */
static ebb_status start_server(const ebb_args *a, const char *path, ebb_child *child, ebb_error *err)
{
    char idle[16];
    const char *argv[] = { "/proc/self/exe", "serve", "--quiet", "--idle", idle, "--socket", path,
                           a->model ? "-m" : NULL, a->model, NULL };
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    ebb_status st;

    snprintf(idle, sizeof idle, "%u", a->idle_s ? a->idle_s : LEAVE_S);
    if (nothing < 0)
        return EBB_FAIL(err, EBB_IO, "/dev/null: %s", strerror(errno));
    st = ebb_child_start((char *const *)argv, nothing, child, err);
    close(nothing);
    return st;
}

static ebb_status await_server(const char *path, ebb_child *child, int *fd, ebb_error *err)
{
    const struct timespec look = { .tv_nsec = LOOK_MS * 1000000L };
    ebb_buf words = { 0 };
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
    if (st != EBB_OK && words.len)
        st = EBB_FAIL(err, EBB_IO, "the server could not be started: %.300s", ebb_buf_text(&words));
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

/* What is there on `from`, to `to`; false: one of them has ended. */
static bool carry(int from, int to)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof bytes);

    if (n < 0 && errno == EINTR)
        return true;
    for (ssize_t at = 0, put; at < n; at += put) {
        put = write(to, bytes + at, (size_t)(n - at));
        if (put < 0 && errno != EINTR)
            return false;
        put = put < 0 ? 0 : put;
    }
    return n > 0;
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
    bool goes_on = true, has_heard = false;

    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
    if (reach_server(a, &fd, &child, &err) != EBB_OK) {
        if (is_asked_to_end)
            leave(&child, fd, false);
        return ebb_cli_fail(&err);
    }
    while (goes_on && !is_asked_to_end) {
        struct pollfd p[3] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = fd, .events = POLLIN },
                               { .fd = STDOUT_FILENO } };

        if (poll(p, 3, -1) < 0 ? errno != EINTR : p[2].revents)  /* nobody reads any more */
            break;
        if (is_asked_to_end)
            break;
        has_heard = has_heard || p[1].revents;
        if (p[1].revents)
            goes_on = carry(fd, STDOUT_FILENO);
        if (goes_on && p[0].revents)
            goes_on = carry(STDIN_FILENO, fd);
    }
    leave(&child, fd, has_heard);
    return EBB_EXIT_OK;
}
