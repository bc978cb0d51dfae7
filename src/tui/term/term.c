/* Text to cells (term.h). */
#include "term/term.h"

#include <string.h>

#include "term/width.h"

void ebb_term_link(ebb_term *t, const char *address, size_t n)
{
    t->link = t->has_links && address ? ebb_hyperlink_add(&t->links, address, n) : 0;
}

/* A letter with its marks, where there is no UTF-8: the letter. */
static bool is_marked(const char *text)
{
    return (unsigned char)text[0] < 0x80 && text[0] && text[1];
}

static int put_cell(ebb_term *t, int row, int col, int limit, const char *text, int width, ebb_face face)
{
    char bare[2] = { text[0], '\0' };

    if (col + width > limit)
        return -1;
    if (width == 0)
        return col;
    if ((unsigned char)text[0] < 0x20 || text[0] == 0x7F)
        text = "?";
    if (!t->utf8 && is_marked(text))
        text = bare;
    if ((unsigned char)text[0] >= 0x80 && !t->utf8) {
        for (int i = 0; i < width; i++)
            t->ops->cell(t, row, col + i, "?", 1, face);
        return col + width;
    }
    t->ops->cell(t, row, col, text, width, face);
    return col + width;
}

/* A cluster of more than one code point. */
static int put_cluster(ebb_term *t, int row, int col, int limit, const char *s, size_t n, ebb_face face)
{
    char part[EBB_CLUSTER_MAX + 4];
    size_t at = 0;
    int width;

    while (at < n && ebb_cluster_part(s, n, &at, part, sizeof part, &width) > 0) {
        int next = put_cell(t, row, col, limit, part, width, face);
        if (next < 0)
            return -1;
        col = next;
    }
    return col;
}

int ebb_term_put(ebb_term *t, int row, int col, int limit, const char *s, size_t n, ebb_face face)
{
    int rows, cols, start = col;
    size_t used;

    t->ops->size(t, &rows, &cols);
    if (limit > cols)
        limit = cols;
    if (row < 0 || (row >= rows && !t->ops->begin) || col < 0)
        return col;
    for (size_t at = 0; at < n; at += used) {
        int next;
        used = ebb_cluster_next(s + at, n - at, NULL);
        if (s[at] == '\t') {
            int to = start + (col - start) / EBB_TAB_COLUMNS * EBB_TAB_COLUMNS + EBB_TAB_COLUMNS;
            for (next = col; next < to && next < limit; next++)
                put_cell(t, row, next, limit, " ", 1, face);
        } else if (used == 1) {
            char one[2] = { s[at], '\0' };
            next = put_cell(t, row, col, limit, (unsigned char)one[0] < 0x80 ? one : "?", 1, face);
        } else {
            next = put_cluster(t, row, col, limit, s + at, used, face);
        }
        if (next < 0)
            break;
        col = next;
    }
    return col;
}

int ebb_term_put_cut(ebb_term *t, int row, int col, int limit, const char *s, size_t n, ebb_face face)
{
    const char *mark = t->ascii ? "..." : "\u2026";
    int mark_cols = ebb_width_text(mark, strlen(mark));

    if (col + ebb_width_text(s, n) <= limit)
        return ebb_term_put(t, row, col, limit, s, n, face);
    col = ebb_term_put(t, row, col, limit - mark_cols, s, n, face);
    return ebb_term_puts(t, row, col, limit, mark, face);
}

int ebb_term_puts(ebb_term *t, int row, int col, int limit, const char *s, ebb_face face)
{
    return ebb_term_put(t, row, col, limit, s, strlen(s), face);
}

void ebb_term_blank(ebb_term *t, int row, int n)
{
    for (int i = 0; i < n; i++)
        ebb_term_put(t, row, i, n, " ", 1, EBB_FACE_TEXT);
}
