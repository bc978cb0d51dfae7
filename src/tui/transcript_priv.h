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
/* Text, receipt, and a blank row to the next item. */
size_t ebb_item_rows(ebb_transcript *t, size_t i);
/* Take n items out of the list. */
void ebb_transcript_drop(ebb_transcript *t, size_t i, size_t n);
void ebb_transcript_set_width(ebb_transcript *t, int width);
/* Draw rows [row, end) from place p on, of the first the text from byte `at`.  Returns the place after. */
ebb_place ebb_transcript_draw_from(ebb_transcript *t, ebb_term *term, ebb_place p, uint32_t at, int row, int end);

#endif
