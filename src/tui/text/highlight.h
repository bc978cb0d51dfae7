/* tui/text/highlight.h - colours for source code, a line at a time.
 *
 * One table (highlight_table.c) says for each language its words, comments and quotes; one
 * scanner reads them all.  What one line leaves open (a comment, a string of
 * several lines) is all that the next needs to know, so code is coloured as it streams. */
#ifndef EBB_TUI_HIGHLIGHT_H
#define EBB_TUI_HIGHLIGHT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "term/theme.h"

typedef enum ebb_language_kind {
    EBB_LANGUAGE_CODE,
    EBB_LANGUAGE_DATA,           /* words before a colon are names */
    EBB_LANGUAGE_MARKUP,         /* <tags attribute="..."> */
    EBB_LANGUAGE_DIFF,
} ebb_language_kind;

typedef struct ebb_language {
    const char *names;           /* " c h " as they stand after a fence, lower case */
    const char *words;           /* " if else " keywords */
    const char *line_comment;    /* "" if there is none; likewise below */
    const char *line_comment2;
    const char *open_comment, *close_comment;
    const char *quotes;          /* characters */
    const char *long_quotes;     /* of these, strings that may span lines */
    ebb_language_kind kind;
    bool        has_triple;      /* """ and ''' */
    bool        has_lifetimes;   /* 'a is not a character */
    bool        ignores_case;
} ebb_language;

extern const ebb_language ebb_languages[];       /* ends with NULL names */

typedef struct ebb_highlight {
    const ebb_language *lang;    /* NULL: not known, one colour */
    char    quote;               /* of the string a line before left open; 0: none */
    uint8_t n_quote;
    bool    in_comment, in_tag;
} ebb_highlight;

typedef void ebb_piece_fn(void *arg, const char *s, size_t n, ebb_face face);

/* A block begins; info: the text after its opening fence. */
void ebb_highlight_begin(ebb_highlight *h, const char *info, size_t n);
/* The pieces of s[0..n), a whole line without its end, in order and without gaps. */
void ebb_highlight_line(ebb_highlight *h, const char *s, size_t n, ebb_piece_fn *fn, void *arg);

#endif
