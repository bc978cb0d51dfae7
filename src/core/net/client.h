/* net/client.h - requests to one server, one after the other, on one thread: over TCP or TLS, a
 * UNIX socket, or a pipe to a command that speaks HTTP on its standard input and output.
 *
 *  C1  Headers go to this server only: a redirect is an answer like any other, and is not followed.
 *      A proxy gets none of them.
 *  C2  Connecting has a time, and silence has.  The whole of a request has none, since an answer
 *      may think for long, unless its caller sets one.  A stop from any thread closes the
 *      connection at once.
 *  C3  Texts of a reply are from outside, and so are their sizes: headers have limits, a body goes
 *      to the caller piece by piece.
 * Proxies are those of $http_proxy, $https_proxy and $no_proxy; to this machine and to a command
 * there is none. */
#ifndef EBB_NET_CLIENT_H
#define EBB_NET_CLIENT_H
#include <stdbool.h>
#include <stddef.h>

#include "ebb/status.h"

typedef struct ebb_client ebb_client;

typedef struct ebb_client_opts {
    const char  *url;            /* "https://host:port/base", to which paths are appended; copied,
                                    as all of these */
    const char  *name;           /* of the server, in messages */
    const char  *unix_path;      /* connect to this socket instead; NULL */
    char *const *command;        /* or start this, up to a NULL; NULL */
    const char  *ca_file;        /* trusted beside those of the system; NULL */
    bool         has_no_proxy;
    unsigned     connect_s, silence_s;   /* 20 and 600 if 0 */
} ebb_client_opts;

typedef struct ebb_client_reply {
    int      status;             /* 0: none came */
    char     type[64];           /* Content-Type, without parameters */
    char     server[64];         /* Server */
    char     location[256];      /* of a redirect */
    unsigned retry_after_s;      /* at most an hour */
    bool     was_sent;           /* the server may have seen the request, or some of it */
    bool     is_stopped;         /* by on_body */
} ebb_client_reply;

#define EBB_CLIENT_ENOUGH (-2)

typedef struct ebb_client_request {
    const char        *path;     /* "/v1/models" */
    const char        *body;     /* POSTed as JSON; NULL: a GET ... */
    const char        *method;   /* ... or this ("DELETE"); NULL */
    size_t             n_body;
    const char *const *headers;  /* "Name: value", up to a NULL; NULL: none */
    unsigned           limit_s;  /* for the whole of it, however much comes; 0: none */
    /* A piece of the body, whatever the status; false ends the request, and the call returns OK
     * with is_stopped. */
    bool             (*on_body)(void *arg, const ebb_client_reply *r, const char *data, size_t n);
    /* After each piece, and when it asked for it: in how many ms it wants to be called again (-1:
     * it need not).  EBB_CLIENT_ENOUGH ends the request as on_body can.  NULL. */
    int              (*on_tick)(void *arg);
    void              *arg;
} ebb_client_request;

/* Errors: NOMEM, UNSUPPORTED (no libcurl).  Opens no connection. */
EBB_MUST_CHECK
ebb_status ebb_client_new(const ebb_client_opts *opts, ebb_client **out, ebb_error *err);
/* Closes the connection; a command gets a second to end.  NULL is fine. */
void ebb_client_free(ebb_client *c);

/* OK: an answer came, of whatever status.  Errors, with what is known in *r: CANCELED
 * (ebb_client_stop), IO, LIMIT (headers without end), USAGE (no such address), NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_client_send(ebb_client *c, const ebb_client_request *q, ebb_client_reply *r,
                           ebb_error *err);

/* From any thread: the request under way, and each one until `resume`, is CANCELED. */
void ebb_client_stop(ebb_client *c);
void ebb_client_resume(ebb_client *c);
bool ebb_client_is_stopped(const ebb_client *c);
/* When the connection was made, on ebb_clock_s; 0: there was none yet.  From the thread that
 * sends. */
double ebb_client_connected_s(const ebb_client *c);

#endif
