/* ebb sessions show, export and import (sessions.h). */
#include "sessions.h"

#include <stdio.h>
#include <string.h>

#include "export.h"
#include "os/file.h"

#define MAX_IMPORT (256u << 20)  /* bytes; more is no conversation */

/* One session in a format, appended to out. */
static ebb_status read_as(ebb_store *s, const char *name, ebb_format format, ebb_buf *out, ebb_error *err)
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

static int print_as(ebb_store *s, const ebb_args *a, ebb_format format, ebb_error *err)
{
    ebb_buf text = { 0 };
    ebb_status st = read_as(s, a->words[1], format, &text, err);

    if (st == EBB_OK)
        ebb_cli_print(ebb_buf_text(&text), text.len);
    ebb_buf_fini(&text);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}

int ebb_sessions_show(ebb_store *s, const ebb_args *a, ebb_error *err)
{
    return print_as(s, a, a->json ? EBB_FORMAT_JSON : EBB_FORMAT_TXT, err);
}

int ebb_sessions_export(ebb_store *s, const ebb_args *a, ebb_error *err)
{
    ebb_format format = a->json ? EBB_FORMAT_JSON : EBB_FORMAT_MD;
    ebb_buf text = { 0 };
    ebb_status st;
    int fd;

    if (a->n_words == 2)
        return print_as(s, a, format, err);
    if (!ebb_format_parse(a->words[2], &format)) {
        EBB_FAIL(err, EBB_USAGE, "%s: the file's name must end in .md, .json or .txt", a->words[2]);
        return ebb_cli_fail(err);
    }
    if (ebb_file_open(a->words[2], EBB_FILE_READ, &fd, NULL) == EBB_OK) {
        ebb_file_close(fd);
        EBB_FAIL(err, EBB_USAGE, "%s exists already; choose another name", a->words[2]);
        return ebb_cli_fail(err);
    }
    st = read_as(s, a->words[1], format, &text, err);
    if (st == EBB_OK)
        st = ebb_file_replace(a->words[2], ebb_buf_text(&text), text.len, err);
    ebb_buf_fini(&text);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}

static ebb_status import_file(ebb_store *s, const char *path, const char *name, ebb_session_facts *f, ebb_tree *t, ebb_error *err)
{
    ebb_buf data = { 0 };
    ebb_status st = ebb_file_slurp(path, MAX_IMPORT, &data, err);

    if (st == EBB_OK)
        st = ebb_import(path, ebb_buf_text(&data), data.len, f, t, err);
    ebb_buf_fini(&data);
    if (st != EBB_OK)
        return st;
    if (name && strlen(name) >= sizeof f->name)
        return EBB_FAIL(err, EBB_USAGE, "a session's name has at most %zu bytes", sizeof f->name - 1);
    if (name)
        strcpy(f->name, name);
    if (!f->title[0])
        strcpy(f->title, "untitled");
    return ebb_store_save(s, f, t, true, err);
}

int ebb_sessions_import(ebb_store *s, const ebb_args *a, ebb_error *err)
{
    ebb_session_facts f = { 0 };
    ebb_tree t = { 0 };
    ebb_status st = import_file(s, a->words[1], a->n_words > 2 ? a->words[2] : NULL, &f, &t, err);

    if (st == EBB_OK && a->json)
        printf("{\"id\":%lld,\"messages\":%zu}\n", (long long)f.id, t.n_path);
    else if (st == EBB_OK)
        printf("session %lld: %zu messages\n", (long long)f.id, t.n_path);
    ebb_session_facts_fini(&f);
    ebb_tree_fini(&t);
    return st == EBB_OK ? EBB_EXIT_OK : ebb_cli_fail(err);
}
