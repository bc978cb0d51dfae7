/* tui/text/md_blocks.h - where Markdown that streams can be cut: the pieces of a text that no
 * later text can change.
 *
 * A piece of prose is one or more blocks at the top level, up to a blank line after which no list
 * goes on, to a heading, or to a fence.  A fenced code block at the top level comes line by
 * line. */
#ifndef EBB_TUI_MD_BLOCKS_H
#define EBB_TUI_MD_BLOCKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ebb_md_blocks {
    size_t  start;               /* all before it was given to the caller */
    size_t  scanned, seen;       /* whole lines, and bytes, looked at */
    bool    has_text;            /* the piece under way has a line that is not blank */
    bool    in_list, is_blank;   /* is_blank: the line before was */
    char    fence;               /* of the code under way, 0: none */
    uint8_t n_fence, fence_indent;
    uint8_t html;                /* 1: HTML up to a blank line; more: up to a certain end */
    char    inner;               /* likewise of a fence inside a list or HTML */
    uint8_t n_inner;
} ebb_md_blocks;

typedef enum ebb_md_block_kind {
    EBB_MD_BLOCK_PROSE,          /* for md4c, blank lines around it included */
    EBB_MD_BLOCK_OPEN,           /* a fence's first line: the text after the marks */
    EBB_MD_BLOCK_LINE,           /* of code, without its end and the fence's indent */
    EBB_MD_BLOCK_CLOSE,
} ebb_md_block_kind;

typedef struct ebb_md_block {
    ebb_md_block_kind kind;
    size_t         start, end;   /* bytes of the text */
} ebb_md_block;

/* The next piece of s[0..n), which grows from call to call; is_final: there is no more. */
bool ebb_md_blocks_next(ebb_md_blocks *b, const char *s, size_t n, bool is_final,
                        ebb_md_block *out);

#endif
