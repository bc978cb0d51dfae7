/* pull/pull_process.h - an `ebb pull` beside this process, which goes on meanwhile.
 *
 * It is a process of its own, confined by rules of its own, so whoever follows it needs no
 * connection and no folder.  It is in a session of its own, without a terminal; what it says comes
 * through a pipe (pull_events.h).  Ended in any way, it keeps what has come as a part, with which
 * the next one goes on. */
#ifndef EBB_PULL_PROCESS_H
#define EBB_PULL_PROCESS_H
#include <sys/types.h>

#include "pull/pull_events.h"

typedef struct ebb_pull_process {
    pid_t   pid;                 /* 0: none runs */
    pid_t   leaving;             /* one before it that has said its last word, not reaped yet; 0:
                                  * none */
    int     fd;                  /* of what it says, non-blocking; -1: it says no more, and SIGCHLD
                                  * tells of its end */
    char    what[640];           /* "OWNER/NAME:TYPE", as it is fetched */
    ebb_buf line;                /* read, not yet a whole one */
    bool    is_stopped, is_done, has_said_why;
    ebb_pull_event last;         /* the last PROGRESS; n_files 0: there was none */
} ebb_pull_process;

/* Fetch `what` (pull_source.h; an address is none that a chat may name) for `ram_bytes` of memory
 * (0: what there is), by the program `ebb`.  A zeroed *p is ready; fini ends what runs.  Errors:
 * USAGE, BUSY (one runs), IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_pull_process_start(ebb_pull_process *p, const char *ebb, const char *what,
                                  uint64_t ram_bytes, ebb_error *err);
/* End what runs, at once; its part stays. */
void ebb_pull_process_fini(ebb_pull_process *p);
bool ebb_pull_process_is_running(const ebb_pull_process *p);
/* It ends soon, and its part stays. */
void ebb_pull_process_stop(ebb_pull_process *p);

/* The next event that came; never blocks.  false: there is none now.  One that ends without a word
 * has an ERROR as its last event. */
bool ebb_pull_process_next(ebb_pull_process *p, ebb_pull_event *out);

/* The words of the program in front of those that change, for a broker (EBB_BROKER_A_REPOSITORY):
 * up to a NULL.  `ebb` must outlive them. */
typedef struct ebb_pull_words { char *argv[5]; } ebb_pull_words;
ebb_pull_words ebb_pull_process_words(const char *ebb);

#endif
