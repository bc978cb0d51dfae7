/* Listings of repositories (hub_listing.h). */
#include "pull/hub_listing.h"
#include "json/json_load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/grow.h"

#define MAX_PAGES     20
#define PAGE_S        60u                        /* so long one of them may take */
#define MAX_TEXT      ((size_t)16 << 20)         /* of all pages */
#define MAX_FILES     10000u
#define MAX_BYTES     ((json_int_t)1 << 50)      /* of a file; of all of them the sum has room in 64 bits */
#define N_SUGGESTIONS 5
#define SUGGEST_S     2.0                        /* so much a wrong name is worth waiting for */

const char *ebb_hub_endpoint(const ebb_pull_env *env)
{
    return env->endpoint ? env->endpoint : EBB_HUB;
}

/* A path with its slashes, all else escaped. */
static void add_path(ebb_buf *out, const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");
        char *part = strndup(path, n);

        out->failed |= !part;
        if (part)
            ebb_http_escape(out, part);
        free(part);
        path += n;
        if (*path == '/')
            ebb_buf_addc(out, *path++);
    }
}

void ebb_hub_add_url(ebb_buf *out, const ebb_pull_env *env, const ebb_pull_source *s, const char *path)
{
    ebb_buf_addf(out, "%s/%s/resolve/", ebb_hub_endpoint(env), s->repo);
    ebb_http_escape(out, s->revision);
    ebb_buf_addc(out, '/');
    add_path(out, path);
}

/* -- What the JSON says ---------------------------------------------------------------------- */

/* Two dots are no name of a folder in an address. */
static bool is_path(const char *path)
{
    size_t n = strlen(path);

    for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return false;
    return n < 1000 && path[0] != '/' && ebb_pull_is_plain(path);
}

static bool is_sha256(const char *s)
{
    return s && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static bool is_size(const json_t *size)
{
    return json_is_integer(size) && json_integer_value(size) >= 0 && json_integer_value(size) <= MAX_BYTES;
}

/* Projectors and tables of importance end in .gguf, too, and are no models. */
static bool is_model(const char *name)
{
    return !strcasestr(name, "mmproj") && !strcasestr(name, "imatrix");
}

static ebb_status add_listed_file(ebb_hub_list *l, const json_t *item, ebb_error *err)
{
    const json_t *lfs = json_object_get(item, "lfs"), *size = json_object_get(item, "size");
    const char *path = json_string_value(json_object_get(item, "path")),
        *oid = json_string_value(json_object_get(lfs, "oid"));
    const char *type = json_string_value(json_object_get(item, "type")), *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path;
    ebb_hub_file *more;

    if (!name || !type || strcmp(type, "file") != 0 || strlen(name) < 5 ||
        strcasecmp(name + strlen(name) - 5, ".gguf") != 0)
        return EBB_OK;
    if (json_is_integer(json_object_get(lfs, "size")))
        size = json_object_get(lfs, "size");
    if (!is_path(path) || !ebb_pull_is_name(name) || !is_size(size)) {
        l->n_rejected++;
        return EBB_OK;
    }
    if (!is_model(name))
        return EBB_OK;
    more = l->n < MAX_FILES ? ebb_grow(l->files, l->n, &l->cap, sizeof *more) : NULL;
    if (!more)
        return l->n < MAX_FILES ? EBB_FAIL(err, EBB_NOMEM, "no memory for a list of files")
                                : EBB_FAIL(err, EBB_LIMIT, "the repository has more than %u model files", MAX_FILES);
    l->files = more;
    more += l->n++;
    *more = (ebb_hub_file){ .path = strdup(path), .n_bytes = (uint64_t)json_integer_value(size) };
    if (!more->path)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a list of files");
    more->name = more->path + (name - path);
    if (is_sha256(oid))
        memcpy(more->sha256, oid, 65);
    return EBB_OK;
}

static ebb_status add_page(ebb_hub_list *l, const ebb_buf *text, const char *repo, ebb_error *err)
{
    json_t *root = ebb_json_load(ebb_buf_text(text), text->len, 0, NULL), *item;
    ebb_status st = json_is_array(root) ? EBB_OK : EBB_FAIL(err, EBB_FORMAT,
                                                            "%s: the server did not send a list of files", repo);
    size_t i;

    json_array_foreach(root, i, item)
        if (st == EBB_OK)
            st = add_listed_file(l, item, err);
    json_decref(root);
    return st;
}

static int by_path(const void *a, const void *b)
{
    const ebb_hub_file *x = a, *y = b;

    return strcmp(x->path, y->path);
}

void ebb_hub_list_fini(ebb_hub_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->files[i].path);
    free(l->files);
    *l = (ebb_hub_list){ 0 };
}

static bool is_listing_canceled(const ebb_pull_env *env)
{
    return env->is_canceled && env->is_canceled(env->arg);
}

/* -- Refusals --------------------------------------------------------------------------------- */

typedef struct suggesting {
    const ebb_pull_env *env;
    double              until_s;
} suggesting;

static bool on_suggestion_tick(void *arg)
{
    const suggesting *s = arg;

    return ebb_clock_s() < s->until_s && !is_listing_canceled(s->env);
}

/* Repositories whose names are like this one, as the hub finds them. */
static void suggest(const ebb_pull_env *env, const char *repo, ebb_buf *out)
{
    const char *slash = strchr(repo, '/'), *id;
    suggesting s = { env, ebb_clock_s() + SUGGEST_S };
    ebb_buf url = { 0 }, text = { 0 };
    ebb_http_reply r;
    json_t *root = NULL, *item;
    size_t i;

    ebb_buf_addf(&url, "%s/api/models?filter=gguf&sort=downloads&limit=%d&search=", ebb_hub_endpoint(env),
                 N_SUGGESTIONS);
    ebb_http_escape(&url, slash ? slash + 1 : repo);
    if (ebb_http_get_text(&(ebb_http_request){ .url = ebb_buf_text(&url), .on_tick = on_suggestion_tick, .arg = &s },
                          MAX_TEXT, &text, &r, NULL) == EBB_OK && r.status == 200)
        root = ebb_json_load(ebb_buf_text(&text), text.len, 0, NULL);
    json_array_foreach(root, i, item) {
        ebb_pull_source like;

        id = json_string_value(json_object_get(item, "id"));
        if (i < N_SUGGESTIONS && id && ebb_pull_parse(id, &like, NULL) == EBB_OK && strcmp(like.repo, id) == 0)
            ebb_buf_addf(out, "%s%s", out->len ? ", " : "; there are: ", id);
    }
    json_decref(root);
    ebb_buf_fini(&url);
    ebb_buf_fini(&text);
}

/* 401 and 403. */
static ebb_status no_entry(const ebb_pull_env *env, const ebb_http_reply *r, const char *repo, const char *what,
                           ebb_error *err)
{
    const char *endpoint = ebb_hub_endpoint(env);
    bool is_gated = strcasecmp(r->reason_code, "GatedRepo") == 0;
    ebb_buf like = { 0 };
    ebb_status st;

    if (!repo)
        return EBB_FAIL(err, EBB_IO, "%s: %s refuses it (%d)", what, r->host, r->status);
    if (r->held_back)
        return EBB_FAIL(err, EBB_IO, "%s: needs a token, and ebb sends none to %s without https", repo, r->host);
    if (is_gated && env->token)
        return EBB_FAIL(err, EBB_IO, "%s: accept its licence first, at %s/%s with the account of the token",
                        repo, endpoint, repo);
    if (is_gated)
        return EBB_FAIL(err, EBB_IO,
                        "%s: accept its licence first, at %s/%s, then make a token at %s/settings/tokens "
                        "and set HF_TOKEN to it", repo, endpoint, repo, endpoint);
    if (env->token)
        return EBB_FAIL(err, EBB_IO,
                        "%s: the token has no access to it (%d): is HF_TOKEN right, and may it read this repository?",
                        repo, r->status);
    suggest(env, repo, &like);                   /* the hub says so of what does not exist, too */
    st = EBB_FAIL(err, EBB_NOTFOUND, "%s: there is no such repository, or it is private and needs HF_TOKEN%s", repo,
                  ebb_buf_text(&like));
    ebb_buf_fini(&like);
    return st;
}

ebb_status ebb_hub_refusal(const ebb_pull_env *env, const ebb_http_reply *r, const char *repo, const char *what,
                           ebb_error *err)
{
    ebb_buf like = { 0 };
    ebb_status st;

    switch (r->status) {
    case 401: case 403:
        return no_entry(env, r, repo, what, err);
    case 404: case 410:
        if (repo && strcmp(what, repo) == 0)
            suggest(env, repo, &like);
        st = EBB_FAIL(err, EBB_NOTFOUND, "%s: not found (%d from %s)%s", what, r->status, r->host,
                      ebb_buf_text(&like));
        ebb_buf_fini(&like);
        return st;
    case 429:
        return EBB_FAIL(err, EBB_IO, "%s: %s has had too many requests from here (429); try again in %u minutes%s",
                        what, r->host,
                        r->retry_after_s ? (r->retry_after_s + 59) / 60 : 5, repo &&
                        !env->token ? ", or with HF_TOKEN" : "");
    default:
        return EBB_FAIL(err, EBB_IO, "%s: %s answers %d%s%s", what, r->host, r->status,
                        r->reason[0] ? ": " : "; try again later", r->reason);
    }
}

/* -- The listing ------------------------------------------------------------------------------ */

static bool on_listing_tick(void *arg)
{
    return !is_listing_canceled(arg);
}

static ebb_status get_page(const ebb_pull_env *env, const char *url, const char *repo, ebb_buf *text, ebb_http_reply *r,
                           ebb_error *err)
{
    ebb_http_request q = { .url = url, .secret = env->token, .secret_url = ebb_hub_endpoint(env),
                           .connect_s = env->connect_s, .limit_s = PAGE_S,
                           .on_tick = on_listing_tick, .arg = (void *)(uintptr_t)env };
    ebb_status st = ebb_http_get_text(&q, MAX_TEXT, text, r, err);

    if (st == EBB_OK && r->status != 200)
        st = ebb_hub_refusal(env, r, repo, repo, err);
    return st;
}

ebb_status ebb_hub_files(const ebb_pull_env *env, const ebb_pull_source *s, ebb_hub_list *out, ebb_error *err)
{
    ebb_buf url = { 0 }, text = { 0 };
    ebb_http_reply r = { 0 };
    size_t n_read = 0;
    ebb_status st = EBB_OK;

    *out = (ebb_hub_list){ 0 };
    ebb_buf_addf(&url, "%s/api/models/%s/tree/", ebb_hub_endpoint(env), s->repo);
    ebb_http_escape(&url, s->revision);
    ebb_buf_adds(&url, "?recursive=true");
    for (int i = 0; st == EBB_OK && url.len; i++) {
        ebb_buf_clear(&text);
        st = i < MAX_PAGES ? get_page(env, ebb_buf_text(&url), s->repo, &text, &r, err)
                           : EBB_FAIL(err, EBB_LIMIT, "%s: its list of files has no end", s->repo);
        n_read += text.len;
        if (st == EBB_OK && n_read > MAX_TEXT)
            st = EBB_FAIL(err, EBB_LIMIT, "%s: its list of files has more than %zu MiB, the most that is accepted",
                          s->repo, MAX_TEXT >> 20);
        if (st == EBB_OK)
            st = add_page(out, &text, s->repo, err);
        ebb_buf_clear(&url);
        ebb_buf_adds(&url, r.next);
        if (st == EBB_OK && r.next[0] && !ebb_http_same_origin(r.next, ebb_hub_endpoint(env)))
            st = EBB_FAIL(err, EBB_UNSUPPORTED,
                          "%s: its list of files goes on at another server, which ebb does not ask (%.120s); if "
                          "that is the hub, set HF_ENDPOINT to it", s->repo, r.next);
    }
    ebb_buf_fini(&url);
    ebb_buf_fini(&text);
    if (st == EBB_OK && out->n == 0)
        st = EBB_FAIL(err, EBB_NOTFOUND,
                      "%s: has no GGUF files; repositories of converted models usually end in -GGUF%s", s->repo,
                      out->n_rejected ? " (it has some with names or sizes that cannot be used)" : "");
    if (st != EBB_OK)
        ebb_hub_list_fini(out);
    else
        qsort(out->files, out->n, sizeof *out->files, by_path);
    return st;
}
