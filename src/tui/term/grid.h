/* tui/term/grid.h - cells in memory: what a painter keeps of a frame. */
#ifndef EBB_TUI_GRID_H
#define EBB_TUI_GRID_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "term/theme.h"

#define EBB_CELL_BYTES 62        /* a spacing character with its marks; more marks are left out */

typedef struct ebb_cell {
    char    text[EBB_CELL_BYTES];
    uint8_t width;               /* 0: the right half of a wide one */
    uint8_t face;
    uint32_t link;               /* the address behind it (hyperlink.h); 0: none */
} ebb_cell;

typedef struct ebb_grid {
    int       rows, cols;
    ebb_cell *cells;             /* [rows * cols] */
    size_t    cap;
} ebb_grid;

/* A zeroed ebb_grid is an empty one. */
void ebb_grid_fini(ebb_grid *g);
/* Another size; all cells are blank then.  False: out of memory, as it was. */
bool ebb_grid_resize(ebb_grid *g, int rows, int cols);
void ebb_grid_blank(ebb_grid *g);
ebb_cell *ebb_grid_at(const ebb_grid *g, int row, int col);
/* Outside the grid: nothing. */
void ebb_grid_put(ebb_grid *g, int row, int col, const char *text, int width, ebb_face face,
                  uint32_t link);
bool ebb_cell_equal(const ebb_cell *a, const ebb_cell *b);
/* Nothing but the terminal's own background. */
bool ebb_cell_is_blank(const ebb_cell *c);

#endif
