/* net/http_server.h - HTTP on a socket: requests come whole, replies go out whole or as a stream.
 *
 *  H1  Whatever a client does, it costs no more than its connection: bodies, replies, headers and
 *      connections have limits, and a connection on which nothing moves is closed.  Waiting for a
 *      reply that is being made is no silence.
 *  H2  Each connection has a thread of its own, on which `on_request` runs and may wait.
 *  H3  What a client sends is shown to nobody but on_request.
 *  H4  Where a request ends is never guessed: headers that leave it open (two lengths, a length and
 *      chunks) are refused, and the connection is closed. */
#ifndef EBB_NET_HTTP_SERVER_H
#define EBB_NET_HTTP_SERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebb/status.h"

typedef struct ebb_http_server ebb_http_server;
typedef struct ebb_http_exchange ebb_http_exchange;      /* a request and its reply */

typedef struct ebb_http_server_opts {
    int         listen_fd;       /* listens already, TCP or UNIX; taken over, also on failure */
    const char *name;            /* of the header Server; outlives the server */
    unsigned    max_connections; /* more are closed at once; before that who has been silent for
                                    the longest makes room */
    unsigned    silence_s;       /* a connection on which nothing moves for so long is closed */
    unsigned    max_from_one;    /* connections of one address, in the same way; 0: as many as
                                    there may be */
    size_t      max_body;        /* bytes; larger ones are refused */
    size_t      max_bodies;      /* of all connections at any time, those of replies included, the
                                    first 64 KiB of each left out; for more, the body that comes
                                    slowest makes room.  Who has none gets status 503 */
    size_t      max_bodies_of_one;       /* of one client, in the same way, unless it is a single
                                    one; 0: as much as all */
    bool        is_owner_only;   /* of a UNIX socket: other users are refused, whatever its
                                    permissions */
    /* Before a large body is taken, and before on_request: false if it has replied, because who
     * asks may not. */
    bool      (*may_ask)(void *arg, ebb_http_exchange *x);
    /* Replies, with one of the calls below, before it returns. */
    void      (*on_request)(void *arg, ebb_http_exchange *x);
    void       *arg;
} ebb_http_server_opts;

/* *out is set before the first request is handled.  Errors: UNSUPPORTED (no libmicrohttpd), IO,
 * NOMEM. */
EBB_MUST_CHECK
ebb_status ebb_http_server_open(const ebb_http_server_opts *opts, ebb_http_server **out,
                                ebb_error *err);
/* Closes every connection and waits for its thread.  NULL is fine. */
void ebb_http_server_close(ebb_http_server *s);
unsigned ebb_http_server_n_connections(const ebb_http_server *s);
/* Connections on which a request is under way: from its headers to the end of its reply. */
unsigned ebb_http_server_n_requests(ebb_http_server *s);
/* Ends the connections whose next request has not had complete headers for silence_s, however often
 * a byte of them came, and those whose body comes slower than a KiB a second; silence_s is given
 * for its beginning, and is the most that haste earns.  To be called now and then, from any
 * thread. */
void ebb_http_server_end_slow(ebb_http_server *s);

/* -- On the connection's thread ------------------------------------------------------------- */

/* All valid until on_request returns. */
const char *ebb_http_method(const ebb_http_exchange *x);         /* "POST" */
const char *ebb_http_path(const ebb_http_exchange *x); /* without host and query, unescaped */
const char *ebb_http_query(const ebb_http_exchange *x,
                           const char *name); /* NULL: it has none of that name */
const char *ebb_http_header(const ebb_http_exchange *x, const char *name);
const char *ebb_http_body(const ebb_http_exchange *x, size_t *n);        /* ends in a 0 */
/* The body is not needed any more: its room is others' while the reply is made. */
void ebb_http_forget_body(ebb_http_exchange *x);

/* Whose request it is, as a number: an address (of IPv6 the network, its first 64 bits) or, at a
 * UNIX socket, where all are one user's, the process at the other end.  0: unknown. */
uint64_t ebb_http_client(const ebb_http_exchange *x);

/* The next reply tells these methods of the path, "GET, HEAD": to be called before a 405. */
void ebb_http_allow(ebb_http_exchange *x, const char *methods);
/* A reply at once; the bytes are copied, and kept until the client has read them.  `retry_after_s`
 * 0: none. */
void ebb_http_reply(ebb_http_exchange *x, unsigned status, const char *type, const void *body,
                    size_t n, unsigned retry_after_s);

/* What an open stream gives: bytes in out[0..cap); 0: that was all; -1: it breaks off.  It may
 * wait, for 20 seconds at most, and should look whether the client is still there. */
typedef ssize_t ebb_http_reader(void *arg, ebb_http_exchange *x, char *out, size_t cap);
/* A reply as it comes: `read` is called on this thread after on_request has returned, `release`
 * once, in any case.  To HEAD its head alone. */
void ebb_http_stream(ebb_http_exchange *x, const char *type, ebb_http_reader *read,
                     void (*release)(void *arg), void *arg);

typedef enum ebb_http_wake {
    EBB_HTTP_GONE = -1,
    EBB_HTTP_TIME = 0,
    EBB_HTTP_READY = 1
} ebb_http_wake;
/* Wait until `fd` is readable, the client has left, or so many milliseconds have gone by.  Over TCP
 * a client that has only ended what it sends has left, too. */
ebb_http_wake ebb_http_wait(ebb_http_exchange *x, int fd, int ms);

#endif
