/* tui/transcript_priv.h - what transcript*.c share. */
#ifndef EBB_TUI_TRANSCRIPT_PRIV_H
#define EBB_TUI_TRANSCRIPT_PRIV_H
#include "transcript.h"

/* Rows of the item's text, made for the window's width; also sets it->n_head. */
size_t ebb_item_text_rows(ebb_transcript *t, ebb_item *it);
/* Let its rows go; they are made anew when they are looked at. */
void ebb_item_forget(ebb_item *it);
/* The place `rows` above the end of the last item. */
ebb_place ebb_transcript_above_end(ebb_transcript *t, size_t rows);
ebb_place ebb_transcript_moved(ebb_transcript *t, ebb_place p, int rows);

#endif
