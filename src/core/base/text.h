/* base/text.h - texts: a copy, one without the blanks around it, where it begins, the last part of
 * a path; digits. */
#ifndef EBB_TEXT_H
#define EBB_TEXT_H
#include <stdbool.h>
#include <stddef.h>

/* A copy of s[0..n), terminated, to be freed; s may be NULL if n is 0.  NULL: no memory. */
char *ebb_text_copy(const char *s, size_t n);
/* A copy of s, to be freed, NULL of NULL; without memory, *ok becomes false. */
char *ebb_text_copy_or_null(const char *s, bool *ok);

/* The text s without spaces, tabs and carriage returns at its two ends: a pointer into s, which is
 * cut off in place. */
char *ebb_text_trim(char *s);

/* How many bytes of s[0..n) are a byte order mark, which editors of Windows put in front of
 * UTF-8. */
size_t ebb_text_mark(const char *s, size_t n);

/* What is behind the last slash of a path, all of it where there is none: a pointer into it. */
const char *ebb_text_file_name(const char *path);

/* The value of a hexadecimal digit, small or large; -1: it is none. */
int ebb_hex_digit(char c);

#endif
