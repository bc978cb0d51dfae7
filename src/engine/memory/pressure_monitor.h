/* memory/pressure_monitor.h - a thread that checks memory while passes are long or nobody asks
 * anything.
 *
 * It does one thing: where copies of weights are held and memory is short, it evicts groups that
 * are not being computed with (ebb_res_evict), as many as bring back what should be left.  All else
 * is for the passes' thread.  What is still to be read into such copies counts as taken, and goes
 * first.
 *
 *     state    whose move leads there                              what it does
 *     asleep   the monitor: it has checked and nobody computes     waits for the kernel's alarm
 *     awake    a pass (wake), an alarm, a plan, a refused reader   checks again in 4 to 250 ms
 *     alerted  the monitor: memory was short, it evicted           the passes' thread takes this
 *                                                                  back (take_alert), checks again
 *     stopped  the passes' thread (stop), once and for all         answers readers, evicts nothing
 *
 * "Asleep" is set by the monitor before it checks, so that a pass that begins in between rings; who
 * takes it back (an exchange) rings. */
#ifndef EBB_PRESSURE_MONITOR_H
#define EBB_PRESSURE_MONITOR_H
#include <stdbool.h>

#include "ebb/engine.h"

typedef struct ebb_pressure_monitor ebb_pressure_monitor;

/* Without one (no memory for a thread) only the passes check. */
void ebb_pressure_monitor_open(ebb_engine *e);
/* Its thread has ended; ebb_pressure_monitor_has_headroom still answers. */
void ebb_pressure_monitor_stop(ebb_engine *e);
void ebb_pressure_monitor_close(ebb_engine *e);
/* What it goes by, after open and whenever the plan has changed. */
void ebb_pressure_monitor_set(ebb_engine *e, bool has_copies, uint64_t floor_bytes);
/* A pass begins or goes on: checks come often from here on, for a second. */
void ebb_pressure_monitor_wake(ebb_engine *e);
/* Groups that it evicted since the last call. */
uint32_t ebb_pressure_monitor_take_n_evicted(ebb_engine *e);
/* Whether it found memory short since the last call: a full check is due. */
bool ebb_pressure_monitor_take_alert(ebb_engine *e);
/* Whether memory for n_bytes of a layer is there now; if not, it checks.  From any thread
 * (ebb_headroom). */
bool ebb_pressure_monitor_has_headroom(void *engine, uint64_t n_bytes);

#endif
