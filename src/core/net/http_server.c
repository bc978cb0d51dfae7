/* HTTP on a socket, by libmicrohttpd (http_server.h). */
#include "net/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/dynlib.h"

enum { HEADER_BYTES = 32 << 10, STREAM_BYTES = 16 << 10 };
/* So much of a body, and so large a reply, is no more than a connection takes anyway, so it is taken and sent whatever
 * others have; and a body is not refused before: the client is then sure to read why. */
enum { SMALL_BODY = 64 << 10, SMALL_REPLY = 64 << 10, RETRY_S = 2 };
/* Bytes a second: what a body comes at least at, as over a line of 9600 baud, beside the time for its beginning. */
enum { SLOWEST_BODY = 1 << 10 };
/* One of so many connections is kept free for whoever comes next, while one that makes room for it closes. */
enum { SPARE_OF = 16 };

typedef struct caller {          /* a connection */
    struct caller *next, **link;
    int            fd;
    uint64_t       client;       /* ebb_http_client */
    double         due_s;        /* when what is awaited of a request is to be there; 0: nothing is awaited */
    ebb_http_exchange *x;        /* its request; NULL: none that has headers yet */
    bool           has_ended;    /* its thread is about to see it */
} caller;

struct ebb_http_server {
    const ebb_mhd       *mhd;
    struct MHD_Daemon   *daemon;
    ebb_http_server_opts opts;
    pthread_mutex_t      lock;           /* of the callers, and of bodies that are coming */
    caller              *callers;
};

struct ebb_http_exchange {
    ebb_http_server       *server;
    struct MHD_Connection *connection;
    const char            *method, *path;
    const char            *allowed;      /* methods, for the reply; NULL: not told */
    caller                *from;         /* NULL: no memory for one */
    ebb_buf                body;
    size_t                 n_read;       /* bytes of it that have come */
    size_t                 n_counted;    /* bytes of it and of the reply that max_bodies is about */
    bool                   lacks_room;   /* for the body, of which nothing is kept */
    bool                   is_replied;
    bool                   is_last;      /* where the next request begins is not known */
    enum MHD_Result        queued;
    ebb_http_reader       *read;         /* of a stream */
    void                 (*release)(void *arg);
    void                  *arg;
};

/* -- Room for bodies and replies --------------------------------------------------------------- */

/* Under the lock. */
static void drop_body(ebb_http_exchange *x)
{
    ebb_buf_fini(&x->body);
    x->n_counted = 0;
}

/* Under the lock: whether x finds room for n bytes more where `most` (0: any number) are for all, or for its client
 * alone, who may have a single request that is larger.  Others' bodies make room, the one first that comes slowest:
 * nobody keeps others out by sending nearly all of one. */
static bool find_room(ebb_http_exchange *x, size_t n, size_t most, bool is_of_client)
{
    caller *slowest;

    do {
        size_t n_taken = 0;

        slowest = NULL;
        for (caller *c = x->server->callers; c; c = c->next) {
            if (!c->x || !c->x->n_counted || (is_of_client && c->client != x->from->client))
                continue;
            n_taken += c->x->n_counted;
            if (c->x != x && c->due_s > 0 && (!slowest || c->due_s < slowest->due_s))
                slowest = c;
        }
        if (!most || n_taken + n <= most || (is_of_client && n_taken == x->n_counted))
            return true;
        if (slowest) {
            drop_body(slowest->x);
            slowest->x->lacks_room = true;
        }
    } while (slowest);
    return false;
}

/* Under the lock.  False: others have the room. */
static bool count_bytes(ebb_http_exchange *x, size_t n)
{
    const ebb_http_server_opts *opts = &x->server->opts;

    if (n == 0)
        return true;
    if (!x->from || !find_room(x, n, opts->max_bodies_of_one, true) || !find_room(x, n, opts->max_bodies, false))
        return false;
    x->n_counted += n;
    return true;
}

static bool count_reply(ebb_http_exchange *x, size_t n)
{
    bool fits;

    pthread_mutex_lock(&x->server->lock);
    fits = count_bytes(x, n);
    pthread_mutex_unlock(&x->server->lock);
    return fits;
}

void ebb_http_forget_body(ebb_http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    drop_body(x);
    pthread_mutex_unlock(&x->server->lock);
}

/* -- What the request says -------------------------------------------------------------------- */

const char *ebb_http_method(const ebb_http_exchange *x)
{
    return x->method;
}

const char *ebb_http_path(const ebb_http_exchange *x)
{
    return x->path;
}

const char *ebb_http_query(const ebb_http_exchange *x, const char *name)
{
    return x->server->mhd->MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *ebb_http_header(const ebb_http_exchange *x, const char *name)
{
    return x->server->mhd->MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

const char *ebb_http_body(const ebb_http_exchange *x, size_t *n)
{
    *n = x->body.len;
    return ebb_buf_text(&x->body);
}

static int fd_of(const ebb_http_server *s, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        s->mhd->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

static int socket_of(const ebb_http_exchange *x)
{
    return fd_of(x->server, x->connection);
}

/* Who sends no more may still read.  At a UNIX socket that differs from one who has left (POLLHUP, which needs no
 * asking for); over TCP it looks the same, and there nobody is computed for who has probably left. */
ebb_http_wake ebb_http_wait(ebb_http_exchange *x, int fd, int ms)
{
    short leaving = x->server->opts.is_owner_only ? 0 : POLLRDHUP;
    struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = socket_of(x), .events = leaving } };
    int n = poll(p, 2, ms);

    if (n > 0 && p[1].revents)
        return EBB_HTTP_GONE;
    return n > 0 && p[0].revents ? EBB_HTTP_READY : EBB_HTTP_TIME;
}

/* The process that connected; false: this is no UNIX socket. */
static bool find_peer(int fd, struct ucred *peer)
{
    socklen_t n = sizeof *peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &n) == 0;
}

static uint64_t client_of(int fd)
{
    struct sockaddr_storage at = { .ss_family = AF_UNSPEC };
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&at;
    socklen_t n = sizeof at;
    struct ucred peer;
    uint64_t network = 0;

    if (getpeername(fd, (struct sockaddr *)&at, &n) != 0)
        return 0;
    if (at.ss_family == AF_UNIX)
        return find_peer(fd, &peer) ? (uint64_t)peer.pid : 0;
    if (at.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&at)->sin_addr.s_addr;
    if (at.ss_family == AF_INET6)
        memcpy(&network, IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) ? &in6->sin6_addr.s6_addr[8] : in6->sin6_addr.s6_addr,
               sizeof network);
    return network;
}

uint64_t ebb_http_client(const ebb_http_exchange *x)
{
    return client_of(socket_of(x));
}

/* -- Replies ---------------------------------------------------------------------------------- */

/* While the engine works, silence is no fault of the client's; it counts anew from when there is something to send. */
static void set_silence(ebb_http_exchange *x, unsigned s)
{
    x->server->mhd->MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, s);
}

static void queue_response(ebb_http_exchange *x, unsigned status, struct MHD_Response *r, const char *type,
                           unsigned retry_after_s)
{
    const ebb_mhd *mhd = x->server->mhd;
    char seconds[16];

    x->is_replied = true;
    if (!r)
        return;
    snprintf(seconds, sizeof seconds, "%u", retry_after_s);
    mhd->MHD_add_response_header(r, "Content-Type", type);
    mhd->MHD_add_response_header(r, "Server", x->server->opts.name);
    mhd->MHD_add_response_header(r, "Cache-Control", "no-store");
    if (retry_after_s)
        mhd->MHD_add_response_header(r, "Retry-After", seconds);
    if (x->allowed)
        mhd->MHD_add_response_header(r, "Allow", x->allowed);
    if (x->is_last)
        mhd->MHD_add_response_header(r, "Connection", "close");
    x->queued = mhd->MHD_queue_response(x->connection, status, r);
    mhd->MHD_destroy_response(r);
}

static void reply_copy(ebb_http_exchange *x, unsigned status, const char *type, const void *body, size_t n,
                       unsigned retry_after_s)
{
    struct MHD_Response *r = x->server->mhd->MHD_create_response_from_buffer(n, (void *)body, MHD_RESPMEM_MUST_COPY);

    queue_response(x, status, r, type, retry_after_s);
}

static void refuse_request(ebb_http_exchange *x, unsigned status, const char *type, const char *message,
                           unsigned retry_after_s)
{
    char body[256];
    int n = snprintf(body, sizeof body, "{\"error\":{\"code\":%u,\"message\":\"%s\",\"type\":\"%s\"}}\n", status,
                     message, type);

    reply_copy(x, status, "application/json", body, (size_t)n, retry_after_s);
}

void ebb_http_allow(ebb_http_exchange *x, const char *methods)
{
    x->allowed = methods;
}

/* Who asks for much on many connections and reads nothing of it has no more than one limit. */
void ebb_http_reply(ebb_http_exchange *x, unsigned status, const char *type, const void *body, size_t n,
                    unsigned retry_after_s)
{
    if (n <= SMALL_REPLY || count_reply(x, n))
        reply_copy(x, status, type, body, n, retry_after_s);
    else
        refuse_request(x, 503, "unavailable_error", "too many large replies are on their way", RETRY_S);
}

static ssize_t read_stream(void *arg, uint64_t pos, char *out, size_t cap)
{
    ebb_http_exchange *x = arg;
    ssize_t n;

    (void)pos;
    set_silence(x, 0);
    n = x->read(x->arg, x, out, cap);
    set_silence(x, x->server->opts.silence_s);
    return n > 0 ? n : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

void ebb_http_stream(ebb_http_exchange *x, const char *type, ebb_http_reader *read, void (*release)(void *arg),
                     void *arg)
{
    const ebb_mhd *mhd = x->server->mhd;
    struct MHD_Response *r = mhd->MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BYTES, read_stream, x,
                                                                    NULL);

    x->read = read;
    x->release = release;
    x->arg = arg;
    /* libmicrohttpd leaves the body out, but not the end of its chunks, which would be read as the next reply. */
    if (r && strcmp(x->method, "HEAD") == 0)
        mhd->MHD_set_response_options(r, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    queue_response(x, 200, r, type, 0);
}

/* -- Slow callers ------------------------------------------------------------------------------- */

/* Silence is counted anew by every byte, so libmicrohttpd would wait for ever for what comes byte by byte.  Without
 * memory nobody watches a connection (on_connection). */
static caller *caller_of(const ebb_http_server *s, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        s->mhd->MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* Headers, or the beginning of a body, are awaited from now on; or nothing. */
static void set_awaited(ebb_http_server *s, struct MHD_Connection *connection, bool is_awaited)
{
    caller *c = caller_of(s, connection);

    pthread_mutex_lock(&s->lock);
    if (c)
        c->due_s = is_awaited ? ebb_clock_s() + s->opts.silence_s : 0;
    pthread_mutex_unlock(&s->lock);
}

/* Under the lock: bytes of a body have come, and so much later the next ones are due; but no haste of before buys more
 * than what there is for a beginning. */
static void earn_time(const ebb_http_server *s, caller *c, size_t n)
{
    double due_s = c->due_s + (double)n / SLOWEST_BODY, most_s = ebb_clock_s() + s->opts.silence_s;

    c->due_s = due_s < most_s ? due_s : most_s;
}

static void end_caller(caller *c)
{
    c->has_ended = true;
    shutdown(c->fd, SHUT_RDWR);                  /* its thread sees the end, and closes it */
}

/* Of all, or of the newest one's client alone, where there may be `most` (0: any number): who has been silent for the
 * longest leaves when nearly all are taken, so nobody keeps others out by saying nothing. */
static void make_room(ebb_http_server *s, const caller *newest, unsigned most, bool is_of_client)
{
    caller *first = NULL;
    unsigned n = 0;

    for (caller *c = s->callers; c; c = c->next) {
        if (c->has_ended || (is_of_client && c->client != newest->client))
            continue;
        n++;
        if (c != newest && c->due_s > 0 && (!first || c->due_s < first->due_s))
            first = c;
    }
    if (first && most && n + most / SPARE_OF >= most)
        end_caller(first);
}

static void add_caller(ebb_http_server *s, caller *c, int fd)
{
    *c = (caller){ .fd = fd, .client = client_of(fd), .due_s = ebb_clock_s() + s->opts.silence_s,
                   .link = &s->callers };
    pthread_mutex_lock(&s->lock);
    c->next = s->callers;
    if (c->next)
        c->next->link = &c->next;
    s->callers = c;
    make_room(s, c, s->opts.max_connections, false);
    make_room(s, c, s->opts.max_from_one, true);
    pthread_mutex_unlock(&s->lock);
}

static void remove_caller(ebb_http_server *s, caller *c)
{
    pthread_mutex_lock(&s->lock);
    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    pthread_mutex_unlock(&s->lock);
    free(c);
}

/* Told before the socket is closed, so a caller's fd is always its own. */
static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    ebb_http_server *s = arg;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = calloc(1, sizeof(caller));
        if (*context)
            add_caller(s, *context, fd_of(s, connection));
    } else if (*context) {
        remove_caller(s, *context);
        *context = NULL;
    }
}

void ebb_http_server_end_slow(ebb_http_server *s)
{
    double now = ebb_clock_s();

    pthread_mutex_lock(&s->lock);
    for (caller *c = s->callers; c; c = c->next)
        if (c->due_s > 0 && c->due_s < now)
            end_caller(c);
    pthread_mutex_unlock(&s->lock);
}

/* -- Requests --------------------------------------------------------------------------------- */

static bool is_owner(const ebb_http_exchange *x)
{
    struct ucred peer;

    return find_peer(socket_of(x), &peer) && peer.uid == geteuid();
}

static bool may_ask(ebb_http_exchange *x)
{
    return !x->server->opts.may_ask || x->server->opts.may_ask(x->server->opts.arg, x);
}

/* The headers that say where a body ends. */
typedef struct framing {
    unsigned    n_lengths, n_codings;
    const char *coding;
    bool        has_blank;       /* "Content-Length : 1" is one header to some, and another to others */
} framing;

static enum MHD_Result note_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    framing *f = arg;
    size_t n = strcspn(name, " \t");

    (void)kind;
    f->has_blank |= name[n] != 0;
    if (strcasecmp(name, "Content-Length") == 0) {
        f->n_lengths++;
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->n_codings++;
        f->coding = value;
    }
    return MHD_YES;
}

/* A proxy and this server must see the end of a body at the same place: otherwise the one takes for a body what the
 * other answers as a request (RFC 9112, 6.3 and 11.2). */
static bool has_one_end(const ebb_http_exchange *x, const char *version)
{
    framing f = { 0 };

    x->server->mhd->MHD_get_connection_values(x->connection, MHD_HEADER_KIND, note_header, &f);
    if (f.has_blank || f.n_lengths + f.n_codings > 1)
        return false;
    return f.n_codings == 0 || (f.coding && strcasecmp(f.coding, "chunked") == 0 && strcmp(version, "HTTP/1.1") == 0);
}

/* Of what the headers say, whether the body is worth waiting for. */
static void look_at_headers(ebb_http_exchange *x, const char *version)
{
    const char *length = ebb_http_header(x, "Content-Length");

    x->is_last = !has_one_end(x, version);
    if (x->is_last)
        refuse_request(x, 400, "invalid_request_error", "the headers leave open where the request ends", 0);
    else if (x->server->opts.is_owner_only && !is_owner(x))
        refuse_request(x, 403, "permission_error", "this socket belongs to another user", 0);
    else if (length && strtoull(length, NULL, 10) > x->server->opts.max_body)
        refuse_request(x, 413, "invalid_request_error", "the request is too large", 0);
    else if (length ? strtoull(length, NULL, 10) > SMALL_BODY : ebb_http_header(x, "Transfer-Encoding") != NULL)
        (void)may_ask(x);
}

static ebb_http_exchange *begin_exchange(ebb_http_server *s, struct MHD_Connection *connection)
{
    ebb_http_exchange *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    *x = (ebb_http_exchange){ .server = s, .connection = connection, .queued = MHD_NO,
                              .from = caller_of(s, connection), .body = { .max = s->opts.max_body } };
    pthread_mutex_lock(&s->lock);
    if (x->from)
        x->from->x = x;
    pthread_mutex_unlock(&s->lock);
    return x;
}

static void end_exchange(ebb_http_exchange *x)
{
    pthread_mutex_lock(&x->server->lock);
    drop_body(x);
    if (x->from)
        x->from->x = NULL;
    pthread_mutex_unlock(&x->server->lock);
    free(x);
}

/* What has no room is read to its end, and then refused.  False: it is larger than any may be, or there is no memory;
 * then nobody reads on. */
static bool take_body(ebb_http_exchange *x, const char *data, size_t n)
{
    ebb_http_server *s = x->server;
    size_t large;
    bool goes_on;

    x->n_read += n;
    large = x->n_read > SMALL_BODY ? x->n_read - SMALL_BODY : 0;
    pthread_mutex_lock(&s->lock);
    if (!x->lacks_room && !count_bytes(x, large - x->n_counted)) {
        drop_body(x);
        x->lacks_room = true;
    }
    goes_on = x->lacks_room ? x->n_read <= s->opts.max_body : ebb_buf_add(&x->body, data, n);
    if (x->from)
        earn_time(s, x->from, n);
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* A client that takes the server for a proxy asks for "http://host/path" (RFC 9112, 3.2.2). */
static const char *path_of(const char *target)
{
    const char *rest = strncasecmp(target, "http://", 7) == 0 ? strchr(target + 7, '/') : target;

    return rest ? rest : "/";
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *connection, const char *path, const char *method,
                                 const char *version, const char *data, size_t *n_data, void **state)
{
    ebb_http_exchange *x = *state;

    if (!x) {
        *state = x = begin_exchange(arg, connection);
        if (!x)
            return MHD_NO;
        x->method = method;
        x->path = path_of(path);
        look_at_headers(x, version);
        set_awaited(x->server, connection, !x->is_replied);
        return x->is_replied ? x->queued : MHD_YES;
    }
    if (*n_data) {
        bool goes_on = take_body(x, data, *n_data);
        *n_data = 0;
        return goes_on ? MHD_YES : MHD_NO;
    }
    set_awaited(x->server, connection, false);
    set_silence(x, 0);
    if (x->lacks_room)
        refuse_request(x, 503, "unavailable_error", "too many large requests are on their way", RETRY_S);
    else if (may_ask(x))
        x->server->opts.on_request(x->server->opts.arg, x);
    set_silence(x, x->server->opts.silence_s);
    return x->queued;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how)
{
    ebb_http_exchange *x = *state;

    (void)how;
    if (x && x->release)
        x->release(x->arg);
    if (x)
        end_exchange(x);
    *state = NULL;
    set_awaited(arg, connection, true);
}

/* -- The server --------------------------------------------------------------------------------- */

/* Whoever waits at the socket by then has the lock before its request: on_request finds *out. */
static bool start_daemon(ebb_http_server *s, ebb_http_server **out)
{
    const ebb_http_server_opts *opts = &s->opts;

    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_lock(&s->lock);
    s->daemon = s->mhd->MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL, NULL,
        on_access, s, MHD_OPTION_LISTEN_SOCKET, opts->listen_fd, MHD_OPTION_CONNECTION_LIMIT, opts->max_connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, opts->max_from_one, MHD_OPTION_CONNECTION_TIMEOUT, opts->silence_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
    if (s->daemon)
        *out = s;
    pthread_mutex_unlock(&s->lock);
    return *out != NULL;
}

ebb_status ebb_http_server_open(const ebb_http_server_opts *opts, ebb_http_server **out, ebb_error *err)
{
    ebb_http_server *s = calloc(1, sizeof *s);
    ebb_status st = s ? ebb_mhd_load(&s->mhd, err) : EBB_FAIL(err, EBB_NOMEM, "no memory for a server");

    *out = NULL;
    if (st == EBB_OK) {
        s->opts = *opts;
        if (!start_daemon(s, out))
            st = EBB_FAIL(err, EBB_IO, "the server could not be started");
    }
    if (st != EBB_OK) {
        close(opts->listen_fd);
        free(s);
    }
    return st;
}

void ebb_http_server_close(ebb_http_server *s)
{
    if (!s)
        return;
    s->mhd->MHD_stop_daemon(s->daemon);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

unsigned ebb_http_server_n_connections(const ebb_http_server *s)
{
    const union MHD_DaemonInfo *info = s->mhd->MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info ? info->num_connections : 0;
}

unsigned ebb_http_server_n_requests(ebb_http_server *s)
{
    unsigned n = 0;

    pthread_mutex_lock(&s->lock);
    for (const caller *c = s->callers; c; c = c->next)
        n += c->x != NULL;
    pthread_mutex_unlock(&s->lock);
    return n;
}
