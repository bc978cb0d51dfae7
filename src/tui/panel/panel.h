/* tui/panel/panel.h - gauges: what the engine does and where the memory is.
 *
 * A gauge is one file and one row of the table in panel.c: it draws itself into a column of
 * the wide layout, and says itself in a few words for the status line.  All read one
 * copy of the figures, taken at most twice a second. */
#ifndef EBB_TUI_PANEL_H
#define EBB_TUI_PANEL_H
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "ebb/model.h"
#include "ebb/stats.h"
#include "panel/canvas.h"
#include "pull/pull_events.h"

#define EBB_PANEL_COLUMNS 36     /* of the wide layout, border included */
#define EBB_PANEL_WIDE    130    /* columns of a terminal that has room for it */

typedef struct ebb_figures {
    ebb_stats stats;
    const ebb_model_info *model; /* NULL while it is being loaded */
    const char *session;
    long      writer;            /* the process that writes the answer, if it is another one; else
                                  * 0 */
    bool      is_busy, has_failed;               /* has_failed: no model could be loaded */
    uint64_t  load_done, load_total;             /* bytes */
    bool      is_remote;         /* the engine is elsewhere: */
    ebb_remote_figures remote;
    const char *job;             /* what is neither an answer nor opening; NULL: nothing */
    double    job_share;         /* of it, 0 to 1 */
    const char *form;            /* of answers: its file's name; NULL: none */
    bool      form_is_schema;
    bool      is_pulling;        /* a model is fetched: the last that was heard of it (n_files 0:
                                  * nothing yet) */
    ebb_pull_event pull;
} ebb_figures;

/* The figures of the machine that computes: this one, or that of an `ebb serve`; NULL: its server
 * sends none. */
const ebb_stats *ebb_panel_machine(const ebb_figures *f);

typedef struct ebb_gauge {
    const char *name;
    void (*draw)(ebb_canvas *c, const ebb_figures *f);           /* nothing to say: draws nothing */
    void (*brief)(ebb_buf *out, const ebb_figures *f, bool ascii);   /* likewise; NULL: never */
} ebb_gauge;

/* All gauges, one below the other, as far as the canvas has rows. */
void ebb_panel_draw(ebb_canvas *c, const ebb_figures *f);
/* Gauges in words, for one line of `width` columns: as many as fit, by rank. */
void ebb_panel_brief(ebb_buf *out, const ebb_figures *f, bool ascii, int width);

/* What its rows are called, "a, b" where one line explains two, and what they mean; ends with
 * NULL. */
extern const char *const ebb_panel_help[][2];

/* What one waits for and how fast it goes: progress and speed. */
void ebb_panel_live(ebb_buf *out, const ebb_figures *f, bool ascii);

/* One cell per layer, `cells` in a row, in at most `rows` rows; several layers share a
 * cell if there are more.  Returns the rows taken. */
int ebb_layer_map_draw(ebb_term *term, int row, int rows, int col, int cells, const ebb_stats *s);
/* Layers that have a state of their own in `s`. */
int  ebb_layer_map_count(const ebb_stats *s);

extern const ebb_gauge ebb_gauge_engine, ebb_gauge_model, ebb_gauge_progress, ebb_gauge_speed,
ebb_gauge_context,
                       ebb_gauge_memory, ebb_gauge_layers, ebb_gauge_disk, ebb_gauge_decision,
                       ebb_gauge_pull, ebb_gauge_form;

#endif
