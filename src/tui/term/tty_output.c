/* What goes to the terminal (tty_output.h). */
#include "term/tty_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "term/signals.h"

enum { ROOM_WAIT_MS = 5000, LEAVE_LOOK_MS = 500 };

static struct {
    int     fd;
    ebb_buf kept;
    size_t  n_sent;              /* of it */
} output = { .fd = STDOUT_FILENO };

void ebb_tty_output_open(void)
{
    int fd = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    output.fd = fd >= 0 ? fd : STDOUT_FILENO;
}

static void drop_kept(void)
{
    ebb_buf_fini(&output.kept);
    output.n_sent = 0;
}

void ebb_tty_output_close(void)
{
    drop_kept();
    if (output.fd != STDOUT_FILENO)
        close(output.fd);
    output.fd = STDOUT_FILENO;
}

/* Bytes of it that need no more care: the line has taken them, or has hung up. */
static size_t put(const char *s, size_t n)
{
    size_t at = 0;

    while (at < n) {
        ssize_t got = write(output.fd, s + at, n - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0)
            return n;
        at += (size_t)got;
    }
    return at;
}

bool ebb_tty_send_kept(void)
{
    if (output.kept.len > 0)
        output.n_sent += put(output.kept.data + output.n_sent, output.kept.len - output.n_sent);
    if (output.n_sent == output.kept.len)
        drop_kept();
    return output.kept.len > 0;
}

void ebb_tty_finish_output(void)
{
    struct pollfd p = { .fd = output.fd, .events = POLLOUT };

    while (ebb_tty_send_kept() && !ebb_signals_have_given_up())
        poll(&p, 1, LEAVE_LOOK_MS);
    drop_kept();
}

void ebb_tty_write(const char *s, size_t n)
{
    size_t at = ebb_tty_send_kept() ? 0 : put(s, n);

    if (at == n || ebb_buf_add(&output.kept, s + at, n - at))
        return;
    ebb_tty_finish_output();                     /* no memory to keep it: then it waits */
    ebb_tty_write_now(s + at, n - at);
}

void ebb_tty_write_now(const char *s, size_t n)
{
    struct pollfd p = { .fd = output.fd, .events = POLLOUT };
    size_t at = 0;

    while ((at += put(s + at, n - at)) < n && poll(&p, 1, ROOM_WAIT_MS) == 1 && !(p.revents & (POLLERR | POLLHUP)))
        continue;
}

int ebb_tty_output_fd(void)
{
    return output.kept.len > 0 ? output.fd : -1;
}

ebb_backlog ebb_tty_backlog(void)
{
    struct pollfd p = { .fd = output.fd, .events = POLLOUT };
    int n_waiting = 0;

    if (output.kept.len > 0)
        return EBB_BACKLOG_KEPT;
    /* A serial line counts what it has to send; a pty is only full or not. */
    if (ioctl(output.fd, TIOCOUTQ, &n_waiting) == 0 && n_waiting > 0)
        return EBB_BACKLOG_SENDING;
    return poll(&p, 1, 0) == 0 ? EBB_BACKLOG_SENDING : EBB_BACKLOG_NONE;
}
