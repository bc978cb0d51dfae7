/* The output of a command (command_output.h). */
#include "edit/command_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "edit/attach.h"
#include "os/spawn.h"

/* The environment switches pagers and colours off: no user sees the command's terminal. */
static char shell[] = "/bin/sh", option[] = "-c", name[] = "ebb";
static char script[] = "TERM=dumb PAGER=cat GIT_PAGER=cat NO_COLOR=1; export TERM PAGER GIT_PAGER NO_COLOR; "
                       "eval \"$1\"";

char *const *ebb_command_output_words(void)
{
    static char *const words[] = { shell, option, script, name, NULL };

    return words;
}

/* 0, or why not (errno). */
static int spawn_shell(char *command, int output, pid_t *pid)
{
    char *const argv[] = { shell, option, script, name, command, NULL };
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), why = nothing < 0 ? errno : 0;

    if (why == 0)
        why = ebb_spawn(argv, (int[]){ nothing, output, output }, EBB_SPAWN_SESSION, pid);
    if (nothing >= 0)
        close(nothing);
    return why;
}

ebb_status ebb_command_output_start(ebb_command_output *o, const char *command, double now_s, ebb_error *err)
{
    int ends[2], why;

    command += strspn(command, " \t");
    if (!*command || strchr(command, '\n'))
        return EBB_FAIL(err, EBB_USAGE, "a command is one line, as in !git diff");
    if (ebb_command_output_is_running(o))
        return EBB_FAIL(err, EBB_BUSY, "a command runs already: %.80s", ebb_buf_text(&o->command));
    ebb_command_output_fini(o);
    if (!ebb_buf_adds(&o->command, command))
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the command");
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return EBB_FAIL(err, EBB_IO, "the command cannot be run: %s", strerror(errno));
    fcntl(ends[1], F_SETFL, 0);                  /* the command's end blocks, as programs expect */
    why = spawn_shell(o->command.data, ends[1], &o->pid);
    if (why != 0) {
        o->pid = 0;
        close(ends[0]);
        close(ends[1]);
        return EBB_FAIL(err, EBB_IO, "the command cannot be run by /bin/sh: %s", strerror(why));
    }
    close(ends[1]);
    o->fd = ends[0];
    o->started_s = now_s;
    return EBB_OK;
}

bool ebb_command_output_is_running(const ebb_command_output *o)
{
    return o->pid > 0;
}

/* Kill the command's process group; processes that have left the group survive. */
static void kill_all(const ebb_command_output *o)
{
    kill(-o->pid, SIGKILL);
}

void ebb_command_output_stop(ebb_command_output *o)
{
    if (!ebb_command_output_is_running(o))
        return;
    o->is_stopped = true;
    kill_all(o);
}

void ebb_command_output_fini(ebb_command_output *o)
{
    if (ebb_command_output_is_running(o)) {
        kill_all(o);
        while (waitpid(o->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        close(o->fd);
    }
    ebb_buf_fini(&o->command);
    ebb_buf_fini(&o->text);
    *o = (ebb_command_output){ 0 };
}

static void read_output(ebb_command_output *o)
{
    char bytes[16 << 10];
    ssize_t got;

    while ((got = read(o->fd, bytes, sizeof bytes)) > 0) {
        size_t room = EBB_ATTACH_BYTES - o->text.len;
        o->is_cut |= (size_t)got > room;
        ebb_buf_add(&o->text, bytes, (size_t)got > room ? room : (size_t)got);
    }
}

static void add_end(const ebb_command_output *o, int status, ebb_buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n')
        ebb_buf_addc(out, '\n');
    if (o->is_cut)
        ebb_buf_addf(out, "[cut off after %d MiB]\n", EBB_ATTACH_BYTES >> 20);
    else if (o->is_late)
        ebb_buf_addf(out, "[stopped after %.0f s]\n", EBB_COMMAND_S);
    else if (o->is_stopped)
        ebb_buf_adds(out, "[stopped]\n");
    else if (WIFSIGNALED(status))
        ebb_buf_addf(out, "[ended by signal %d]\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        ebb_buf_addf(out, "[exit status %d]\n", WEXITSTATUS(status));
}

bool ebb_command_output_poll(ebb_command_output *o, double now_s, ebb_buf *out)
{
    ebb_buf text = { 0 };
    int status = 0;
    pid_t ended;

    if (!ebb_command_output_is_running(o))
        return false;
    read_output(o);
    o->is_late |= now_s - o->started_s > EBB_COMMAND_S;
    if (o->is_cut || o->is_late)
        kill_all(o);
    ended = waitpid(o->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    read_output(o);                              /* its last words; who still runs beside it is not waited for */
    ebb_utf8_add_visible(&text, ebb_buf_text(&o->text), o->text.len, false);
    add_end(o, status, &text);
    ebb_attach_add_output(out, ebb_buf_text(&o->command), &text);
    ebb_buf_fini(&text);
    close(o->fd);
    o->pid = 0;
    ebb_command_output_fini(o);
    return true;
}
