/* Lines of rendered Markdown, with what is in front of them: the bars of quotes, the marks of items (render_priv.h). */
#include "text/render_priv.h"

#include <string.h>

const char ebb_render_blanks[EBB_CONTAINER_MARK] = "                       ";

static const char *bar(const ebb_renderer *r)
{
    return r->w->plain_glyphs ? "> " : "\u258E ";
}

ebb_container *ebb_render_open_container(ebb_renderer *r, ebb_container_kind kind)
{
    ebb_container *c = &r->containers[r->n_containers < CONTAINERS_MAX ? r->n_containers : CONTAINERS_MAX];

    r->n_containers++;
    *c = (ebb_container){ .kind = kind };
    return c;
}

static bool is_tight(const ebb_renderer *r)
{
    for (unsigned i = r->n_containers < CONTAINERS_MAX ? r->n_containers : CONTAINERS_MAX; i > 0; i--)
        if (r->containers[i - 1].kind != CONTAINER_ITEM)
            return r->containers[i - 1].kind == CONTAINER_LIST && r->containers[i - 1].is_tight;
    return false;
}

/* Bars and marks in front of a line. */
static void add_lead(ebb_renderer *r)
{
    for (unsigned i = 0; i < r->n_containers && i < CONTAINERS_MAX; i++) {
        ebb_container *l = &r->containers[i];
        if (l->kind == CONTAINER_QUOTE)
            ebb_wrap_add(r->w, bar(r), strlen(bar(r)), EBB_FACE_MARKUP);
        else if (l->kind == CONTAINER_ITEM && !l->is_marked)
            ebb_wrap_add(r->w, l->mark, strlen(l->mark), EBB_FACE_MARKUP);
        else
            ebb_wrap_add(r->w, ebb_render_blanks, (size_t)l->columns, EBB_FACE_MARKUP);
        l->is_marked = true;
    }
}

void ebb_render_add_gap(ebb_renderer *r)
{
    unsigned last = r->n_containers < CONTAINERS_MAX ? r->n_containers : CONTAINERS_MAX;

    if (r->gap && !is_tight(r)) {
        while (last > 0 && r->containers[last - 1].kind != CONTAINER_QUOTE)
            last--;
        ebb_wrap_set_hanging_indent(r->w, 0);
        for (unsigned i = 0; i < last; i++)
            if (r->containers[i].kind == CONTAINER_QUOTE)
                ebb_wrap_add(r->w, bar(r), strlen(bar(r)), EBB_FACE_MARKUP);
            else
                ebb_wrap_add(r->w, ebb_render_blanks, (size_t)r->containers[i].columns, EBB_FACE_MARKUP);
        ebb_wrap_add(r->w, "\n", 1, r->w->md.base);
    }
    r->gap = false;
}

int ebb_render_lead_columns(const ebb_renderer *r)
{
    int columns = 0;

    for (unsigned i = 0; i < r->n_containers && i < CONTAINERS_MAX; i++)
        columns += r->containers[i].kind == CONTAINER_QUOTE ? 2 : r->containers[i].columns;
    return columns;
}

void ebb_render_end_line(ebb_renderer *r)
{
    if (r->in_line)
        ebb_wrap_add(r->w, "\n", 1, r->w->md.base);
    r->in_line = false;
}

void ebb_render_begin_line(void *arg, int hang)
{
    ebb_renderer *r = arg;

    ebb_render_end_line(r);
    ebb_wrap_set_hanging_indent(r->w, ebb_render_lead_columns(r) + hang);
    add_lead(r);
    r->in_line = true;
}

void ebb_render_begin_block(ebb_renderer *r)
{
    ebb_render_end_line(r);
    ebb_render_add_gap(r);
    ebb_render_begin_line(r, 0);
}

void ebb_render_add(ebb_renderer *r, const char *s, size_t n, ebb_face face)
{
    if (r->table.is_open) {
        ebb_table_add(&r->table, s, n, face, r->w->ascii);
        return;
    }
    if (!r->in_line)
        ebb_render_begin_block(r);
    for (size_t len; n > 0; s += len, n -= len) {
        const char *nl = memchr(s, '\n', n);
        len = nl ? (size_t)(nl - s) : n;
        ebb_wrap_add(r->w, s, len, face);
        if (nl) {
            ebb_render_begin_line(r, 0);
            len++;
        }
    }
}
