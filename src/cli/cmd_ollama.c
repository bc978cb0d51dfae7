/* ebb ollama, ebb plan --ollama: the estimate that users of Ollama know, from the options and Ollama's own
 * variables. */
#include "cmd_ollama.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/size.h"
#include "ebb/experimental/inspect.h"
#include "os/paths.h"

__attribute__((format(printf, 2, 3)))
static void add_note(ebb_cli_ollama *e, const char *format, ...)
{
    va_list args;

    if (e->n_notes == EBB_OLLAMA_NOTES)
        return;
    va_start(args, format);
    vsnprintf(e->notes[e->n_notes++], sizeof e->notes[0], format, args);
    va_end(args);
}

/* -- The cards ------------------------------------------------------------------------- */

/* One word behind the free memory of a card: its library, or what is special about it. */
static bool apply_card_word(const char *word, size_t n, ebb_cli_ollama *e, ebb_ollama_gpu *card)
{
    static const char *const libraries[] = { "CUDA", "ROCm", "Vulkan", "Metal" };

    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (strlen(libraries[i]) == n && strncasecmp(libraries[i], word, n) == 0) {
            card->library = libraries[i];
            return true;
        }
    if (n == strlen("integrated") && strncmp(word, "integrated", n) == 0)
        return card->integrated = true;
    if (n == strlen("no-flash") && strncmp(word, "no-flash", n) == 0)
        return e->has_old_card = true;
    return false;
}

static ebb_status read_card(const char *text, size_t n, ebb_cli_ollama *e, ebb_error *err)
{
    ebb_ollama_gpu *card = &e->gpus[e->n_gpus];
    size_t end = strcspn(text, ":,");
    char size[32];

    if (e->n_gpus == EBB_OLLAMA_GPUS)
        return EBB_FAIL(err, EBB_USAGE, "--gpu: at most %d cards can be described", EBB_OLLAMA_GPUS);
    snprintf(size, sizeof size, "%.*s", (int)end, text);
    card->library = "CUDA";
    if (end >= sizeof size || !ebb_size_parse(size, &card->free_bytes))
        return EBB_FAIL(err, EBB_USAGE, "--gpu %.40s: give free memory like 24G, or 8G:rocm", text);
    while (end < n) {
        size_t length = strcspn(text + ++end, ":,");
        if (!apply_card_word(text + end, length, e, card))
            return EBB_FAIL(err, EBB_USAGE, "--gpu: %.*s: write a card as FREE, then cuda, rocm, vulkan, metal, "
                                            "integrated, no-flash after colons",
                            (int)(length < 40 ? length : 40), text + end);
        end += length;
    }
    e->vram_bytes += card->free_bytes;
    e->n_gpus++;
    return EBB_OK;
}

static ebb_status read_cards(const char *list, ebb_cli_ollama *e, ebb_error *err)
{
    ebb_status st = EBB_OK;

    while (st == EBB_OK && list && *list) {
        size_t n = strcspn(list, ",");
        st = read_card(list, n, e, err);
        list += n + (list[n] == ',');
    }
    return st;
}

/* -- The options ------------------------------------------------------------------------ */

static ebb_status read_projector(const char *text, uint64_t *bytes, ebb_error *err)
{
    ebb_model *m = NULL;
    ebb_buf path = { 0 };
    ebb_status st;

    if (!text || ebb_size_parse(text, bytes))
        return EBB_OK;
    st = ebb_path_expand(text, &path, err);
    if (st == EBB_OK)
        st = ebb_model_open(path.data, &m, err);
    ebb_buf_fini(&path);
    for (size_t i = 0; st == EBB_OK && i < ebb_model_n_tensors(m); i++) {
        ebb_tensor_info t;
        ebb_model_tensor(m, i, &t);
        *bytes = ebb_size_plus(*bytes, t.n_bytes);
    }
    ebb_model_close(m);
    return st;
}

static ebb_status read_num_gpu(const char *text, int64_t *out, ebb_error *err)
{
    char *end;

    *out = -1;
    if (!text || strcmp(text, "-1") == 0)
        return EBB_OK;
    *out = strtol(text, &end, 10);
    if (end == text || *end || *out < 0 || *out > 1000000)
        return EBB_FAIL(err, EBB_USAGE, "--num-gpu %.20s: give a number of layers, or -1", text);
    return EBB_OK;
}

static ebb_status check_words(const ebb_args *a, ebb_error *err)
{
    uint64_t overhead;

    if (a->ollama_flash && strcmp(a->ollama_flash, "on") != 0 && strcmp(a->ollama_flash, "off") != 0)
        return EBB_FAIL(err, EBB_USAGE, "--flash %s: give on or off", a->ollama_flash);
    if (a->ollama_overhead && !ebb_size_parse(a->ollama_overhead, &overhead))
        return EBB_FAIL(err, EBB_USAGE, "--overhead %s: give a size like 512M", a->ollama_overhead);
    if (a->engine.has_kv && a->engine.kv_k != a->engine.kv_v)
        return EBB_FAIL(err, EBB_USAGE, "--kv: Ollama has one type for both K and V; give one");
    return EBB_OK;
}

ebb_status ebb_cmd_plan_check(const ebb_args *a, ebb_error *err)
{
    if (a->ollama || !a->ollama_option)          /* the configuration may have some, for when they are asked for */
        return EBB_OK;
    return EBB_FAIL(err, EBB_USAGE,
                    "%s: belongs to Ollama's estimate (ebb plan --ollama, or ebb ollama); ebb uses no card",
                    a->ollama_option);
}

/* -- What Ollama makes of them ------------------------------------------------------------ */

static const char *asked_kv(const ebb_args *a)
{
    static const char *const names[] = { [EBB_KV_F16] = "f16", [EBB_KV_Q8_0] = "q8_0", [EBB_KV_Q4_0] = "q4_0",
                                         [EBB_KV_F32] = "f32" };

    return a->engine.has_kv ? names[a->engine.kv_k] : getenv("OLLAMA_KV_CACHE_TYPE");
}

/* What was asked for and is not done stands in a note: nothing is corrected in silence. */
static void note_corrections(ebb_cli_ollama *e, const ebb_args *a, const ebb_ollama_request *r)
{
    const ebb_ollama_settings *s = &e->settings;
    const char *flash = r->env_flash;

    if (e->model.n_ctx_train && s->n_ctx == e->model.n_ctx_train && r->n_ctx > s->n_ctx)
        add_note(e, "context %" PRIu64 ": the model was trained for %" PRIu64 ", and Ollama takes no more",
                 r->n_ctx, s->n_ctx);
    else if (r->n_ctx && r->n_ctx < s->n_ctx)
        add_note(e, "context %" PRIu64 ": Ollama takes at least %" PRIu64 " here", r->n_ctx, s->n_ctx);
    if (a->ollama_batch && s->n_batch != a->ollama_batch)
        add_note(e, "batch %u: Ollama takes %" PRIu64 " with this context", a->ollama_batch, s->n_batch);
    if (a->ollama_parallel > 1 && s->n_parallel == 1)
        add_note(e, "%u sequences: Ollama takes one with %s", a->ollama_parallel, e->model.arch);
    if (flash && flash[0] && !strchr("0fF", flash[0]) && !s->flash)
        add_note(e, "flash attention is off: %s cannot have it", e->has_old_card ? "one of the cards" : "this model");
    if (r->env_kv_type && strcasecmp(r->env_kv_type, s->kv_type) != 0)
        add_note(e, "KV %.20s: Ollama takes %s, %s", r->env_kv_type, s->kv_type,
                 s->flash ? "which it knows" : "as other types need flash attention, which is off");
    if (ebb_ollama_needs_engine(e->model.arch))
        add_note(e, "Ollama runs %s in its own engine and asks that for its sizes; these formulas serve where it "
                    "cannot load the file",
                 e->model.arch);
}

static bool has_vision(const ebb_args *a, const ebb_model *m)
{
    ebb_tensor_info t;

    if (a->ollama_vision || a->ollama_projector)
        return true;
    for (size_t i = 0; i < ebb_model_n_tensors(m); i++) {
        ebb_model_tensor(m, i, &t);
        if (strncmp(t.name, "v.", 2) == 0 || strncmp(t.name, "mm.", 3) == 0)
            return true;
    }
    return false;
}

/* A context of --ctx max, or of the configuration's ctx = max: Ollama takes no more than the model was trained for. */
static uint32_t asked_ctx(const ebb_args *a, const ebb_model *m)
{
    return a->engine.n_ctx == EBB_CTX_MAX ? ebb_model_get_info(m)->n_ctx_train : a->engine.n_ctx;
}

/* The variables count where no option says otherwise; --exact takes the options as they are. */
static void resolve_settings(ebb_cli_ollama *e, const ebb_args *a, const ebb_model *m)
{
    char parallel[16];
    ebb_ollama_request r = {
        .env_parallel = getenv("OLLAMA_NUM_PARALLEL"), .env_ctx = getenv("OLLAMA_CONTEXT_LENGTH"),
        .env_flash = a->ollama_flash ? (strcmp(a->ollama_flash, "on") == 0 ? "1" : "0")
                                     : getenv("OLLAMA_FLASH_ATTENTION"),
        .env_kv_type = asked_kv(a), .env_overhead = getenv("OLLAMA_GPU_OVERHEAD"),
        .env_spread = getenv("OLLAMA_SCHED_SPREAD"),
        .n_ctx = asked_ctx(a, m), .n_batch = a->ollama_batch, .vision = has_vision(a, m),
        .flash_ok_on_gpus = !e->has_old_card, .total_vram_bytes = e->vram_bytes,
    };

    snprintf(parallel, sizeof parallel, "%u", a->ollama_parallel);
    if (a->ollama_parallel)
        r.env_parallel = parallel;
    e->settings = ebb_ollama_resolve(&e->model, &r);
    if (a->ollama_overhead && !ebb_size_parse(a->ollama_overhead, &e->settings.overhead_bytes))
        e->settings.overhead_bytes = 0;          /* cannot be: check_words */
    e->settings.spread |= a->ollama_spread;
    if (!a->ollama_exact) {
        note_corrections(e, a, &r);
        return;
    }
    if (a->engine.n_ctx)
        e->settings.n_ctx = asked_ctx(a, m);
    if (a->ollama_batch)
        e->settings.n_batch = a->ollama_batch;
    if (a->ollama_parallel)
        e->settings.n_parallel = a->ollama_parallel;
    if (a->engine.has_kv)
        e->settings.kv_type = asked_kv(a);
    if (a->ollama_flash)
        e->settings.flash = strcmp(a->ollama_flash, "on") == 0;
}

static ebb_status compute_estimate(const ebb_args *a, const ebb_model *m, ebb_cli_ollama *e, ebb_error *err)
{
    const ebb_ollama_settings *s = &e->settings;
    const ebb_ollama_graph *g = &e->graph;
    ebb_ollama_load load;
    ebb_status st = check_words(a, err);

    if (st == EBB_OK)
        st = read_cards(a->ollama_gpus, e, err);
    if (st == EBB_OK)
        st = read_num_gpu(a->ollama_num_gpu, &e->options.num_gpu, err);
    if (st == EBB_OK)
        st = read_projector(a->ollama_projector, &e->options.projector_bytes, err);
    if (st == EBB_OK)
        st = ebb_ollama_model_read(&e->model, m, err);
    if (st != EBB_OK)
        return st;
    resolve_settings(e, a, m);
    e->graph.kv = calloc(e->model.n_layers + 1, sizeof *e->graph.kv);
    if (!e->graph.kv)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %" PRIu64 " layers", e->model.n_layers);
    load = (ebb_ollama_load){ .n_ctx = s->n_ctx, .n_parallel = s->n_parallel, .n_batch = s->n_batch,
                              .kv_type = s->kv_type, .flash = s->flash };
    if (!ebb_ollama_graph_is_in_range(&e->model, &load))
        return EBB_FAIL(err, EBB_USAGE, "a context of %" PRIu64 " for %" PRIu64 " sequences in batches of %" PRIu64
                        " is more than can be counted: give less of each", load.n_ctx, load.n_parallel, load.n_batch);
    ebb_ollama_graph_size(&e->model, &load, e->n_gpus && strcmp(e->gpus[0].library, "Metal") == 0, &e->graph);
    e->options.require_full = a->ollama_require_full;
    e->options.spread = s->spread;
    e->options.overhead_bytes = s->overhead_bytes;
    e->options.system_free_bytes = a->ollama ? 0 : a->engine.ram_bytes;   /* of `ebb plan` it describes ebb's machine */
    st = ebb_ollama_place(&e->model, g, e->gpus, e->n_gpus, &e->options, &e->layout, err);
    if (st != EBB_OK || e->n_gpus == 0)
        return st;
    e->prediction = ebb_ollama_predict(e->vram_bytes, g->kv_total, g->resolved_partial, g->resolved_full,
                                       e->layout.buffer_bytes, e->layout.weight_bytes, e->layout.n_total);
    e->paper = ebb_ollama_predict_on_paper(e->vram_bytes, g->kv_total, g->resolved_partial, e->layout.buffer_bytes,
                                           e->layout.weight_bytes);
    return EBB_OK;
}

ebb_status ebb_cmd_plan_ollama(const ebb_args *a, const ebb_model *m, json_t **json, ebb_error *err)
{
    ebb_cli_ollama *e = calloc(1, sizeof *e);
    ebb_status st;

    *json = NULL;
    if (!e)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for the estimate");
    st = compute_estimate(a, m, e, err);
    if (st == EBB_OK && a->json)
        *json = ebb_cli_ollama_json(e);
    else if (st == EBB_OK)
        ebb_cli_ollama_print(e);
    free(e->graph.kv);
    ebb_ollama_model_fini(&e->model);
    free(e);
    return st;
}

int ebb_cmd_ollama(ebb_args *a)
{
    ebb_model *m = NULL;
    ebb_error err = { 0 };
    json_t *json = NULL;
    ebb_status st = ebb_cli_only_model(a, &err);

    if (st == EBB_OK)
        st = ebb_cli_open_model(a, &m, &err);
    if (st == EBB_OK)
        st = ebb_cmd_plan_ollama(a, m, &json, &err);
    ebb_model_close(m);
    if (st != EBB_OK)
        return ebb_cli_fail(&err);
    return a->json ? ebb_cli_print_json(json) : EBB_EXIT_OK;
}
