/* tui/panel/canvas.h - a column of the screen that gauges fill from top to bottom. */
#ifndef EBB_TUI_CANVAS_H
#define EBB_TUI_CANVAS_H
#include <stdbool.h>

#include "base/buf.h"
#include "term/term.h"

/* A place to draw: `row` moves down as gauges fill it.  What lies below `end` is not drawn. */
typedef struct ebb_canvas {
    ebb_term *term;              /* borrowed */
    int       row, end;          /* next row, row after the last */
    int       col, limit;        /* first column, column after the last */
} ebb_canvas;

/* "label          value" in one row; false when the canvas is full. */
bool ebb_canvas_line(ebb_canvas *c, const char *label, const char *value);
/* A row of text, cut at the right edge; control characters become visible.  false when the canvas
 * is full. */
bool ebb_canvas_text(ebb_canvas *c, const char *text, ebb_face face);
void ebb_canvas_bar(ebb_canvas *c, double share, ebb_face face);     /* 0..1, its own row */
void ebb_canvas_gap(ebb_canvas *c);                                  /* an empty row */
/* A bar of ten characters as text. */
void ebb_canvas_bar_text(ebb_buf *out, double share, bool ascii);

#endif
