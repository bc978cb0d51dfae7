/* ebb/experimental/prompt_parts.h - a prompt that takes several syncs, counted as the one it is. */
#ifndef EBB_EXPERIMENTAL_PROMPT_PARTS_H
#define EBB_EXPERIMENTAL_PROMPT_PARTS_H
#include "ebb/session.h"

/* The next syncs, and what ebb_sessions_append adds behind the first, are parts of one prompt up to
 * n ids, whatever is computed between them: ebb_engine_stats counts them as one, unless another
 * sequence's turn begins meanwhile. */
void ebb_session_begin_prompt(ebb_session *s, size_t n);

#endif
