/* tui/edit/piped.h - a program beside ebb whose output is read as it comes.
 *
 * It runs in a session of its own without a terminal, so it can neither ask nor draw, and is ended
 * when it has printed EBB_ATTACH_BYTES or has run for EBB_PIPED_S. */
#ifndef EBB_TUI_PIPED_H
#define EBB_TUI_PIPED_H
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "os/spawn.h"

#define EBB_PIPED_S 60.0

typedef struct ebb_piped {
    pid_t   pid;                 /* 0: none runs */
    int     fd, err_fd;          /* of what it prints; err_fd is -1 where both outputs are one */
    double  started_s;           /* as the caller counts */
    bool    is_cut, is_late, is_stopped;
    ebb_buf text;                /* printed so far, raw */
    ebb_buf messages;            /* ... on standard error: the first 1 KiB */
} ebb_piped;

/* Start argv.  `input`: its standard input, which stays the caller's; -1: nothing.  `joins`: both
 * outputs are one.  A zeroed *p is ready.  Errors: IO, NOTFOUND (no such program). */
EBB_MUST_CHECK
ebb_status ebb_piped_start(ebb_piped *p, char *const argv[], int input, ebb_spawn_group group,
                           bool joins, double now_s, ebb_error *err);
bool ebb_piped_is_running(const ebb_piped *p);
void ebb_piped_stop(ebb_piped *p);               /* it ends; what it has printed stays */
/* Read what there is; never blocks.  true: it has ended, with *status as waitpid(2) has it. */
bool ebb_piped_poll(ebb_piped *p, double now_s, int *status);
void ebb_piped_fini(ebb_piped *p);               /* ends what runs */

/* "stopped after 60 s" and the like; nothing if it ended well. */
void ebb_piped_add_end(const ebb_piped *p, int status, ebb_buf *out);

#endif
