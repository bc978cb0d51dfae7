/* The layers, a cell each: pinned, mapped, being read, on disk. */
#include "panel/panel.h"

#include <stdio.h>

static const struct look { const char *ascii, *glyph; ebb_face face; } looks[] = {
    [EBB_LAYER_DISK] = { ".", "\u2591", EBB_FACE_DISK },
    [EBB_LAYER_PARTLY] = { "+", "\u2584", EBB_FACE_PINNED },
    [EBB_LAYER_READING] = { "*", "\u2592", EBB_FACE_READING },
    [EBB_LAYER_MAPPED] = { "=", "\u2593", EBB_FACE_MAPPED },
    [EBB_LAYER_PINNED] = { "#", "\u2588", EBB_FACE_PINNED },
};

int ebb_layer_map_count(const ebb_stats *s)
{
    return (int)(s->n_layers < EBB_STATS_LAYERS ? s->n_layers : EBB_STATS_LAYERS);
}

/* The least of the layers that share a cell: a cell is pinned only if all of it is. */
static unsigned state_of(const ebb_stats *s, int first, int end)
{
    unsigned least = EBB_LAYER_PINNED;

    for (int i = first; i < end; i++)
        if (s->layer[i] < least)
            least = s->layer[i];
    return least;
}

int ebb_layer_map_draw(ebb_term *term, int row, int rows, int col, int cells, const ebb_stats *s)
{
    int n = ebb_layer_map_count(s), shown = n < cells * rows ? n : cells * rows;

    for (int i = 0; i < shown; i++) {
        const struct look *l = &looks[state_of(s, i * n / shown, (i + 1) * n / shown) % (sizeof looks / sizeof *looks)];
        ebb_term_puts(term, row + i / cells, col + i % cells, col + cells, term->ascii ? l->ascii : l->glyph, l->face);
    }
    return (shown + cells - 1) / cells;
}

static void draw_layers_gauge(ebb_canvas *c, const ebb_figures *f)
{
    const ebb_stats *s = ebb_panel_machine(f);
    char value[32];

    if (!s || s->n_layers == 0)
        return;
    snprintf(value, sizeof value, "%u/%u in memory", s->n_resident, s->n_layers);
    ebb_canvas_line(c, "layers", value);
    if (c->row + 2 < c->end)
        c->row += ebb_layer_map_draw(c->term, c->row, 3, c->col, c->limit - c->col, s);
    if (c->row < c->end) {
        int col = c->col;
        static const struct { unsigned state; const char *name; } legend[] = {
            { EBB_LAYER_PINNED, " pin " }, { EBB_LAYER_MAPPED, " map " },
            { EBB_LAYER_PARTLY, " part " }, { EBB_LAYER_READING, " read " }, { EBB_LAYER_DISK, " disk" },
        };
        for (size_t i = 0; i < sizeof legend / sizeof *legend; i++) {
            const struct look *l = &looks[legend[i].state];
            col = ebb_term_puts(c->term, c->row, col, c->limit, c->term->ascii ? l->ascii : l->glyph, l->face);
            col = ebb_term_puts(c->term, c->row, col, c->limit, legend[i].name, EBB_FACE_LABEL);
        }
        c->row++;
    }
    ebb_canvas_gap(c);
}

const ebb_gauge ebb_gauge_layers = { "layers", draw_layers_gauge, NULL };
