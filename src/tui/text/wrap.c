/* The visible text of a wrap, cut into rows, and what is found in it (wrap.h). */
#include "text/wrap.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "term/width.h"

void ebb_wrap_fini(ebb_wrap *w)
{
    ebb_buf_fini(&w->visible);
    free(w->runs);
    free(w->rows);
    free(w->hangs);
    free(w->links);
    ebb_buf_fini(&w->addresses);
    memset(w, 0, sizeof *w);
}

void ebb_wrap_reset(ebb_wrap *w)
{
    ebb_wrap fresh = { .ascii = w->ascii, .has_markdown = w->has_markdown, .has_columns = w->has_columns,
                       .is_rendered = w->is_rendered, .plain_glyphs = w->plain_glyphs, .page = w->page,
                       .md.base = w->md.base };

    ebb_wrap_fini(w);
    *w = fresh;
}

size_t ebb_wrap_bytes(const ebb_wrap *w)
{
    return w->visible.len + w->addresses.len + w->n_runs * sizeof *w->runs + w->n_hangs * sizeof *w->hangs +
           w->n_links * sizeof *w->links;
}

/* -- Rows ------------------------------------------------------------------------ */

enum {
    EXPLAINED_COLUMNS = 24,              /* at most, in front of an explanation */
    LEAST_EXPLANATION = 16,              /* columns for it, else it goes on at the left edge */
    NARROW_INDENT     = 2,               /* there */
    LIST_DIGITS       = 3,               /* of a list's number, at most; a point and a blank follow */
};

/* Columns that rows after the first of a logical line are set in: its blanks and its list mark.  Those that the first
 * row has no room for do not count, or a second row would stand before all of the mark has come. */
static int hanging_indent(const char *s, size_t n, int width)
{
    size_t at = 0, mark, most;

    while (at < n && s[at] == ' ')
        at++;
    mark = at;
    most = at + LIST_DIGITS + 2 <= (size_t)width ? at + LIST_DIGITS : at;
    while (mark < n && mark < most && s[mark] >= '0' && s[mark] <= '9')
        mark++;
    if (mark > at && mark + 1 < n && (s[mark] == '.' || s[mark] == ')') && s[mark + 1] == ' ')
        at = mark + 2;
    else if (at + 1 < n && (s[at] == '-' || s[at] == '*' || s[at] == '+' || s[at] == '>') && s[at + 1] == ' ')
        at += 2;
    return (int)at <= width / 2 ? (int)at : 0;
}

/* Columns in front of the explanation in s[0..n), which begins behind two blanks or more; 0: there is none.  On a
 * narrow screen what follows is set in a little, so that the next word at the edge is seen to be another. */
static int explained_indent(const char *s, size_t n, int width)
{
    size_t at = 0;

    while (at < n && s[at] != '\n' && !(s[at] == ' ' && at + 1 < n && s[at + 1] == ' '))
        at++;
    while (at < n && s[at] == ' ')
        at++;
    if (at >= n || s[at] == '\n' || at > EXPLAINED_COLUMNS)
        return 0;
    return (int)at + LEAST_EXPLANATION <= width ? (int)at : width / 2 < NARROW_INDENT ? 0 : NARROW_INDENT;
}

/* How far rows after the first of the line at `start` are set in. */
static void set_indent(const ebb_wrap *w, size_t start, ebb_row *row)
{
    size_t low = 0, high = w->n_hangs;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (w->hangs[mid].start < start)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < w->n_hangs && w->hangs[low].start == start) {
        row->indent = row->lead = w->hangs[low].columns <= w->width / 2 ? w->hangs[low].columns : 0;
        return;
    }
    const char *line = ebb_buf_text(&w->visible) + start;
    int columns = w->has_columns ? explained_indent(line, w->n_faced - start, w->width) : 0;

    row->indent = (uint16_t)(columns ? columns : hanging_indent(line, w->n_faced - start, w->width));
}

/* No row begins with these. */
static bool is_closing(uint32_t cp)
{
    return cp > 0x7F &&
           wcschr(L"\u3001\u3002\uFF0C\uFF0E\uFF01\uFF1F\uFF09\u300D\u300F\u3011\u300B\u3009\uFF1A\uFF1B\u30FC",
                  (wchar_t)cp);
}

/* One row from `start`; *next receives where the next begins.  True if there is a
 * next one.  A cluster may still grow by marks at `limit`, while the row it begins lies behind this one for good: so
 * where a row may end is asked of what a cluster begins with. */
static bool break_row(const char *s, size_t start, size_t limit, int width, ebb_row *row, size_t *next)
{
    size_t pos = start, can_break = 0, used, most = (size_t)width * 16 + 256;
    int col = row->indent, w;
    bool was_wide = false, is_wide;
    uint32_t cp;

    for (; pos < limit; pos += used, col += w) {
        if (s[pos] == '\n') {
            row->end = (uint32_t)pos;
            *next = pos + 1;
            return true;
        }
        used = ebb_cluster_next(s + pos, limit - pos, &w);
        ebb_utf8_decode(s + pos, used, &cp);
        is_wide = ebb_is_wide(cp);
        if ((is_wide || was_wide) && pos > start && !is_closing(cp) && s[pos] != ' ')
            can_break = pos;
        was_wide = is_wide;
        if ((col + w > width && pos > start) || pos - start > most)
            break;
        if (s[pos] == ' ')
            can_break = pos + 1;
    }
    row->end = (uint32_t)pos;
    *next = pos;
    if (pos == limit)
        return false;
    if (s[pos] != ' ' && can_break > start)
        *next = can_break;
    while (*next < limit && s[*next] == ' ')
        ++*next;
    if (*next < limit && s[*next] == '\n')
        ++*next;
    else if (*next == limit)
        return false;                            /* blanks hang over the edge: nothing follows yet */
    if (*next < pos)
        row->end = (uint32_t)can_break;
    while (row->end > start && s[row->end - 1] == ' ')
        row->end--;
    return true;
}

static bool add_wrapped_row(ebb_wrap *w, ebb_row row)
{
    ebb_row *rows = ebb_grow(w->rows, w->n_rows, &w->cap_rows, sizeof *rows);

    w->failed |= !rows;
    if (!rows)
        return false;
    w->rows = rows;
    w->rows[w->n_rows++] = row;
    return true;
}

void ebb_wrap_rows(ebb_wrap *w, int width)
{
    const char *s = ebb_buf_text(&w->visible);
    size_t start = 0, next;
    bool more = true;

    if (width < 1)
        width = 1;
    if (w->width != width || w->n_rows == 0) {
        w->n_rows = 0;
        w->line_start = 0;
        w->width = width;
    } else {
        start = w->rows[--w->n_rows].start;
    }
    while (more) {
        ebb_row row = { .start = (uint32_t)start, .line = (uint32_t)w->line_start };
        if (start > w->line_start)
            set_indent(w, w->line_start, &row);
        more = break_row(s, start, w->n_faced, width, &row, &next);
        if (!add_wrapped_row(w, row))
            return;
        if (more && s[next - 1] == '\n')
            w->line_start = next;
        start = next;
    }
}

size_t ebb_wrap_find(const ebb_wrap *w, uint32_t at)
{
    size_t low = 0, high = w->n_rows;

    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (w->rows[mid].start <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
}

size_t ebb_wrap_run(const ebb_wrap *w, uint32_t at)
{
    size_t low = 0, high = w->n_runs;

    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (w->runs[mid].start <= at)
            low = mid;
        else
            high = mid;
    }
    return low;
}

const ebb_text_link *ebb_wrap_link(const ebb_wrap *w, uint32_t at)
{
    size_t low = 0, high = w->n_links;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (w->links[mid].end <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low < w->n_links ? &w->links[low] : NULL;
}
