/* tui/text/html_entity.h - &amp; &#65; &#x41; and the names that are met. */
#ifndef EBB_TUI_HTML_ENTITY_H
#define EBB_TUI_HTML_ENTITY_H
#include <stddef.h>

/* The entity s[0..n) ("&...;") as UTF-8 in out[0..8); 0: its name is not known.  Unfiltered, but
 * a line end is a blank, as in HTML: it ends no row of a table, and no line of what is drawn. */
size_t ebb_html_entity_decode(const char *s, size_t n, char *out);

#endif
