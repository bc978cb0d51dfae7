/* The editor's rows on the screen (editor.h). */
#include "edit/editor_impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "term/width.h"
#include "text/humanize.h"

size_t ebb_editor_paste_at(const ebb_editor *e, const char *s, size_t n)
{
    uint32_t cp;

    if (n < 4 || (unsigned char)s[0] != 0xF4 || ebb_utf8_decode(s, n, &cp) != 4 || cp < EBB_EDITOR_FIRST ||
        cp - EBB_EDITOR_FIRST >= e->n_pastes)
        return SIZE_MAX;
    return cp - EBB_EDITOR_FIRST;
}

static void paste_label(const ebb_paste *p, ebb_buf *out)
{
    ebb_buf_adds(out, "[pasted ");
    ebb_humanize_count(out, p->n_lines > 1 ? p->n_lines : p->n_bytes);
    ebb_buf_adds(out, p->n_lines > 1 ? " lines]" : " bytes]");
}

/* What is shown for the cluster s[0..n). */
static void add_glyph(const ebb_editor *e, const char *s, size_t n, bool ascii, ebb_buf *out)
{
    size_t paste = ebb_editor_paste_at(e, s, n);

    ebb_buf_clear(out);
    if (paste != SIZE_MAX)
        paste_label(&e->pastes[paste], out);
    else if (s[0] == '\t')
        for (int i = 0; i < EBB_TAB_COLUMNS; i++)
            ebb_buf_addc(out, ' ');
    else
        ebb_utf8_add_visible(out, s, n, ascii);
}

/* Bytes of the cluster at `at` and the columns that it is shown in.  One that
 * is wider than a row (a paste's label) counts as the row's width. */
static size_t measure_cluster(const ebb_editor *e, size_t at, int *width, ebb_buf *scratch)
{
    const char *s = e->text.data + at;
    size_t used = ebb_cluster_next(s, e->text.len - at, width);

    if (used == 1 && (unsigned char)s[0] >= 0x20 && s[0] != 0x7F)
        return used;
    add_glyph(e, s, used, false, scratch);
    *width = ebb_width_text(ebb_buf_text(scratch), scratch->len);
    if (*width > e->width)
        *width = e->width;
    return used;
}

static bool add_editor_row(ebb_editor *e, size_t start)
{
    size_t *rows = ebb_grow(e->rows, e->n_rows, &e->cap_rows, sizeof *rows);

    if (!rows)
        return false;
    e->rows = rows;
    e->rows[e->n_rows++] = start;
    return true;
}

size_t ebb_editor_layout(ebb_editor *e, int width)
{
    ebb_buf scratch = { 0 };
    int col = 0, w;

    e->width = width < 1 ? 1 : width;
    e->n_rows = 0;
    if (!add_editor_row(e, 0))
        return 1;
    for (size_t at = 0, used; at < e->text.len; at += used) {
        if (e->text.data[at] == '\n') {
            used = 1;
            add_editor_row(e, at + 1);
            col = 0;
            continue;
        }
        used = measure_cluster(e, at, &w, &scratch);
        if (col + w > e->width && col > 0) {
            add_editor_row(e, at);
            col = 0;
        }
        col += w;
    }
    if (col >= e->width)
        add_editor_row(e, e->text.len);          /* the caret needs a cell after a full row */
    ebb_buf_fini(&scratch);
    return e->n_rows;
}

static size_t row_of(const ebb_editor *e, size_t at)
{
    size_t row = 0;

    while (row + 1 < e->n_rows && e->rows[row + 1] <= at)
        row++;
    return row;
}

static size_t row_end(const ebb_editor *e, size_t row)
{
    if (row + 1 == e->n_rows)
        return e->text.len;
    size_t end = e->rows[row + 1];
    return end > e->rows[row] && e->text.data[end - 1] == '\n' ? end - 1 : end;
}

static int column_of(const ebb_editor *e, size_t row, size_t at)
{
    ebb_buf scratch = { 0 };
    int col = 0, w;

    for (size_t i = e->rows[row]; i < at; col += w)
        i += measure_cluster(e, i, &w, &scratch);
    ebb_buf_fini(&scratch);
    return col;
}

bool ebb_editor_vertical(ebb_editor *e, int direction)
{
    ebb_buf scratch = { 0 };
    size_t row, at = ebb_editor_shown_caret(e), end;
    int col = 0, w;

    ebb_editor_layout(e, e->width ? e->width : 80);
    row = row_of(e, at);
    if (direction < 0 ? row == 0 : row + 1 >= e->n_rows)
        return false;
    if (e->last != EBB_EDIT_VERTICAL)
        e->goal = column_of(e, row, at);
    e->now = EBB_EDIT_VERTICAL;
    row = direction < 0 ? row - 1 : row + 1;
    end = row_end(e, row);
    for (at = e->rows[row]; at < end; col += w) {
        size_t used = measure_cluster(e, at, &w, &scratch);
        if (col + w > e->goal || (at + used == end && row + 1 < e->n_rows && end == e->rows[row + 1]))
            break;
        at += used;
    }
    e->caret = at;
    ebb_buf_fini(&scratch);
    return true;
}

static void draw_editor_row(ebb_editor *e, ebb_term *term, int row, int col, size_t i)
{
    ebb_buf out = { 0 };
    size_t end = row_end(e, i), used;
    int limit = col + e->width;

    for (size_t at = e->rows[i]; at < end && col < limit; at += used) {
        const char *s = e->text.data + at;
        used = ebb_cluster_next(s, end - at, NULL);
        bool is_paste = ebb_editor_paste_at(e, s, used) != SIZE_MAX;
        add_glyph(e, s, used, !term->utf8, &out);
        col = ebb_term_put(term, row, col, limit, ebb_buf_text(&out), out.len,
                           is_paste ? EBB_FACE_DIM : EBB_FACE_TEXT);
    }
    ebb_buf_fini(&out);
}

void ebb_editor_draw(ebb_editor *e, ebb_term *term, int row, int col, int height, int *caret_row, int *caret_col)
{
    size_t at = ebb_editor_shown_caret(e), caret = row_of(e, at), shown = (size_t)(height > 0 ? height : 1);

    if (caret < e->top)
        e->top = caret;
    if (caret >= e->top + shown)
        e->top = caret + 1 - shown;
    if (e->top + shown > e->n_rows)
        e->top = e->n_rows > shown ? e->n_rows - shown : 0;
    for (size_t i = 0; i < shown && e->top + i < e->n_rows; i++)
        draw_editor_row(e, term, row + (int)i, col, e->top + i);
    *caret_row = row + (int)(caret - e->top);
    *caret_col = col + column_of(e, caret, at);
}
