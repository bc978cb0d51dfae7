/* os/child.h - a command with a socket for its standard input and output.
 *
 * It gets a session of its own, so it cannot touch the terminal, and no other descriptor of this
 * process. */
#ifndef EBB_OS_CHILD_H
#define EBB_OS_CHILD_H
#include <sys/types.h>

#include "base/buf.h"
#include "ebb/status.h"

typedef struct ebb_child {
    pid_t pid;                   /* 0: none */
    int   fd;                    /* our end of its input and output, non-blocking; the caller closes
                                    it.  -1: it has one of the caller's */
    int   err_fd;                /* what it says on standard error, non-blocking */
} ebb_child;

/* Start argv[0], found as a shell would find it, with `its_fd` for its input and output; -1: with
 * one end of a socket pair, whose other end is out->fd.  its_fd stays the caller's.  Errors: IO,
 * NOTFOUND; then *out is empty. */
EBB_MUST_CHECK
ebb_status ebb_child_start(char *const argv[], int its_fd, ebb_child *out, ebb_error *err);
/* Take what it has said on standard error; the last 2 KiB of it stay in *words.  Never waits. */
void ebb_child_listen(ebb_child *c, ebb_buf *words);
/* The same until it says no more (it has ended), at most so long. */
void ebb_child_last_words(ebb_child *c, ebb_buf *words, int ms);
/* The last line of what it has said, perhaps why it ended; line ends and blanks at its end are cut
 * off.  It is words'.  NULL: nothing was said. */
const char *ebb_child_last_line(ebb_buf *words);
/* Have it end, with all that it started in its process group, by force after a second, and forget
 * it; fd is left alone.  An empty one is fine. */
void ebb_child_end(ebb_child *c);

#endif
