/* ebb sessions show, export and import (cmd_sessions.h). */
#include "cmd_sessions.h"

#include <stdio.h>
#include <string.h>

#include "os/file.h"
#include "store/export.h"

#define MAX_IMPORT (256u << 20)  /* bytes; more is no conversation */

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
    ebb_buf_fini(&text);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}

typedef struct import {
    ebb_store  *store;
    const char *name;            /* for the first one; NULL: none */
    bool        is_json;
    int64_t     last;
    size_t      n_messages;
} import;

static ebb_status store_imported(void *arg, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    import *to = arg;
    ebb_status st;

    if (to->name && strlen(to->name) >= sizeof f->name)
        return EBB_FAIL(err, EBB_USAGE, "a session's name has at most %zu bytes", sizeof f->name - 1);
    if (to->name)
        strcpy(f->name, to->name);
    to->name = NULL;
    st = ebb_store_save(to->store, f, t, true, err);
    if (st != EBB_OK)
        return st;
    to->last = f->id;
    to->n_messages += t->n_path;
    if (!to->is_json)
        printf("session %lld: %zu messages\n", (long long)f->id, t->n_path);
    return EBB_OK;
}

int ebb_cmd_sessions_import(ebb_store *s, ebb_args *a, ebb_error *err)
{
    import to = { .store = s, .name = a->n_words > 2 ? a->words[2] : NULL, .is_json = a->json };
    ebb_buf data = { 0 };
    size_t n = 0;
    ebb_status st = ebb_file_slurp(a->words[1], MAX_IMPORT, &data, err);

    if (st == EBB_OK)
        st = ebb_import_all(a->words[1], ebb_buf_text(&data), data.len, store_imported, &to, &n, err);
    ebb_buf_fini(&data);
    if (st == EBB_OK && a->json)
        printf("{\"id\":%lld,\"messages\":%zu,\"sessions\":%zu}\n", (long long)to.last, to.n_messages, n);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}
