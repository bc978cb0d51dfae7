/* tui/text/wrap_visible.h - what is appended to the visible text of a wrap: wrap*.c, render*.c. */
#ifndef EBB_TUI_WRAP_VISIBLE_H
#define EBB_TUI_WRAP_VISIBLE_H
#include "text/wrap.h"

/* Without memory, w->failed or w->visible.failed is set; a link is then text alone. */

/* Appends text as it is, without faces yet; it passes the display filter, tabs become blanks. */
void ebb_wrap_add_source(ebb_wrap *w, const char *s, size_t n);
/* Gives what has none its face: that of its Markdown, as far as that is certain, or all of it. */
void ebb_wrap_add_faces(ebb_wrap *w, bool is_final);
/* Appends text in one face; it passes the display filter. */
void ebb_wrap_add(ebb_wrap *w, const char *s, size_t n, ebb_face face);
/* The visible text [start, end) has an address behind it, which is not filtered yet.  To be called
 * in the order of the text. */
void ebb_wrap_add_link(ebb_wrap *w, size_t start, size_t end, const char *address, size_t n);
/* Further rows of the logical line that begins here are set in. */
void ebb_wrap_set_hanging_indent(ebb_wrap *w, int columns);

#endif
