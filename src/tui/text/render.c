/* Blocks of Markdown set in type: which are prose, what they may become, what is around them (render.h). */
#include "text/render.h"

#include <string.h>

#include "text/render_priv.h"

/* -- Prose ---------------------------------------------------------------------------------------- */

/* What the first n bytes of a text can become: marks, bars and columns repeat themselves, and so can headers of
 * records, cells that a row leaves out, and the addresses of links by name.  More than this is no page, but an attempt
 * on the memory, in one block or in many. */
enum { LAID_OUT_FREE = 64 << 10, LAID_OUT_PER_BYTE = 32, LAID_OUT_MOST = 64 << 20 };

static size_t layout_limit(size_t n)
{
    size_t free = LAID_OUT_FREE + LAID_OUT_PER_BYTE * n;

    return free < LAID_OUT_MOST + 2 * n ? free : LAID_OUT_MOST + 2 * n;
}

static void fini_renderer(ebb_renderer *r)
{
    ebb_buf_fini(&r->source);
    ebb_table_fini(&r->table);
    for (unsigned i = 0; i < LINKS_MAX; i++)
        ebb_buf_fini(&r->hrefs[i]);
}

/* Back to `before`, a copy from when nothing of a block had been added yet. */
static void drop_rendered(ebb_wrap *w, const ebb_wrap *before)
{
    ebb_buf_remove(&w->visible, before->visible.len, w->visible.len - before->visible.len);
    w->visible_line = before->visible_line;
    w->n_faced = before->n_faced;
    w->n_runs = before->n_runs;
    w->n_hangs = before->n_hangs;
    w->n_code = before->n_code;
    w->n_links = before->n_links;
    ebb_buf_remove(&w->addresses, before->addresses.len, w->addresses.len - before->addresses.len);
}

static void add_prose(ebb_wrap *w, const char *s, size_t n, size_t limit)
{
    const ebb_wrap before = *w;
    ebb_renderer r = { .w = w, .limit = limit };
    bool is_too_much;

    if (ebb_render_parse(&r, s, n) != 0 && !ebb_render_check_limit(&r))
        w->failed = true;
    is_too_much = ebb_render_check_limit(&r);
    ebb_render_end_line(&r);
    if (is_too_much)
        drop_rendered(w, &before);
    if (w->visible.len == before.visible.len) {  /* not parsed, or definitions of links: nothing is lost */
        ebb_renderer source = { .w = w, .html = 1 };
        ebb_render_add(&source, s, n, EBB_FACE_MARKUP);
        ebb_render_end_line(&source);
    }
    fini_renderer(&r);
}

static bool is_blank_line(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '\n')
            return false;
    return true;
}

/* Several blank lines are one. */
static void add_blank(ebb_wrap *w)
{
    const ebb_buf *v = &w->visible;

    if (v->len > 0 && !(v->len > 1 && v->data[v->len - 1] == '\n' && v->data[v->len - 2] == '\n')) {
        ebb_wrap_set_hanging_indent(w, 0);
        ebb_wrap_add(w, "\n", 1, w->md.base);
    }
}

ebb_text_range ebb_render_inside(const char *s, size_t n)
{
    size_t at = 0;

    for (const char *nl; (nl = memchr(s + at, '\n', n - at)) != NULL && is_blank_line(s + at, (size_t)(nl - s) - at);)
        at = (size_t)(nl - s) + 1;
    while (n > at && is_blank_line(s + n - 1, 1))
        n--;
    return (ebb_text_range){ at, n };
}

/* Blank lines around prose stay, as one.  The whole text may have become `limit` bytes then. */
static void render_prose(ebb_wrap *w, const char *s, size_t n, size_t limit)
{
    ebb_text_range inside = ebb_render_inside(s, n);
    const char *nl;

    if (inside.begin > 0)
        add_blank(w);
    if (inside.begin == inside.end)
        return;
    add_prose(w, s + inside.begin, inside.end - inside.begin, limit);
    nl = memchr(s + inside.end, '\n', n - inside.end);
    if (nl && memchr(nl + 1, '\n', n - (size_t)(nl + 1 - s)))
        add_blank(w);
}

/* -- Blocks --------------------------------------------------------------------------------------- */

void ebb_render_block(ebb_wrap *w, const char *raw, const ebb_md_block *block)
{
    const char *s = raw + block->start;
    size_t n = block->end - block->start;

    switch (block->kind) {
    case EBB_MD_BLOCK_OPEN:
        ebb_render_open_code(w, s, n, true);
        ebb_wrap_set_hanging_indent(w, EBB_GUTTER_COLUMNS);
        ebb_render_code_header(w, s, n);
        ebb_wrap_add(w, "\n", 1, EBB_FACE_MARKUP);
        break;
    case EBB_MD_BLOCK_CLOSE: break;
    case EBB_MD_BLOCK_LINE:
        ebb_wrap_set_hanging_indent(w, EBB_GUTTER_COLUMNS);
        ebb_render_code_line(w, s, n);
        ebb_wrap_add(w, "\n", 1, EBB_FACE_CODE);
        break;
    case EBB_MD_BLOCK_PROSE: render_prose(w, s, n, layout_limit(block->end)); break;
    }
}
