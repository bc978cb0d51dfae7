/* ebb plan --table, --modes: many plans of one model, side by side; and the machines that --like describes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ebb/experimental/plan.h"

/* -- A machine that is described ---------------------------------------------------------- */

static ebb_status find_kind(const char *name, ebb_machine_kind *kind, ebb_error *err)
{
    char names[120] = "";

    for (size_t i = 0; ebb_machine_kind_get(i, kind); i++) {
        size_t n = strlen(names);
        if (strcmp(kind->name, name) == 0)
            return EBB_OK;
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", kind->name);
    }
    return EBB_FAIL(err, EBB_USAGE, "--like %.40s: give one of %s", name, names);
}

ebb_status ebb_cli_describe_machine(const ebb_args *a, bool *is_described, ebb_machine *out, ebb_error *err)
{
    ebb_machine_kind kind;
    ebb_status st = EBB_OK;

    *is_described = a->like || a->memory_bytes_s > 0;
    if (!*is_described)
        return EBB_OK;
    if (a->like) {
        st = find_kind(a->like, &kind, err);
        if (st != EBB_OK)
            return st;
        if (a->engine.n_threads)                 /* the share of its speed that so many of its CPUs have */
            kind.mac_s *= (double)a->engine.n_threads / kind.n_cpus;
        if (a->engine.n_threads)
            kind.n_cpus = a->engine.n_threads;
        kind.memory_bytes_s = a->memory_bytes_s > 0 ? a->memory_bytes_s : kind.memory_bytes_s;
        ebb_machine_describe(&kind, out);
    } else {
        st = ebb_machine_probe(NULL, false, out, err);
        if (st != EBB_OK)
            return st;
        ebb_machine_describe_speed(a->memory_bytes_s, a->engine.n_threads ? a->engine.n_threads : out->n_cpus,
                                   out->available_bytes, out);
    }
    if (a->disk_bytes_s > 0) {
        out->disk_busy_bytes_s *= a->disk_bytes_s / out->disk_bytes_s;
        out->disk_bytes_s = a->disk_bytes_s;
    }
    return EBB_OK;
}

/* -- Plans -------------------------------------------------------------------------------- */

typedef struct plan_case {
    ebb_engine_opts opts;
    ebb_plan        plan;
} plan_case;

/* All of them; the disk is measured if one of them needs it. */
static ebb_status make_plans(const ebb_args *a, const ebb_model *m, ebb_machine *machine, bool is_described,
                             plan_case *cases, size_t n, ebb_error *err)
{
    bool streams = false;
    ebb_status st = is_described ? EBB_OK : ebb_machine_measure(machine, m, &a->engine, false, err);

    for (int round = 0; round < 2 && st == EBB_OK; round++) {
        for (size_t i = 0; i < n && st == EBB_OK; i++) {
            st = ebb_plan_make(m, &cases[i].opts, machine, &cases[i].plan, err);
            if (st == EBB_UNSUPPORTED && cases[i].opts.has_kv) {         /* rows that this type cannot have */
                cases[i].plan.fits = false;
                st = EBB_OK;
            }
            streams |= cases[i].plan.stream_bytes > 0;
        }
        if (is_described || machine->disk_bytes_s > 0 || !streams)
            break;
        if (st == EBB_OK)
            st = ebb_machine_measure(machine, m, &a->engine, true, err);
    }
    return st;
}

static json_t *case_json(const plan_case *c)
{
    const ebb_plan *p = &c->plan;
    char kv[24];

    return json_pack("{s:b, s:i, s:s, s:s, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:I}", "fits", (int)p->fits, "ctx",
                     (int)p->n_ctx,
                     "kv_type", ebb_plan_kv_text(p, kv), "tier", ebb_tier_name(p->tier), "layers", (int)p->n_layers,
                     "resident_layers", (int)p->n_resident, "resident_layers_first",
                     (int)p->n_resident_first, "total_bytes", (json_int_t)p->total_bytes,
                     "predicted_decode_tok_s", p->predicted_decode_tok_s, "predicted_full_tok_s",
                     p->predicted_full_tok_s,
                     "predicted_prefill_tok_s", p->predicted_prefill_tok_s, "read_bytes_per_token",
                     (json_int_t)p->stream_bytes);
}

/* -- Context by type of KV ------------------------------------------------------------------ */

enum { MAX_ROWS = 24, N_TYPES = 3 };

/* The contexts from 512 on, doubled, up to what the model was trained for; the last row is the longest in memory. */
static size_t list_contexts(uint32_t train, uint32_t out[MAX_ROWS])
{
    size_t n = 0;

    for (uint64_t c = 512; c < train && n < MAX_ROWS - 2; c *= 2)
        out[n++] = (uint32_t)c;
    if (train)
        out[n++] = train;
    out[n++] = EBB_CTX_MAX;
    return n;
}

/* The longest context is none of those that are asked for. */
static json_t *context_json(const plan_case *c)
{
    json_t *o = case_json(c);

    if (c->opts.n_ctx == EBB_CTX_MAX)
        json_object_set_new(o, "longest", json_true());
    return o;
}

static void print_cell(const plan_case *c)
{
    const ebb_plan *p = &c->plan;
    char speed[16], layers[16];

    snprintf(layers, sizeof layers, "%u/%u", p->n_resident, p->n_layers);
    if (p->fits)
        printf("  %-9s %7s %5s", ebb_tier_name(p->tier), layers, ebb_speed_text(p->predicted_full_tok_s, speed));
    else
        printf("  %-9s %7s %5s", "-", "", "");
}

static void print_context_table(const plan_case *cases, const uint32_t *contexts, size_t n_rows, size_t n_types)
{
    char kv[24];

    printf("%-9s", "");
    for (size_t t = 0; t < n_types; t++)
        printf("  KV %-20s", ebb_plan_kv_text(&cases[t].plan, kv));
    printf("\n%-9s", "context");
    for (size_t t = 0; t < n_types; t++)
        printf("  %-9s %7s %5s", "tier", "layers", "tok/s");
    putchar('\n');
    for (size_t i = 0; i + 1 < n_rows; i++) {
        printf("%9u", contexts[i]);
        for (size_t t = 0; t < n_types; t++)
            print_cell(&cases[i * n_types + t]);
        putchar('\n');
    }
    printf("%-9s", "longest");
    for (size_t t = 0; t < n_types; t++)
        printf("  %-23u", cases[(n_rows - 1) * n_types + t].plan.fits
               ? cases[(n_rows - 1) * n_types + t].plan.n_ctx : 0);
    puts("\n\ntok/s with the context full.  The longest context is the one that stays in memory\n"
         "(of a model that streams: its K and V); --ctx max takes it.");
}

static ebb_status plan_contexts(const ebb_args *a, const ebb_model *m, ebb_machine *machine, bool is_described,
                                int *status, ebb_error *err)
{
    static const ebb_kv_type types[N_TYPES] = { EBB_KV_F16, EBB_KV_Q8_0, EBB_KV_Q4_0 };
    uint32_t contexts[MAX_ROWS];
    size_t n_rows = list_contexts(ebb_model_get_info(m)->n_ctx_train, contexts),
        n_types = a->engine.has_kv ? 1 : N_TYPES;
    plan_case *cases = calloc(n_rows * n_types, sizeof *cases);
    json_t *rows = json_array();
    ebb_status st;

    if (!cases) {
        json_decref(rows);
        return EBB_FAIL(err, EBB_NOMEM, "no memory for %zu plans", n_rows * n_types);
    }
    for (size_t i = 0; i < n_rows * n_types; i++) {
        ebb_engine_opts *o = &cases[i].opts;
        *o = a->engine;
        o->n_ctx = contexts[i / n_types];
        if (!o->has_kv)
            o->kv_k = o->kv_v = types[i % n_types];
        o->has_kv = true;
    }
    st = make_plans(a, m, machine, is_described, cases, n_rows * n_types, err);
    for (size_t i = 0; i < n_rows * n_types && st == EBB_OK; i++)
        json_array_append_new(rows, context_json(&cases[i]));
    if (st == EBB_OK && a->json)
        *status = ebb_cli_print_json(json_pack("{s:O}", "table", rows));
    else if (st == EBB_OK)
        print_context_table(cases, contexts, n_rows, n_types);
    json_decref(rows);
    free(cases);
    return st;
}

/* -- Modes ------------------------------------------------------------------------------------ */

enum { N_MODES = EBB_MODE_MAX_CONTEXT + 1 };

static void print_modes(const plan_case *cases)
{
    char size[16], layers[16], kv[24], first[16], full[16];

    printf("%-12s %9s %-6s %-9s %9s %10s %8s %6s %8s\n", "mode", "context", "KV", "tier", "layers", "memory", "tok/s",
           "full", "prefill");
    for (int i = 0; i < N_MODES; i++) {
        const char *name = ebb_mode_name((ebb_mode)i);
        const ebb_plan *p = &cases[i].plan;

        if (!p->fits) {
            printf("%-12s cannot run: %s\n", name, p->why);
            continue;
        }
        if (p->n_resident_first != p->n_resident)
            snprintf(layers, sizeof layers, "%u-%u/%u", p->n_resident, p->n_resident_first, p->n_layers);
        else
            snprintf(layers, sizeof layers, "%u/%u", p->n_resident, p->n_layers);
        printf("%-12s %9u %-6s %-9s %9s %10s %8s %6s %8.0f\n", name, p->n_ctx, ebb_plan_kv_text(p, kv),
               ebb_tier_name(p->tier), layers,
               ebb_size_text(p->total_bytes, size), ebb_speed_text(p->predicted_decode_tok_s, first),
               ebb_speed_text(p->predicted_full_tok_s, full), p->predicted_prefill_tok_s);
    }
    puts("\nLayers and tok/s with the context full and at the beginning.  `ebb bench --modes` measures them.");
}

static ebb_status plan_modes(const ebb_args *a, const ebb_model *m, ebb_machine *machine, bool is_described,
                             int *status, ebb_error *err)
{
    plan_case cases[N_MODES];
    json_t *root = json_object();
    ebb_status st;

    for (int i = 0; i < N_MODES; i++) {
        cases[i] = (plan_case){ .opts = a->engine };
        cases[i].opts.mode = (ebb_mode)i;
    }
    st = make_plans(a, m, machine, is_described, cases, N_MODES, err);
    for (int i = 0; i < N_MODES && st == EBB_OK; i++)
        json_object_set_new(root, ebb_mode_name((ebb_mode)i), case_json(&cases[i]));
    if (st == EBB_OK && a->json)
        *status = ebb_cli_print_json(json_incref(root));
    else if (st == EBB_OK)
        print_modes(cases);
    json_decref(root);
    return st;
}

static void print_heading(const ebb_model *m, const ebb_machine *machine)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    char size[16];

    ebb_cli_print_name(info->name);
    printf("  %s, %u layers; %s available (", info->quantization, info->n_layers,
           ebb_size_text(machine->available_bytes, size));
    printf("%s), %u CPUs\n", machine->available_why, machine->n_cpus);
    if (machine->memory_bytes_s > 0)
        printf("memory %.1f GB/s", machine->memory_bytes_s / 1e9);
    if (machine->disk_bytes_s > 0)
        printf(", disk %.2f GB/s", machine->disk_bytes_s / 1e9);
    puts("\n");
}

ebb_status ebb_cmd_plan_table(const ebb_args *a, const ebb_model *m, ebb_machine *machine, bool is_described,
                              int *status, ebb_error *err)
{
    if (a->is_table && a->is_modes)
        return EBB_FAIL(err, EBB_USAGE, "--table or --modes: one at a time");
    if (!a->json) {                              /* with what is measured in it */
        ebb_status st = is_described ? EBB_OK : ebb_machine_measure(machine, m, &a->engine, false, err);
        if (st != EBB_OK)
            return st;
        print_heading(m, machine);
    }
    return a->is_modes ? plan_modes(a, m, machine, is_described, status, err)
                       : plan_contexts(a, m, machine, is_described, status, err);
}
