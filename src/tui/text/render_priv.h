/* tui/text/render_priv.h - prose on its way from md4c into a wrap: render*.c only.
 *
 *     render.c             which blocks are prose, and what becomes of one that is too much
 *     render_md4c.c        md4c's events
 *     render_link.c        links
 *     render_line.c        lines, with the bars and marks of the containers that they are in
 *     render_code_lines.c  lines of code */
#ifndef EBB_TUI_RENDER_PRIV_H
#define EBB_TUI_RENDER_PRIV_H
#include <md4c.h>

#include "ebb/model.h"
#include "text/render.h"
#include "text/render_table.h"
#include "text/wrap_visible.h"

enum {
    CONTAINERS_MAX = 24,         /* deeper ones are counted, but leave no bars and marks */
    LINKS_MAX = 4,               /* likewise: their text is shown without the address */
    EBB_CONTAINER_MARK = 24,     /* bytes of a mark, its NUL included */
};

typedef enum ebb_container_kind {
    CONTAINER_QUOTE, CONTAINER_LIST, CONTAINER_ITEM
} ebb_container_kind;

/* A block that contains blocks, while it is open. */
typedef struct ebb_container {
    ebb_container_kind kind;
    bool     is_tight, is_ordered;       /* of a list */
    char     delimiter;                  /* behind its numbers */
    unsigned number;                     /* of its next item */
    bool     is_marked;                  /* the item's mark has been drawn */
    char     mark[EBB_CONTAINER_MARK];   /* of an item, with a blank behind it */
    int      columns;                    /* of that */
} ebb_container;

typedef struct ebb_renderer {
    ebb_wrap     *w;
    ebb_container containers[CONTAINERS_MAX + 1];    /* the last one: any that are deeper */
    unsigned      n_containers;  /* open ones, also those that are deeper */
    bool          in_line;
    bool          gap;           /* a blank line is due before the next block */
    int           bold, italic, code, link, struck, heading, html;   /* how many of each are open */
    ebb_buf       source;        /* of the code block under way */
    bool          in_code;
    ebb_table     table;
    ebb_buf       hrefs[LINKS_MAX];      /* of open links: the address, a title behind it */
    size_t        n_address[LINKS_MAX];  /* bytes of the address in it */
    size_t        link_at[LINKS_MAX];    /* where the text begins, in `visible` or the table */
    unsigned      n_links;
    size_t        limit;         /* bytes of `visible` and of a table's text, and half of what both
                                  * take in memory; then md4c is stopped */
} ebb_renderer;

/* -- render.c --------------------------------------------------------------------------------- */

/* Prose s[0..n) without the blank lines before it, and the blanks behind it. */
ebb_text_range ebb_render_inside(const char *s, size_t n);

/* -- render_line.c ---------------------------------------------------------------------------- */

extern const char ebb_render_blanks[EBB_CONTAINER_MARK];     /* as many as a mark can take */

/* The new innermost container, empty; to be closed by n_containers--. */
ebb_container *ebb_render_open_container(ebb_renderer *r, ebb_container_kind kind);
/* The columns of the bars and marks in front of a line. */
int ebb_render_lead_columns(const ebb_renderer *r);
/* A blank line if one is due: with the bars of quotes that go on. */
void ebb_render_add_gap(ebb_renderer *r);
/* Begins a line of the renderer `arg`, with its bars and marks.  `hang`: columns that further rows
 * are set in beyond these. */
void ebb_render_begin_line(void *arg, int hang);
void ebb_render_end_line(ebb_renderer *r);       /* if there is one */
void ebb_render_begin_block(ebb_renderer *r);    /* a gap if one is due, and a line */
/* Appends text to the line, or to a table's cell if one is open. */
void ebb_render_add(ebb_renderer *r, const char *s, size_t n, ebb_face face);

/* -- render_link.c ---------------------------------------------------------------------------- */

void ebb_render_open_link(ebb_renderer *r, const MD_ATTRIBUTE *href, const MD_ATTRIBUTE *title);
/* Appends the address, unless it is the text itself. */
void ebb_render_close_link(ebb_renderer *r);

/* -- render_code_lines.c ---------------------------------------------------------------------- */

/* A block of code begins; it `is_counted` if /copy can take it. */
void ebb_render_open_code(ebb_wrap *w, const char *info, size_t n, bool is_counted);
/* "python . /copy 2": the language, if `info` says it, and what copies the block. */
void ebb_render_code_header(ebb_wrap *w, const char *info, size_t n);
/* Its next line, behind the gutter, in the colours of the language. */
void ebb_render_code_line(ebb_wrap *w, const char *s, size_t n);

/* -- render_md4c.c ---------------------------------------------------------------------------- */

/* md_parse of a block, s[0..n) as ebb_render_inside returns it, or nothing where it would take too
 * long: 0 then.  *steps: those that were taken in the text's blocks before (md_cost.h), 0 at first;
 * the same blocks of a text are parsed whoever asks.  -1: no memory.
 *
 * The parser sees a copy that ends with NUL: md4c (0.4.8) looks at the byte behind the text, takes
 * a bracket there for the end of a link, and what follows for text. */
int ebb_md4c_parse(const char *s, size_t n, const MD_PARSER *parser, void *arg, size_t *steps);
/* Sets s[0..n) in type, without ending the last line.  Another value than 0: md4c had no memory, or
 * was stopped at the limit. */
int ebb_render_parse(ebb_renderer *r, const char *s, size_t n);
/* Whether more than the limit was made: 1, else 0. */
int ebb_render_check_limit(const ebb_renderer *r);

#endif
