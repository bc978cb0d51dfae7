/* tui/term/overlay.h - addresses behind cells, over a screen that knows none (curses).
 *
 * The cells of a frame that have addresses are collected; when the screen has drawn the frame, the
 * rows of which something has changed are written over once more, with the addresses switched on.
 * The screen's own idea of its cells stays true, since they show what they showed. */
#ifndef EBB_TUI_OVERLAY_H
#define EBB_TUI_OVERLAY_H
#include "base/buf.h"
#include "term/grid.h"
#include "term/hyperlink.h"

enum { EBB_OVERLAY_ROWS = 512, EBB_OVERLAY_CELLS = 4096 };

typedef struct ebb_overlay_cell {
    int      row, col;
    ebb_cell cell;
} ebb_overlay_cell;

/* A zeroed one is ready. */
typedef struct ebb_curses_links {
    uint32_t next[EBB_OVERLAY_ROWS];     /* hash of a row of this frame */
    uint32_t shown[EBB_OVERLAY_ROWS];    /* ... as its addresses were sent; 0: they were not */
    int      end[EBB_OVERLAY_ROWS];      /* column after the last cell with an address */
    ebb_overlay_cell *cells;     /* with addresses, in the order of drawing */
    size_t   n_cells, cap_cells;
} ebb_curses_links;

void ebb_overlay_fini(ebb_curses_links *o);
void ebb_overlay_forget(ebb_curses_links *o);    /* the screen is drawn anew */
/* Each cell of a frame. */
void ebb_overlay_cell_add(ebb_curses_links *o, int row, int col, const char *text, int width,
                          ebb_face face, uint32_t link);
/* The frame is drawn: append what tells the addresses, nothing while the text still moves.  `sgr`:
 * what switches a face on.  The cursor is where it was, faces are off. */
void ebb_overlay_draw(ebb_curses_links *o, const ebb_hyperlinks *links, const ebb_buf *sgr,
                      bool is_settling, ebb_buf *out);

#endif
