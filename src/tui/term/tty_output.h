/* tui/term/tty_output.h - what goes to the terminal, without waiting for one that takes nothing: a
 * link that stalls, a window that is stopped.  What it does not take at once is kept and sent when
 * there is room; a screen draws no frame while something is kept, so that there is one at most.
 *
 * One per process, of one thread.  Where the terminal cannot be opened a second time (a login
 * changed by su, no /proc), a write waits as it does elsewhere. */
#ifndef EBB_TUI_TTY_OUTPUT_H
#define EBB_TUI_TTY_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>

/* Standard output's terminal gets a descriptor of our own, so that not waiting is nobody else's
 * matter.  Closing it drops what is kept. */
void ebb_tty_output_open(void);
void ebb_tty_output_close(void);

/* In order, now or later; nothing once the line has hung up. */
void ebb_tty_write(const char *s, size_t n);
/* Sends what the line takes of what is kept.  false: nothing is kept any more. */
bool ebb_tty_send_kept(void);
/* Waits until all of it is sent, the line has hung up, or a signal has ended the waiting
 * (signals.h): before the line's modes change, or somebody else writes to it. */
void ebb_tty_finish_output(void);
/* Async-signal-safe, past what is kept; waits some seconds for a line that takes nothing. */
void ebb_tty_write_now(const char *s, size_t n);

/* To poll for room while something is kept; -1: nothing is. */
int ebb_tty_output_fd(void);

/* How far the line is behind. */
typedef enum ebb_backlog {
    EBB_BACKLOG_NONE,
    EBB_BACKLOG_SENDING,         /* it has taken all, and still sends it */
    EBB_BACKLOG_KEPT             /* it has not taken all */
} ebb_backlog;

ebb_backlog ebb_tty_backlog(void);

#endif
