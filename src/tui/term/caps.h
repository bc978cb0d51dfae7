/* tui/term/caps.h - what terminfo says of the process's terminal.
 *
 * caps.c and term_curses.c are the only files that include curses. */
#ifndef EBB_TUI_CAPS_H
#define EBB_TUI_CAPS_H
#include <stdbool.h>

#include "base/buf.h"
#include "term/theme.h"

/* Read the entry of $TERM; newterm() does so, too.  False: there is none. */
bool ebb_caps_open(void);
const char *ebb_caps_name(void);

/* A string capability, "" if there is none. */
const char *ebb_cap(const char *name);
bool ebb_cap_flag(const char *name);
int  ebb_cap_number(const char *name);           /* -1: none */
/* Append a capability, with its parameter if it has one, without the delays ($<5>) that
 * terminals of another age wanted.  Nothing where it is not of one number. */
void ebb_cap_add(ebb_buf *out, const char *name);
void ebb_cap_add_n(ebb_buf *out, const char *name, int n);

/* *out: what switches from any look to this one; n_colors 0: without colours. */
void ebb_caps_face(const ebb_style *s, int n_colors, ebb_buf *out);

#endif
