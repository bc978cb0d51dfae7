/* base/utf8.h - decoding UTF-8 that may be broken, and the display filter.
 *
 * Broken input is handled as the Unicode standard recommends (section 3.9,
 * "U+FFFD substitution of maximal subparts"), like Python and browsers. */
#ifndef EBB_BASE_UTF8_H
#define EBB_BASE_UTF8_H
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define EBB_UTF8_BAD  0xFFFDu    /* what a maximal invalid part becomes */

/* Decode the code point at s[0..n), n > 0.  Returns the bytes consumed (>= 1);
 * *cp is EBB_UTF8_BAD for an invalid part.  Returns 0 if s is the beginning of
 * a valid sequence that n cuts off. */
size_t ebb_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Write cp (a scalar value) to out[0..4), return 1..4. */
size_t ebb_utf8_encode(uint32_t cp, char *out);

/* Whether s[0..n) is valid, to its end. */
bool ebb_utf8_is_valid(const char *s, size_t n);

/* How much of s[0..n) to keep where there is room for cap bytes: all, or the longest beginning that
 * ends between two characters.  Of broken text it may be up to 3 bytes less than there is room. */
size_t ebb_utf8_cut(const char *s, size_t n, size_t cap);
/* Where the character (or invalid part) before s + at begins; at > 0. */
size_t ebb_utf8_before(const char *s, size_t at);
/* b without its last character; an empty one stays so. */
void ebb_utf8_remove_last(ebb_buf *b);

/* Append s[0..n) as valid UTF-8: each maximal invalid part, and a cut-off end,
 * becomes U+FFFD. */
bool ebb_utf8_add_valid(ebb_buf *out, const char *s, size_t n);

/* The one filter between the outside and a terminal: valid UTF-8 in which C0
 * controls (but \n and \t), DEL, C1 controls and the bidirectional and
 * invisible format characters that can forge a screen are made visible: ESC
 * as U+241B (or "^[" when `ascii`), C1 and format characters as <U+009B>. */
bool ebb_utf8_add_visible(ebb_buf *out, const char *s, size_t n, bool ascii);
/* The same for a name or whatever else stands on a line: \n and \t are made visible, too. */
bool ebb_utf8_add_line(ebb_buf *out, const char *s, size_t n, bool ascii);
/* Whether s has a control of C0 or DEL, which no name, key or address has. */
bool ebb_utf8_has_controls(const char *s);
/* Whether these filters leave cp as it is (but \n and \t, which the first leaves). */
bool ebb_utf8_is_visible(uint32_t cp);

#endif
