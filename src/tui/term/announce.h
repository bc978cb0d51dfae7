/* tui/term/announce.h - what is sent to a terminal outside its cells: its title, and notifications.
 *
 * Text comes from models and users: it passes the display filter, and is cut where window managers
 * would. */
#ifndef EBB_TUI_ANNOUNCE_H
#define EBB_TUI_ANNOUNCE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Keep the window's title, and have it back (XTWINOPS; who does not know them ignores them). */
#define EBB_TITLE_SAVE    "\033[22;2t"
#define EBB_TITLE_RESTORE "\033[23;2t"

/* Append "text - ebb", or "ebb" where there is no text, as the window's title (OSC 2). */
void ebb_announce_add_title(ebb_buf *out, const char *text, size_t n, bool ascii);

/* Append a notification for the desktop: OSC 777 where the terminal is of a kind that knows that
 * one alone (foot, rxvt, VTE), else OSC 9, which others ignore.  OSC 9 has no title; and some
 * terminals take a number behind it for another command (ConEmu's), so a word of ours comes first.
 * Inside tmux it is wrapped to be passed on, if tmux is set so (allow-passthrough). */
void ebb_announce_add_notification(ebb_buf *out, const char *text, size_t n, const char *term_name,
                                   bool is_vte, bool in_tmux, bool ascii);

#endif
