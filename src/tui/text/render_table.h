/* tui/text/render_table.h - a table's cells as they are read, and the grid made of them. */
#ifndef EBB_TUI_RENDER_TABLE_H
#define EBB_TUI_RENDER_TABLE_H
#include "text/wrap.h"

typedef struct ebb_table_cell {
    size_t  start, end;          /* of the text */
    size_t  run, link;           /* its first */
    uint8_t align;               /* MD_ALIGN */
} ebb_table_cell;

/* Text of a cell with an address behind it. */
typedef struct ebb_table_link {
    size_t start, end;           /* of the text */
    size_t address, n_address;   /* in `addresses` */
} ebb_table_link;

typedef struct ebb_table {
    ebb_buf   text;              /* all cells, filtered */
    ebb_face_run *runs;
    size_t    n_runs, cap_runs;
    ebb_table_cell *cells;
    size_t    n_cells, cap_cells;
    ebb_table_link *links;       /* in the order of the text */
    size_t    n_links, cap_links;
    ebb_buf   addresses;
    size_t    n_columns;         /* cells of the first row are its header */
    bool      is_open, failed;
} ebb_table;

/* A zeroed table is empty.  Without memory `failed` is set and the rest is left out. */
void ebb_table_fini(ebb_table *t);
void ebb_table_begin_cell(ebb_table *t, uint8_t align);          /* begins one */
/* More text of it, filtered. */
void ebb_table_add(ebb_table *t, const char *s, size_t n, ebb_face face, bool ascii);
/* What the open cell holds from `start` on, of the text, has an address behind it. */
void ebb_table_add_link(ebb_table *t, size_t start, const char *address, size_t n);
void ebb_table_end_cell(ebb_table *t);           /* what comes until the next one belongs to none */

size_t ebb_table_bytes(const ebb_table *t);      /* of memory */

/* Called in front of every line.  false: the table is given up. */
typedef bool ebb_table_line_fn(void *arg, int hang);
/* Append it to w, for `width` columns (0: any). */
void ebb_table_draw(const ebb_table *t, ebb_wrap *w, int width, ebb_table_line_fn *begin_line,
                    void *arg);

#endif
