/* os/alarm.h - sleep until memory gets short.
 *
 * Who tells of it:
 *   cgroup v1   cgroup.event_control: use passes a mark, and pages are being reclaimed
 *   cgroup v2   memory.events changes: the limit was touched
 *   machine     pressure stall information (psi.h)
 * What they tell may be stale or mean the page cache only; whoever is woken looks. */
#ifndef EBB_OS_ALARM_H
#define EBB_OS_ALARM_H
#include <stdbool.h>
#include <stdint.h>

#include "os/limits.h"

typedef struct ebb_alarm ebb_alarm;

/* Of the cgroup that `g` reads (may be none) and of the machine; near_bytes below the limit is the
 * mark.  What the system refuses is left out.  Error: NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_alarm_open(const ebb_limits_gauge *g, uint64_t near_bytes, ebb_alarm **out,
                          ebb_error *err);
void ebb_alarm_close(ebb_alarm *a);              /* NULL is fine */
/* The kernel sends events for the tightest limit: the cgroup's if there is one, else the
 * machine's. */
bool ebb_alarm_has_events(const ebb_alarm *a);
/* Until an event comes, ebb_alarm_ring is called or so long has passed; below 0: for ever. */
void ebb_alarm_wait(ebb_alarm *a, int timeout_ms);
void ebb_alarm_ring(ebb_alarm *a);               /* from any thread */

#endif
