/* ebb plan: where the memory would go, which tier, what speed. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "ebb/plan.h"

static int print_json(const ebb_plan *p)
{
    ebb_plan_part parts[EBB_PLAN_PARTS];
    char kv[24];
    json_t *object = json_object(), *root;

    ebb_plan_parts(p, parts);
    for (int i = 0; i < EBB_PLAN_PARTS; i++)
        json_object_set_new(object, parts[i].key, json_integer((json_int_t)parts[i].bytes));
    root = json_pack("{s:s, s:b, s:i, s:s, s:i, s:i, s:I, s:I, s:o, s:f, s:f, s:f, s:I, s:I, s:s}",
                     "tier", ebb_tier_name(p->tier), "fits", (int)p->fits, "ctx", (int)p->n_ctx, "kv_type", ebb_plan_kv_text(p, kv),
                     "layers", (int)p->n_layers, "resident_layers", (int)p->n_resident,
                     "total_bytes", (json_int_t)p->total_bytes, "available_bytes", (json_int_t)p->budget_bytes,
                     "parts", object, "predicted_decode_tok_s", p->predicted_decode_tok_s,
                     "predicted_prefill_tok_s", p->predicted_prefill_tok_s,
                     "predicted_first_token_s", p->predicted_first_token_s, "pass_bytes", (json_int_t)p->pass_bytes,
                     "read_bytes_per_token", (json_int_t)p->stream_bytes, "why", p->why);
    return ebb_cli_print_json(root);
}

static void print_table(const ebb_model *m, const ebb_machine *machine, const ebb_plan *p)
{
    ebb_buf text = { 0 };

    ebb_plan_text(&text, ebb_model_get_info(m), machine, p);
    ebb_cli_print(ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
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
