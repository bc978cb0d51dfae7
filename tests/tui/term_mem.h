/* tui/term_mem.h - the terminal of tests: a grid in memory. */
#ifndef EBB_TESTS_TERM_MEM_H
#define EBB_TESTS_TERM_MEM_H
#include "term/term.h"

/* NULL: out of memory.  Freed by ops->close. */
ebb_term *ebb_term_mem(int rows, int cols);
/* One that is inline: the screen is the region, and what scrolled away is kept. */
ebb_term *ebb_term_mem_inline(int rows, int cols);
const char *ebb_term_mem_scrolled(ebb_term *t);  /* a line per row */
int ebb_term_mem_most_rows(const ebb_term *t);   /* that one frame had, scrolled ones included */

void ebb_term_mem_feed(ebb_term *t, const char *bytes, size_t n);   /* as if read from a terminal */
/* An EBB_INPUT_RESIZE follows. */
void ebb_term_mem_resize(ebb_term *t, int rows, int cols);

/* The flushed screen as text: a line per row, trailing blanks cut.  Valid until
 * the next call; NULL: out of memory. */
const char *ebb_term_mem_screen(ebb_term *t);
const char *ebb_term_mem_cell(const ebb_term *t, int row,
                              int col);  /* its text; "" in the right half of a wide one */
ebb_face ebb_term_mem_face(const ebb_term *t, int row, int col);
void ebb_term_mem_cursor(const ebb_term *t, int *row, int *col);    /* row -1: hidden */
/* Cells that differed from the screen at flushes so far: what a link would carry. */
size_t ebb_term_mem_changes(const ebb_term *t);
const ebb_buf *ebb_term_mem_sent(const ebb_term *t);                /* raw bytes of ops->send */

#endif
