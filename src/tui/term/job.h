/* tui/term/job.h - a program that has the terminal for a while, as a shell lets one have it.
 *
 * It is a process group of its own, the terminal's foreground one, so that Ctrl-C and Ctrl-Z are
 * its own.  Nobody waits for it: SIGCHLD (signals.h) says when to look, and meanwhile its caller
 * goes on.  When it stops, ebb stops with it, as the one job that they are to the shell; fg
 * continues both.  Where no shell could (ebb leads the session, or nobody is left who watches), it
 * is continued at once.
 *
 * The terminal is standard input, if this process is in its foreground; else the program stays in
 * our group. */
#ifndef EBB_TUI_JOB_H
#define EBB_TUI_JOB_H
#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef struct ebb_job {
    pid_t pid;                   /* 0: there is none */
    bool  has_terminal;          /* pid is its process group, too */
    bool  has_modes;             /* it was stopped, and had these */
    struct termios modes;
    int   status;                /* when it has ended, as of waitpid */
} ebb_job;

/* Runs `command`, words of a shell, with `path` as one more.  The line has its usual modes.
 * Errors: IO, NOMEM; what the shell cannot run is an exit status. */
EBB_MUST_CHECK
ebb_status ebb_job_start(ebb_job *j, const char *command, const char *path, ebb_error *err);
/* Append what ebb_job_start has `sh -c` run for `command`, whose $1 is the path; $0 is "sh".
 * false: no memory. */
bool ebb_job_add_command(ebb_buf *out, const char *command);
/* Look: true if it has ended, and the terminal is ours again.  If it was stopped, this returns when
 * both are continued. */
bool ebb_job_has_ended(ebb_job *j);
void ebb_job_stop(ebb_job *j);                   /* as Ctrl-Z would */
void ebb_job_continue(ebb_job *j);               /* we were: the terminal is its own again */
/* We are leaving: hang up, and wait for two seconds at most. */
void ebb_job_end(ebb_job *j);

#endif
