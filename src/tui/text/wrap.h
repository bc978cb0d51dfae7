/* tui/text/wrap.h - text that grows at its end, filtered, coloured and cut into rows.
 *
 * Raw text goes through two stages, both append-only:
 *   visible   the display filter (ebb_utf8_add_visible), tabs as blanks, CR LF as
 *             LF, and the faces of Markdown, as runs; held back: an incomplete
 *             character or mark
 *   rows      breaks for one width, at spaces and between wide characters; only
 *             the last row is ever broken anew
 * so a long answer costs what was added to it, and a row that has another below it
 * never changes until the width does.
 *
 * With `is_rendered` Markdown is set in type (render.h): blocks that are closed once
 * and for all, the one under way as source until it closes.  What is in front of
 * `stable` never changes. */
#ifndef EBB_TUI_WRAP_H
#define EBB_TUI_WRAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "term/theme.h"
#include "text/highlight.h"
#include "text/markdown.h"
#include "text/md_blocks.h"

typedef struct ebb_row {
    uint32_t start, end;         /* bytes of the visible text; the break itself not counted */
    uint32_t line;               /* where its logical line begins */
    uint16_t indent;             /* columns in front of it */
    uint16_t lead;               /* of these, columns whose marks are drawn again: a quote's bar */
} ebb_row;

/* A logical line that says itself how far its further rows are set in. */
typedef struct ebb_hanging_indent {
    uint32_t start;
    uint16_t columns;
} ebb_hanging_indent;

/* Text with an address behind it. */
typedef struct ebb_text_link {
    uint32_t start, end;         /* bytes of the visible text */
    size_t   address, n_address; /* in `addresses` */
} ebb_text_link;

typedef struct ebb_face_run {
    uint32_t start;              /* from here to the next run */
    uint8_t  face;
} ebb_face_run;

typedef struct ebb_wrap {
    ebb_buf  visible;
    size_t   n_raw;              /* bytes of the raw text that `visible` holds */
    ebb_md   md;
    size_t   n_faced;            /* bytes of `visible` that have their face: what may be shown */
    ebb_face_run *runs;
    size_t   n_runs, cap_runs;
    ebb_row *rows;
    size_t   n_rows, cap_rows;
    int      width;              /* that rows are for; 0: none yet */
    size_t   line_start;         /* of the logical line of the last row */
    size_t   visible_line;       /* of the last logical line of `visible` */
    bool     ascii;
    bool     has_markdown;
    bool     has_columns;        /* a line may be a word, two blanks or more, and its explanation */
    bool     failed;             /* out of memory: the rows made so far are shown */

    /* Rendered Markdown */
    bool     is_rendered;
    bool     plain_glyphs;       /* bars and bullets of ASCII */
    bool     is_final;           /* the text had ended */
    bool     has_table;          /* something was laid out for a width */
    int      page;               /* columns that tables are laid out for; 0: any */
    int      table_page;         /* that they were */
    ebb_md_blocks blocks;
    ebb_highlight light;         /* of the code block under way */
    unsigned n_code;             /* code blocks so far */
    size_t   md_steps;           /* that md4c may have taken for the blocks so far (md_cost.h) */
    ebb_hanging_indent *hangs;
    size_t   n_hangs, cap_hangs;
    ebb_text_link *links;        /* in the order of the text */
    size_t   n_links, cap_links;
    ebb_buf  addresses;
    size_t   stable, stable_runs, stable_hangs, stable_links;
} ebb_wrap;

/* A zeroed ebb_wrap; then `ascii`, `has_markdown`, `has_columns`, `is_rendered`, `plain_glyphs`,
 * `page` and `md.base` (of plain text) may be set before the first text, `page` at any time. */
void ebb_wrap_fini(ebb_wrap *w);
/* Forget the text; what was set stays. */
void ebb_wrap_reset(ebb_wrap *w);

/* `raw` is the whole text so far; what has been seen of it is not looked at
 * again.  `is_final`: nothing is held back any more. */
void ebb_wrap_text(ebb_wrap *w, const char *raw, size_t n, bool is_final);
/* Rows for `width` columns (>= 1).  The last row is empty after a final \n. */
void ebb_wrap_rows(ebb_wrap *w, int width);
/* Bytes of memory that the visible text takes, with its faces, indents and links, but no rows. */
size_t ebb_wrap_bytes(const ebb_wrap *w);
/* The row that holds byte `at` of the visible text. */
size_t ebb_wrap_find(const ebb_wrap *w, uint32_t at);
/* The run that holds byte `at`. */
size_t ebb_wrap_run(const ebb_wrap *w, uint32_t at);

/* The first link that ends behind byte `at`; NULL: none does. */
const ebb_text_link *ebb_wrap_link(const ebb_wrap *w, uint32_t at);

#endif
