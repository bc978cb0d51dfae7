/* ebb sessions show, export and import (cmd_sessions.h). */
#include "cmd_sessions.h"

#include <stdio.h>
#include <string.h>

#include "edit/message_file.h"
#include "json/json_text.h"
#include "os/file.h"
#include "store/export.h"
#include "store/import_file.h"

/* One session in a format, appended to out. */
static ebb_status read_session_as(ebb_store *s, const char *name, ebb_export_format format, ebb_buf *out,
                                  ebb_error *err)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    int64_t id;
    ebb_status st = ebb_store_find(s, name, &id, err);

    if (st == EBB_OK)
        st = ebb_store_load(s, id, &f, &t, err);
    if (st == EBB_OK)
        st = ebb_export(&f, &t, format, out, err);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    return st;
}

static int print_session_as(ebb_store *s, const ebb_args *a, ebb_export_format format, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = read_session_as(s, a->words[1], format, &text, err);

    if (st == EBB_OK)
        ebb_cli_print(ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}

int ebb_cmd_sessions_show(ebb_store *s, ebb_args *a, ebb_error *err)
{
    return print_session_as(s, a, a->json ? EBB_EXPORT_JSON : EBB_EXPORT_TXT, err);
}

int ebb_cmd_sessions_export(ebb_store *s, ebb_args *a, ebb_error *err)
{
    ebb_export_format format = a->json ? EBB_EXPORT_JSON : EBB_EXPORT_MD;
    ebb_buf text = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st;

    if (a->n_words == 2)
        return print_session_as(s, a, format, err);
    if (!ebb_export_format_parse(a->words[2], &format)) {
        EBB_FAIL(err, EBB_USAGE, "%s: the file's name must end in .md, .json or .txt", a->words[2]);
        return ebb_cli_fail(err);
    }
    st = read_session_as(s, a->words[1], format, &text, err);
    if (st == EBB_OK)
        st = ebb_file_create(a->words[2], ebb_buf_text(&text), text.len, err);
    if (st == EBB_OK && a->json)
        status = ebb_cli_print_json(json_pack("{s:o, s:I}", "file", ebb_json_text_or_null(a->words[2]), "bytes",
                                              (json_int_t)text.len));
    ebb_buf_fini(&text);
    return st == EBB_OK ? status : ebb_cli_fail(err);
}

/* "rivers" becomes the first one's name. */
static ebb_status name_first(ebb_store *s, ebb_import_set *set, const char *name, ebb_error *err)
{
    ebb_status st;

    if (!name)
        return EBB_OK;
    st = ebb_session_check_name(name, err);
    if (st == EBB_OK)
        st = ebb_store_check_free_name(s, name, err);
    if (st != EBB_OK)
        return st;
    strcpy(set->items[0].facts.name, name);
    return EBB_OK;
}

static void print_imported(const ebb_import_set *set, bool is_json)
{
    size_t n_messages = 0;

    for (size_t i = 0; i < set->n; i++) {
        n_messages += set->items[i].tree.n_path;
        if (!is_json)
            printf("session %lld: %zu messages\n", (long long)set->items[i].facts.id, set->items[i].tree.n_path);
    }
    if (is_json)
        printf("{\"id\":%lld,\"messages\":%zu,\"sessions\":%zu}\n", (long long)set->items[set->n - 1].facts.id,
               n_messages, set->n);
}

int ebb_cmd_sessions_import(ebb_store *s, ebb_args *a, ebb_error *err)
{
    ebb_import_set set = { 0 };
    ebb_status st = ebb_import_read(a->words[1], NULL, &set, err);

    if (st == EBB_OK)
        st = name_first(s, &set, a->n_words > 2 ? a->words[2] : NULL, err);
    if (st == EBB_OK)
        st = ebb_import_keep(s, &set, NULL, err);
    if (st == EBB_OK)
        print_imported(&set, a->json);
    ebb_import_set_fini(&set);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}

static void tell_left(void *arg, const char *path)
{
    (void)arg;
    fprintf(stderr, "ebb: %s: an editor has left it, in the clear; delete it once you have its text\n", path);
}

void ebb_cmd_sessions_tell_left(const char *state_dir)
{
    ebb_message_file_each_left(state_dir, tell_left, NULL);
}
