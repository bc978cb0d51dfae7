/* Raw text that grows, on its way into a wrap: as it is, or set in type block by block (wrap.h). */
#include "base/utf8.h"
#include "text/render.h"
#include "text/wrap_visible.h"

/* Bytes of s[0..n) before an incomplete character or a CR at the end. */
static size_t whole_part(const char *s, size_t n)
{
    uint32_t cp;

    if (n > 0 && s[n - 1] == '\r')
        return n - 1;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char b = (unsigned char)s[n - back];
        if (b >= 0xC0 && ebb_utf8_decode(s + n - back, back, &cp) == 0)
            return n - back;
        if (b < 0x80 || b >= 0xC0)
            break;
    }
    return n;
}

/* Back to what is stable: the source of a block that has now closed goes. */
static void drop_source(ebb_wrap *w)
{
    ebb_buf_remove(&w->visible, w->stable, w->visible.len - w->stable);
    w->visible_line = w->n_faced = w->stable;
    w->n_runs = w->stable_runs;
    w->n_hangs = w->stable_hangs;
    w->n_links = w->stable_links;
    while (w->n_rows > 0 && w->rows[w->n_rows - 1].start >= w->stable)
        w->n_rows--;
    w->line_start = w->n_rows > 0 ? w->rows[w->n_rows - 1].line : 0;
}

/* Set the blocks that have closed; the source of what follows is read anew. */
static void add_blocks(ebb_wrap *w, const char *raw, size_t n, bool is_final)
{
    ebb_md_block block;
    bool any = false;

    while (w->visible.len <= UINT32_MAX / 2 && ebb_md_blocks_next(&w->blocks, raw, n, is_final, &block)) {
        if (!any)
            drop_source(w);
        any = true;
        ebb_render_block(w, raw, &block);
    }
    if (!any)
        return;
    w->stable = w->visible.len;
    w->stable_runs = w->n_runs;
    w->stable_hangs = w->n_hangs;
    w->stable_links = w->n_links;
    w->n_raw = w->blocks.start;
    w->md = (ebb_md){ .base = w->md.base, .in_fence = w->blocks.fence != 0, .fence = w->blocks.fence,
                      .n_fence = w->blocks.n_fence };
}

/* What may be rendered anew: a text that went on after its end, tables on another page. */
static void check_page(ebb_wrap *w, size_t n)
{
    if ((w->is_final && n > w->n_raw) || (w->has_table && w->table_page != w->page))
        ebb_wrap_reset(w);
}

void ebb_wrap_text(ebb_wrap *w, const char *raw, size_t n, bool is_final)
{
    size_t end;

    if (w->is_rendered)
        check_page(w, n);
    if (n < w->n_raw || w->visible.len > UINT32_MAX / 2)
        return;
    if (w->is_rendered)
        add_blocks(w, raw, n, is_final);
    end = is_final ? n - w->n_raw : whole_part(raw + w->n_raw, n - w->n_raw);
    if (end > 0 && w->blocks.fence && w->n_raw == w->blocks.start)
        ebb_render_gutter(w);
    ebb_wrap_add_source(w, raw + w->n_raw, end);
    w->n_raw += end;
    w->is_final = is_final;
    w->failed = w->failed || w->visible.failed;
    ebb_wrap_add_faces(w, is_final);
}
