/* ebb/experimental/prompt_parts.h - a prompt that takes several syncs, counted as the one it is. */
#ifndef EBB_EXPERIMENTAL_PROMPT_PARTS_H
#define EBB_EXPERIMENTAL_PROMPT_PARTS_H
#include "ebb/session.h"

/* The next syncs, up to the one of n ids, are parts of one prompt, whatever is computed between
 * them: ebb_engine_stats counts them as one, unless it was shown another sequence meanwhile. */
void ebb_session_begin_prompt(ebb_session *s, size_t n);

#endif
