/* tui/term/width.h - what the eye takes for one character, and the columns it fills.
 *
 * A cluster is an extended grapheme cluster (UAX #29, by utf8proc, with rule
 * GB9c added for the Indic scripts).  Its width is what terminals that know
 * only single code points show of it: the sum of its spacing code points,
 * where an emoji sequence (ZWJ, skin tone, variation selector) counts as its first
 * emoji alone.  The painter (term.c) draws exactly that, so that the caret never
 * drifts, whatever the terminal thinks of newer emoji. */
#ifndef EBB_TUI_WIDTH_H
#define EBB_TUI_WIDTH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EBB_TAB_COLUMNS 4

/* Bytes of the first cluster of s[0..n), n > 0; *width (may be NULL) receives its columns.
 * Never more than EBB_CLUSTER_MAX bytes: what is longer is cut. */
#define EBB_CLUSTER_MAX 128
size_t ebb_cluster_next(const char *s, size_t n, int *width);

/* Whether a code point alone fills two columns (an ideograph, kana, Hangul, most emoji) or is half
 * a flag: what begins with it is a word of its own.  One that is two columns wide for its marks
 * (U+0915 U+093E) is not. */
bool ebb_is_wide(uint32_t cp);

/* Start of the cluster that ends at (or holds) byte `at` > 0. */
size_t ebb_cluster_prev(const char *s, size_t n, size_t at);

/* Columns of s[0..n); tabs reach the next multiple of EBB_TAB_COLUMNS. */
int ebb_width_text(const char *s, size_t n);

/* The code points of a cluster that are drawn: calls repeated with *at from 0
 * give one spacing code point with its marks each.  Returns its bytes (0: no
 * more); *out receives at most `cap` bytes of UTF-8 with final NUL, *width its columns. */
size_t ebb_cluster_part(const char *s, size_t n, size_t *at, char *out, size_t cap, int *width);

#endif
