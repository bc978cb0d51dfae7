/* tui/transcript/transcript.h - what was said, as items, and the window onto it.
 *
 * An item is a message of the chat (its text stays the chat's) or a line of ebb itself.
 * Items know no widths; rows are made for the width of the window when an item
 * comes into view, and for the answer under way only at its end.
 *
 * The window either sticks to the bottom or holds on to the row at its top:
 * text that arrives, and a resize, never move what is being read. */
#ifndef EBB_TUI_TRANSCRIPT_H
#define EBB_TUI_TRANSCRIPT_H
#include <stdbool.h>
#include <stddef.h>

#include "conversation/chat.h"
#include "term/term.h"
#include "text/pattern.h"
#include "text/wrap.h"

/* PAGE: a text that is read from its beginning, however long it is. */
typedef enum ebb_say { EBB_SAY_NOTICE, EBB_SAY_ERROR, EBB_SAY_TEXT, EBB_SAY_PAGE } ebb_say;

typedef struct ebb_item {
    bool     is_message;
    ebb_say  say;                /* else */
    size_t   index;              /* of the message on the chat's path */
    ebb_role role;
    int64_t  created_ms;
    ebb_buf  text;               /* of a line of our own */
    ebb_wrap wrap;
    ebb_wrap turn_stats;         /* beneath an answer that is done */
    bool     is_left_out;        /* the model no longer sees it */
    bool     is_done;            /* the message had ended when it was last looked at */
    size_t   n_scanned;           /* when it was last searched for thoughts; 0: never */
    size_t   body;               /* where the answer begins in the message, after the thought */
    ebb_wrap label, thought;     /* "thought, 212 words", and what it was */
    size_t   n_head;             /* rows of these */
    bool     is_cut;             /* part of its text is in the scrollback: its setting stays as it
                                  * is */
} ebb_item;

typedef struct ebb_row_pos { size_t item, row; } ebb_row_pos;

/* What is in the scrollback of an inline terminal for good: all before item `item`, and of
 * it, if `has_head`, its head and the text before byte `at`, else n_head rows of its head. */
typedef struct ebb_scrollback {
    size_t   item;
    bool     has_head;
    size_t   n_head;
    uint32_t at;
    bool     is_gone;            /* some of it is no longer in the conversation */
} ebb_scrollback;

typedef struct ebb_transcript {
    const ebb_chat *chat;
    ebb_item *items;
    size_t    n_items, cap_items, n_messages;
    uint32_t  n_entered;         /* the session that the items are of */
    bool      ascii;             /* the display filter's: no UTF-8 on the screen */
    bool      plain_glyphs;      /* bars and bullets of ASCII */
    bool      is_raw;            /* Markdown as it was written */
    bool      shows_thoughts;
    size_t    selected;          /* number of the message that Alt-Up has selected; 0: none */
    ebb_pattern find;            /* marked wherever it is seen */
    size_t    hit_item, hit_at, n_hit;           /* the one that is looked at; n_hit 0: none */
    int       width, height;     /* of the window when last drawn */
    bool      is_bottom;         /* sticks to the end */
    bool      has_more;          /* text came below while it did not */
    ebb_row_pos top;             /* first row in the window */
    uint32_t  top_at;            /* the byte it began with when it was scrolled there: resizes keep
                                  * it */
    ebb_scrollback scrollback;
} ebb_transcript;

/* Empty, of `chat`, which must outlive it.  `ascii`: nothing but ASCII is drawn. */
void ebb_transcript_init(ebb_transcript *t, const ebb_chat *chat, bool ascii);
void ebb_transcript_fini(ebb_transcript *t);

/* Take over the chat's messages as they are now.  Items that still hold stay,
 * with the lines of ebb between them; what follows the first difference goes, and
 * in another session everything. */
void ebb_transcript_sync(ebb_transcript *t);
/* Add a line (or lines) of our own at the end. */
void ebb_transcript_say(ebb_transcript *t, ebb_say say, const char *text, size_t n);

/* Markdown as source, or set in type; the window stays at its message. */
void ebb_transcript_set_raw(ebb_transcript *t, bool is_raw);

/* Show what the model thought, or one line that says how much; the window stays at its message. */
void ebb_transcript_show_thoughts(ebb_transcript *t, bool shows);

/* Mark the pattern; empty: nothing more. */
void ebb_transcript_find(ebb_transcript *t, const char *s, size_t n);
/* To the next place that has it: older (-1) or newer (1) than the one looked at, or, if `anew`,
 * than the window's end.  False: there is none; nothing moves. */
bool ebb_transcript_find_next(ebb_transcript *t, int direction, bool anew);
/* Append what the window shows, as it was written: unwrapped, without marks of ours. */
void ebb_transcript_bare(ebb_transcript *t, ebb_buf *out);
/* Select the message before or after, and show its beginning; from the end, the last one. */
void ebb_transcript_message(ebb_transcript *t, int direction);

/* Rows up (negative) or down. */
void ebb_transcript_scroll(ebb_transcript *t, int rows);
void ebb_transcript_home(ebb_transcript *t);
void ebb_transcript_end(ebb_transcript *t);
/* Where the last item is taller than the window: to its first row. */
void ebb_transcript_show_last(ebb_transcript *t);

/* Draw into rows [row, row + height) and columns [0, width). */
void ebb_transcript_draw(ebb_transcript *t, ebb_term *term, int row, int height, int width);

/* -- For an inline terminal: transcript_flow.c ------------------------------------------ */

typedef struct ebb_flow {
    ebb_row_pos from;            /* first row that is not in the scrollback */
    uint32_t  from_at;           /* where in that row to begin */
    ebb_row_pos fixed;           /* first row that may still change */
    uint32_t  fixed_at;          /* the byte it begins with, in an item's text */
    size_t    n_fixed, n_tail;   /* rows between them, and after */
} ebb_flow;

/* What may move to the scrollback now, in rows of `width` columns: some hundred rows at a time; or,
 * where nothing will be added any more (is_end), everything. */
ebb_flow ebb_transcript_flow(ebb_transcript *t, int width, bool is_end);
/* Draw the fixed rows from `row` on, then the last n_tail of the others. */
void ebb_transcript_flow_draw(ebb_transcript *t, ebb_term *term, const ebb_flow *flow, int row,
                              size_t n_tail);
/* The fixed rows are in the scrollback. */
void ebb_transcript_flow_commit(ebb_transcript *t, const ebb_flow *flow);
/* Leave out what is more than `rows` rows before the end.  Returns how many items are passed
 * over. */
size_t ebb_transcript_flow_skip(ebb_transcript *t, int width, size_t rows);

#endif
