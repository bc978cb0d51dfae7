/* Links of rendered Markdown: the text, and the address behind it (render_priv.h). */
#include "text/render_priv.h"

#include <string.h>

#include "text/html_entity.h"

static void add_attribute(ebb_buf *out, const MD_ATTRIBUTE *a)
{
    char text[8];

    for (unsigned i = 0; a->text && a->substr_offsets[i] < a->size; i++) {
        const char *s = a->text + a->substr_offsets[i];
        size_t n = a->substr_offsets[i + 1] - a->substr_offsets[i];
        size_t len = a->substr_types[i] == MD_TEXT_ENTITY ? ebb_html_entity_decode(s, n, text) : 0;
        if (len > 0)
            ebb_buf_add(out, text, len);
        else
            ebb_buf_add(out, s, n);
    }
}

static ebb_buf *written(ebb_renderer *r)
{
    return r->table.is_open ? &r->table.text : &r->w->visible;
}

void ebb_render_open_link(ebb_renderer *r, const MD_ATTRIBUTE *href, const MD_ATTRIBUTE *title)
{
    ebb_buf *b;

    if (r->n_links++ >= LINKS_MAX)
        return;
    b = &r->hrefs[r->n_links - 1];
    ebb_buf_clear(b);
    add_attribute(b, href);
    r->n_address[r->n_links - 1] = b->len;
    if (title->size > 0) {
        ebb_buf_adds(b, " \"");
        add_attribute(b, title);
        ebb_buf_addc(b, '"');
    }
    if (!r->in_line && !r->table.is_open)
        ebb_render_begin_block(r);
    r->link_at[r->n_links - 1] = written(r)->len;
}

/* What a terminal may follow: text and address. */
static void add_address(ebb_renderer *r, size_t from, const ebb_buf *href)
{
    size_t n = r->n_links < LINKS_MAX ? r->n_address[r->n_links] : 0;

    if (n > 0 && r->table.is_open)
        ebb_table_add_link(&r->table, from, href->data, n);
    else if (n > 0)
        ebb_wrap_add_link(r->w, from, r->w->visible.len, href->data, n);
}

void ebb_render_close_link(ebb_renderer *r)
{
    const ebb_buf *href, *out = written(r);
    size_t at, n;

    if (r->n_links-- > LINKS_MAX)
        return;
    href = &r->hrefs[r->n_links];
    at = r->link_at[r->n_links];
    n = out->len - at;
    if (href->len == 0 || (href->len == n && memcmp(out->data + at, href->data, n) == 0) ||
        (href->len == n + 7 && memcmp(href->data, "mailto:", 7) == 0 &&
         memcmp(href->data + 7, out->data + at, n) == 0)) {
        add_address(r, at, href);
        return;
    }
    ebb_render_add(r, n > 0 ? " (" : "(", n > 0 ? 2 : 1, EBB_FACE_DIM);
    ebb_render_add(r, href->data, href->len, EBB_FACE_DIM);
    add_address(r, at, href);
    ebb_render_add(r, ")", 1, EBB_FACE_DIM);
}
