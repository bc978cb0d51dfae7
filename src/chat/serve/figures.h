/* serve/figures.h - the figures of an engine as JSON: for `ebb stat` and for those who ask a
 * server. */
#ifndef EBB_SERVE_FIGURES_H
#define EBB_SERVE_FIGURES_H
#include <jansson.h>

#include "ebb/stats.h"

/* Add them to the object. */
void ebb_figures_put(json_t *o, const ebb_stats *s);
/* Text that may not be UTF-8; null without memory. */
json_t *ebb_figures_text(const char *text);

#endif
