/* ebb doctor: what this machine offers a model, and how to improve it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli.h"
#include "cmd_doctor.h"
#include "confinement.h"
#include "ebb/experimental/kv_cache.h"
#include "json/json_text.h"
#include "models/models.h"
#include "models/suggestions.h"
#include "os/folder.h"
#include "os/paths.h"
#include "store/sealed.h"
#include "unlock.h"

#define MIB        ((uint64_t)1 << 20)
#define Q4_BYTES   0.6                           /* bytes of a weight in a Q4_K_M file, scales included */
#define FINDING_WORDS 48u                        /* bytes of a finding beside a reason that it has in it */

/* -- What fits --------------------------------------------------------------------------- */

/* What is taken without -m, and why: what the user chose last, else the best.  Takes the files over. */
static bool explain_choice(ebb_model_file *files, size_t n, const ebb_args *a, ebb_machine *machine, ebb_buf *why)
{
    ebb_model_rating *ratings;
    ebb_buf last = { 0 };
    char *path = NULL;
    bool ok;

    if (ebb_models_remembered(&last)) {
        ebb_models_free(files, n);
        ok = ebb_models_choose(&a->engine, &path, why, NULL) == EBB_OK;
        free(path);
    } else {
        ok = ebb_models_rate(files, n, &a->engine, machine, true, 0, &ratings, NULL) == EBB_OK;
        if (ok) {
            ebb_models_explain(ratings, n, why);
            ebb_models_rating_free(ratings, n);
        }
    }
    ebb_buf_fini(&last);
    return ok;
}

/* How much of a reason goes into a finding: as many of its clauses as fit. */
static int clauses_that_fit(const ebb_buf *why)
{
    const char *text = ebb_buf_text(why);
    size_t most = sizeof ((ebb_doctor_finding *)0)->text - FINDING_WORDS, n = ebb_utf8_cut(text, why->len, most);

    for (size_t i = n; n < why->len && i-- > 0;)
        if (text[i] == ';')
            return (int)i;
    return (int)n;
}

/* Which of the models found would be chosen. */
static void check_models(ebb_doctor_report *r, const ebb_args *a, ebb_machine *machine)
{
    ebb_model_file *files;
    ebb_buf why = { 0 };
    ebb_suggestion suits;
    ebb_plan plan;
    char advice[240];
    size_t n;

    if (ebb_models_find_chat(&files, &n, NULL) != EBB_OK)
        return;
    if (n == 0) {
        ebb_models_free(files, n);
        (void)ebb_suggestion_best(machine, &suits, &plan);       /* else the smallest */
        snprintf(advice, sizeof advice, "ebb pull %s gets %s (%.1f GB); ebb pull --suggest lists others",
                 suits.source, suits.name, suits.file_bytes / 1e9);
        ebb_doctor_advise(ebb_doctor_add(r, "models", "only the built-in guide"), "%s", advice);
    } else if (explain_choice(files, n, a, machine, &why)) {
        ebb_doctor_advise(ebb_doctor_add(r, "models", "%zu here; without -m %.*s", n, clauses_that_fit(&why),
                                         ebb_buf_text(&why)),
                          "ebb plan lists them");
    }
    ebb_buf_fini(&why);
}

static void check_model(ebb_doctor_report *r, const ebb_args *a, const ebb_model *m, ebb_machine *machine)
{
    ebb_plan plan;
    char speed[16];
    ebb_error err = { 0 };
    ebb_status st = ebb_machine_measure(machine, m, &a->engine, true, &err);

    if (st == EBB_OK)
        st = ebb_plan_make(m, &a->engine, machine, &plan, &err);
    if (st != EBB_OK)
        ebb_doctor_add(r, "model", "%.150s", err.msg);
    else if (!plan.fits)
        ebb_doctor_advise(ebb_doctor_add(r, "model", "does not run: %.150s", plan.why),
                          "a smaller --ctx, or a smaller model");
    else
        ebb_doctor_add(r, "model", "tier %s: %.120s; about %s tok/s", ebb_tier_name(plan.tier), plan.why,
                       ebb_speed_text(plan.predicted_decode_tok_s, speed));
}

static void check_fit(ebb_doctor_report *r, const ebb_args *a, const ebb_model *m, ebb_machine *machine)
{
    uint64_t room = machine->available_bytes > 700 * MIB ? machine->available_bytes - 700 * MIB : 0;
    char size[16];

    ebb_doctor_add(r, "fits", "about %s of weights beside a context: %.1f billion in Q4_K_M",
                   ebb_size_text(room, size), (double)room / Q4_BYTES / 1e9);
    if (m)
        check_model(r, a, m, machine);
    else
        check_models(r, a, machine);
}

/* -- The report ---------------------------------------------------------------------------- */

static void check_confinement(ebb_doctor_report *r)
{
    ebb_confined holds;
    const char *why;

    if (!ebb_cli_try_confinement(&holds, &why))
        ebb_doctor_advise(ebb_doctor_add(r, "confinement", "none: %s", why),
                          "what reads models and imports can then do whatever you can; nothing else changes");
    else if (!holds.landlock_abi)
        ebb_doctor_advise(ebb_doctor_add(r, "confinement", "connections and programs (seccomp), but not files"),
                          "this kernel has no Landlock (Linux 5.13 and later do, if lsm= lists it); the filters of "
                          "attached documents may read and write files, too");
    else if (!holds.has_filter)
        ebb_doctor_advise(ebb_doctor_add(r, "confinement", "files (Landlock %u), but not connections",
                                         holds.landlock_abi),
                          "this kernel, or a container, refuses filters of system calls (seccomp)");
    else
        ebb_doctor_add(r, "confinement", "tested, and effective: files, connections, programs (Landlock %u, seccomp)",
                       holds.landlock_abi);
    ebb_doctor_figure(r, "landlock_abi", holds.landlock_abi);
}

/* Who finds the disk reads what, and what would help. */
static void look_at_encryption(ebb_doctor_report *r)
{
    ebb_buf path = { 0 }, db = { 0 };
    ebb_key_kind kind;
    bool is = ebb_cli_is_encrypted(), is_half = is && ebb_stored_path(&db, NULL) == EBB_OK &&
                                                ebb_stored_how(db.data) == EBB_STORED_PLAIN;

    if (is_half)
        ebb_doctor_advise(ebb_doctor_add(r, "sessions", "in the clear, but a key for them is there"),
                          "ebb sessions encrypt or decrypt ends what was begun; or put the encrypted file back");
    else if (!is)
        ebb_doctor_add(r, "sessions", "not encrypted; ebb sessions encrypt changes that");
    else if (ebb_stored_key_path(&path, NULL) != EBB_OK || ebb_key_file_kind(path.data, &kind, NULL) != EBB_OK)
        ebb_doctor_advise(ebb_doctor_add(r, "sessions", "encrypted, and their key is gone or damaged"),
                          "put %.150s back from a copy", ebb_buf_text(&path));
    else
        ebb_doctor_add(r, "sessions", "encrypted, history, drafts, K and V too (%s)",
                       kind == EBB_KEY_OF_FILE ? "with a key file" : "with a passphrase");
    ebb_doctor_figure(r, "encrypted", is && !is_half);
    ebb_buf_fini(&path);
    ebb_buf_fini(&db);
}

/* A folder of K and V that is not used (prefix_cache/persist.h); one that is has nothing to say. */
static void look_at_kv_folder(ebb_doctor_report *r)
{
    ebb_buf path = { 0 };
    ebb_error err = { 0 };

    if (ebb_path_in(EBB_DIR_CACHE, "kv", &path, NULL) == EBB_OK && access(path.data, F_OK) == 0 &&
        ebb_folder_check_own(path.data, &err) != EBB_OK)
        ebb_doctor_advise(ebb_doctor_add(r, "kv_cache", "%s", err.msg),
                          "until then nothing computed is kept there or read from there");
    ebb_buf_fini(&path);
}

static int print_doctor_json(ebb_doctor_report *r)
{
    json_t *list = json_array(), *root = json_object();

    for (uint32_t i = 0; i < r->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "key", r->list[i].key, "text",
                                              ebb_json_text_or_null(r->list[i].text),
                                              "advice", ebb_json_text_or_null(r->list[i].advice)));
    if (!root || json_object_set_new(root, "findings", list) != 0 || json_object_set(root, "figures", r->figures) != 0)
        return EBB_EXIT_FAILED;
    return ebb_cli_print_json(root);
}

static int print_doctor_text(const ebb_doctor_report *r)
{
    const char *last = "";

    for (uint32_t i = 0; i < r->n; i++) {
        const ebb_doctor_finding *f = &r->list[i];
        char label[24];

        snprintf(label, sizeof label, "%s", strcmp(last, f->key) ? f->key : "");
        for (char *p = label; *p; p++)
            *p = *p == '_' ? ' ' : *p;
        printf("%-12s ", label);
        ebb_cli_print(f->text, strlen(f->text));
        putchar('\n');
        if (f->advice[0])
            printf("%-12s -> %s\n", "", f->advice);
        last = f->key;
    }
    return EBB_EXIT_OK;
}

static void check_remembered(ebb_doctor_report *r, const ebb_args *a)
{
    ebb_known_speed list[EBB_MAX_KNOWN_SPEEDS];

    ebb_doctor_speeds(r, list, ebb_machine_known_speeds(&a->engine, list, EBB_MAX_KNOWN_SPEEDS), a->measures_again);
}

int ebb_cmd_doctor(ebb_args *a)
{
    const char *path = "/proc/self/exe";         /* the program is a file on a disk too */
    char *named = NULL;
    ebb_doctor_report *r = calloc(1, sizeof *r);
    ebb_model *m = NULL;
    ebb_machine machine;
    ebb_limits limits;
    ebb_error err = { 0 };
    int status = EBB_EXIT_FAILED;
    ebb_status st = r && (r->figures = json_object()) ? EBB_OK : EBB_FAIL(&err, EBB_NOMEM, "no memory for a report");

    if (st == EBB_OK)
        st = ebb_cli_only_model(a, &err);
    if (st == EBB_OK && a->model && strcmp(a->model, "auto") != 0) {
        ebb_cli_confine(a, EBB_CLI_LOOK, NULL);
        named = strdup(a->model);
        st = named ? ebb_models_open(&a->engine, &named, &m, NULL, &err) : EBB_FAIL(&err, EBB_NOMEM,
                                                                                    "no memory for a name");
        if (strcmp(a->model, EBB_MODELS_GUIDE) != 0)
            path = named;
    }
    if (st == EBB_OK)
        st = ebb_limits_read(NULL, &limits, &err);
    if (st == EBB_OK && a->measures_again)
        st = ebb_machine_doubt_speeds(&a->engine, &err);
    if (st == EBB_OK)
        st = ebb_machine_probe(path, false, &machine, &err);
    if (st == EBB_OK && a->engine.ram_bytes && a->engine.ram_bytes < machine.available_bytes)
        machine.available_bytes = a->engine.ram_bytes;
    if (st == EBB_OK)                            /* keeps to that, too */
        st = ebb_machine_measure_usual(&machine, path, &err);
    if (st == EBB_OK) {
        ebb_doctor_memory(r, &limits, &machine);
        ebb_doctor_swap(r, "", &limits);
        ebb_doctor_huge_pages(r, "");
        ebb_doctor_cpu(r, "", &machine);
        ebb_doctor_disk(r, "", path);
        check_confinement(r);
        look_at_encryption(r);
        look_at_kv_folder(r);
        a->engine = ebb_kv_cache_opts_for_plan(&a->engine);
        check_fit(r, a, m, &machine);
        check_remembered(r, a);
        status = a->json ? print_doctor_json(r) : print_doctor_text(r);
    }
    if (r)
        json_decref(r->figures);
    free(r);
    free(named);
    ebb_model_close(m);
    return st == EBB_OK ? status : ebb_cli_fail(&err);
}
