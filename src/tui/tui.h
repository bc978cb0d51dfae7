/* tui/tui.h - the ways to talk: the full screen, inline, and plain lines.
 *
 * Both open the chat, run until the user leaves, and return an exit status:
 * 0, 1 (what went wrong was printed to standard error), or 128 + the signal that ended it. */
#ifndef EBB_TUI_TUI_H
#define EBB_TUI_TUI_H
#include <stdbool.h>

#include "conversation/chat.h"

struct ebb_filters;

/* Where the figures are: beside the conversation, in two lines below it or in one, nowhere; AUTO:
 * where the terminal has room. */
typedef enum ebb_layout { EBB_LAYOUT_AUTO, EBB_LAYOUT_WIDE, EBB_LAYOUT_NARROW, EBB_LAYOUT_LINE,
                          EBB_LAYOUT_OFF, EBB_LAYOUTS } ebb_layout;
/* As --status has them: "auto" ...; ends with NULL. */
extern const char *const ebb_layout_names[EBB_LAYOUTS + 1];

/* What the command line and the environment say; zero is the default of every field. */
typedef struct ebb_tui_opts {
    const char *theme;           /* NULL: for the background that the terminal tells ... */
    const char *background_theme; /* ... or else the environment; NULL: dark */
    bool        no_color;        /* NO_COLOR, --color=never: the mono theme */
    bool        ascii;           /* --ascii: no glyphs beyond ASCII of our own */
    bool        is_inline;       /* --inline: below what the terminal keeps, not over the whole
                                  * screen */
    /* When an answer ends: LONG: that took over a minute. */
    enum { EBB_BELL_LONG, EBB_BELL_ALWAYS, EBB_BELL_NEVER } bell;
    bool        notifies;        /* with the bell, the desktop */
    bool        no_commands;     /* !command is out of reach: no --shell */
    const struct ebb_filters *filters;   /* for attached files; NULL: files are taken as they are */
    bool        no_title;        /* the window's title is left alone */
    const char *term_name;       /* $TERM; may be NULL where nothing notifies */
    bool        is_vte;          /* VTE_VERSION is set */
    /* --links */
    enum { EBB_HYPERLINKS_AUTO, EBB_HYPERLINKS_ALWAYS, EBB_HYPERLINKS_NEVER } links;
    bool        has_vi_keys;     /* --editing vi */
    ebb_layout  layout;          /* at the start; F2 changes it */
    bool        reflows;         /* the terminal is known to break lines anew when it is resized */
    bool        in_tmux;         /* $TMUX is set: /copy goes through it */
    bool        accessible;      /* ACCESSIBLE=1: plain text comes by whole sentences */
    bool        is_private;      /* --private: it is said that nothing is kept */
    uint32_t    linger_s;        /* how long an answer may go on without a terminal */
    int         begin_lock;      /* a lock (flock) that is let go, and closed, as soon as `ebb stat`
                                  * sees this chat; 0: none */
    const char *program;         /* ebb itself, to be started again for /pull; NULL: it cannot be */
    const char *editor;          /* $VISUAL or $EDITOR, a shell command; NULL: vi */
    const char *config_dir;      /* NULL: $XDG_CONFIG_HOME/ebb */
    const char *state_dir;       /* NULL: $XDG_STATE_HOME/ebb; "" : nothing is kept */
} ebb_tui_opts;

/* The full screen, on standard input and output.  Where the terminal cannot do
 * it (no terminal, TERM=dumb), plain lines. */
int ebb_tui_run(const ebb_chat_opts *chat, const ebb_tui_opts *opts);

/* Append-only: lines in, "Model: ..." out, no cursor motion.  Reads standard input to its end. */
int ebb_plain_run(const ebb_chat_opts *chat, const ebb_tui_opts *opts);

#endif
