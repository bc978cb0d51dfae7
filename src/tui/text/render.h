/* tui/text/render.h - Markdown set in type: closed blocks, through md4c, into a wrap.
 *
 * Headings without their marks, bullets, numbers, quotes behind a bar, tables on a grid (or,
 * where the page is too narrow, as records), links with their address, code in its
 * language's colours below a line that names it and its number for /copy.  Line ends inside a
 * paragraph stay: models mean them. */
#ifndef EBB_TUI_RENDER_H
#define EBB_TUI_RENDER_H
#include "text/wrap.h"

#define EBB_GUTTER_COLUMNS 2

/* Append a block of `raw` to w. */
void ebb_render_block(ebb_wrap *w, const char *raw, const ebb_md_block *block);
/* The margin in front of a line of code. */
void ebb_render_gutter(ebb_wrap *w);

/* The nth code block (from 1) of s[0..n), as its first line numbers it, appended to *out:
 * its text without indentation of lists or bars of quotes.  False: there are fewer. */
bool ebb_render_code_block(const char *s, size_t n, unsigned long nth, ebb_buf *out);

#endif
