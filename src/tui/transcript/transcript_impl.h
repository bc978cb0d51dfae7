/* tui/transcript/transcript_impl.h - what transcript*.c share. */
#ifndef EBB_TUI_TRANSCRIPT_IMPL_H
#define EBB_TUI_TRANSCRIPT_IMPL_H
#include "transcript/transcript.h"

/* -- transcript_item.c -- */
void ebb_item_fini(ebb_item *it);
/* Rows of the item's text, made for the window's width; trailing empty ones do not count.  Also
 * sets it->n_head. */
size_t ebb_item_text_rows(ebb_transcript *t, ebb_item *it);
/* Head, text, turn statistics, and a blank row to the next item. */
size_t ebb_item_rows(ebb_transcript *t, size_t i);
/* Draw its rows from *from on, the first of the text from byte `at`, into rows [row, end), without
 * the blank one.  *from moves on; returns the row after the last that was drawn. */
int ebb_item_draw(ebb_transcript *t, ebb_item *it, ebb_term *term, size_t *from, uint32_t at,
                  int row, int end);
/* Bytes of memory that its rows take, with the text that is set in them. */
size_t ebb_item_bytes(const ebb_item *it);
/* Evict its rows; they are made anew when they are looked at. */
void ebb_item_drop_rows(ebb_item *it);

/* -- transcript.c -- */
/* The place `rows` above the end of the last item. */
ebb_row_pos ebb_transcript_above_end(ebb_transcript *t, size_t rows);
ebb_row_pos ebb_transcript_moved(ebb_transcript *t, ebb_row_pos p, int rows);
/* Take n items out of the list. */
void ebb_transcript_drop(ebb_transcript *t, size_t i, size_t n);
void ebb_transcript_set_width(ebb_transcript *t, int width);
/* Draw rows [row, end) from place p on, of the first the text from byte `at`.  Returns the place
 * after. */
ebb_row_pos ebb_transcript_draw_from(ebb_transcript *t, ebb_term *term, ebb_row_pos p, uint32_t at,
                                     int row, int end);

#endif
