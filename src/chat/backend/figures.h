/* backend/figures.h - the figures of an engine as JSON: `ebb stat` prints them, `ebb serve` sends
 * them, and a chat whose engine is elsewhere reads them. */
#ifndef EBB_CHAT_FIGURES_H
#define EBB_CHAT_FIGURES_H
#include <jansson.h>

#include "backend/backend.h"
#include "ebb/stats.h"

/* Add them to the object. */
void ebb_figures_put(json_t *o, const ebb_stats *s);
/* What an `ebb serve` sends: those figures, and how many clients it has.  It is not believed:
 * numbers that cannot be are 0, words keep what can be shown, the decision is cut to fit and raw: a
 * gauge filters it.  false: the object has no such figures; *out is unchanged then. */
bool ebb_figures_get(const json_t *o, ebb_server_figures *out);

#endif
