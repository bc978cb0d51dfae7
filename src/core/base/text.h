/* base/text.h - short texts: a copy, and one without the blanks around it. */
#ifndef EBB_TEXT_H
#define EBB_TEXT_H
#include <stddef.h>

/* A copy of s[0..n), terminated, to be freed; s may be NULL if n is 0.  NULL: no memory. */
char *ebb_text_copy(const char *s, size_t n);

/* The text s without spaces, tabs and carriage returns at its two ends: a pointer into s, which is
 * cut off in place. */
char *ebb_text_trim(char *s);

#endif
