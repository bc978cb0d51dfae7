/* Requests: who may ask, and what (serve_priv.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "json/json_load.h"
#include "net/listen.h"
#include "serve/serve_priv.h"

/* Bytes that a request's JSON takes in memory; larger requests are read one at a time, since values and tokens
 * take many times the bytes of a body. */
enum { SMALL_REQUEST = 64 << 10 };

/* -- Who may ask ------------------------------------------------------------------------------------------ */

/* As long for each wrong key as for the right one. */
static bool is_same_key(const char *a, const char *key)
{
    size_t n = strlen(a), n_key = strlen(key);
    unsigned difference = n != n_key;

    for (size_t i = 0; i < n_key; i++)
        difference |= (unsigned char)key[i] ^ (unsigned char)(i < n ? a[i] : 0);
    return difference == 0;
}

static bool has_key(const ebb_serve *s, const ebb_http_exchange *x)
{
    const char *bearer = ebb_http_header(x, "Authorization"), *own = ebb_http_header(x, "X-Api-Key");

    if (!s->key)
        return true;
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
        return is_same_key(bearer + 7, s->key);
    return own && is_same_key(own, s->key);
}

/* Of "name:port" or "[IPv6]:port"; *n: its bytes.  NULL: neither. */
static const char *name_in_host(const char *host, size_t *n)
{
    const char *end;

    if (*host != '[') {
        *n = strcspn(host, ":");
        return host;
    }
    *n = strcspn(++host, "]");
    end = host + *n + 1;
    return host[*n] && (*end == '\0' || *end == ':') ? host : NULL;
}

/* A page in a browser can make it ask this machine, under another machine's name: that name gives it away, and so does
 * Origin. */
static bool is_host_ours(const ebb_serve *s, const ebb_http_exchange *x)
{
    static const char *const names[] = { "localhost", "127.0.0.1", "::1" };
    const char *host = ebb_http_header(x, "Host");
    size_t n;

    if (s->opts.is_unix || !host)
        return true;
    host = name_in_host(host, &n);
    if (!host)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncasecmp(host, names[i], n) == 0)
            return true;
    return s->host && (ebb_listen_is_everywhere(s->host) ||
                       (strlen(s->host) == n && strncasecmp(host, s->host, n) == 0));
}

static bool refuse_stranger(ebb_serve *s, ebb_http_exchange *x)
{
    json_t *o = NULL;
    unsigned status = 403;

    if (!is_host_ours(s, x) || (!s->opts.is_unix && ebb_http_header(x, "Origin"))) {
        o = json_pack("{s:i, s:s, s:s}", "code", 403, "message", "pages of other hosts may not ask this server",
                      "type", "permission_error");
    } else if (!has_key(s, x) && strcmp(ebb_http_path(x), "/health") != 0) {
        status = 401;
        o = json_pack("{s:i, s:s, s:s}", "code", 401, "message", "this server wants its key", "type",
                      "authentication_error");
    }
    if (o)
        ebb_serve_reply_json(x, status, json_pack("{s:o}", "error", o));
    return o != NULL;
}

/* -- What they may ask ------------------------------------------------------------------------------------- */

static void get_health(ebb_serve *s, ebb_http_exchange *x)
{
    (void)s;
    ebb_serve_reply_json(x, 200, json_pack("{s:s}", "status", "ok"));
}

static void get_models(ebb_serve *s, ebb_http_exchange *x)
{
    const ebb_model_info *m = ebb_model_get_info(s->model);
    json_t *meta = json_pack("{s:I, s:i, s:i, s:I, s:I}", "n_params", (json_int_t)m->n_params, "n_ctx_train",
                             (int)m->n_ctx_train, "n_ctx", (int)s->n_ctx,
                             "size", (json_int_t)m->weight_bytes, "n_vocab", (json_int_t)m->n_vocab);

    ebb_serve_reply_json(x, 200, json_pack("{s:s, s:[{s:s, s:s, s:I, s:s, s:o}]}", "object", "list", "data", "id",
                                           s->name, "object", "model", "created",
                                           (json_int_t)time(NULL), "owned_by", "ebb", "meta", meta));
}

static void get_stats(ebb_serve *s, ebb_http_exchange *x)
{
    ebb_serve_reply_json(x, 200, ebb_serve_stats_json(s));
}

typedef struct route {
    const char *method, *path;
    void (*get)(ebb_serve *s, ebb_http_exchange *x);
    void (*post)(ebb_serve *s, ebb_http_exchange *x, const json_t *o);
    ebb_serve_asks *asks;
    bool needs_model;
    bool is_watching;            /* asked again and again by who only looks whether, and how, the server is */
} route;

static const route routes[] = {
    { "GET", "/health", get_health, NULL, NULL, true, true },
    { "GET", "/v1/health", get_health, NULL, NULL, true, true },
    { "GET", "/v1/models", get_models, NULL, NULL, true, false },
    { "GET", "/models", get_models, NULL, NULL, true, false },
    { "GET", "/props", ebb_serve_props, NULL, NULL, true, false },
    { "GET", "/slots", ebb_serve_slots, NULL, NULL, true, true },
    { "GET", "/metrics", ebb_serve_metrics, NULL, NULL, true, true },
    { "GET", "/ebb/v1/stats", get_stats, NULL, NULL, false, true },
    { "POST", "/v1/chat/completions", NULL, NULL, ebb_serve_chat_completions, true, false },
    { "POST", "/chat/completions", NULL, NULL, ebb_serve_chat_completions, true, false },
    { "POST", "/v1/completions", NULL, NULL, ebb_serve_completions, true, false },
    { "POST", "/completion", NULL, NULL, ebb_serve_completion, true, false },
    { "POST", "/completions", NULL, NULL, ebb_serve_completion, true, false },
    { "POST", "/tokenize", NULL, ebb_serve_tokenize, NULL, true, false },
    { "POST", "/detokenize", NULL, ebb_serve_detokenize, NULL, true, false },
    { "POST", "/apply-template", NULL, ebb_serve_apply_template, NULL, true, false },
};

static ebb_status check_ready(ebb_serve *s, ebb_error *err)
{
    ebb_status st = EBB_OK;

    pthread_mutex_lock(&s->lock);
    if (s->has_failed)
        st = EBB_FAIL(err, EBB_IO, "the model could not be loaded");     /* its error names a path */
    else if (!s->is_ready)
        st = EBB_FAIL(err, EBB_BUSY, "Loading model");
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* What the body says, into *asked or a reply.  Neither it nor its JSON is kept while the answer waits for its turn. */
static ebb_status read_request(ebb_serve *s, ebb_http_exchange *x, const route *r, ebb_serve_asked *asked,
                               ebb_error *err)
{
    ebb_status st;
    size_t n;
    const char *body = ebb_http_body(x, &n);
    json_error_t where;
    json_t *o = ebb_json_load(body, n, JSON_REJECT_DUPLICATES, &where);

    ebb_http_forget_body(x);
    if (!json_is_object(o)) {
        json_decref(o);
        return EBB_FAIL(err, EBB_USAGE, "the body is not a JSON object%s%.120s", o ? "" : ": ", o ? "" : where.text);
    }
    st = ebb_serve_check_switches(o, err);
    if (st == EBB_OK && r->asks)
        st = r->asks(&(ebb_serve_waiting){ s, x }, o, asked, err);
    else if (st == EBB_OK)
        r->post(s, x, o);
    json_decref(o);
    return st;
}

/* In its turn, unless nobody wants it any more by then. */
static ebb_status read_large_request(ebb_serve *s, ebb_http_exchange *x, const route *r, ebb_serve_asked *asked,
                                     ebb_error *err)
{
    ebb_serve_place place;
    ebb_status st;

    ebb_serve_begin_large(s, ebb_http_client(x), &place);
    if (ebb_serve_stops_waiting(&(ebb_serve_waiting){ s, x }))
        st = EBB_FAIL(err, EBB_CANCELED, "stopped before the request was read");
    else
        st = read_request(s, x, r, asked, err);
    ebb_serve_end_large(s);
    return st;
}

static ebb_status run_route(ebb_serve *s, ebb_http_exchange *x, const route *r, ebb_error *err)
{
    ebb_status st = r->needs_model ? check_ready(s, err) : EBB_OK;
    ebb_serve_asked asked = { .streams = false };
    size_t n;
    const char *body = ebb_http_body(x, &n);

    if (st != EBB_OK)
        return st;
    if (r->get) {
        r->get(s, x);
        return EBB_OK;
    }
    st = ebb_json_memory(body, n) > SMALL_REQUEST ? read_large_request(s, x, r, &asked, err)
                                                  : read_request(s, x, r, &asked, err);
    if (st == EBB_OK && r->asks)
        ebb_serve_answer(s, x, &asked);
    ebb_serve_question_fini(&asked.q);
    return st;
}

/* HEAD is GET without the body, which the server leaves out (RFC 9110, 9.3.2). */
static bool is_asked_with(const ebb_http_exchange *x, const char *method)
{
    const char *asked = ebb_http_method(x);

    return strcmp(method, strcmp(asked, "HEAD") == 0 ? "GET" : asked) == 0;
}

/* /ebb/v1/answers/N[?from=K]: read on (GET), or stop it (DELETE).  *allowed: as of find_route. */
static ebb_status run_answer(ebb_serve *s, ebb_http_exchange *x, const char *number_text, const char **allowed,
                             ebb_error *err)
{
    const char *from = ebb_http_query(x, "from");
    char *end;
    uint64_t number = strtoull(number_text, &end, 10);

    if (!isdigit((unsigned char)*number_text) || *end || (from && !isdigit((unsigned char)*from)))
        return EBB_FAIL(err, EBB_USAGE, "an answer has a number: /ebb/v1/answers/N?from=K");
    if (is_asked_with(x, "GET")) {
        ebb_serve_resume(s, x, number, from ? strtoull(from, NULL, 10) : 0);
        return EBB_OK;
    }
    if (!is_asked_with(x, "DELETE")) {
        *allowed = "GET, HEAD, DELETE";
        return EBB_FAIL(err, EBB_USAGE, "this path is asked with GET (read on) or DELETE (stop it)");
    }
    if (!ebb_serve_cancel(s, number))
        return EBB_FAIL(err, EBB_NOTFOUND, "no answer %llu is under way", (unsigned long long)number);
    ebb_serve_reply_json(x, 200, json_pack("{s:s}", "status", "stopped"));
    return EBB_OK;
}

/* *allowed: the methods of the path where it is asked with another one, which is USAGE; else as before. */
static ebb_status find_route(ebb_serve *s, ebb_http_exchange *x, const char **allowed, ebb_error *err)
{
    static const char answers[] = "/ebb/v1/answers/";
    const char *path = ebb_http_path(x);
    const char *wanted = NULL;

    if (strncmp(path, answers, sizeof answers - 1) == 0)
        return run_answer(s, x, path + sizeof answers - 1, allowed, err);
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (strcmp(routes[i].path, path) != 0)
            continue;
        if (is_asked_with(x, routes[i].method))
            return run_route(s, x, &routes[i], err);
        wanted = routes[i].method;
    }
    if (!wanted)
        return EBB_FAIL(err, EBB_NOTFOUND, "there is nothing at this path");
    *allowed = strcmp(wanted, "GET") == 0 ? "GET, HEAD" : wanted;
    return EBB_FAIL(err, EBB_USAGE, "this path is asked with %s", wanted);
}

/* No ebb_status is 405, which has to name the methods that are served (RFC 9110, 15.5.6). */
static void refuse_method(ebb_http_exchange *x, const char *allowed, const ebb_error *err)
{
    ebb_http_allow(x, allowed);
    ebb_serve_reply_json(x, 405, json_pack("{s:{s:i, s:s, s:s}}", "error", "code", 405, "message", err->msg, "type",
                                           "invalid_request_error"));
}

static bool is_printable(const char *s)
{
    while (*s > ' ' && *s < 127)
        s++;
    return *s == '\0';
}

static bool is_watching(const char *path)
{
    bool is = false;

    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        is = is || (routes[i].is_watching && strcmp(routes[i].path, path) == 0);
    return is;
}

/* Neither who may not ask keeps the server from leaving, nor who watches it: a monitor's probe every few seconds, which
 * for /health needs no key, would keep the model in memory for ever. */
static void note_request(ebb_serve *s, const ebb_http_exchange *x, bool may_ask, bool is_refused, const char *how)
{
    pthread_mutex_lock(&s->lock);
    s->n_requests++;
    s->n_refused += is_refused;
    if (may_ask && !is_watching(ebb_http_path(x)))
        s->used_s = ebb_clock_s();
    pthread_mutex_unlock(&s->lock);
    if (is_printable(ebb_http_method(x)) && is_printable(ebb_http_path(x)))
        ebb_log("serve", "%.20s %.80s: %s", ebb_http_method(x), ebb_http_path(x), how);
}

bool ebb_serve_may_ask(void *arg, ebb_http_exchange *x)
{
    if (!refuse_stranger(arg, x))
        return true;
    note_request(arg, x, false, true, "refused");
    return false;
}

void ebb_serve_on_request(void *arg, ebb_http_exchange *x)
{
    ebb_serve *s = arg;
    const char *allowed = NULL;
    ebb_error err = { 0 };
    ebb_status st = find_route(s, x, &allowed, &err);

    if (allowed)
        refuse_method(x, allowed, &err);
    else if (st != EBB_OK)
        ebb_serve_reply_error(s, x, &err);
    note_request(s, x, true, st != EBB_OK, st == EBB_OK ? "ok" : ebb_status_text(st));
}
