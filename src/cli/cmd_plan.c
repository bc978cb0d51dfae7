/* ebb plan: where the memory would go, which tier, what speed. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "ebb/experimental/kv_cache.h"
#include "ebb/experimental/plan.h"
#include "json/json_text.h"
#include "models/models.h"

#define MOSTLY 0.95

static json_t *plan_json(const ebb_plan *p)
{
    ebb_plan_part parts[EBB_PLAN_PARTS];
    char kv[24];
    json_t *object = json_object(), *root;

    ebb_plan_parts(p, parts);
    for (int i = 0; i < EBB_PLAN_PARTS; i++)
        json_object_set_new(object, parts[i].key, json_integer((json_int_t)parts[i].bytes));
    root = json_pack("{s:s, s:b, s:i, s:s, s:i, s:i, s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:s}",
                     "tier", ebb_tier_name(p->tier), "fits", (int)p->fits, "ctx", (int)p->n_ctx, "kv_type",
                     ebb_plan_kv_text(p, kv), "layers", (int)p->n_layers, "resident_layers", (int)p->n_resident,
                     "total_bytes", (json_int_t)p->total_bytes, "available_bytes", (json_int_t)p->budget_bytes,
                     "parts", object, "predicted_decode_tok_s", p->predicted_decode_tok_s,
                     "predicted_full_tok_s", p->predicted_full_tok_s,
                     "predicted_prefill_tok_s", p->predicted_prefill_tok_s,
                     "predicted_first_token_s", p->predicted_first_token_s, "pass_bytes", (json_int_t)p->pass_bytes,
                     "kv_file_bytes", (json_int_t)p->kv_spill_bytes,
                     "read_bytes_per_token", (json_int_t)p->stream_bytes, "expert_hits", p->expert_hit_rate,
                     "why", p->why);
    if (p->lent_bytes > 0)
        json_object_set_new(root, "lent", json_pack("{s:I, s:I, s:i}", "bytes", (json_int_t)p->lent_bytes,
                            "read_bytes_per_token", (json_int_t)(p->stream_bytes - p->lent_read_bytes),
                            "resident_layers", (int)p->n_resident_first));
    if (p->left_out[0])
        json_object_set_new(root, "left_out", ebb_json_text_or_null(p->left_out));
    if (p->draft_head[0])
        json_object_set_new(root, "draft_head",
                            json_pack("{s:I, s:b, s:f, s:f, s:f, s:s}", "bytes", (json_int_t)p->draft_head_bytes,
                            "used", p->draft_head_bytes > 0, "assumed_right", p->draft_accept_rate, "predicted_tok_s",
                            p->draft_tok_s, "without_tok_s", p->no_draft_tok_s, "why", p->draft_head));
    if (p->draft_why[0])
        json_object_set_new(root, "draft",
                            json_pack("{s:I, s:f, s:i, s:f, s:f, s:s}", "bytes", (json_int_t)p->draft_bytes,
                            "assumed_right", p->draft_accept_rate, "guesses", (int)p->draft_length, "predicted_tok_s",
                            p->draft_tok_s, "without_tok_s", p->no_draft_tok_s, "why", p->draft_why));
    return root;
}

static void print_plan_table(const ebb_model *m, const ebb_machine *machine, const ebb_plan *p)
{
    ebb_buf text = { 0 };

    ebb_plan_text(&text, m, machine, p);
    ebb_cli_print(ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
}

/* This machine, or the one that --like, --memory, --ram and --disk describe. */
static ebb_status get_machine(const ebb_args *a, ebb_machine *machine, bool *is_described, ebb_error *err)
{
    ebb_status st = ebb_cli_describe_machine(a, is_described, machine, err);

    if (st == EBB_OK && !*is_described)
        st = ebb_machine_probe(NULL, false, machine, err);
    if (st != EBB_OK)
        return st;
    if (a->engine.ram_bytes) {
        machine->available_bytes = a->engine.ram_bytes;
        machine->os_reserve_bytes = 0;
        snprintf(machine->available_why, sizeof machine->available_why, "--ram");
    }
    if (!*is_described)
        machine->disk_bytes_s = a->disk_bytes_s;         /* 0: it is measured */
    return EBB_OK;
}

/* -- All models of this machine ------------------------------------------------------ */

static void print_rating(const ebb_model_rating *r, bool is_chosen)
{
    const char *name = ebb_models_name(&r->file);
    char size[16], context[16], speed[16];

    printf("%c %-9s %10s %-8s ", is_chosen ? '*' : ' ', r->why_not[0] ? "-" : ebb_tier_name(r->plan.tier),
           ebb_size_text(r->file.n_bytes, size), r->quantization);
    if (r->why_not[0]) {
        printf("%-26s ", "cannot run");
    } else {
        snprintf(context, sizeof context, "%u", r->plan.n_ctx);
        printf("%3u/%-3u %7s %10s ", r->plan.n_resident, r->plan.n_layers, context,
               ebb_speed_text(r->plan.predicted_decode_tok_s, speed));
    }
    ebb_cli_print_name(name);
    putchar('\n');
    if (r->why_not[0]) {
        printf("%12s", "");
        ebb_cli_print(r->why_not, strlen(r->why_not));
        putchar('\n');
    }
}

static void print_ratings(const ebb_machine *machine, const ebb_model_rating *r, size_t n, const char *chosen)
{
    ebb_buf why = { 0 };
    char size[16];

    printf("%s available (%s), %u CPUs\n", ebb_size_text(machine->available_bytes, size), machine->available_why,
           machine->n_cpus);
    if (machine->disk_bytes_s > 0)               /* no model needed it */
        printf("disk %.2f GB/s, ", machine->disk_bytes_s / 1e9);
    if (machine->memory_bytes_s > 0)             /* none could be read */
        printf("memory %.1f GB/s by the kernels\n", machine->memory_bytes_s / 1e9);
    printf("\n  %-9s %10s %-8s %7s %7s %10s %s\n", "tier", "size", "type", "layers", "context", "tok/s", "model");
    for (size_t i = 0; i < n; i++)
        print_rating(&r[i], chosen ? strcmp(chosen, r[i].file.path) == 0 : i == 0 && !r[0].why_not[0]);
    ebb_models_explain(r, n, &why);
    putchar('\n');
    if (chosen)
        printf("ebb takes the one you chose last: %s\n", chosen);
    else
        ebb_cli_print(ebb_buf_text(&why), why.len);
    fputs(chosen ? "ebb -m auto chooses again\n" : "\n", stdout);
    fputs("ebb plan -m FILE shows the plan of one\n", stdout);
    ebb_buf_fini(&why);
}

static json_t *rating_json(const ebb_model_rating *r, bool is_chosen)
{
    json_t *o = json_object();

    json_object_set_new(o, "path", ebb_json_text_or_null(r->file.path));
    json_object_set_new(o, "bytes", json_integer((json_int_t)r->file.n_bytes));
    json_object_set_new(o, "taken", json_boolean(is_chosen));
    if (r->why_not[0]) {
        json_object_set_new(o, "why_not", ebb_json_text_or_null(r->why_not));
        return o;
    }
    json_object_set_new(o, "type", ebb_json_text_or_null(r->quantization));
    json_object_set_new(o, "worth", json_real(r->score));
    json_object_set_new(o, "plan", plan_json(&r->plan));
    return o;
}

static int print_ratings_json(const ebb_model_rating *r, size_t n, const char *chosen)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, rating_json(&r[i], chosen ? strcmp(chosen, r[i].file.path) == 0 : i == 0 &&
                                                !r[0].why_not[0]));
    return ebb_cli_print_json(json_pack("{s:o}", "models", list));
}

/* What the user chose, if it is among them and can run. */
static const char *find_chosen(const ebb_model_rating *r, size_t n, const ebb_buf *path)
{
    for (size_t i = 0; i < n; i++) {
        char *real = realpath(r[i].file.path, NULL), *chosen = realpath(ebb_buf_text(path), NULL);
        bool is_it = real && chosen && strcmp(real, chosen) == 0 && !r[i].why_not[0];

        free(real);
        free(chosen);
        if (is_it)
            return r[i].file.path;
    }
    return NULL;
}

/* false: there are none. */
static bool plan_all(const ebb_args *a, int *status, ebb_error *err, ebb_status *st)
{
    ebb_model_file *files = NULL;
    ebb_model_rating *r = NULL;
    ebb_machine machine;
    ebb_buf path = { 0 };
    const char *chosen;
    bool is_described;
    size_t n = 0;

    *st = ebb_models_find_chat(&files, &n, err);
    if (*st != EBB_OK || n == 0)
        return false;
    *st = get_machine(a, &machine, &is_described, err);
    if (*st == EBB_OK)
        *st = ebb_models_rate(files, n, &a->engine, &machine, !is_described, 0, &r, err);
    else
        ebb_models_free(files, n);
    if (*st != EBB_OK)
        return false;
    chosen = a->model || !ebb_models_remembered(&path) ? NULL : find_chosen(r, n, &path);
    if (a->json)
        *status = print_ratings_json(r, n, chosen);
    else
        print_ratings(&machine, r, n, chosen);
    ebb_models_rating_free(r, n);
    ebb_buf_fini(&path);
    return true;
}

/* The disk is timed where it matters: weights stream, or are to be read before the first token. */
static ebb_status plan_for_machine(const ebb_args *a, const ebb_model *m, ebb_machine *machine, bool is_described,
                                   ebb_plan *plan, ebb_error *err)
{
    ebb_status st;

    if (is_described)
        return ebb_plan_make(m, &a->engine, machine, plan, err);
    st = ebb_machine_measure(machine, m, &a->engine, false, err);

    if (st == EBB_OK)
        st = ebb_plan_make(m, &a->engine, machine, plan, err);
    if (st != EBB_OK || (plan->is_mapped && plan->stream_bytes == 0 && machine->page_cache_share > MOSTLY))
        return st;
    st = ebb_machine_measure(machine, m, &a->engine, true, err);
    return st == EBB_OK ? ebb_plan_make(m, &a->engine, machine, plan, err) : st;
}

/* -- One model ------------------------------------------------------------------------ */

/* What cannot go to a file here takes memory; another machine has a folder that can be used. */
static void check_kv_folder(ebb_args *a, ebb_error *why_not)
{
    bool is_asked = a->engine.no_kv_cache || a->like || a->memory_bytes_s > 0;

    if (!is_asked && ebb_kv_cache_check_spill(&a->engine, why_not) != EBB_OK)
        a->engine.no_kv_cache = true;
}

/* One object on standard output: Ollama's estimate, if it was asked for, has the plan in it.  plan: NULL if there is
 * none, with such an estimate. */
static int print_plan_json(json_t *ollama, const ebb_plan *plan)
{
    json_t *own = plan ? plan_json(plan) : json_null();

    if (!ollama)
        return ebb_cli_print_json(own);
    json_object_set_new(ollama, "plan", own);
    return ebb_cli_print_json(ollama);
}

int ebb_cmd_plan(ebb_args *a)
{
    ebb_model *m = NULL, *draft = NULL;
    ebb_machine machine;
    ebb_plan plan = { 0 };
    ebb_error err = { 0 }, no_file = { 0 };
    json_t *ollama = NULL;
    bool is_described = false, is_table = a->is_table || a->is_modes;
    int status = EBB_EXIT_OK;
    ebb_status st = ebb_cli_only_model(a, &err);

    if (st == EBB_OK)
        st = ebb_cmd_plan_check(a, &err);
    check_kv_folder(a, &no_file);
    if (st == EBB_OK && !a->ollama && !is_table && (!a->model || strcmp(a->model, "auto") == 0) &&
        plan_all(a, &status, &err, &st))
        return status;
    if (st == EBB_OK)
        st = ebb_cli_open_model(a, &m, &err);
    if (st == EBB_OK)
        st = ebb_cli_open_draft_model(a, m, &draft, &err);
    if (st == EBB_OK && a->ollama)
        st = ebb_cmd_plan_ollama(a, m, &ollama, &err);
    if (st == EBB_OK)
        st = get_machine(a, &machine, &is_described, &err);
    if (st == EBB_OK && is_table && ollama)
        status = ebb_cli_print_json(ollama);     /* a table would be another object */
    else if (st == EBB_OK && is_table)
        st = ebb_cmd_plan_table(a, m, &machine, is_described, &status, &err);
    else if (st == EBB_OK)
        st = plan_for_machine(a, m, &machine, is_described, &plan, &err);
    if (st == EBB_OK)
        ebb_cli_tell(a, plan.left_out);
    if (is_table)
        ;                                        /* is printed */
    else if (st == EBB_OK && a->json)
        status = print_plan_json(ollama, &plan);
    else if (st == EBB_OK)
        print_plan_table(m, &machine, &plan);
    if (st == EBB_OK && !is_table && !plan.fits && no_file.msg[0]) {
        snprintf(err.msg, sizeof err.msg, "K and V cannot go to a file: %.200s", no_file.msg);
        ebb_cli_tell(a, err.msg);
    }
    ebb_model_close(m);
    ebb_model_close(draft);
    if (st != EBB_OK && ollama)                  /* as text the estimate came first, too */
        (void)print_plan_json(ollama, NULL);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
