/* tui/greeting.h - an empty screen says who answers; the first time also what this machine can hold
 * and where a larger model comes from. */
#ifndef EBB_TUI_GREETING_H
#define EBB_TUI_GREETING_H
#include "base/buf.h"
#include "ebb/model.h"
#include "ebb/plan.h"

/* model: NULL while it is being loaded.  One line each, without a line end after the last. */
void ebb_greeting_text(ebb_buf *out, const ebb_machine *machine, const ebb_model_info *model, bool is_first);
/* "6 GB, 2 cores: an 8B model in Q4_K_M fits with 8k of context" */
void ebb_greeting_machine(ebb_buf *out, const ebb_machine *machine);

#endif
