/* os/guard.h - mapped files that are cut off, or whose disk fails, while they are read.
 *
 * A page that the file no longer has is SIGBUS to whoever touches it, in the middle
 * of a computation and in any thread.  Within a guarded mapping such a page and all
 * behind it become zeroes instead, and the guard remembers: what was computed
 * meanwhile is worth nothing, but the program goes on and can say so.  Elsewhere
 * the signal does what it did before; a handler that came behind ours is asked first,
 * and may hand on to ours. */
#ifndef EBB_OS_GUARD_H
#define EBB_OS_GUARD_H
#include <stdbool.h>

#include "ebb/status.h"
#include "os/map.h"

typedef struct ebb_guard ebb_guard;

/* Guard a mapped file, or nothing if *m is empty (*out is then NULL, as on failure).  The caller
 * owns *out until ebb_guard_remove.  Error: NOMEM.  The handler is the process's own:
 * ebb_guard_arm puts it back if somebody else has taken its place. */
EBB_MUST_CHECK
ebb_status ebb_guard_add(const ebb_map *m, ebb_guard **out, ebb_error *err);
void ebb_guard_remove(ebb_guard *g);             /* before the mapping ends; NULL is fine */
void ebb_guard_arm(void);                        /* cost: a system call */

/* Whether pages of the mapping were missing. */
bool ebb_guard_is_hit(const ebb_guard *g);       /* NULL: no */
/* Map the file anew where zeroes are; nobody may read meanwhile.  false: the system refuses. */
bool ebb_guard_heal(ebb_guard *g, int fd);

#endif
