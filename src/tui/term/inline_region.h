/* tui/term/inline_region.h - the region of an inline terminal: what is at the end of the terminal's
 * own rows, as bytes that draw it (term_inline.c sends them).
 *
 * The region's place on the screen is unknown: the cursor moves relative to the region's first row,
 * and new rows come by line feeds, which scroll when they must.  So it works wherever cursor-up,
 * erase and colours do, and needs no answer of the terminal.
 *
 *     finished rows          the terminal's: scrolled, selected, kept by it
 *     region row 0           shown.cells[0]; the next frame begins here: its `above` rows
 *     ...                    overwrite the region from its top, the new region follows
 *     region row n - 1
 *
 * After a resize the region is drawn anew; how many rows it takes by then depends on whether the
 * terminal has broken its long lines anew (it reflows). */
#ifndef EBB_TUI_INLINE_REGION_H
#define EBB_TUI_INLINE_REGION_H
#include "base/buf.h"
#include "term/grid.h"
#include "term/hyperlink.h"

typedef struct ebb_inline_region {
    const ebb_hyperlinks *links; /* of the frame; outlive it */
    int      cols;               /* of the screen, as far as it is used */
    ebb_grid next, shown;        /* the frame being drawn; the region on the screen */
    int      above;              /* of next's rows */
    int     *reach;              /* columns that a row of `shown` had since it was last erased as a
                                  * whole */
    int      n_reach;
    int      row, col;           /* the cursor, from the region's first row */
    int      face;               /* switched on now; -1: unknown */
    uint32_t link;               /* likewise, an address; 0: none */
    bool     is_hidden;          /* the cursor */
    bool     is_stale;           /* it is to be drawn anew */
    ebb_buf  sgr[EBB_FACE_COUNT];
    ebb_buf  out;                /* bytes to be sent */
    ebb_grid kept;               /* the region while the whole screen is taken */
    int      kept_row, kept_col, kept_cols;
} ebb_inline_region;

void ebb_inline_region_fini(ebb_inline_region *r);

/* The next frame has so many rows above the region, and these. */
void ebb_inline_region_begin(ebb_inline_region *r, int above, int rows);
/* `next` over what is shown; it is what is shown then. */
void ebb_inline_region_draw(ebb_inline_region *r, int cursor_row, int cursor_col);
void ebb_inline_region_show_cursor(ebb_inline_region *r, bool is_shown);

/* It goes; what is above it stays.  The cursor is where it began. */
void ebb_inline_region_erase(ebb_inline_region *r);
void ebb_inline_region_clear_screen(ebb_inline_region *r);
/* It was erased, and begins where the cursor is: so many blank rows. */
void ebb_inline_region_reset(ebb_inline_region *r, int rows);

/* `cols` has changed.  screen_rows: the region's first row is no further up. */
void ebb_inline_region_follow_width(ebb_inline_region *r, bool reflows, int screen_rows);
/* The terminal shows another screen for a while, and then the region again. */
void ebb_inline_region_set_aside(ebb_inline_region *r);
void ebb_inline_region_bring_back(ebb_inline_region *r, bool reflows, int screen_rows);

#endif
