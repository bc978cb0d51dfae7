/* The visible text of a wrap (wrap_visible.h). */
#include "text/wrap_visible.h"

#include "base/grow.h"
#include "base/utf8.h"
#include "term/hyperlink.h"
#include "term/width.h"

/* Beyond this many bytes a tab is not aligned any more: measuring would cost too much. */
enum { TAB_ALIGN_MAX = 4096 };

static void add_tab(ebb_wrap *w)
{
    size_t len = w->visible.len - w->visible_line;
    int col = len < TAB_ALIGN_MAX ? ebb_width_text(ebb_buf_text(&w->visible) + w->visible_line, len) : 0;

    for (int i = col % EBB_TAB_COLUMNS; i < EBB_TAB_COLUMNS; i++)
        ebb_buf_addc(&w->visible, ' ');
}

void ebb_wrap_add_source(ebb_wrap *w, const char *s, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t len = 0;
        while (at + len < n && s[at + len] != '\t' && s[at + len] != '\n' && s[at + len] != '\r')
            len++;
        ebb_utf8_add_visible(&w->visible, s + at, len, w->ascii);
        at += len;
        if (at == n)
            break;
        if (s[at] == '\t') {
            add_tab(w);
        } else if (s[at] == '\n') {
            ebb_buf_addc(&w->visible, '\n');
            w->visible_line = w->visible.len;
        } else if (at + 1 == n || s[at + 1] != '\n') {
            ebb_utf8_add_visible(&w->visible, s + at, 1, w->ascii);
        }
        at++;
    }
}

static void add_run(ebb_wrap *w, size_t start, ebb_face face)
{
    ebb_face_run *runs;

    if (w->n_runs > 0 && w->runs[w->n_runs - 1].face == face)
        return;
    runs = ebb_grow(w->runs, w->n_runs, &w->cap_runs, sizeof *runs);
    w->failed |= !runs;
    if (!runs)
        return;
    w->runs = runs;
    w->runs[w->n_runs++] = (ebb_face_run){ (uint32_t)start, (uint8_t)face };
}

void ebb_wrap_add_faces(ebb_wrap *w, bool is_final)
{
    ebb_face face = w->md.base;

    if (!w->has_markdown) {
        add_run(w, 0, face);
        w->n_faced = w->visible.len;
        return;
    }
    while (w->n_faced < w->visible.len) {
        size_t used = ebb_md_next(&w->md, w->visible.data + w->n_faced, w->visible.len - w->n_faced,
                                  is_final, &face);
        if (used == 0)
            break;
        add_run(w, w->n_faced, face);
        w->n_faced += used;
    }
}

void ebb_wrap_add(ebb_wrap *w, const char *s, size_t n, ebb_face face)
{
    add_run(w, w->visible.len, face);
    ebb_wrap_add_source(w, s, n);
    w->n_faced = w->visible.len;
}

void ebb_wrap_set_hanging_indent(ebb_wrap *w, int columns)
{
    ebb_hanging_indent *hangs = ebb_grow(w->hangs, w->n_hangs, &w->cap_hangs, sizeof *hangs);

    w->failed |= !hangs;
    if (!hangs)
        return;
    w->hangs = hangs;
    w->hangs[w->n_hangs++] = (ebb_hanging_indent){ (uint32_t)w->visible.len, (uint16_t)columns };
}

void ebb_wrap_add_link(ebb_wrap *w, size_t start, size_t end, const char *address, size_t n)
{
    ebb_text_link *links = ebb_grow(w->links, w->n_links, &w->cap_links, sizeof *links);
    size_t at = w->addresses.len;

    w->links = links ? links : w->links;
    if (links && n <= EBB_HYPERLINK_BYTES && ebb_buf_add(&w->addresses, address, n))     /* else it is text alone */
        w->links[w->n_links++] = (ebb_text_link){ (uint32_t)start, (uint32_t)end, at, n };
}
