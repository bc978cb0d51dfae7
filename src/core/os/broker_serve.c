/* The broker itself (broker_serve.h).  The process that asks may be compromised: nothing it says is trusted. */
#include "os/broker_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/fault.h"
#include "os/file.h"

enum { MAX_WORDS = 64, OUR_FD = 3 };
#define MAX_EXPORT ((uint64_t)1 << 30)

/* -- Commands ------------------------------------------------------------------------------------------ */

static bool is_model_name(const char *s)
{
    return *s && *s != '-' &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+:@")] == '\0';
}

static bool is_number(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == '\0';
}

static bool is_draft(const ebb_broker_opts *o, const char *path)
{
    size_t n = o->drafts ? strlen(o->drafts) : 0;

    return n > 0 && strncmp(path, o->drafts, n) == 0 && path[n] == '/' && path[n + 1] != '.' &&
           !strchr(path + n + 1, '/');
}

static bool is_allowed_rest(const ebb_broker_opts *o, ebb_broker_more more, ebb_spawn_group group, char *const *rest)
{
    if (more == EBB_BROKER_NOTHING)
        return !rest[0];
    if (more == EBB_BROKER_A_FILTER)
        return !rest[0] && group == EBB_SPAWN_FILTER;
    if (more == EBB_BROKER_A_LINE)
        return rest[0] && !rest[1];
    if (more == EBB_BROKER_A_REPOSITORY)
        return rest[0] && rest[1] && !rest[2] && is_number(rest[0]) && ebb_broker_is_repository(rest[1]);
    if (more == EBB_BROKER_A_DRAFT)
        return rest[0] && !rest[1] && is_draft(o, rest[0]);
    return !rest[0] || (strcmp(rest[0], "-m") == 0 && rest[1] && is_model_name(rest[1]) && !rest[2]);
}

static bool may_start(const ebb_broker_opts *o, ebb_spawn_group group, char *const *argv)
{
    for (size_t i = 0; i < o->n_commands; i++) {
        char *const *known = o->commands[i].argv;
        size_t at = 0;

        while (known[at] && argv[at] && strcmp(known[at], argv[at]) == 0)
            at++;
        if (at > 0 && !known[at] && is_allowed_rest(o, o->commands[i].more, group, argv + at))
            return true;
    }
    return false;
}

static void start_command(const ebb_broker_opts *o, const ebb_broker_question *q, const int *fds, size_t n_fds,
                          ebb_broker_answer *a)
{
    char *argv[MAX_WORDS + 1] = { NULL };
    size_t at = 0, n = 0;

    while (at < q->n_text && n < MAX_WORDS) {
        argv[n++] = (char *)(uintptr_t)q->text + at;
        at += strlen(q->text + at) + 1;
    }
    if (n_fds != 3 || n == 0 || at < q->n_text || !may_start(o, q->group, argv))
        a->failed = EACCES;
    else
        a->failed = ebb_spawn_sibling(argv, fds, q->group, q->here, &a->pid);
}

/* -- Files ------------------------------------------------------------------------------------------------ */

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The real path of what `fd` has open is no hidden one of the home, and none of the kernel's own files. */
static bool is_open_to_all(const ebb_broker_opts *o, int fd, char path[4096])
{
    static const char *const kernels[] = { "/proc", "/sys", "/dev" };
    char name[40];
    ssize_t n;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    n = readlink(name, path, 4095);
    if (n <= 0 || n == 4095)
        return false;
    path[n] = '\0';
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (is_below(path, kernels[i]))
            return false;
    return path[0] == '/' && (!o->home || !is_below(path, o->home) || strncmp(path + strlen(o->home), "/.", 2) != 0);
}

static int open_file(const ebb_broker_opts *o, const ebb_broker_question *q, ebb_broker_answer *a)
{
    int fd = open(q->text, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | (q->is_direct ? O_DIRECT : 0));
    char path[4096];
    struct stat st;

    a->failed = fd < 0 ? errno : 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_open_to_all(o, fd, path))
        return fd;
    if (fd >= 0)
        a->failed = EACCES;
    ebb_file_close(fd);
    return -1;
}

static bool is_export(const char *name)
{
    static const char *const endings[] = { ".md", ".json", ".txt" };
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t k = strlen(endings[i]);
        if (n > k && strcmp(name + n - k, endings[i]) == 0)
            return name[0] != '.';
    }
    return false;
}

/* The folder that was looked at is the one that gets the file: a neighbour may swap those of the path
 * meanwhile. */
static ebb_status create_in(const ebb_broker_opts *o, const char *path, int folder, int contents, ebb_error *err)
{
    char real[4096], *copy = strdup(path);
    const char *name = copy ? basename(copy) : "";
    ebb_buf data = { 0 };
    uint64_t n = 0;
    ebb_status st;

    if (folder < 0 || !is_export(name) || !is_open_to_all(o, folder, real))
        st = EBB_FAIL(err, EBB_IO, "%s: ebb creates no file there: exports end in .md, .json or .txt and go to "
                      "no hidden folder in the home folder", path);
    else
        st = ebb_file_size(contents, path, &n, err);
    if (st == EBB_OK && (n > MAX_EXPORT || !ebb_buf_reserve(&data, n + 1)))
        st = EBB_FAIL(err, EBB_NOMEM, "%s: no memory for it", path);
    if (st == EBB_OK)
        st = ebb_file_read_at(contents, path, data.data, n, 0, err);
    if (st == EBB_OK)
        st = ebb_file_create_in(folder, name, path, data.data, n, err);
    ebb_buf_fini(&data);
    free(copy);
    return st;
}

static void create_file(const ebb_broker_opts *o, const ebb_broker_question *q, const int *fds, size_t n_fds,
                        ebb_broker_answer *a)
{
    char *copy = strdup(q->text);
    int folder = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (folder < 0)
        EBB_FAIL(&a->err, EBB_NOTFOUND, "%.200s: its folder does not exist", q->text);
    else if (create_in(o, q->text, folder, n_fds == 1 ? fds[0] : -1, &a->err) == EBB_OK)
        a->err.code = EBB_OK;
    ebb_file_close(folder);
    free(copy);
}

/* -- Being it ----------------------------------------------------------------------------------------------- */

/* Packets are whole; one that is none is passed over.  false: the other end is closed. */
static bool take_question(ebb_broker_question *q, int fds[3], size_t *n_fds)
{
    struct iovec part = { .iov_base = q, .iov_len = sizeof *q };
    union { char bytes[CMSG_SPACE(3 * sizeof(int))]; struct cmsghdr align; } control;
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = sizeof control.bytes };
    struct cmsghdr *c;
    ssize_t got;

    memset(q, 0, sizeof *q);
    do {
        got = recvmsg(OUR_FD, &m, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    *n_fds = 0;
    c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len > CMSG_LEN(0)) {
        *n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(c), *n_fds * sizeof(int));
    }
    if (got > 0 && ((size_t)got != offsetof(ebb_broker_question, text) + q->n_text || q->n_text == 0 ||
                    q->n_text > sizeof q->text || q->text[q->n_text - 1] != '\0'))
        q->n_text = 0;
    return got > 0;
}

static void send_answer(const ebb_broker_answer *a, int fd)
{
    struct iovec part = { .iov_base = (void *)(uintptr_t)a, .iov_len = sizeof *a };
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control = { .bytes = { 0 } };
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                        .msg_controllen = fd >= 0 ? sizeof control.bytes : 0 };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);       /* NULL: nothing goes with it */

    if (c) {
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (sendmsg(OUR_FD, &m, MSG_NOSIGNAL) < 0)
        _exit(0);
}

/* The terminal's signals are for its owner, who closes the socket when it ends. */
static void be_alone(int fd)
{
    static const int not_ours[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGHUP, SIGUSR1, SIGPIPE };

    setpgid(0, 0);
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        signal(not_ours[i], SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_NAME, "ebb-helper");
    if (dup2(fd, OUR_FD) < 0 || fcntl(OUR_FD, F_SETFD, FD_CLOEXEC) != 0)
        _exit(1);
    for (int i = 0; i < OUR_FD; i++)
        close(i);
    if (syscall(SYS_close_range, OUR_FD + 1, ~0u, 0) != 0)       /* a kernel before 5.9 */
        for (int i = OUR_FD + 1; i < 1024; i++)
            close(i);
}

/* B4; where the socket is was settled before. */
static void be_a_servers(const ebb_broker_opts *opts, const ebb_broker_question *q, ebb_broker_answer *a)
{
    if (q->kind != EBB_BROKER_REMOVE_SOCKET || unlink(opts->socket) != 0) {
        a->failed = EACCES;
        EBB_FAIL(&a->err, EBB_IO, "%.200s: a server's helper process makes no files", q->text);
    }
}

__attribute__((noreturn)) static void serve_owner(const ebb_broker_opts *opts, int fd)
{
    static ebb_broker_question q;
    int fds[3] = { -1, -1, -1 };
    size_t n_fds;

    be_alone(fd);
    while (take_question(&q, fds, &n_fds)) {
        ebb_broker_answer a = { 0 };
        int result = -1;

        if (q.n_text == 0)
            a.failed = EINVAL;
        else if (opts->socket)
            be_a_servers(opts, &q, &a);
        else if (q.kind == EBB_BROKER_SPAWN)
            start_command(opts, &q, fds, n_fds, &a);
        else if (q.kind == EBB_BROKER_OPEN)
            result = open_file(opts, &q, &a);
        else if (q.kind == EBB_BROKER_CREATE)
            create_file(opts, &q, fds, n_fds, &a);
        send_answer(&a, result);
        ebb_file_close(result);
        for (size_t i = 0; i < n_fds; i++)
            close(fds[i]);
    }
    _exit(0);
}

ebb_status ebb_broker_start(const ebb_broker_opts *opts, ebb_error *err)
{
    int ends[2];
    pid_t pid;

    if (ebb_os_fault(EMFILE) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return EBB_FAIL(err, EBB_IO, "no socket to a helper process: %s", strerror(errno));
    pid = ebb_os_fault(EAGAIN) ? -1 : fork();
    if (pid == 0)
        serve_owner(opts, ends[1]);
    close(ends[1]);
    if (pid > 0) {
        ebb_broker_adopt(pid, ends[0]);
        return EBB_OK;
    }
    close(ends[0]);
    return EBB_FAIL(err, EBB_IO, "no helper process: %s", strerror(errno));
}
