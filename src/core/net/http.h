/* net/http.h - GET over HTTP and HTTPS.  The only place of the program that opens a connection.
 *
 *  H1  A secret goes to one origin (scheme, host, port) and to no other: redirects are followed
 *      here, and each hop is looked at anew.  It goes over TLS, or to this very machine.
 *  H2  From https nothing leads to http, and nothing leads to another protocol.
 *  H3  Texts of a reply are from outside: they have no control characters, but are otherwise as the
 *      server wrote them.
 *  H4  Headers have limits, and the body of a refusal is not read.  A body that was asked for goes
 *      to the caller piece by piece.
 * Proxies are those of $http_proxy, $https_proxy, $no_proxy, as libcurl reads them; this machine is
 * reached without. */
#ifndef EBB_NET_HTTP_H
#define EBB_NET_HTTP_H
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "ebb/status.h"

#define EBB_HTTP_UNKNOWN UINT64_MAX
#define EBB_HTTP_URL     8192u

/* The last answer of a chain of redirects. */
typedef struct ebb_http_reply {
    int      status;             /* 200, 206, 404 ...; 0: there was none */
    uint64_t from;               /* where in the object the body begins */
    uint64_t n_bytes;            /* of the whole object, or UNKNOWN */
    char     etag[200];          /* with its quotes; a weak one begins with W/ */
    char     modified[64];       /* Last-Modified */
    unsigned retry_after_s;
    char     next[EBB_HTTP_URL]; /* Link: rel="next", as an address of its own; "": none */
    char     reason[200];        /* of a refusal, in the server's words: X-Error-Message */
    char     reason_code[64];    /* X-Error-Code: GatedRepo, RepoNotFound ... */
    /* of a hop of the first origin: what the object itself is, wherever its bytes are */
    char     linked_etag[200];
    uint64_t linked_bytes;       /* or UNKNOWN */
    char     host[200];          /* that answered */
    bool     held_back;          /* a secret was not sent: the origin has no TLS */
    bool     may_retry;          /* the connection failed in a way that may not last */
    bool     is_refused;         /* ... though the machine was reached: it let nobody in, or hung up
                                    without an answer */
} ebb_http_reply;

typedef struct ebb_http_request {
    const char *url;
    const char *secret;          /* "Authorization: Bearer ..."; NULL: none */
    const char *secret_url;      /* any URL of the origin that may have it */
    uint64_t    from;            /* first byte that is wanted */
    const char *if_range;        /* only if the object is still this one (etag or date), else all of
                                    it; NULL */
    unsigned    connect_s;
    unsigned    stall_s;         /* how long less than a KiB a second may come; 30 and 60 if 0 */
    unsigned    limit_s;         /* instead: for each hop, however much comes; 0: none */
    /* Called from within; false stops, and the call returns CANCELED.  Each may be NULL. */
    /* 200 and 206 alone, before the body */
    bool      (*on_reply)(void *arg, const ebb_http_reply *r);
    bool      (*on_body)(void *arg, const char *data, size_t n);   /* of these */
    bool (*on_tick)(void *arg); /* about once a second, and after each piece */
    void       *arg;
} ebb_http_request;

/* OK: there was an answer, and of 200 and 206 the whole body.  Errors: CANCELED (by a callback), IO
 * (no answer, or cut off: r->may_retry), LIMIT (too many redirects or headers), FORMAT (what
 * comes is compressed), UNSUPPORTED (library missing, or H2), USAGE (no such URL), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_http_get(const ebb_http_request *q, ebb_http_reply *r, ebb_error *err);

/* The body of a GET as text, of at most `max` bytes (LIMIT).  q's own on_reply and on_body are not
 * called. */
EBB_MUST_CHECK
ebb_status ebb_http_get_text(const ebb_http_request *q, size_t max, ebb_buf *out, ebb_http_reply *r,
                             ebb_error *err);

/* Whether two URLs have the same scheme, host and port. */
bool ebb_http_same_origin(const char *a, const char *b);
/* Append a path's part with everything escaped that is not plain. */
void ebb_http_escape(ebb_buf *out, const char *part);

#endif
