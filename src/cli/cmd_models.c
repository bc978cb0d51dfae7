/* ebb models: the model files of this machine. */
#include "models/models.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "json/json_text.h"
#include "models/guide.h"
#include "os/paths.h"
#include "pull/part_sidecar.h"

static void print_model_file(const ebb_model_file *f)
{
    char size[16], date[20] = "?";
    time_t t = (time_t)(f->changed_ms / 1000);
    struct tm tm;

    if (localtime_r(&t, &tm))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &tm);
    printf("%10s  %s  ", ebb_size_text(f->n_bytes, size), date);
    if (f->name) {
        ebb_cli_print_name(f->name);
        fputs("  ", stdout);
    }
    ebb_cli_print_name(f->path);
    if (f->store)
        printf("  (%s's)", f->store);
    if (f->kind != EBB_KIND_CHAT)
        printf("  %s, not for a chat", ebb_model_kind_name(f->kind));
    else if (f->note)
        printf("  %s", f->note);
    putchar('\n');
}

static json_t *model_file_json(const ebb_model_file *f)
{
    json_t *o = json_object();

    json_object_set_new(o, "path", ebb_json_text_or_null(f->path));
    json_object_set_new(o, "bytes", json_integer((json_int_t)f->n_bytes));
    json_object_set_new(o, "changed_ms", json_integer(f->changed_ms));
    json_object_set_new(o, "name", ebb_json_text_or_null(ebb_models_name(f)));
    json_object_set_new(o, "kind", ebb_json_text_or_null(ebb_model_kind_name(f->kind)));
    if (f->store)
        json_object_set_new(o, "store", ebb_json_text_or_null(f->store));
    if (f->is_old_version)                       /* two of one name: the other is the one that -m takes */
        json_object_set_new(o, "old_version", json_true());
    return o;
}

/* -- What `ebb pull` has begun ----------------------------------------------------------- */

static void print_partial_file(const ebb_model_file *f)
{
    ebb_pull_sidecar note;
    char size[16];
    bool is_known = ebb_pull_sidecar_read(f->path, &note);

    printf("%10s  ", ebb_size_text(f->n_bytes, size));
    if (is_known && note.n_bytes != UINT64_MAX && note.n_bytes)
        printf("%3.0f %% of it is here  ", 100.0 * (double)f->n_bytes / (double)note.n_bytes);
    else
        printf("not all is here    ");
    ebb_cli_print_name(f->path);
    if (is_known) {
        fputs("\n            goes on with `", stdout);
        ebb_cli_print_name(note.command);
        putchar('`');
    }
    putchar('\n');
}

static json_t *partial_file_json(const ebb_model_file *f)
{
    json_t *o = model_file_json(f);
    ebb_pull_sidecar note;

    if (!ebb_pull_sidecar_read(f->path, &note))
        return o;
    json_object_set_new(o, "command", ebb_json_text_or_null(note.command));
    if (note.n_bytes != UINT64_MAX)
        json_object_set_new(o, "whole_bytes", json_integer((json_int_t)note.n_bytes));
    return o;
}

static int print_models_json(const ebb_model_file *files, size_t n, const ebb_model_file *begun, size_t n_begun)
{
    json_t *list = json_array(), *more = json_array(), *o;

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, model_file_json(&files[i]));
    for (size_t i = 0; i < n_begun; i++)
        json_array_append_new(more, partial_file_json(&begun[i]));
    o = json_pack("{s:o, s:o, s:I}", "models", list, "begun", more, "embedded_bytes", (json_int_t)ebb_guide_bytes);
    return ebb_cli_print_json(o);
}

/* Somebody who has no model yet looks for the place to put one. */
static void tell_model_folders(void)
{
    ebb_buf dir = { 0 };

    if (ebb_path_in(EBB_DIR_DATA, "models", &dir, NULL) == EBB_OK)
        printf("\nModel files (.gguf) are looked for in %s and in the folders of $EBB_MODELS; `ebb pull OWNER/NAME` "
               "gets one.\n", ebb_buf_text(&dir));
    ebb_buf_fini(&dir);
}

int ebb_cmd_models(ebb_args *a)
{
    ebb_model_file *files, *begun;
    ebb_error err = { 0 };
    size_t n, n_begun;
    char size[16];
    int status = EBB_EXIT_OK;

    if (a->n_words)
        EBB_FAIL(&err, EBB_USAGE, "%s: unexpected argument; ebb models lists all", a->words[0]);
    if (err.code || ebb_models_find(&files, &n, &err) != EBB_OK)
        return ebb_cli_fail(&err);
    if (ebb_models_find_partial(&begun, &n_begun, &err) != EBB_OK) {
        ebb_models_free(files, n);
        return ebb_cli_fail(&err);
    }
    if (a->json) {
        status = print_models_json(files, n, begun, n_begun);
    } else {
        for (size_t i = 0; i < n; i++)
            print_model_file(&files[i]);
        printf("%10s  built in          guide\n", ebb_size_text(ebb_guide_bytes, size));
        for (size_t i = 0; i < n_begun; i++)
            print_partial_file(&begun[i]);
        if (n == 0 && isatty(STDOUT_FILENO))
            tell_model_folders();
    }
    ebb_models_free(files, n);
    ebb_models_free(begun, n_begun);
    return status;
}
