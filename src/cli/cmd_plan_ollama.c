/* ebb plan --ollama: the estimate that users of Ollama know (ebb/experimental/ollama.h). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cli.h"
#include "ebb/experimental/ollama.h"

typedef struct estimate {
    ebb_ollama_model  model;
    ebb_ollama_load   load;
    ebb_ollama_graph  graph;
    ebb_ollama_gpu    gpus[EBB_OLLAMA_GPUS];
    size_t            n_gpus;
    ebb_ollama_layout layout;
} estimate;

static ebb_status read_gpus(const char *list, estimate *e, ebb_error *err)
{
    while (list && *list) {
        char size[32];
        size_t n = strcspn(list, ",");
        if (n >= sizeof size || e->n_gpus == EBB_OLLAMA_GPUS)
            return EBB_FAIL(err, EBB_USAGE, "--gpu: give the free bytes of at most %d cards: 24G,8G", EBB_OLLAMA_GPUS);
        memcpy(size, list, n);
        size[n] = '\0';
        e->gpus[e->n_gpus].library = "CUDA";
        if (!ebb_size_parse(size, &e->gpus[e->n_gpus++].free_bytes))
            return EBB_FAIL(err, EBB_USAGE, "--gpu %s: give free bytes like 24G", size);
        list += n + (list[n] == ',');
    }
    return EBB_OK;
}

static ebb_status compute_estimate(const ebb_args *a, const ebb_model *m, estimate *e, ebb_error *err)
{
    static const char *const kv_types[] = { "f16", "q8_0", "q4_0", "f32" };
    ebb_ollama_request request = { .n_ctx = a->engine.n_ctx, .n_batch = a->ollama_batch,
                                   .flash_ok_on_gpus = true };
    ebb_ollama_options opts = { .num_gpu = -1 };
    ebb_status st = ebb_ollama_model_read(&e->model, m, err);

    if (st == EBB_OK)
        st = read_gpus(a->ollama_gpus, e, err);
    if (st != EBB_OK)
        return st;
    for (size_t i = 0; i < e->n_gpus; i++)
        request.total_vram_bytes += e->gpus[i].free_bytes;
    ebb_ollama_settings s = ebb_ollama_resolve(&e->model, &request);
    e->load = (ebb_ollama_load){ .n_ctx = a->engine.n_ctx ? a->engine.n_ctx : s.n_ctx,
                                 .n_batch = a->ollama_batch ? a->ollama_batch : s.n_batch,
                                 .n_parallel = a->ollama_parallel ? a->ollama_parallel : 1,
                                 .kv_type = kv_types[a->engine.has_kv ? a->engine.kv_k : EBB_KV_F16],
                                 .flash = a->ollama_flash ? strcmp(a->ollama_flash, "on") == 0 : s.flash };
    e->graph.kv = calloc(e->model.n_layers + 1, sizeof *e->graph.kv);
    if (!e->graph.kv)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %llu layers", (unsigned long long)e->model.n_layers);
    ebb_ollama_graph_size(&e->model, &e->load, false, &e->graph);
    return e->n_gpus ? ebb_ollama_place(&e->model, &e->graph, e->gpus, e->n_gpus, &opts, &e->layout, err) : EBB_OK;
}

static void placement_json(const estimate *e, json_t *root)
{
    const ebb_ollama_layout *l = &e->layout;
    json_t *assign = json_array(), *bytes = json_array();

    for (size_t i = 0; i < l->n_entries; i++) {
        json_t *layers = json_array();
        for (size_t j = 0; j < l->entry[i].n; j++)
            json_array_append_new(layers, json_integer((json_int_t)(l->entry[i].first + j)));
        json_array_append_new(assign, json_pack("[I, o]", (json_int_t)l->entry[i].gpu, layers));
    }
    for (size_t i = 0; i < e->n_gpus; i++)
        json_array_append_new(bytes, json_integer((json_int_t)l->gpu_bytes[i]));
    json_object_set_new(root, "assign", assign);
    json_object_set_new(root, "layers_on_gpu", json_integer((json_int_t)l->n_on_gpu));
    json_object_set_new(root, "total_layers", json_integer((json_int_t)l->n_total));
    json_object_set_new(root, "graph_kind", json_string(l->is_full ? "full" : "partial"));
    json_object_set_new(root, "gpu_bytes", bytes);
    json_object_set_new(root, "cpu_bytes", json_integer((json_int_t)l->cpu_bytes));
    json_object_set_new(root, "ps", json_string(l->ps));
}

static int print_estimate_json(const estimate *e)
{
    const ebb_ollama_graph *g = &e->graph;
    json_t *kv = json_array(), *root;

    for (uint64_t i = 0; i < e->model.n_layers; i++)
        json_array_append_new(kv, json_integer((json_int_t)g->kv[i]));
    root = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b}", "kv", kv,
                     "kv_total", (json_int_t)g->kv_total, "partial", (json_int_t)g->partial, "full", (json_int_t)g->full,
                     "resolved_partial", (json_int_t)g->resolved_partial, "resolved_full", (json_int_t)g->resolved_full,
                     "ctx", (json_int_t)e->load.n_ctx, "batch", (json_int_t)e->load.n_batch,
                     "parallel", (json_int_t)e->load.n_parallel, "kv_type", e->load.kv_type, "flash", (int)e->load.flash);
    if (root && e->n_gpus)
        placement_json(e, root);
    return ebb_cli_print_json(root);
}

static void print_estimate_table(const estimate *e)
{
    const ebb_ollama_layout *l = &e->layout;
    char size[16], size2[16];

    printf("Ollama's estimate: context %llu x %llu, batch %llu, KV %s, flash attention %s\n",
           (unsigned long long)e->load.n_ctx, (unsigned long long)e->load.n_parallel, (unsigned long long)e->load.n_batch,
           e->load.kv_type, e->load.flash ? "on" : "off");
    printf("  KV cache             %10s\n", ebb_size_text(e->graph.kv_total, size));
    printf("  graph, all on GPU    %10s\n", ebb_size_text(e->graph.resolved_full, size));
    printf("  graph, partly        %10s\n", ebb_size_text(e->graph.resolved_partial, size));
    for (size_t i = 0; i < e->n_gpus; i++)
        printf("  GPU %zu               %10s of %s\n", i, ebb_size_text(l->gpu_bytes[i], size),
               ebb_size_text(e->gpus[i].free_bytes, size2));
    if (e->n_gpus)
        printf("  CPU                  %10s\n%llu of %llu layers on GPUs, %s\n", ebb_size_text(l->cpu_bytes, size),
               (unsigned long long)l->n_on_gpu, (unsigned long long)l->n_total, l->ps);
    putchar('\n');
}

ebb_status ebb_cmd_plan_ollama(const ebb_args *a, const ebb_model *m, int *status, ebb_error *err)
{
    estimate e = { 0 };
    ebb_status st = EBB_OK;

    if (a->ollama_flash && strcmp(a->ollama_flash, "on") != 0 && strcmp(a->ollama_flash, "off") != 0)
        return EBB_FAIL(err, EBB_USAGE, "--flash %s: is on or off", a->ollama_flash);
    st = compute_estimate(a, m, &e, err);
    if (st == EBB_OK && a->json)
        *status = print_estimate_json(&e);
    else if (st == EBB_OK)
        print_estimate_table(&e);
    free(e.graph.kv);
    ebb_ollama_model_fini(&e.model);
    return st;
}
