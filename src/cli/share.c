/* A server of this user that has the model already: it answers, and the model is in memory once (cli.h). */
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli.h"
#include "cmd_serve.h"
#include "json/json_load.h"
#include "models/models.h"
#include "net/listen.h"
#include "serve/serve.h"

enum { REPLY_MS = 2000, REPLY_BYTES = 1 << 20, TRIES = 20, TRY_MS = 100 };

/* Without libcurl: most probes find no server, and those that do are repeated through remote/. */
static json_t *query_server(const char *path)
{
    static const char request[] = "GET /ebb/v1/stats HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ebb_buf reply = { .max = REPLY_BYTES };
    const char *body;
    char bytes[4096];
    json_t *o = NULL;
    ssize_t got;
    int fd;

    if (ebb_connect_unix(path, &fd, NULL) != EBB_OK)
        return NULL;
    if (write(fd, request, sizeof request - 1) == (ssize_t)sizeof request - 1)
        for (struct pollfd p = { .fd = fd, .events = POLLIN }; poll(&p, 1, REPLY_MS) > 0;) {
            got = read(fd, bytes, sizeof bytes);
            if (got <= 0 || !ebb_buf_add(&reply, bytes, (size_t)got))
                break;
        }
    close(fd);
    body = strstr(ebb_buf_text(&reply), "\r\n\r\n");
    if (body && strncmp(ebb_buf_text(&reply), "HTTP/1.", 7) == 0)
        o = ebb_json_load(body + 4, strlen(body + 4), 0, NULL);
    ebb_buf_fini(&reply);
    return o;
}

static const char *text_of(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

/* One that has just begun does not know its model yet. */
static json_t *ask_server(const char *path)
{
    const struct timespec wait = { .tv_nsec = TRY_MS * 1000000L };

    for (int i = 0; i < TRIES; i++) {
        json_t *o = query_server(path);

        if (!o || strcmp(text_of(o, "state"), "loading") != 0 || *text_of(o, "file"))
            return o;
        json_decref(o);
        nanosleep(&wait, NULL);
    }
    return NULL;
}

/* The model that this process would take: the one named, else the one named last, else any. */
static bool has_wanted_model(const ebb_args *a, const json_t *o)
{
    const char *file = text_of(o, "file");
    bool is_guide = a->model && strcmp(a->model, EBB_MODELS_GUIDE) == 0, is_same = false;
    ebb_buf remembered = { 0 };
    char id[40], *path = NULL;

    if (strcmp(text_of(o, "state"), "failed") == 0)
        return false;
    if (is_guide)
        return !*file && strcmp(text_of(o, "model"), EBB_MODELS_GUIDE) == 0;
    if (a->model)
        is_same = ebb_models_resolve(a->model, &path, NULL) == EBB_OK && ebb_serve_file_id(path, id) &&
            strcmp(id, file) == 0;
    else if (ebb_models_remembered(&remembered))
        is_same = ebb_serve_file_id(ebb_buf_text(&remembered), id) && strcmp(id, file) == 0;
    else
        is_same = *file != '\0';
    free(path);
    ebb_buf_fini(&remembered);
    return is_same;
}

/* Options of the engine need an engine of one's own; a private chat stays out of another process's K and V. */
static bool may_share(const ebb_args *a)
{
    static const ebb_engine_opts usual;
    const ebb_engine_opts *e = &a->engine;

    return !a->is_engine_given && !a->is_private && !ebb_cli_draft_model_name(a) && e->n_ctx == usual.n_ctx &&
        e->ram_bytes == usual.ram_bytes &&
           e->mode == usual.mode && !e->has_resident && !e->has_kv && e->n_threads == usual.n_threads &&
               e->cpu == usual.cpu && e->io == usual.io &&
           e->placement == usual.placement && e->n_batch == usual.n_batch && !e->is_forced && !e->no_speculation &&
               !e->no_kv_cache;
}

static void tell_sharing(const json_t *o)
{
    const char *model = text_of(o, "model");
    ebb_buf line = { 0 };

    ebb_utf8_add_visible(&line, model, strlen(model), false);
    fprintf(stderr, "ebb serve (process %lld) has %s in memory and answers; -e here loads it once more\n",
            (long long)json_integer_value(json_object_get(o, "pid")), *model ? ebb_buf_text(&line) : "the model");
    ebb_buf_fini(&line);
}

void ebb_cli_share(ebb_args *a, bool tells)
{
    ebb_buf path = { 0 };
    json_t *o = NULL;

    if (may_share(a) && ebb_serve_socket_path(a, &path, NULL) == EBB_OK && access(path.data, R_OK | W_OK) == 0)
        o = ask_server(path.data);
    if (o && has_wanted_model(a, o) && (size_t)snprintf(a->shared, sizeof a->shared, "unix:%s",
                                                        path.data) < sizeof a->shared) {
        a->engine_name = a->shared;
        a->model = NULL;
        if (tells && ebb_cli_progress(a))
            tell_sharing(o);
    }
    json_decref(o);
    ebb_buf_fini(&path);
}
