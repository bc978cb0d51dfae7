/* The region of an inline terminal (inline_region.h). */
#include "term/inline_region.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "term/caps.h"

/* -- The cursor and what it draws with ------------------------------------------------ */

static void set_link(ebb_inline_region *r, uint32_t link)
{
    if (r->link != link)
        ebb_hyperlink_switch(r->links, link, &r->out);
    r->link = link;
}

static void set_face(ebb_inline_region *r, int face)
{
    if (r->face == face)
        return;
    ebb_buf_add(&r->out, ebb_buf_text(&r->sgr[face]), r->sgr[face].len);
    r->face = face;
}

/* For cells that are erased. */
static void set_plain(ebb_inline_region *r)
{
    set_link(r, 0);
    set_face(r, EBB_FACE_TEXT);
}

static void to_column(ebb_inline_region *r, int col)
{
    if (col == r->col)
        return;
    if (r->col >= 0 && col == r->col - 1) {
        ebb_buf_addc(&r->out, '\b');
    } else {
        ebb_buf_addc(&r->out, '\r');
        if (col > 0)
            ebb_cap_add_n(&r->out, "cuf", col);
    }
    r->col = col;
}

/* The cursor to a row of the region or the one after its last, which is made. */
static void move_in_region(ebb_inline_region *r, int row, int col)
{
    if (row < r->row)
        ebb_cap_add_n(&r->out, "cuu", r->row - row);
    for (; r->row < row; r->row++)
        ebb_buf_addc(&r->out, '\n');
    r->row = row;
    to_column(r, col);
}

static void erase_below(ebb_inline_region *r)
{
    set_plain(r);
    ebb_cap_add(&r->out, "ed");
}

void ebb_inline_region_show_cursor(ebb_inline_region *r, bool is_shown)
{
    if (r->is_hidden == !is_shown)
        return;
    ebb_cap_add(&r->out, is_shown ? "cnorm" : "civis");
    r->is_hidden = !is_shown;
}

/* -- A frame ---------------------------------------------------------------------------- */

void ebb_inline_region_begin(ebb_inline_region *r, int above, int rows)
{
    if (ebb_grid_resize(&r->next, above + rows, r->cols))
        r->above = above;
}

/* Terminals may give the character another width: the cursor is then placed for the next one. */
static bool is_risky(const ebb_cell *c)
{
    uint32_t cp;
    size_t n = strlen(c->text), used = ebb_utf8_decode(c->text, n, &cp);

    return used < n || (c->width == 2 && cp >= 0x1F000);
}

static void draw_cell(ebb_inline_region *r, const ebb_cell *c, int row, int col)
{
    move_in_region(r, row, col);
    set_face(r, c->face);
    set_link(r, c->link);
    ebb_buf_adds(&r->out, c->text);
    r->col = is_risky(c) || col + c->width >= r->cols ? -1 : col + c->width;
}

/* Cells from `col` on that are blank to the end of the row. */
static int blank_from(const ebb_grid *g, int row)
{
    int col = g->cols;

    while (col > 0 && ebb_cell_is_blank(ebb_grid_at(g, row, col - 1)))
        col--;
    return col;
}

/* Grow `reach` to `rows`, new ones with 0 columns.  Without memory, rows beyond it are as wide as
 * the screen. */
static void make_reach(ebb_inline_region *r, int rows)
{
    int *reach = rows > r->n_reach ? realloc(r->reach, (size_t)rows * sizeof *reach) : NULL;

    if (!reach)
        return;
    for (int i = r->n_reach; i < rows; i++)
        reach[i] = 0;
    r->reach = reach;
    r->n_reach = rows;
}

static void set_reach(ebb_inline_region *r, int from, int cols)
{
    for (int i = from; i < r->n_reach; i++)
        r->reach[i] = cols;
}

/* `row` of the frame over row `row` of the region (or over nothing). */
static void draw_region_row(ebb_inline_region *r, int row)
{
    bool is_new = row >= r->shown.rows;
    int end = blank_from(&r->next, row), old_end = is_new ? 0 : blank_from(&r->shown, row);

    if (is_new)
        move_in_region(r, row, 0);
    if (row < r->above && end < (row < r->n_reach ? r->reach[row] : r->cols)) {
        move_in_region(r, row, 0);               /* a terminal would remember how long this line was */
        set_plain(r);
        ebb_cap_add(&r->out, "el");
        is_new = true;
        old_end = 0;
        if (row < r->n_reach)
            r->reach[row] = 0;
    }
    if (row < r->n_reach && r->reach[row] < end)
        r->reach[row] = end;
    for (int col = 0; col < end; col++) {
        const ebb_cell *c = ebb_grid_at(&r->next, row, col);
        bool is_same = !is_new && ebb_cell_equal(c, ebb_grid_at(&r->shown, row, col));
        if (c->width > 0 && (!is_same && (col < old_end || !ebb_cell_is_blank(c))))
            draw_cell(r, c, row, col);
    }
    if (end < old_end) {
        move_in_region(r, row, end);
        set_plain(r);
        ebb_cap_add(&r->out, "el");
    }
}

/* What is now the region: the last rows of the frame. */
static void adopt_frame(ebb_inline_region *r)
{
    ebb_grid was = r->shown;
    size_t skip = (size_t)r->above * (size_t)r->next.cols;

    r->shown = r->next;
    r->shown.rows -= r->above;
    memmove(r->shown.cells, r->shown.cells + skip,
            (size_t)r->shown.rows * (size_t)r->shown.cols * sizeof *r->shown.cells);
    r->next = was;
    ebb_grid_resize(&r->next, r->shown.rows, r->shown.cols);
    if (r->above > 0 && r->above < r->n_reach)
        memmove(r->reach, r->reach + r->above, (size_t)(r->n_reach - r->above) * sizeof *r->reach);
    set_reach(r, r->shown.rows, 0);
    r->row -= r->above;
    r->above = 0;
}

void ebb_inline_region_draw(ebb_inline_region *r, int cursor_row, int cursor_col)
{
    make_reach(r, r->next.rows);
    for (int row = 0; row < r->next.rows; row++)
        draw_region_row(r, row);
    if (r->next.rows < r->shown.rows) {
        move_in_region(r, r->next.rows, 0);
        erase_below(r);
    }
    set_link(r, 0);
    ebb_inline_region_show_cursor(r, cursor_row >= 0);
    move_in_region(r, cursor_row >= 0 ? cursor_row : r->next.rows - 1, cursor_row >= 0 ? cursor_col : 0);
    adopt_frame(r);
}

/* -- Anew --------------------------------------------------------------------------------- */

void ebb_inline_region_erase(ebb_inline_region *r)
{
    move_in_region(r, 0, 0);
    erase_below(r);
}

void ebb_inline_region_clear_screen(ebb_inline_region *r)
{
    set_plain(r);
    ebb_cap_add(&r->out, "clear");
}

void ebb_inline_region_reset(ebb_inline_region *r, int rows)
{
    ebb_grid_resize(&r->shown, rows, r->cols);
    set_reach(r, 0, 0);
    r->row = r->col = 0;
    r->face = -1;
    r->is_stale = false;
}

/* -- Another width, another screen ---------------------------------------------------------- */

/* Rows between the region's first one and the cursor, after the width has changed. */
static int rows_above(const ebb_inline_region *r, bool reflows, int screen_rows)
{
    int n = r->row;

    for (int i = 0; reflows && i < r->row && i < r->shown.rows; i++) {
        int used = blank_from(&r->shown, i);
        n += used > r->cols ? (used - 1) / r->cols : 0;
    }
    return n < screen_rows ? n : screen_rows - 1;
}

void ebb_inline_region_follow_width(ebb_inline_region *r, bool reflows, int screen_rows)
{
    r->row = rows_above(r, reflows, screen_rows);
    r->col = -1;
    r->is_stale = true;
}

void ebb_inline_region_set_aside(ebb_inline_region *r)
{
    r->kept_row = r->row;
    r->kept_col = r->col;
    r->kept_cols = r->cols;
    ebb_grid_fini(&r->kept);
    r->kept = r->shown;
    memset(&r->shown, 0, sizeof r->shown);
}

void ebb_inline_region_bring_back(ebb_inline_region *r, bool reflows, int screen_rows)
{
    ebb_grid_fini(&r->shown);
    r->shown = r->kept;
    memset(&r->kept, 0, sizeof r->kept);
    set_reach(r, 0, r->cols);
    r->row = r->kept_row;
    r->col = r->kept_col;
    r->face = -1;
    if (r->kept_cols != r->cols)
        ebb_inline_region_follow_width(r, reflows, screen_rows);
}

void ebb_inline_region_fini(ebb_inline_region *r)
{
    for (int f = 0; f < EBB_FACE_COUNT; f++)
        ebb_buf_fini(&r->sgr[f]);
    ebb_grid_fini(&r->next);
    ebb_grid_fini(&r->shown);
    ebb_grid_fini(&r->kept);
    ebb_buf_fini(&r->out);
    free(r->reach);
}
