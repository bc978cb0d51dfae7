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
 * numbers that cannot be are 0, texts are cut to fit and keep only what can be shown.  false: the
 * object has no such figures; *out is unchanged then. */
bool ebb_figures_get(const json_t *o, ebb_server_figures *out);
/* Text that may not be UTF-8; null without memory. */
json_t *ebb_figures_text(const char *text);

#endif
