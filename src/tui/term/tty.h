/* tui/term/tty.h - the process's terminal line: what every screen on it has in common.
 *
 * Keys and signals come in here; what goes out does so by tty_output.h.  From open to close the
 * line is brought back on every way out: close, exit, a crash (in the handler, with
 * async-signal-safe calls only, from bytes prepared before).  One per process. */
#ifndef EBB_TUI_TTY_H
#define EBB_TUI_TTY_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"
#include "term/keys.h"
#include "term/questions.h"

struct pollfd;

/* Of addresses behind cells; AUTO: where the terminal's kind, or its answer, says that it follows
 * them. */
typedef enum ebb_links { EBB_LINKS_AUTO, EBB_LINKS_ALWAYS, EBB_LINKS_NEVER } ebb_links;

typedef struct ebb_tty {
    ebb_keys keys;
    bool     is_gone;            /* hung up */
    bool     is_lent, keeps_keys;
    bool     is_asked;           /* questions.h; answers come among the keys */
    double   asked_s;
    ebb_term_answers answers;
    double   read_s;             /* when input came last */
    ebb_input after_paste;       /* SIGNAL or HANGUP: what has come of a paste goes first */
    ebb_buf  reply, title;
} ebb_tty;

/* Remember the modes and catch signals.  UNSUPPORTED: standard input or output is not a
 * terminal. */
EBB_MUST_CHECK
ebb_status ebb_tty_open(ebb_tty *t, ebb_error *err);
void ebb_tty_close(ebb_tty *t);

/* Raw modes of our own; a screen that curses makes raw does without. */
void ebb_tty_raw(void);
/* The modes as they were. */
void ebb_tty_cooked(void);
/* From now on (or no longer) a way out writes `bytes` (at most 255) and restores the modes. */
void ebb_tty_guard(bool is_on);
void ebb_tty_guard_with(const char *bytes, size_t n);

/* What is used of the screen: 1,000 rows of 2,000 columns at most, since lines may say 65,535 of
 * each.  Where the line does not say, LINES and COLUMNS do; false: nor do they. */
bool ebb_tty_size(int *rows, int *cols);

/* Seconds that a byte takes on a line that says it is slow: 19200 baud and less (sshd hands on what
 * the client's line says); 0: it does not. */
double ebb_tty_byte_s(void);
/* Are addresses behind cells told to it (hyperlink.h)?  Never on a slow line. */
bool ebb_tty_has_links(ebb_links wish, double byte_s, const char *term_name);

/* What to poll for inputs, and for how long at most (-1: for ever), before ebb_tty_input is
 * called. */
int  ebb_tty_fds(const ebb_tty *t, struct pollfd *out, int cap);
int  ebb_tty_timeout_ms(const ebb_tty *t);
/* Ask the terminal what it is, if its kind (a name of terminfo) suits: raw modes are on. */
void ebb_tty_ask(ebb_tty *t, const char *term_name);
/* Wait for the answers until so long after they were asked for, not at all if there are none to
 * wait for; keys that come meanwhile are kept. */
void ebb_tty_await_answers(ebb_tty *t, double until_s);
/* What is still to be answered would be read by whoever has the terminal next. */
void ebb_tty_await_last_answers(ebb_tty *t);

/* The window's title, told if it has changed; nothing where the terminal was asked nothing. */
void ebb_tty_set_title(ebb_tty *t, const char *text, size_t n, bool ascii);
/* Keep the window's title and set our own, if there is one; give it back. */
void ebb_tty_enter_title(ebb_tty *t);
void ebb_tty_leave_title(ebb_tty *t);

/* Keys, pastes, signals, REPLY; never blocks (but for the rest of a sequence).  A paste that does
 * not end is ended by Ctrl-C, a second after the last of it, and by whatever ends the program. */
bool ebb_tty_input(ebb_tty *t, ebb_input *out);

/* Between two calls of ebb_tty_input, while something takes long: Ctrl-C was pressed (it is taken
 * out of the keys, which all come later), or the line is gone. */
bool ebb_tty_is_interrupted(ebb_tty *t);

/* Another program has the line from now on: nothing of it is read, but that it hangs up is seen.
 * Or with `keeps_keys` it only shows text as it is.  Before lending, and after taking it back, the
 * modes are as they were found. */
void ebb_tty_lend(ebb_tty *t, bool keeps_keys);
void ebb_tty_take_back(ebb_tty *t);

/* Bracketed paste, where the terminal knows it or at least swallows it. */
#define EBB_PASTE_ON  "\033[?2004h"
#define EBB_PASTE_OFF "\033[?2004l"
/* Terminals that neither know bracketed paste nor swallow it, and have few glyphs. */
bool ebb_tty_is_plain_kind(const char *term_name);
bool ebb_tty_has_paste(const char *term_name);

#endif
