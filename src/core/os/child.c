/* A command and the socket pair to it (child.h). */
#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/broker.h"

enum { WORDS_KEPT = 2048, END_STEPS = 100, END_STEP_MS = 10 };

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

ebb_status ebb_child_start(char *const argv[], int its_fd, ebb_child *out, ebb_error *err)
{
    int io[2] = { -1, -1 }, words[2] = { -1, -1 }, failed;
    pid_t pid = 0;

    *out = (ebb_child){ .fd = -1, .err_fd = -1 };
    if ((its_fd < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, io) != 0) || pipe2(words, O_CLOEXEC) != 0) {
        close_pair(io);
        return EBB_FAIL(err, EBB_IO, "%s: no pipe to it: %s", argv[0], strerror(errno));
    }
    if (its_fd < 0)
        its_fd = io[1];
    failed = ebb_spawn(argv, (int[]){ its_fd, its_fd, words[1] }, EBB_SPAWN_SESSION, &pid);
    if (failed) {
        close_pair(io);
        close_pair(words);
        if (failed == EACCES && ebb_broker_is_there())
            return EBB_FAIL(err, EBB_IO, "%s: is not the command of an engine known when ebb started; start ebb "
                            "again with -e", argv[0]);
        return EBB_FAIL(err, failed == ENOENT ? EBB_NOTFOUND : EBB_IO, "%s: %s", argv[0], strerror(failed));
    }
    if (io[1] >= 0)
        close(io[1]);
    close(words[1]);
    if (io[0] >= 0)
        fcntl(io[0], F_SETFL, O_NONBLOCK);
    fcntl(words[0], F_SETFL, O_NONBLOCK);
    *out = (ebb_child){ .pid = pid, .fd = io[0], .err_fd = words[0] };
    return EBB_OK;
}

void ebb_child_listen(ebb_child *c, ebb_buf *words)
{
    char bytes[1024];
    ssize_t got;

    while (c->pid && (got = read(c->err_fd, bytes, sizeof bytes)) > 0) {
        ebb_buf_add(words, bytes, (size_t)got);
        if (words->len > WORDS_KEPT)
            ebb_buf_remove(words, 0, words->len - WORDS_KEPT);
    }
}

void ebb_child_last_words(ebb_child *c, ebb_buf *words, int ms)
{
    uint64_t end = ebb_clock_ns() + (uint64_t)ms * 1000000;
    size_t n_before;

    do {
        struct pollfd p = { .fd = c->err_fd, .events = POLLIN };
        n_before = words->len;
        if (!c->pid || poll(&p, 1, ms) <= 0)
            return;
        ebb_child_listen(c, words);
    } while (words->len != n_before && ebb_clock_ns() < end);
}

const char *ebb_child_last_line(ebb_buf *words)
{
    char *nl;

    while (words->len && strchr("\r\n ", words->data[words->len - 1]))
        ebb_buf_remove(words, words->len - 1, 1);
    if (!words->len)
        return NULL;
    nl = strrchr(words->data, '\n');
    return nl ? nl + 1 : words->data;
}

/* The group outlives its first process where another one in it ignores SIGTERM.  Its number is not given anew before
 * the last of them is gone, so whoever is hit right after a look is of this group. */
void ebb_child_end(ebb_child *c)
{
    bool has_ended = c->pid == 0, is_gone = has_ended;

    if (!is_gone)
        kill(-c->pid, SIGTERM);
    for (int i = 0; !is_gone && i < END_STEPS; i++) {
        has_ended = has_ended || waitpid(c->pid, NULL, WNOHANG) != 0;
        is_gone = has_ended && kill(-c->pid, 0) != 0;
        if (!is_gone)
            nanosleep(&(struct timespec){ .tv_nsec = END_STEP_MS * 1000000 }, NULL);
    }
    if (!is_gone)
        kill(-c->pid, SIGKILL);
    if (!has_ended)
        waitpid(c->pid, NULL, 0);
    if (c->err_fd >= 0 && c->pid)
        close(c->err_fd);
    *c = (ebb_child){ .fd = -1, .err_fd = -1 };
}
