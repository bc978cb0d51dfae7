/* tui/copy.h - text to the user's clipboard, and the truth about it. */
#ifndef EBB_TUI_COPY_H
#define EBB_TUI_COPY_H
#include "front.h"

/* Copy the last answer as it was written, or, if `which` is a number, its code
 * block of that number.  Through tmux if we are in it, else with OSC 52 (the
 * terminal gives no receipt), else into a file; `how` says which. */
EBB_MUST_CHECK
ebb_status ebb_copy_answer(ebb_front *f, const char *which, char *how, size_t cap, ebb_error *err);

#endif
