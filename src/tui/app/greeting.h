/* tui/app/greeting.h - an empty screen says who answers; the first time also what this machine can
 * hold and how fast; where only the guide is there, where a larger model comes from. */
#ifndef EBB_TUI_GREETING_H
#define EBB_TUI_GREETING_H
#include "base/buf.h"
#include "ebb/model.h"
#include "ebb/experimental/plan.h"

/* model: NULL while it is being loaded; has_keys: F1 is one; is_private: this chat fetches nothing.
 * One line each, without a line end after the last. */
void ebb_greeting_text(ebb_buf *out, const ebb_machine *machine, const ebb_model_info *model,
                       bool is_first, bool has_keys, bool is_private);
/* "6.5 GB free, 2 cores: LFM2.5-8B-A1B (...) fits with 16k of context, about 23 tok/s" by
 * models/suggestions.h, the speed where memory_bytes_s says it. */
void ebb_greeting_machine(ebb_buf *out, const ebb_machine *machine);

/* The greeting would be better for a measured speed: only the guide is there, and there is room to
 * measure. */
bool ebb_greeting_measures(const ebb_machine *machine, const ebb_model_info *model);

/* Measuring takes half a second, more on a busy machine: a thread does it while the greeting is on
 * the screen already, and nothing waits for it.  NULL: no thread could be started.  The caller
 * drops it. */
typedef struct ebb_greeting_meter ebb_greeting_meter;
ebb_greeting_meter *ebb_greeting_meter_start(void);
bool ebb_greeting_meter_is_busy(const ebb_greeting_meter *m);
/* true: *out is the machine as measured; once. */
bool ebb_greeting_meter_result(ebb_greeting_meter *m, ebb_machine *out);
void ebb_greeting_meter_drop(ebb_greeting_meter *m);

#endif
