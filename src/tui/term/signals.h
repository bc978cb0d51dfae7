/* tui/term/signals.h - signals as bytes of a pipe, for a poll loop.
 *
 * SIGTERM, SIGUSR1 (stop the answer), SIGUSR2 (another ebb wants the model, too), SIGHUP, SIGINT,
 * SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP and SIGCHLD are caught from open to close; SIGPIPE is
 * ignored, and so stays a SIGHUP that was before (nohup).  One user per process.  A number waits
 * once at most, however often it has come.
 *
 * A terminal that takes no more output keeps nobody from leaving: two seconds after SIGTERM
 * or SIGHUP (SIGALRM), standard output and error are /dev/null if they take nothing by then. */
#ifndef EBB_TUI_SIGNALS_H
#define EBB_TUI_SIGNALS_H
#include <stdbool.h>

bool ebb_signals_open(void);     /* false: no pipe to be had */
void ebb_signals_close(void);    /* default actions again, but for such a SIGHUP */
int  ebb_signals_fd(void);       /* readable when there is one; -1 when not open */
int  ebb_signals_next(void);     /* its number, 0: none waits */
/* One waits that ends what is under way: SIGTERM, SIGHUP, SIGINT, SIGQUIT or SIGUSR1.  It stays the
 * next one's. */
bool ebb_signals_want_stop(void);
/* The next SIGTERM or SIGUSR1; all before it is forgotten.  0: none waits. */
int  ebb_signals_next_request(void);
/* The terminal is gone: nothing but SIGTERM and SIGUSR1 is caught from now on, also after close and
 * another open, and of what waits nothing else is left. */
void ebb_signals_leave_terminal(void);
/* While another program has the terminal, Ctrl-C and Ctrl-\ are its own, also before it quite has
 * it. */
void ebb_signals_ignore_keys(bool ignores);
/* Stop the process group as Ctrl-Z would; returns when continued.  false: it was not stopped, since
 * nobody is there who could continue it (an orphaned process group, as POSIX has it); known after a
 * tenth of a second. */
bool ebb_signals_stop(void);
/* The terminal still takes nothing two seconds after SIGTERM or SIGHUP: no wait for it would come
 * to an end. */
bool ebb_signals_have_given_up(void);

#endif
