/* tui/edit/editor_impl.h - what the files of the editor share: editor.c, editor_text.c,
 * editor_view.c, and vi's keys. */
#ifndef EBB_TUI_EDITOR_IMPL_H
#define EBB_TUI_EDITOR_IMPL_H
#include "edit/editor.h"

/* The paste that the character at s[0..n) stands for; SIZE_MAX: none. */
size_t ebb_editor_paste_at(const ebb_editor *e, const char *s, size_t n);
/* Append s[0..n) of the text with its pastes as what they stand for, between marks.  false: no
 * memory. */
bool ebb_editor_add_marked(const ebb_editor *e, const char *s, size_t n, ebb_buf *out);
/* Caret one row up (-1) or down (1); false at the edge. */
bool ebb_editor_vertical(ebb_editor *e, int direction);
/* The same as a key of its own: the column aimed at is kept from one to the next. */
bool ebb_editor_vertical_key(ebb_editor *e, int direction);

/* Clusters and lines around byte `at`. */
size_t ebb_editor_next(const ebb_editor *e, size_t at);
size_t ebb_editor_prev(const ebb_editor *e, size_t at);
/* Where the caret is drawn: behind the cluster that it is in, if it is in one. */
size_t ebb_editor_shown_caret(const ebb_editor *e);
size_t ebb_editor_line_start(const ebb_editor *e, size_t at);
size_t ebb_editor_line_end(const ebb_editor *e, size_t at);
/* A letter or a digit of any script. */
bool ebb_editor_is_word(const ebb_editor *e, size_t at);

void ebb_editor_copy(ebb_editor *e, size_t from, size_t to);     /* as the newest kill */
void ebb_editor_insert_kill(ebb_editor *e, size_t i);            /* ring[i], at the caret */
/* False: there is nothing to be undone, or done again. */
bool ebb_editor_undo(ebb_editor *e);
bool ebb_editor_redo(ebb_editor *e);
/* From now on all changes are one, for undo; until false. */
void ebb_editor_group(ebb_editor *e, bool is_grouped);

#endif
