/* A program in the foreground (job.h). */
#include "term/job.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "os/spawn.h"
#include "term/signals.h"
#include "term/tty.h"

enum { END_LOOKS = 200, END_LOOK_NS = 10 * 1000 * 1000 };

/* -- The terminal --------------------------------------------------------------------------- */

/* To a process that is not in the foreground the kernel sends SIGTTOU here.  Giving the terminal away, that is what a
 * shell expects (bg: the job stops again); taking it back, we may. */
static void take_terminal(void)
{
    sigset_t ttou, was;

    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &ttou, &was);
    tcsetpgrp(STDIN_FILENO, getpgrp());
    pthread_sigmask(SIG_SETMASK, &was, NULL);
}

/* The job has the terminal, or the process group that has it is gone.  Else a shell has it. */
static bool may_take_terminal(const ebb_job *j)
{
    pid_t holder = tcgetpgrp(STDIN_FILENO);

    return j->has_terminal && holder > 0 && (holder == j->pid || (kill(-holder, 0) != 0 && errno == ESRCH));
}

static bool holds_terminal(const ebb_job *j)
{
    return j->has_terminal && tcgetpgrp(STDIN_FILENO) == j->pid;
}

static bool give_terminal(ebb_job *j)
{
    if (!j->has_terminal || holds_terminal(j))
        return true;
    if (j->has_modes)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &j->modes);
    j->has_modes = false;
    return tcsetpgrp(STDIN_FILENO, j->pid) == 0;
}

static void signal_job(const ebb_job *j, int number)
{
    kill(j->has_terminal ? -j->pid : j->pid, number);
}

static void put_in_foreground(ebb_job *j)
{
    if (!give_terminal(j))
        signal_job(j, SIGHUP);                   /* the job would wait for the terminal for ever */
    signal_job(j, SIGCONT);
}

/* -- Running --------------------------------------------------------------------------------- */

/* A plain command is exec'ed in the shell's place: we would not see a child of the shell stop. */
bool ebb_job_add_command(ebb_buf *out, const char *command)
{
    bool is_plain = !command[strcspn(command, "|&;<>()$`\\\"'*?[]{}#~=%!\n")];

    return ebb_buf_addf(out, "%s%s \"$1\"", is_plain ? "exec " : "", command);
}

ebb_status ebb_job_start(ebb_job *j, const char *command, const char *path, ebb_error *err)
{
    static const int terminal[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
    char shell[] = "sh", flag[] = "-c";
    ebb_buf line = { 0 }, file = { 0 };
    int failed;

    *j = (ebb_job){ .has_terminal = tcgetpgrp(STDIN_FILENO) == getpgrp() };
    if (!ebb_job_add_command(&line, command) || !ebb_buf_adds(&file, path)) {
        ebb_buf_fini(&line);
        ebb_buf_fini(&file);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the command");
    }
    failed = ebb_spawn((char *[]){ shell, flag, line.data, shell, file.data, NULL }, terminal,
                       j->has_terminal ? EBB_SPAWN_GROUP : EBB_SPAWN_HERE, &j->pid);
    ebb_buf_fini(&line);
    ebb_buf_fini(&file);
    if (failed) {
        j->pid = 0;
        return EBB_FAIL(err, EBB_IO, "sh cannot be run: %s", strerror(failed));
    }
    put_in_foreground(j);                        /* the job may have stopped for lack of it */
    return EBB_OK;
}

void ebb_job_stop(ebb_job *j)
{
    signal_job(j, SIGTSTP);
}

void ebb_job_continue(ebb_job *j)
{
    if (!holds_terminal(j))
        put_in_foreground(j);
}

/* -- Looking ------------------------------------------------------------------------------------ */

/* Without a shell that could continue us, ebb_signals_stop returns at once. */
static void stop_with(ebb_job *j)
{
    if (may_take_terminal(j)) {
        j->has_modes = tcgetattr(STDIN_FILENO, &j->modes) == 0;
        take_terminal();
        ebb_tty_cooked();
    }
    ebb_signals_stop();
}

static bool job_ended(ebb_job *j, int status)
{
    if (may_take_terminal(j))
        take_terminal();
    j->status = status;
    j->pid = 0;
    return true;
}

bool ebb_job_has_ended(ebb_job *j)
{
    int status;
    pid_t got;

    while ((got = waitpid(j->pid, &status, WNOHANG | WUNTRACED)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return job_ended(j, -1);             /* somebody else took its status */
        if (!WIFSTOPPED(status))
            return job_ended(j, status);
        if (WSTOPSIG(status) != SIGTTIN && WSTOPSIG(status) != SIGTTOU)  /* those only want the terminal */
            stop_with(j);
        put_in_foreground(j);
    }
    return false;
}

void ebb_job_end(ebb_job *j)
{
    struct timespec look = { .tv_nsec = END_LOOK_NS };

    signal_job(j, SIGHUP);
    signal_job(j, SIGCONT);
    for (int i = 0; i < END_LOOKS; i++) {
        pid_t got = waitpid(j->pid, &j->status, WNOHANG);
        if (got != 0 && !(got < 0 && errno == EINTR))
            break;
        nanosleep(&look, NULL);
    }
    job_ended(j, j->status);
}
