/* tui/edit/message_file.h - the file in which an editor of the user's has a message. */
#ifndef EBB_TUI_MESSAGE_FILE_H
#define EBB_TUI_MESSAGE_FILE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "ebb/status.h"

/* Make an empty one, 0600, under a name of its own: in the runtime folder, private to the user and
 * usually in memory, else in /tmp.  Its name is in path[cap].  The result: its descriptor, which is
 * the caller's; -1: errno says why.  *lock is held, on a file beside it, until
 * ebb_message_file_end; -1: there can be none. */
int ebb_message_file_make(char *path, size_t cap, int *lock);

/* No editor has it any more; it is dropped, or shall stay. */
void ebb_message_file_end(const char *path, int *lock);

/* Drop those that programs have left which were killed before they came to the end above, but for
 * those for which `keep` returns true. */
typedef bool ebb_message_file_keep_fn(void *arg, const char *path);
void ebb_message_file_sweep(ebb_message_file_keep_fn *keep, void *arg);

/* Those of this user's that no program has: they were left on purpose, or an editor has saved them
 * after its command had ended.  Also those that were moved to `dir` (below). */
typedef void ebb_message_file_left_fn(void *arg, const char *path);
void ebb_message_file_each_left(const char *dir, ebb_message_file_left_fn *fn, void *arg);

/* Whether it is a name as above.  Where one is read from a file it may be anybody's, and what it
 * names is removed in the end: nothing but a message may be. */
bool ebb_message_file_is_name(const char *path);

/* Append what the editor has saved, but for the newlines at its end; U+FFFD stands for a NUL.
 * Only a regular file of this user's is read, of 16 MiB at most: by now its name may be that of
 * anything.
 * Errors: NOTFOUND, FORMAT, IO, LIMIT, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_message_file_read(const char *path, ebb_buf *out, ebb_error *err);

/* The same of an editor that was ended: if it had something that was not saved and has put that
 * beside its file as text (nano in PATH.save, Emacs in #PATH#), that. */
EBB_MUST_CHECK
ebb_status ebb_message_file_rescue(const char *path, ebb_buf *out, ebb_error *err);
bool ebb_message_file_has_rescue(const char *path);

/* UNSUPPORTED, with what to do: beside the file is what vi had not saved, and only vi reads that;
 * else OK. */
EBB_MUST_CHECK
ebb_status ebb_message_file_check_swap(const char *path, ebb_error *err);

/* Move the file, and what vi has beside it, to `dir`: the runtime folder is gone soon after the
 * user is.  Its new name is in path[cap]; where that fails all is as it was. */
void ebb_message_file_move(char *path, size_t cap, const char *dir);

/* Wipe the file, and what editors put beside it: backups, too. */
void ebb_message_file_drop(const char *path);

#endif
