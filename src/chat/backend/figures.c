/* Figures as JSON (figures.h). */
#include "backend/figures.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "json/json_text.h"

/* -- To JSON ------------------------------------------------------------------------------------- */

/* A character for each layer, by its state. */
static const char layer_letters[] = { [EBB_LAYER_DISK] = '.', [EBB_LAYER_PARTLY] = '+', [EBB_LAYER_READING] = '*',
                                      [EBB_LAYER_MAPPED] = '=', [EBB_LAYER_PINNED] = '#' };
enum { N_LAYER_STATES = sizeof layer_letters };

static void put_count(json_t *o, const char *name, uint64_t n)
{
    json_object_set_new(o, name, json_integer((json_int_t)n));
}

static json_t *layers_json(const ebb_stats *s)
{
    char letters[EBB_STATS_LAYERS];
    size_t n = s->n_layers < EBB_STATS_LAYERS ? s->n_layers : EBB_STATS_LAYERS;

    for (size_t i = 0; i < n; i++)
        letters[i] = layer_letters[s->layer[i] < N_LAYER_STATES ? s->layer[i] : EBB_LAYER_DISK];
    return json_stringn(letters, n);
}

void ebb_figures_put(json_t *o, const ebb_stats *s)
{
    char decision[EBB_MEMORY_EVENT_TEXT];

    json_object_set_new(o, "tier", json_string(ebb_tier_name(s->tier)));
    put_count(o, "context", s->n_ctx);
    put_count(o, "used", s->n_ctx_used);
    json_object_set_new(o, "prefill_tok_s", json_real(s->prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", json_real(s->decode_tok_s));
    json_object_set_new(o, "predicted_tok_s", json_real(s->predicted_decode_tok_s));
    put_count(o, "prefill_done", s->prefill_done);
    put_count(o, "prefill_total", s->prefill_total);
    put_count(o, "generated", s->generated_tok);
    put_count(o, "reused", s->reused_tok);
    put_count(o, "anon_bytes", s->rss_anon_bytes);
    put_count(o, "file_bytes", s->rss_file_bytes);
    put_count(o, "peak_bytes", s->rss_peak_bytes);
    put_count(o, "budget_bytes", s->budget_bytes);
    put_count(o, "rss_bytes", s->rss_bytes);
    put_count(o, "swap_bytes", s->swap_bytes);
    json_object_set_new(o, "available_bytes", json_integer((json_int_t)s->available_bytes));
    if (s->pressure_avg10 >= 0)
        json_object_set_new(o, "pressure_avg10", json_real(s->pressure_avg10));
    json_object_set_new(o, "mode", json_string(s->mode));
    put_count(o, "kv_bytes", s->kv_bytes);
    put_count(o, "kv_memory_bytes", s->kv_memory_bytes);
    put_count(o, "kv_file_bytes", s->kv_file_bytes);
    put_count(o, "kv_free_bytes", ebb_stats_kv_free_bytes(s));
    put_count(o, "kv_lent_bytes", s->kv_lent_bytes);
    json_object_set_new(o, "read_tok_bytes", json_real(s->read_tok_bytes));
    put_count(o, "layers", s->n_layers);
    put_count(o, "resident", s->n_resident);
    json_object_set_new(o, "layer_states", layers_json(s));
    put_count(o, "read_bytes", s->read_bytes);
    put_count(o, "threads", s->n_threads);
    json_object_set_new(o, "cpu", json_string(s->cpu));
    json_object_set_new(o, "io", json_string(s->io));
    json_object_set_new(o, "kv_type", json_string(s->kv_type));
    put_count(o, "drafted", s->n_drafted);
    put_count(o, "accepted", s->n_accepted);
    put_count(o, "branched", s->n_branched);
    put_count(o, "draft_bytes", s->draft_bytes);
    json_object_set_new(o, "disk_bytes_s", json_real(s->disk_bytes_s));
    json_object_set_new(o, "stall_share", json_real(s->stall_share));
    put_count(o, "experts_selected", s->experts_selected);
    put_count(o, "experts_resident", s->experts_resident);
    if (s->experts_selected > 0)
        json_object_set_new(o, "expert_hits", json_real((double)s->experts_resident / (double)s->experts_selected));
    json_object_set_new(o, "decision", ebb_json_text_or_null(ebb_memory_event_text(&s->memory_event, decision,
        sizeof decision)));
}

/* -- From JSON ----------------------------------------------------------------------------------- */

/* Larger ones are no sizes or counts of any machine, and are exact in a double no more. */
#define MOST 9e15

static double number_in(const json_t *o, const char *name, double least)
{
    double v = json_number_value(json_object_get(o, name));

    return v >= least && v <= MOST ? v : 0;
}

static uint64_t get_bytes(const json_t *o, const char *name)
{
    return (uint64_t)number_in(o, name, 0);
}

static uint32_t get_count(const json_t *o, const char *name)
{
    double v = number_in(o, name, 0);

    return v <= UINT32_MAX ? (uint32_t)v : 0;
}

/* A word that gauges print as it is. */
static void get_word(const json_t *o, const char *name, char *out, size_t cap)
{
    const char *s = json_string_value(json_object_get(o, name));
    size_t n = 0;

    for (; s && *s && n + 1 < cap; s++)
        if (*s > ' ' && *s < 127)
            out[n++] = *s;
    out[n] = '\0';
}

static ebb_tier get_tier(const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "tier"));

    for (ebb_tier tier = EBB_TIER_FULL; name && tier <= EBB_TIER_CRITICAL; tier++)
        if (strcmp(name, ebb_tier_name(tier)) == 0)
            return tier;
    return EBB_TIER_FULL;
}

static void get_layers(const json_t *o, ebb_stats *s)
{
    const char *letters = json_string_value(json_object_get(o, "layer_states"));
    const char *at;

    s->n_layers = get_count(o, "layers");
    s->n_resident = get_count(o, "resident");
    if (s->n_resident > s->n_layers)
        s->n_resident = s->n_layers;
    for (size_t i = 0; letters && letters[i] && i < EBB_STATS_LAYERS; i++) {
        at = memchr(layer_letters, letters[i], N_LAYER_STATES);
        s->layer[i] = at ? (uint8_t)(at - layer_letters) : EBB_LAYER_DISK;
    }
}

static void get_memory(const json_t *o, ebb_stats *s)
{
    s->rss_bytes = get_bytes(o, "rss_bytes");
    s->rss_anon_bytes = get_bytes(o, "anon_bytes");
    s->rss_file_bytes = get_bytes(o, "file_bytes");
    s->rss_peak_bytes = get_bytes(o, "peak_bytes");
    s->budget_bytes = get_bytes(o, "budget_bytes");
    s->swap_bytes = get_bytes(o, "swap_bytes");
    s->available_bytes = (int64_t)number_in(o, "available_bytes", -MOST);
    s->pressure_avg10 = json_object_get(o, "pressure_avg10") ? number_in(o, "pressure_avg10", 0) : -1;
    s->draft_bytes = get_bytes(o, "draft_bytes");
    s->kv_bytes = get_bytes(o, "kv_bytes");
    s->kv_memory_bytes = get_bytes(o, "kv_memory_bytes");
    s->kv_file_bytes = get_bytes(o, "kv_file_bytes");
    s->kv_lent_bytes = get_bytes(o, "kv_lent_bytes");
    get_word(o, "kv_type", s->kv_type, sizeof s->kv_type);
    get_word(o, "mode", s->mode, sizeof s->mode);
}

static void get_speed(const json_t *o, ebb_stats *s)
{
    s->prefill_tok_s = number_in(o, "prefill_tok_s", 0);
    s->decode_tok_s = number_in(o, "decode_tok_s", 0);
    s->predicted_decode_tok_s = number_in(o, "predicted_tok_s", 0);
    s->read_bytes = get_bytes(o, "read_bytes");
    s->read_tok_bytes = number_in(o, "read_tok_bytes", 0);
    s->disk_bytes_s = number_in(o, "disk_bytes_s", 0);
    s->stall_share = number_in(o, "stall_share", 0);
    s->experts_selected = get_bytes(o, "experts_selected");
    s->experts_resident = get_bytes(o, "experts_resident");
    s->n_drafted = get_bytes(o, "drafted");
    s->n_accepted = get_bytes(o, "accepted");
    s->n_branched = get_bytes(o, "branched");
}

bool ebb_figures_get(const json_t *o, ebb_server_figures *out)
{
    const char *decision = json_string_value(json_object_get(o, "decision"));
    ebb_server_figures f = { .taken_ms = ebb_clock_unix_ms() };

    if (!json_is_string(json_object_get(o, "tier")) || !json_is_integer(json_object_get(o, "layers")))
        return false;
    f.n_clients = get_count(o, "clients");
    f.n_running = get_count(o, "running");
    f.n_waiting = get_count(o, "waiting");
    f.stats.tier = get_tier(o);
    f.stats.n_threads = get_count(o, "threads");
    f.stats.n_ctx = get_count(o, "context");
    f.stats.n_ctx_used = get_count(o, "used");
    get_word(o, "cpu", f.stats.cpu, sizeof f.stats.cpu);
    get_word(o, "io", f.stats.io, sizeof f.stats.io);
    get_memory(o, &f.stats);
    get_layers(o, &f.stats);
    get_speed(o, &f.stats);
    snprintf(f.decision, sizeof f.decision, "%s", decision ? decision : "");
    *out = f;
    return true;
}
