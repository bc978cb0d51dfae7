/* A command and the socket pair to it (child.h). */
#include "os/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { WORDS_KEPT = 2048, END_STEPS = 100, END_STEP_MS = 10 };

extern char **environ;

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

/* Signals as a program expects them: this one ignores SIGPIPE, and the thread may have blocked some. */
static bool set_attributes(posix_spawnattr_t *attr)
{
    sigset_t usual, none;

    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGHUP);
    return posix_spawnattr_setsigmask(attr, &none) == 0 && posix_spawnattr_setsigdefault(attr, &usual) == 0 &&
           posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) == 0;
}

static int spawn(char *const argv[], int its_end, int its_errors, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    int failed;

    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&files);
        return ENOMEM;
    }
    failed = posix_spawn_file_actions_adddup2(&files, its_end, 0) != 0 ||
             posix_spawn_file_actions_adddup2(&files, its_end, 1) != 0 ||
             posix_spawn_file_actions_adddup2(&files, its_errors, 2) != 0 || !set_attributes(&attr)
                 ? ENOMEM
                 : posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return failed;
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
    failed = spawn(argv, its_fd < 0 ? io[1] : its_fd, words[1], &pid);
    if (failed) {
        close_pair(io);
        close_pair(words);
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

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

void ebb_child_end(ebb_child *c)
{
    bool is_gone = c->pid == 0;

    if (!is_gone)
        kill(-c->pid, SIGTERM);
    for (int i = 0; !is_gone && i < END_STEPS; i++) {
        is_gone = waitpid(c->pid, NULL, WNOHANG) != 0;
        if (!is_gone)
            sleep_ms(END_STEP_MS);
    }
    if (!is_gone) {
        kill(-c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    if (c->err_fd >= 0 && c->pid)
        close(c->err_fd);
    *c = (ebb_child){ .fd = -1, .err_fd = -1 };
}
