/* One server, by libcurl (client.h). */
#include "net/client.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "net/dynlib.h"
#include "net/header.h"
#include "os/child.h"
#include "os/confine.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/random.h"

enum { COMMAND_IDLE_S = 7 * 86400 };      /* an open connection is reused, however long it was idle */
enum { CONNECT_S = 20, SILENCE_S = 600, TICK_MS = 1000, MAX_HEADERS = 262144, MAX_ARGS = 32, LAST_WORDS_MS = 300 };

struct ebb_client {
    const ebb_curl *curl;
    CURLM          *multi;
    CURL           *easy;
    char           *url, *name, *unix_path, *ca_file;
    char          **command;
    bool            has_no_proxy;
    unsigned        connect_s, silence_s;
    ebb_child       child;
    int             listener;            /* to a command: libcurl connects to this, and the command gets the other
                                            end; -1: none at the moment, or open_pair does without */
    char           *listener_path;       /* exists while libcurl connects */
    ebb_buf         words;               /* the child's, on standard error */
    ebb_error       child_err;           /* why it could not be started */
    double          connected_s;
    atomic_bool     is_stopped;

    const ebb_client_request *q;         /* under way */
    ebb_client_reply         *r;
    size_t                    n_headers; /* bytes of them */
    double                    begun_s, heard_s;  /* when it began, and when something came last */
    bool                      has_too_much;
};

/* -- Callbacks of libcurl ------------------------------------------------------------------- */

static size_t client_on_header(char *line, size_t size, size_t n, void *arg)
{
    ebb_client *c = arg;
    ebb_client_reply *r = c->r;
    char text[32];
    long status = 0;

    n *= size;
    c->heard_s = ebb_clock_s();
    c->n_headers += n;
    c->has_too_much = c->n_headers > MAX_HEADERS;
    if (c->has_too_much || ebb_curl_proxy_refusal(c->curl, c->easy))
        return 0;
    if (n > 5 && strncasecmp(line, "HTTP/", 5) == 0) {
        r->type[0] = r->server[0] = r->location[0] = '\0';
        c->curl->curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        r->status = (int)status;
    }
    if (ebb_header_text(line, n, "content-type", r->type, sizeof r->type))
        r->type[strcspn(r->type, "; ")] = '\0';
    ebb_header_text(line, n, "server", r->server, sizeof r->server);
    ebb_header_text(line, n, "location", r->location, sizeof r->location);
    if (ebb_header_text(line, n, "retry-after", text, sizeof text) && *text >= '0' && *text <= '9') {
        unsigned long s = strtoul(text, NULL, 10);
        r->retry_after_s = s < 3600 ? (unsigned)s : 3600;
    }
    return n;
}

static size_t client_on_data(char *data, size_t size, size_t n, void *arg)
{
    ebb_client *c = arg;
    long status = 0;

    n *= size;
    c->heard_s = ebb_clock_s();
    c->curl->curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    c->r->status = (int)status;
    if (c->q->on_body && !c->q->on_body(c->q->arg, c->r, data, n))
        c->r->is_stopped = true;
    return c->r->is_stopped ? 0 : n;
}

static int tell_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    ebb_client *c = arg;

    (void)fd;
    (void)purpose;
    c->connected_s = ebb_clock_s();
    return CURL_SOCKOPT_OK;
}

/* -- A command ---------------------------------------------------------------------------------- */

/* libcurl wants to connect, and not all of its versions (7.88) believe that they are connected already.  So it connects
 * to a socket of this process, and whoever is at the other end becomes the command's.  The socket has a path, though
 * only for that moment: a connection to an abstract name is used for one request only (7.88), and a command would be
 * begun for each. */
static ebb_status name_listener(ebb_client *c, ebb_error *err)
{
    struct sockaddr_un at;
    ebb_buf path = { 0 };
    uint64_t random = 0;
    bool ok = ebb_random(&random, sizeof random, NULL) == EBB_OK && ebb_path_run(&path, NULL) == EBB_OK &&
              ebb_file_mkdirs(path.data, NULL) == EBB_OK &&
              ebb_buf_addf(&path, "/command-%016llx", (unsigned long long)random) && path.len < sizeof at.sun_path;

    if (!ok) {                                   /* a home that cannot be written, or is far away */
        ebb_buf_clear(&path);
        ebb_buf_addf(&path, "/tmp/ebb-command-%016llx", (unsigned long long)random);
    }
    c->listener_path = ebb_buf_take(&path);
    return c->listener_path ? EBB_OK : EBB_FAIL(err, EBB_NOMEM, "no memory for a connection");
}

static void close_listener(ebb_client *c)
{
    if (c->listener < 0)
        return;
    close(c->listener);
    c->listener = -1;
    unlink(c->listener_path);
}

static void begin_command(ebb_client *c, int its_fd)
{
    ebb_child_end(&c->child);
    ebb_buf_clear(&c->words);
    if (ebb_child_start(c->command, its_fd, &c->child, &c->child_err) != EBB_OK)
        ebb_log("net", "%s: %s", c->name, c->child_err.msg);
}

/* Where this process connects to nobody any more (EBB_CONNECT_GIVEN), libcurl's connect does nothing, and so a pair
 * that is connected is taken as it is.  The far end gets the name, for a connection to nameless ones is not reused. */
static curl_socket_t open_pair(ebb_client *c, const struct sockaddr_un *at)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return CURL_SOCKET_BAD;
    if (bind(pair[1], (const struct sockaddr *)at, sizeof *at) == 0)
        unlink(at->sun_path);
    begin_command(c, pair[1]);
    close(pair[1]);
    return pair[0];
}

/* libcurl begins a connection. */
static curl_socket_t listen_for_curl(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    ebb_client *c = arg;

    (void)purpose;
    close_listener(c);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", c->listener_path);
    if (!ebb_confine_may_connect(EBB_CONNECT_UNIX))
        return open_pair(c, &at);
    c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->listener < 0 || bind(c->listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(c->listener, 4) != 0)
        return CURL_SOCKET_BAD;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* Any process may find the name, but only this one is let in. */
static bool is_own(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid == getpid();
}

static void accept_curl(ebb_client *c)
{
    int fd;

    while (c->listener >= 0 && (fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        if (is_own(fd)) {
            begin_command(c, fd);
            close_listener(c);
        }
        close(fd);
    }
}

/* -- Making one ------------------------------------------------------------------------------- */

static char **copy_command(char *const *argv, bool *ok)
{
    char **copy = argv ? calloc(MAX_ARGS + 1, sizeof *copy) : NULL;

    *ok &= !argv || copy;
    for (int i = 0; copy && argv[i] && i < MAX_ARGS; i++)
        copy[i] = ebb_text_copy_or_null(argv[i], ok);
    return copy;
}

ebb_status ebb_client_new(const ebb_client_opts *opts, ebb_client **out, ebb_error *err)
{
    ebb_client *c = calloc(1, sizeof *c);
    bool ok = c != NULL;
    ebb_status st = EBB_OK;

    *out = NULL;
    if (!c)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a connection");
    c->child.fd = c->child.err_fd = c->listener = -1;
    if (!ebb_confine_may_connect(opts->unix_path ? EBB_CONNECT_UNIX
                                 : opts->command ? EBB_CONNECT_GIVEN : EBB_CONNECT_INTERNET)) {
        free(c);
        return EBB_FAIL(err, EBB_UNSUPPORTED,
                        "%.100s: ebb was started without such an engine and gave up connections; start it again with "
                        "-e or after `ebb engines add`", opts->name);
    }
    st = ebb_curl_load(&c->curl, err);
    if (st == EBB_OK) {
        c->url = ebb_text_copy_or_null(opts->url, &ok);
        c->name = ebb_text_copy_or_null(opts->name, &ok);
        c->unix_path = ebb_text_copy_or_null(opts->unix_path, &ok);
        c->ca_file = ebb_text_copy_or_null(opts->ca_file, &ok);
        c->command = copy_command(opts->command, &ok);
        c->has_no_proxy = opts->has_no_proxy;
        c->connect_s = opts->connect_s ? opts->connect_s : CONNECT_S;
        c->silence_s = opts->silence_s ? opts->silence_s : SILENCE_S;
        c->multi = c->curl->curl_multi_init();
        c->easy = c->curl->curl_easy_init();
        if (!ok || !c->multi || !c->easy)
            st = EBB_FAIL(err, EBB_NOMEM, "no memory for a connection");
    }
    if (st == EBB_OK && c->command)
        st = name_listener(c, err);
    if (st == EBB_OK)
        *out = c;
    else
        ebb_client_free(c);
    return st;
}

void ebb_client_free(ebb_client *c)
{
    if (!c)
        return;
    if (c->easy)
        c->curl->curl_easy_cleanup(c->easy);
    if (c->multi)
        c->curl->curl_multi_cleanup(c->multi);
    ebb_child_end(&c->child);
    close_listener(c);
    free(c->listener_path);
    ebb_buf_fini(&c->words);
    for (int i = 0; c->command && c->command[i]; i++)
        free(c->command[i]);
    free(c->command);
    free(c->url);
    free(c->name);
    free(c->unix_path);
    free(c->ca_file);
    free(c);
}

void ebb_client_stop(ebb_client *c)
{
    atomic_store(&c->is_stopped, true);
    c->curl->curl_multi_wakeup(c->multi);
}

void ebb_client_resume(ebb_client *c)
{
    atomic_store(&c->is_stopped, false);
}

bool ebb_client_is_stopped(const ebb_client *c)
{
    return atomic_load(&c->is_stopped);
}

double ebb_client_connected_s(const ebb_client *c)
{
    return c->connected_s;
}

/* -- One request -------------------------------------------------------------------------------- */

static CURLcode set_connection(ebb_client *c)
{
    const ebb_curl *curl = c->curl;
    CURL *e = c->easy;
    CURLcode code = CURLE_OK;

    if (c->unix_path)
        EBB_CURL_SET(code, curl, e, CURLOPT_UNIX_SOCKET_PATH, c->unix_path);
    if (c->command) {
        EBB_CURL_SET(code, curl, e, CURLOPT_UNIX_SOCKET_PATH, c->listener_path);
        EBB_CURL_SET(code, curl, e, CURLOPT_OPENSOCKETFUNCTION, listen_for_curl);
        EBB_CURL_SET(code, curl, e, CURLOPT_OPENSOCKETDATA, c);
        EBB_CURL_SET(code, curl, e, CURLOPT_MAXAGE_CONN, (long)COMMAND_IDLE_S);
    }
    EBB_CURL_SET(code, curl, e, CURLOPT_SOCKOPTFUNCTION, tell_connected);
    EBB_CURL_SET(code, curl, e, CURLOPT_SOCKOPTDATA, c);
    if (c->has_no_proxy || c->unix_path || c->command)
        EBB_CURL_SET(code, curl, e, CURLOPT_PROXY, "");
    if (c->ca_file)
        EBB_CURL_SET(code, curl, e, CURLOPT_CAINFO, c->ca_file);
    EBB_CURL_SET(code, curl, e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    EBB_CURL_SET(code, curl, e, CURLOPT_CONNECTTIMEOUT, (long)c->connect_s);
    EBB_CURL_SET(code, curl, e, CURLOPT_TCP_KEEPALIVE, 1L);
    EBB_CURL_SET(code, curl, e, CURLOPT_TCP_KEEPIDLE, 30L);
    EBB_CURL_SET(code, curl, e, CURLOPT_TCP_KEEPINTVL, 10L);
    return code;
}

static CURLcode set_request(ebb_client *c, const char *url, struct curl_slist *headers)
{
    const ebb_curl *curl = c->curl;
    CURL *e = c->easy;
    CURLcode code = CURLE_OK;

    EBB_CURL_SET(code, curl, e, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
    EBB_CURL_SET(code, curl, e, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    EBB_CURL_SET(code, curl, e, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    EBB_CURL_SET(code, curl, e, CURLOPT_HTTPHEADER, headers);
    EBB_CURL_SET(code, curl, e, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    EBB_CURL_SET(code, curl, e, CURLOPT_USERAGENT, "ebb/" EBB_VERSION);
    EBB_CURL_SET(code, curl, e, CURLOPT_FOLLOWLOCATION, 0L);
    EBB_CURL_SET(code, curl, e, CURLOPT_NOSIGNAL, 1L);
    if (c->q->body) {
        EBB_CURL_SET(code, curl, e, CURLOPT_POSTFIELDS, c->q->body);
        EBB_CURL_SET(code, curl, e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->q->n_body);
    } else {
        EBB_CURL_SET(code, curl, e, CURLOPT_HTTPGET, 1L);
    }
    EBB_CURL_SET(code, curl, e, CURLOPT_CUSTOMREQUEST, c->q->method);
    EBB_CURL_SET(code, curl, e, CURLOPT_HEADERFUNCTION, client_on_header);
    EBB_CURL_SET(code, curl, e, CURLOPT_HEADERDATA, c);
    EBB_CURL_SET(code, curl, e, CURLOPT_WRITEFUNCTION, client_on_data);
    EBB_CURL_SET(code, curl, e, CURLOPT_WRITEDATA, c);
    return code;
}

/* NULL: out of memory. */
static struct curl_slist *make_headers(const ebb_client *c)
{
    static const char *const usual[] = { "Content-Type: application/json", "Expect:", "Host: localhost" };
    struct curl_slist *list = NULL, *more;

    for (int i = c->q->body ? 0 : 1; i < (c->unix_path || c->command ? 3 : 2); i++) {
        more = c->curl->curl_slist_append(list, usual[i]);
        if (!more)
            goto failed;
        list = more;
    }
    for (int i = 0; c->q->headers && c->q->headers[i]; i++) {
        more = c->curl->curl_slist_append(list, c->q->headers[i]);
        if (!more)
            goto failed;
        list = more;
    }
    return list;
failed:
    c->curl->curl_slist_free_all(list);
    return NULL;
}

/* The list is a copy of what may be secret. */
static void wipe_headers(const ebb_client *c, struct curl_slist *list)
{
    for (struct curl_slist *p = list; p; p = p->next)
        explicit_bzero(p->data, strlen(p->data));
    c->curl->curl_slist_free_all(list);
}

static bool has_taken_too_long(const ebb_client *c, ebb_error *err)
{
    double now_s = ebb_clock_s();
    bool is_late = c->q->limit_s && now_s - c->begun_s > c->q->limit_s, is_silent = now_s - c->heard_s > c->silence_s;

    if (is_late)
        EBB_FAIL(err, EBB_IO, "%s: has not answered within %u s; silence = N gives it longer", c->name, c->q->limit_s);
    else if (is_silent)
        EBB_FAIL(err, EBB_IO, "%s: sent nothing for %u s", c->name, c->silence_s);
    return is_late || is_silent;
}

/* Until the request has ended, it is stopped, or nothing came for too long; *code is libcurl's. */
static ebb_status run_request(ebb_client *c, CURLcode *code, ebb_error *err)
{
    struct curl_waitfd listener = { .events = CURL_WAIT_POLLIN };
    int n_running = 1, wait_ms, n_left;
    CURLMsg *m;
    CURLMcode mc;

    *code = CURLE_OK;
    c->begun_s = c->heard_s = ebb_clock_s();
    for (;;) {
        mc = c->curl->curl_multi_perform(c->multi, &n_running);
        accept_curl(c);
        if (ebb_client_is_stopped(c))
            return EBB_FAIL(err, EBB_CANCELED, "stopped");
        if (mc != CURLM_OK)
            return EBB_FAIL(err, EBB_IO, "%s: %s", c->name, c->curl->curl_multi_strerror(mc));
        ebb_child_listen(&c->child, &c->words);
        if (n_running == 0)
            break;
        if (has_taken_too_long(c, err))
            return EBB_IO;
        wait_ms = c->q->on_tick ? c->q->on_tick(c->q->arg) : -1;
        if (wait_ms == EBB_CLIENT_ENOUGH)
            break;
        listener.fd = c->listener;
        c->curl->curl_multi_poll(c->multi, &listener, c->listener >= 0,
                                 wait_ms < 0 || wait_ms > TICK_MS ? TICK_MS : wait_ms, NULL);
    }
    c->r->is_stopped |= n_running > 0;
    while ((m = c->curl->curl_multi_info_read(c->multi, &n_left)) != NULL)
        if (m->msg == CURLMSG_DONE && m->easy_handle == c->easy)
            *code = m->data.result;
    return EBB_OK;
}

static const char *last_words(ebb_client *c)
{
    ebb_child_last_words(&c->child, &c->words, LAST_WORDS_MS);
    return ebb_child_last_line(&c->words);
}

static bool may_have_been_sent(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION: case CURLE_SSL_CACERT_BADFILE: case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
        return false;
    default:
        return true;
    }
}

static ebb_status judge(ebb_client *c, CURLcode code, ebb_error *err)
{
    const char *why = c->curl->curl_easy_strerror(code), *words;

    if (code == CURLE_OK || c->r->is_stopped)
        return EBB_OK;
    if (c->has_too_much)
        return EBB_FAIL(err, EBB_LIMIT, "%s: sends more than %d KiB of headers, the most that is accepted", c->name,
                        MAX_HEADERS >> 10);
    if (ebb_curl_proxy_refusal(c->curl, c->easy))
        return EBB_FAIL(err, EBB_IO, "%s: the proxy of this machine refuses the connection (%ld)", c->name,
                        ebb_curl_proxy_refusal(c->curl, c->easy));
    if (ebb_curl_has_long_headers(c->curl, c->easy, code))
        return EBB_FAIL(err, EBB_LIMIT, "%s: sends a longer line of headers than libcurl takes", c->name);
    c->r->was_sent = may_have_been_sent(code) && !(code == CURLE_OPERATION_TIMEDOUT && c->n_headers == 0);
    ebb_log("net", "%s: %s", c->name, why);
    if (c->child_err.msg[0])
        return EBB_FAIL(err, c->child_err.code, "%s: %s", c->name, c->child_err.msg);
    words = c->command ? last_words(c) : NULL;
    if (words)
        return EBB_FAIL(err, EBB_IO, "%s: the command says: %.200s", c->name, words);
    if (c->command && (code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
                       code == CURLE_PARTIAL_FILE))
        return EBB_FAIL(err, EBB_IO, "%s: the command ended without an answer", c->name);
    if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_PEER_FAILED_VERIFICATION)
        return EBB_FAIL(err, EBB_IO,
                        "%s: its certificate cannot be trusted (%s); ca-file names a certificate of your own",
                        c->name, why);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return EBB_FAIL(err, EBB_IO, "%s: no connection within %u s; is its address right?", c->name, c->connect_s);
    if (code == CURLE_UNSUPPORTED_PROTOCOL)
        return EBB_FAIL(err, EBB_IO, "%s: does not speak HTTP; is its address right?", c->name);
    return EBB_FAIL(err, code == CURLE_URL_MALFORMAT ? EBB_USAGE : EBB_IO, "%s: %s", c->name, why);
}

static ebb_status send_to(ebb_client *c, const char *url, struct curl_slist *headers, ebb_error *err)
{
    CURLcode code;
    ebb_status st;

    c->curl->curl_easy_reset(c->easy);
    code = set_connection(c);
    if (code == CURLE_OK)
        code = set_request(c, url, headers);
    st = ebb_curl_expect_set(c->curl, code, err);
    if (st != EBB_OK)
        return st;
    if (c->curl->curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
        return EBB_FAIL(err, EBB_NOMEM, "no memory for a request");
    st = run_request(c, &code, err);
    if (st == EBB_OK)
        st = judge(c, code, err);
    else
        c->r->was_sent = true;
    c->curl->curl_multi_remove_handle(c->multi, c->easy);        /* one that did not end closes its connection */
    return st;
}

ebb_status ebb_client_send(ebb_client *c, const ebb_client_request *q, ebb_client_reply *r, ebb_error *err)
{
    struct curl_slist *headers;
    ebb_buf url = { 0 };
    ebb_status st;

    *r = (ebb_client_reply){ 0 };
    c->q = q;
    c->r = r;
    c->n_headers = 0;
    c->has_too_much = false;
    c->child_err = (ebb_error){ 0 };
    headers = make_headers(c);
    ebb_buf_addf(&url, "%s%s", c->url, q->path);
    st = !headers || url.failed ? EBB_FAIL(err, EBB_NOMEM, "no memory for a request")
       : ebb_client_is_stopped(c) ? EBB_FAIL(err, EBB_CANCELED, "stopped")
                                  : send_to(c, url.data, headers, err);
    ebb_log("net", "%s %s of %s: %d", q->method ? q->method : q->body ? "POST" : "GET", q->path, c->name, r->status);
    wipe_headers(c, headers);
    ebb_buf_fini(&url);
    c->q = NULL;
    c->r = NULL;
    return st;
}
