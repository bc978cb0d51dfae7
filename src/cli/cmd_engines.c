/* ebb engines: the remote engines that have names (remote/engines_file.h). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli.h"
#include "confinement.h"
#include "json/json_text.h"
#include "remote/engines_file.h"
#include "remote/probe.h"

static const char *key_source(const ebb_engine_entry *e)
{
    return e->key_file ? "key from a file" : e->key_variable ? "key from a variable" : e->key_command
           ? "key from a command"
         : e->key ? "key in the file of engines" : "";
}

static json_t *json_entry(const ebb_engine_entry *e)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", ebb_json_text_or_null(e->name));
    json_object_set_new(o, "address", ebb_json_text_or_null(e->address));
    if (e->kind)
        json_object_set_new(o, "kind", ebb_json_text_or_null(e->kind));
    if (e->model)
        json_object_set_new(o, "model", ebb_json_text_or_null(e->model));
    if (e->n_ctx)
        json_object_set_new(o, "context", json_integer(e->n_ctx));
    json_object_set_new(o, "key", json_string(key_source(e)));
    return o;
}

static int list_engines(ebb_args *a, ebb_error *err)
{
    ebb_engine_entry *list;
    json_t *all = json_array();
    size_t n;

    if (ebb_engines_read(&list, &n, err) != EBB_OK) {
        json_decref(all);
        return ebb_cli_fail(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (a->json) {
            json_array_append_new(all, json_entry(&list[i]));
            continue;
        }
        printf("%-16s  ", list[i].name);
        ebb_cli_print_name(list[i].address);
        if (list[i].model) {
            fputs("  ", stdout);
            ebb_cli_print_name(list[i].model);
        }
        printf("%s%s\n", *key_source(&list[i]) ? "  " : "", key_source(&list[i]));
    }
    ebb_engines_free(list, n);
    if (a->json)
        return ebb_cli_print_json(json_pack("{s:o}", "engines", all));
    json_decref(all);
    if (n == 0)
        puts("no engines yet; ebb engines add NAME ADDRESS adds one");
    return EBB_EXIT_OK;
}

static json_t *json_server(const ebb_engine_entry *e, const ebb_server *s)
{
    const ebb_dialect *d = ebb_dialect_of(s->kind);
    json_t *o = json_entry(e), *models = json_array();

    for (size_t i = 0; i < s->n_models; i++)
        json_array_append_new(models, ebb_json_text_or_null(s->models[i]));
    json_object_set_new(o, "kind", json_string(d->name));
    json_object_set_new(o, "version", ebb_json_text_or_null(s->version));
    json_object_set_new(o, "model", ebb_json_text_or_null(s->model));
    json_object_set_new(o, "models", models);
    json_object_set_new(o, "context", s->n_ctx ? json_integer(s->n_ctx) : json_null());
    json_object_set_new(o, "speaks", json_string("messages"));
    json_object_set_new(o, "continues", json_boolean(d->can_continue));
    json_object_set_new(o, "progress", json_boolean(d->has_progress));
    return o;
}

static ebb_status probe_engine(const ebb_engine_entry *e, ebb_engine_link *l, ebb_server *s, ebb_error *err)
{
    bool may_retry;
    ebb_status st = ebb_engine_link_init(l, e, err);

    if (st == EBB_OK)
        st = ebb_engine_link_unlock(l, err);
    return st == EBB_OK ? ebb_server_probe(l, s, &may_retry, err) : st;
}

static int test_engine(ebb_args *a, ebb_error *err)
{
    ebb_engine_entry e;
    ebb_engine_link link = { 0 };
    ebb_server server = { 0 };
    ebb_buf text = { 0 };
    int status = EBB_EXIT_OK;
    ebb_status st;

    a->engine_name = a->words[1];
    ebb_cli_confine(a, EBB_CLI_PROBE, NULL);
    st = ebb_engines_find(a->words[1], &e, err);

    if (st == EBB_OK)
        st = probe_engine(&e, &link, &server, err);
    if (st == EBB_OK && a->json) {
        status = ebb_cli_print_json(json_server(&e, &server));
    } else if (st == EBB_OK) {
        ebb_server_report(&link, &server, &text);
        ebb_cli_print(ebb_buf_text(&text), text.len);
        putchar('\n');
    }
    ebb_buf_fini(&text);
    ebb_server_fini(&server);
    ebb_engine_link_fini(&link);
    ebb_engine_entry_fini(&e);
    return st == EBB_OK ? status : ebb_cli_fail(err);
}

/* A file of this folder is named so that it is found from any, for as long as the program runs; NULL: none, or no
 * memory. */
static char *absolute_name(const char *name, ebb_buf *out)
{
    char *folder = name && *name != '/' && strncmp(name, "~/", 2) != 0 ? getcwd(NULL, 0) : NULL;

    if (folder && ebb_buf_addf(out, "%s/%s", strcmp(folder, "/") ? folder : "", name))
        name = out->data;
    free(folder);
    return (char *)name;
}

static int add_engine(ebb_args *a, ebb_error *err)
{
    static ebb_buf key, ca;                      /* until the program ends, as its arguments */
    ebb_engine_entry e = {
        .address = (char *)a->words[2], .kind = (char *)a->engine_kind, .model = (char *)a->model,
        .key_file = absolute_name(a->key_file, &key), .ca_file = absolute_name(a->ca_file, &ca),
        .key_variable = (char *)a->key_variable, .key_command = (char *)a->key_command,
        .n_ctx = a->engine.n_ctx, .is_insecure = a->is_insecure,
    };

    if (strlen(a->words[1]) >= sizeof e.name)
        EBB_FAIL(err, EBB_USAGE, "%.60s: a name may have at most %zu bytes", a->words[1], sizeof e.name - 1);
    else
        strcpy(e.name, a->words[1]);
    if (err->code || ebb_engines_add(&e, err) != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        return ebb_cli_print_json(json_entry(&e));
    if (!a->quiet)
        printf("added %s; ebb engines test %s examines it, ebb -e %s talks to it\n", e.name, e.name, e.name);
    return EBB_EXIT_OK;
}

static int remove_engine(ebb_args *a, ebb_error *err)
{
    if (ebb_engines_remove(a->words[1], err) != EBB_OK)
        return ebb_cli_fail(err);
    if (a->json)
        return ebb_cli_print_json(json_pack("{s:o}", "name", ebb_json_text_or_null(a->words[1])));
    if (!a->quiet)
        printf("removed %s; conversations keep its answers\n", a->words[1]);
    return EBB_EXIT_OK;
}

int ebb_cmd_engines(ebb_args *a)
{
    static const struct {
        const char *name;
        size_t      n_words;         /* with the name itself */
        const char *usage;
        int       (*run)(ebb_args *, ebb_error *);
    } subcommands[] = {
        { "list", 1, "list", list_engines },
        { "test", 2, "test NAME|ADDRESS", test_engine },
        { "add", 3, "add NAME ADDRESS [--key-file FILE] [-m MODEL]", add_engine },
        { "remove", 2, "remove NAME", remove_engine },
    };
    const char *name = a->n_words ? a->words[0] : "list";
    ebb_error err = { 0 };

    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++) {
        if (strcmp(subcommands[i].name, name) != 0)
            continue;
        if (a->n_words && a->n_words != subcommands[i].n_words) {
            EBB_FAIL(&err, EBB_USAGE, "usage: ebb engines %s", subcommands[i].usage);
            return ebb_cli_fail(&err);
        }
        return subcommands[i].run(a, &err);
    }
    EBB_FAIL(&err, EBB_USAGE, "engines: give list, test, add or remove");
    return ebb_cli_fail(&err);
}
