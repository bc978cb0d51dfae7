/* Whose figures the gauges of memory, layers and disk show (panel.h). */
#include "panel/panel.h"

const ebb_stats *ebb_panel_machine(const ebb_figures *f)
{
    if (!f->is_remote)
        return &f->stats;
    return f->remote.server.taken_ms ? &f->remote.server.stats : NULL;
}
