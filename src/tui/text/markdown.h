/* tui/text/markdown.h - colours for Markdown as it streams: the source stays as it
 * is, marks included; a byte's face depends only on what stands before it and
 * on at most two bytes after, so nothing shown ever changes.
 *
 *   # heading     **bold**  __bold__     *italic*     `code`     ``` fences     > - 1. marks
 *
 * Bold, italic and code end with their line at the latest. */
#ifndef EBB_TUI_MARKDOWN_H
#define EBB_TUI_MARKDOWN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "term/theme.h"

typedef struct ebb_md {
    ebb_face base;               /* of plain text */
    bool     in_fence;
    char     fence;              /* its character, ` or ~ */
    uint8_t  n_fence;            /* and how many */
    bool     is_fence_line;      /* the rest of this line belongs to the fence's mark */
    bool     in_line;            /* the line's beginning is behind us */
    bool     in_heading;
    bool     bold, italic;
    uint8_t  n_code;             /* backticks that opened a code span; 0: none */
    char     before;             /* the byte before, 0 at a line's beginning */
} ebb_md;

/* The face of the next piece of s[0..n), n > 0; returns its bytes, 0 if more text
 * is needed to tell (never when is_final).  A piece never spans a line end. */
size_t ebb_md_next(ebb_md *md, const char *s, size_t n, bool is_final, ebb_face *face);

#endif
