/* chat/store/head_line.h - the lines that begin a message in Markdown ("## user") and in text
 * ("user:").  A text that has such a line itself is written with one backslash more in front of it,
 * so what a model or a file says cannot begin a message of somebody else. */
#ifndef EBB_CHAT_HEAD_LINE_H
#define EBB_CHAT_HEAD_LINE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "store/export.h"

/* "user", "human", "assistant" ...; false: no role that a conversation here has. */
bool ebb_import_role(const char *name, size_t n, ebb_role *out);
/* Is line[0..n), without its end, the head of a message? */
bool ebb_head_line_is(ebb_export_format format, const char *line, size_t n, ebb_role *role);
/* Append text[0..n) as it stands below a head, as valid UTF-8. */
void ebb_head_line_add_text(ebb_buf *out, ebb_export_format format, const char *text, size_t n);
/* The way back, but for bytes that were not UTF-8. */
void ebb_head_line_read_text(ebb_buf *out, ebb_export_format format, const char *text, size_t n);

#endif
