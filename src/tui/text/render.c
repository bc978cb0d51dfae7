/* md4c's events set in type (render.h). */
#include "text/render.h"

#include <md4c.h>
#include <stdio.h>
#include <string.h>

#include "text/html_entity.h"
#include "text/render_table.h"

enum { LEVELS_MAX = 24, LINKS_MAX = 4, RULE_COLUMNS = 24 };

typedef enum level_kind { QUOTE, LIST, ITEM } level_kind;

/* A container that is open. */
typedef struct level {
    level_kind kind;
    bool       is_tight, is_ordered;
    char       delimiter;
    unsigned   number;           /* of the list's next item */
    bool       is_marked;        /* the item's mark is on the screen */
    char       mark[24];
    int        columns;          /* of the mark and its blank */
} level;

typedef struct renderer {
    ebb_wrap *w;
    level     levels[LEVELS_MAX];
    unsigned  n_levels;          /* may be more than are kept */
    bool      in_line, gap;      /* gap: a blank line is due before the next block */
    int       bold, italic, code, link, struck, heading, html;
    ebb_buf   source;            /* of the code block under way */
    bool      in_code;
    ebb_table table;
    ebb_buf   hrefs[LINKS_MAX];
    size_t    link_at[LINKS_MAX], n_address[LINKS_MAX];      /* a title is behind the address */
    unsigned  n_links;
    size_t    limit;          /* of `visible`, and of a table's cells and text: beyond it the source is shown instead */
} renderer;

static const char blanks[] = "                        ";      /* as many as a mark can take */

/* -- Lines ------------------------------------------------------------------------------ */

static const char *bar(const renderer *r)
{
    return r->w->plain_glyphs ? "> " : "\u258E ";
}

static bool is_tight(const renderer *r)
{
    for (unsigned i = r->n_levels < LEVELS_MAX ? r->n_levels : LEVELS_MAX; i > 0; i--)
        if (r->levels[i - 1].kind != ITEM)
            return r->levels[i - 1].kind == LIST && r->levels[i - 1].is_tight;
    return false;
}

/* Bars and marks in front of a line. */
static void add_lead(renderer *r)
{
    for (unsigned i = 0; i < r->n_levels && i < LEVELS_MAX; i++) {
        level *l = &r->levels[i];
        if (l->kind == QUOTE)
            ebb_wrap_add(r->w, bar(r), strlen(bar(r)), EBB_FACE_MARKUP);
        else if (l->kind == ITEM && !l->is_marked)
            ebb_wrap_add(r->w, l->mark, strlen(l->mark), EBB_FACE_MARKUP);
        else
            ebb_wrap_add(r->w, blanks, (size_t)l->columns, EBB_FACE_MARKUP);
        l->is_marked = true;
    }
}

/* A blank line if one is due: with the bars of quotes that go on. */
static void add_block_gap(renderer *r)
{
    unsigned last = r->n_levels < LEVELS_MAX ? r->n_levels : LEVELS_MAX;

    if (r->gap && !is_tight(r)) {
        while (last > 0 && r->levels[last - 1].kind != QUOTE)
            last--;
        ebb_wrap_set_hanging_indent(r->w, 0);
        for (unsigned i = 0; i < last; i++)
            if (r->levels[i].kind == QUOTE)
                ebb_wrap_add(r->w, bar(r), strlen(bar(r)), EBB_FACE_MARKUP);
            else
                ebb_wrap_add(r->w, blanks, (size_t)r->levels[i].columns, EBB_FACE_MARKUP);
        ebb_wrap_add(r->w, "\n", 1, r->w->md.base);
    }
    r->gap = false;
}

static int lead_columns(const renderer *r)
{
    int columns = 0;

    for (unsigned i = 0; i < r->n_levels && i < LEVELS_MAX; i++)
        columns += r->levels[i].kind == QUOTE ? 2 : r->levels[i].columns;
    return columns;
}

static void end_rendered_line(renderer *r)
{
    if (r->in_line)
        ebb_wrap_add(r->w, "\n", 1, r->w->md.base);
    r->in_line = false;
}

/* `hang`: columns that further rows are set in beyond bars and marks. */
static void begin_rendered_line(void *arg, int hang)
{
    renderer *r = arg;

    end_rendered_line(r);
    ebb_wrap_set_hanging_indent(r->w, lead_columns(r) + hang);
    add_lead(r);
    r->in_line = true;
}

static void begin_block(renderer *r)
{
    end_rendered_line(r);
    add_block_gap(r);
    begin_rendered_line(r, 0);
}

static void add_rendered(renderer *r, const char *s, size_t n, ebb_face face)
{
    if (r->table.is_open) {
        ebb_table_add(&r->table, s, n, face, r->w->ascii);
        return;
    }
    if (!r->in_line)
        begin_block(r);
    for (size_t len; n > 0; s += len, n -= len) {
        const char *nl = memchr(s, '\n', n);
        len = nl ? (size_t)(nl - s) : n;
        ebb_wrap_add(r->w, s, len, face);
        if (nl) {
            begin_rendered_line(r, 0);
            len++;
        }
    }
}

/* -- Code -------------------------------------------------------------------------------- */

void ebb_render_gutter(ebb_wrap *w)
{
    ebb_wrap_add(w, blanks, EBB_GUTTER_COLUMNS, EBB_FACE_MARKUP);
    w->visible_line = w->visible.len;            /* tabs count from here */
}

/* "python . /copy 2": the language, if it is said, and what copies the block. */
static void add_code_header(ebb_wrap *w, const char *info, size_t n)
{
    size_t word = 0;
    char command[32];

    while (word < n && !strchr(" \t{,", info[word]))
        word++;
    ebb_wrap_add(w, blanks, EBB_GUTTER_COLUMNS, EBB_FACE_MARKUP);
    if (word > 0 && word < 24) {
        ebb_wrap_add(w, info, word, EBB_FACE_MARKUP);
        ebb_wrap_add(w, w->plain_glyphs ? " - " : " \u00B7 ", w->plain_glyphs ? 3 : 4, EBB_FACE_MARKUP);
    }
    snprintf(command, sizeof command, "/copy %u", w->n_code);
    ebb_wrap_add(w, command, strlen(command), EBB_FACE_MARKUP);
}

static void add_highlighted(void *arg, const char *s, size_t n, ebb_face face)
{
    ebb_wrap_add(arg, s, n, face);
}

static void add_code(renderer *r, const char *s, size_t n)
{
    for (size_t at = 0, len; at < n; at += len + 1) {
        const char *nl = memchr(s + at, '\n', n - at);
        len = nl ? (size_t)(nl - s) - at : n - at;
        if (at == 0 && !r->in_line)
            begin_block(r);
        else
            begin_rendered_line(r, EBB_GUTTER_COLUMNS);
        ebb_render_gutter(r->w);
        ebb_highlight_line(&r->w->light, s + at, len, add_highlighted, r->w);
    }
}

static void open_code_block(ebb_wrap *w, const char *info, size_t n, bool is_counted)
{
    w->n_code += is_counted;
    ebb_highlight_begin(&w->light, info, n);
}

/* -- Links ---------------------------------------------------------------------------------- */

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

static ebb_buf *written(renderer *r)
{
    return r->table.is_open ? &r->table.text : &r->w->visible;
}

static void open_link(renderer *r, const MD_ATTRIBUTE *href, const MD_ATTRIBUTE *title)
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
        begin_block(r);
    r->link_at[r->n_links - 1] = written(r)->len;
}

/* What a terminal may follow: text and address. */
static void add_address(renderer *r, size_t from, const ebb_buf *href)
{
    size_t n = r->n_links < LINKS_MAX ? r->n_address[r->n_links] : 0;

    if (n > 0 && r->table.is_open)
        ebb_table_add_link(&r->table, from, href->data, n);
    else if (n > 0)
        ebb_wrap_add_link(r->w, from, r->w->visible.len, href->data, n);
}

/* The address, unless it is the text itself. */
static void close_link(renderer *r)
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
    add_rendered(r, n > 0 ? " (" : "(", n > 0 ? 2 : 1, EBB_FACE_DIM);
    add_rendered(r, href->data, href->len, EBB_FACE_DIM);
    add_address(r, at, href);
    add_rendered(r, ")", 1, EBB_FACE_DIM);
}

/* -- md4c's events ------------------------------------------------------------------------------ */

/* What a source can become: marks, bars and columns repeat themselves, and so can headers of records, cells that
 * a row leaves out, and the addresses of links by name.  More than this is no page, but an attempt on the memory. */
enum { LAID_OUT_FREE = 64 << 10, LAID_OUT_PER_BYTE = 32, LAID_OUT_MOST = 64 << 20 };

static size_t layout_limit(size_t n)
{
    size_t free = LAID_OUT_FREE + LAID_OUT_PER_BYTE * n;

    return free < LAID_OUT_MOST + 2 * n ? free : LAID_OUT_MOST + 2 * n;
}

/* Every event ends here: another value than 0 stops md4c. */
static int check_limit(const renderer *r)
{
    return r->w->visible.len > r->limit || r->table.text.len > r->limit || r->table.n_cells > r->limit / 4;
}

static level *push_level(renderer *r, level_kind kind)
{
    static level spare;
    level *l = r->n_levels < LEVELS_MAX ? &r->levels[r->n_levels] : &spare;

    r->n_levels++;
    *l = (level){ .kind = kind };
    return l;
}

static void begin_item(renderer *r, const MD_BLOCK_LI_DETAIL *d)
{
    level *list = r->n_levels > 0 && r->n_levels <= LEVELS_MAX ? &r->levels[r->n_levels - 1] : NULL;
    bool plain = r->w->plain_glyphs;
    level *l;

    end_rendered_line(r);
    l = push_level(r, ITEM);
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

static void add_thematic_break(renderer *r)
{
    begin_block(r);
    for (int i = 0; i < RULE_COLUMNS; i++)
        ebb_wrap_add(r->w, r->w->plain_glyphs ? "-" : "\u2500", r->w->plain_glyphs ? 1 : 3, EBB_FACE_MARKUP);
}

static int on_md_block_begin(MD_BLOCKTYPE type, void *detail, void *arg)
{
    renderer *r = arg;

    switch (type) {
    case MD_BLOCK_QUOTE: end_rendered_line(r); push_level(r, QUOTE); break;
    case MD_BLOCK_UL: end_rendered_line(r); push_level(r, LIST)->is_tight =
        ((MD_BLOCK_UL_DETAIL *)detail)->is_tight != 0; break;
    case MD_BLOCK_OL: {
        const MD_BLOCK_OL_DETAIL *d = detail;
        level *l;
        end_rendered_line(r);
        l = push_level(r, LIST);
        l->is_tight = d->is_tight != 0;
        l->is_ordered = true;
        l->number = d->start;
        l->delimiter = d->mark_delimiter;
        break;
    }
    case MD_BLOCK_LI: begin_item(r, detail); break;
    case MD_BLOCK_HR: add_thematic_break(r); break;
    case MD_BLOCK_H: begin_block(r); r->heading++; break;
    case MD_BLOCK_CODE: {
        const MD_BLOCK_CODE_DETAIL *d = detail;
        open_code_block(r->w, d->info.text, d->info.size, d->fence_char != 0);
        if (d->fence_char) {
            begin_block(r);
            add_code_header(r->w, d->info.text, d->info.size);
        }
        r->in_code = true;
        ebb_buf_clear(&r->source);
        break;
    }
    case MD_BLOCK_HTML: begin_block(r); r->html++; break;
    case MD_BLOCK_P: begin_block(r); break;
    case MD_BLOCK_TABLE: r->table.n_columns = ((MD_BLOCK_TABLE_DETAIL *)detail)->col_count; break;
    case MD_BLOCK_TH: case MD_BLOCK_TD:
        ebb_table_begin_cell(&r->table, (uint8_t)((MD_BLOCK_TD_DETAIL *)detail)->align);
        break;
    case MD_BLOCK_DOC: case MD_BLOCK_THEAD: case MD_BLOCK_TBODY: case MD_BLOCK_TR: break;
    }
    return check_limit(r);
}

static void end_item(renderer *r)
{
    if (r->n_levels <= LEVELS_MAX && !r->levels[r->n_levels - 1].is_marked)
        begin_block(r);                          /* an empty one has its mark all the same */
    end_rendered_line(r);
    r->n_levels--;
}

static void end_table(renderer *r)
{
    int page = r->w->page > 0 ? r->w->page - lead_columns(r) : 0;

    end_rendered_line(r);
    add_block_gap(r);
    ebb_table_draw(&r->table, r->w, page, r->limit, begin_rendered_line, r);
    r->w->has_table = true;
    r->w->table_page = r->w->page;
    ebb_table_fini(&r->table);
}

static int on_md_block_end(MD_BLOCKTYPE type, void *detail, void *arg)
{
    renderer *r = arg;

    (void)detail;
    switch (type) {
    case MD_BLOCK_LI: end_item(r); return check_limit(r);
    case MD_BLOCK_TH: case MD_BLOCK_TD: ebb_table_end_cell(&r->table); return check_limit(r);
    case MD_BLOCK_DOC: case MD_BLOCK_THEAD: case MD_BLOCK_TBODY: case MD_BLOCK_TR: return check_limit(r);
    case MD_BLOCK_QUOTE: case MD_BLOCK_UL: case MD_BLOCK_OL: end_rendered_line(r); r->n_levels--; break;
    case MD_BLOCK_H: r->heading--; break;
    case MD_BLOCK_HTML: r->html--; break;
    case MD_BLOCK_CODE:
        r->in_code = false;
        add_code(r, ebb_buf_text(&r->source), r->source.len);
        break;
    case MD_BLOCK_TABLE: end_table(r); break;
    case MD_BLOCK_HR: case MD_BLOCK_P: break;
    }
    end_rendered_line(r);
    r->gap = true;
    return check_limit(r);
}

static int toggle_span(renderer *r, MD_SPANTYPE type, const void *detail, int by)
{
    switch (type) {
    case MD_SPAN_EM: r->italic += by; break;
    case MD_SPAN_STRONG: case MD_SPAN_U: r->bold += by; break;
    case MD_SPAN_CODE: r->code += by; break;
    case MD_SPAN_DEL: r->struck += by; break;
    case MD_SPAN_A:
        r->link += by;
        if (by > 0)
            open_link(r, &((const MD_SPAN_A_DETAIL *)detail)->href, &((const MD_SPAN_A_DETAIL *)detail)->title);
        else
            close_link(r);
        break;
    case MD_SPAN_IMG:
        if (by > 0) {
            add_rendered(r, "[image: ", 8, EBB_FACE_DIM);
            open_link(r, &((const MD_SPAN_IMG_DETAIL *)detail)->src, &((const MD_SPAN_IMG_DETAIL *)detail)->title);
        } else {
            close_link(r);
            add_rendered(r, "]", 1, EBB_FACE_DIM);
        }
        break;
    case MD_SPAN_LATEXMATH: case MD_SPAN_LATEXMATH_DISPLAY: case MD_SPAN_WIKILINK: break;
    }
    return check_limit(r);
}

static int on_md_span_begin(MD_SPANTYPE type, void *detail, void *arg)
{
    return toggle_span(arg, type, detail, 1);
}

static int on_md_span_end(MD_SPANTYPE type, void *detail, void *arg)
{
    return toggle_span(arg, type, detail, -1);
}

static ebb_face rendered_face(const renderer *r)
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
    renderer *r = arg;
    char text[8];
    size_t len;

    if (r->in_code) {
        ebb_buf_add(&r->source, s, n);
        return check_limit(r);
    }
    switch (type) {
    case MD_TEXT_NULLCHAR: add_rendered(r, "\uFFFD", 3, rendered_face(r)); break;
    case MD_TEXT_BR: case MD_TEXT_SOFTBR:
        if (r->table.is_open)
            add_rendered(r, " ", 1, rendered_face(r));
        else
            begin_rendered_line(r, 0);
        break;
    case MD_TEXT_ENTITY:
        len = ebb_html_entity_decode(s, n, text);
        add_rendered(r, len > 0 ? text : s, len > 0 ? len : n, rendered_face(r));
        break;
    case MD_TEXT_HTML:
        if (r->html && n == 1 && *s == '\n')
            end_rendered_line(r);                /* the last one begins no line */
        else
            add_rendered(r, s, n, EBB_FACE_MARKUP);
        break;
    case MD_TEXT_NORMAL: case MD_TEXT_CODE: case MD_TEXT_LATEXMATH: add_rendered(r, s, n, rendered_face(r)); break;
    }
    return check_limit(r);
}

static const MD_PARSER parser = {
    .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS,
    .enter_block = on_md_block_begin, .leave_block = on_md_block_end, .enter_span = on_md_span_begin,
    .leave_span = on_md_span_end, .text = on_md_text,
};

/* -- Blocks --------------------------------------------------------------------------------------- */

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

static void fini_renderer(renderer *r)
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
}

static void add_prose(ebb_wrap *w, const char *s, size_t n)
{
    const ebb_wrap before = *w;
    renderer r = { .w = w, .limit = w->visible.len + layout_limit(n) };
    bool is_too_much;

    if (md_parse(s, (MD_SIZE)n, &parser, &r) != 0 && !check_limit(&r))
        w->failed = true;
    is_too_much = check_limit(&r);
    end_rendered_line(&r);
    if (is_too_much)
        drop_rendered(w, &before);
    if (w->visible.len == before.visible.len) {  /* also definitions of links: nothing is lost */
        renderer source = { .w = w, .html = 1 };
        add_rendered(&source, s, n, EBB_FACE_MARKUP);
        end_rendered_line(&source);
    }
    fini_renderer(&r);
}

/* Blank lines around prose stay, as one. */
static void render_prose(ebb_wrap *w, const char *s, size_t n)
{
    size_t at = 0, end = n;

    for (const char *nl; (nl = memchr(s + at, '\n', n - at)) != NULL && is_blank_line(s + at, (size_t)(nl - s) - at);)
        at = (size_t)(nl - s) + 1;
    if (at > 0)
        add_blank(w);
    if (is_blank_line(s + at, n - at))
        return;
    while (s[end - 1] == '\n' || s[end - 1] == '\r' || s[end - 1] == ' ' || s[end - 1] == '\t')
        end--;
    add_prose(w, s + at, end - at);
    for (const char *nl = memchr(s + end, '\n', n - end); nl &&
         memchr(nl + 1, '\n', n - (size_t)(nl + 1 - s)); nl = NULL)
        add_blank(w);
}

void ebb_render_block(ebb_wrap *w, const char *raw, const ebb_md_block *block)
{
    const char *s = raw + block->start;
    size_t n = block->end - block->start;

    switch (block->kind) {
    case EBB_MD_BLOCK_OPEN:
        open_code_block(w, s, n, true);
        ebb_wrap_set_hanging_indent(w, EBB_GUTTER_COLUMNS);
        add_code_header(w, s, n);
        ebb_wrap_add(w, "\n", 1, EBB_FACE_MARKUP);
        break;
    case EBB_MD_BLOCK_CLOSE: break;
    case EBB_MD_BLOCK_LINE:
        ebb_wrap_set_hanging_indent(w, EBB_GUTTER_COLUMNS);
        ebb_render_gutter(w);
        ebb_highlight_line(&w->light, s, n, add_highlighted, w);
        ebb_wrap_add(w, "\n", 1, EBB_FACE_CODE);
        break;
    case EBB_MD_BLOCK_PROSE: render_prose(w, s, n); break;
    }
}
