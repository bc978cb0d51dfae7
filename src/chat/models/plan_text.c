/* Plans in words (plan_text.h). */
#include "models/plan_text.h"

#include <stdio.h>
#include <string.h>

#define BAR_CELLS 30

const char *ebb_speed_text(double tok_s, char out[16])
{
    snprintf(out, 16, tok_s < 0.995 ? "%.2f" : tok_s < 9.95 ? "%.1f" : "%.0f", tok_s);
    return out;
}

static const char *const kv_names[] = {
    [EBB_KV_F16] = "f16", [EBB_KV_Q8_0] = "q8_0", [EBB_KV_Q4_0] = "q4_0", [EBB_KV_F32] = "f32",
};

const char *ebb_plan_kv_text(const ebb_plan *p, char out[24])
{
    if (p->kv_k == p->kv_v)
        snprintf(out, 24, "%s", kv_names[p->kv_k]);
    else
        snprintf(out, 24, "%s/%s", kv_names[p->kv_k], kv_names[p->kv_v]);
    return out;
}

void ebb_plan_parts(const ebb_plan *p, ebb_plan_part out[EBB_PLAN_PARTS])
{
    const ebb_plan_part parts[EBB_PLAN_PARTS] = {
        { "weights_resident", "weights, resident", p->weights_resident_bytes },
        { "weights_ring", "weights, ring", p->weights_ring_bytes + p->expert_bytes },
        { "kv", "KV cache", p->kv_bytes },
        { "activations", "activations", p->activation_bytes },
        { "draft", "draft model", p->draft_bytes },
        { "tokenizer", "tokenizer", p->tokenizer_bytes },
        { "code", "code and tables", p->code_bytes },
        { "reserve", "reserve", p->reserve_bytes },
    };

    memcpy(out, parts, sizeof parts);
}

static void add_bar(ebb_buf *out, uint64_t bytes, uint64_t whole)
{
    int cells = whole ? (int)((double)bytes * BAR_CELLS / (double)whole + 0.5) : 0;

    for (int i = 0; i < BAR_CELLS; i++)
        ebb_buf_addc(out, i < cells ? '#' : '.');
}

static void add_part_lines(ebb_buf *out, const ebb_plan *p)
{
    ebb_plan_part parts[EBB_PLAN_PARTS];
    uint64_t whole = p->budget_bytes > p->total_bytes ? p->budget_bytes : p->total_bytes;
    char size[16], size2[16];

    ebb_plan_parts(p, parts);
    for (int i = 0; i < EBB_PLAN_PARTS; i++) {
        if (parts[i].bytes == 0 && strcmp(parts[i].key, "draft") == 0)
            continue;                            /* only with a draft model */
        ebb_buf_addf(out, "  %-20s %10s  ", parts[i].label, ebb_size_text(parts[i].bytes, size));
        add_bar(out, parts[i].bytes, whole);
        ebb_buf_addc(out, '\n');
    }
    ebb_buf_addf(out, "  %-20s %10s  of %s\n\n", "total", ebb_size_text(p->total_bytes, size),
                 ebb_size_text(p->budget_bytes, size2));
}

static void add_draft_text(ebb_buf *out, const ebb_plan *p)
{
    char with[16], without[16];

    if (p->draft_bytes > 0 && p->draft_length > 0)
        ebb_buf_addf(out, "with the draft model: %s tok/s, if %.0f %% of its draft tokens are accepted;\n"
                     "  it then drafts %u for each pass; without it there are %s tok/s\n",
                     ebb_speed_text(p->draft_tok_s, with),
                     100 * p->draft_accept_rate, p->draft_length, ebb_speed_text(p->no_draft_tok_s, without));
    else if (p->draft_why[0])
        ebb_buf_addf(out, "draft model: %s\n", p->draft_why);
    if (p->draft_head_bytes > 0)
        ebb_buf_addf(out, "draft head in the file (%s): %s\n", ebb_size_text(p->draft_head_bytes, with), p->draft_head);
    else if (p->draft_head[0])
        ebb_buf_addf(out, "draft head in the file: %s\n", p->draft_head);
}

/* A streamed model that writes more slowly than one reads: what would hold it, and that it can answer here. */
static void add_machine_advice(ebb_buf *out, const ebb_model_info *model, const ebb_plan *p)
{
    static const double reading_tok_s = 5;       /* 250 words a minute */
    uint64_t weights = p->weights_resident_bytes + p->weights_ring_bytes + p->expert_bytes;
    char size[16];

    if (p->stream_bytes == 0 || p->predicted_decode_tok_s >= reading_tok_s || weights >= model->weight_bytes)
        return;
    ebb_buf_addf(out, "that is slower than reading speed (%.0f tok/s); a machine with %s to spare holds all of it "
                      "and can answer for this one: ebb --host USER@BOX, or any server with ebb -e\n",
                 reading_tok_s, ebb_size_text(p->total_bytes - weights + model->weight_bytes, size));
}

uint32_t ebb_plan_trained_ctx(const ebb_model *m)
{
    uint32_t n = ebb_model_get_info(m)->n_ctx_train;
    const char *type = ebb_model_meta_string(m, ".rope.scaling.type");
    double factor, before;

    if (!type || (strcmp(type, "yarn") != 0 && strcmp(type, "linear") != 0) ||
        !ebb_model_meta_number(m, ".rope.scaling.factor", &factor) ||
        !ebb_model_meta_number(m, ".rope.scaling.original_context_length", &before))
        return n;
    return before > 0 && factor * before > n && factor * before < UINT32_MAX ? (uint32_t)(factor * before) : n;
}

void ebb_plan_text(ebb_buf *out, const ebb_model *m, const ebb_machine *machine, const ebb_plan *p)
{
    const ebb_model_info *model = ebb_model_get_info(m);
    uint32_t trained = ebb_plan_trained_ctx(m);
    char size[16], read[16], kv[24];

    ebb_buf_addf(out, "%s  %s %s, %u layers\n", model->name, model->arch, model->quantization, model->n_layers);
    ebb_buf_addf(out, "%s available (%s), %u CPUs\n\n", ebb_size_text(machine->available_bytes, size),
                 machine->available_why, machine->n_cpus);
    add_part_lines(out, p);
    ebb_buf_addf(out, "tier %s: %s\n", ebb_tier_name(p->tier), p->why);
    ebb_buf_addf(out, "%u of %u layers resident, context %u tokens", p->n_resident, p->n_layers, p->n_ctx);
    if (trained > p->n_ctx)
        ebb_buf_addf(out, " (--ctx takes up to %u)", trained);
    ebb_buf_addf(out, ", KV %s\n", ebb_plan_kv_text(p, kv));
    if (p->lent_bytes > 0)
        ebb_buf_addf(out, "%u of %u layers at first: %s of the KV cache keep layers in memory until the context "
                          "grows\n",
                     p->n_resident_first, p->n_layers, ebb_size_text(p->lent_bytes, size));
    if (p->kv_spill_bytes > 0)
        ebb_buf_addf(out, "KV: %s in memory, %s in a file as the context fills\n", ebb_size_text(p->kv_bytes, size),
                     ebb_size_text(p->kv_spill_bytes, read));
    if (p->expert_hit_rate > 0)
        ebb_buf_addf(out, "experts: %s for the most used; about %.0f %% of the chosen ones are found there; %s are "
                          "read for each token\n",
                     ebb_size_text(p->expert_bytes, size), 100 * p->expert_hit_rate,
                     ebb_size_text(p->stream_bytes, read));
    if (trained > 0 && p->n_ctx > trained)
        ebb_buf_addf(out, "the model was trained for %u tokens: beyond that its answers fall apart\n", trained);
    if (!p->is_mapped && p->weights_resident_bytes + p->lent_bytes)
        ebb_buf_addf(out, "%s are read into memory at the start, in about %.1f s\n",
                     ebb_size_text(p->weights_resident_bytes + p->lent_bytes, size), p->predicted_load_s);
    if (machine->disk_bytes_s > 0)
        ebb_buf_addf(out, "disk %.2f GB/s%s", machine->disk_bytes_s / 1e9, machine->memory_bytes_s > 0 ? ", " : "\n");
    if (machine->memory_bytes_s > 0)
        ebb_buf_addf(out, "memory %.1f GB/s by the kernels\n", machine->memory_bytes_s / 1e9);
    ebb_buf_addf(out, "predicted: %s tok/s decode, %.0f tok/s prefill, first token after %.1f s\n",
                 ebb_speed_text(p->predicted_decode_tok_s, size), p->predicted_prefill_tok_s,
                 p->predicted_first_token_s);
    ebb_buf_addf(out, "  with all of the context in use: %s tok/s decode\n",
                 ebb_speed_text(p->predicted_full_tok_s, size));
    add_draft_text(out, p);
    add_machine_advice(out, model, p);
}

void ebb_plan_line(ebb_buf *out, const ebb_plan *p)
{
    char size[16], speed[16];

    ebb_buf_addf(out, "budget %s: tier %s, %u of %u layers in memory, about %s tok/s",
                 ebb_size_text(p->budget_bytes, size), ebb_tier_name(p->tier), p->n_resident_first, p->n_layers,
                 ebb_speed_text(p->predicted_decode_tok_s, speed));
    if (p->stream_bytes > p->lent_read_bytes)
        ebb_buf_addf(out, "; %s are read for each token", ebb_size_text(p->stream_bytes - p->lent_read_bytes, size));
    if (p->lent_bytes > 0)
        ebb_buf_addf(out, "; with a full context %u layer%s and %s tok/s", p->n_resident, p->n_resident == 1 ? "" : "s",
                     ebb_speed_text(p->predicted_full_tok_s, speed));
}

/* The type that text[0..n) names; -1: none. */
static int kv_type(const char *text, size_t n)
{
    for (int i = 0; i < (int)(sizeof kv_names / sizeof kv_names[0]); i++)
        if (strlen(kv_names[i]) == n && memcmp(kv_names[i], text, n) == 0)
            return i;
    return -1;
}

bool ebb_kv_parse(const char *text, ebb_engine_opts *o)
{
    size_t n = strcspn(text, "/");
    int k = kv_type(text, n), v = text[n] ? kv_type(text + n + 1, strlen(text + n + 1)) : k;

    if (k < 0 || v < 0)
        return false;
    o->has_kv = true;
    o->kv_k = (ebb_kv_type)k;
    o->kv_v = (ebb_kv_type)v;
    return true;
}
