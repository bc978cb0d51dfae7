/* tui/command/clipboard.h - text to the user's clipboard, and the truth about it. */
#ifndef EBB_TUI_CLIPBOARD_H
#define EBB_TUI_CLIPBOARD_H
#include "command/frontend.h"

/* Copy the last answer as it was written, or, if `which` is a number, its code
 * block of that number.  Through tmux if we are in it, else with OSC 52 (the
 * terminal does not acknowledge it), else into a file; `how` says which. */
EBB_MUST_CHECK
ebb_status ebb_clipboard_copy_answer(ebb_frontend *f, const char *which, char *how, size_t cap,
                                     ebb_error *err);

/* The same with message i of the path, without what the model thought. */
EBB_MUST_CHECK
ebb_status ebb_clipboard_copy_message(ebb_frontend *f, size_t i, char *how, size_t cap,
                                      ebb_error *err);

#endif
