/* GET with libcurl (http.h). */
#include "net/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "ebb/version.h"
#include "net/dynlib.h"
#include "net/header.h"

#define MAX_HOPS     10
#define MAX_HEADERS  ((size_t)256 << 10)     /* bytes, of a hop, its trailers among them: libcurl keeps them all */
#define MAX_REDIRECT ((size_t)64 << 10)      /* bytes of the body of a redirect: libcurl says where to at its end */
#define CONNECT_S    30u
#define STALL_S      60u
#define LOWEST_SPEED 1024                    /* bytes a second */

typedef struct call {
    const ebb_curl         *curl;
    CURL                   *easy;
    const ebb_http_request *q;
    ebb_http_reply         *r;
    const char             *url;             /* of this hop, and so for the next: */
    uint64_t                length;          /* Content-Length */
    size_t                  n_headers;       /* bytes of them in this hop, */
    size_t                  n_for_browsers;  /* and of the body of a redirect or a refusal */
    bool                    is_first_origin, is_reported, is_stopped;
    bool                    has_enough;      /* the rest of that body is not wanted */
    bool                    is_compressed;   /* though nobody asked for it */
} call;

/* -- URLs ------------------------------------------------------------------------------ */

/* "https://host:443", and its host.  Errors: USAGE (no such URL), NOMEM. */
static ebb_status get_origin(const ebb_curl *curl, const char *url, char out[300], char host[200])
{
    CURLU *u = curl->curl_url();
    char *scheme = NULL, *name = NULL, *port = NULL;
    CURLUcode code = u ? curl->curl_url_set(u, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;

    if (code == CURLUE_OK)
        code = curl->curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
    if (code == CURLUE_OK)
        code = curl->curl_url_get(u, CURLUPART_HOST, &name, 0);
    if (code == CURLUE_OK)
        code = curl->curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (code == CURLUE_OK && (strlen(scheme) + strlen(name) + strlen(port) + 5 >= 300 || strlen(name) >= 200))
        code = CURLUE_MALFORMED_INPUT;
    if (code == CURLUE_OK) {
        snprintf(out, 300, "%s://%s:%s", scheme, name, port);
        snprintf(host, 200, "%s", name);
    }
    curl->curl_free(scheme);
    curl->curl_free(name);
    curl->curl_free(port);
    curl->curl_url_cleanup(u);
    return code == CURLUE_OK ? EBB_OK : code == CURLUE_OUT_OF_MEMORY ? EBB_NOMEM : EBB_USAGE;
}

bool ebb_http_same_origin(const char *a, const char *b)
{
    const ebb_curl *curl;
    char x[300], y[300], host[200];

    return ebb_curl_load(&curl, NULL) == EBB_OK && get_origin(curl, a, x, host) == EBB_OK &&
           get_origin(curl, b, y, host) == EBB_OK &&
           strcasecmp(x, y) == 0;
}

void ebb_http_escape(ebb_buf *out, const char *part)
{
    static const char hex[] = "0123456789ABCDEF";

    for (const unsigned char *p = (const unsigned char *)part; *p; p++)
        if ((*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || strchr("-._~", *p)) {
            ebb_buf_addc(out, (char)*p);
        } else {
            ebb_buf_addc(out, '%');
            ebb_buf_addc(out, hex[*p >> 4]);
            ebb_buf_addc(out, hex[*p & 15]);
        }
}

static bool is_this_machine(const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 || strcmp(host, "[::1]") == 0 || strcmp(host, "localhost") == 0;
}

/* H1. */
static bool may_have_secret(const call *c, const char *url)
{
    char mine[300], its[300], host[200];

    if (!c->q->secret || !c->q->secret_url || get_origin(c->curl, c->q->secret_url, its, host) != EBB_OK ||
        get_origin(c->curl, url, mine, host) != EBB_OK || strcasecmp(mine, its) != 0)
        return false;
    c->r->held_back = strncasecmp(mine, "https:", 6) != 0 && !is_this_machine(host);
    return !c->r->held_back;
}

/* H2. */
static bool is_tls_only(const call *c)
{
    return strncasecmp(c->q->url, "https:", 6) == 0;
}

/* -- Headers ---------------------------------------------------------------------------- */

static bool get_header_number(const char *line, size_t n, const char *name, uint64_t *out)
{
    char text[32], *end;
    uint64_t v;

    if (!ebb_header_text(line, n, name, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    v = strtoull(text, &end, 10);
    if (*end == '\0')
        *out = v;
    return true;
}

/* "bytes 100-199/1000", "bytes * /1000" of a 416. */
static void get_header_range(ebb_http_reply *r, const char *line, size_t n)
{
    char text[100], *slash;
    unsigned long long from;

    if (!ebb_header_text(line, n, "content-range", text, sizeof text) || strncasecmp(text, "bytes ", 6) != 0)
        return;
    slash = strchr(text, '/');
    if (sscanf(text + 6, "%llu-", &from) == 1)
        r->from = from;
    if (slash && slash[1] >= '0' && slash[1] <= '9')
        r->n_bytes = strtoull(slash + 1, NULL, 10);
}

/* The first c in a text that is in no quotes, else its end. */
static char *find_unquoted(char *p, char c)
{
    for (bool is_quoted = false; *p && (is_quoted || *p != c); p++)
        is_quoted ^= *p == '"';
    return p;
}

/* ; rel="next", among other parameters; it may have several words, and no quotes. */
static bool is_next(char *params)
{
    for (char *p = find_unquoted(params, ';'); *p; p = find_unquoted(p, ';')) {
        p += 1 + strspn(p + 1, " \t");
        if (strncasecmp(p, "rel", 3) != 0 || p[3 + strspn(p + 3, " \t")] != '=')
            continue;
        p = strchr(p, '=') + 1;
        for (char *word = p + strspn(p, " \t\""); *word && !strchr(";\"", *word); word += strspn(word, " \t")) {
            size_t k = strcspn(word, " \t;\"");

            if (k == 4 && strncasecmp(word, "next", 4) == 0)
                return true;
            word += k;
        }
    }
    return false;
}

/* Where it leads to from this hop; as it stands where that is nowhere. */
static void set_next(const call *c, const char *where)
{
    CURLU *u = c->curl->curl_url();
    char *url = NULL;
    bool ok = u && c->curl->curl_url_set(u, CURLUPART_URL, c->url, 0) == CURLUE_OK &&
              c->curl->curl_url_set(u, CURLUPART_URL, where, 0) == CURLUE_OK &&
              c->curl->curl_url_get(u, CURLUPART_URL, &url, 0) == CURLUE_OK && strlen(url) < sizeof c->r->next;

    snprintf(c->r->next, sizeof c->r->next, "%s", ok ? url : where);
    c->curl->curl_free(url);
    c->curl->curl_url_cleanup(u);
}

/* <https://...>; rel="next", alone or among others: <a>; rel="first", <b>; rel=next */
static void get_header_next(const call *c, const char *line, size_t n)
{
    char text[EBB_HTTP_URL + 64], *begin = text, *end;

    if (!ebb_header_text(line, n, "link", text, sizeof text))
        return;
    while ((begin = strchr(begin, '<')) != NULL && (end = strchr(begin, '>')) != NULL) {
        char *others = find_unquoted(end + 1, ',');
        bool has_others = *others != '\0';

        *end = *others = '\0';
        if (is_next(end + 1)) {
            set_next(c, begin + 1);
            return;
        }
        begin = others + has_others;
    }
}

/* Other codings (aws-chunked) are names that some stores of files have kept, and change no byte. */
static bool is_compression(const char *line, size_t n)
{
    static const char *const names[] = { "gzip", "x-gzip", "deflate", "br", "zstd", "compress" };
    char coding[32];
    bool is_one = false;

    if (ebb_header_text(line, n, "content-encoding", coding, sizeof coding))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            is_one |= strcasecmp(coding, names[i]) == 0;
    return is_one;
}

static size_t on_header(char *line, size_t size, size_t n, void *arg)
{
    call *c = arg;
    ebb_http_reply *r = c->r;
    uint64_t wait_s = 0;

    n *= size;
    c->n_headers += n;
    if (c->n_headers > MAX_HEADERS || ebb_curl_proxy_refusal(c->curl, c->easy))
        return 0;
    if (n > 5 && strncasecmp(line, "HTTP/", 5) == 0) {   /* of this hop, or behind a "100 Continue" or a proxy's
                                                            answer */
        c->is_compressed = false;
        r->from = 0;
        r->n_bytes = c->length = EBB_HTTP_UNKNOWN;
        r->etag[0] = r->modified[0] = r->next[0] = r->reason[0] = r->reason_code[0] = '\0';
        r->retry_after_s = 0;
    }
    get_header_number(line, n, "content-length", &c->length);
    c->is_compressed |= is_compression(line, n);
    get_header_range(r, line, n);
    ebb_header_text(line, n, "etag", r->etag, sizeof r->etag);
    ebb_header_text(line, n, "last-modified", r->modified, sizeof r->modified);
    ebb_header_text(line, n, "x-error-message", r->reason, sizeof r->reason);
    ebb_header_text(line, n, "x-error-code", r->reason_code, sizeof r->reason_code);
    get_header_next(c, line, n);
    if (get_header_number(line, n, "retry-after", &wait_s))
        r->retry_after_s = wait_s < 3600 ? (unsigned)wait_s : 3600;
    if (c->is_first_origin) {
        ebb_header_text(line, n, "x-linked-etag", r->linked_etag, sizeof r->linked_etag);
        get_header_number(line, n, "x-linked-size", &r->linked_bytes);
    }
    return n;
}

/* -- Bodies ------------------------------------------------------------------------------ */

/* Before the first byte of what was asked for, or after an empty body of it. */
static bool report_tick(call *c)
{
    long status = 0;

    if (c->is_reported)
        return true;
    c->is_reported = true;
    c->curl->curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    c->r->status = (int)status;
    if (c->is_compressed && (status == 200 || status == 206))
        return false;
    if (status == 200) {
        c->r->from = 0;
        c->r->n_bytes = c->length;
    }
    if ((status == 200 || status == 206) && c->q->on_reply && !c->q->on_reply(c->q->arg, c->r))
        c->is_stopped = true;
    return !c->is_stopped;
}

static size_t on_data(char *data, size_t size, size_t n, void *arg)
{
    call *c = arg;

    n *= size;
    if (!report_tick(c))
        return 0;
    if (c->r->status != 200 && c->r->status != 206) {    /* what a refusal or a redirect says is for browsers */
        c->n_for_browsers += n;
        c->has_enough = c->r->status / 100 != 3 || c->n_for_browsers > MAX_REDIRECT;
        return c->has_enough ? 0 : n;
    }
    if (c->q->on_body && !c->q->on_body(c->q->arg, data, n))
        c->is_stopped = true;
    return c->is_stopped ? 0 : n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t d, curl_off_t e)
{
    call *c = arg;

    (void)a;
    (void)b;
    (void)d;
    (void)e;
    if (!c->is_stopped && c->q->on_tick && !c->q->on_tick(c->q->arg))
        c->is_stopped = true;
    return c->is_stopped;
}

/* -- One hop ------------------------------------------------------------------------------ */

static bool may_retry(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT: case CURLE_SSL_CONNECT_ERROR: case CURLE_GOT_NOTHING: case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR: case CURLE_HTTP2: case CURLE_HTTP2_STREAM: case CURLE_WEIRD_SERVER_REPLY:
        return true;
    default:
        return false;
    }
}

static bool is_refused(const call *c, CURLcode code)
{
    long why = 0;

    c->curl->curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &why);
    return code == CURLE_GOT_NOTHING || (code == CURLE_COULDNT_CONNECT && why == ECONNREFUSED);
}

/* Headers of the request; NULL: out of memory. */
static struct curl_slist *request_headers(const call *c, const char *url, bool *failed)
{
    struct curl_slist *list = NULL, *more;
    ebb_buf text = { 0 };

    for (int i = 0; i < 3; i++) {
        ebb_buf_clear(&text);
        if (i == 0 && may_have_secret(c, url))
            ebb_buf_addf(&text, "Authorization: Bearer %s", c->q->secret);
        else if (i == 1 && c->q->from)
            ebb_buf_addf(&text, "Range: bytes=%llu-", (unsigned long long)c->q->from);
        else if (i == 2 && c->q->from && c->q->if_range)
            ebb_buf_addf(&text, "If-Range: %s", c->q->if_range);
        else
            continue;
        more = text.failed ? NULL : c->curl->curl_slist_append(list, ebb_buf_text(&text));
        *failed |= !more;
        list = more ? more : list;
    }
    ebb_buf_wipe(&text);                         /* it held the secret */
    return list;
}

static CURLcode set_options(call *c, const char *url, const char *host, struct curl_slist *headers)
{
    const ebb_curl *curl = c->curl;
    CURL *e = c->easy;
    CURLcode code = CURLE_OK;

    EBB_CURL_SET(code, curl, e, CURLOPT_URL, url);
    EBB_CURL_SET(code, curl, e, CURLOPT_HTTPHEADER, headers);
    EBB_CURL_SET(code, curl, e, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);     /* a proxy gets none of them */
    if (is_this_machine(host))
        EBB_CURL_SET(code, curl, e, CURLOPT_NOPROXY, "*");         /* H1: what may go without TLS does not leave it */
    EBB_CURL_SET(code, curl, e, CURLOPT_USERAGENT, "ebb/" EBB_VERSION);
    EBB_CURL_SET(code, curl, e, CURLOPT_FOLLOWLOCATION, 0L);
    EBB_CURL_SET(code, curl, e, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
    EBB_CURL_SET(code, curl, e, CURLOPT_PROTOCOLS_STR, is_tls_only(c) ? "https" : "http,https");
#else
    EBB_CURL_SET(code, curl, e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | (is_tls_only(c) ? 0 : CURLPROTO_HTTP)));
#endif
    EBB_CURL_SET(code, curl, e, CURLOPT_CONNECTTIMEOUT, (long)(c->q->connect_s ? c->q->connect_s : CONNECT_S));
    EBB_CURL_SET(code, curl, e, CURLOPT_TIMEOUT, (long)c->q->limit_s);
    if (!c->q->limit_s) {
        EBB_CURL_SET(code, curl, e, CURLOPT_LOW_SPEED_LIMIT, (long)LOWEST_SPEED);
        EBB_CURL_SET(code, curl, e, CURLOPT_LOW_SPEED_TIME, (long)(c->q->stall_s ? c->q->stall_s : STALL_S));
    }
    EBB_CURL_SET(code, curl, e, CURLOPT_BUFFERSIZE, 262144L);
    EBB_CURL_SET(code, curl, e, CURLOPT_HEADERFUNCTION, on_header);
    EBB_CURL_SET(code, curl, e, CURLOPT_HEADERDATA, c);
    EBB_CURL_SET(code, curl, e, CURLOPT_WRITEFUNCTION, on_data);
    EBB_CURL_SET(code, curl, e, CURLOPT_WRITEDATA, c);
    EBB_CURL_SET(code, curl, e, CURLOPT_NOPROGRESS, 0L);
    EBB_CURL_SET(code, curl, e, CURLOPT_XFERINFOFUNCTION, on_progress);
    EBB_CURL_SET(code, curl, e, CURLOPT_XFERINFODATA, c);
    return code;
}

static ebb_status perform(call *c, const char *host, ebb_error *err)
{
    CURLcode code = c->curl->curl_easy_perform(c->easy);
    long status = 0, refusal;

    if (code == CURLE_OK)
        report_tick(c);
    if (c->is_stopped)
        return EBB_FAIL(err, EBB_CANCELED, "stopped");
    c->curl->curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    c->r->status = (int)status;
    if (c->is_compressed && (status == 200 || status == 206))
        return EBB_FAIL(err, EBB_FORMAT, "%s: compresses what it sends, which ebb did not ask for; is a proxy in "
                                         "between?", host);
    if (code == CURLE_OK || c->has_enough)
        return EBB_OK;
    if (c->n_headers > MAX_HEADERS)
        return EBB_FAIL(err, EBB_LIMIT, "%s: sends more than %zu KiB of headers, the most that is accepted", host,
                        MAX_HEADERS >> 10);
    if (ebb_curl_has_long_headers(c->curl, c->easy, code))
        return EBB_FAIL(err, EBB_LIMIT, "%s: sends a longer line of headers than libcurl takes", host);
    refusal = ebb_curl_proxy_refusal(c->curl, c->easy);
    if (refusal) {
        c->r->may_retry = refusal >= 500;
        return EBB_FAIL(err, EBB_IO, "%s: the proxy of this machine refuses the connection (%ld)", host, refusal);
    }
    c->r->may_retry = may_retry(code);
    c->r->is_refused = is_refused(c, code);
    ebb_log("net", "%s: %s", host, c->curl->curl_easy_strerror(code));
    if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_PEER_FAILED_VERIFICATION)
        return EBB_FAIL(
            err, EBB_IO,
            "%s: its certificate cannot be trusted (%s); is ca-certificates installed and the clock right?", host,
            c->curl->curl_easy_strerror(code));
    if (code == CURLE_UNSUPPORTED_PROTOCOL)
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        is_tls_only(c) ? "%s: redirects away from https, which ebb does not follow"
                                       : "%s: does not speak HTTP, and ebb nothing else", host);
    if (code == CURLE_OPERATION_TIMEDOUT && ebb_curl_has_connected(c->curl, c->easy) && c->q->limit_s)
        return EBB_FAIL(err, EBB_IO, "%s: has not answered in full within %u s", host, c->q->limit_s);
    if (code == CURLE_OPERATION_TIMEDOUT && ebb_curl_has_connected(c->curl, c->easy))
        return EBB_FAIL(err, EBB_IO, "%s: sends less than %d KiB/s", host, LOWEST_SPEED >> 10);
    return EBB_FAIL(err, EBB_IO, "%s: %s", host, c->curl->curl_easy_strerror(code));
}

/* GET `url`; where it leads to, if it leads on, is put into `url`. */
static ebb_status hop(call *c, char url[EBB_HTTP_URL], bool *goes_on, ebb_error *err)
{
    char origin[300], host[200], *next = NULL;
    bool failed = false;
    struct curl_slist *headers;
    ebb_status st;

    *goes_on = false;
    st = get_origin(c->curl, url, origin, host);
    if (st == EBB_NOMEM)
        return EBB_FAIL(err, st, "no memory for a request");
    if (st != EBB_OK)
        return EBB_FAIL(err, st, "%.100s: is not an address that can be fetched", url);
    c->url = url;
    snprintf(c->r->host, sizeof c->r->host, "%s", host);
    c->is_first_origin = ebb_http_same_origin(url, c->q->url);
    c->is_reported = c->has_enough = false;
    c->n_headers = c->n_for_browsers = 0;
    headers = request_headers(c, url, &failed);
    c->easy = c->curl->curl_easy_init();
    if (!c->easy || failed) {
        st = EBB_FAIL(err, EBB_NOMEM, "no memory for a request");
    } else {
        st = ebb_curl_expect_set(c->curl, set_options(c, url, host, headers), err);
        if (st == EBB_OK)
            st = perform(c, host, err);
        ebb_log("net", "GET from %s at byte %llu: %d", host, (unsigned long long)c->q->from, c->r->status);
    }
    if (st == EBB_OK && c->curl->curl_easy_getinfo(c->easy, CURLINFO_REDIRECT_URL, &next) == CURLE_OK && next &&
        strlen(next) < EBB_HTTP_URL) {
        snprintf(url, EBB_HTTP_URL, "%s", next);
        *goes_on = true;
    }
    if (c->easy)
        c->curl->curl_easy_cleanup(c->easy);
    c->curl->curl_slist_free_all(headers);
    return st;
}

ebb_status ebb_http_get(const ebb_http_request *q, ebb_http_reply *r, ebb_error *err)
{
    call c = { .q = q, .r = r };
    char url[EBB_HTTP_URL];
    bool goes_on = true;
    ebb_status st = ebb_curl_load(&c.curl, err);

    memset(r, 0, sizeof *r);
    r->linked_bytes = EBB_HTTP_UNKNOWN;
    if (st == EBB_OK && (size_t)snprintf(url, sizeof url, "%s", q->url) >= sizeof url)
        st = EBB_FAIL(err, EBB_LIMIT, "the address is longer than %u bytes", EBB_HTTP_URL - 1);
    for (int i = 0; st == EBB_OK && goes_on; i++)
        st = i < MAX_HOPS ? hop(&c, url, &goes_on, err)
                          : EBB_FAIL(err, EBB_LIMIT, "%s: redirects more than %d times", r->host, MAX_HOPS);
    return st;
}

/* -- Text --------------------------------------------------------------------------------- */

typedef struct text_call {
    const ebb_http_request *q;
    ebb_buf                *out;
} text_call;

static bool append_body(void *arg, const char *data, size_t n)
{
    text_call *t = arg;

    return ebb_buf_add(t->out, data, n);
}

static bool tick_text(void *arg)
{
    text_call *t = arg;

    return !t->q->on_tick || t->q->on_tick(t->q->arg);
}

ebb_status ebb_http_get_text(const ebb_http_request *q, size_t max, ebb_buf *out, ebb_http_reply *r, ebb_error *err)
{
    text_call t = { q, out };
    ebb_http_request mine = *q;
    ebb_status st;

    out->max = max;
    mine.on_reply = NULL;
    mine.on_body = append_body;
    mine.on_tick = tick_text;
    mine.arg = &t;
    st = ebb_http_get(&mine, r, err);
    if (st == EBB_CANCELED && out->failed)
        return EBB_FAIL(err, EBB_LIMIT, "%s: answers with more than %zu bytes, the most that is accepted", r->host,
                        max);
    return st;
}
