/* tui/edit/typed.h - what the beginning of a typed line makes of it.
 *
 * /name is a command of the chat, !command one of the shell, and what begins with """ goes on over
 * line ends until they come again.  A message that begins like that is typed with another slash, or
 * with a blank in front of the rest; neither is sent. */
#ifndef EBB_TUI_TYPED_H
#define EBB_TUI_TYPED_H
#include <stdbool.h>
#include <stddef.h>

enum { EBB_QUOTES_BYTES = 3 };

bool ebb_typed_has_quotes(const char *line, size_t n);           /* in front */
/* Is it a command of the shell, or text in quotes? */
bool ebb_typed_is_special(const char *line, size_t n);
/* What is typed in front of a message: "/", " " or "". */
const char *ebb_typed_prefix(const char *message, size_t n);
/* Bytes of that in front of a line, which is no command of the chat. */
size_t ebb_typed_skip(const char *line, size_t n);
/* Bytes of the files in front of a line (tree/attachment.h); 0 where it begins with the name of a
 * command, as what stands behind that may look like a file: "/edit 1 a.txt:". */
size_t ebb_typed_files(const char *line, size_t n);

#endif
