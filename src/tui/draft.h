/* tui/draft.h - what was typed and not sent, from one run to the next.
 *
 * One file in the state folder, for the one conversation that was left last: its name on the
 * first line ("": one that had no message yet), then the text. */
#ifndef EBB_TUI_DRAFT_H
#define EBB_TUI_DRAFT_H
#include <stdbool.h>

#include "base/buf.h"
#include "ebb/status.h"

/* Errors: IO, NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_draft_keep(const char *state_dir, const char *session, const char *text, size_t n, ebb_error *err);
/* true: there was one for this conversation; it is in *out now, and in no file any more. */
bool ebb_draft_take(const char *state_dir, const char *session, ebb_buf *out);

#endif
