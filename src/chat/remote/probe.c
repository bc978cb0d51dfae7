/* Asking a server what it is (probe.h). */
#include "remote/probe.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "backend/figures.h"
#include "base/utf8.h"
#include "json/json_get.h"
#include "json/json_load.h"
#include "os/paths.h"
#include "remote/answer.h"

enum { MAX_BODY = 4 << 20 };
/* What a server is it knows without thinking: the limit of the question that has to be answered, where its entry sets
 * none, and of those that need not be. */
enum { LIMIT_S = 30, MORE_LIMIT_S = 5 };

/* -- The link ---------------------------------------------------------------------------------- */

static bool has_secret(const ebb_engine_entry *e)
{
    return e->key || e->key_file || e->key_variable || e->key_command || e->headers[0];
}

static ebb_status check_wire(const ebb_engine_link *l, ebb_error *err)
{
    const ebb_engine_entry *e = l->entry;

    if (l->address.is_private || e->is_insecure || !has_secret(e))
        return EBB_OK;
    return EBB_FAIL(err, EBB_USAGE, "%s: its key would go to %s over http, where others could read it: use https or "
                    "ssh, or set insecure = on for this address", e->name, l->address.host);
}

ebb_status ebb_engine_link_init(ebb_engine_link *l, const ebb_engine_entry *entry, ebb_error *err)
{
    ebb_client_opts opts = { .name = entry->name, .silence_s = entry->silence_s };
    ebb_buf ca = { 0 };
    ebb_status st;

    *l = (ebb_engine_link){ .entry = entry };
    st = ebb_address_parse(entry->address, &l->address, err);
    if (st == EBB_OK && entry->model)
        st = ebb_address_set_model(&l->address, entry->model, err);
    if (st == EBB_OK)
        st = check_wire(l, err);
    if (st == EBB_OK && entry->ca_file)
        st = ebb_path_expand(entry->ca_file, &ca, err);
    opts.url = l->address.url;
    opts.unix_path = l->address.unix_path[0] ? l->address.unix_path : NULL;
    opts.command = l->address.argv[0] ? l->address.argv : NULL;
    opts.ca_file = ca.data;
    opts.has_no_proxy = l->address.is_here;
    if (st == EBB_OK)
        st = ebb_client_new(&opts, &l->client, err);
    ebb_buf_fini(&ca);
    return st;
}

void ebb_engine_link_fini(ebb_engine_link *l)
{
    ebb_client_free(l->client);
    explicit_bzero(l, sizeof *l);
}

static bool client_is_stopped(void *arg)
{
    return ebb_client_is_stopped(arg);
}

ebb_status ebb_engine_link_unlock(ebb_engine_link *l, ebb_error *err)
{
    char key[EBB_SECRET_BYTES];
    size_t n = 0;
    ebb_status st = ebb_secret_get(l->entry, client_is_stopped, l->client, key, err);

    if (st == EBB_OK && key[0]) {
        snprintf(l->key, sizeof l->key, "Authorization: Bearer %s", key);
        l->headers[n++] = l->key;
    }
    explicit_bzero(key, sizeof key);
    for (size_t i = 0; l->entry->headers[i]; i++)
        l->headers[n++] = l->entry->headers[i];
    l->headers[n] = NULL;
    return st;
}

enum { SECRET_MIN = 6, SECRET_PART_MIN = 4 };    /* bytes: fewer are part of any text */

static void hide_secret(const char *secret, char *words)
{
    size_t n_secret = strlen(secret), n = strlen(words);

    if (n_secret < SECRET_MIN)
        return;
    for (char *at = words; (at = strstr(at, secret)) != NULL; at += n_secret)
        memset(at, '*', n_secret);
    for (size_t part = n < n_secret ? n : n_secret - 1; part >= SECRET_PART_MIN; part--)
        if (memcmp(words + n - part, secret, part) == 0)
            memset(words + n - part, '*', part);
}

void ebb_engine_link_hide_secrets(const ebb_engine_link *l, char *words)
{
    static const char bearer[] = "Authorization: Bearer ";

    for (size_t i = 0; l->headers[i]; i++) {
        const char *value = strchr(l->headers[i], ':');

        if (strncmp(l->headers[i], bearer, sizeof bearer - 1) == 0)
            hide_secret(l->headers[i] + sizeof bearer - 1, words);
        else if (value)
            hide_secret(value + 1 + strspn(value + 1, " "), words);
    }
}

/* -- Replies ------------------------------------------------------------------------------------- */

/* Of those that a server may send a client to; it may not have it read files or run commands. */
static bool is_web_address(const char *s)
{
    return strncasecmp(s, "http://", 7) == 0 || strncasecmp(s, "https://", 8) == 0;
}

ebb_status ebb_reply_error(const ebb_engine_link *l, const ebb_client_reply *r, const char *body, size_t n_body,
                           ebb_error *err)
{
    const char *name = l->entry->name;
    char words[240], location[121], type[61];
    uint32_t n_ctx;

    ebb_answer_error_text(body, n_body, words, &n_ctx);
    ebb_engine_link_hide_secrets(l, words);
    snprintf(location, sizeof location, "%.120s", r->location);
    ebb_engine_link_hide_secrets(l, location);
    snprintf(type, sizeof type, "%.60s", r->type);
    ebb_engine_link_hide_secrets(l, type);
    if (r->status == 401 || r->status == 403)
        return EBB_FAIL(err, EBB_IO, "%s: %s (%d)%s%.200s", name, l->key[0]
                        ? "does not take its key" : "wants a key: set key-file, key-variable or key-command",
                        r->status, *words ? ": " : "", words);
    if (r->status >= 300 && r->status < 400)
        return EBB_FAIL(err, EBB_IO, "%s: redirects (%d, to %s), which ebb does not follow; %s", name, r->status,
                        location, is_web_address(location) ? "use that address" : "is its address right?");
    if (r->status == 429)
        return EBB_FAIL(err, EBB_BUSY, "%s: is overloaded (429)%s%.200s", name, *words ? ": " : "", words);
    if (r->status == 503)
        return EBB_FAIL(err, EBB_BUSY, "%s: is not ready (503)%s%.200s", name, *words ? ": " : "", words);
    if (n_ctx)
        return EBB_FAIL(err, EBB_CONTEXT, "%s: %.200s: shorten it (in a chat: /forget, /compact or /undo), or ask "
                                          "an engine with a larger context (here: -e here)", name, words);
    if (*words)
        return EBB_FAIL(err, EBB_IO, "%s: %.220s (%d)", name, words, r->status);
    if (strcmp(r->type, "text/html") == 0 && r->status >= 500)
        return EBB_FAIL(err, EBB_IO, "%s: answers with status %d: it is down or too slow; try again later", name,
                        r->status);
    if (strcmp(r->type, "text/html") == 0)
        return EBB_FAIL(err, EBB_FORMAT, "%s: answers with a page for a browser (%d); is its address right?",
                        name, r->status);
    if (r->status == 200)
        return EBB_FAIL(err, EBB_FORMAT, "%s: answers with something other than a stream of text (%s)", name, type);
    return EBB_FAIL(err, r->status == 404 ? EBB_NOTFOUND : EBB_IO, "%s: answers with status %d", name, r->status);
}

static bool keep_body(void *arg, const ebb_client_reply *r, const char *data, size_t n)
{
    (void)r;
    return ebb_buf_add(arg, data, n);
}

/* The JSON object at `path`; *status: of the reply.  FORMAT: it is none. */
static ebb_status get_json(ebb_engine_link *l, const char *path, unsigned limit_s, json_t **out, ebb_client_reply *r,
                           ebb_error *err)
{
    ebb_buf text = { .max = MAX_BODY };
    ebb_client_request q = { .path = path, .headers = l->headers, .limit_s = limit_s, .on_body = keep_body,
                             .arg = &text };
    ebb_status st = ebb_client_send(l->client, &q, r, err);

    *out = NULL;
    if (st == EBB_OK && r->is_stopped)
        st = EBB_FAIL(err, EBB_LIMIT, "%s: answers with more than %d MiB, the most that is accepted",
                      l->entry->name, MAX_BODY >> 20);
    if (st == EBB_OK && r->status != 200)
        st = ebb_reply_error(l, r, ebb_buf_text(&text), text.len, err);
    if (st == EBB_OK) {
        *out = ebb_json_load(ebb_buf_text(&text), text.len, 0, NULL);
        if (!json_is_object(*out)) {
            json_decref(*out);
            *out = NULL;
            st = EBB_FAIL(err, EBB_FORMAT, "%s: %s instead of a list of models; is its address right?", l->entry->name,
                          strcmp(r->type, "text/html") == 0 ? "answers with a page for a browser"
                                                            : "answers with something else");
        }
    }
    ebb_buf_fini(&text);
    return st;
}

/* -- Models ----------------------------------------------------------------------------------------- */

static uint32_t count_of(const json_t *o, const char *name)
{
    json_int_t v = json_integer_value(json_object_get(o, name));

    return v > 0 && v < UINT32_MAX ? (uint32_t)v : 0;
}

static bool has_secret_in(const ebb_engine_link *l, const char name[EBB_PROBE_NAME])
{
    char hidden[EBB_PROBE_NAME];

    strcpy(hidden, name);
    ebb_engine_link_hide_secrets(l, hidden);
    return strcmp(hidden, name) != 0;
}

/* A name that is too long cannot be asked for; one with lines would be lines of every text that names it, one with a
 * key would be saved with the session. */
static bool add_model(const ebb_engine_link *l, ebb_server *s, const char *name)
{
    if (!*name || strlen(name) >= EBB_PROBE_NAME || ebb_utf8_has_controls(name) ||
        s->n_models == EBB_PROBE_MODELS || has_secret_in(l, name))
        return true;
    if (!s->models)
        s->models = calloc(EBB_PROBE_MODELS, sizeof *s->models);
    if (!s->models)
        return false;
    strcpy(s->models[s->n_models++], name);
    return true;
}

void ebb_server_fini(ebb_server *s)
{
    free(s->models);
    *s = (ebb_server){ 0 };
}

/* The kind of server, by its host name, its Server header, or the owner of its models. */
static ebb_server_kind kind_of(const ebb_engine_link *l, const ebb_client_reply *r, const json_t *first)
{
    static const struct { const char *owner; ebb_server_kind kind; } owners[] = {
        { "llamacpp", EBB_SERVER_LLAMA }, { "vllm", EBB_SERVER_VLLM }, { "sglang", EBB_SERVER_SGLANG },
        { "ebb", EBB_SERVER_EBB },
        { "library", EBB_SERVER_OLLAMA }, { "organization_owner", EBB_SERVER_LM_STUDIO },
        { "openai", EBB_SERVER_OPENAI }, { "system", EBB_SERVER_OPENAI },
    };
    const char *owner = ebb_json_get_text(first, "owned_by");

    if (strcmp(l->address.host, "api.openai.com") == 0)
        return EBB_SERVER_OPENAI;
    if (strncmp(r->server, "ebb/", 4) == 0)
        return EBB_SERVER_EBB;
    if (strcmp(r->server, "llama.cpp") == 0)
        return EBB_SERVER_LLAMA;
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        if (strcmp(owner, owners[i].owner) == 0)
            return owners[i].kind;
    return EBB_SERVER_ANY;
}

/* Does a remote ebb's model match?  As for local models, a part of its file's name is enough. */
static bool is_meant(const char *model, const char *want)
{
    const char *slash = strrchr(want, '/');
    size_t n = strlen(slash ? slash + 1 : want);
    char name[EBB_PROBE_NAME];

    if (n >= sizeof name)
        return false;
    memcpy(name, slash ? slash + 1 : want, n + 1);
    if (n > 5 && strcasecmp(name + n - 5, ".gguf") == 0)
        name[n - 5] = '\0';
    return *name && strcasestr(model, name) != NULL;
}

/* Which of its models is called so; n_models: none. */
static size_t find_called(const ebb_server *s, const char *name)
{
    size_t i = 0;

    while (i < s->n_models && strcmp(s->models[i], name) != 0)
        i++;
    return i;
}

/* Which of its models `want` means; n_models: none that it has named. */
static size_t find_model(const ebb_server *s, const char *want)
{
    size_t i = find_called(s, want);
    char latest[EBB_PROBE_NAME];                 /* as Ollama completes a name */

    if (s->kind == EBB_SERVER_EBB && s->n_models == 1 && is_meant(s->models[0], want))
        return 0;
    if (i < s->n_models)
        return i;
    snprintf(latest, sizeof latest, "%.150s:latest", want);
    return find_called(s, latest);
}

bool ebb_server_may_have(const ebb_server *s, const char *want)
{
    return find_model(s, want) < s->n_models || s->n_models == 0 || s->n_models == EBB_PROBE_MODELS;
}

/* Choose the model that answers: the requested one, else the server's first. */
static ebb_status choose_model(const ebb_engine_link *l, ebb_server *s, ebb_error *err)
{
    const char *want = l->entry->model;
    size_t i;

    if (!want || !*want) {
        snprintf(s->model, sizeof s->model, "%s", s->n_models ? s->models[0] : "");
        return EBB_OK;
    }
    if (!ebb_server_may_have(s, want))
        return EBB_FAIL(err, EBB_NOTFOUND, "%s has no model %.100s; it has %.100s%s", l->entry->name, want,
                        s->models[0], s->n_models > 1 ? " and others: `ebb engines test` lists them" : "");
    i = find_model(s, want);
    snprintf(s->model, sizeof s->model, "%s", i < s->n_models ? s->models[i] : want);
    return EBB_OK;
}

static const json_t *entry_of(const json_t *list, const char *key, const char *name)
{
    size_t i;
    json_t *m;

    json_array_foreach((json_t *)list, i, m)
        if (strcmp(ebb_json_get_text(m, key), name) == 0)
            return m;
    return NULL;
}

/* /v1/models, which all of them have. */
static ebb_status list_models(ebb_engine_link *l, ebb_server *s, bool *may_retry, ebb_error *err)
{
    ebb_client_reply r;
    json_t *o, *data, *m;
    const json_t *mine;
    size_t i;
    ebb_status st = get_json(l, "/v1/models", l->entry->silence_s ? l->entry->silence_s : LIMIT_S, &o, &r, err);

    *may_retry = st == EBB_BUSY || (r.status == 0 && !r.was_sent && st == EBB_IO);
    if (st != EBB_OK)
        return st;
    data = json_object_get(o, "data");
    if (!json_is_array(data))
        st = EBB_FAIL(err, EBB_FORMAT, "%s: has no list of models at /v1/models; is its address right?",
                      l->entry->name);
    json_array_foreach(data, i, m)
        if (!add_model(l, s, ebb_json_get_text(m, "id")))
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for a list of models");
    s->kind = l->entry->kind ? ebb_server_kind_parse(l->entry->kind) : EBB_SERVER_ANY;
    if (s->kind == EBB_SERVER_ANY || s->kind == EBB_SERVER_COUNT)
        s->kind = kind_of(l, &r, json_array_get(data, 0));
    if (st == EBB_OK)
        st = choose_model(l, s, err);
    mine = entry_of(data, "id", s->model);
    s->n_ctx = count_of(mine, "max_model_len");
    if (!s->n_ctx)
        s->n_ctx = count_of(json_object_get(mine, "meta"), "n_ctx");
    json_decref(o);
    return st;
}

/* -- What only some of them say ---------------------------------------------------------------------- */

/* An optional request: without its reply, fewer facts about the server are known. */
static json_t *ask_more(ebb_engine_link *l, const char *path)
{
    ebb_client_reply r;
    json_t *o;

    return get_json(l, path, MORE_LIMIT_S, &o, &r, NULL) == EBB_OK ? o : NULL;
}

static void set_version(const ebb_engine_link *l, ebb_server *s, const char *version)
{
    snprintf(s->version, sizeof s->version, "%.60s", version);
    ebb_engine_link_hide_secrets(l, s->version);
}

static void probe_llama(ebb_engine_link *l, ebb_server *s)
{
    json_t *o = ask_more(l, "/props");
    uint32_t n = count_of(json_object_get(o, "default_generation_settings"), "n_ctx");

    s->n_ctx = n ? n : s->n_ctx;
    set_version(l, s, ebb_json_get_text(o, "build_info"));
    if (s->kind == EBB_SERVER_EBB)
        ebb_figures_get(json_object_get(o, "ebb"), &s->figures);
    json_decref(o);
}

static void probe_version(ebb_engine_link *l, ebb_server *s, const char *path)
{
    json_t *o = ask_more(l, path);

    set_version(l, s, ebb_json_get_text(o, "version"));
    json_decref(o);
}

/* Ollama reports the options of loaded models only. */
static void probe_ollama(ebb_engine_link *l, ebb_server *s)
{
    json_t *o;

    probe_version(l, s, "/api/version");
    o = ask_more(l, "/api/ps");
    s->n_ctx = count_of(entry_of(json_object_get(o, "models"), "name", s->model), "context_length");
    json_decref(o);
}

static void probe_lm_studio(ebb_engine_link *l, ebb_server *s)
{
    json_t *o = ask_more(l, "/api/v0/models");

    s->n_ctx = count_of(entry_of(json_object_get(o, "data"), "id", s->model), "loaded_context_length");
    json_decref(o);
}

ebb_status ebb_server_probe(ebb_engine_link *l, ebb_server *s, bool *may_retry, ebb_error *err)
{
    ebb_status st;

    *s = (ebb_server){ 0 };
    st = list_models(l, s, may_retry, err);
    if (st != EBB_OK) {
        ebb_server_fini(s);
        return st;
    }
    if (s->kind == EBB_SERVER_LLAMA || s->kind == EBB_SERVER_EBB)
        probe_llama(l, s);
    else if (s->kind == EBB_SERVER_OLLAMA)
        probe_ollama(l, s);
    else if (s->kind == EBB_SERVER_LM_STUDIO)
        probe_lm_studio(l, s);
    else if (s->kind == EBB_SERVER_VLLM)
        probe_version(l, s, "/version");
    if (l->entry->n_ctx) {
        s->is_ctx_asked = s->n_ctx == 0 || s->kind == EBB_SERVER_OLLAMA;
        s->n_ctx = s->is_ctx_asked || l->entry->n_ctx < s->n_ctx ? l->entry->n_ctx : s->n_ctx;
    }
    if (ebb_client_is_stopped(l->client)) {
        ebb_server_fini(s);
        return EBB_FAIL(err, EBB_CANCELED, "stopped");
    }
    return EBB_OK;
}

/* -- The report ---------------------------------------------------------------------------------------- */

static void add_text(ebb_buf *out, const char *s)
{
    ebb_utf8_add_line(out, s, strlen(s), false);
}

static void report_models(const ebb_server *s, ebb_buf *out)
{
    enum { SHOWN = 20 };

    ebb_buf_addf(out, "\nmodels        %zu", s->n_models);
    for (size_t i = 0; i < s->n_models && i < SHOWN; i++) {
        ebb_buf_adds(out, "\n              ");
        add_text(out, s->models[i]);
        if (strcmp(s->models[i], s->model) == 0)
            ebb_buf_adds(out, "  (answers)");
    }
    if (s->n_models > SHOWN)
        ebb_buf_addf(out, "\n              and %zu more", s->n_models - SHOWN);
}

void ebb_server_report(const ebb_engine_link *l, const ebb_server *s, ebb_buf *out)
{
    const ebb_dialect *d = ebb_dialect_of(s->kind);

    ebb_buf_addf(out, "%s, at ", l->entry->name);
    add_text(out, l->address.text);
    ebb_buf_addf(out, "\nkind          %s%s", d->name, *s->version ? " " : "");
    add_text(out, s->version);
    report_models(s, out);
    if (s->n_ctx)
        ebb_buf_addf(out, "\ncontext       %u tokens%s", s->n_ctx, s->is_ctx_asked ? ", as asked for here" : "");
    else
        ebb_buf_addf(out, "\ncontext       not reported; %s",
                     d->context_hint ? d->context_hint : "set context = N in the file of engines");
    ebb_buf_adds(out, "\nspeaks        messages; counts before an answer are about");
    ebb_buf_addf(out, "\ncontinues     %s", d->can_continue ? "yes: an answer that was cut off goes on"
                                                            : "no: /retry asks again");
    ebb_buf_addf(out, "\nprogress      %s", d->has_progress ? "yes, while it reads the prompt"
                                                            : "no; a clock runs until the first word");
    ebb_buf_addf(out, "\nthoughts      %s", d->thoughts ? d->thoughts : "shown if they come");
    if (d->cached_hint)
        ebb_buf_addf(out, "\ncached tokens only if the server was started with %s", d->cached_hint);
    else
        ebb_buf_addf(out, "\ncached tokens %s", s->kind == EBB_SERVER_OLLAMA ||
                     s->kind == EBB_SERVER_LM_STUDIO ? "not told" : "if the server counts them");
    if (s->kind == EBB_SERVER_VLLM || s->kind == EBB_SERVER_SGLANG)
        ebb_buf_adds(out, "\n              models that think need --reasoning-parser");
    if (!l->address.is_private)
        ebb_buf_addf(out, "\nwire          http: what is said to %s can be read on the way", l->address.host);
}
