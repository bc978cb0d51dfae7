/* md4c's events set in type (render_priv.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/html_entity.h"
#include "text/md_cost.h"
#include "text/render_priv.h"

enum { RULE_COLUMNS = 24 };

/* What is parsed: bytes of a block, as md4c may be slow in a way that is not known yet; and steps (md_cost.h) in all
 * blocks of a text, half a second.  The screen waits meanwhile. */
enum { PARSED_MOST = 256 << 10, STEPS_MOST = 64 << 20 };

/* Every event ends here: another value than 0 stops md4c.  Rows are made later, for each line one
 * or more. */
int ebb_render_check_limit(const ebb_renderer *r)
{
    size_t rows = r->w->n_hangs * sizeof(ebb_row);

    return r->w->visible.len > r->limit || r->table.text.len > r->limit ||
           (ebb_wrap_bytes(r->w) + rows + ebb_table_bytes(&r->table)) / 2 > r->limit;
}

/* -- Blocks ------------------------------------------------------------------------------------- */

static void begin_item(ebb_renderer *r, const MD_BLOCK_LI_DETAIL *d)
{
    unsigned n = r->n_containers;
    ebb_container *list = n > 0 && n <= CONTAINERS_MAX ? &r->containers[n - 1] : NULL;
    bool plain = r->w->plain_glyphs;
    ebb_container *l;

    ebb_render_end_line(r);
    l = ebb_render_open_container(r, CONTAINER_ITEM);
    if (d->is_task) {
        bool is_done = d->task_mark != ' ';
        snprintf(l->mark, sizeof l->mark, "%s ", plain ? (is_done ? "[x]" : "[ ]") : is_done ? "\u2611" : "\u2610");
        l->columns = plain ? 4 : 2;
    } else if (list && list->is_ordered) {
        l->columns = snprintf(l->mark, sizeof l->mark, "%u%c ", list->number++, list->delimiter);
    } else {
        snprintf(l->mark, sizeof l->mark, "%s ", plain ? "-" : "\u2022");
        l->columns = 2;
    }
}

static void add_thematic_break(ebb_renderer *r)
{
    ebb_render_begin_block(r);
    for (int i = 0; i < RULE_COLUMNS; i++)
        ebb_wrap_add(r->w, r->w->plain_glyphs ? "-" : "\u2500", r->w->plain_glyphs ? 1 : 3, EBB_FACE_MARKUP);
}

static int on_md_block_begin(MD_BLOCKTYPE type, void *detail, void *arg)
{
    ebb_renderer *r = arg;

    switch (type) {
    case MD_BLOCK_QUOTE: ebb_render_end_line(r); ebb_render_open_container(r, CONTAINER_QUOTE); break;
    case MD_BLOCK_UL: ebb_render_end_line(r); ebb_render_open_container(r, CONTAINER_LIST)->is_tight =
        ((MD_BLOCK_UL_DETAIL *)detail)->is_tight != 0; break;
    case MD_BLOCK_OL: {
        const MD_BLOCK_OL_DETAIL *d = detail;
        ebb_container *l;
        ebb_render_end_line(r);
        l = ebb_render_open_container(r, CONTAINER_LIST);
        l->is_tight = d->is_tight != 0;
        l->is_ordered = true;
        l->number = d->start;
        l->delimiter = d->mark_delimiter;
        break;
    }
    case MD_BLOCK_LI: begin_item(r, detail); break;
    case MD_BLOCK_HR: add_thematic_break(r); break;
    case MD_BLOCK_H: ebb_render_begin_block(r); r->heading++; break;
    case MD_BLOCK_CODE: {
        const MD_BLOCK_CODE_DETAIL *d = detail;
        ebb_render_open_code(r->w, d->info.text, d->info.size, d->fence_char != 0);
        if (d->fence_char) {
            ebb_render_begin_block(r);
            ebb_render_code_header(r->w, d->info.text, d->info.size);
        }
        r->in_code = true;
        ebb_buf_clear(&r->source);
        break;
    }
    case MD_BLOCK_HTML: ebb_render_begin_block(r); r->html++; break;
    case MD_BLOCK_P: ebb_render_begin_block(r); break;
    case MD_BLOCK_TABLE: r->table.n_columns = ((MD_BLOCK_TABLE_DETAIL *)detail)->col_count; break;
    case MD_BLOCK_TH: case MD_BLOCK_TD:
        ebb_table_begin_cell(&r->table, (uint8_t)((MD_BLOCK_TD_DETAIL *)detail)->align);
        break;
    case MD_BLOCK_DOC: case MD_BLOCK_THEAD: case MD_BLOCK_TBODY: case MD_BLOCK_TR: break;
    }
    return ebb_render_check_limit(r);
}

static void add_code(ebb_renderer *r, const char *s, size_t n)
{
    for (size_t at = 0, len; at < n; at += len + 1) {
        const char *nl = memchr(s + at, '\n', n - at);
        len = nl ? (size_t)(nl - s) - at : n - at;
        if (at == 0 && !r->in_line)
            ebb_render_begin_block(r);
        else
            ebb_render_begin_line(r, EBB_GUTTER_COLUMNS);
        ebb_render_code_line(r->w, s + at, len);
    }
}

static void end_item(ebb_renderer *r)
{
    if (r->n_containers <= CONTAINERS_MAX && !r->containers[r->n_containers - 1].is_marked)
        ebb_render_begin_block(r);                          /* an empty one has its mark all the same */
    ebb_render_end_line(r);
    r->n_containers--;
}

static bool begin_table_line(void *arg, int hang)
{
    if (ebb_render_check_limit(arg))
        return false;
    ebb_render_begin_line(arg, hang);
    return true;
}

static void end_table(ebb_renderer *r)
{
    int page = r->w->page > 0 ? r->w->page - ebb_render_lead_columns(r) : 0;

    ebb_render_end_line(r);
    ebb_render_add_gap(r);
    ebb_table_draw(&r->table, r->w, page, begin_table_line, r);
    r->w->has_table = true;
    r->w->table_page = r->w->page;
    ebb_table_fini(&r->table);
}

static int on_md_block_end(MD_BLOCKTYPE type, void *detail, void *arg)
{
    ebb_renderer *r = arg;

    (void)detail;
    switch (type) {
    case MD_BLOCK_LI: end_item(r); return ebb_render_check_limit(r);
    case MD_BLOCK_TH: case MD_BLOCK_TD: ebb_table_end_cell(&r->table); return ebb_render_check_limit(r);
    case MD_BLOCK_DOC: case MD_BLOCK_THEAD: case MD_BLOCK_TBODY: case MD_BLOCK_TR: return ebb_render_check_limit(r);
    case MD_BLOCK_QUOTE: case MD_BLOCK_UL: case MD_BLOCK_OL: ebb_render_end_line(r); r->n_containers--; break;
    case MD_BLOCK_H: r->heading--; break;
    case MD_BLOCK_HTML: r->html--; break;
    case MD_BLOCK_CODE:
        r->in_code = false;
        add_code(r, ebb_buf_text(&r->source), r->source.len);
        break;
    case MD_BLOCK_TABLE: end_table(r); break;
    case MD_BLOCK_HR: case MD_BLOCK_P: break;
    }
    ebb_render_end_line(r);
    r->gap = true;
    return ebb_render_check_limit(r);
}

/* -- Spans and text ----------------------------------------------------------------------------- */

static int toggle_span(ebb_renderer *r, MD_SPANTYPE type, const void *detail, int by)
{
    const MD_SPAN_A_DETAIL *a = detail;          /* either of them, if `type` says so */
    const MD_SPAN_IMG_DETAIL *image = detail;

    switch (type) {
    case MD_SPAN_EM: r->italic += by; break;
    case MD_SPAN_STRONG: case MD_SPAN_U: r->bold += by; break;
    case MD_SPAN_CODE: r->code += by; break;
    case MD_SPAN_DEL: r->struck += by; break;
    case MD_SPAN_A:
        r->link += by;
        if (by > 0)
            ebb_render_open_link(r, &a->href, &a->title);
        else
            ebb_render_close_link(r);
        break;
    case MD_SPAN_IMG:
        if (by > 0) {
            ebb_render_add(r, "[image: ", 8, EBB_FACE_DIM);
            ebb_render_open_link(r, &image->src, &image->title);
        } else {
            ebb_render_close_link(r);
            ebb_render_add(r, "]", 1, EBB_FACE_DIM);
        }
        break;
    case MD_SPAN_LATEXMATH: case MD_SPAN_LATEXMATH_DISPLAY: case MD_SPAN_WIKILINK: break;
    }
    return ebb_render_check_limit(r);
}

static int on_md_span_begin(MD_SPANTYPE type, void *detail, void *arg)
{
    return toggle_span(arg, type, detail, 1);
}

static int on_md_span_end(MD_SPANTYPE type, void *detail, void *arg)
{
    return toggle_span(arg, type, detail, -1);
}

static ebb_face rendered_face(const ebb_renderer *r)
{
    if (r->code)
        return EBB_FACE_CODE;
    if (r->link)
        return EBB_FACE_LINK;
    if (r->html)
        return EBB_FACE_MARKUP;
    if (r->heading)
        return EBB_FACE_HEADING;
    if (r->bold)
        return EBB_FACE_BOLD;
    if (r->italic)
        return EBB_FACE_ITALIC;
    return r->struck ? EBB_FACE_DIM : r->w->md.base;
}

static int on_md_text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE n, void *arg)
{
    ebb_renderer *r = arg;
    char text[8];
    size_t len;

    if (r->in_code) {
        ebb_buf_add(&r->source, s, n);
        return ebb_render_check_limit(r);
    }
    switch (type) {
    case MD_TEXT_NULLCHAR: ebb_render_add(r, "\uFFFD", 3, rendered_face(r)); break;
    case MD_TEXT_BR: case MD_TEXT_SOFTBR:
        if (r->table.is_open)
            ebb_render_add(r, " ", 1, rendered_face(r));
        else
            ebb_render_begin_line(r, 0);
        break;
    case MD_TEXT_ENTITY:
        len = ebb_html_entity_decode(s, n, text);
        ebb_render_add(r, len > 0 ? text : s, len > 0 ? len : n, rendered_face(r));
        break;
    case MD_TEXT_HTML:
        if (r->html && n == 1 && *s == '\n')
            ebb_render_end_line(r);                /* the last one begins no line */
        else
            ebb_render_add(r, s, n, EBB_FACE_MARKUP);
        break;
    case MD_TEXT_NORMAL: case MD_TEXT_CODE: case MD_TEXT_LATEXMATH: ebb_render_add(r, s, n, rendered_face(r)); break;
    }
    return ebb_render_check_limit(r);
}

int ebb_md4c_parse(const char *s, size_t n, const MD_PARSER *parser, void *arg, size_t *steps)
{
    size_t cost = n <= PARSED_MOST ? ebb_md_cost(s, n) : STEPS_MOST;
    char *text;
    int stopped;

    if (cost >= STEPS_MOST - *steps)
        return 0;
    *steps += cost;
    text = malloc(n + 1);
    if (!text)
        return -1;
    memcpy(text, s, n);
    text[n] = '\0';
    stopped = md_parse(text, (MD_SIZE)n, parser, arg);
    free(text);
    return stopped;
}

int ebb_render_parse(ebb_renderer *r, const char *s, size_t n)
{
    static const MD_PARSER parser = {
        .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS,
        .enter_block = on_md_block_begin, .leave_block = on_md_block_end, .enter_span = on_md_span_begin,
        .leave_span = on_md_span_end, .text = on_md_text,
    };

    return ebb_md4c_parse(s, n, &parser, r, &r->w->md_steps);
}
