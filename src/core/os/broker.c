/* The broker's client: requests and their answers (broker.h). */
#include "os/broker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/broker_serve.h"
#include "os/file.h"

static int broker_fd = -1;
static pid_t broker_pid;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

bool ebb_broker_is_there(void)
{
    return broker_fd >= 0;
}

bool ebb_broker_is_repository(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t owner = strspn(word, plain), name = word[owner] == '/' ? strspn(word + owner + 1, plain) : 0;
    const char *rest = word + owner + 1 + name;
    bool ok = owner > 0 && name > 0 && word[0] != '-' && word[0] != '.' && word[owner + 1] != '-' &&
              word[owner + 1] != '.';

    if (!ok || (*rest && *rest != ':' && *rest != '@'))
        return false;
    while (*rest && (strchr(plain, *rest) || strchr(":@/", *rest)))
        rest++;
    return *rest == '\0';
}

void ebb_broker_adopt(pid_t pid, int fd)
{
    broker_pid = pid;
    broker_fd = fd;
}

void ebb_broker_end(void)
{
    if (broker_fd < 0)
        return;
    close(broker_fd);
    broker_fd = -1;
    while (waitpid(broker_pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* -- Asking ------------------------------------------------------------------------------------------ */

static bool send_question(const ebb_broker_question *q, size_t n, const int *fds, size_t n_fds)
{
    struct iovec part = { .iov_base = (void *)(uintptr_t)q, .iov_len = n };
    union { char bytes[CMSG_SPACE(3 * sizeof(int))]; struct cmsghdr align; } control = { .bytes = { 0 } };
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = n_fds > 0 ? CMSG_SPACE(n_fds * sizeof(int)) : 0 };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);       /* NULL: nothing goes with it */
    ssize_t put;

    if (c) {
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    do {
        put = sendmsg(broker_fd, &m, MSG_NOSIGNAL);
    } while (put < 0 && errno == EINTR);
    return put == (ssize_t)n;
}

static bool await_answer(ebb_broker_answer *a, int *fd)
{
    struct iovec part = { .iov_base = a, .iov_len = sizeof *a };
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes };
    struct cmsghdr *c;
    ssize_t got;

    do {
        got = recvmsg(broker_fd, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    *fd = -1;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return got == sizeof *a;
}

/* An answer, or one that says EPIPE where the broker is gone.  *fd: what came with it, -1: nothing. */
static void ask_broker(ebb_broker_question *q, size_t n_text, const int *fds, size_t n_fds, ebb_broker_answer *a,
                       int *fd)
{
    *fd = -1;
    *a = (ebb_broker_answer){ .failed = EPIPE };
    q->n_text = (uint32_t)n_text;
    pthread_mutex_lock(&one_at_a_time);
    if (!send_question(q, offsetof(ebb_broker_question, text) + n_text, fds, n_fds) || !await_answer(a, fd))
        *a = (ebb_broker_answer){ .failed = EPIPE, .err = { .code = EBB_IO, .msg = "the helper process has ended" } };
    pthread_mutex_unlock(&one_at_a_time);
}

/* Words one after the other, each with its 0; false: they are too long. */
static bool add_word(ebb_broker_question *q, size_t *at, const char *word)
{
    size_t n = strlen(word) + 1;

    if (n > sizeof q->text - *at)
        return false;
    memcpy(q->text + *at, word, n);
    *at += n;
    return true;
}

int ebb_broker_spawn(char *const argv[], const int fds[3], ebb_spawn_group group, pid_t *pid)
{
    ebb_broker_question q = { .kind = EBB_BROKER_SPAWN, .group = group, .here = getpgrp() };
    ebb_broker_answer a;
    size_t n = 0;
    int nothing;

    for (int i = 0; argv[i]; i++)
        if (!add_word(&q, &n, argv[i]))
            return E2BIG;
    ask_broker(&q, n, fds, 3, &a, &nothing);
    *pid = a.pid;
    if (a.failed && a.pid > 0)                   /* it was made, and could not become the program */
        while (waitpid(a.pid, NULL, 0) < 0 && errno == EINTR)
            ;
    return a.failed;
}

int ebb_broker_open(const char *path, bool is_direct)
{
    ebb_broker_question q = { .kind = EBB_BROKER_OPEN, .is_direct = is_direct };
    ebb_broker_answer a;
    size_t n = 0;
    int fd;

    if (!add_word(&q, &n, path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    ask_broker(&q, n, NULL, 0, &a, &fd);
    errno = a.failed;
    return fd;
}

ebb_status ebb_broker_create(const char *path, const void *data, size_t n, ebb_error *err)
{
    ebb_broker_question q = { .kind = EBB_BROKER_CREATE };
    ebb_broker_answer a;
    size_t n_path = 0;
    int memory, nothing;
    ebb_status st = EBB_OK;

    if (!add_word(&q, &n_path, path))
        return EBB_FAIL(err, EBB_USAGE, "%.200s: the path is too long", path);
    memory = memfd_create("ebb-export", MFD_CLOEXEC);
    if (memory < 0)
        return EBB_FAIL(err, EBB_NOMEM, "%s: no memory for it: %s", path, strerror(errno));
    st = ebb_file_write_at(memory, path, data, n, 0, err);
    if (st == EBB_OK) {
        ask_broker(&q, n_path, &memory, 1, &a, &nothing);
        if (a.failed || a.err.code != EBB_OK)
            st = EBB_FAIL(err, a.err.code != EBB_OK ? a.err.code : EBB_IO, "%s", a.err.msg);
    }
    close(memory);
    return st;
}

void ebb_broker_remove_socket(void)
{
    ebb_broker_question q = { .kind = EBB_BROKER_REMOVE_SOCKET };
    ebb_broker_answer a;
    int nothing;

    if (ebb_broker_is_there())
        ask_broker(&q, sizeof "", NULL, 0, &a, &nothing);
}
