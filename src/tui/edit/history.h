/* tui/edit/history.h - what was typed before, on disk between runs.
 *
 * The file has one entry a line, \n and \\ escaped, 0600; several ebbs may append
 * to it.  Where sessions are encrypted (seal/seal.h), so is each line; lines in the clear are
 * encrypted when it is opened, and those of another key are passed over, and stay in the file.
 * Trouble with it never loses the entries in memory. */
#ifndef EBB_TUI_HISTORY_H
#define EBB_TUI_HISTORY_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "ebb/status.h"
#include "seal/seal.h"

typedef struct ebb_history {
    char  **entries;             /* oldest first */
    size_t  n, cap;
    size_t  at;                  /* shown; n: the unsent text */
    ebb_buf unsent;
    char   *path;                /* NULL: memory only */
} ebb_history;

/* A zeroed ebb_history is an empty one without file. */
void ebb_history_fini(ebb_history *h);
/* Read `path`, which need not exist; entries that follow are appended to it.
 * On an error the history goes on in memory.
 * Errors: those of ebb_file_slurp, and of a seal. */
EBB_MUST_CHECK
ebb_status ebb_history_open(ebb_history *h, const char *path, ebb_error *err);
/* Leave those of its entries that are kept, and write the file anew. */
typedef bool ebb_history_keep_fn(void *arg, const char *text, size_t n);
EBB_MUST_CHECK
ebb_status ebb_history_sweep(const char *path, ebb_history_keep_fn *keep, void *arg,
                             ebb_error *err);
/* Is there a file, perhaps behind a link?  Error: IO, where that cannot be said, or leads
 * nowhere. */
EBB_MUST_CHECK
ebb_status ebb_history_look(const char *path, bool *is_there, ebb_error *err);
/* Write it anew, encrypted by `to` (NULL: in the clear), from lines that are so by `from`; what was
 * in the clear is overwritten.  No file is fine. */
EBB_MUST_CHECK
ebb_status ebb_history_turn(const char *path, const ebb_seal *from, const ebb_seal *to,
                            ebb_error *err);
/* Remember `text` unless it is blank or repeats the newest, and leave browsing.  An
 * error means: not on disk. */
EBB_MUST_CHECK
ebb_status ebb_history_add(ebb_history *h, const char *text, size_t n, ebb_error *err);

/* One back or forward.  `now` is the editor's text: kept when browsing
 * begins.  NULL: there is none in that direction. */
const char *ebb_history_back(ebb_history *h, const char *now);
const char *ebb_history_forward(ebb_history *h);
/* Entry i < n is shown from now on; `now` is kept as by ebb_history_back. */
void ebb_history_go(ebb_history *h, size_t i, const char *now);
/* Whether `line` is an entry that is shown, as it was. */
bool ebb_history_shows(const ebb_history *h, const char *line);
/* The newest entry older than entry `before` that contains `pattern`, in any case if it has no
 * capital; *found is its number. */
const char *ebb_history_search(const ebb_history *h, const char *pattern, size_t before,
                               size_t *found);

#endif
