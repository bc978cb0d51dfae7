/* chat/prompt/system_prompts.h - system prompts by name: those that are shipped (prompts/), and
 * files NAME.txt of the user's in a folder, which come before them. */
#ifndef EBB_CHAT_SYSTEM_PROMPTS_H
#define EBB_CHAT_SYSTEM_PROMPTS_H
#include <stddef.h>

#include "base/buf.h"
#include "ebb/status.h"

/* Append the prompt `name`, without white space at its ends.  `dir` NULL: only what
 * is shipped.  Errors: NOTFOUND, USAGE (no name of a file), IO, LIMIT. */
EBB_MUST_CHECK
ebb_status ebb_system_prompt_read(const char *dir, const char *name, ebb_buf *out, ebb_error *err);

/* Every name once, those of the user's first.  `fn` must not change the folder. */
void ebb_system_prompt_each(const char *dir, void (*fn)(void *arg, const char *name), void *arg);

#endif
