/* tui/edit/attach.h - @path in a message: the file's text goes with it. */
#ifndef EBB_TUI_ATTACH_H
#define EBB_TUI_ATTACH_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "ebb/status.h"

#define EBB_ATTACH_BYTES (1 << 20)               /* most of one file */

/* The @word that begins at s[at]: its bytes, 0 if none does.  @"a path" may have blanks.  The path itself
 * is s[*path..*path + *n_path). */
size_t ebb_attach_word(const char *s, size_t n, size_t at, size_t *path, size_t *n_path);

/* Append each file that s[0..n) names with @ and that is there: its name, then its text in a fence; then
 * s[0..n) itself.  So the files stay where they are while the question is typed.  A word that names no file is only a word.  LIMIT, FORMAT: a file is too large or no text;
 * nothing is appended then. */
EBB_MUST_CHECK
ebb_status ebb_attach_expand(const char *s, size_t n, ebb_buf *out, ebb_error *err);

#endif
