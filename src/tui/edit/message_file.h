/* tui/edit/message_file.h - the file in which an editor of the user's has a message. */
#ifndef EBB_TUI_MESSAGE_FILE_H
#define EBB_TUI_MESSAGE_FILE_H
#include "base/buf.h"
#include "ebb/status.h"

/* Append what the editor has saved, but for the newlines at its end; U+FFFD stands for a NUL.
 * Only a regular file of this user's is read, of 16 MiB at most: by now its name may be that of
 * anything.
 * Errors: NOTFOUND, FORMAT, IO, LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_message_file_read(const char *path, ebb_buf *out, ebb_error *err);

#endif
