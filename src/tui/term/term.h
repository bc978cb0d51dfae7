/* tui/term/term.h - a terminal as a grid of cells.
 *
 * Implementations: term_curses.c (the whole screen) and term_inline.c (a region at the end of
 * what the terminal keeps anyway); tests have one in memory that is read back as
 * text.  Callers name a face; theme.h says what it looks like.
 *
 * A frame: ops->clear, any number of puts, ops->flush.  Only cells that
 * differ from the screen are sent.  The real cursor is parked where flush
 * says, so input methods open their window there.
 *
 * In an inline terminal a frame begins with ops->begin(above, rows) instead: its first `above` rows
 * are written once and scroll away, never touched again; the `rows` below them are the
 * region.  A row that moves from the region into what is above costs nothing, since
 * it stays where it is.
 *
 * put() is the last line of defence of invariant 8: control characters that
 * come so far are drawn as '?'.  Text is filtered before (ebb_utf8_add_visible). */
#ifndef EBB_TUI_TERM_H
#define EBB_TUI_TERM_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"
#include "term/hyperlink.h"
#include "term/keys.h"
#include "term/questions.h"
#include "term/theme.h"
#include "term/tty.h"
#include "term/tty_output.h"

struct pollfd;
typedef struct ebb_term ebb_term;

typedef struct ebb_term_ops {
    void (*close)(ebb_term *t);                  /* restores the terminal, frees */
    void (*size)(ebb_term *t, int *rows, int *cols);
    void (*clear)(ebb_term *t);
    void (*begin)(ebb_term *t, int above, int rows);             /* NULL: never inline */
    /* Inline: take the whole screen for a while, as it is without begin(); what was there comes
     * back.  NULL: it has the whole screen always. */
    void (*fullscreen)(ebb_term *t, bool is_fullscreen);
    /* One cell (width 1 or 2): a spacing code point with its marks, UTF-8, NUL-terminated. */
    void (*cell)(ebb_term *t, int row, int col, const char *text, int width, ebb_face face);
    void (*flush)(ebb_term *t, int cursor_row, int cursor_col);  /* row < 0: no cursor */
    void (*repaint)(ebb_term *t);                /* the next flush sends everything */
    void (*theme)(ebb_term *t, const ebb_theme *theme);
    /* Restore, stop, come back.  false: nobody would have continued us; we were not stopped. */
    bool (*suspend)(ebb_term *t);
    /* Restore; until take_back the terminal is another program's: no frame is to be flushed,
     * signals and its end are the only inputs.  With `keeps_keys` it shows what is sent, and keys
     * come. */
    void (*lend)(ebb_term *t, bool keeps_keys);
    void (*take_back)(ebb_term *t);
    int  (*fds)(ebb_term *t, struct pollfd *out, int cap);       /* what to poll; how many */
    int  (*timeout_ms)(ebb_term *t);             /* -1: none; else call input after it */
    bool (*input)(ebb_term *t, ebb_input *out);  /* never blocks */
    bool (*is_interrupted)(ebb_term *t);         /* ebb_tty_is_interrupted */
    void (*send)(ebb_term *t, const char *bytes, size_t n);      /* raw, for OSC 52 */
    /* The window's title, filtered here; told if it has changed.  NULL: there is none. */
    void (*title)(ebb_term *t, const char *text, size_t n);
    /* Wait for what the terminal was asked until so long after it was; NULL: nothing was asked. */
    void (*await_answers)(ebb_term *t, double until_s);
    /* Of the last frame; as long as it is KEPT, none is to be flushed.  NULL: always NONE. */
    ebb_backlog (*backlog)(ebb_term *t);
} ebb_term_ops;

struct ebb_term {
    const ebb_term_ops *ops;
    bool ascii;                  /* draw glyphs of our own in ASCII */
    bool utf8;                   /* else other people's text is cut down to ASCII too */
    ebb_term_answers answers;    /* what is known by now; an input REPLY says that it is more */
    bool has_links;              /* it follows addresses behind cells ... */
    bool is_settling;            /* ... once the text rests: it still moves */
    ebb_hyperlinks links;        /* of this frame */
    uint32_t link;               /* behind the cells that are put now; 0: none */
    double frame_s;              /* what flushes take on a slow line, added up by them until a
                                  * caller clears it */
};

typedef struct ebb_term_opts {
    bool no_color;
    ebb_links links;             /* AUTO: as the terminal's kind, or its answer, says */
    bool ascii;
    bool reflows;                /* this terminal breaks long lines anew when it is resized */
} ebb_term_opts;

/* The process's terminal (standard input and output), asked what it is.  UNSUPPORTED if it
 * cannot move its cursor.  One at a time.  From here on until close the
 * terminal is restored on every way out: exit, SIGTERM, a crash. */
EBB_MUST_CHECK
ebb_status ebb_term_curses(const ebb_term_opts *opts, ebb_term **out, ebb_error *err);

/* The same terminal, inline: from where the cursor is. */
EBB_MUST_CHECK
ebb_status ebb_term_inline(const ebb_term_opts *opts, ebb_term **out, ebb_error *err);

/* Cells that are put from now on have the address behind them; NULL: none.  What is not safe, and
 * where the terminal follows no links, is passed over. */
void ebb_term_link(ebb_term *t, const char *address, size_t n);

/* Draw s[0..n) from (row, col), clipped at column `limit` (not drawn) and at
 * the screen's edges.  Tabs go to the next stop counted from col.  Returns the column after. */
int ebb_term_put(ebb_term *t, int row, int col, int limit, const char *s, size_t n, ebb_face face);
/* The same; what is too long ends in a mark that says so. */
int ebb_term_put_cut(ebb_term *t, int row, int col, int limit, const char *s, size_t n,
                     ebb_face face);
int ebb_term_puts(ebb_term *t, int row, int col, int limit, const char *s, ebb_face face);
/* Blanks in the first n columns. */
void ebb_term_blank(ebb_term *t, int row, int n);

#endif
