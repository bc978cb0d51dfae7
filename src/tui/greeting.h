/* tui/greeting.h - an empty screen says who answers; the first time also what this machine can hold
 * and how fast; where only the guide is there, where a larger model comes from. */
#ifndef EBB_TUI_GREETING_H
#define EBB_TUI_GREETING_H
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "ebb/model.h"
#include "ebb/plan.h"

/* model: NULL while it is being loaded.  One line each, without a line end after the last. */
void ebb_greeting_text(ebb_buf *out, const ebb_machine *machine, const ebb_model_info *model, bool is_first);
/* "6.0 GB free, 2 cores: a Llama-3.1-8B in Q4_K_M fits with 8k of context, about 4.5 tok/s", the speed
 * where memory_bytes_s says it. */
void ebb_greeting_machine(ebb_buf *out, const ebb_machine *machine);

bool ebb_greeting_is_guide(const ebb_model_info *model);
/* The greeting would be better for a measured speed: only the guide is there, and there is room to measure. */
bool ebb_greeting_measures(const ebb_machine *machine, const ebb_model_info *model);

/* Measuring takes up to a second, so a thread does it while the greeting stands already.
 * All zero at first; whoever started it takes it, waiting at last. */
typedef struct ebb_greeting_meter {
    pthread_t   thread;
    bool        is_running, has_measured;
    atomic_bool is_done;
    ebb_machine machine;
} ebb_greeting_meter;

void ebb_greeting_meter_start(ebb_greeting_meter *m);
/* true: *out is the machine as measured; once. */
bool ebb_greeting_meter_take(ebb_greeting_meter *m, bool waits, ebb_machine *out);

#endif
