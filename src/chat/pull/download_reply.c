/* A request for what is still missing of a file, and the server's answer (download_priv.h). */
#include "pull/download_priv.h"

#include <stdio.h>
#include <string.h>

/* The hash of the object, in an etag of the hub: "64 digits". */
static void read_hash(const ebb_http_reply *r, char out[65])
{
    const char *p = r->linked_etag[0] == '"' ? r->linked_etag + 1 : r->linked_etag;

    if (!out[0] && strspn(p, "0123456789abcdef") == 64 && (p[64] == '"' || p[64] == '\0'))
        snprintf(out, 65, "%.64s", p);
}

/* How large the file is, as far as it is said; FORMAT if that is said twice and not alike. */
static ebb_status read_size(ebb_download *d, const ebb_http_reply *r, ebb_error *err)
{
    uint64_t n = r->n_bytes != UNKNOWN ? r->n_bytes : d->request->is_hub ? r->linked_bytes : UNKNOWN;

    if (d->total != UNKNOWN && n != UNKNOWN && n != d->total && d->request->n_bytes != UNKNOWN)
        return EBB_FAIL(err, EBB_FORMAT,
                        "%s: should have %llu bytes, the server has %llu: has it just been replaced?  Try again",
                        d->request->name, (unsigned long long)d->total, (unsigned long long)n);
    if (n != UNKNOWN)
        d->total = n;
    return EBB_OK;
}

typedef enum version {
    SAME_VERSION, OTHER_VERSION, UNKNOWN_VERSION,
} version;

/* A proxy that may have packed a file anew calls what the server names "x" W/"x": whoever wants no bytes of it may take
 * the one for the other (RFC 9110, 8.8.3.2). */
static bool is_same_etag(const char *ours, const char *theirs, bool is_weak_enough)
{
    static const char weak[] = "W/";
    size_t n = is_weak_enough && strncmp(theirs, weak, sizeof weak - 1) == 0 ? sizeof weak - 1 : 0;

    return strcmp(ours, theirs + n) == 0;
}

/* What the server has, against what the sidecar names. */
static version compare_version(const ebb_download *d, const ebb_http_reply *r, bool is_weak_enough)
{
    bool has_sha = d->sha256[0] && (!d->sidecar.sha256[0] || strcmp(d->sha256, d->sidecar.sha256) == 0);
    bool has_etag = d->sidecar.etag[0] && r->etag[0], has_date = d->sidecar.modified[0] && r->modified[0];
    bool is_other = d->sha256[0] ? !has_sha
                  : has_etag ? !is_same_etag(d->sidecar.etag, r->etag, is_weak_enough)
                             : has_date && strcmp(d->sidecar.modified, r->modified) != 0;

    if (is_other || (d->sidecar.n_bytes != UNKNOWN && d->total != UNKNOWN && d->sidecar.n_bytes != d->total))
        return OTHER_VERSION;
    return has_sha || has_etag || has_date ? SAME_VERSION : UNKNOWN_VERSION;
}

/* Why the part cannot be resumed at its end, as a text for the user; NULL: it can. */
static const char *why_not_resumable(const ebb_download *d, const ebb_http_reply *r)
{
    version v = compare_version(d, r, false);

    if (v == OTHER_VERSION || (d->total != UNKNOWN && d->pos > d->total))
        return "the file has changed on the server";
    if (v == UNKNOWN_VERSION)
        return "the server does not say whether it is still the same file";
    return r->status == 206 && r->from == d->pos ? NULL : "the server cannot resume";
}

static void fill_sidecar(ebb_download *d, const ebb_http_reply *r)
{
    d->sidecar.n_bytes = d->total;
    snprintf(d->sidecar.command, sizeof d->sidecar.command, "%s", d->request->command);
    memcpy(d->sidecar.sha256, d->sha256, sizeof d->sidecar.sha256);
    snprintf(d->sidecar.etag, sizeof d->sidecar.etag, "%s", strncmp(r->etag, "W/", 2) ? r->etag : "");
    snprintf(d->sidecar.modified, sizeof d->sidecar.modified, "%s", r->modified);
}

static ebb_status handle_reply(ebb_download *d, const ebb_http_reply *r, ebb_error *err)
{
    ebb_status st = EBB_OK;

    if (d->request->is_hub)
        read_hash(r, d->sha256);
    st = read_size(d, r, err);
    if (st == EBB_OK && d->pos) {
        const char *why = why_not_resumable(d, r);

        if (why) {
            ebb_download_notice(d, "%s: starting over", why);
            st = ebb_download_restart(d, err);
            d->result->n_resumed = 0;
            d->must_restart = r->status == 206;  /* the body starts in the middle of the file */
        }
    } else if (st == EBB_OK && r->from != 0) {
        st = EBB_FAIL(err, EBB_FORMAT, "%s: the server starts in the middle", d->request->name);
    }
    if (st == EBB_OK)
        st = ebb_download_check_disk_space(d, err);
    if (st != EBB_OK)                            /* the part may be of another version than this one */
        return st;
    fill_sidecar(d, r);
    return d->pos == d->n_part ? ebb_download_note_part(d, err) : EBB_OK;
}

static bool on_reply(void *arg, const ebb_http_reply *r)
{
    ebb_download *d = arg;

    return handle_reply(d, r, &d->callback_error) == EBB_OK && !d->must_restart;
}

/* A reply that does not end is not waited for where the checksum says whether this is the file. */
static bool has_all(const ebb_download *d)
{
    return d->total != UNKNOWN && d->pos == d->total && d->sha256[0];
}

static ebb_status handle_body(ebb_download *d, const char *data, size_t n, ebb_error *err)
{
    ebb_status st;

    if (d->total != UNKNOWN && n > d->total - d->pos)
        return EBB_FAIL(err, EBB_FORMAT, "%s: the server sends more than the %llu bytes it should have",
                        d->request->name, (unsigned long long)d->total);
    st = ebb_download_add(d, data, n, err);
    if (st != EBB_OK)
        return st;
    d->result->n_fetched += n;
    st = ebb_download_check_spare_room(d, err);
    if (st != EBB_OK)
        return st;
    ebb_download_report(d, d->pos, false, d->pos == d->total);
    if (d->pos == d->n_part && d->pos >= d->next_look)
        st = ebb_download_check_header(d, err);
    if (st == EBB_OK && ((d->has_header && d->request->header_only) || has_all(d)))
        st = EBB_FAIL(err, EBB_CANCELED, "enough");
    return st;
}

static bool on_body(void *arg, const char *data, size_t n)
{
    ebb_download *d = arg;

    return handle_body(d, data, n, &d->callback_error) == EBB_OK;
}

static bool on_tick(void *arg)
{
    ebb_download *d = arg;

    ebb_download_report(d, d->pos, false, false);
    return !ebb_download_is_canceled(d);
}

/* -- A request ------------------------------------------------------------------------------ */

/* What If-Range may name: nothing where the checksum decides anyway, for mirrors call the same bytes by many names. */
static const char *if_range_value(const ebb_download *d)
{
    return d->sha256[0] ? NULL
           : d->sidecar.etag[0] ? d->sidecar.etag : d->sidecar.modified[0] ? d->sidecar.modified : NULL;
}

static ebb_http_request request_of_file(ebb_download *d)
{
    return (ebb_http_request){
        .url = d->request->url, .secret = d->request->is_hub ? d->env->token : NULL,
        .secret_url = ebb_hub_endpoint(d->env), .connect_s = d->env->connect_s, .stall_s = d->env->stall_s,
        .on_tick = on_tick, .arg = d,
    };
}

/* An error of a callback is the request's. */
static ebb_status run_request(ebb_download *d, const ebb_http_request *q, ebb_http_reply *r, ebb_error *err)
{
    ebb_status st;

    memset(&d->callback_error, 0, sizeof d->callback_error);
    st = ebb_http_get(q, r, err);
    if (st == EBB_CANCELED && d->callback_error.msg[0]) {
        if (err)
            *err = d->callback_error;
        st = d->callback_error.code;
    }
    return st;
}

static ebb_status send_request(ebb_download *d, ebb_http_reply *r, ebb_error *err)
{
    ebb_http_request q = request_of_file(d);

    q.from = d->pos;
    q.if_range = if_range_value(d);
    q.on_reply = on_reply;
    q.on_body = on_body;
    d->must_restart = false;
    return run_request(d, &q, r, err);
}

/* The headers say all that is asked for, unless they are of something else: a page of some proxy, for instance. */
static bool on_version(void *arg, const ebb_http_reply *r)
{
    ebb_download *d = arg;

    if (d->request->is_hub)
        read_hash(r, d->sha256);
    if (read_size(d, r, &d->callback_error) != EBB_OK)
        return false;
    d->has_version = true;
    d->is_other = compare_version(d, r, true) == OTHER_VERSION;
    return d->is_other;
}

static bool on_begin(void *arg, const char *bytes, size_t n)
{
    ebb_download *d = arg;
    size_t room = sizeof d->begin - d->n_begin;

    n = n < room ? n : room;
    memcpy(d->begin + d->n_begin, bytes, n);
    d->n_begin += n;
    return n < room;
}

ebb_status ebb_download_ask_version(ebb_download *d, ebb_http_reply *r, bool *again, ebb_error *err)
{
    static const char magic[sizeof d->begin] = { 'G', 'G', 'U', 'F' };
    ebb_http_request q = request_of_file(d);
    bool is_whole;
    ebb_status st;

    q.on_reply = on_version;
    q.on_body = on_begin;
    d->has_version = d->is_other = false;
    d->n_begin = 0;
    st = run_request(d, &q, r, err);
    *again = st == EBB_IO && r->may_retry && d->callback_error.code == EBB_OK;
    is_whole = st == EBB_OK || d->n_begin == sizeof magic;
    if (d->has_version && (!d->is_other || (d->n_begin == sizeof magic && memcmp(d->begin, magic, sizeof magic) == 0)))
        return EBB_OK;
    if (d->is_other && is_whole)
        return EBB_FAIL(err, EBB_FORMAT, "%s: %s sends something that is no model; what is here is kept, try again "
                                         "later", d->request->name, r->host);
    if (st != EBB_OK)
        return *again ? EBB_OK : st;
    *again = ebb_download_may_pass(r->status);
    return *again ? EBB_OK : ebb_hub_refusal(d->env, r, d->request->repo, d->request->name, err);
}

bool ebb_download_may_pass(int status)
{
    return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

/* 416, range not satisfiable: the part is complete, or longer than the server's file.  Of a file that goes on behind
 * the part it cannot be true, and the part is kept. */
static ebb_status handle_416(ebb_download *d, const ebb_http_reply *r, bool *again, ebb_error *err)
{
    ebb_status st = read_size(d, r, err);

    if (st != EBB_OK || d->pos == d->total)
        return st;
    if (d->total != UNKNOWN && d->pos < d->total)
        return ebb_hub_refusal(d->env, r, d->request->repo, d->request->name, err);
    ebb_download_notice(d, "the server has less than is here: starting over");
    *again = true;
    return ebb_download_restart(d, err);
}

ebb_status ebb_download_request_rest(ebb_download *d, ebb_http_reply *r, bool *again, ebb_error *err)
{
    ebb_status st = send_request(d, r, err);

    *again = false;
    if (st == EBB_CANCELED && d->must_restart) {
        *again = true;
        return EBB_OK;
    }
    if (st == EBB_IO && r->may_retry && d->callback_error.code == EBB_OK) {
        *again = true;
        return EBB_OK;
    }
    if (st == EBB_CANCELED && has_all(d) && !ebb_download_is_canceled(d))
        return EBB_OK;
    if (st != EBB_OK)
        return st;
    if (r->status == 416)
        return handle_416(d, r, again, err);
    if (r->status == 200 || r->status == 206) {
        *again = d->total != UNKNOWN && d->pos < d->total;       /* the connection was closed in order, but early */
        return EBB_OK;
    }
    *again = ebb_download_may_pass(r->status);
    return *again ? EBB_OK : ebb_hub_refusal(d->env, r, d->request->repo, d->request->name, err);
}
