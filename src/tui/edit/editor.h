/* tui/edit/editor.h - the text being typed: many lines, readline's emacs keys, a kill
 * ring, undo.  Moves by grapheme clusters.
 *
 * A large paste is kept beside the text, which holds one character of a private
 * range for it: "[pasted 1,204 lines]" on the screen, one step for the caret, deleted
 * and undone as one.  ebb_editor_text gives the text with all pastes in place; in marked text
 * (marked.h) they can be told from what was typed. */
#ifndef EBB_TUI_EDITOR_H
#define EBB_TUI_EDITOR_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "edit/marked.h"
#include "term/keys.h"
#include "term/term.h"

#define EBB_EDITOR_RING   16
#define EBB_EDITOR_PASTES 4094
/* Private code points that stand for pastes, and, the last two, around one in marked text; such
 * characters from outside become U+FFFD. */
#define EBB_EDITOR_FIRST  0x10F000u
#define EBB_EDITOR_PRIVATE (EBB_EDITOR_PASTES + 2)

typedef struct ebb_undo {
    size_t at, n_inserted, caret;
    char  *removed;
    size_t n_removed;
    size_t group;                /* steps of one group are undone together */
    bool   was_given;            /* is_given of the text before it */
} ebb_undo;

typedef struct ebb_undo_steps {
    ebb_undo *steps;
    size_t    n, cap;
} ebb_undo_steps;

typedef enum ebb_edit_last { EBB_EDIT_OTHER, EBB_EDIT_TYPE, EBB_EDIT_KILL, EBB_EDIT_YANK,
                             EBB_EDIT_VERTICAL } ebb_edit_last;

typedef struct ebb_paste {
    char  *text;
    size_t n_bytes, n_lines;
} ebb_paste;

typedef struct ebb_kill {
    ebb_buf   text;              /* marked */
    bool      is_given;          /* of the text that it was cut from */
} ebb_kill;

typedef struct ebb_editor {
    ebb_buf   text;              /* valid UTF-8 */
    size_t    caret;             /* at a cluster's beginning; after an edit, where that has ended:
                                  * it may have joined what is behind it to what is before */
    int       width;             /* columns it was laid out for */
    int       goal;              /* column that vertical moves aim at */
    ebb_edit_last last, now;     /* what the key before did, and this one; other: there is none */

    ebb_paste *pastes;
    size_t    n_pastes, cap_pastes;

    ebb_kill  ring[EBB_EDITOR_RING];             /* ring[0] is the newest */
    size_t    n_ring, i_yank, yank_at, n_yank, yank_edits;
    size_t    n_kills;           /* counts changes of the newest kill */

    ebb_undo_steps undo, redo;
    size_t    group;
    bool      is_grouped;        /* changes belong to the same group until this ends */

    size_t    n_edits;           /* counts changes of the text */
    bool      is_given;          /* some of it may name files, and nobody typed it here: a paste,
                                  * a message to be edited, lines of the history.  The caller says
                                  * so, or no more; undo and the ring bring it back. */
    size_t   *rows;              /* where each row begins, for `width` */
    size_t    n_rows, cap_rows;
    size_t    top;               /* first row shown */
} ebb_editor;

/* A zeroed ebb_editor is an empty one. */
void ebb_editor_fini(ebb_editor *e);

/* Keys that the editor does not know are the caller's: false.  Up in the first row
 * and Down in the last are, too. */
bool ebb_editor_key(ebb_editor *e, ebb_key key);
/* At the caret; one undo step. */
void ebb_editor_insert(ebb_editor *e, const char *s, size_t n);
/* What is large is folded: true. */
bool ebb_editor_paste(ebb_editor *e, const char *s, size_t n);
/* Marked text: what is marked is a paste again; the rest is folded only if it is huge. */
void ebb_editor_insert_marked(ebb_editor *e, const char *s, size_t n);
/* Another text, marked, caret at its end. */
void ebb_editor_set(ebb_editor *e, const char *s, size_t n);
/* Another text, plain, that was made of the one here: pastes that are in it as they were stay
 * folded; so is whatever stands in the first n_front bytes.  false: not all of the pastes are. */
bool ebb_editor_set_edited(ebb_editor *e, const char *s, size_t n, size_t n_front);
void ebb_editor_replace(ebb_editor *e, size_t at, size_t n_remove, const char *s, size_t n);

/* Append the text with its pastes to *out; marked. */
bool ebb_editor_text(const ebb_editor *e, ebb_buf *out);
bool ebb_editor_marked(const ebb_editor *e, ebb_buf *out);
/* Empty it and forget pastes, undo and is_given; the kill ring stays. */
void ebb_editor_clear(ebb_editor *e);
bool ebb_editor_is_empty(const ebb_editor *e);

/* Lay out for `width` columns; how many rows there are (>= 1). */
size_t ebb_editor_layout(ebb_editor *e, int width);
/* Draw `height` rows, those around the caret; the caret's cell is given back.  Columns before
 * `col` are the caller's. */
void ebb_editor_draw(ebb_editor *e, ebb_term *term, int row, int col, int height, int *caret_row,
                     int *caret_col);

#endif
