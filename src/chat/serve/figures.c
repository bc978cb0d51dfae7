/* Figures as JSON (figures.h). */
#include "serve/figures.h"

#include <string.h>

#include "base/utf8.h"

json_t *ebb_figures_text(const char *text)
{
    ebb_buf valid = { 0 };
    json_t *j = ebb_utf8_add_valid(&valid, text, strlen(text)) ? json_stringn(ebb_buf_text(&valid), valid.len) : NULL;

    ebb_buf_fini(&valid);
    return j ? j : json_null();
}

static void put_count(json_t *o, const char *name, uint64_t n)
{
    json_object_set_new(o, name, json_integer((json_int_t)n));
}

void ebb_figures_put(json_t *o, const ebb_stats *s)
{
    char decision[EBB_MEMORY_EVENT_TEXT];

    json_object_set_new(o, "tier", json_string(ebb_tier_name(s->tier)));
    put_count(o, "context", s->n_ctx);
    put_count(o, "used", s->n_ctx_used);
    json_object_set_new(o, "prefill_tok_s", json_real(s->prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", json_real(s->decode_tok_s));
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
    put_count(o, "read_bytes", s->read_bytes);
    put_count(o, "threads", s->n_threads);
    json_object_set_new(o, "cpu", json_string(s->cpu));
    json_object_set_new(o, "io", json_string(s->io));
    json_object_set_new(o, "kv_type", json_string(s->kv_type));
    put_count(o, "drafted", s->n_drafted);
    put_count(o, "accepted", s->n_accepted);
    put_count(o, "draft_bytes", s->draft_bytes);
    json_object_set_new(o, "disk_bytes_s", json_real(s->disk_bytes_s));
    json_object_set_new(o, "stall_share", json_real(s->stall_share));
    if (s->experts_selected > 0)
        json_object_set_new(o, "expert_hits", json_real((double)s->experts_resident / (double)s->experts_selected));
    json_object_set_new(o, "decision", ebb_figures_text(ebb_memory_event_text(&s->memory_event, decision,
        sizeof decision)));
}
