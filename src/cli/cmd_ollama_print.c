/* Ollama's estimate as text and as JSON (cmd_ollama.h). */
#include "cmd_ollama.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "json/json_text.h"

/* -- JSON -------------------------------------------------------------------------------- */

static json_t *integers(const uint64_t *values, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)values[i]));
    return list;
}

static json_t *json_entries(const ebb_ollama_layout *l)
{
    json_t *assign = json_array();

    for (size_t i = 0; i < l->n_entries; i++) {
        json_t *layers = json_array();
        for (size_t j = 0; j < l->entry[i].n; j++)
            json_array_append_new(layers, json_integer((json_int_t)l->entry[i].first + (json_int_t)j));
        json_array_append_new(assign, json_pack("[I, o]", (json_int_t)l->entry[i].gpu, layers));
    }
    return assign;
}

static json_t *json_prediction(const ebb_cli_ollama *e)
{
    const ebb_ollama_prediction *p = &e->prediction;

    return json_pack("{s:I, s:b, s:I, s:f, s:I, s:{s:f, s:f, s:f, s:f, s:f, s:f, s:f}}",
                     "total", (json_int_t)p->total_bytes, "splits", (int)p->splits,
                     "available_for_weights", (json_int_t)p->weight_room_bytes, "gpu_ratio_weights", p->gpu_ratio,
                     "layers", (json_int_t)p->n_layers, "on_paper", "vram_gib", e->paper.vram, "kv_gib", e->paper.kv,
                     "graph_gib", e->paper.graph, "buffer_gib", e->paper.buffer, "available_gib", e->paper.available,
                     "weights_gb", e->paper.weights, "ratio", e->paper.ratio);
}

static void add_placement_json(const ebb_cli_ollama *e, json_t *root)
{
    const ebb_ollama_layout *l = &e->layout;

    json_object_set_new(root, "assign", json_entries(l));
    json_object_set_new(root, "layers_on_gpu", json_integer((json_int_t)l->n_on_gpu));
    json_object_set_new(root, "total_layers", json_integer((json_int_t)l->n_total));
    json_object_set_new(root, "graph_kind", json_string(l->is_full ? "full" : "partial"));
    json_object_set_new(root, "graph_per_gpu", integers(l->graph_per_gpu, e->n_gpus));
    json_object_set_new(root, "gpu_bytes", integers(l->gpu_bytes, e->n_gpus));
    json_object_set_new(root, "cpu_bytes", json_integer((json_int_t)l->cpu_bytes));
    json_object_set_new(root, "vram", json_integer((json_int_t)l->vram_bytes));
    json_object_set_new(root, "total", json_integer((json_int_t)l->total_bytes));
    json_object_set_new(root, "gpu_ratio_layers", json_real((double)l->n_on_gpu / (double)l->n_total));
    json_object_set_new(root, "ps", json_string(l->ps));
    json_object_set_new(root, "predict", json_prediction(e));
}

json_t *ebb_cli_ollama_json(const ebb_cli_ollama *e)
{
    const ebb_ollama_graph *g = &e->graph;
    const ebb_ollama_settings *s = &e->settings;
    json_t *notes = json_array(), *root;

    for (size_t i = 0; i < e->n_notes; i++)
        json_array_append_new(notes, ebb_json_text_or_null(e->notes[i]));
    root = json_pack("{s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:I, s:b, s:o}",
                     "architecture", ebb_json_text_or_null(e->model.arch), "kv", integers(g->kv, e->model.n_layers),
                     "needs_ollama_engine", (int)ebb_ollama_needs_engine(e->model.arch),
                     "kv_total", (json_int_t)g->kv_total, "generic_kv_total", (json_int_t)g->kv_generic_total,
                     "partial", (json_int_t)g->partial, "full", (json_int_t)g->full,
                     "resolved_partial", (json_int_t)g->resolved_partial, "resolved_full", (json_int_t)g->resolved_full,
                     "buffer", (json_int_t)e->layout.buffer_bytes, "weights", (json_int_t)e->layout.weight_bytes,
                     "ctx", (json_int_t)s->n_ctx, "batch", (json_int_t)s->n_batch, "parallel",
                     (json_int_t)s->n_parallel,
                     "kv_type", s->kv_type, "flash", (int)s->flash, "gpu_overhead", (json_int_t)s->overhead_bytes,
                     "spread", (int)s->spread, "notes", notes);
    if (root && e->n_gpus)
        add_placement_json(e, root);
    return root;
}

/* -- Text ---------------------------------------------------------------------------------- */

static void print_bytes(const char *name, uint64_t bytes, const char *behind)
{
    char size[16];

    printf("  %-22s %10s%s\n", name, ebb_size_text(bytes, size), behind);
}

/* "layers 13-31 and the output" of card i; a card may have none. */
static void print_card_layers(const ebb_ollama_layout *l, size_t card)
{
    for (size_t i = 0; i < l->n_entries; i++) {
        size_t first = l->entry[i].first, end = first + l->entry[i].n;
        bool has_output = end == l->n_total;

        if (l->entry[i].gpu != card || first == end)
            continue;
        end -= has_output;
        if (end > first + 1)
            printf("  layers %zu-%zu%s", first, end - 1, has_output ? " and the output" : "");
        else if (end > first)
            printf("  layer %zu%s", first, has_output ? " and the output" : "");
        else
            printf("  the output");
    }
}

static void print_placement(const ebb_cli_ollama *e)
{
    const ebb_ollama_layout *l = &e->layout;
    char size[16], size2[16], name[48];

    printf("\nPlacement: %" PRIu64 " of %" PRIu64 " layers on cards, the output counted as one; %s\n", l->n_on_gpu,
           l->n_total, l->ps);
    for (size_t i = 0; i < e->n_gpus; i++) {
        snprintf(name, sizeof name, "card %zu, %s%s", i, e->gpus[i].library,
                 e->gpus[i].integrated ? ", integrated" : "");
        printf("  %-22s %10s of %s", name, ebb_size_text(l->gpu_bytes[i], size),
               ebb_size_text(e->gpus[i].free_bytes, size2));
        print_card_layers(l, i);
        putchar('\n');
    }
    print_bytes("CPU", l->cpu_bytes, "");
}

static void print_prediction(const ebb_cli_ollama *e)
{
    const ebb_ollama_prediction *p = &e->prediction;
    const ebb_ollama_paper *q = &e->paper;
    char size[16];

    printf("\nShort prediction%s: %s\n", e->n_gpus > 1 ? ", the cards as one" : "",
           p->splits ? "more than the memory, so it is split between cards and CPU" : "everything fits");
    print_bytes("needed in all", p->total_bytes, "");
    printf("  %-22s %10s  memory - KV - graph, partly - buffer\n", "available for weights",
           ebb_size_text(p->weight_room_bytes, size));
    if (p->gpu_ratio > 1)                        /* how many times over says nothing */
        printf("  %-22s %10s  of the weights, with room to spare; %" PRIu64 " of %" PRIu64 " layers\n", "ratio", "all",
               p->n_layers, e->layout.n_total);
    else
        printf("  %-22s %9.1f%%  of the weights; %" PRIu64 " of %" PRIu64 " layers\n", "ratio", 100 * p->gpu_ratio,
               p->n_layers, e->layout.n_total);
    if (q->weights < 0.5)                        /* whole GB: of a small model there are none to divide by */
        return;
    printf("  on paper (GiB rounded, weights in decimal GB as the file's size): %.4g - %.2f - %.2f - %.1f = %.2f; %.2f "
           "/ %.0f = %.1f %%\n",
           q->vram, q->kv, q->graph, q->buffer, q->available, q->available, q->weights, 100 * q->ratio);
}

void ebb_cli_ollama_print(const ebb_cli_ollama *e)
{
    const ebb_ollama_settings *s = &e->settings;

    fputs("Ollama's estimate: ", stdout);
    ebb_cli_print(e->model.arch, strlen(e->model.arch));
    printf(", context %" PRIu64 " x %" PRIu64 ", batch %" PRIu64 ", KV %s, flash attention %s\n", s->n_ctx,
           s->n_parallel, s->n_batch, s->kv_type, s->flash ? "on" : "off");
    for (size_t i = 0; i < e->n_notes; i++) {
        fputs("  note: ", stdout);
        ebb_cli_print(e->notes[i], strlen(e->notes[i]));
        putchar('\n');
    }
    print_bytes("weights", e->layout.weight_bytes, "  of all layers and the output");
    print_bytes("KV cache", e->graph.kv_total, "");
    print_bytes("graph, all on cards", e->graph.resolved_full, "");
    print_bytes("graph, partly", e->graph.resolved_partial, "");
    print_bytes("buffer", e->layout.buffer_bytes, "  left free on each card: layer 0 and its KV");
    if (s->overhead_bytes)
        print_bytes("overhead", s->overhead_bytes, "  on each card");
    if (e->n_gpus) {
        print_placement(e);
        print_prediction(e);
    }
    putchar('\n');
}
