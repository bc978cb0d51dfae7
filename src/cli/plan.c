/* ebb plan: where the memory would go, which tier, what speed. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "ebb/plan.h"

static const char *const kv_type_names[] = { "f16", "q8_0", "q4_0", "f32" };

typedef struct part {
    const char *key, *label;
    uint64_t    bytes;
} part;

#define N_PARTS 7
static void parts_of(const ebb_plan *p, part out[N_PARTS])
{
    const part parts[N_PARTS] = {
        { "weights_resident", "weights, resident", p->weights_resident_bytes },
        { "weights_ring", "weights, ring", p->weights_ring_bytes },
        { "kv", "KV cache", p->kv_bytes },
        { "activations", "activations", p->activation_bytes },
        { "tokenizer", "tokenizer", p->tokenizer_bytes },
        { "code", "code and tables", p->code_bytes },
        { "reserve", "reserve", p->reserve_bytes },
    };
    memcpy(out, parts, sizeof parts);
}

static void kv_name(const ebb_plan *p, char out[24])
{
    if (p->kv_k == p->kv_v)
        snprintf(out, 24, "%s", kv_type_names[p->kv_k]);
    else
        snprintf(out, 24, "%s/%s", kv_type_names[p->kv_k], kv_type_names[p->kv_v]);
}

static int print_json(const ebb_plan *p)
{
    part parts[N_PARTS];
    char kv[24];
    json_t *object = json_object(), *root;

    parts_of(p, parts);
    kv_name(p, kv);
    for (int i = 0; i < N_PARTS; i++)
        json_object_set_new(object, parts[i].key, json_integer((json_int_t)parts[i].bytes));
    root = json_pack("{s:s, s:b, s:i, s:s, s:i, s:i, s:I, s:I, s:o, s:f, s:f, s:f, s:I, s:I, s:s}",
                     "tier", ebb_tier_name(p->tier), "fits", (int)p->fits, "ctx", (int)p->n_ctx, "kv_type", kv,
                     "layers", (int)p->n_layers, "resident_layers", (int)p->n_resident,
                     "total_bytes", (json_int_t)p->total_bytes, "available_bytes", (json_int_t)p->budget_bytes,
                     "parts", object, "predicted_decode_tok_s", p->predicted_decode_tok_s,
                     "predicted_prefill_tok_s", p->predicted_prefill_tok_s,
                     "predicted_first_token_s", p->predicted_first_token_s, "pass_bytes", (json_int_t)p->pass_bytes,
                     "read_bytes_per_token", (json_int_t)p->stream_bytes, "why", p->why);
    return ebb_cli_print_json(root);
}

static void print_bar(uint64_t bytes, uint64_t whole)
{
    int cells = whole ? (int)((double)bytes * 30 / (double)whole + 0.5) : 0;

    for (int i = 0; i < 30; i++)
        putchar(i < cells ? '#' : '.');
}

static void print_table(const ebb_model *m, const ebb_machine *machine, const ebb_plan *p)
{
    const ebb_model_info *info = ebb_model_get_info(m);
    part parts[N_PARTS];
    char size[16], size2[16], kv[24];
    uint64_t whole = p->budget_bytes > p->total_bytes ? p->budget_bytes : p->total_bytes;

    parts_of(p, parts);
    kv_name(p, kv);
    ebb_cli_print(info->name, strlen(info->name));
    printf("  %s %s, %u layers\n", info->arch, info->mix, info->n_layers);
    printf("%s available (%s), %u CPUs\n\n", ebb_cli_bytes(machine->available_bytes, size), machine->available_why, machine->n_cpus);
    for (int i = 0; i < N_PARTS; i++) {
        printf("  %-20s %10s  ", parts[i].label, ebb_cli_bytes(parts[i].bytes, size));
        print_bar(parts[i].bytes, whole);
        putchar('\n');
    }
    printf("  %-20s %10s  of %s\n\n", "total", ebb_cli_bytes(p->total_bytes, size), ebb_cli_bytes(p->budget_bytes, size2));
    printf("tier %s: %s\n", ebb_tier_name(p->tier), p->why);
    printf("%u of %u layers resident, context %u tokens, KV %s\n", p->n_resident, p->n_layers, p->n_ctx, kv);
    if (p->stream_bytes)
        printf("%s are read from disk for each token\n", ebb_cli_bytes(p->stream_bytes, size));
    if (!p->is_mapped && p->weights_resident_bytes)
        printf("%s are read into memory at the start, in about %.1f s\n", ebb_cli_bytes(p->weights_resident_bytes, size),
               p->predicted_load_s);
    printf("disk %.2f GB/s, memory %.1f GB/s by the kernels\n", machine->disk_bytes_s / 1e9, machine->memory_bytes_s / 1e9);
    printf("predicted: %.2f tok/s decode, %.0f tok/s prefill, first token after %.1f s\n", p->predicted_decode_tok_s,
           p->predicted_prefill_tok_s, p->predicted_first_token_s);
}

/* This machine, or the one that --ram and --disk describe. */
static ebb_status get_machine(const ebb_args *a, const ebb_model *m, ebb_machine *machine, ebb_error *err)
{
    ebb_status st = ebb_machine_probe(ebb_model_get_info(m)->path, true, machine, err);

    if (st != EBB_OK)
        return st;
    if (a->engine.ram_bytes) {
        machine->available_bytes = a->engine.ram_bytes;
        machine->kept_bytes = 0;
        snprintf(machine->available_why, sizeof machine->available_why, "--ram");
    }
    if (a->disk_bytes_s > 0)
        machine->disk_bytes_s = a->disk_bytes_s;
    return EBB_OK;
}

int ebb_cli_plan(ebb_args *a)
{
    ebb_model *m = NULL;
    ebb_machine machine;
    ebb_plan plan;
    ebb_error err = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st = ebb_cli_open_model(a, &m, &err);

    if (st == EBB_OK && a->ollama)
        st = ebb_plan_ollama(a, m, &status, &err);
    if (st == EBB_OK && a->ollama && a->json) {  /* one object on standard output, and nothing else */
        ebb_model_close(m);
        return status;
    }
    if (st == EBB_OK)
        st = get_machine(a, m, &machine, &err);
    if (st == EBB_OK)
        st = ebb_plan_make(m, &a->engine, &machine, &plan, &err);
    if (st == EBB_OK && a->json)
        status = print_json(&plan);
    else if (st == EBB_OK)
        print_table(m, &machine, &plan);
    ebb_model_close(m);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
