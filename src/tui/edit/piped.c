/* Programs whose output is read (piped.h). */
#include "edit/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "edit/attach.h"
#include "os/file.h"

enum { MESSAGES_BYTES = 1024 };

/* ends[0] does not block; ends[1] does, as programs expect. */
static bool make_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(ends[1], F_SETFL, 0) == 0;
}

/* 0, or why not (errno). */
static int spawn_piped(char *const argv[], int input, int output, int errors, ebb_spawn_group group, pid_t *pid)
{
    int nothing = input < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1, why;

    if (input < 0 && nothing < 0)
        return errno;
    why = ebb_spawn(argv, (int[]){ input < 0 ? nothing : input, output, errors }, group, pid);
    ebb_file_close(nothing);
    return why;
}

ebb_status ebb_piped_start(ebb_piped *p, char *const argv[], int input, ebb_spawn_group group, bool joins,
                           double now_s, ebb_error *err)
{
    int out[2] = { -1, -1 }, errors[2] = { -1, -1 }, why = 0;

    ebb_piped_fini(p);
    if (!make_pipe(out) || (!joins && !make_pipe(errors)))
        why = errno;
    if (why == 0)
        why = spawn_piped(argv, input, out[1], joins ? out[1] : errors[1], group, &p->pid);
    ebb_file_close(out[1]);
    ebb_file_close(errors[1]);
    if (why != 0) {
        p->pid = 0;
        ebb_file_close(out[0]);
        ebb_file_close(errors[0]);
        return EBB_FAIL(err, why == ENOENT ? EBB_NOTFOUND : EBB_IO, "%s cannot be run: %s", argv[0], strerror(why));
    }
    p->fd = out[0];
    p->err_fd = errors[0];
    p->started_s = now_s;
    return EBB_OK;
}

bool ebb_piped_is_running(const ebb_piped *p)
{
    return p->pid > 0;
}

/* Kill the program's process group; processes that have left the group survive. */
static void kill_group(const ebb_piped *p)
{
    kill(-p->pid, SIGKILL);
}

void ebb_piped_stop(ebb_piped *p)
{
    if (!ebb_piped_is_running(p))
        return;
    p->is_stopped = true;
    kill_group(p);
}

static void close_outputs(ebb_piped *p)
{
    ebb_file_close(p->fd);
    ebb_file_close(p->err_fd);
}

void ebb_piped_fini(ebb_piped *p)
{
    if (ebb_piped_is_running(p)) {
        kill_group(p);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close_outputs(p);
    }
    ebb_buf_fini(&p->text);
    ebb_buf_fini(&p->messages);
    *p = (ebb_piped){ 0 };
}

/* Up to `max` bytes are kept; true: there were more. */
static bool read_pipe(int fd, ebb_buf *to, size_t max)
{
    bool is_more = false;
    char bytes[16 << 10];
    ssize_t got;

    while (fd >= 0 && !is_more && (got = read(fd, bytes, sizeof bytes)) > 0) {
        size_t room = max - to->len;
        is_more = (size_t)got > room;
        ebb_buf_add(to, bytes, is_more ? room : (size_t)got);
    }
    return is_more;
}

static void read_outputs(ebb_piped *p)
{
    p->is_cut |= read_pipe(p->fd, &p->text, EBB_ATTACH_BYTES);
    while (read_pipe(p->err_fd, &p->messages, MESSAGES_BYTES))
        ;                                        /* what is beyond is dropped, so that it need not wait */
}

bool ebb_piped_poll(ebb_piped *p, double now_s, int *status)
{
    pid_t ended;

    if (!ebb_piped_is_running(p))
        return false;
    read_outputs(p);
    p->is_late |= now_s - p->started_s > EBB_PIPED_S;
    if (p->is_cut || p->is_late)
        kill_group(p);
    ended = waitpid(p->pid, status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    read_outputs(p);                             /* what it printed last; who still runs beside it is not waited for */
    close_outputs(p);
    p->pid = 0;
    return true;
}

void ebb_piped_add_end(const ebb_piped *p, int status, ebb_buf *out)
{
    if (p->is_cut)
        ebb_buf_addf(out, "cut off after %d MiB", EBB_ATTACH_BYTES >> 20);
    else if (p->is_late)
        ebb_buf_addf(out, "stopped after %.0f s", EBB_PIPED_S);
    else if (p->is_stopped)
        ebb_buf_adds(out, "stopped");
    else if (WIFSIGNALED(status))
        ebb_buf_addf(out, "ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        ebb_buf_addf(out, "exit status %d", WEXITSTATUS(status));
}
