/* tui/term/term_line.h - what both screens on the process's terminal line do alike (term_curses.c,
 * term_inline.c): input, what is sent beside frames, and the terminal's answers. */
#ifndef EBB_TUI_TERM_LINE_H
#define EBB_TUI_TERM_LINE_H
#include "term/term.h"

typedef struct ebb_term_line ebb_term_line;

/* What differs between the screens. */
typedef struct ebb_term_line_ops {
    void (*prepare_restore)(const ebb_term_line *l);     /* by what is known of the terminal now */
    void (*resized)(ebb_term_line *l);
    void (*resumed)(ebb_term_line *l);           /* after SIGCONT */
} ebb_term_line_ops;

/* The first member of such a screen. */
struct ebb_term_line {
    ebb_term  base;
    const ebb_term_line_ops *ops;
    ebb_tty   tty;
    bool      has_paste;         /* it is asked for bracketed paste */
    bool      no_color;
    int       n_colors;          /* that the terminal has */
    double    byte_s;            /* seconds that a byte takes on a slow line; 0: it is not */
    ebb_links links;             /* as it was asked for */
};

/* Allocates a screen of n_bytes, zeroed, that begins with a line, and opens the line.  The screen
 * is freed by ebb_term_line_free, which also closes the line.  Errors: NOMEM; those of
 * ebb_tty_open. */
EBB_MUST_CHECK
ebb_status ebb_term_line_new(size_t n_bytes, const ebb_term_ops *term_ops,
                             const ebb_term_line_ops *ops, ebb_term_line **out, ebb_error *err);
void ebb_term_line_free(ebb_term_line *l);
/* The same, of a terminal that cannot be drawn on: UNSUPPORTED. */
ebb_status ebb_term_line_refuse(ebb_term_line *l, ebb_error *err);

/* Fills in what the options, the locale and the terminal's kind (a name of terminfo) say. */
void ebb_term_line_probe(ebb_term_line *l, const ebb_term_opts *opts, const char *kind);
/* Which screen is shown.  A multiplexer has the terminal's second one all the time, and says so,
 * whatever it gives to its own programs. */
void ebb_term_line_show_screen(ebb_term_line *l, bool is_second);
/* Appends what every restoring begins with: modes off, the title back, the cursor shown. */
void ebb_term_line_add_restore(const ebb_term_line *l, ebb_buf *out);

/* Of ebb_term_ops. */
int  ebb_term_line_fds(ebb_term *base, struct pollfd *out, int cap);
int  ebb_term_line_timeout_ms(ebb_term *base);
bool ebb_term_line_input(ebb_term *base, ebb_input *out);
bool ebb_term_line_is_interrupted(ebb_term *base);
void ebb_term_line_send(ebb_term *base, const char *bytes, size_t n);
void ebb_term_line_title(ebb_term *base, const char *text, size_t n);
void ebb_term_line_await_answers(ebb_term *base, double until_s);
ebb_backlog ebb_term_line_backlog(ebb_term *base);

#endif
