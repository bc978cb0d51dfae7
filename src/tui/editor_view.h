/* tui/editor_view.h - the editor's rows: what editor.c and editor_view.c share. */
#ifndef EBB_TUI_EDITOR_VIEW_H
#define EBB_TUI_EDITOR_VIEW_H
#include "editor.h"

/* The paste that the character at s[0..n) stands for; SIZE_MAX: none. */
size_t ebb_editor_paste_at(const ebb_editor *e, const char *s, size_t n);
/* Caret one row up (-1) or down (1); false at the edge. */
bool ebb_editor_vertical(ebb_editor *e, int direction);

#endif
