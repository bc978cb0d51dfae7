/* What `ebb run` prints, kept as long as its reader takes nothing (cmd_run.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cmd_run.h"
#include "os/file.h"

enum { LOOK_MS = 1000 };

/* A terminal that has room may have less than what is written, and holds the writer then; so does a pipe to which
 * others write.  Not to wait is asked of a descriptor of our own: of one that is shared it would be everybody's
 * matter.  A file is not opened anew: it would be written from its beginning. */
void ebb_run_output_open(ebb_run_output *o, int shared)
{
    struct stat s;
    char path[32];
    int fd = -1;

    *o = (ebb_run_output){ .fd = shared, .is_terminal = isatty(shared) };
    snprintf(path, sizeof path, "/proc/self/fd/%d", shared);
    if (o->is_terminal || (fstat(shared, &s) == 0 && S_ISFIFO(s.st_mode)))
        fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    o->is_own = fd >= 0;
    o->fd = o->is_own ? fd : shared;
}

static size_t n_kept(const ebb_run_output *o)
{
    return o->kept.len - o->n_sent;
}

/* What is dropped is told by o->error. */
static void drop_kept(ebb_run_output *o)
{
    ebb_buf_fini(&o->kept);
    o->n_sent = 0;
}

static void fail_output(ebb_run_output *o, int number)
{
    o->error = number;
    drop_kept(o);
}

/* Bytes that were taken; 0: none now, or never again.  Where writes may wait: no more than a pipe with room takes. */
static size_t put_some(ebb_run_output *o)
{
    struct pollfd p = { .fd = o->fd, .events = POLLOUT };
    size_t n = o->is_own || n_kept(o) < PIPE_BUF ? n_kept(o) : PIPE_BUF;
    ssize_t got;

    o->is_stuck = false;
    if (poll(&p, 1, 0) <= 0)
        return 0;
    got = write(o->fd, o->kept.data + o->n_sent, n);
    o->is_stuck = got < 0 && errno == EAGAIN;
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        fail_output(o, errno);
    return got > 0 ? (size_t)got : 0;
}

void ebb_run_output_send(ebb_run_output *o)
{
    size_t got;

    while (n_kept(o) > 0 && (got = put_some(o)) > 0)
        o->n_sent += got;
    if (n_kept(o) == 0)
        drop_kept(o);
}

/* Send what was added, if all of it was. */
static void send_added(ebb_run_output *o, bool was_behind, bool is_added)
{
    if (!is_added)
        fail_output(o, ENOMEM);
    if (!was_behind)                             /* else poll says when */
        ebb_run_output_send(o);
}

void ebb_run_output_add(ebb_run_output *o, const char *text, size_t n)
{
    bool was_behind = ebb_run_output_is_behind(o);

    if (!o->error)
        send_added(o, was_behind, o->is_terminal ? ebb_utf8_add_visible(&o->kept, text, n, false)
                                                 : ebb_buf_add(&o->kept, text, n));
}

void ebb_run_output_add_raw(ebb_run_output *o, const char *text, size_t n)
{
    bool was_behind = ebb_run_output_is_behind(o);

    if (!o->error)
        send_added(o, was_behind, ebb_buf_add(&o->kept, text, n));
}

bool ebb_run_output_is_behind(const ebb_run_output *o)
{
    return n_kept(o) > 0;
}

/* A pty with room for one byte says so, and takes no line end, which is two: then it is looked at now and then. */
int ebb_run_output_fd(const ebb_run_output *o)
{
    return n_kept(o) > 0 && !o->is_stuck ? o->fd : -1;
}

static void close_output(ebb_run_output *o)
{
    drop_kept(o);
    if (o->is_own)
        ebb_file_close(o->fd);
    o->is_own = false;
    o->fd = -1;
}

void ebb_run_output_close(ebb_run_output *o, ebb_run_output *other, bool (*gives_up)(void))
{
    for (;;) {
        ebb_run_output_send(o);
        ebb_run_output_send(other);
        if ((n_kept(o) == 0 && n_kept(other) == 0) || gives_up())
            break;
        struct pollfd fds[2] = { { .fd = ebb_run_output_fd(o), .events = POLLOUT },
                                 { .fd = ebb_run_output_fd(other), .events = POLLOUT } };

        poll(fds, 2, LOOK_MS);
    }
    close_output(o);
    close_output(other);
}
